//! A conversion webhook for the widgets, to compare with: just enough of HTTP/1.1 over TLS for one API server.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::widgets;

/// The longest review that is read.
const MAX_REVIEW: usize = 256 * 1024 * 1024;

/// A webhook on this machine, served until it is dropped.
pub(crate) struct Converter {
    /// What the definition says of it.
    pub(crate) client_config: Value,
    accept: JoinHandle<()>,
}

impl Converter {
    pub(crate) async fn start() -> Result<Converter> {
        let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).context("no certificate")?;
        let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der());
        let Ok(key) = key else { bail!("the key of the webhook cannot be read") };
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .context("TLS cannot be set up")?
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key)
            .context("the certificate of the webhook cannot be used")?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.context("no port for the webhook")?;
        let port = listener.local_addr().context("no port for the webhook")?.port();
        let accept = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    // Who goes away is no concern of the webhook; a review that is none ends its connection.
                    if let Ok(stream) = acceptor.accept(stream).await {
                        let _ = serve(stream).await;
                    }
                });
            }
        });
        let authority = STANDARD.encode(certified.cert.pem());
        let client_config = json!({"url": format!("https://localhost:{port}/convert"), "caBundle": authority});
        Ok(Converter { client_config, accept })
    }
}

impl Drop for Converter {
    fn drop(&mut self) {
        self.accept.abort();
    }
}

/// Answers reviews until the server leaves.
async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin) -> Result<()> {
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
        let answer = review(serde_json::from_slice(&body).context("a review is no JSON")?).to_string();
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", answer.len());
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(answer.as_bytes()).await?;
        stream.flush().await?;
    }
}

/// The answer to a ConversionReview.
fn review(mut review: Value) -> Value {
    let request = review["request"].take();
    let wanted = request["desiredAPIVersion"].as_str().unwrap_or_default();
    let mut objects = match request.get("objects") {
        Some(Value::Array(objects)) => objects.clone(),
        _ => Vec::new(),
    };
    for object in &mut objects {
        widgets::rename(&mut object["spec"], wanted.ends_with(widgets::OTHER));
        object["apiVersion"] = json!(wanted);
    }
    json!({
        "apiVersion": review["apiVersion"],
        "kind": "ConversionReview",
        "response": {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::widgets::{Conversion, spec};

    #[test]
    fn objects_are_converted_there_and_back() {
        let [old, new] = [None, Some(Conversion::Webhook)].map(|conversion| spec(7, conversion));
        for (wanted, from, to) in [("g/v2", &old, &new), ("g/v1", &new, &old)] {
            let answer = review(json!({"apiVersion": "apiextensions.k8s.io/v1", "request": {
                "uid": "u", "desiredAPIVersion": wanted, "objects": [{"apiVersion": "g/v", "spec": from}],
            }}));
            let response = &answer["response"];
            assert_eq!((&response["uid"], &response["result"]["status"]), (&json!("u"), &json!("Success")));
            assert_eq!(response["convertedObjects"], json!([{"apiVersion": wanted, "spec": to}]));
        }
    }
}
