//! [`ProxyClient`]: connections to those to whom requests are passed on, and the requests on them.

use std::error::Error;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::upgrade::Upgraded;
use revisor_webhook::{Connection, NetError, Unanswered};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::Target;

/// What is sent with a request, as it comes.
pub type SentBody = UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>>;

/// A request's body that is none.
pub fn empty_body() -> SentBody {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// How far a client goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyLimits {
    /// The most requests under way, tunnels among them. Past it they are refused.
    pub requests: usize,
    /// The most connections that are kept for later.
    pub idle: usize,
    /// For how long they are kept.
    pub idle_age: Duration,
    /// How long it may take to be connected.
    pub connecting: Duration,
}

impl Default for ProxyLimits {
    fn default() -> ProxyLimits {
        ProxyLimits { requests: 2000, idle: 25, idle_age: Duration::from_secs(90), connecting: Duration::from_secs(30) }
    }
}

/// Why a request was not answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    /// There was no answer.
    #[error(transparent)]
    Net(#[from] NetError),
    /// Too much is under way already.
    #[error("too many requests are being passed on")]
    Full,
}

/// Passes requests on. Clones share their connections and bounds; those who must not get in each other's way have clients
/// of their own.
#[derive(Debug, Clone)]
pub struct ProxyClient(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    limits: ProxyLimits,
    requests: Arc<Semaphore>,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    idle: Vec<Idle>,
    /// Whether a task closes what grows old.
    is_swept: bool,
}

#[derive(Debug)]
struct Idle {
    target: Target,
    connection: Connection<SentBody>,
    since: Instant,
}

impl ProxyClient {
    /// A client with these bounds. It has to be used within a tokio runtime.
    pub fn new(limits: ProxyLimits) -> ProxyClient {
        let requests = Arc::new(Semaphore::new(limits.requests.clamp(1, Semaphore::MAX_PERMITS)));
        ProxyClient(Arc::new(Inner { limits, requests, waiting: Mutex::default() }))
    }

    /// Sends a request and waits for the head of its answer. The URI has to be a path with a query, and the `Host` has to
    /// be set. To drop the future, or the answer, is to give the request up, and its connection with it.
    pub async fn send(
        &self,
        target: &Target,
        request: Request<SentBody>,
    ) -> Result<Response<ReceivedBody>, ProxyError> {
        let permit = self.permit()?;
        let answered = self.ask(target, request).await?;
        Ok(self.received(target, permit, answered))
    }

    /// The same for a request that asks for an upgrade: if that is agreed to, the connection is a tunnel from then on. It
    /// goes over a connection of its own, since it is nobody's to send twice.
    pub async fn upgrade(
        &self,
        target: &Target,
        request: Request<SentBody>,
    ) -> Result<(Response<ReceivedBody>, Option<Tunnel>), ProxyError> {
        let permit = self.permit()?;
        let answered = self.ask_anew(target, request).await?;
        let mut response = self.received(target, permit, answered);
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Ok((response, None));
        }
        let upgrade = hyper::upgrade::on(&mut response);
        let permit = response.body_mut().lease.take();
        let upgraded = upgrade.await.map_err(|error| NetError::Protocol(error.to_string()))?;
        Ok((response, Some(Tunnel { stream: upgraded, _lease: permit })))
    }

    fn permit(&self) -> Result<OwnedSemaphorePermit, ProxyError> {
        self.0.requests.clone().try_acquire_owned().map_err(|_| ProxyError::Full)
    }

    fn received(
        &self,
        target: &Target,
        permit: OwnedSemaphorePermit,
        (response, connection): Answered,
    ) -> Response<ReceivedBody> {
        let lease = Lease { connection, target: target.clone(), client: self.clone(), _permit: permit };
        response.map(|body| ReceivedBody { body, lease: Some(lease) })
    }

    /// Asks on a connection that waits, if there is one.
    async fn ask(&self, target: &Target, mut request: Request<SentBody>) -> Result<Answered, NetError> {
        // Connections that waited may have been hung up meanwhile. If nothing was sent, or if it does no harm to send it
        // twice, the next one is tried (upstream: `persistConn.shouldRetryRequest` of Go's transport).
        while let Some(mut connection) = self.0.take(target) {
            let once_more = replay(&request);
            match connection.send(request).await {
                Ok(response) => return Ok((response, connection)),
                Err(Unanswered { unsent: Some(unsent), .. }) => request = unsent,
                Err(Unanswered { error, .. }) => match once_more {
                    Some(copy) if matches!(error, NetError::Eof | NetError::Broken { .. }) => request = copy,
                    _ => return Err(error),
                },
            }
        }
        self.ask_anew(target, request).await
    }

    async fn ask_anew(&self, target: &Target, request: Request<SentBody>) -> Result<Answered, NetError> {
        let opening = Connection::open(&target.host, target.port, target.privacy.as_ref());
        let opened = tokio::time::timeout(self.0.limits.connecting, opening).await;
        let mut connection = opened.unwrap_or(Err(NetError::Timeout))?;
        match connection.send(request).await {
            Ok(response) => Ok((response, connection)),
            Err(Unanswered { error, .. }) => Err(error),
        }
    }
}

/// The head of an answer, and the connection on which the rest of it comes.
type Answered = (Response<Incoming>, Connection<SentBody>);

