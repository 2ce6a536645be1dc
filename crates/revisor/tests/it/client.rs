//! [`Client`]: a small client of the API, over HTTP/1.1 or HTTP/2, that hides nothing of what the server answers.
//!
//! It checks the server's certificate against the authorities in the kubeconfig, as every real client does.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::harness::within;

pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// Why there was no answer. Tests that kill servers expect that; all others fail.
pub(crate) type NoAnswer = Box<dyn std::error::Error + Send + Sync>;

/// What the server's own kubeconfig says.
pub(crate) struct Kubeconfig {
    pub(crate) address: SocketAddr,
    authorities: RootCertStore,
    certificate: Vec<CertificateDer<'static>>,
    /// That of the certificate; nothing for those who know nothing but whom to trust.
    key: Option<PrivateKeyDer<'static>>,
}

impl Kubeconfig {
    pub(crate) fn read(path: &Path) -> Kubeconfig {
        let text = std::fs::read_to_string(path).expect("the server has written its kubeconfig");
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(": "));
            line.unwrap_or_else(|| panic!("{name} in {text}")).trim_matches('"')
        };
        let pem = |name: &str| STANDARD.decode(field(name)).expect("base64");
        let certificates = |name: &str| -> Vec<CertificateDer<'static>> {
            CertificateDer::pem_slice_iter(&pem(name)).map(|found| found.expect("a certificate")).collect()
        };
        let mut authorities = RootCertStore::empty();
        for authority in certificates("certificate-authority-data") {
            authorities.add(authority).expect("an authority");
        }
        let address = field("server").strip_prefix("https://").expect("an address");
        Kubeconfig {
            address: address.parse().expect("an address"),
            authorities,
            certificate: certificates("client-certificate-data"),
            key: Some(PrivateKeyDer::from_pem_slice(&pem("client-key-data")).expect("a key")),
        }
    }

    /// What it takes to reach somebody at an address who is vouched for by this authority.
    pub(crate) fn of_authority(address: SocketAddr, pem: &[u8]) -> Kubeconfig {
        let mut authorities = RootCertStore::empty();
        for authority in CertificateDer::pem_slice_iter(pem) {
            authorities.add(authority.expect("a certificate")).expect("an authority");
        }
        Kubeconfig { address, authorities, certificate: Vec::new(), key: None }
    }

    /// The same with another client certificate.
    pub(crate) fn identified_by(
        &self,
        certificate: CertificateDer<'static>,
        key: PrivateKeyDer<'static>,
    ) -> Kubeconfig {
        let (certificate, key) = (vec![certificate], Some(key));
        Kubeconfig { address: self.address, authorities: self.authorities.clone(), certificate, key }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Http1,
    Http2,
}

type Shared = Arc<Mutex<Option<http2::SendRequest<Full<Bytes>>>>>;

/// A client of one server. Over HTTP/2 all requests share a connection; over HTTP/1.1 each has its own.
#[derive(Clone)]
pub(crate) struct Client {
    kubeconfig: Arc<Kubeconfig>,
    token: Option<String>,
    acting_as: Option<String>,
    identify: bool,
    protocol: Protocol,
    shared: Shared,
}

impl Client {
    /// A client without credentials, over HTTP/2.
    pub(crate) fn new(kubeconfig: Arc<Kubeconfig>) -> Client {
        Client {
            kubeconfig,
            token: None,
            acting_as: None,
            identify: false,
            protocol: Protocol::Http2,
            shared: Shared::default(),
        }
    }

    pub(crate) fn with_token(self, token: &str) -> Client {
        Client { token: Some(token.to_owned()), shared: Shared::default(), ..self }
    }

    /// The same, but in the name of another user.
    pub(crate) fn acting_as(&self, user: &str) -> Client {
        Client { acting_as: Some(user.to_owned()), ..self.clone() }
    }

    /// The same with the client certificate of the kubeconfig instead of a token.
    pub(crate) fn with_certificate(self) -> Client {
        Client { token: None, identify: true, shared: Shared::default(), ..self }
    }

    pub(crate) fn over_http1(self) -> Client {
        Client { protocol: Protocol::Http1, ..self }
    }

    /// The same on a connection of its own.
    pub(crate) fn apart(&self) -> Client {
        Client { shared: Shared::default(), ..self.clone() }
    }

