//! A server with a handler that has one path per thing to be tested, and clients for it.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use revisor_api::{
    Body, ByteSource, Drain, Drained, Handler, HealthChecks, Limits, LongRunning, MAX_REQUEST_BODY, Metrics,
    RequestBodyError, RequestId, Server, ServerOptions, Standing, WatchEnd, accepts_gzip, maybe_compress, read_body,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Fails a test that waits for something that does not come.
#[track_caller]
pub(crate) fn within<F: Future>(future: F) -> impl Future<Output = F::Output> {
    let caller = std::panic::Location::caller();
    async move {
        let deadline = Duration::from_secs(20);
        tokio::time::timeout(deadline, future).await.unwrap_or_else(|_| panic!("nothing came within time at {caller}"))
    }
}

pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) handler: Arc<TestHandler>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) drain: Drain,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<Drained>,
    pki: Pki,
}

impl TestServer {
    pub(crate) fn start() -> TestServer {
        TestServer::with(Limits::default(), Duration::ZERO)
    }

    pub(crate) fn with(limits: Limits, shutdown_delay: Duration) -> TestServer {
        let pki = Pki::new();
        let metrics = Arc::new(Metrics::new(Vec::new));
        let server = Server::bind(ServerOptions {
            address: ([127, 0, 0, 1], 0).into(),
            tls: pki.server_config().into(),
            strict_transport_security: None,
            cross_origin: None,
            goaway_chance: 0.0,
            metrics: Arc::clone(&metrics),
            shutdown_delay,
            limits,
        })
        .expect("a free port");
        let (address, drain) = (server.address(), server.drain());
        let handler = Arc::new(TestHandler {
            drain: drain.clone(),
            health: HealthChecks::new(drain.clone(), Vec::new()),
            connected: AtomicUsize::new(0),
            gate: Arc::new(Notify::new()),
            arrived: Arc::new(Notify::new()),
            streams: Arc::new(Mutex::new(0)),
            stream_dropped: Arc::new(Notify::new()),
        });
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(server.run(Arc::clone(&handler), async {
            let _ = stopped.await;
        }));
        TestServer { address, handler, metrics, drain, stop: Some(stop), running, pki }
    }

    /// Asks the server to stop, without waiting.
    pub(crate) fn stop(&mut self) {
        let stop = self.stop.take().expect("stopped once");
        stop.send(()).expect("the server listens for it");
    }

    pub(crate) async fn stopped(self) -> Drained {
        within(self.running).await.expect("the server does not panic")
    }

    /// An encrypted connection on which nothing was said yet.
    pub(crate) async fn tls(&self, protocols: &[&str], identify: bool) -> TlsStream<TcpStream> {
        let connector = TlsConnector::from(self.pki.client_config(protocols, identify));
        let stream = within(TcpStream::connect(self.address)).await.expect("the server listens");
        let name = ServerName::try_from("localhost").expect("a name");
        within(connector.connect(name, stream)).await.expect("a handshake")
    }

    pub(crate) async fn http1(&self) -> Client {
        let io = TokioIo::new(self.tls(&["http/1.1"], false).await);
        let (sender, connection) = within(http1::handshake(io)).await.expect("HTTP/1.1");
        Client { sender: Sender::Http1(sender), connection: tokio::spawn(connection) }
    }

    pub(crate) async fn http2(&self) -> Client {
        let io = TokioIo::new(self.tls(&["h2"], false).await);
        let (sender, connection) = within(http2::handshake(TokioExecutor::new(), io)).await.expect("HTTP/2");
        Client { sender: Sender::Http2(sender), connection: tokio::spawn(connection) }
    }

    /// One client per protocol.
    pub(crate) async fn clients(&self) -> [(&'static str, Client); 2] {
        [("HTTP/1.1", self.http1().await), ("HTTP/2", self.http2().await)]
    }
}

enum Sender {
    Http1(http1::SendRequest<BoxBody<Bytes, std::io::Error>>),
    Http2(http2::SendRequest<BoxBody<Bytes, std::io::Error>>),
}

pub(crate) struct Client {
    sender: Sender,
    /// Ends when the connection does.
    pub(crate) connection: JoinHandle<hyper::Result<()>>,
}

impl Client {
    pub(crate) async fn try_send(
        &mut self,
        request: Request<BoxBody<Bytes, std::io::Error>>,
    ) -> hyper::Result<Response<Incoming>> {
        match &mut self.sender {
            Sender::Http1(sender) => {
                within(sender.ready()).await?;
                within(sender.send_request(request)).await
            }
            Sender::Http2(sender) => {
                within(sender.ready()).await?;
                within(sender.send_request(request)).await
            }
        }
    }