/// The same request once more, if it only asks for something and carries nothing.
fn replay(request: &Request<SentBody>) -> Option<Request<SentBody>> {
    if !request.method().is_safe() || request.body().size_hint().exact() != Some(0) {
        return None;
    }
    let mut copy = Request::new(empty_body());
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.version_mut() = request.version();
    *copy.headers_mut() = request.headers().clone();
    Some(copy)
}

impl Inner {
    fn waiting(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection that waits, the one that waited least: the others may grow old and be closed.
    fn take(&self, target: &Target) -> Option<Connection<SentBody>> {
        let mut waiting = self.waiting();
        waiting.idle.retain(|idle| !idle.connection.is_closed());
        let at = waiting.idle.iter().rposition(|idle| idle.target.is_same(target))?;
        Some(waiting.idle.remove(at).connection)
    }

    /// Keeps a connection whose last answer was read to its end, and sees to it that it is closed in time.
    fn give(self: &Arc<Inner>, target: Target, connection: Connection<SentBody>) {
        let mut waiting = self.waiting();
        waiting.idle.retain(|idle| !idle.connection.is_closed());
        if connection.is_closed() || self.limits.idle == 0 {
            return;
        }
        if waiting.idle.len() >= self.limits.idle {
            waiting.idle.remove(0);
        }
        waiting.idle.push(Idle { target, connection, since: Instant::now() });
        if !std::mem::replace(&mut waiting.is_swept, true) {
            tokio::spawn(sweep(Arc::downgrade(self), self.limits.idle_age));
        }
    }
}

/// Closes connections that waited for too long, until none waits or the client is gone.
async fn sweep(inner: Weak<Inner>, age: Duration) {
    loop {
        tokio::time::sleep(age).await;
        let Some(inner) = inner.upgrade() else { return };
        let mut waiting = inner.waiting();
        waiting.idle.retain(|idle| !idle.connection.is_closed() && idle.since.elapsed() < age);
        if waiting.idle.is_empty() {
            waiting.is_swept = false;
            return;
        }
    }
}

/// What a request has of its client until its answer is over.
#[derive(Debug)]
struct Lease {
    connection: Connection<SentBody>,
    target: Target,
    client: ProxyClient,
    _permit: OwnedSemaphorePermit,
}

/// The body of an answer, as it comes.
#[derive(Debug)]
pub struct ReceivedBody {
    body: Incoming,
    /// Nothing once the body was read to its end, or broke.
    lease: Option<Lease>,
}

impl Body for ReceivedBody {
    type Data = Bytes;
    type Error = NetError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, NetError>>> {
        match std::task::ready!(Pin::new(&mut self.body).poll_frame(cx)) {
            Some(Ok(frame)) => Poll::Ready(Some(Ok(frame))),
            Some(Err(error)) => {
                let broken = self.lease.take().map_or(NetError::UnexpectedEof, |lease| lease.connection.broken(&error));
                Poll::Ready(Some(Err(broken)))
            }
            None => {
                if let Some(Lease { connection, target, client, .. }) = self.lease.take() {
                    client.0.give(target, connection);
                }
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for ReceivedBody {
    fn drop(&mut self) {
        // An answer without a body is not asked for one.
        if let Some(Lease { connection, target, client, .. }) = self.lease.take().filter(|_| self.body.is_end_stream())
        {
            client.0.give(target, connection);
        }
    }
}

/// A connection on which both sides say what they want.
#[derive(Debug)]
pub struct Tunnel {
    /// The bytes.
    pub stream: Upgraded,
    _lease: Option<Lease>,
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    /// Answers the first request on each connection, and hangs up when there is a second one.
    async fn answers_once(listener: TcpListener) {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                head(&mut stream).await;
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.expect("is sent");
                head(&mut stream).await;
            });
        }
    }

    async fn head(stream: &mut TcpStream) {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read_u8().await {
                Ok(byte) => head.push(byte),
                Err(_) => return,
            }
        }
    }

    fn request(method: http::Method) -> Request<SentBody> {
        Request::builder().method(method).uri("/").header("Host", "x").body(empty_body()).expect("a request")
    }

    async fn client_with_a_waiting_connection() -> (ProxyClient, Target) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let target = Target::plain("127.0.0.1", listener.local_addr().expect("an address").port());
        tokio::spawn(answers_once(listener));
        let client = ProxyClient::new(ProxyLimits::default());
        drop(client.send(&target, request(http::Method::GET)).await.expect("an answer"));
        assert_eq!(client.0.waiting().idle.len(), 1);
        (client, target)
    }

    #[tokio::test]
    async fn what_only_asks_is_asked_again_when_a_connection_that_waited_turns_out_to_be_gone() {
        let (client, target) = client_with_a_waiting_connection().await;
        let answer = client.send(&target, request(http::Method::GET)).await.expect("an answer");
        assert_eq!(answer.status(), StatusCode::OK);
    }

    #[tokio::test]
    async fn what_may_have_been_done_is_not_done_twice() {
        let (client, target) = client_with_a_waiting_connection().await;
        let failure = client.send(&target, request(http::Method::POST)).await.expect_err("nobody knows");
        assert_eq!(failure, ProxyError::Net(NetError::Eof));
    }

    #[tokio::test]
    async fn an_upgrade_has_a_connection_of_its_own() {
        let (client, target) = client_with_a_waiting_connection().await;
        let (answer, tunnel) = client.upgrade(&target, request(http::Method::POST)).await.expect("an answer");
        assert_eq!(answer.status(), StatusCode::OK);
        assert!(tunnel.is_none());
    }
}
