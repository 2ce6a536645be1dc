//! Asking a program on this machine whether it is well.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use revisor_webhook::unverified_tls_client_config;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// How long a program may take to answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// How much of an answer is read.
const MAX_ANSWER: u64 = 10 * 1024;

/// What a program answers at `/healthz`, or what is wrong with it.
pub(super) async fn probe(address: SocketAddr) -> Result<String, String> {
    let failed = |what: String| format!("Get \"https://{address}/healthz\": {what}");
    let answer = timeout(PATIENCE, ask(address)).await.map_err(|_| failed("context deadline exceeded".to_owned()))?;
    let answer = answer.map_err(failed)?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer.as_str(), ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse::<u16>().ok());
    match status {
        Some(200..400) => Ok(body.to_owned()),
        Some(status) => Err(format!("HTTP probe failed with statuscode: {status}")),
        None => Err(failed("malformed HTTP response".to_owned())),
    }
}

async fn ask(address: SocketAddr) -> Result<String, String> {
    let refused = |error: io::Error| {
        let why = match error.kind() {
            io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
            _ => error.to_string(),
        };
        format!("dial tcp {address}: connect: {why}")
    };
    let stream = TcpStream::connect(address).await.map_err(refused)?;
    let text = |error: &dyn std::error::Error| error.to_string();
    // The programs make their own certificates, and nothing secret is said.
    let config = unverified_tls_client_config(None).map_err(|error| text(&error))?;
    let name = ServerName::IpAddress(address.ip().into());
    let connector = TlsConnector::from(Arc::new(config));
    let mut stream = connector.connect(name, stream).await.map_err(|error| text(&error))?;
    let request = format!("GET /healthz HTTP/1.0\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(|error| text(&error))?;
    let mut answer = Vec::new();
    // A program that hangs up without saying goodbye has answered all the same.
    match stream.take(MAX_ANSWER).read_to_end(&mut answer).await {
        Err(error) if answer.is_empty() => Err(text(&error)),
        _ => Ok(String::from_utf8_lossy(&answer).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener};

    #[tokio::test]
    async fn a_program_that_is_not_there_is_not_well() {
        // The port was free a moment ago, and nobody else takes it.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("an address");
        drop(listener);
        let want = format!("Get \"https://{address}/healthz\": dial tcp {address}: connect: connection refused");
        assert_eq!(probe(address).await, Err(want));
    }
}