    pub(crate) async fn get(&mut self, path: &str) -> Response<Incoming> {
        self.try_send(get(path)).await.expect("an answer")
    }

    /// Status and text of the answer to a GET.
    pub(crate) async fn text(&mut self, path: &str) -> (StatusCode, String) {
        text(self.get(path).await).await
    }
}

pub(crate) fn get(path: &str) -> Request<BoxBody<Bytes, std::io::Error>> {
    let body = Empty::new().map_err(|never| match never {}).boxed();
    Request::builder().uri(format!("https://localhost{path}")).header("host", "localhost").body(body).expect("valid")
}

pub(crate) fn post(path: &str, body: impl Into<Bytes>) -> Request<BoxBody<Bytes, std::io::Error>> {
    let mut request = get(path);
    *request.method_mut() = http::Method::POST;
    request.map(|_| Full::new(body.into()).map_err(|never| match never {}).boxed())
}

pub(crate) async fn text(response: Response<Incoming>) -> (StatusCode, String) {
    let status = response.status();
    let bytes = within(response.into_body().collect()).await.expect("a whole body").to_bytes();
    (status, String::from_utf8(bytes.to_vec()).expect("text"))
}

/// The next chunk of a streamed answer, or nothing at its end. HTTP/2 may end with an empty frame.
pub(crate) async fn chunk(response: &mut Response<Incoming>) -> Option<Bytes> {
    loop {
        let frame = within(response.body_mut().frame()).await?;
        let bytes = frame.expect("the stream does not break").into_data().expect("data");
        if !bytes.is_empty() {
            return Some(bytes);
        }
    }
}

pub(crate) struct TestHandler {
    drain: Drain,
    health: HealthChecks,
    pub(crate) connected: AtomicUsize,
    /// `/gated` answers when this is notified.
    pub(crate) gate: Arc<Notify>,
    /// Notified when a request for `/gated` has come.
    pub(crate) arrived: Arc<Notify>,
    /// How many streams were dropped.
    pub(crate) streams: Arc<Mutex<usize>>,
    pub(crate) stream_dropped: Arc<Notify>,
}

pub(crate) struct Peer {
    address: SocketAddr,
    certificates: usize,
    standing: Arc<Standing>,
}

impl Handler for TestHandler {
    type Connection = Peer;

    fn connected(
        &self,
        address: SocketAddr,
        certificates: &[CertificateDer<'static>],
        standing: Arc<Standing>,
    ) -> Peer {
        self.connected.fetch_add(1, Ordering::SeqCst);
        Peer { address, certificates: certificates.len(), standing }
    }

    fn handle(
        self: Arc<Self>,
        peer: Arc<Peer>,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<Body>> + Send + 'static {
        assert_ne!(request.uri().path(), "/panic-at-once", "asked for");
        self.answer(peer, request)
    }
}

impl TestHandler {
    async fn answer(self: Arc<Self>, peer: Arc<Peer>, request: Request<Incoming>) -> Response<Body> {
        let path = request.uri().path().to_owned();
        if let Some(response) = self.health.answer(&path, request.uri().query()) {
            return response;
        }
        match path.as_str() {
            "/panic" => panic!("asked for"),
            "/login" => {
                peer.standing.authenticate();
                respond("hello")
            }
            "/stranger" => {
                peer.standing.finish();
                respond("and good bye")
            }
            "/peer" => respond(format!("{} {}", peer.address.ip(), peer.certificates)),
            "/id" => {
                respond(request.extensions().get::<RequestId>().expect("every request has one").as_str().to_owned())
            }
            "/echo" => echo(request).await,
            "/gated" => {
                self.arrived.notify_one();
                self.gate.notified().await;
                respond("through the gate")
            }
            "/list" => {
                let chunks = (0..200).map(|at| Bytes::from(format!("{at:-<5000}"))).collect();
                let body = Body::stream(Chunks(chunks));
                maybe_compress(accepts_gzip(request.headers()), &Arc::default(), Response::new(body)).await
            }
            "/flood" => Response::new(Body::stream(Flood(self.witness()))),
            "/watch" => self.stream(Some(self.drain.watches_should_end())),
            "/stuck" => self.stream(None),
            "/panic-midway" => Response::new(Body::stream(PanicsMidway(false))),
            _ => {
                let mut response = respond("no such path");
                *response.status_mut() = StatusCode::NOT_FOUND;
                response
            }
        }
    }

    fn witness(&self) -> Witness {
        Witness { dropped: Arc::clone(&self.streams), notify: Arc::clone(&self.stream_dropped) }
    }

