//! The program by the names `etcd` and `kube-apiserver`, started as controller-runtime's envtest starts them.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{Client, Kubeconfig};
use crate::harness::{eventually, within};

/// A program that ends with its test.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Program {
    /// Sends SIGTERM and waits; how long it took.
    async fn stop(mut self) -> Duration {
        let begun = Instant::now();
        let sent = Command::new("kill").arg("-TERM").arg(self.0.id().to_string()).status();
        assert!(sent.expect("there is a kill command").success());
        eventually(|| std::future::ready(self.0.try_wait().expect("a child can be asked"))).await;
        begun.elapsed()
    }
}

/// A folder as `KUBEBUILDER_ASSETS`.
struct Assets(TempDir);

impl Assets {
    fn install() -> Assets {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let installed = revisor(&["envtest", "install", folder.path().to_str().expect("a text")]);
        assert!(installed.status.success(), "{installed:?}");
        let line = format!("export KUBEBUILDER_ASSETS='{}'\n", folder.path().display());
        assert_eq!(String::from_utf8_lossy(&installed.stdout), line);
        Assets(folder)
    }

    fn program(&self, name: &str) -> Command {
        Command::new(self.0.path().join(name))
    }

    fn output(&self, name: &str, arguments: &[&str]) -> Output {
        self.program(name).args(arguments).output().expect("the link leads to a program")
    }

    fn start(&self, name: &str, arguments: &[String], log: &Path) -> Program {
        let log = std::fs::File::create(log).expect("a log can be written");
        let mut command = self.program(name);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        Program(command.spawn().expect("the link leads to a program"))
    }
}

fn revisor(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_revisor")).args(arguments).output().expect("the binary can be started")
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port()
}

/// What a plain HTTP server answers.
async fn ask(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    Some(answer)
}

/// A control plane as envtest makes one.
struct ControlPlane {
    folder: TempDir,
    etcd: Program,
    apiserver: Program,
    admin: Client,
    anonymous: Client,
}

/// The authority, the certificates and the keys that envtest writes.
fn write_certificates(folder: &Path) -> (String, Issuer<'static, KeyPair>) {
    let key = || KeyPair::generate().expect("keys can be made");
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "envtest-environment");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = key();
    let authority = params.self_signed(&authority_key).expect("certificates can be made").pem();
    let issuer = Issuer::new(params, authority_key);
    let serving_key = key();
    let serving = CertificateParams::new(["localhost".to_owned(), "127.0.0.1".to_owned()]).expect("good names");
    let serving = serving.signed_by(&serving_key, &issuer).expect("certificates can be issued");
    let signer_key = key();
    let signer = CertificateParams::default().self_signed(&signer_key).expect("certificates can be made");
    for (name, text) in [
        ("apiserver.crt", serving.pem()),
        ("apiserver.key", serving_key.serialize_pem()),
        ("sa-signer.crt", signer.pem()),
        ("sa-signer.key", signer_key.serialize_pem()),
        ("client-cert-auth-ca.crt", authority.clone()),
    ] {
        std::fs::write(folder.join(name), text).expect("a file can be written");
    }
    (authority, issuer)
}

impl ControlPlane {
    async fn start(assets: &Assets, more: &[&str]) -> ControlPlane {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = |name: &str| -> PathBuf { folder.path().join(name) };
        let certificates = path("certs");
        std::fs::create_dir(&certificates).expect("a folder can be made");
        let (authority, issuer) = write_certificates(&certificates);
        let (etcd_port, port) = (free_port(), free_port());
        let url = format!("http://127.0.0.1:{etcd_port}");
        let etcd = assets.start(
            "etcd",
            &[
                format!("--advertise-client-urls={url}"),
                format!("--listen-client-urls={url}"),
                format!("--data-dir={}", path("etcd").display()),
                "--listen-peer-urls=http://localhost:0".to_owned(),
                "--unsafe-no-fsync=true".to_owned(),
            ],
            &path("etcd.log"),
        );
        let health = eventually(|| async { ask(etcd_port, "/health").await }).await;
        assert!(health.starts_with("HTTP/1.1 200") && health.contains("\"health\":\"true\""), "{health}");
        let file = |name: &str| certificates.join(name).display().to_string();
        let mut arguments = vec![
            "--allow-privileged=true".to_owned(),
            "--authorization-mode=RBAC".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--cert-dir={}", certificates.display()),
            format!("--client-ca-file={}", file("client-cert-auth-ca.crt")),
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            format!("--etcd-servers={url}"),
            format!("--secure-port={port}"),
            "--service-account-issuer=https://127.0.0.1/".to_owned(),
            format!("--service-account-key-file={}", file("sa-signer.crt")),
            format!("--service-account-signing-key-file={}", file("sa-signer.key")),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        ];
        arguments.extend(more.iter().map(|flag| (*flag).to_owned()));
        let apiserver = assets.start("kube-apiserver", &arguments, &path("apiserver.log"));

        let address = ([127, 0, 0, 1], port).into();
        let reached = Kubeconfig::of_authority(address, authority.as_bytes());
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "admin");
        params.distinguished_name.push(DnType::OrganizationName, "system:masters");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().expect("keys can be made");
        let certificate = params.signed_by(&key, &issuer).expect("certificates can be issued").der().clone();
        let admin = Client::new(Arc::new(reached.identified_by(certificate, key.into()))).with_certificate();
        let anonymous = Client::new(Arc::new(reached));
        let asks = || async {
            let answer = anonymous.try_send(http::Method::GET, "/healthz", &[], "").await.ok()?;
            (answer.code == 200).then_some(())
        };
        eventually(asks).await;
        ControlPlane { folder, etcd, apiserver, admin, anonymous }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("apiserver.log")).unwrap_or_default()
    }
}

