//! [`Server`]: accepts connections, encrypts them, speaks HTTP/1.1 and HTTP/2 on them, hands every request to a
//! [`Handler`], and goes away in good order.
//!
//! Everything that a client could make large is bounded here: connections, time in a handshake, time until the first
//! request, idle time, headers, streams, buffers. What a request means is none of this file's business. `rooms` knows
//! all connections and who gives way to whom, `connection` drives one of them, `delivery` sees answers off, `gathered`
//! lets those of many streams leave together, `listener` owns the socket.

mod activity;
mod connection;
mod delivery;
mod gathered;
mod listener;
mod rooms;
mod standing;
mod stream_task;
mod tunnel_connection;
mod web_socket_connection;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use revisor_auth::ServerTls;
use rustls_pki_types::CertificateDer;

use crate::body::Body;
use crate::cross_origin::CrossOrigin;
use crate::drain::{Drain, Phase};
use crate::metrics::Metrics;
use crate::strict_transport_security::StrictTransportSecurity;
use connection::ConnectionServer;
pub(crate) use delivery::PIECE;
use listener::Listener;
use rooms::Rooms;
pub use standing::Standing;

/// How long cut-off connections get to notice that they were cut off.
const ABORT_GRACE: Duration = Duration::from_secs(1);

/// How long the two sides of a tunnel get to notice that it is over.
const FAREWELL: Duration = Duration::from_secs(1);

/// Answers requests.
pub trait Handler: Send + Sync + 'static {
    /// What is known about a connection, computed once and shared by its requests.
    type Connection: Send + Sync + 'static;

    /// Called once per connection, after its handshake. `certificates` are those that the client presented, its own
    /// first; whether they are worth anything was for the TLS configuration to decide. `standing` is where to say what
    /// requests show of the client.
    fn connected(
        &self,
        address: SocketAddr,
        certificates: &[CertificateDer<'static>],
        standing: Arc<Standing>,
    ) -> Self::Connection;

    /// Answers one request. The request's extensions hold its [`crate::RequestId`].
    ///
    /// The future is dropped when the client goes away: what must not be left half done does not belong in it. A
    /// panic ends this request only.
    ///
    /// A long-running answer should copy what it keeps of the request: headers and path are pieces of the buffer
    /// that they were read into, and keep all of it alive.
    fn handle(
        self: Arc<Self>,
        connection: Arc<Self::Connection>,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<Body>> + Send + 'static;
}

/// What a server needs to know before it can listen.
pub struct ServerOptions {
    /// Where to listen. Port 0 takes any free port, see [`Server::address`].
    pub address: SocketAddr,
    /// The certificate to show, what to ask of clients, and the protocols to offer them. Asked anew for each connection.
    pub tls: ServerTls,
    /// What browsers are told about how to come back, with every answer.
    pub strict_transport_security: Option<StrictTransportSecurity>,
    /// The other sites whose pages may ask, if there are any.
    pub cross_origin: Option<CrossOrigin>,
    /// How likely a request over HTTP/2 is told that its connection ends, so that its client comes back through whatever
    /// shares connections out among servers.
    pub goaway_chance: f64,
    /// Where failures are counted.
    pub metrics: Arc<Metrics>,
    /// How long to go on serving after the request to stop, with readiness failing.
    pub shutdown_delay: Duration,
    /// The bounds.
    pub limits: Limits,
}

/// What a server allows its clients, taken together and one by one.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections at once on which a request has come. For one more, an idle one is closed, or else one of the
    /// address that has most of them; or else it is not served.
    pub connections: u32,
    /// Connections at once on which no request has come yet. For one more, the oldest is closed of the address that
    /// has most of them.
    pub newcomers: u32,
    /// Time for a handshake.
    pub handshake_timeout: Duration,
    /// Time from the handshake until the head of the first request is complete; the original's.
    pub first_request_timeout: Duration,
    /// Time without a request after which a connection is closed, and time for the head of a later request to arrive.
    /// Longer than the 90 seconds after which common clients drop idle connections themselves: if the server were
    /// first, it could close a connection on which a request is just being sent.
    pub idle_timeout: Duration,
    /// Time between signs of life that are asked of an HTTP/2 client, and time to give one.
    pub ping_interval: Duration,
    /// Bytes in a request's head.
    pub head_bytes: u32,
    /// Requests at once on one HTTP/2 connection.
    pub streams: u32,
    /// The same as long as none of them has shown who the client is. Further ones are refused without being looked at,
    /// and after as many of those as there may be streams the connection is closed.
    pub unauthenticated_streams: u32,
    /// Streams that a client may reset before they were looked at, and streams that the server may have to reset
    /// because of what the client sends. Past either the connection is closed.
    pub reset_streams: usize,
    /// Time for a client to take the next piece (128 KiB) of an answer. Otherwise the answer is broken off.
    pub unread_timeout: Duration,
    /// Time from a request to the last byte of its answer, unless that is long-running.
    pub answer_timeout: Duration,
    /// Time that requests get to finish after the server stopped accepting.
    pub drain_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 10_000,
            newcomers: 1_000,
            handshake_timeout: Duration::from_secs(10),
            first_request_timeout: Duration::from_secs(32),
            idle_timeout: Duration::from_secs(120),
            ping_interval: Duration::from_secs(30),
            head_bytes: 64 * 1024,
            streams: 1_000,
            unauthenticated_streams: 100,
            reset_streams: 100,
            unread_timeout: Duration::from_secs(30),
            answer_timeout: Duration::from_secs(60),
            drain_timeout: Duration::from_secs(60),
        }
    }
}

