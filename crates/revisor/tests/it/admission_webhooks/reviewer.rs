//! [`Reviewer`]: admission webhooks over real TLS, one for each path, which may answer anything.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::StreamExt;
use http::{Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::custom::certified;

type Body = BoxBody<Bytes, std::io::Error>;

/// What a webhook does with a request to admit something.
pub(super) enum Answer {
    /// Says this in `response`, to which the uid is added.
    Response(Value),
    /// Says this instead of a review.
    Text(u16, String),
    /// Sends its client elsewhere.
    Redirect(String),
    /// Never answers.
    Hang,
    /// Begins to answer, and never ends.
    Drip,
}

pub(super) fn allow() -> Answer {
    Answer::Response(json!({"allowed": true}))
}

pub(super) fn deny(message: &str) -> Answer {
    Answer::Response(json!({"allowed": false, "status": {"message": message}}))
}

pub(super) fn patch(operations: &Value) -> Answer {
    let patch = STANDARD.encode(operations.to_string());
    Answer::Response(json!({"allowed": true, "patchType": "JSONPatch", "patch": patch}))
}

type Decide = Arc<dyn Fn(String, Value) -> Pin<Box<dyn Future<Output = Answer> + Send>> + Send + Sync>;

/// A server of webhooks that runs until it is dropped.
pub(super) struct Reviewer {
    url: String,
    authority: String,
    seen: Arc<Mutex<Vec<(String, Value)>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Reviewer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Reviewer {
    /// Webhooks that decide by their path and the request.
    pub(super) async fn start<F: Future<Output = Answer> + Send + 'static>(
        decide: impl Fn(String, Value) -> F + Send + Sync + 'static,
    ) -> Reviewer {
        let (acceptor, authority) = certified("localhost");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback can be listened on");
        let url = format!("https://{}", listener.local_addr().expect("it has an address"));
        let seen: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
        let decide: Decide = Arc::new(move |path, request| Box::pin(decide(path, request)));
        let heard = seen.clone();
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, decide, heard) = (acceptor.clone(), decide.clone(), heard.clone());
                connections.spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = service_fn(|request| answer(request, decide.clone(), heard.clone()));
                    // It ends when either side hangs up.
                    drop(
                        auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await,
                    );
                });
            }
        });
        Reviewer { url, authority, seen, task }
    }

    /// The webhook at a path, as a configuration has it. `more` is added to it.
    pub(super) fn webhook(&self, path: &str, rules: &Value, more: &Value) -> Value {
        let bundle = STANDARD.encode(&self.authority);
        let mut webhook = json!({
            "name": format!("{path}.example.com"), "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "rules": [rules], "clientConfig": {"url": format!("{}/{path}", self.url), "caBundle": bundle},
        });
        for (name, value) in more.as_object().into_iter().flatten() {
            webhook[name] = value.clone();
        }
        webhook
    }

    /// What the webhook at a path was asked so far.
    pub(super) fn requests(&self, path: &str) -> Vec<Value> {
        let seen = self.seen.lock().expect("nobody panics with it");
        seen.iter().filter(|(at, _)| at == path).map(|(_, review)| review["request"].clone()).collect()
    }
}

async fn answer(
    request: Request<Incoming>,
    decide: Decide,
    seen: Arc<Mutex<Vec<(String, Value)>>>,
) -> Result<Response<Body>, std::io::Error> {
    let path = request.uri().path().trim_start_matches('/').to_owned();
    let body = request.into_body().collect().await.map_err(std::io::Error::other)?.to_bytes();
    let review: Value = serde_json::from_slice(&body)?;
    seen.lock().expect("nobody panics with it").push((path.clone(), review.clone()));
    let whole = |text: String| Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed();
    let builder = Response::builder().header("content-type", "application/json");
    let response = match decide(path, review["request"].clone()).await {
        Answer::Response(mut response) => {
            if response.get("uid").is_none() {
                response["uid"] = review["request"]["uid"].clone();
            }
            let review = json!({"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response});
            builder.body(whole(review.to_string()))
        }
        Answer::Text(code, text) => builder.status(code).body(whole(text)),
        Answer::Redirect(to) => builder.status(302).header("location", to).body(whole(String::new())),
        Answer::Hang => std::future::pending().await,
        Answer::Drip => {
            let first = futures_util::stream::once(async { Ok(Frame::data(Bytes::from_static(b"{"))) });
            builder.body(BodyExt::boxed(StreamBody::new(first.chain(futures_util::stream::pending()))))
        }
    };
    response.map_err(std::io::Error::other)
}
