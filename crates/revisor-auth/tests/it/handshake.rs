//! Clients with good, bad and no certificates, from the handshake to the identity.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair};
use revisor_auth::{
    Anonymous, AuthenticationNotes, Authenticator, Holdings, Identity, LiveCertificates, LiveOptions, PeerIdentity,
    TlsOptions, TokenFile, Unauthenticated, crypto_provider, server_names,
};
use rustls::client::ResolvesClientCert;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, HandshakeKind, RootCertStore, ServerConfig, SignatureScheme, SupportedProtocolVersion};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

const DEADLINE: Duration = Duration::from_secs(30);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const TLS12: &SupportedProtocolVersion = &rustls::version::TLS12;
const TLS13: &SupportedProtocolVersion = &rustls::version::TLS13;

type ClientPair = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// A server with fresh certificates.
struct Fixture {
    folder: TempDir,
    certificates: LiveCertificates,
    config: Arc<ServerConfig>,
}

impl Fixture {
    fn new() -> Fixture {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let names = server_names([IpAddr::from([10, 0, 0, 1])]);
        let options = LiveOptions {
            folder: folder.path().to_owned(),
            names,
            serving: None,
            named: Vec::new(),
            client_authorities: None,
            tls: TlsOptions::default(),
            holdings: Holdings::ControlPlane,
        };
        let certificates = LiveCertificates::open(options, SystemTime::now()).expect("the folder is empty");
        let config = certificates.tls().config(IpAddr::from([127, 0, 0, 1]));
        Fixture { folder, certificates, config }
    }

    fn trusted(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(self.certificates.trust_pem().as_bytes()) {
            roots.add(certificate.expect("the bundle is fine")).expect("the bundle holds authorities");
        }
        roots
    }

    fn client(&self, version: &'static SupportedProtocolVersion, pair: Option<ClientPair>) -> ClientConfig {
        let builder = ClientConfig::builder_with_provider(crypto_provider())
            .with_protocol_versions(&[version])
            .expect("the version is supported")
            .with_root_certificates(self.trusted());
        match pair {
            Some((chain, key)) => builder.with_client_auth_cert(chain, key).expect("the pair fits together"),
            None => builder.with_no_client_auth(),
        }
    }

    fn admin(&self) -> ClientPair {
        let chain = CertificateDer::from_pem_slice(self.certificates.own().admin_certificate_pem().as_bytes());
        let key = PrivateKeyDer::from_pem_slice(self.certificates.own().admin_key_pem().as_bytes());
        (vec![chain.expect("the certificate is fine")], key.expect("the key is fine"))
    }

    /// A client certificate that the authority of this server issued.
    fn issue(&self, name: &str, valid: (SystemTime, SystemTime), usage: ExtendedKeyUsagePurpose) -> ClientPair {
        let read = |file| std::fs::read_to_string(self.folder.path().join(file)).expect("the file is there");
        let ca_key = KeyPair::from_pem(&read("ca.key")).expect("the key is fine");
        let issuer = Issuer::from_ca_cert_pem(&read("ca.crt"), ca_key).expect("the authority is fine");
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        (params.not_before, params.not_after) = (valid.0.into(), valid.1.into());
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().expect("keys can be made");
        let certificate = params.signed_by(&key, &issuer).expect("certificates can be issued");
        (vec![certificate.der().clone()], key.into())
    }

    fn peer(&self, stream: &server::TlsStream<TcpStream>, now: SystemTime) -> PeerIdentity {
        let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
        self.certificates.peers().peer(chain).identity(now)
    }
}

/// Both ends of a connection after the handshake, or the server's reason why there is none.
async fn connect(
    server: &Arc<ServerConfig>,
    client: &Arc<ClientConfig>,
    name: ServerName<'static>,
) -> std::io::Result<(server::TlsStream<TcpStream>, client::TlsStream<TcpStream>)> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    let accepted = async {
        let (socket, _) = listener.accept().await?;
        let mut stream = TlsAcceptor::from(server.clone()).accept(socket).await?;
        // With the first byte the tickets go out that a client resumes with.
        stream.write_all(b"x").await?;
        stream.flush().await?;
        std::io::Result::Ok(stream)
    };
    let connected = async {
        let socket = TcpStream::connect(address).await?;
        let mut stream = TlsConnector::from(client.clone()).connect(name, socket).await?;
        stream.read_exact(&mut [0]).await?;
        std::io::Result::Ok(stream)
    };
    let both = async { tokio::join!(accepted, connected) };
    let (accepted, connected) = tokio::time::timeout(DEADLINE, both).await.map_err(std::io::Error::from)?;
    Ok((accepted?, connected?))
}

fn localhost() -> ServerName<'static> {
    ServerName::try_from("localhost").expect("the name is well-formed")
}

async fn authenticate(peer: &PeerIdentity, token: Option<&'static str>) -> Result<Identity, Unauthenticated> {
    let (tokens, _) = TokenFile::parse("good,tina,7").expect("the tokens are valid");
    let headers: HeaderMap = token.into_iter().map(|token| (AUTHORIZATION, HeaderValue::from_static(token))).collect();
    Authenticator::new(tokens, Anonymous::Everywhere)
        .authenticate(
            "/api",
            &headers,
            peer,
            &PeerIdentity::Unknown,
            SystemTime::now(),
            &mut AuthenticationNotes::default(),
        )
        .await
}