#[tokio::test]
async fn a_control_plane_starts_serves_and_stops_as_envtest_wants_it() {
    let assets = Assets::install();
    // Several at once, as test suites run them.
    let (one, other) = tokio::join!(
        ControlPlane::start(&assets, &["--livez-grace-period=1s", "--apiserver-count=1", "--v=2"]),
        ControlPlane::start(&assets, &["--emulated-version=1.34"]),
    );
    for plane in [&one, &other] {
        plane.anonymous.get("/healthz").await.expect(200);
        plane.anonymous.get("/api/v1/namespaces").await.fails(403, "Forbidden");
        plane.admin.get("/api/v1/namespaces/default").await.expect(200);
    }
    assert_eq!(other.admin.get("/version").await.expect(200).json()["emulationMinor"], "34");
    let log = one.log();
    assert!(log.contains("Flag --apiserver-count has been deprecated"), "{log}");
    assert!(log.contains("livez-grace-period"), "{log}");

    // Pods need no account, because the plugin is off; tokens are checked with the key of a certificate.
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    one.admin.post("/api/v1/namespaces/default/pods", &pod).await.expect(201);
    let account = json!({"metadata": {"name": "robot"}});
    one.admin.post("/api/v1/namespaces/default/serviceaccounts", &account).await.expect(201);
    let request = json!({"spec": {"audiences": ["https://127.0.0.1/"]}});
    let path = "/api/v1/namespaces/default/serviceaccounts/robot/token";
    let token = one.admin.post(path, &request).await.expect(201).json();
    let robot = one.anonymous.clone().with_token(token["status"]["token"].as_str().expect("a token"));
    let who = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let who = robot.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &who).await.expect(201).json();
    assert_eq!(who["status"]["userInfo"]["username"], "system:serviceaccount:default:robot");

    // With watches open, a stop takes less than a second, and the state stays in the folder of etcd.
    let _pods = one.admin.watch("/api/v1/namespaces/default/pods", "").await;
    let _namespaces = one.admin.apart().watch("/api/v1/namespaces", "allowWatchBookmarks=true").await;
    let ControlPlane { folder, etcd, apiserver, .. } = one;
    let took = apiserver.stop().await;
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert!(folder.path().join("etcd/revisor/store").is_dir());
    etcd.stop().await;
    within(other.apiserver.stop()).await;
}

#[tokio::test]
async fn programs_tell_of_themselves_as_tools_ask_them() {
    let assets = Assets::install();
    let text = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    for (name, flag) in [("kube-apiserver", "--etcd-servers"), ("etcd", "--unsafe-no-fsync")] {
        let help = assets.output(name, &["--help"]);
        assert!(help.status.success(), "{help:?}");
        assert!(text(&help).lines().any(|line| line.trim_start().starts_with(flag)), "{name}");
    }
    let version = assets.output("kube-apiserver", &["--version"]);
    assert!(text(&version).starts_with("Kubernetes v1.36."), "{version:?}");
    for (name, arguments, code, want) in [
        ("kube-apiserver", vec!["--foo"], 1, "Error: unknown flag: --foo\n"),
        ("kube-apiserver", vec![], 1, "Error: --etcd-servers must be specified\n"),
        ("etcd", vec!["--foo=1"], 2, "flag provided but not defined: -foo\nSee 'etcd --help'.\n"),
    ] {
        let refused = assets.output(name, &arguments);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!((refused.status.code(), &*said), (Some(code), want), "{name} {arguments:?}");
    }
    let folder = assets.0.path().to_str().expect("a text");
    let env = revisor(&["envtest", "env", folder]);
    assert_eq!(text(&env), format!("export KUBEBUILDER_ASSETS='{folder}'\n"));
    let older = revisor(&["envtest", "install", folder, "--release=1.33"]);
    assert!(text(&older).contains("/k8s/1.33.0-linux-"), "{older:?}");
    let line = text(&older);
    let path = line.trim().trim_start_matches("export KUBEBUILDER_ASSETS='").trim_end_matches('\'');
    let version = Command::new(Path::new(path).join("kube-apiserver")).arg("--version").output().expect("is there");
    assert_eq!(text(&version), "Kubernetes v1.33.0\n");
    let flags = revisor(&["flags", "-o", "json"]);
    let flags: serde_json::Value = serde_json::from_slice(&flags.stdout).expect("is JSON");
    let rows = flags.as_array().expect("a list");
    assert!(rows.len() > 170);
    let effect = |name: &str| rows.iter().find(|row| row["name"] == name).expect(name)["effect"].clone();
    assert_eq!(effect("secure-port"), "as in kube-apiserver");
    assert!(effect("allow-metric-labels").as_str().is_some_and(|effect| effect.starts_with("none: ")));
}
