//! [`Outsider`]: a server of others over real TLS, which answers JSON, or a text, by path: an issuer of tokens, a webhook.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::custom::certified;

type Decide = Arc<dyn Fn(&str, Value) -> Value + Send + Sync>;

/// A server that runs until it is dropped.
pub(crate) struct Outsider {
    pub(crate) url: String,
    /// The certificate of its authority, in PEM.
    pub(crate) authority: String,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Outsider {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Outsider {
    /// A server that answers what `decide` makes of a path and of what was posted there, which may be nothing.
    pub(crate) async fn start(decide: impl Fn(&str, Value) -> Value + Send + Sync + 'static) -> Outsider {
        let (acceptor, authority) = certified("localhost");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback can be listened on");
        let url = format!("https://{}", listener.local_addr().expect("it has an address"));
        let decide: Decide = Arc::new(decide);
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, decide) = (acceptor.clone(), decide.clone());
                connections.spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = service_fn(|request| answer(request, decide.clone()));
                    // It ends when either side hangs up.
                    drop(
                        auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await,
                    );
                });
            }
        });
        Outsider { url, authority, task }
    }

    /// A kubeconfig that leads to a path of this server.
    pub(crate) fn kubeconfig(&self, path: &str) -> String {
        use base64::Engine as _;
        let authority = base64::engine::general_purpose::STANDARD.encode(&self.authority);
        json!({
            "clusters": [{"name": "c", "cluster": {
                "server": format!("{}{path}", self.url), "certificate-authority-data": authority,
            }}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        })
        .to_string()
    }
}

async fn answer(request: Request<Incoming>, decide: Decide) -> Result<Response<Full<Bytes>>, std::io::Error> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.map_err(std::io::Error::other)?.to_bytes();
    let posted = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body)? };
    let answer = match decide(&path, posted) {
        // Not everything that is asked for is JSON.
        Value::String(text) => text,
        other => other.to_string(),
    };
    Response::builder()
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(answer)))
        .map_err(std::io::Error::other)
}
