//! `revisor import` and `revisor export`, and rehearsals on an etcd and its snapshots.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use revisor_etcd::messages::{PutRequest, Request, RequestOp, TxnRequest};
use revisor_etcd::{Client as EtcdClient, TlsFiles};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::client::Client;
use crate::custom::{DEFINITIONS, define, definition, objects, version};
use crate::harness::{Server, Stopped, within};
use crate::objects::{CONFIG_MAPS, config_map};
use crate::shared_etcd::Etcd;

const GROUP: &str = "moving.example";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const EVENTS: &str = "/api/v1/namespaces/default/events";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

/// Two ports, so that it shows whether those that are taken are known.
const PORTS: &str = "--service-node-port-range=30200-30201";

/// Runs a command of the program and answers its exit code, what it printed, and what it complained about.
async fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_revisor"));
    command.args(arguments).stdin(Stdio::null());
    let ended = within(tokio::task::spawn_blocking(move || command.output())).await;
    let output = ended.expect("does not panic").expect("the program can be started");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("a text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// The same of one that must succeed, which prints JSON.
async fn succeed(arguments: &[&str]) -> Value {
    let (code, printed, complaints) = run(&[arguments, &["-o", "json"]].concat()).await;
    assert_eq!(code, Some(0), "{printed}{complaints}");
    serde_json::from_str(&printed).expect("JSON is printed")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a text")
}

fn boats(maximum: u32) -> Value {
    let spec = json!({"type": "object", "properties": {"masts": {"type": "integer", "maximum": maximum}}});
    definition(GROUP, "boats", json!([version("v1", true, spec)]))
}

/// Objects of every form in which they are stored.
async fn fill(client: &Client) {
    client.post(CONFIG_MAPS, &config_map("x", "1")).await.expect(201);
    client.put(&format!("{CONFIG_MAPS}/x"), &config_map("x", "2")).await.expect(200);
    client.post(CONFIG_MAPS, &config_map("gone", "1")).await.expect(201);
    client.delete(&format!("{CONFIG_MAPS}/gone")).await.expect(200);
    client.post(SECRETS, &json!({"metadata": {"name": "s"}, "data": {"k": "dg=="}})).await.expect(201);
    client.post(SERVICES, &node_port("one")).await.expect(201);
    let event = json!({"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "namespace": "default"}});
    client.post(EVENTS, &event).await.expect(201);
    define(client, &boats(9)).await;
    let boat = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Boat", "metadata": {"name": "ship"}, "spec": {"masts": 3},
    });
    client.post(&objects(GROUP, "v1", "boats"), &boat).await.expect(201);
}

fn node_port(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}})
}

/// What a server shows of it, with resource versions or without.
async fn shown(client: &Client, has_versions: bool) -> Vec<Value> {
    let mut shown = Vec::new();
    let boats = objects(GROUP, "v1", "boats");
    for path in [CONFIG_MAPS, SECRETS, SERVICES, EVENTS, DEFINITIONS, &boats, "/api/v1/namespaces"] {
        let list = client.get(path).await.expect(200).json();
        let items = list["items"].as_array().expect("a list").clone();
        assert!(!items.is_empty(), "{path}");
        shown.extend(items);
    }
    if !has_versions {
        for object in &mut shown {
            object["metadata"].as_object_mut().expect("is one").remove("resourceVersion");
        }
    }
    shown
}

/// A server's folder once its objects are in it, and not in the etcd that it had them in.
async fn import(server: Server, source: &[&str]) -> (Stopped, Value) {
    let data = server.data();
    let (stopped, _) = server.terminate().await;
    let imported = succeed(&[&["import", "--data-dir", text(&data)], source].concat()).await;
    (stopped, imported)
}

/// A snapshot of an etcd, which is stopped for it: `etcdctl snapshot save` writes the same bytes.
fn snapshot(etcd: &mut Etcd) -> PathBuf {
    etcd.stop();
    let mut bytes = std::fs::read(etcd.folder.path().join("data/member/snap/db")).expect("etcd has a database");
    let hash = Sha256::digest(&bytes);
    bytes.extend_from_slice(&hash);
    let path = etcd.folder.path().join("snapshot.db");
    std::fs::write(&path, bytes).expect("a file can be written");
    path
}

