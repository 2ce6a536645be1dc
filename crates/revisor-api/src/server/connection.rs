//! One connection: its handshake, its protocol, its requests, its end.

use std::any::Any;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use http::header::{CONTENT_TYPE, STRICT_TRANSPORT_SECURITY};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus::IntCounter;
use revisor_auth::ServerTls;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::delivery::{Delivery, Latest, OutgoingBody, PIECE, Patience};
use super::gathered::Gathered;
use super::rooms::{Guest, Stay};
use super::stream_task::StreamExecutor;
use super::tunnel_connection::TunnelConnection;
use super::web_socket_connection::WebSocketConnection;
use super::{Handler, Limits, ServerOptions, Standing};
use crate::access_log::AccessRecord;
use crate::body::Body;
use crate::cross_origin::{self, CrossOrigin};
use crate::drain::{Drain, Phase};
use crate::metrics::Metrics;
use crate::passed_on::TunnelUpgrade;
use crate::strict_transport_security::StrictTransportSecurity;

/// The most that is buffered for writing, per HTTP/1.1 connection and per HTTP/2 stream: what a client that does not
/// read can make the server hold. Four TLS records.
const WRITE_BUFFER: usize = 64 * 1024;

/// How much is encrypted before the socket takes it: a piece of an answer and what frames it, so that it leaves with one
/// call into the kernel.
const SEALED: usize = PIECE + 1024;

/// What an HTTP/2 client may send ahead, per stream and in all. Nothing is set aside for it.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// What the client is told about a request that ended in a panic. The first sentence is the original's.
const PANICKED: &str = concat!(
    r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","#,
    r#""message":"This request caused apiserver to panic. Look in the logs for details.","#,
    r#""reason":"InternalError","code":500}"#,
    "\n"
);

/// Serves connections, all in the same way.
pub(super) struct ConnectionServer<H> {
    handler: Arc<H>,
    tls: ServerTls,
    strict_transport_security: Option<StrictTransportSecurity>,
    cross_origin: Option<CrossOrigin>,
    goaway_chance: f64,
    http1: http1::Builder,
    limits: Limits,
    metrics: Arc<Metrics>,
    drain: Drain,
}

impl<H: Handler> ConnectionServer<H> {
    pub(super) fn new(options: &ServerOptions, handler: Arc<H>, drain: Drain) -> ConnectionServer<H> {
        let limits = &options.limits;
        let mut http1 = http1::Builder::new();
        http1
            .timer(TokioTimer::new())
            // Counts from the end of the last request, so it bounds idleness as well.
            .header_read_timeout(limits.idle_timeout)
            .max_header_size(limits.head_bytes as usize)
            .max_buf_size(WRITE_BUFFER.max(limits.head_bytes as usize))
            // Measured with TLS: no different from flattening for small answers, about a quarter less processor time
            // for large ones, and a connection does not go on holding a copy of the largest answer it ever gave.
            .writev(true);
        ConnectionServer {
            handler,
            tls: options.tls.clone(),
            strict_transport_security: options.strict_transport_security.clone(),
            cross_origin: options.cross_origin.clone(),
            goaway_chance: options.goaway_chance,
            http1,
            limits: limits.clone(),
            metrics: Arc::clone(&options.metrics),
            drain,
        }
    }