#[tokio::test]
async fn the_administrator_is_known_and_speaks_http2() {
    let fixture = Fixture::new();
    for version in [TLS12, TLS13] {
        let mut client = fixture.client(version, Some(fixture.admin()));
        client.alpn_protocols = vec![b"http/1.1".to_vec(), b"h2".to_vec()];
        let (server, _client) =
            connect(&fixture.config, &Arc::new(client), localhost()).await.expect("the handshake succeeds");
        assert_eq!(server.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        assert_eq!(server.get_ref().1.protocol_version(), Some(version.version));
        let identity =
            authenticate(&fixture.peer(&server, SystemTime::now()), None).await.expect("the administrator is known");
        assert_eq!(identity.name(), "kubernetes-admin");
        assert_eq!(identity.groups(), ["system:masters", "system:authenticated"]);
        assert!(identity.is_master());
    }
}

#[tokio::test]
async fn the_server_is_trusted_under_all_its_names() {
    let fixture = Fixture::new();
    let client = Arc::new(fixture.client(TLS13, None));
    for name in server_names([IpAddr::from([10, 0, 0, 1])]) {
        let connected = connect(&fixture.config, &client, name.clone()).await;
        assert!(connected.is_ok(), "{name:?}: {:?}", connected.err());
    }
    let stranger = ServerName::try_from("example.org").expect("the name is well-formed");
    assert!(connect(&fixture.config, &client, stranger).await.is_err());
}

#[tokio::test]
async fn without_a_certificate_a_client_is_anonymous() {
    let fixture = Fixture::new();
    for version in [TLS12, TLS13] {
        let client = Arc::new(fixture.client(version, None));
        let (server, _client) = connect(&fixture.config, &client, localhost()).await.expect("the handshake succeeds");
        let peer = fixture.peer(&server, SystemTime::now());
        assert_eq!(peer, PeerIdentity::Unknown);
        assert_eq!(authenticate(&peer, None).await, Ok(Identity::anonymous()));
    }
}

#[tokio::test]
async fn a_bad_certificate_passes_the_handshake_and_not_the_authenticator() {
    let (fixture, foreign) = (Fixture::new(), Fixture::new());
    let now = SystemTime::now();
    let (client, server) = (ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth);
    for (case, pair, want) in [
        ("expired", fixture.issue("eve", (now - 2 * DAY, now - DAY), client.clone()), "xpired"),
        ("not yet valid", fixture.issue("eve", (now + DAY, now + 2 * DAY), client), "not valid yet"),
        ("for servers", fixture.issue("eve", (now - DAY, now + DAY), server), "extended key usage"),
        ("of another authority", foreign.admin(), "BadSignature"),
    ] {
        for version in [TLS12, TLS13] {
            let client = Arc::new(fixture.client(version, Some((pair.0.clone(), pair.1.clone_key()))));
            let (server, _client) = connect(&fixture.config, &client, localhost()).await.expect(case);
            let peer = fixture.peer(&server, SystemTime::now());
            let Err(Unauthenticated::Certificate(reason)) = authenticate(&peer, None).await else {
                panic!("{case}: {peer:?}")
            };
            assert!(reason.contains(want), "{case}: {reason}");
            assert_eq!(authenticate(&peer, Some("Bearer good")).await.expect(case).name(), "tina", "{case}");
            assert_eq!(authenticate(&peer, Some("Bearer bad")).await, Err(Unauthenticated::Token), "{case}");
        }
    }
}

/// Shows a certificate without owning its key.
#[derive(Debug)]
struct Thief(Arc<CertifiedKey>);

impl ResolvesClientCert for Thief {
    fn resolve(&self, _hints: &[&[u8]], _schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }

    fn has_certs(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn a_certificate_without_its_key_does_not_pass_the_handshake() {
    let fixture = Fixture::new();
    let (chain, _) = fixture.admin();
    let key = PrivateKeyDer::from(KeyPair::generate().expect("keys can be made"));
    let key = crypto_provider().key_provider.load_private_key(key).expect("the key is fine");
    let thief = Arc::new(Thief(Arc::new(CertifiedKey::new(chain, key))));
    for version in [TLS12, TLS13] {
        let mut client = fixture.client(version, None);
        client.client_auth_cert_resolver = thief.clone();
        let error = connect(&fixture.config, &Arc::new(client), localhost()).await.expect_err("the signature is wrong");
        assert!(error.to_string().contains("BadSignature"), "{error}");
    }
}

#[tokio::test]
async fn a_resumed_session_keeps_its_certificate_and_does_not_outlive_it() {
    let fixture = Fixture::new();
    let now = SystemTime::now();
    for version in [TLS12, TLS13] {
        let pair = fixture.issue("bob", (now - DAY, now + DAY), ExtendedKeyUsagePurpose::ClientAuth);
        let client = Arc::new(fixture.client(version, Some(pair)));
        let (first, _) = connect(&fixture.config, &client, localhost()).await.expect("the handshake succeeds");
        assert_eq!(first.get_ref().1.handshake_kind(), Some(HandshakeKind::Full));
        let (second, _) = connect(&fixture.config, &client, localhost()).await.expect("the handshake succeeds");
        assert_eq!(second.get_ref().1.handshake_kind(), Some(HandshakeKind::Resumed));
        assert_eq!(authenticate(&fixture.peer(&second, now), None).await.expect("bob is known").name(), "bob");
        let later = fixture.peer(&second, now + 2 * DAY);
        assert!(matches!(later, PeerIdentity::Refused(_)), "{later:?}");
    }
}
