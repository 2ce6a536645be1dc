//! Certificates of a server that runs: expired, replaced, renewed, revoked, and chosen by name.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme, SupportedProtocolVersion, version};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::client::{Client, Kubeconfig};
use crate::harness::{Server, eventually, within};
use crate::objects::{CONFIG_MAPS, config_map};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Files that an operator brings.
struct Files(TempDir);

impl Files {
    fn new() -> Files {
        Files(tempfile::tempdir().expect("a temporary folder"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        replace(&self.path(name), text);
    }

    /// A certificate for these names, and its key, as `stem.crt` and `stem.key`.
    fn serving(&self, stem: &str, names: &[&str]) -> CertificateDer<'static> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("the names are well-formed");
        params.distinguished_name.push(DnType::CommonName, stem);
        let key = KeyPair::generate().expect("keys can be made");
        let certificate = params.self_signed(&key).expect("certificates can be made");
        self.write(&format!("{stem}.key"), &key.serialize_pem());
        self.write(&format!("{stem}.crt"), &certificate.pem());
        certificate.der().clone()
    }
}

/// Replaces a file at once, as tools that know what they do replace them.
fn replace(path: &Path, text: &str) {
    let temporary = path.with_extension("tmp");
    std::fs::write(&temporary, text).expect("the folder can be written");
    std::fs::rename(&temporary, path).expect("a file can be replaced");
}

/// An authority that vouches for clients.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str, from: SystemTime, until: SystemTime) -> Authority {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        (params.not_before, params.not_after) = (from.into(), until.into());
        let key = KeyPair::generate().expect("keys can be made");
        let pem = params.self_signed(&key).expect("certificates can be made").pem();
        Authority { pem, issuer: Issuer::new(params, key) }
    }

    fn valid(name: &str) -> Authority {
        Authority::new(name, SystemTime::now() - DAY, SystemTime::now() + DAY)
    }

    /// Somebody who may do everything.
    fn client(&self, kubeconfig: &Kubeconfig) -> Client {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "carl");
        params.distinguished_name.push(DnType::OrganizationName, "system:masters");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().expect("keys can be made");
        let certificate = params.signed_by(&key, &self.issuer).expect("certificates can be issued").der().clone();
        Client::new(Arc::new(kubeconfig.identified_by(certificate, key.into()))).with_certificate()
    }
}

/// Waits until a client gets this code for a request.
async fn until_answered(client: &Client, code: u16) {
    eventually(|| async { (client.get(CONFIG_MAPS).await.code == code).then_some(()) }).await;
}

async fn until_logged(server: &Server, text: &str) {
    eventually(|| std::future::ready(server.process.log().contains(text).then_some(()))).await;
}

/// Believes everybody: what is shown is what tests look at.
#[derive(Debug)]
struct Credulous(Arc<CryptoProvider>);

impl ServerCertVerifier for Credulous {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// How a client shakes hands.
struct Handshake {
    name: &'static str,
    versions: Vec<&'static SupportedProtocolVersion>,
    /// The ciphers that it knows, by a part of their names.
    suites: &'static str,
}

impl Default for Handshake {
    fn default() -> Handshake {
        Handshake { name: "127.0.0.1", versions: vec![&version::TLS13, &version::TLS12], suites: "" }
    }
}

impl Handshake {
    /// The certificate that the server shows, and the cipher that both agree on; `None` if they do not.
    async fn with(&self, server: &Server) -> Option<(CertificateDer<'static>, String)> {
        let mut provider = aws_lc_rs::default_provider();
        provider.cipher_suites.retain(|suite| format!("{:?}", suite.suite()).contains(self.suites));
        let provider = Arc::new(provider);
        let config = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&self.versions)
            .expect("the versions are known")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Credulous(provider)))
            .with_no_client_auth();
        let stream = TcpStream::connect(server.kubeconfig.address).await.expect("the server listens");
        let name = ServerName::try_from(self.name).expect("a name");
        let stream = within(TlsConnector::from(Arc::new(config)).connect(name, stream)).await.ok()?;
        let (_, tls) = stream.get_ref();
        let shown = tls.peer_certificates().and_then(<[_]>::first).expect("the server shows one").clone().into_owned();
        Some((shown, format!("{:?}", tls.negotiated_cipher_suite().expect("one was agreed on").suite())))
    }
}

async fn shown(server: &Server) -> CertificateDer<'static> {
    Handshake::default().with(server).await.expect("both agree").0
}

fn revisor(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_revisor")).args(arguments).output().expect("the binary can be started")
}