    /// An encrypted connection on which nothing was said yet.
    pub(crate) async fn connect(&self) -> Result<TlsStream<TcpStream>, NoAnswer> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()?
            .with_root_certificates(self.kubeconfig.authorities.clone());
        let mut config = if self.identify {
            let key = self.kubeconfig.key.as_ref().expect("a certificate has a key");
            let key = provider.key_provider.load_private_key(key.clone_key())?;
            // Without a look at the certificate: what it is worth is for the server to find out.
            let shown = CertifiedKey::new(self.kubeconfig.certificate.clone(), key);
            config.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(shown)))
        } else {
            config.with_no_client_auth()
        };
        config.alpn_protocols = match self.protocol {
            Protocol::Http1 => vec![b"http/1.1".to_vec()],
            Protocol::Http2 => vec![b"h2".to_vec()],
        };
        let stream = TcpStream::connect(self.kubeconfig.address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::IpAddress(self.kubeconfig.address.ip().into());
        Ok(TlsConnector::from(Arc::new(config)).connect(name, stream).await?)
    }

    async fn http2(&self) -> Result<http2::SendRequest<Full<Bytes>>, NoAnswer> {
        let mut shared = self.shared.lock().await;
        match &*shared {
            Some(sender) if !sender.is_closed() => Ok(sender.clone()),
            _ => {
                let io = TokioIo::new(self.connect().await?);
                let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await?;
                // Its errors reach the requests on it.
                tokio::spawn(connection);
                *shared = Some(sender.clone());
                Ok(sender)
            }
        }
    }

    /// The head of the answer, with the body still to come.
    pub(crate) async fn try_open(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, NoAnswer> {
        match self.protocol {
            Protocol::Http2 => {
                let mut sender = self.http2().await?;
                match sender.try_send_request(request).await {
                    Ok(response) => Ok(response),
                    Err(mut error) => match error.take_message() {
                        // The server has just said that it wants no more requests on this connection.
                        Some(request) => Ok(self.apart().http2().await?.send_request(request).await?),
                        None => Err(error.into_error().into()),
                    },
                }
            }
            Protocol::Http1 => {
                let (mut sender, connection) = http1::handshake(TokioIo::new(self.connect().await?)).await?;
                tokio::spawn(connection);
                Ok(sender.send_request(request).await?)
            }
        }
    }

    /// A request with this client's credentials.
    pub(crate) fn request(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Request<Full<Bytes>> {
        let address = self.kubeconfig.address;
        let uri = match self.protocol {
            Protocol::Http1 => path.to_owned(),
            Protocol::Http2 => format!("https://{address}{path}"),
        };
        let mut request = Request::builder().method(method).uri(uri);
        if self.protocol == Protocol::Http1 {
            request = request.header("host", address.to_string());
        }
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if let Some(user) = &self.acting_as {
            request = request.header("impersonate-user", user);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(Full::new(body.into())).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub(crate) async fn try_send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Reply, NoAnswer> {
        self.try_request(self.request(method, path, headers, body)).await
    }

    /// The whole answer to a request that was made elsewhere.
    pub(crate) async fn try_request(&self, request: Request<Full<Bytes>>) -> Result<Reply, NoAnswer> {
        let asked = format!("{} {}", request.method(), request.uri());
        let (parts, body) = self.try_open(request).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        Ok(Reply { asked, code: parts.status.as_u16(), headers: parts.headers, body })
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Reply {
        let sent = within(self.try_send(method.clone(), path, headers, body)).await;
        sent.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(Method::GET, path, &[], "").await
    }

    pub(crate) async fn post(&self, path: &str, object: &Value) -> Reply {
        self.send_json(Method::POST, path, "application/json", object).await
    }

    pub(crate) async fn put(&self, path: &str, object: &Value) -> Reply {
        self.send_json(Method::PUT, path, "application/json", object).await
    }

    /// A patch of this media type.
    pub(crate) async fn patch(&self, path: &str, media_type: &str, patch: &Value) -> Reply {
        self.send_json(Method::PATCH, path, media_type, patch).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        self.send(Method::DELETE, path, &[], "").await
    }

    pub(crate) async fn delete_with(&self, path: &str, options: &Value) -> Reply {
        self.send_json(Method::DELETE, path, "application/json", options).await
    }

    async fn send_json(&self, method: Method, path: &str, media_type: &str, body: &Value) -> Reply {
        self.send(method, path, &[("content-type", media_type)], body.to_string()).await
    }

    /// A watch of a collection; `query` goes behind `watch=1`.
    pub(crate) async fn watch(&self, path: &str, query: &str) -> Watch {
        within(self.try_watch(path, query)).await.unwrap_or_else(|error| panic!("watch of {path}: {error}"))
    }

    pub(crate) async fn try_watch(&self, path: &str, query: &str) -> Result<Watch, NoAnswer> {
        let path = format!("{path}?watch=1&{query}");
        let response = self.try_open(self.request(Method::GET, &path, &[], "")).await?;
        assert_eq!(response.status(), 200, "{path}");
        Ok(Watch { path, body: response.into_body(), buffer: Vec::new() })
    }
}

/// What the server answered.
pub(crate) struct Reply {
    asked: String,
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    /// Fails the test if the code is another.
    #[track_caller]
    pub(crate) fn expect(self, code: u16) -> Reply {
        assert_eq!(self.code, code, "{}: {}", self.asked, self.text());
        self
    }

    /// Fails the test if this is not a `Status` with this code and reason.
    #[track_caller]
    pub(crate) fn fails(self, code: u16, reason: &str) -> Value {
        let status = self.expect(code).json();
        let facts = ["kind", "status", "reason"].map(|name| status[name].as_str().unwrap_or_default());
        assert_eq!(facts, ["Status", "Failure", reason], "{status}");
        assert_eq!(status["code"], code, "{status}");
        status
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{}: {error}: {}", self.asked, self.text()))
    }

    /// The text of the answer, or its beginning where it is long.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body[..self.body.len().min(4096)]).into_owned()
    }

    #[track_caller]
    pub(crate) fn version(&self) -> u64 {
        version_of(&self.json())
    }

    /// The names of the objects of a list.
    #[track_caller]
    pub(crate) fn names(&self) -> Vec<String> {
        let list = self.json();
        let items = list["items"].as_array().unwrap_or_else(|| panic!("{}: a list: {list}", self.asked));
        items.iter().map(|item| name_of(item).to_owned()).collect()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("a text"))
    }

    pub(crate) fn warnings(&self) -> Vec<&str> {
        self.headers.get_all("warning").iter().map(|value| value.to_str().expect("a text")).collect()
    }
}

/// The resource version of an object or list.
#[track_caller]
pub(crate) fn version_of(object: &Value) -> u64 {
    let version = object["metadata"]["resourceVersion"].as_str().unwrap_or_else(|| panic!("a version in {object}"));
    let number: u64 = version.parse().unwrap_or_else(|error| panic!("{version}: {error}"));
    assert_eq!(number.to_string(), version, "versions are plain decimals");
    number
}

pub(crate) fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// One line of a watch.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) kind: String,
    pub(crate) object: Value,
}

impl Event {
    /// Kind, name and version, which is what most tests are about.
    pub(crate) fn facts(&self) -> (&str, &str, u64) {
        (&self.kind, name_of(&self.object), self.version())
    }

    #[track_caller]
    pub(crate) fn version(&self) -> u64 {
        version_of(&self.object)
    }
}

/// A watch that goes on.
pub(crate) struct Watch {
    path: String,
    body: Incoming,
    buffer: Vec<u8>,
}

impl Watch {
    /// The next event; nothing at the end of the stream, an error where it breaks.
    pub(crate) async fn try_next(&mut self) -> Result<Option<Event>, NoAnswer> {
        let mut searched = 0;
        loop {
            if let Some(end) = self.buffer[searched..].iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=searched + end).collect();
                let mut event: Value = serde_json::from_slice(&line)?;
                let kind = event["type"].as_str().unwrap_or_default().to_owned();
                return Ok(Some(Event { kind, object: event["object"].take() }));
            }
            searched = self.buffer.len();
            let Some(frame) = self.body.frame().await else {
                assert!(self.buffer.is_empty(), "{} ends within a line", self.path);
                return Ok(None);
            };
            if let Ok(data) = frame?.into_data() {
                self.buffer.extend_from_slice(&data);
            }
        }
    }

    /// The next event; nothing at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        let next = within(self.try_next()).await;
        next.unwrap_or_else(|error| panic!("{}: {error}", self.path))
    }

    /// The next event, which must come.
    pub(crate) async fn event(&mut self) -> Event {
        self.next().await.unwrap_or_else(|| panic!("{} has ended", self.path))
    }

    /// Fails the test if the next event is another.
    pub(crate) async fn expect(&mut self, kind: &str, name: &str, version: u64) -> Value {
        let event = self.event().await;
        assert_eq!(event.facts(), (kind, name, version), "{}", self.path);
        event.object
    }
}
