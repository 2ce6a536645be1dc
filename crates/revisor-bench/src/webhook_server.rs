//! [`WebhookServer`]: a webhook that the bench serves itself, to compare with: just enough of HTTP/1.1 over TLS for one API
//! server.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::tls;

/// The longest review that is read.
const MAX_REVIEW: usize = 256 * 1024 * 1024;

/// A webhook on this machine, served until it is dropped.
pub(crate) struct WebhookServer {
    /// What the API server is told of it.
    pub(crate) client_config: Value,
    accept: JoinHandle<()>,
}

impl WebhookServer {
    /// A webhook that answers every review by this function.
    pub(crate) async fn start(answer: fn(Value) -> Value) -> Result<WebhookServer> {
        let (config, certificate) = tls::server()?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.context("no port for the webhook")?;
        let port = listener.local_addr().context("no port for the webhook")?.port();
        let accept = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                // A short answer does not wait for more to send.
                let _ = stream.set_nodelay(true);
                tokio::spawn(async move {
                    // Who goes away is no concern of the webhook; a review that is none ends its connection.
                    if let Ok(stream) = acceptor.accept(stream).await {
                        let _ = serve(stream, answer).await;
                    }
                });
            }
        });
        let authority = STANDARD.encode(certificate);
        let client_config = json!({"url": format!("https://localhost:{port}/review"), "caBundle": authority});
        Ok(WebhookServer { client_config, accept })
    }
}

impl Drop for WebhookServer {
    fn drop(&mut self) {
        self.accept.abort();
    }
}

/// Answers reviews until the server leaves.
async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, answer: fn(Value) -> Value) -> Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut line, mut length) = (String::new(), 0);
        if stream.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        while !line.trim_end().is_empty() {
            let header = line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
            if let Some((_, value)) = header {
                length = value.trim().parse().context("a content-length is no number")?;
            }
            line.clear();
            stream.read_line(&mut line).await?;
        }
        if length > MAX_REVIEW {
            bail!("a review of {length} bytes");
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        let answer = answer(serde_json::from_slice(&body).context("a review is no JSON")?).to_string();
        let length = answer.len();
        let whole =
            format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{answer}");
        stream.write_all(whole.as_bytes()).await?;
        stream.flush().await?;
    }
}