    /// From the handshake to the end.
    pub(super) async fn serve(self: Arc<Self>, stream: TcpStream, address: SocketAddr, stay: Stay) {
        // Boxed, so that what a handshake needs is given back before the connection's long life begins.
        let Some(mut stream) = Box::pin(self.handshake(stream, address, stay.guest())).await else { return };
        let (_, tls) = stream.get_mut();
        tls.set_buffer_limit(Some(SEALED));
        // As in the original, HTTP/2 is spoken only where it was agreed on. Guessing from the first bytes would mean
        // to wait for them without a limit.
        let speaks_http2 = tls.alpn_protocol() == Some(b"h2");
        let certificates = tls.peer_certificates().unwrap_or_default();
        let standing = Arc::new(Standing::default());
        let connection = Arc::new(self.handler.connected(address, certificates, Arc::clone(&standing)));
        let guest = Arc::clone(stay.guest());
        let latest = Latest::default();
        let switched = Switched::default();
        // The connection has its room until its end, also when that is not the end of HTTP.
        let stay = Arc::new(stay);
        let service = service_fn({
            let server = Arc::clone(&self);
            let (guest, latest, standing) = (Arc::clone(&guest), latest.clone(), Arc::clone(&standing));
            let (stay, switched) = (Arc::clone(&stay), Arc::clone(&switched));
            move |request| {
                let is_first = guest.activity.begin();
                let delivery = Delivery::begin(&guest);
                latest.set(&delivery);
                let admission = if is_first && !stay.settle() {
                    Admission::Leaves
                } else if speaks_http2 && server.has_too_many_streams(&guest, &standing) {
                    Admission::Refused
                } else {
                    Admission::Served
                };
                if speaks_http2 && server.says_goodbye() {
                    standing.finish();
                }
                let (server, connection) = (Arc::clone(&server), Arc::clone(&connection));
                let switched = Arc::clone(&switched);
                // Boxed, so that a stream costs what its body costs once it is answered: watches are many, and last.
                Box::pin(async move {
                    match admission {
                        Admission::Served => Ok(server.answer(connection, address, delivery, request, &switched).await),
                        Admission::Refused => Err(h2::Error::from(h2::Reason::REFUSED_STREAM)),
                        // The connection is about to be closed.
                        Admission::Leaves => std::future::pending().await,
                    }
                })
            }
        });
        let cut_off = self.metrics.cut_off();
        let attendant =
            Attendant { guest: &guest, standing: &standing, drain: &self.drain, limits: &self.limits, cut_off };
        if speaks_http2 {
            let http2 = self.http2(latest);
            let stream = Gathered::new(stream);
            let connection = Box::pin(http2.serve_connection(TokioIo::new(stream.share()), service));
            let driven = attendant.drive(connection, |connection| connection.graceful_shutdown(), Protocol::Http2);
            stream.run(pin!(driven), || guest.activity.running() > 1).await;
        } else {
            let connection = Box::pin(self.http1.serve_connection(TokioIo::new(stream), service).with_upgrades());
            let protocol = Protocol::Http1(latest);
            attendant.drive(connection, |connection| connection.graceful_shutdown(), protocol).await;
            let other = switched.lock().unwrap_or_else(PoisonError::into_inner).take();
            let is_cut_off = match other {
                Some(OtherProtocol::WebSocket(web_socket)) => {
                    Box::pin(web_socket.serve(&guest, &self.drain, &self.limits)).await
                }
                Some(OtherProtocol::Tunnel(tunnel)) => {
                    Box::pin(tunnel.serve(&guest, &self.drain)).await;
                    false
                }
                None => false,
            };
            if is_cut_off {
                self.metrics.cut_off().inc();
            }
        }
    }

    /// How HTTP/2 is spoken on a connection.
    fn http2(&self, latest: Latest) -> http2::Builder<StreamExecutor> {
        let limits = &self.limits;
        let unread_timeout = limits.unread_timeout;
        let executor = StreamExecutor { latest, unread_timeout, cut_off: self.metrics.cut_off() };
        let mut http2 = http2::Builder::new(executor);
        http2
            .timer(TokioTimer::new())
            .max_concurrent_streams(limits.streams)
            .max_header_list_size(limits.head_bytes)
            .max_pending_accept_reset_streams(limits.reset_streams)
            .max_local_error_reset_streams(limits.reset_streams)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buf_size(WRITE_BUFFER)
            .keep_alive_interval(limits.ping_interval)
            .keep_alive_timeout(limits.ping_interval);
        http2
    }

    /// Whether a connection ends after the requests that it has, by chance (`WithProbabilisticGoaway` of the original).
    fn says_goodbye(&self) -> bool {
        self.goaway_chance > 0.0
            && f64::from(uuid::Uuid::new_v4().as_u128() as u32) < self.goaway_chance * f64::from(u32::MAX)
    }

