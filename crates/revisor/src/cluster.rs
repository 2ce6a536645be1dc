//! [`Cluster`]: a client of any Kubernetes cluster, for the commands that look at one. It speaks JSON, follows pages,
//! and tells refusals ([`ClusterError::Refused`]) from what went wrong on the way.
//!
//! Where the cluster is and who one is there is read from a kubeconfig as kubectl does (`cluster/access.rs`,
//! `cluster/exec_credential.rs`). What requests mean is not decided here.

mod access;
mod cluster_error;
mod connection;
mod discovery;
mod events;
mod exec_credential;
mod flags;
mod proxy;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use revisor_object::{Object, Value, parse_json};

use access::Access;
pub(crate) use cluster_error::ClusterError;
use connection::Connection;
pub(crate) use discovery::Served;
pub(crate) use events::Events;
pub(crate) use flags::ClusterFlags;

/// How long a request may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The largest answer.
const MAX_ANSWER: usize = 512 << 20;

/// How many objects a page of a list has.
const PAGE: usize = 500;

/// What is spoken, where nothing else is said.
const JSON: &str = "application/json";

/// How many connections wait for the next request.
const MAX_IDLE: usize = 8;

/// A cluster, and who one is there.
pub(crate) struct Cluster {
    access: Access,
    /// `None` for plain HTTP, as `kubectl proxy` speaks it.
    tls: Option<Arc<rustls::ClientConfig>>,
    idle: Mutex<Vec<Connection>>,
}

/// Runs what talks to a cluster to its end.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> anyhow::Result<T> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work))
}

impl Cluster {
    /// The cluster that the flags, the environment and the kubeconfig name. Nothing is asked of it yet.
    pub(crate) fn open(flags: &ClusterFlags) -> anyhow::Result<Cluster> {
        let access = flags.access()?;
        let tls = access.tls()?.map(Arc::new);
        Ok(Cluster { access, tls, idle: Mutex::default() })
    }

    /// Where it is.
    pub(crate) fn url(&self) -> &str {
        &self.access.server
    }

    /// The object at a path.
    pub(crate) async fn get(&self, path: &str) -> Result<Object, ClusterError> {
        self.call(&Call::get(path)).await
    }

    /// The object at a path, in one of the forms that are named in the way of the header `Accept`.
    pub(crate) async fn get_as(&self, path: &str, accept: &'static str) -> Result<Object, ClusterError> {
        self.call(&Call { accept, ..Call::get(path) }).await
    }

    /// Hands over every object of the list at a path, page by page.
    pub(crate) async fn list(&self, path: &str, mut each: impl FnMut(Object)) -> Result<(), ClusterError> {
        let mut continued = String::new();
        loop {
            let joint = if path.contains('?') { '&' } else { '?' };
            let mut page = self.get(&format!("{path}{joint}limit={PAGE}{continued}")).await?;
            for item in page.array_mut("items").map(std::mem::take).unwrap_or_default() {
                if let Value::Object(item) = item {
                    each(item);
                }
            }
            match page.at(&["metadata", "continue"]).and_then(Value::as_str).filter(|token| !token.is_empty()) {
                // Tokens are base64 for URLs; whatever else one may hold is escaped.
                Some(token) => continued = format!("&continue={}", escaped(token)),
                None => return Ok(()),
            }
        }
    }

    /// Sends a request and answers the object that comes back.
    pub(crate) async fn send(&self, method: Method, path: &str, sent: Option<&Value>) -> Result<Object, ClusterError> {
        self.call(&Call { method, body: sent.map(|value| value.to_json().into()), ..Call::get(path) }).await
    }

    /// Changes an object by a merge patch and answers what it has become.
    pub(crate) async fn merge(&self, path: &str, patch: &Value) -> Result<Object, ClusterError> {
        let content_type = "application/merge-patch+json";
        let body = Some(patch.to_json().into());
        self.call(&Call { method: Method::PATCH, content_type, body, ..Call::get(path) }).await
    }