#[tokio::test]
async fn a_cluster_moves_into_a_folder_and_into_another_etcd() {
    let etcd = Etcd::start().await;
    let server = etcd.serve(&[PORTS]).await;
    fill(&server.client()).await;
    let before = shown(&server.client(), true).await;
    let newest = server.client().get(CONFIG_MAPS).await.json()["metadata"]["resourceVersion"].clone();
    let newest: u64 = newest.as_str().and_then(|newest| newest.parse().ok()).expect("a number");

    // Into a folder, where everything is at the revision that it had.
    let (stopped, imported) = import(server, &["--etcd-servers", &etcd.url]).await;
    assert!(imported["revision"].as_u64() >= Some(newest), "{imported}");
    assert_eq!((&imported["newRevisions"], &imported["undecodable"]), (&json!(0), &json!([])), "{imported}");
    let server = stopped.with_flags(&[PORTS]).start().await;
    let client = server.client();
    assert_eq!(shown(&client, true).await, before);
    let mut watch = client.watch(CONFIG_MAPS, "resourceVersion=3").await;
    assert_eq!(watch.event().await.object["code"], 410, "what was before is gone");
    let made = client.post(CONFIG_MAPS, &config_map("later", "1")).await.expect(201);
    assert!(made.version() > newest, "resource versions go on");
    client.post(SERVICES, &node_port("two")).await.expect(201);
    assert!(client.post(SERVICES, &node_port("three")).await.code >= 400, "both ports are taken");
    let known = shown(&client, false).await;
    let folder = server.data();
    let (_stopped, _) = server.terminate().await;

    // Into another etcd, whose revisions are not older.
    let mut other = Etcd::start().await;
    let exporting = ["export", "--data-dir", text(&folder), "--etcd-servers", &other.url, PORTS];
    let (code, _, complaint) = run(&[&exporting[..], &["--max-padding=1"]].concat()).await;
    assert_eq!(code, Some(2));
    assert!(complaint.contains("--bump-revision"), "{complaint}");
    let exported = succeed(&exporting).await;
    assert!(exported["revision"].as_u64() > exported["folderRevision"].as_u64(), "{exported}");
    let (code, _, complaint) = run(&exporting).await;
    assert_eq!(code, Some(2));
    assert!(complaint.contains("--replace"), "{complaint}");
    let server = other.serve(&[PORTS]).await;
    let client = server.client();
    assert_eq!(shown(&client, false).await, known);
    assert!(client.post(SERVICES, &node_port("three")).await.code >= 400, "both ports are taken");
    let mut watch = client.watch(CONFIG_MAPS, &format!("resourceVersion={}", made.version())).await;
    assert_eq!(watch.event().await.object["code"], 410, "what the folder said is too old");
    server.terminate().await;
    let replaced = succeed(&[&exporting[..], &["--replace"]].concat()).await;
    assert_eq!(replaced["sha256"], exported["sha256"]);

    // What a snapshot of that holds is what was exported.
    let snapshot = snapshot(&mut other);
    let again = other.folder.path().join("again");
    let imported = succeed(&["import", "--snapshot", text(&snapshot), "--data-dir", text(&again)]).await;
    assert_eq!((&imported["sha256"], &imported["objects"]), (&exported["sha256"], &exported["objects"]));
}

#[tokio::test]
async fn what_is_encrypted_moves_with_its_keys() {
    let etcd = Etcd::start().await;
    let keys = etcd.folder.path().join("keys.yaml");
    let secret = "YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE=";
    let config = json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration",
        "resources": [{"resources": ["secrets"], "providers": [
            {"secretbox": {"keys": [{"name": "one", "secret": secret}]}}, {"identity": {}},
        ]}],
    });
    std::fs::write(&keys, config.to_string()).expect("a file can be written");
    let keys = format!("--encryption-provider-config={}", text(&keys));
    let server = etcd.serve(&[&keys, "--etcd-prefix=/one"]).await;
    server.client().post(SECRETS, &json!({"metadata": {"name": "s"}, "data": {"k": "dg=="}})).await.expect(201);
    server.terminate().await;

    let folder = etcd.folder.path().join("copy");
    let importing = ["import", "--etcd-servers", &etcd.url, "--etcd-prefix=/one", "--data-dir", text(&folder)];
    let (code, printed, _) = run(&importing).await;
    assert_eq!((code, printed.contains("/registry/secrets/default/s: ")), (Some(1), true), "{printed}");
    let imported = succeed(&[&importing[..], &[&keys]].concat()).await;
    // What an object is bound to by its encryption is its key, which is another one there.
    let exporting = ["export", "--etcd-servers", &etcd.url, "--etcd-prefix=/two", "--data-dir", text(&folder)];
    let (code, _, complaint) = run(&exporting).await;
    assert_eq!((code, complaint.contains("/registry/secrets/default/s")), (Some(2), true), "{complaint}");
    let exported = succeed(&[&exporting[..], &[&keys]].concat()).await;
    assert_eq!(exported["sha256"], imported["sha256"]);
    let server = etcd.serve(&[&keys, "--etcd-prefix=/two"]).await;
    let shown = server.client().get(&format!("{SECRETS}/s")).await.expect(200).json();
    assert_eq!(shown["data"]["k"], "dg==");
}

