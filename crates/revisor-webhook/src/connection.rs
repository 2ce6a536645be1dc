//! [`Connection`]: one connection to a webhook, from dialling to the sending of requests.
//!
//! Made by hand of hyper's parts rather than by hyper-util's client: what fails at which step is what clients are told,
//! and that client hides the steps.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Method, Request, Response, Uri, Version, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::NetError;
use crate::call_error::Ends;
use crate::stream::{Overheard, Unceremonious};

/// How long a handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// How many addresses of one name are tried.
const MAX_ADDRESSES: usize = 8;

/// What is sent: one body in one piece.
pub(crate) type Body = Full<Bytes>;

/// A connection that can carry requests. To drop it is to close it, once nothing is under way on it.
#[derive(Debug)]
pub(crate) struct Connection {
    sender: Sender,
    pub(crate) ends: Ends,
}

#[derive(Debug)]
enum Sender {
    Http1(http1::SendRequest<Body>),
    Http2(http2::SendRequest<Body>),
}

/// A request that was not answered.
pub(crate) struct Unanswered {
    pub(crate) error: NetError,
    /// Whether nothing of it was sent, so that it can be sent again without being done twice.
    pub(crate) unsent: bool,
}

/// A request that can be sent more than once.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    pub(crate) authority: String,
    pub(crate) path_and_query: String,
    pub(crate) user_agent: HeaderValue,
    pub(crate) authorization: Option<HeaderValue>,
    /// What is posted; nothing if something is to be got.
    pub(crate) body: Option<Bytes>,
}

impl Connection {
    /// Dials, shakes hands, and agrees on a version of HTTP.
    pub(crate) async fn open(
        host: &str,
        port: u16,
        server_name: &ServerName<'static>,
        tls: Arc<rustls::ClientConfig>,
    ) -> Result<Connection, NetError> {
        let stream = dial(host, port).await?;
        let remote = stream.peer_addr().map_err(|_| NetError::Eof)?;
        let local = stream.local_addr().map_err(|_| NetError::Eof)?;
        let ends = Ends { local, remote };
        // Requests are written whole; to hold back their last packet only delays the answer.
        stream.set_nodelay(true).map_err(|error| NetError::transferring(ends, &error))?;

        let handshake = TlsConnector::from(tls).connect(server_name.clone(), Overheard::new(stream)).into_fallible();
        let stream = match tokio::time::timeout(HANDSHAKE_TIMEOUT, handshake).await {
            Ok(Ok(stream)) => stream,
            Ok(Err((_, stream))) if stream.beginning() == b"HTTP/" => return Err(NetError::PlainHttp),
            Ok(Err((error, _))) => return Err(NetError::transferring(ends, &error)),
            Err(_) => return Err(NetError::HandshakeTimeout),
        };
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let io = TokioIo::new(Unceremonious(stream));
        // The tasks end when the sender is dropped or the other side hangs up; what they have to say, the requests that
        // it concerns are told too.
        let sender = if is_http2 {
            let (sender, connection) =
                http2::handshake(TokioExecutor::new(), io).await.map_err(|error| NetError::asking(ends, &error))?;
            tokio::spawn(connection);
            Sender::Http2(sender)
        } else {
            // Names in headers mean the same in any case, but not to all who wrote webhooks.
            let handshake = http1::Builder::new().title_case_headers(true).handshake(io).await;
            let (sender, connection) = handshake.map_err(|error| NetError::asking(ends, &error))?;
            tokio::spawn(connection);
            Sender::Http1(sender)
        };
        Ok(Connection { sender, ends })
    }

    /// The same connection once more, where it can carry several requests at a time.
    pub(crate) fn share(&self) -> Option<Connection> {
        match &self.sender {
            Sender::Http1(_) => None,
            Sender::Http2(sender) => Some(Connection { sender: Sender::Http2(sender.clone()), ends: self.ends }),
        }
    }

    /// Whether the other side has hung up.
    pub(crate) fn is_closed(&self) -> bool {
        match &self.sender {
            Sender::Http1(sender) => sender.is_closed(),
            Sender::Http2(sender) => sender.is_closed(),
        }
    }

    /// Sends a request and waits for the head of its answer.
    pub(crate) async fn ask(&mut self, outgoing: &Outgoing) -> Result<Response<Incoming>, Unanswered> {
        let ends = self.ends;
        let unsent = |error: NetError| Unanswered { error, unsent: true };
        let fail = |mut failure: TrySendError<Request<Body>>| {
            let unsent = failure.take_message().is_some();
            Unanswered { error: NetError::asking(ends, failure.error()), unsent }
        };
        match &mut self.sender {
            Sender::Http1(sender) => {
                let request = outgoing.request(Version::HTTP_11).map_err(unsent)?;
                sender.ready().await.map_err(|error| unsent(NetError::asking(ends, &error)))?;
                sender.try_send_request(request).await.map_err(fail)
            }
            Sender::Http2(sender) => {
                let request = outgoing.request(Version::HTTP_2).map_err(unsent)?;
                sender.ready().await.map_err(|error| unsent(NetError::asking(ends, &error)))?;
                sender.try_send_request(request).await.map_err(fail)
            }
        }
    }
}

impl Outgoing {
    fn request(&self, version: Version) -> Result<Request<Body>, NetError> {
        let refuse = |error: http::Error| NetError::Protocol(error.to_string());
        let path = PathAndQuery::try_from(self.path_and_query.as_str()).map_err(|error| refuse(error.into()))?;
        let mut uri = Uri::builder().path_and_query(path);
        let mut request = Request::builder();
        if version == Version::HTTP_2 {
            let authority = Authority::try_from(self.authority.as_str()).map_err(|error| refuse(error.into()))?;
            uri = uri.scheme(Scheme::HTTPS).authority(authority);
        } else {
            request = request.header(header::HOST, &self.authority);
        }
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let method = if self.body.is_some() { Method::POST } else { Method::GET };
        if self.body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        request
            .method(method)
            .uri(uri.build().map_err(refuse)?)
            .version(version)
            .header(header::USER_AGENT, &self.user_agent)
            .header(header::ACCEPT, "application/json, */*")
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