/// `revisor credentials`, for a server's folder.
fn credentials(server: &Server, arguments: &[&str]) -> Vec<Value> {
    let data = format!("--data-dir={}", server.data().display());
    let output = revisor(&[&["credentials"][..], arguments, &[&data, "--output=json"]].concat());
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    serde_json::from_slice(&output.stdout).expect("a list")
}

#[tokio::test]
async fn certificates_of_the_first_version_count() {
    const AUTHORITY: &str = include_str!("certificates/version_one_authority.crt");
    let certificate = CertificateDer::from_pem_slice(include_bytes!("certificates/version_one.crt"));
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("certificates/version_one.key"));
    let (certificate, key) = (certificate.expect("a certificate"), key.expect("a key"));
    let files = Files::new();
    files.write("clients.crt", AUTHORITY);
    let server = Server::start(&[&format!("--client-ca-file={}", files.path("clients.crt").display())]).await;
    let bob = Client::new(Arc::new(server.kubeconfig.identified_by(certificate.clone(), key.clone_key())));
    let bob = bob.with_certificate();
    bob.get("/readyz").await.expect(200);
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let told = bob.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &review).await.expect(201).json();
    assert_eq!(told["status"]["userInfo"]["username"], "bob", "{told}");
    assert_eq!(told["status"]["userInfo"]["groups"], json!(["guests", "system:authenticated"]), "{told}");

    // Nobody vouches for it at another server: it gets an answer, as others would.
    let stranger = Server::start(&[]).await;
    let bob = Client::new(Arc::new(stranger.kubeconfig.identified_by(certificate, key))).with_certificate();
    bob.get(CONFIG_MAPS).await.fails(401, "Unauthorized");
}

#[tokio::test]
async fn an_authority_counts_while_it_is_valid_only() {
    let (files, now) = (Files::new(), SystemTime::now());
    let old = Authority::new("old", now - 2 * DAY, now - DAY);
    let new = Authority::new("new", now + DAY, now + 2 * DAY);
    let valid = Authority::valid("valid");
    files.write("clients.crt", &[&*old.pem, &new.pem, &valid.pem].concat());
    let server = Server::start(&[&format!("--client-ca-file={}", files.path("clients.crt").display())]).await;
    valid.client(&server.kubeconfig).get(CONFIG_MAPS).await.expect(200);
    for authority in [old, new] {
        let client = authority.client(&server.kubeconfig);
        client.get(CONFIG_MAPS).await.fails(401, "Unauthorized");
        // Nor is such a client anonymous: who has credentials means them.
        client.over_http1().get("/version").await.fails(401, "Unauthorized");
    }
}

#[tokio::test]
async fn authorities_of_clients_are_replaced_on_open_connections() {
    let files = Files::new();
    let (one, other) = (Authority::valid("one"), Authority::valid("other"));
    files.write("clients.crt", &one.pem);
    let server = Server::start(&[&format!("--client-ca-file={}", files.path("clients.crt").display())]).await;
    let (mine, others) = (one.client(&server.kubeconfig), other.client(&server.kubeconfig));
    mine.get(CONFIG_MAPS).await.expect(200);
    others.get(CONFIG_MAPS).await.fails(401, "Unauthorized");
    files.write("clients.crt", &other.pem);
    until_answered(&mine, 401).await;
    others.get(CONFIG_MAPS).await.expect(200);
    // A file that nobody can use changes nothing.
    files.write("clients.crt", "-----BEGIN CERTIFICATE-----\n");
    until_logged(&server, "the old ones stay").await;
    others.get(CONFIG_MAPS).await.expect(200);
    others.apart().get(CONFIG_MAPS).await.expect(200);
}

#[tokio::test]
async fn the_certificate_that_is_shown_is_replaced() {
    let files = Files::new();
    let first = files.serving("server", &["127.0.0.1"]);
    let flag = |name: &str, file: &str| format!("--{name}={}", files.path(file).display());
    let flags = [
        flag("tls-cert-file", "server.crt"),
        flag("tls-private-key-file", "server.key"),
        "--controllers=root-ca-certificate-publisher-controller".to_owned(),
    ];
    let server = Server::start(&flags.each_ref().map(String::as_str)).await;
    assert_eq!(shown(&server).await, first);
    let second = files.serving("server", &["127.0.0.1"]);
    eventually(|| async { (shown(&server).await == second).then_some(()) }).await;
    // Whoever has copies of it gets the new one.
    let fresh = eventually(|| async {
        let client = Client::new(Arc::new(Kubeconfig::read(&server.data().join("kubeconfig")))).with_certificate();
        client.connect().await.is_ok().then_some(client)
    });
    let fresh = fresh.await;
    let pem = std::fs::read_to_string(files.path("server.crt")).expect("the file is there");
    eventually(|| async {
        let published = fresh.get(&format!("{CONFIG_MAPS}/kube-root-ca.crt")).await.json();
        published["data"]["ca.crt"].as_str().unwrap_or_default().contains(&pem).then_some(())
    })
    .await;

    files.write("server.crt", "nonsense");
    until_logged(&server, "the old ones stay").await;
    assert_eq!(shown(&server).await, second);
}

