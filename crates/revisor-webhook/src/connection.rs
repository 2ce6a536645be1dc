//! [`Connection`]: one connection to a webhook, or to whom requests are passed on, from dialling to the sending of
//! requests.
//!
//! Made by hand of hyper's parts rather than by hyper-util's client: what fails at which step is what clients are told,
//! and that client hides the steps.
//!
//! A connection of HTTP/1.1 to a webhook has no task: a call is one question and one answer, and whoever waits for the
//! answer [carries](Carrier) the bytes. Two tasks would wake each other, often on two threads, which costs more than what
//! they have to say.

use std::fmt;
use std::future::{Future, poll_fn};
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Method, Request, Response, Uri, Version, header};
use http_body_util::Full;
use hyper::body::{Body as HttpBody, Incoming};
use hyper::client::conn::{TrySendError, http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::NetError;
use crate::call_error::Ends;
use crate::stream::{Overheard, Unceremonious};

/// How long a handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// How many addresses of one name are tried.
const MAX_ADDRESSES: usize = 8;

/// What is sent to a webhook: one body in one piece.
type Whole = Full<Bytes>;

/// A connection that can carry requests with bodies of one type. To drop it is to close it, once nothing is under way on
/// it.
#[derive(Debug)]
pub struct Connection<B = Whole> {
    sender: Sender<B>,
    pub(crate) ends: Ends,
    carrier: Option<Carrier>,
}

/// Who carries the bytes of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carriage {
    /// A task, so that bodies can be sent and read by anybody, whenever they like.
    Task,
    /// Whoever waits for an answer, where the connection has one question at a time.
    Asker,
}

/// What has to be polled for the bytes of a connection to go to and fro. Nothing is left when the connection has ended.
struct Carrier(Option<Pin<Box<dyn Future<Output = ()> + Send>>>);

impl Carrier {
    fn poll(&mut self, context: &mut Context<'_>) {
        if self.0.as_mut().is_some_and(|connection| connection.as_mut().poll(context).is_ready()) {
            self.0 = None;
        }
    }

    /// Waits for something that comes by the connection.
    async fn carry<T>(carrier: &mut Option<Carrier>, awaited: impl Future<Output = T>) -> T {
        let Some(carrier) = carrier else { return awaited.await };
        let mut awaited = pin!(awaited);
        poll_fn(|context| match awaited.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(done),
            // What it has just asked for is sent, and what is there already is handed to it.
            Poll::Pending => {
                carrier.poll(context);
                awaited.as_mut().poll(context)
            }
        })
        .await
    }
}

impl fmt::Debug for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Carrier").field("is_open", &self.0.is_some()).finish()
    }
}

#[derive(Debug)]
enum Sender<B> {
    Http1(http1::SendRequest<B>),
    Http2(http2::SendRequest<B>),
}

/// A request that was not answered.
#[derive(Debug)]
pub struct Unanswered<B = Whole> {
    /// Why.
    pub error: NetError,
    /// The request, if nothing of it was sent, so that it can be sent again without being done twice.
    pub unsent: Option<Request<B>>,
}

/// How somebody is spoken to in private: whom to take them for, and what to do about it.
#[derive(Debug, Clone)]
pub struct Privacy {
    /// Whom they have to be.
    pub server_name: ServerName<'static>,
    /// The client's side of TLS.
    pub tls: Arc<rustls::ClientConfig>,
}

/// A request that can be sent more than once.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    pub(crate) host: HeaderValue,
    pub(crate) path_and_query: PathAndQuery,
    pub(crate) user_agent: HeaderValue,
    pub(crate) authorization: Option<HeaderValue>,
    /// What is posted; nothing if something is to be got.
    pub(crate) body: Option<Bytes>,
}