    /// Whether a client that nobody knows has more requests at once than such clients may have. One that goes on like
    /// that is sent away.
    fn has_too_many_streams(&self, guest: &Guest, standing: &Standing) -> bool {
        let limits = &self.limits;
        if standing.is_authenticated() || guest.activity.running() <= limits.unauthenticated_streams as usize {
            return false;
        }
        if standing.refuse() > limits.streams as usize {
            guest.dismiss();
        }
        true
    }

    async fn handshake(&self, stream: TcpStream, address: SocketAddr, guest: &Guest) -> Option<TlsStream<TcpStream>> {
        // Which certificate is shown may depend on where the client came in.
        let local = stream.local_addr().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |local| local.ip());
        let acceptor = TlsAcceptor::from(self.tls.config(local));
        let accepted = tokio::time::timeout(self.limits.handshake_timeout, acceptor.accept(stream));
        let accepted = tokio::select! {
            accepted = accepted => accepted,
            // A client that has not even shaken hands has nothing under way that would be worth finishing.
            () = self.drain.wait(Phase::Closing) => return None,
            () = guest.told_to_leave() => {
                tracing::debug!(%address, "gave way to others before the TLS handshake was done");
                self.metrics.handshake_failed();
                return None;
            }
        };
        match accepted {
            Ok(Ok(stream)) => return Some(stream),
            Ok(Err(error)) => tracing::debug!(%address, %error, "TLS handshake failed"),
            Err(_) => tracing::debug!(%address, "TLS handshake timed out"),
        }
        self.metrics.handshake_failed();
        None
    }

    async fn answer(
        self: Arc<Self>,
        connection: Arc<H::Connection>,
        address: SocketAddr,
        delivery: Arc<Delivery>,
        mut request: Request<Incoming>,
        switched: &Mutex<Option<OtherProtocol>>,
    ) -> Response<OutgoingBody> {
        let deadline = tokio::time::Instant::now() + self.limits.answer_timeout;
        let record = AccessRecord::begin(&request, address);
        request.extensions_mut().insert(record.id().clone());
        let origin = self.cross_origin.as_ref().and_then(|known| known.origin_of(request.headers()));
        let handler = Arc::clone(&self.handler);
        // Whether a page may ask is answered before anybody has to say who they are.
        let answered = match origin.is_some() && request.method() == Method::OPTIONS {
            true => Ok(cross_origin::preflight()),
            false => isolated(pin!(async move { handler.handle(connection, request).await })).await,
        };
        let mut response = answered.unwrap_or_else(|panic| {
            tracing::error!(
                id = record.id().as_str(),
                method = record.method().as_str(),
                path = record.path(),
                panic = panic_text(&*panic),
                "a request panicked"
            );
            panicked()
        });
        if let Some(origin) = origin {
            cross_origin::let_in(origin, response.headers_mut());
        }
        if let Some(directives) = &self.strict_transport_security {
            response.headers_mut().insert(STRICT_TRANSPORT_SECURITY, directives.value().clone());
        }
        if let Some(other) = OtherProtocol::of(&mut response, &delivery) {
            *switched.lock().unwrap_or_else(PoisonError::into_inner) = Some(other);
        }
        delivery.answer(record, response, deadline)
    }
}

/// What a connection goes on as when it is done with HTTP.
type Switched = Arc<Mutex<Option<OtherProtocol>>>;

/// What is spoken on a connection after HTTP.
enum OtherProtocol {
    WebSocket(WebSocketConnection),
    Tunnel(Box<TunnelConnection>),
}

impl OtherProtocol {
    /// What an answer says, whose body is for those who speak it.
    fn of(response: &mut Response<Body>, delivery: &Arc<Delivery>) -> Option<OtherProtocol> {
        let (web_socket, tunnel) = (response.extensions_mut().remove(), response.extensions_mut().remove());
        let (body, delivery) = (response.body_mut(), Arc::clone(delivery));
        if let Some(upgrade) = web_socket {
            let body = std::mem::take(body);
            return Some(OtherProtocol::WebSocket(WebSocketConnection { upgrade, body, delivery }));
        }
        let tunnel: TunnelUpgrade = tunnel?;
        let (body, way) = (std::mem::take(body), tunnel.take()?);
        let connection = TunnelConnection { upgrade: tunnel.upgrade, way, body, delivery };
        Some(OtherProtocol::Tunnel(Box::new(connection)))
    }
}