#[tokio::test]
async fn what_the_server_made_for_itself_is_renewed_without_a_restart() {
    let server = Server::start(&[]).await;
    let folder = server.data().join("certificates");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("the file is there");
    // As if the year were nearly over.
    let key = |name: &str| KeyPair::from_pem(&read(name)).expect("a key");
    let issuer = Issuer::from_ca_cert_pem(&read("ca.crt"), key("ca.key")).expect("an authority");
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    (params.not_before, params.not_after) =
        ((SystemTime::now() - 300 * DAY).into(), (SystemTime::now() + 20 * DAY).into());
    let aged = params.signed_by(&key("apiserver.key"), &issuer).expect("certificates can be issued");
    let before = shown(&server).await;
    replace(&folder.join("apiserver.crt"), &aged.pem());
    let renewed = eventually(|| async { Some(shown(&server).await).filter(|shown| *shown != before) }).await;
    assert_ne!(renewed, *aged.der(), "it was not shown, but replaced");
    // It is what clients trust, under all names.
    Client::new(server.kubeconfig.clone()).with_certificate().get(CONFIG_MAPS).await.expect(200);
}

#[tokio::test]
async fn the_certificate_depends_on_the_name_that_is_asked_for() {
    let files = Files::new();
    let own = files.serving("own", &["foo.example", "*.bar.example"]);
    let given = files.serving("given", &["elsewhere.example"]);
    let pair = |stem: &str, names: &str| {
        let (certificate, key) = (files.path(&format!("{stem}.crt")), files.path(&format!("{stem}.key")));
        format!("--tls-sni-cert-key={},{}{names}", certificate.display(), key.display())
    };
    let flags = [pair("own", ""), pair("given", ":foo.example,a.bar.example")];
    let server = Server::start(&flags.each_ref().map(String::as_str)).await;
    let at = async |name: &'static str| Handshake { name, ..Handshake::default() }.with(&server).await.expect(name).0;
    let default = shown(&server).await;
    assert!(default != own && default != given);
    for (name, want) in [
        ("foo.example", &given),
        ("a.bar.example", &given),
        ("b.bar.example", &own),
        ("elsewhere.example", &given),
        ("unknown.example", &default),
        ("localhost", &default),
    ] {
        assert_eq!(at(name).await, *want, "{name}");
    }
    let renewed = files.serving("own", &["foo.example", "*.bar.example"]);
    eventually(|| async { (at("b.bar.example").await == renewed).then_some(()) }).await;
    server.assert_well().await;
}

#[tokio::test]
async fn a_certificate_can_be_for_an_address() {
    let files = Files::new();
    let (default, here) = (files.serving("default", &["localhost"]), files.serving("here", &["127.0.0.1"]));
    // What stands behind the certificate in its file is trusted by the kubeconfig too.
    let read = |name: &str| std::fs::read_to_string(files.path(name)).expect("the file is there");
    files.write("default.crt", &(read("default.crt") + &read("here.crt")));
    let path = |name: &str| files.path(name).display().to_string();
    let flags = [
        format!("--tls-cert-file={}", path("default.crt")),
        format!("--tls-private-key-file={}", path("default.key")),
        format!("--tls-sni-cert-key={},{}:127.0.0.1", path("here.crt"), path("here.key")),
    ];
    let server = Server::start(&flags.each_ref().map(String::as_str)).await;
    assert_eq!(shown(&server).await, here, "for those who name nobody");
    let named = Handshake { name: "localhost", ..Handshake::default() }.with(&server).await.expect("both agree").0;
    assert_eq!(named, default);
}

#[tokio::test]
async fn versions_and_ciphers_can_be_chosen() {
    let tls12 = || Handshake { versions: vec![&version::TLS12], ..Handshake::default() };
    let server = Server::start(&["--tls-min-version=VersionTLS13"]).await;
    assert_eq!(tls12().with(&server).await, None);
    assert!(Handshake::default().with(&server).await.is_some());

    let suite = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256";
    let server = Server::start(&[&format!("--tls-cipher-suites={suite}")]).await;
    let (_, agreed) = tls12().with(&server).await.expect("there is one that both know");
    assert_eq!(agreed, suite);
    for (suites, agree) in [("AES_128_GCM", true), ("AES_256_GCM", false), ("CHACHA20", false)] {
        assert_eq!(Handshake { suites, ..tls12() }.with(&server).await.is_some(), agree, "{suites}");
        let newer = Handshake { suites, versions: vec![&version::TLS13], ..Handshake::default() };
        assert!(newer.with(&server).await.is_some(), "{suites}");
    }
}

