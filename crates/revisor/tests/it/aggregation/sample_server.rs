//! A real extension API server behind the program: upstream's sample, on an etcd of its own. It takes whom to trust from
//! this server, asks it who may, and reads namespaces, webhooks and policies there.
//!
//! `REVISOR_EXTENSION` names it; if it is unset, `cargo xtask extension` provides one.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::{SERVICES, flag, place_service};
use crate::behind::Authority;
use crate::harness::{GUEST_TOKEN, Server, eventually};
use crate::kubectl;
use crate::shared_etcd::{Etcd, spare};
use crate::xtask;

const FLUNDERS: &str = "/apis/wardle.example.com/v1alpha1/namespaces/default/flunders";

/// The sample server, which goes with its test.
struct Sample(Child);

impl Sample {
    fn start(front: &Server, authority: &Authority, etcd: &Etcd, port: u16) -> Sample {
        let binary = std::env::var_os("REVISOR_EXTENSION").map_or_else(|| xtask::path_of("extension"), PathBuf::from);
        let (certificate, key) = authority.certificate("sample", &["ext.default.svc"]);
        let kubeconfig = front.data().join("kubeconfig");
        let log = std::fs::File::create(etcd.folder.path().join("sample.log")).expect("a file");
        let process = Command::new(binary)
            .args(
                ["", "authentication-", "authorization-"].map(|whose| flag(&format!("{whose}kubeconfig"), &kubeconfig)),
            )
            .arg(format!("--etcd-servers={}", etcd.url))
            .args(["--bind-address=127.0.0.1".to_owned(), format!("--secure-port={port}")])
            .args([flag("tls-cert-file", &certificate), flag("tls-private-key-file", &key)])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        Sample(process.expect("the sample server can be started"))
    }
}

impl Drop for Sample {
    fn drop(&mut self) {
        // It may have ended by itself, which is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_real_extension_server_serves_a_group() {
    let authority = Authority::new("front");
    let (certificate, key) = authority.certificate("front-proxy", &[]);
    let (front, kubectl) = kubectl::start(&[
        &flag("proxy-client-cert-file", &certificate),
        &flag("proxy-client-key-file", &key),
        &flag("requestheader-client-ca-file", &authority.file()),
        "--requestheader-allowed-names=front-proxy",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-uid-headers=X-Remote-Uid",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
    ])
    .await;
    let client = front.client();
    let etcd = Etcd::start().await;
    let port = spare().port();
    let _sample = Sample::start(&front, &authority, &etcd, port);
    place_service(&client).await;
    let registration = json!({
        "metadata": {"name": "v1alpha1.wardle.example.com"},
        "spec": {
            "group": "wardle.example.com", "version": "v1alpha1", "groupPriorityMinimum": 1000, "versionPriority": 15,
            "caBundle": STANDARD.encode(&authority.pem),
            "service": {"namespace": "default", "name": "ext", "port": port},
        },
    });
    client.post(SERVICES, &registration).await.expect(201);
    let is_found = || async { kubectl.ok("api-resources").await.contains("wardle.example.com/v1alpha1").then_some(()) };
    eventually(is_found).await;
    eventually(|| async { (client.get(FLUNDERS).await.code == 200).then_some(()) }).await;

    // It is used like any other, in protobuf and JSON, with watches, patches, applies, tables and what it explains.
    let mut watch = client.watch(FLUNDERS, "").await;
    let flunder = json!({
        "apiVersion": "wardle.example.com/v1alpha1", "kind": "Flunder",
        "metadata": {"name": "f", "labels": {"a": "b"}}, "spec": {"reference": "other"},
    });
    kubectl.ok_with("create -f -", &flunder.to_string()).await;
    assert_eq!(watch.event().await.facts().1, "f");
    let patched = kubectl.ok(r#"patch flunder f --type=merge -p '{"spec":{"reference":"another"}}'"#).await;
    assert!(patched.contains("flunder.wardle.example.com/f patched"), "{patched}");
    kubectl.ok_with("apply --server-side --force-conflicts -f -", &flunder.to_string()).await;
    let explained = kubectl.ok("explain flunder.spec").await;
    assert!(explained.contains("reference"), "{explained}");
    let table = kubectl.squeezed("get flunders").await;
    assert!(table.starts_with("NAME CREATED AT\nf "), "{table}");
    // Its own admission has its say.
    let (banned, mut bad) = (json!({"metadata": {"name": "x"}, "disallowedFlunders": ["bad"]}), flunder.clone());
    client.post("/apis/wardle.example.com/v1alpha1/fischers", &banned).await.expect(201);
    bad["metadata"]["name"] = json!("bad");
    let is_refused =
        || async { (client.post(&format!("{FLUNDERS}?dryRun=All"), &bad).await.code == 403).then_some(()) };
    eventually(is_refused).await;
    // Who may is asked here, of whom this server names.
    client.with_token(GUEST_TOKEN).get(FLUNDERS).await.fails(403, "Forbidden");
    kubectl.ok("delete flunder f").await;
    front.assert_well().await;
}
