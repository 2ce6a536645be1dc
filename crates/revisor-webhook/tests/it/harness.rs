//! Webhooks for tests: a certificate authority, a TLS server whose behaviour is a function, and servers that are none.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Version, request};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use revisor_webhook::{
    ClientConfig, Endpoint, Limits, Resolving, ServiceResolver, Target, UnresolvedService, WebhookClient,
};
use rustls::crypto::aws_lc_rs;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use time::OffsetDateTime;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Barrier;
use tokio_rustls::TlsAcceptor;

/// Longer than anything here takes, on a busy machine too.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A certificate with its key.
pub(crate) struct Identity {
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) pem: String,
    key: KeyPair,
}

/// Who vouches for webhooks.
pub(crate) struct Authority {
    pub(crate) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// The parameters of a certificate for these hosts, to be changed by the test.
pub(crate) fn params(name: &str, hosts: &[&str]) -> CertificateParams {
    let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(hosts).expect("the hosts are names or addresses");
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

impl Authority {
    pub(crate) fn new(name: &str) -> Authority {
        Authority::with(params(name, &[]))
    }

    /// One that is valid from some time until another.
    pub(crate) fn valid(name: &str, from: OffsetDateTime, until: OffsetDateTime) -> Authority {
        let mut params = params(name, &[]);
        (params.not_before, params.not_after) = (from, until);
        Authority::with(params)
    }

    fn with(mut params: CertificateParams) -> Authority {
        let key = KeyPair::generate().expect("keys can be made");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).expect("it can be signed").pem();
        Authority { pem, issuer: Issuer::new(params, key) }
    }

    pub(crate) fn issue(&self, params: CertificateParams) -> Identity {
        let key = KeyPair::generate().expect("keys can be made");
        let certificate = params.signed_by(&key, &self.issuer).expect("it can be signed");
        Identity { certificate: certificate.der().clone(), pem: certificate.pem(), key }
    }
}

impl Identity {
    pub(crate) fn self_signed(params: CertificateParams) -> Identity {
        let key = KeyPair::generate().expect("keys can be made");
        let certificate = params.self_signed(&key).expect("it can be signed");
        Identity { certificate: certificate.der().clone(), pem: certificate.pem(), key }
    }

    pub(crate) fn acceptor(&self, protocols: &[&str]) -> TlsAcceptor {
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.key.serialize_der()));
        let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider has versions")
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], key)
            .expect("the key fits");
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// What a webhook does with a request.
pub(crate) enum Reply {
    Answer(Response<Full<Bytes>>),
    /// It answers when as many as the barrier says have asked.
    Together(Arc<Barrier>, Response<Full<Bytes>>),
    /// It never answers.
    Hang,
    /// It hangs up.
    Close,
}

/// A webhook as the tests see it. Ends when it is dropped.
pub(crate) struct Hook {
    pub(crate) address: SocketAddr,
    /// How many connections there were.
    pub(crate) connections: Arc<AtomicUsize>,
    /// What was asked.
    pub(crate) requests: Arc<Mutex<Vec<(request::Parts, Bytes)>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Hook {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Hook {
    /// A webhook with this identity, which speaks these protocols.
    pub(crate) async fn start(
        identity: &Identity,
        protocols: &[&str],
        behaviour: impl Fn(&request::Parts, &Bytes) -> Reply + Send + Sync + 'static,
    ) -> Hook {
        let acceptor = identity.acceptor(protocols);
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (behaviour, log) = (Arc::new(behaviour), requests.clone());
        Hook::listen(requests, move |stream| {
            let (acceptor, behaviour, log) = (acceptor.clone(), behaviour.clone(), log.clone());
            Box::pin(async move {
                // A client that does not like the certificate hangs up here; that is what some tests are about.
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let service = service_fn(|request| answer(request, behaviour.clone(), log.clone()));
                let builder = auto::Builder::new(TokioExecutor::new());
                drop(builder.serve_connection(TokioIo::new(stream), service).await);
            })
        })
        .await
    }

    /// Something that listens and does with every connection what the function says.
    pub(crate) async fn raw(
        handle: impl Fn(TcpStream) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync + 'static,
    ) -> Hook {
        Hook::listen(Arc::default(), handle).await
    }

    async fn listen(
        requests: Arc<Mutex<Vec<(request::Parts, Bytes)>>>,
        handle: impl Fn(TcpStream) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync + 'static,
    ) -> Hook {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback can be listened on");
        let address = listener.local_addr().expect("it has an address");
        let connections = Arc::new(AtomicUsize::new(0));
        let count = connections.clone();
        let task = tokio::spawn(async move {
            let mut tasks = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                tasks.spawn(handle(stream));
            }
        });
        Hook { address, connections, requests, task }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// The config by which it is called, with these authorities.
    pub(crate) fn config(&self, bundle: &str) -> ClientConfig {
        ClientConfig { target: Target::Url(self.url("/hook")), ca_bundle: bundle.into() }
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn requests(&self) -> Vec<(request::Parts, Bytes)> {
        self.requests.lock().expect("no test panics with it").clone()
    }
}

async fn answer(
    request: Request<Incoming>,
    behaviour: Arc<impl Fn(&request::Parts, &Bytes) -> Reply>,
    log: Arc<Mutex<Vec<(request::Parts, Bytes)>>>,
) -> Result<Response<Full<Bytes>>, std::io::Error> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.expect("the client sends it all").to_bytes();
    log.lock().expect("no test panics with it").push((parts.clone(), body.clone()));
    match behaviour(&parts, &body) {
        Reply::Answer(response) => Ok(response),
        Reply::Together(barrier, response) => {
            barrier.wait().await;
            Ok(response)
        }
        Reply::Hang => std::future::pending().await,
        Reply::Close => Err(std::io::Error::other("hung up")),
    }
}

/// A whole answer.
pub(crate) fn reply(status: u16, content_type: &str, body: impl Into<Bytes>) -> Reply {
    let response = Response::builder().status(status).header("Content-Type", content_type);
    Reply::Answer(response.body(Full::new(body.into())).expect("the parts are valid"))
}

/// A good webhook with a good certificate, and the bundle that vouches for it.
pub(crate) async fn good(
    protocols: &[&str],
    behaviour: impl Fn(&request::Parts, &Bytes) -> Reply + Send + Sync + 'static,
) -> (Hook, ClientConfig) {
    let authority = Authority::new("authority");
    let identity = authority.issue(params("hook", &["127.0.0.1"]));
    let hook = Hook::start(&identity, protocols, behaviour).await;
    let config = hook.config(&authority.pem);
    (hook, config)
}

/// Services are where the test says.
#[derive(Default)]
pub(crate) struct Services(pub(crate) Vec<(&'static str, SocketAddr)>);

impl ServiceResolver for Services {
    fn resolve<'a>(&'a self, namespace: &'a str, name: &'a str, _port: u16) -> Resolving<'a> {
        let full = format!("{namespace}/{name}");
        let found = self.0.iter().find(|(service, _)| *service == full);
        let found = found.map(|(_, address)| Endpoint { host: address.ip().to_string(), port: address.port() });
        Box::pin(async move { found.ok_or_else(|| UnresolvedService(format!("service {name:?} not found"))) })
    }
}

pub(crate) fn client() -> WebhookClient {
    client_with(Limits::default())
}

pub(crate) fn client_with(limits: Limits) -> WebhookClient {
    WebhookClient::new(Arc::new(Services::default()), limits)
}

/// The version of HTTP of each request.
pub(crate) fn versions(hook: &Hook) -> Vec<Version> {
    hook.requests().iter().map(|(parts, _)| parts.version).collect()
}