#[test]
fn what_cannot_be_spoken_is_refused_with_a_sentence() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = format!("--data-dir={}", folder.path().display());
    for (flag, want) in [
        ("--tls-min-version=VersionTLS10", "TLS 1.0 and 1.1 are broken"),
        ("--tls-cipher-suites=TLS_RSA_WITH_AES_128_CBC_SHA", "it is weak"),
        ("--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "HTTP/2-required"),
        ("--tls-sni-cert-key=a.crt,a.key:", "empty names list is not allowed"),
        ("--strict-transport-security-directives=forever", "allowed values: max-age=expireTime"),
        ("--cors-allowed-origins=example.com", "does not pin to start/end of host"),
        ("--goaway-chance=0.5", "can not be less than 0 or greater than 0.02"),
    ] {
        let output = revisor(&["serve", "--secure-port=0", &data, flag]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{flag}: {said}");
        assert!(said.contains(want), "{flag}: {said}");
    }
}

#[tokio::test]
async fn browsers_are_told_to_come_back_encrypted() {
    let server = Server::start(&["--strict-transport-security-directives=max-age=31536000,includeSubDomains"]).await;
    let stranger = Client::new(server.kubeconfig.clone());
    for (client, path, code) in [
        (server.client(), CONFIG_MAPS, 200),
        (stranger.clone(), CONFIG_MAPS, 403),
        (stranger.with_token("wrong"), CONFIG_MAPS, 401),
        (server.client().over_http1(), "/nothing", 404),
    ] {
        let reply = client.get(path).await.expect(code);
        assert_eq!(reply.header("strict-transport-security"), Some("max-age=31536000; includeSubDomains"), "{path}");
    }
    let reply = Server::start(&[]).await.client().get("/version").await.expect(200);
    assert_eq!(reply.header("strict-transport-security"), None);
}

#[tokio::test]
async fn the_administrator_can_be_revoked_while_the_server_runs() {
    let server = Server::start(&[]).await;
    let admin = Client::new(server.kubeconfig.clone()).with_certificate();
    let made = admin.post(CONFIG_MAPS, &config_map("a", "1")).await.expect(201).version();
    let mut watch = admin.watch(CONFIG_MAPS, &format!("resourceVersion={made}")).await;
    let listed = credentials(&server, &["list"]);
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["state"], "valid");

    let revoked = credentials(&server, &["revoke", "admin"]);
    assert_eq!(revoked[0]["serial"], listed[0]["serial"]);
    // On a connection that is open, in what is under way there, and on new ones.
    until_answered(&admin, 401).await;
    assert!(watch.next().await.is_none(), "nothing more is told");
    for client in [&admin.apart(), &admin.clone().over_http1()] {
        client.get(CONFIG_MAPS).await.fails(401, "Unauthorized");
    }
    server.client().get(CONFIG_MAPS).await.expect(200);

    // Neither a restart brings it back.
    let server = server.restart_in_order().await;
    let admin = Client::new(server.kubeconfig.clone()).with_certificate();
    admin.get(CONFIG_MAPS).await.fails(401, "Unauthorized");
    assert_eq!(credentials(&server, &["list"])[0]["state"], "revoked");

    // Only a new one is let in.
    credentials(&server, &["renew"]);
    let renewed = || Client::new(Arc::new(Kubeconfig::read(&server.data().join("kubeconfig")))).with_certificate();
    renewed().get(CONFIG_MAPS).await.expect(200);
    admin.get(CONFIG_MAPS).await.fails(401, "Unauthorized");
    let states: Vec<Value> = credentials(&server, &["list"]).iter().map(|row| row["state"].clone()).collect();
    assert_eq!(json!(states), json!(["revoked", "valid"]));
}

#[tokio::test]
async fn a_renewal_of_the_administrator_leaves_copies_good_unless_told_otherwise() {
    let server = Server::start(&[]).await;
    let current = || Client::new(Arc::new(Kubeconfig::read(&server.data().join("kubeconfig")))).with_certificate();
    let first = current();
    assert_eq!(credentials(&server, &["renew"]).len(), 1);
    let second = current();
    for client in [&first, &second] {
        client.get(CONFIG_MAPS).await.expect(200);
    }
    assert_eq!(credentials(&server, &["renew", "--revoke-old"]).len(), 3);
    until_answered(&first, 401).await;
    second.get(CONFIG_MAPS).await.fails(401, "Unauthorized");
    current().get(CONFIG_MAPS).await.expect(200);
}
