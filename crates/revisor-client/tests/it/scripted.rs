//! [`Scripted`]: a server that gives the answers that a test wrote down, in order, and remembers what it was asked.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower_service::Service;

/// One answer.
pub(crate) enum Answer {
    /// A status and a body.
    Json(u16, Value),
    /// Events of a watch, which then ends.
    Events(Vec<Value>),
    /// Events of a watch that stays open.
    OpenEvents(Vec<Value>),
}

type Sent = UnsyncBoxBody<Bytes, Infallible>;

#[derive(Clone, Default)]
pub(crate) struct Scripted {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Scripted {
    pub(crate) fn new(answers: impl IntoIterator<Item = Answer>) -> Scripted {
        Scripted { answers: Arc::new(Mutex::new(answers.into_iter().collect())), asked: Arc::default() }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.clone(), "default")
    }

    /// The queries so far.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no panic").clone()
    }
}

impl Service<Request<Body>> for Scripted {
    type Response = Response<Sent>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Sent>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.asked.lock().expect("no panic").push(request.uri().query().unwrap_or_default().to_owned());
        let answer = self.answers.lock().expect("no panic").pop_front();
        let (code, body) = match answer.unwrap_or_else(|| Answer::Json(503, status(503))) {
            Answer::Json(code, value) => (code, Full::from(value.to_string()).boxed_unsync()),
            Answer::Events(events) => (200, Full::from(lines(&events).concat()).boxed_unsync()),
            Answer::OpenEvents(events) => {
                let frames = lines(&events).into_iter().map(|line| Ok::<_, Infallible>(Frame::data(Bytes::from(line))));
                (200, StreamBody::new(stream::iter(frames).chain(stream::pending())).boxed_unsync())
            }
        };
        let response = Response::builder().status(code).header("content-type", "application/json").body(body);
        ready(Ok(response.expect("is whole")))
    }
}

fn lines(events: &[Value]) -> Vec<Vec<u8>> {
    events.iter().map(|event| format!("{event}\n").into_bytes()).collect()
}

/// A refusal.
pub(crate) fn status(code: u16) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "reason": "No", "code": code})
}

/// A ConfigMap.
pub(crate) fn map(name: &str, version: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "resourceVersion": version},
    })
}

/// A list of ConfigMaps.
pub(crate) fn list(version: &str, items: &[Value]) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": version}, "items": items})
}

pub(crate) fn event(kind: &str, object: Value) -> Value {
    json!({"type": kind, "object": object})
}

/// A bookmark, and whether it ends the objects of a streamed list.
pub(crate) fn bookmark(version: &str, ends_list: bool) -> Value {
    let annotations = if ends_list { json!({"k8s.io/initial-events-end": "true"}) } else { json!({}) };
    let metadata = json!({"resourceVersion": version, "annotations": annotations});
    event("BOOKMARK", json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}))
}
