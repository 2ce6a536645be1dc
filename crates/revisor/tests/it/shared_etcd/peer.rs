//! [`Peer`]: the server beside ours, a genuine kube-apiserver where the caller has one (`REVISOR_PEER`), or else another one
//! of ours.

use std::fs::File;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};
use tempfile::TempDir;

use super::etcd::{Etcd, spare};
use crate::client::{Client, Kubeconfig};
use crate::harness::{ADMIN_TOKEN, Server, eventually};

pub(super) enum Peer {
    Ours(Box<Server>),
    Genuine(Genuine),
}

pub(super) struct Genuine {
    process: Child,
    client: Client,
    _folder: TempDir,
}

impl Peer {
    pub(super) async fn start(etcd: &Etcd) -> Peer {
        match std::env::var_os("REVISOR_PEER") {
            Some(program) => Peer::Genuine(Genuine::start(program.into(), etcd).await),
            None => Peer::Ours(Box::new(etcd.serve(&[]).await)),
        }
    }

    pub(super) fn client(&self) -> Client {
        match self {
            Peer::Ours(server) => server.client(),
            Peer::Genuine(genuine) => genuine.client.clone(),
        }
    }
}

impl Genuine {
    async fn start(program: PathBuf, etcd: &Etcd) -> Genuine {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let address: SocketAddr = spare();
        let at = |name: &str| folder.path().join(name);
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("a key");
        let tokens = format!("{ADMIN_TOKEN},admin,1,\"system:masters\"\n");
        let keys = [("key.pem", key.serialize_pem()), ("public.pem", key.public_key_pem())];
        for (name, text) in keys.into_iter().chain([("tokens.csv", tokens)]) {
            std::fs::write(at(name), text).expect("a file can be written");
            let private = std::fs::Permissions::from_mode(0o600);
            std::fs::set_permissions(at(name), private).expect("permissions can be set");
        }
        let log = File::create(at("log")).expect("a file can be made");
        let flag = |name: &str, value: String| format!("--{name}={value}");
        let path = |name: &str| at(name).display().to_string();
        let process = Command::new(program)
            .args([
                flag("etcd-servers", etcd.url.clone()),
                flag("bind-address", address.ip().to_string()),
                flag("secure-port", address.port().to_string()),
                flag("cert-dir", path("certificates")),
                flag("token-auth-file", path("tokens.csv")),
                flag("service-account-key-file", path("public.pem")),
                flag("service-account-signing-key-file", path("key.pem")),
            ])
            .args([
                "--service-account-issuer=https://kubernetes.default.svc",
                "--service-cluster-ip-range=10.0.0.0/24",
                "--authorization-mode=RBAC",
                "--endpoint-reconciler-type=none",
                "--disable-admission-plugins=ServiceAccount",
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the other server can be started");
        let certificate = at("certificates").join("apiserver.crt");
        let authority =
            eventually(|| std::future::ready(std::fs::read(&certificate).ok().filter(|pem| !pem.is_empty())));
        let kubeconfig = Arc::new(Kubeconfig::of_authority(address, &authority.await));
        let client = Client::new(kubeconfig).with_token(ADMIN_TOKEN);
        let genuine = Genuine { process, client: client.clone(), _folder: folder };
        eventually(|| async {
            let reply = client.try_send(http::Method::GET, "/readyz", &[], "").await.ok()?;
            (reply.code == 200).then_some(())
        })
        .await;
        genuine
    }
}

impl Drop for Genuine {
    fn drop(&mut self) {
        // It may have ended by itself, which is as good.
        let _ = self.process.kill();
        self.process.wait().expect("a child can be waited for");
    }
}