#[tokio::test]
async fn snapshots_and_etcds_are_rehearsed() {
    let mut etcd = Etcd::start().await;
    let server = etcd.serve(&[]).await;
    fill(&server.client()).await;
    server.terminate().await;
    let definitions = etcd.folder.path().join("boats.json");
    std::fs::write(&definitions, boats(2).to_string()).expect("a file can be written");
    let url = etcd.url.clone();
    let live = run(&["rehearse", "--etcd-servers", &url, "--definitions", text(&definitions), "-o", "json"]).await;
    let snapshot = snapshot(&mut etcd);
    let saved = ["rehearse", "--snapshot", text(&snapshot), "--definitions", text(&definitions), "-o", "json"];
    for (code, printed, complaints) in [live, run(&saved).await] {
        assert_eq!(code, Some(1), "{printed}{complaints}");
        let report: Value = serde_json::from_str(&printed).expect("JSON is printed");
        let found = report["findings"].as_array().expect("a list");
        assert_eq!(found.len(), 1, "{report}");
        assert_eq!((&found[0]["name"], &found[0]["effect"]), (&json!("ship"), &json!("refused")));
    }
    let (code, _, complaint) = run(&["rehearse", "--snapshot", text(&snapshot), "--data-dir", "x"]).await;
    assert_eq!(code, Some(2));
    assert!(complaint.contains("leave out the others"), "{complaint}");
}

#[tokio::test]
async fn what_cannot_be_read_is_named_and_nothing_is_made() {
    let mut etcd = Etcd::start().await;
    let server = etcd.serve(&[]).await;
    server.terminate().await;
    let client = EtcdClient::new(&[etcd.url.clone()], &TlsFiles::default()).expect("the URL is good");
    let put = |key: &'static [u8], value: &'static [u8]| {
        let put = PutRequest { key: key.into(), value: value.into(), lease: 0 };
        RequestOp { request: Some(Request::Put(put)) }
    };
    // Written together, so that two of them have one revision.
    let success = vec![
        put(b"/registry/configmaps/default/bad", b"k8s\0nonsense"),
        put(b"/registry/boats.example/boats/default/a", br#"{"metadata":{"name":"a","namespace":"default"}}"#),
        put(b"/registry/boats.example/boats/default/b", br#"{"metadata":{"name":"b","namespace":"default"}}"#),
    ];
    client.txn(&TxnRequest { success, ..TxnRequest::default() }).await.expect("can be written");
    let folder = etcd.folder.path().join("copy");
    let importing = ["import", "--data-dir", text(&folder), "--etcd-servers", &etcd.url.clone()];
    let (code, printed, _) = run(&importing).await;
    assert_eq!(code, Some(1));
    assert!(printed.contains("/registry/configmaps/default/bad: "), "{printed}");
    assert!(!folder.join("store").exists() && !folder.join("store.importing").exists());
    let imported = succeed(&[&importing[..], &["--skip-undecodable"]].concat()).await;
    assert_eq!(imported["undecodable"], json!(["/registry/configmaps/default/bad"]));
    assert_eq!(imported["newRevisions"], 1, "of two that shared a revision one keeps it");
    let (code, _, complaint) = run(&importing).await;
    assert_eq!(code, Some(2));
    assert!(complaint.contains("holds the objects of a server already"), "{complaint}");

    let snapshot = snapshot(&mut etcd);
    let mut bytes = std::fs::read(&snapshot).expect("was just written");
    let fresh = text(&etcd.folder.path().join("fresh")).to_owned();
    let refused = |why: &'static str, bytes: Vec<u8>| {
        let (path, fresh) = (snapshot.clone(), fresh.clone());
        async move {
            std::fs::write(&path, bytes).expect("a file can be written");
            let (code, _, complaint) = run(&["import", "--snapshot", text(&path), "--data-dir", &fresh]).await;
            assert_eq!(code, Some(2), "{why}");
            assert!(complaint.contains(why), "{complaint}");
            assert!(!Path::new(&fresh).exists(), "{why}");
        }
    };
    refused("it has no hash at its end", bytes[..bytes.len() - 7].to_vec()).await;
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    refused("its hash does not fit", bytes).await;
    refused("it has no hash at its end", b"something else".to_vec()).await;
    let (code, _, complaint) = run(&["import", "--data-dir", &fresh]).await;
    assert_eq!((code, complaint.contains("--snapshot")), (Some(2), true), "{complaint}");
}
