//! One connection: its handshake, its protocol, its requests, its end.

use std::any::Any;
use std::convert::Infallible;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use http::header::{CONTENT_TYPE, STRICT_TRANSPORT_SECURITY};
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulConnection;
use revisor_auth::ServerTls;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::{Handler, ServerOptions};
use crate::access_log::AccessRecord;
use crate::body::Body;
use crate::drain::{Drain, Phase};
use crate::metrics::Metrics;
use crate::strict_transport_security::StrictTransportSecurity;

/// The most that is buffered for writing, per HTTP/1.1 connection and per HTTP/2 stream: what a client that does not
/// read can make the server hold. Four TLS records.
const WRITE_BUFFER: usize = 64 * 1024;

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
    http1: http1::Builder,
    http2: http2::Builder<TokioExecutor>,
    handshake_timeout: Duration,
    idle_timeout: Duration,
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
        let mut http2 = http2::Builder::new(TokioExecutor::new());
        http2
            .timer(TokioTimer::new())
            .max_concurrent_streams(limits.streams)
            .max_header_list_size(limits.head_bytes)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buf_size(WRITE_BUFFER)
            .keep_alive_interval(limits.ping_interval)
            .keep_alive_timeout(limits.ping_interval);
        ConnectionServer {
            handler,
            tls: options.tls.clone(),
            strict_transport_security: options.strict_transport_security.clone(),
            http1,
            http2,
            handshake_timeout: limits.handshake_timeout,
            idle_timeout: limits.idle_timeout,
            metrics: Arc::clone(&options.metrics),
            drain,
        }
    }

    /// From the handshake, during which `handshake` is held, to the end.
    pub(super) async fn serve(
        self: Arc<Self>,
        stream: TcpStream,
        address: SocketAddr,
        handshake: OwnedSemaphorePermit,
    ) {
        // Boxed, so that what a handshake needs is given back before the connection's long life begins.
        let Some(stream) = Box::pin(self.handshake(stream, address)).await else { return };
        drop(handshake);
        let (_, tls) = stream.get_ref();
        // As in the original, HTTP/2 is spoken only where it was agreed on. Guessing from the first bytes would mean
        // to wait for them without a limit.
        let speaks_http2 = tls.alpn_protocol() == Some(b"h2");
        let certificates = tls.peer_certificates().unwrap_or_default();
        let connection = Arc::new(self.handler.connected(address, certificates));
        let activity = Arc::new(Activity::default());
        let service = service_fn({
            let server = Arc::clone(&self);
            let activity = Arc::clone(&activity);
            move |request| {
                let (server, connection) = (Arc::clone(&server), Arc::clone(&connection));
                // Boxed, so that a stream costs what its body costs once it is answered: watches are many, and last.
                Box::pin(server.answer(connection, address, activity.begin(), request))
            }
        });
        let io = TokioIo::new(stream);
        let drain = &self.drain;
        if speaks_http2 {
            let idle = Some((&*activity, self.idle_timeout));
            drive(Box::pin(self.http2.serve_connection(io, service)), drain, idle).await;
        } else {
            drive(Box::pin(self.http1.serve_connection(io, service)), drain, None).await;
        }
    }

    async fn handshake(&self, stream: TcpStream, address: SocketAddr) -> Option<TlsStream<TcpStream>> {
        // Which certificate is shown may depend on where the client came in.
        let local = stream.local_addr().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |local| local.ip());
        let acceptor = TlsAcceptor::from(self.tls.config(local));
        let accepted = tokio::time::timeout(self.handshake_timeout, acceptor.accept(stream));
        // A client that has not even shaken hands has nothing under way that would be worth finishing.
        let accepted = tokio::select! {
            accepted = accepted => accepted,
            () = self.drain.wait(Phase::Closing) => return None,
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
        running: Running,
        mut request: Request<Incoming>,
    ) -> Result<Response<Body>, Infallible> {
        let record = AccessRecord::begin(&request, address);
        request.extensions_mut().insert(record.id().clone());
        let handler = Arc::clone(&self.handler);
        let answered = isolated(async move { handler.handle(connection, request).await }).await;
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
        if let Some(directives) = &self.strict_transport_security {
            response.headers_mut().insert(STRICT_TRANSPORT_SECURITY, directives.value().clone());
        }
        Ok(record.finish(response, running))
    }
}

/// Lets a connection run, to its own end or to that of the server. An `idle` one is closed.
///
/// Takes it boxed, because a future that takes something by value has room for it twice.
async fn drive<C: GracefulConnection>(mut connection: Pin<Box<C>>, drain: &Drain, idle: Option<(&Activity, Duration)>) {
    let mut closing = drain.wait(Phase::Closing);
    let mut aborting = drain.wait(Phase::Aborting);
    let mut told_to_finish = false;
    loop {
        let idle_for_long = async {
            match idle {
                Some((activity, timeout)) => activity.idle_for(timeout).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // Errors are the client's way of leaving: resets, timeouts, protocol errors.
            _ = connection.as_mut() => return,
            () = &mut closing, if !told_to_finish => {}
            () = &mut aborting => return,
            () = idle_for_long => {
                if told_to_finish {
                    // It had its chance to leave in good order. A client that never said a word ends here.
                    return;
                }
            }
        }
        connection.as_mut().graceful_shutdown();
        told_to_finish = true;
    }
}

/// What happens on a connection, as far as idleness is concerned.
#[derive(Default)]
struct Activity {
    running: AtomicUsize,
    begun: AtomicU64,
}

impl Activity {
    fn begin(self: &Arc<Self>) -> Running {
        self.running.fetch_add(1, Ordering::Relaxed);
        self.begun.fetch_add(1, Ordering::Relaxed);
        Running(Arc::clone(self))
    }

    /// Completes when no request ran during a whole `period`.
    async fn idle_for(&self, period: Duration) {
        loop {
            let before = self.begun.load(Ordering::Relaxed);
            let idle_before = self.running.load(Ordering::Relaxed) == 0;
            tokio::time::sleep(period).await;
            if idle_before && self.begun.load(Ordering::Relaxed) == before {
                return;
            }
        }
    }
}

/// A request that is being answered, up to the last byte of its body.
struct Running(Arc<Activity>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What `future` yields, or what it panicked with.
async fn isolated<F: Future>(future: F) -> Result<F::Output, Box<dyn Any + Send>> {
    let mut future = pin!(future);
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
        assert_eq!(isolated(async { 1 }).await.expect("no panic"), 1);
        let formatted: Result<(), _> = isolated(async { panic!("{} {}", "no", 1) }).await;
        assert_eq!(panic_text(&*formatted.expect_err("a panic")), "no 1");
        let plain: Result<(), _> = isolated(async { panic!("plain") }).await;
        assert_eq!(panic_text(&*plain.expect_err("a panic")), "plain");
    }

    #[tokio::test(start_paused = true)]
    async fn idleness_needs_a_whole_period_without_requests() {
        let activity = Arc::new(Activity::default());
        let period = Duration::from_secs(10);
        let started = tokio::time::Instant::now();
        let running = activity.begin();
        let busy = async {
            tokio::time::sleep(Duration::from_secs(25)).await;
            drop(running);
        };
        let ((), ()) = tokio::join!(activity.idle_for(period), busy);
        // The period from 20 to 30 began busy; the one from 30 to 40 was idle.
        assert_eq!(started.elapsed(), Duration::from_secs(40));
    }
}
