//! Answers of others that are passed on to clients: bodies as they come, and connections that become something else.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::upgrade::OnUpgrade;
use revisor_proxy::{Forwarded, ReceivedBody, SentBody, Tunnel};

use crate::body::{Body, ByteSource};
use crate::cut_off::CutOff;
use crate::remote_command::RemoteCommand;
use crate::unread_body::UnreadBody;

/// Marks an answer that others made: it is left as it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PassedOn;

/// Goes on with a connection as a tunnel once the head of the answer was sent, for as long as the answer's body lasts.
/// One of the extensions of an answer.
#[derive(Clone)]
pub(crate) struct TunnelUpgrade {
    pub(crate) upgrade: OnUpgrade,
    way: Arc<Mutex<Option<Way>>>,
}

/// What a client is connected with.
pub(crate) enum Way {
    /// The other end of a tunnel.
    Tunnel(Tunnel),
    /// The same for a client that speaks WebSocket, to which bytes are messages.
    MessageTunnel(Tunnel),
    /// A command, for a client that speaks WebSocket.
    Command(RemoteCommand),
}

impl TunnelUpgrade {
    /// What the client is connected with, once.
    pub(crate) fn take(&self) -> Option<Way> {
        self.way.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The same for a client that speaks WebSocket.
    pub(crate) fn with_messages(&self) {
        let mut way = self.way.lock().unwrap_or_else(PoisonError::into_inner);
        *way = match way.take() {
            Some(Way::Tunnel(tunnel)) => Some(Way::MessageTunnel(tunnel)),
            other => other,
        };
    }
}

/// The answer with this head behind which a client is connected.
pub(crate) fn connected(head: Response<()>, upgrade: OnUpgrade, way: Way) -> Response<Body> {
    let mut response = head.map(|()| Body::stream(Lasting));
    let way = Arc::new(Mutex::new(Some(way)));
    response.extensions_mut().insert(TunnelUpgrade { upgrade, way });
    response.extensions_mut().insert(PassedOn);
    response
}

/// The same request with a body that others can be sent.
pub(crate) fn to_be_sent(request: Request<UnreadBody>) -> Request<SentBody> {
    request.map(|body| body.map_err(Into::into).boxed_unsync())
}

/// The answer to a request that was passed on. `upgrade` is the client's connection, if it can become a tunnel.
pub(crate) fn answer(forwarded: Forwarded, method: &Method, upgrade: Option<OnUpgrade>) -> Response<Body> {
    let mut response = match forwarded {
        Forwarded::Answer(response) => received(response, method),
        Forwarded::Redirected => {
            let refused = "the backend attempted to redirect this request, which is not permitted";
            let mut response = Response::new(Body::from(refused));
            *response.status_mut() = StatusCode::BAD_GATEWAY;
            response
        }
        Forwarded::Tunnel(head, tunnel) => match upgrade {
            Some(upgrade) => connected(head, upgrade, Way::Tunnel(tunnel)),
            None => unconnectable(),
        },
    };
    response.extensions_mut().insert(PassedOn);
    response
}

/// The answer to those whose connection cannot become another. Over HTTP/2 nobody asks for this.
pub(crate) fn unconnectable() -> Response<Body> {
    let mut response = Response::new(Body::from("request connection cannot be hijacked"));
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    response
}

/// An answer whose body goes through as it comes. One that breaks off breaks off for the client, too.
pub(crate) fn received(response: Response<ReceivedBody>, method: &Method) -> Response<Body> {
    let cut_off = CutOff::default();
    let (mut head, body) = response.into_parts();
    // What was known of others' connections is not about this one.
    head.extensions = http::Extensions::new();
    head.version = http::Version::default();
    head.extensions.insert(cut_off.clone());
    let is_empty = *method == Method::HEAD || body.is_end_stream();
    let body = if is_empty { Body::Empty } else { Body::stream(Received { body, cut_off }) };
    Response::from_parts(head, body)
}

struct Received {
    body: ReceivedBody,
    cut_off: CutOff,
}

impl ByteSource for Received {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Poll::Ready(Some(data));
                    }
                }
                Some(Err(error)) => {
                    tracing::debug!(%error, "an answer that is passed on broke off");
                    // To end it would make the client believe that it has all.
                    self.cut_off.cut();
                    return Poll::Pending;
                }
                None => return Poll::Ready(None),
            }
        }
    }
}

/// A body that says nothing and does not end: it stands for a tunnel.
struct Lasting;

impl ByteSource for Lasting {
    fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<Option<Bytes>> {
        Poll::Pending
    }
}