impl<B> Connection<B>
where
    B: HttpBody<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + Unpin + 'static,
{
    /// Dials, shakes hands, and agrees on a version of HTTP; without TLS it is 1.1.
    pub async fn open(host: &str, port: u16, privacy: Option<&Privacy>) -> Result<Connection<B>, NetError> {
        Connection::open_carried(host, port, privacy, Carriage::Task).await
    }

    /// The same; HTTP/1.1 is carried in this way.
    pub(crate) async fn open_carried(
        host: &str,
        port: u16,
        privacy: Option<&Privacy>,
        carriage: Carriage,
    ) -> Result<Connection<B>, NetError> {
        let stream = dial(host, port).await?;
        let remote = stream.peer_addr().map_err(|_| NetError::Eof)?;
        let local = stream.local_addr().map_err(|_| NetError::Eof)?;
        let ends = Ends { local, remote };
        // Requests are written whole; to hold back their last packet only delays the answer.
        stream.set_nodelay(true).map_err(|error| NetError::transferring(ends, &error))?;
        let Some(Privacy { server_name, tls }) = privacy else {
            return Connection::speak(stream, ends, carriage).await;
        };

        let connector = TlsConnector::from(tls.clone());
        let handshake = connector.connect(server_name.clone(), Overheard::new(stream)).into_fallible();
        let stream = match tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake).await {
            Ok(Ok(stream)) => stream,
            Ok(Err((_, stream))) if stream.beginning() == b"HTTP/" => return Err(NetError::PlainHttp),
            Ok(Err((error, _))) => return Err(NetError::transferring(ends, &error)),
            Err(_) => return Err(NetError::HandshakeTimeout),
        };
        if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
            return Connection::speak(Unceremonious(stream), ends, carriage).await;
        }
        let io = TokioIo::new(Unceremonious(stream));
        let (sender, connection) =
            http2::handshake(TokioExecutor::new(), io).await.map_err(|error| NetError::asking(ends, &error))?;
        tokio::spawn(connection);
        Ok(Connection { sender: Sender::Http2(sender), ends, carrier: None })
    }

    /// Speaks HTTP/1.1 on a stream.
    async fn speak(
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        ends: Ends,
        carriage: Carriage,
    ) -> Result<Connection<B>, NetError> {
        // Names in headers mean the same in any case, but not to all who wrote webhooks.
        let handshake = http1::Builder::new().title_case_headers(true).handshake(TokioIo::new(stream)).await;
        let (sender, connection) = handshake.map_err(|error| NetError::asking(ends, &error))?;
        // It ends when the sender is dropped or the other side hangs up; what it has to say, the requests that it concerns
        // are told too.
        let carrier = match carriage {
            Carriage::Task => {
                tokio::spawn(connection.with_upgrades());
                None
            }
            Carriage::Asker => Some(Carrier(Some(Box::pin(async { drop(connection.await) })))),
        };
        Ok(Connection { sender: Sender::Http1(sender), ends, carrier })
    }

    /// The same connection once more, where it can carry several requests at a time.
    pub(crate) fn share(&self) -> Option<Connection<B>> {
        match &self.sender {
            Sender::Http1(_) => None,
            Sender::Http2(sender) => {
                Some(Connection { sender: Sender::Http2(sender.clone()), ends: self.ends, carrier: None })
            }
        }
    }

    /// Whether the other side has hung up, also if nobody else is there to notice it.
    pub(crate) fn has_ended(&mut self) -> bool {
        if let Some(carrier) = &mut self.carrier {
            carrier.poll(&mut Context::from_waker(Waker::noop()));
        }
        self.is_closed()
    }

    /// Whether the other side has hung up.
    pub fn is_closed(&self) -> bool {
        match &self.sender {
            Sender::Http1(sender) => sender.is_closed(),
            Sender::Http2(sender) => sender.is_closed(),
        }
    }

    /// Which version of HTTP is spoken.
    pub(crate) fn version(&self) -> Version {
        match &self.sender {
            Sender::Http1(_) => Version::HTTP_11,
            Sender::Http2(_) => Version::HTTP_2,
        }
    }

    /// Sends a request, which has to be one for the version that is spoken, and waits for the head of its answer.
    pub async fn send(&mut self, request: Request<B>) -> Result<Response<Incoming>, Unanswered<B>> {
        let ends = self.ends;
        let fail = |mut failure: TrySendError<Request<B>>| {
            let unsent = failure.take_message();
            Unanswered { error: NetError::asking(ends, failure.error()), unsent }
        };
        let Connection { sender, carrier, .. } = self;
        let sending = async {
            let ready = match sender {
                Sender::Http1(sender) => sender.ready().await,
                Sender::Http2(sender) => sender.ready().await,
            };
            if let Err(error) = ready {
                return Err(Unanswered { error: NetError::asking(ends, &error), unsent: Some(request) });
            }
            match sender {
                Sender::Http1(sender) => sender.try_send_request(request).await.map_err(fail),
                Sender::Http2(sender) => sender.try_send_request(request).await.map_err(fail),
            }
        };
        Carrier::carry(carrier, sending).await
    }

    /// Waits for something that comes by this connection: the body of an answer.
    pub(crate) async fn receive<T>(&mut self, awaited: impl Future<Output = T>) -> T {
        Carrier::carry(&mut self.carrier, awaited).await
    }

    /// What it means that an answer on this connection broke off.
    pub fn broken(&self, error: &hyper::Error) -> NetError {
        NetError::reading(self.ends, error)
    }
}

impl Connection {
    /// Sends a call and waits for the head of its answer.
    pub(crate) async fn ask(&mut self, outgoing: &Outgoing) -> Result<Response<Incoming>, Unanswered> {
        match outgoing.request(self.version()) {
            Ok(request) => self.send(request).await,
            Err(error) => Err(Unanswered { error, unsent: None }),
        }
    }
}

impl Outgoing {
    fn request(&self, version: Version) -> Result<Request<Whole>, NetError> {
        let refuse = |error: http::Error| NetError::Protocol(error.to_string());
        let mut uri = Uri::builder().path_and_query(self.path_and_query.clone());
        let mut request = Request::builder();
        if version == Version::HTTP_2 {
            let authority = Authority::try_from(self.host.as_bytes()).map_err(|error| refuse(error.into()))?;
            uri = uri.scheme(Scheme::HTTPS).authority(authority);
        } else {
            request = request.header(header::HOST, &self.host);
        }
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let method = if self.body.is_some() { Method::POST } else { Method::GET };
        if self.body.is_some() {
            request = request.header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        request
            .method(method)
            .uri(uri.build().map_err(refuse)?)
            .version(version)
            .header(header::USER_AGENT, &self.user_agent)
            .header(header::ACCEPT, HeaderValue::from_static("application/json, */*"))
            .body(Full::new(self.body.clone().unwrap_or_default()))
            .map_err(refuse)
    }
}

/// Connects to the first address of `host` that lets itself be connected to. The error is that of the first.
async fn dial(host: &str, port: u16) -> Result<TcpStream, NetError> {
    let addresses: Vec<SocketAddr> = match host.parse::<IpAddr>() {
        Ok(address) => vec![SocketAddr::new(address, port)],
        Err(_) => match tokio::net::lookup_host((host, port)).await {
            Ok(addresses) => addresses.take(MAX_ADDRESSES).collect(),
            Err(_) => Vec::new(),
        },
    };
    let mut first = None;
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => drop(first.get_or_insert_with(|| NetError::connecting(address, &error))),
        }
    }
    Err(first.unwrap_or_else(|| NetError::NoSuchHost(host.to_owned())))
}
