//! Those behind the server: certificates for both sides, and a program that speaks HTTP/1.1 over TLS as a test wants it to.

use std::future::Future;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::RootCertStore;
use rustls::server::WebPkiClientVerifier;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// An authority that vouches for clients and servers, in a folder with what it signed.
pub(crate) struct Authority {
    folder: tempfile::TempDir,
    pub(crate) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("keys can be made");
        let pem = params.self_signed(&key).expect("certificates can be made").pem();
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("ca.crt"), &pem).expect("is written");
        Authority { folder, pem, issuer: Issuer::new(params, key) }
    }

    /// The file with its certificate.
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("ca.crt")
    }

    /// A certificate in a name, for these hosts and as a client, and its key: the two files.
    pub(crate) fn certificate(&self, name: &str, hosts: &[&str]) -> (PathBuf, PathBuf) {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let mut params = CertificateParams::new(hosts).expect("the names are well-formed");
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().expect("keys can be made");
        let certificate = params.signed_by(&key, &self.issuer).expect("certificates can be made");
        let at = |end: &str| self.folder.path().join(format!("{name}.{end}"));
        std::fs::write(at("crt"), certificate.pem()).expect("is written");
        std::fs::write(at("key"), key.serialize_pem()).expect("is written");
        (at("crt"), at("key"))
    }
}

/// The address of this machine that is not one that leads every machine to itself, if it has one. Nothing is sent.
pub(crate) fn machine_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    socket.local_addr().ok().map(|address| address.ip()).filter(|ip| !ip.is_loopback() && !ip.is_unspecified())
}

/// A connection on which one request has come.
pub(crate) type Asked = TlsStream<TcpStream>;

type Answering = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A program that answers one request on each connection, of clients of an authority or of everybody.
pub(crate) struct Behind {
    pub(crate) address: SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Behind {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Behind {
    /// Answers with what `answer` does with the head of a request and its connection, if the client is of the authority.
    pub(crate) async fn start(
        host: &str,
        certificate: (PathBuf, PathBuf),
        clients: &Authority,
        answer: impl Fn(String, Asked) -> Answering + Send + Sync + 'static,
    ) -> Behind {
        Behind::serve(host, acceptor(certificate, Some(clients)), answer).await
    }

    /// The same for everybody.
    pub(crate) async fn open_to_all(
        host: &str,
        certificate: (PathBuf, PathBuf),
        answer: impl Fn(String, Asked) -> Answering + Send + Sync + 'static,
    ) -> Behind {
        Behind::serve(host, acceptor(certificate, None), answer).await
    }

    async fn serve(
        host: &str,
        acceptor: TlsAcceptor,
        answer: impl Fn(String, Asked) -> Answering + Send + Sync + 'static,
    ) -> Behind {
        let listener = TcpListener::bind((host, 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let answer = Arc::new(answer);
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, answer) = (acceptor.clone(), answer.clone());
                connections.spawn(async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    if let Some(head) = head(&mut stream).await {
                        answer(head, stream).await;
                    }
                });
            }
        });
        Behind { address, task }
    }
}

fn acceptor((certificate, key): (PathBuf, PathBuf), clients: Option<&Authority>) -> TlsAcceptor {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = match clients {
        Some(clients) => {
            let mut roots = RootCertStore::empty();
            let authority = CertificateDer::from_pem_slice(clients.pem.as_bytes()).expect("a certificate");
            roots.add(authority).expect("an authority");
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
            verifier.expect("an authority is known")
        }
        None => WebPkiClientVerifier::no_client_auth(),
    };
    let chain = vec![CertificateDer::from_pem_file(certificate).expect("a certificate")];
    let key = PrivateKeyDer::from_pem_file(key).expect("a key");
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the versions are known")
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .expect("the certificate fits its key");
    TlsAcceptor::from(Arc::new(config))
}

/// The head of a request; nothing if nobody asks.
async fn head(stream: &mut Asked) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    String::from_utf8(head).ok()
}

/// The value of a header, in the head of a request.
pub(crate) fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let (_, value) =
        head.lines().filter_map(|line| line.split_once(": ")).find(|(it, _)| it.eq_ignore_ascii_case(name))?;
    Some(value)
}

/// Answers with a text and hangs up.
pub(crate) async fn reply(stream: &mut Asked, head: &str, body: &str) {
    let text = format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    // Whoever hangs up has what they wanted.
    let _ = stream.write_all(text.as_bytes()).await;
    let _ = stream.shutdown().await;
}
