//! [`Connection`]: one connection to a cluster, from dialling to the sending of requests.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::access::Access;

/// How long dialling and shaking hands may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// A connection that carries one request after the other.
pub(super) struct Connection(http1::SendRequest<Full<Bytes>>);

/// A request that was not answered.
pub(super) struct Unanswered {
    pub(super) error: String,
    /// Whether nothing of it was sent, so that it can be sent again without being done twice.
    pub(super) is_unsent: bool,
}

impl Connection {
    pub(super) async fn open(access: &Access, tls: Option<Arc<rustls::ClientConfig>>) -> Result<Connection, String> {
        let opening = async {
            let (host, port) = access.host_and_port();
            let stream = match &access.proxy {
                Some(proxy) => proxy.connect(host, port).await?,
                None => TcpStream::connect((host, port)).await.map_err(|error| format!("cannot connect: {error}"))?,
            };
            // Requests are written whole; to hold back their last packet only delays the answer.
            stream.set_nodelay(true).map_err(|error| error.to_string())?;
            let told = |error: hyper::Error| error.to_string();
            let sender = match tls {
                None => {
                    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(told)?;
                    tokio::spawn(connection);
                    sender
                }
                Some(tls) => {
                    let name = access.tls_server_name.as_deref().unwrap_or(host).to_owned();
                    let name = ServerName::try_from(name).map_err(|error| error.to_string())?;
                    let stream = TlsConnector::from(tls).connect(name, stream).await;
                    let stream = stream.map_err(|error| format!("TLS: {error}"))?;
                    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(told)?;
                    tokio::spawn(connection);
                    sender
                }
            };
            Ok(Connection(sender))
        };
        let opened = tokio::time::timeout(PATIENCE, opening).await;
        opened.unwrap_or_else(|_| Err(format!("cannot connect within {PATIENCE:?}")))
    }

    /// Sends a request and waits for the head of its answer.
    pub(super) async fn ask(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, Unanswered> {
        if let Err(error) = self.0.ready().await {
            return Err(Unanswered { error: error.to_string(), is_unsent: true });
        }
        self.0.try_send_request(request).await.map_err(|mut failure| {
            let is_unsent = failure.take_message().is_some();
            Unanswered { error: failure.error().to_string(), is_unsent }
        })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}