    fn stream(&self, end: Option<WatchEnd>) -> Response<Body> {
        let stream = Endless { greeted: false, ended: false, end, _witness: self.witness() };
        let mut response = Response::new(Body::stream(stream));
        response.extensions_mut().insert(LongRunning);
        response
    }
}

/// Tells when the stream that it belongs to is dropped.
struct Witness {
    dropped: Arc<Mutex<usize>>,
    notify: Arc<Notify>,
}

impl Drop for Witness {
    fn drop(&mut self) {
        *self.dropped.lock().expect("not poisoned") += 1;
        self.notify.notify_one();
    }
}

async fn echo(request: Request<Incoming>) -> Response<Body> {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    match read_body(request.into_body(), MAX_REQUEST_BODY, deadline).await {
        Ok(bytes) => respond(format!("{} bytes", bytes.len())),
        Err(error) => {
            let status = match error {
                RequestBodyError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
                RequestBodyError::TimedOut => StatusCode::REQUEST_TIMEOUT,
                RequestBodyError::Broken(_) => StatusCode::BAD_REQUEST,
            };
            let mut response = respond(error.to_string());
            *response.status_mut() = status;
            response
        }
    }
}

fn respond(text: impl Into<String>) -> Response<Body> {
    Response::new(Body::from(text.into()))
}

struct Chunks(Vec<Bytes>);

impl ByteSource for Chunks {
    fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<Option<Bytes>> {
        Poll::Ready((!self.0.is_empty()).then(|| self.0.remove(0)))
    }
}

struct PanicsMidway(bool);

impl ByteSource for PanicsMidway {
    fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<Option<Bytes>> {
        assert!(!self.0, "asked for");
        self.0 = true;
        Poll::Ready(Some(Bytes::from_static(b"so far, so good")))
    }
}

/// Says hello, then nothing until the server goes away, and says that.
struct Endless {
    greeted: bool,
    ended: bool,
    end: Option<WatchEnd>,
    _witness: Witness,
}

impl ByteSource for Endless {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if !std::mem::replace(&mut self.greeted, true) {
            return Poll::Ready(Some(Bytes::from_static(b"hello\n")));
        }
        if self.ended {
            return Poll::Ready(None);
        }
        let Some(end) = &mut self.end else { return Poll::Pending };
        std::task::ready!(std::pin::Pin::new(end).poll(cx));
        self.ended = true;
        Poll::Ready(Some(Bytes::from_static(b"bye\n")))
    }
}

/// As much as the client takes.
struct Flood(#[allow(dead_code, reason = "it tells when it is dropped")] Witness);

impl ByteSource for Flood {
    fn poll_next(&mut self, _: &mut Context<'_>) -> Poll<Option<Bytes>> {
        Poll::Ready(Some(Bytes::from_static(&[b'x'; 64 * 1024])))
    }
}

/// One authority and two leaves.
struct Pki {
    authority: CertificateDer<'static>,
    server: (CertificateDer<'static>, Vec<u8>),
    client: (CertificateDer<'static>, Vec<u8>),
}

impl Pki {
    fn new() -> Pki {
        let key = rcgen::KeyPair::generate().expect("a key");
        let mut parameters = rcgen::CertificateParams::new(Vec::new()).expect("no names");
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let authority = parameters.self_signed(&key).expect("a certificate").der().clone();
        let issuer = rcgen::Issuer::new(parameters, key);
        let leaf = |usage| {
            let key = rcgen::KeyPair::generate().expect("a key");
            let mut parameters = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
            parameters.extended_key_usages = vec![usage];
            let certificate = parameters.signed_by(&key, &issuer).expect("a certificate");
            (certificate.der().clone(), key.serialize_der())
        };
        Pki {
            authority,
            server: leaf(rcgen::ExtendedKeyUsagePurpose::ServerAuth),
            client: leaf(rcgen::ExtendedKeyUsagePurpose::ClientAuth),
        }
    }

    fn roots(&self) -> Arc<rustls::RootCertStore> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.authority.clone()).expect("an authority");
        Arc::new(roots)
    }

    fn server_config(&self) -> Arc<rustls::ServerConfig> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(self.roots(), Arc::clone(&provider))
            .allow_unauthenticated()
            .build()
            .expect("a verifier");
        let (certificate, key) = self.server.clone();
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("protocol versions")
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![certificate], PrivateKeyDer::Pkcs8(key.into()))
            .expect("a certificate and its key");
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Arc::new(config)
    }

    fn client_config(&self, protocols: &[&str], identify: bool) -> Arc<rustls::ClientConfig> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("protocol versions")
            .with_root_certificates(self.roots());
        let mut config = if identify {
            let (certificate, key) = self.client.clone();
            config
                .with_client_auth_cert(vec![certificate], PrivateKeyDer::Pkcs8(key.into()))
                .expect("a certificate and its key")
        } else {
            config.with_no_client_auth()
        };
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        Arc::new(config)
    }
}