/// How a server's end went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// Connections that had to be cut off because they did not finish in time.
    pub cut_off: usize,
}

/// A server that listens. Connections wait until [`Server::run`].
pub struct Server {
    options: ServerOptions,
    listener: Listener,
    address: SocketAddr,
    drain: Drain,
}

impl Server {
    /// Listens. Must be called within a tokio runtime.
    pub fn bind(options: ServerOptions) -> io::Result<Server> {
        let listener = Listener::bind(options.address)?;
        let address = listener.address()?;
        Ok(Server { options, listener, address, drain: Drain::new() })
    }

    /// Where the server listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A view of the server's way out, for health checks and for watches.
    pub fn drain(&self) -> Drain {
        self.drain.clone()
    }

    /// Serves until `shutdown` completes, and then until everything under way has ended or had its time.
    ///
    /// First readiness fails, for the shutdown delay, while everything is still served. Then nothing more is
    /// accepted, connections are told to finish, and watches end. What is left after the drain timeout is cut off.
    pub async fn run<H: Handler>(self, handler: Arc<H>, shutdown: impl Future<Output = ()>) -> Drained {
        let Server { options, mut listener, drain, .. } = self;
        let rooms = Rooms::new(options.limits.newcomers, options.limits.connections, &options.metrics);
        let server = Arc::new(ConnectionServer::new(&options, handler, drain.clone()));

        let accepting = async {
            loop {
                let (stream, address) = listener.accept(|| rooms.relieve()).await;
                let stay = rooms.enter(address);
                tokio::spawn(Arc::clone(&server).serve(stream, address, stay));
            }
        };
        let leaving = async {
            shutdown.await;
            tracing::info!(delay = ?options.shutdown_delay, "shutting down, not ready any more");
            drain.advance(Phase::Draining);
            tokio::time::sleep(options.shutdown_delay).await;
        };
        tokio::select! {
            () = accepting => {}
            () = leaving => {}
        }
        // Refuses newcomers from here on: with the listener closed, the kernel does.
        drop(listener);
        drain.advance(Phase::Closing);

        if tokio::time::timeout(options.limits.drain_timeout, rooms.emptied()).await.is_ok() {
            tracing::info!("shut down, everything has ended");
            return Drained { cut_off: 0 };
        }
        let cut_off = rooms.present();
        tracing::warn!(cut_off, "shut down, some connections did not end in time and are cut off");
        drain.advance(Phase::Aborting);
        // Nothing depends on this wait; it lets sockets close before the process does.
        let _ = tokio::time::timeout(ABORT_GRACE, rooms.emptied()).await;
        Drained { cut_off }
    }
}