    /// The text at a path.
    pub(crate) async fn text(&self, path: &str) -> Result<String, ClusterError> {
        let body = self.answer(&Call::get(path)).await?;
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    /// Opens a watch, whose objects are shown in one of the forms named.
    pub(crate) async fn watch(&self, path: &str, accept: &'static str) -> Result<Events, ClusterError> {
        let call = Call { accept, ..Call::get(path) };
        let url = self.url_of(&call);
        let opening = tokio::time::timeout(TIMEOUT, self.ask(&call));
        let (head, body, connection) = opening.await.map_err(|_| no_answer(&url))??;
        if head.status.is_success() {
            return Ok(Events::new(url, body, connection));
        }
        let body = tokio::time::timeout(TIMEOUT, Limited::new(body, MAX_ANSWER).collect()).await;
        let body = body.map_err(|_| no_answer(&url))?.map_err(|error| ClusterError::net(&url, error))?.to_bytes();
        Err(ClusterError::refused(&call.method, &url, head.status, &body))
    }

    async fn call(&self, call: &Call<'_>) -> Result<Object, ClusterError> {
        let body = self.answer(call).await?;
        let url = self.url_of(call);
        match parse_json(&body).map(|parsed| parsed.value) {
            Ok(Value::Object(object)) => Ok(object),
            Ok(_) => Err(ClusterError::net(&url, "the answer is no object")),
            Err(error) => Err(ClusterError::net(&url, format!("the answer is no JSON: {error}"))),
        }
    }

    /// Sends a request and answers what comes back.
    async fn answer(&self, call: &Call<'_>) -> Result<Bytes, ClusterError> {
        let url = self.url_of(call);
        let asked = tokio::time::timeout(TIMEOUT, async {
            let (head, body, connection) = self.ask(call).await?;
            let body = Limited::new(body, MAX_ANSWER).collect().await;
            let body = body.map_err(|error| ClusterError::net(&url, error))?.to_bytes();
            self.give(connection);
            Ok((head, body))
        });
        let (head, body): (http::response::Parts, Bytes) = asked.await.map_err(|_| no_answer(&url))??;
        if !head.status.is_success() {
            return Err(ClusterError::refused(&call.method, &url, head.status, &body));
        }
        Ok(body)
    }

    /// Sends a request on a connection that waited, or on a new one, and waits for the head of its answer.
    async fn ask(&self, call: &Call<'_>) -> Result<(http::response::Parts, Incoming, Connection), ClusterError> {
        let url = self.url_of(call);
        let request = || {
            let mut request = Request::builder()
                .method(call.method.clone())
                .uri(format!("{}{}", self.access.base_path(), call.path))
                .header(header::HOST, self.access.authority())
                .header(header::USER_AGENT, concat!("revisor/", env!("CARGO_PKG_VERSION")))
                .header(header::ACCEPT, call.accept);
            if let Some(authorization) = &self.access.authorization {
                request = request.header(header::AUTHORIZATION, authorization.clone());
            }
            for (name, value) in &self.access.impersonation {
                request = request.header(name, value.clone());
            }
            if call.body.is_some() {
                request = request.header(header::CONTENT_TYPE, call.content_type);
            }
            let body = Full::new(call.body.clone().unwrap_or_default());
            request.body(body).map_err(|error| ClusterError::net(&url, error))
        };
        // A connection that waited may have been hung up meanwhile. Then nothing was sent, and another one is opened.
        while let Some(mut connection) = self.take() {
            match connection.ask(request()?).await {
                Ok(answer) => {
                    let (head, body) = answer.into_parts();
                    return Ok((head, body, connection));
                }
                Err(failure) if failure.is_unsent => {}
                Err(failure) => return Err(ClusterError::net(&url, failure.error)),
            }
        }
        let opened = Connection::open(&self.access, self.tls.clone()).await;
        let mut connection = opened.map_err(|error| ClusterError::Net { url: url.clone(), cause: error })?;
        let answer = connection.ask(request()?).await.map_err(|failure| ClusterError::net(&url, failure.error))?;
        let (head, body) = answer.into_parts();
        Ok((head, body, connection))
    }

    fn url_of(&self, call: &Call<'_>) -> String {
        format!("{}{}", self.url(), call.path)
    }

    fn take(&self) -> Option<Connection> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn give(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_IDLE && !connection.is_closed() {
            idle.push(connection);
        }
    }
}

/// One request.
struct Call<'c> {
    method: Method,
    path: &'c str,
    accept: &'static str,
    /// Of the body, if there is one.
    content_type: &'static str,
    body: Option<Bytes>,
}

impl Call<'_> {
    fn get(path: &str) -> Call<'_> {
        Call { method: Method::GET, path, accept: JSON, content_type: JSON, body: None }
    }
}

fn no_answer(url: &str) -> ClusterError {
    ClusterError::net(url, format!("no answer within {TIMEOUT:?}"))
}

/// A text as it may stand in a query.
pub(crate) fn escaped(text: &str) -> String {
    let mut made = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => made.push(char::from(byte)),
            _ => made.push_str(&format!("%{byte:02X}")),
        }
    }
    made
}