/// What becomes of a request.
enum Admission {
    Served,
    /// It is not looked at; the client may send it again.
    Refused,
    /// Its connection has no place.
    Leaves,
}

/// What is spoken on a connection, as far as its end is concerned.
enum Protocol {
    /// Hyper itself ends what is idle. Requests come one after the other, and an answer can only be broken off by closing
    /// the connection.
    Http1(Latest),
    Http2,
}

/// Sees to it that a connection ends when it should.
struct Attendant<'a> {
    guest: &'a Guest,
    standing: &'a Standing,
    drain: &'a Drain,
    limits: &'a Limits,
    cut_off: IntCounter,
}

impl Attendant<'_> {
    /// Lets a connection run, to its own end or to that of the server, or until it has to leave; `finish` tells it to end
    /// in good order.
    ///
    /// Takes it boxed, because a future that takes something by value has room for it twice.
    async fn drive<C: Future>(self, mut connection: Pin<Box<C>>, finish: impl Fn(Pin<&mut C>), protocol: Protocol) {
        let Attendant { guest, standing, drain, limits, cut_off } = self;
        let activity = &guest.activity;
        let mut closing = drain.wait(Phase::Closing);
        let mut aborting = drain.wait(Phase::Aborting);
        let mut silent = pin!(activity.silent_for(limits.first_request_timeout));
        let mut stays_unread = pin!(guest.unread.stays_for(limits.unread_timeout));
        let mut patience = Patience::new(limits.unread_timeout);
        let mut told_to_finish = false;
        loop {
            let idle_for_long = async {
                match protocol {
                    Protocol::Http2 => activity.idle_for(limits.idle_timeout).await,
                    Protocol::Http1(_) => std::future::pending().await,
                }
            };
            let unread = std::future::poll_fn(|cx| match &protocol {
                Protocol::Http1(latest) => latest.get().map_or(Poll::Pending, |latest| patience.poll(&latest, cx)),
                Protocol::Http2 => Poll::Pending,
            });
            tokio::select! {
                // In this order: what the connection has done is looked at below.
                biased;
                // Errors are the client's way of leaving: resets, timeouts, protocol errors.
                _ = connection.as_mut() => return,
                () = &mut closing, if !told_to_finish => {}
                () = &mut aborting => return,
                () = guest.told_to_leave() => return,
                () = &mut silent => return,
                () = unread => return cut_off.inc(),
                () = &mut stays_unread => return cut_off.inc(),
                () = standing.finishes(), if !told_to_finish => {}
                () = idle_for_long => {
                    if told_to_finish {
                        // It had its chance to leave in good order. A client that never said a word ends here.
                        return;
                    }
                }
            }
            finish(connection.as_mut());
            told_to_finish = true;
        }
    }
}

/// What `future` yields, or what it panicked with.
///
/// Takes it pinned, because a future that takes something by value has room for it twice, and that of a request is large.
async fn isolated<F: Future>(mut future: Pin<&mut F>) -> Result<F::Output, Box<dyn Any + Send>> {
    // After a panic the future is not polled again, and what it shared with others is behind locks that know of
    // poisoning, so no broken state can be observed.
    std::future::poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(poll) => poll.map(Ok),
        Err(panic) => Poll::Ready(Err(panic)),
    })
    .await
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("not a text")
}

fn panicked() -> Response<Body> {
    let mut response = Response::new(Body::from(PANICKED));
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn panics_become_values() {
        assert_eq!(isolated(pin!(async { 1 })).await.expect("no panic"), 1);
        let formatted: Result<(), _> = isolated(pin!(async { panic!("{} {}", "no", 1) })).await;
        assert_eq!(panic_text(&*formatted.expect_err("a panic")), "no 1");
        let plain: Result<(), _> = isolated(pin!(async { panic!("plain") })).await;
        assert_eq!(panic_text(&*plain.expect_err("a panic")), "plain");
    }
}
