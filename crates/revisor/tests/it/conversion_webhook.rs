//! `revisor conversion-webhook`: Conversions in files, for a server that asks a webhook.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};

use crate::client::{Client, Kubeconfig, MERGE};
use crate::custom::{define, definition, objects, version};
use crate::harness::{Process, Server, eventually};

const GROUP: &str = "dock.example";
const KEPT: &str = "versioning.revisor.dev/kept";

fn cranes() -> Value {
    let old = json!({"type": "object", "properties": {
        "size": {"type": "integer"}, "timeoutSeconds": {"type": "integer", "minimum": 0, "maximum": 99999},
    }});
    let new = json!({"type": "object", "properties": {
        "count": {"type": "integer"}, "mode": {"type": "string"},
        "timeout": {"type": "string", "pattern": "^(0|[1-9][0-9]{0,4})s$", "maxLength": 6},
    }});
    definition(GROUP, "cranes", json!([version("v1", true, old), version("v2", false, new)]))
}

/// The rules, in which seconds become a text by this expression.
fn rules(forward: &str) -> Value {
    let compute = json!({
        "from": {"seconds": ".spec.timeoutSeconds"}, "to": {"text": ".spec.timeout"},
        "forward": {"text": forward}, "backward": {"seconds": "int(text.substring(0, text.size() - 1))"},
    });
    let rules = json!([{"move": {"from": ".spec.size", "to": ".spec.count"}}, {"compute": compute}]);
    json!({
        "apiVersion": "versioning.revisor.dev/v1alpha1", "kind": "Conversion",
        "metadata": {"name": "cranes.dock.example"},
        "spec": {"steps": [{"from": "v1", "to": "v2", "rules": rules}]},
    })
}

const SECONDS: &str = "string(seconds) + 's'";

fn crane(version: &str, name: &str, spec: Value) -> Value {
    let metadata = json!({"name": name, "namespace": "default"});
    json!({"apiVersion": format!("{GROUP}/{version}"), "kind": "Crane", "metadata": metadata, "spec": spec})
}

fn write(folder: &Path, name: &str, object: &Value) {
    std::fs::write(folder.join(name), object.to_string()).expect("a file can be written");
}

/// A folder with a definition and its Conversion.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("conversions")).expect("a folder can be made");
    write(folder.path(), "conversions/crd.json", &cranes());
    write(folder.path(), "conversions/rules.json", &rules(SECONDS));
    folder
}

fn arguments(folder: &Path, flags: &[&str]) -> Vec<String> {
    let (files, certificates) = (folder.join("conversions"), folder.join("certificates"));
    let own = ["conversion-webhook".to_owned(), "-f".to_owned(), files.display().to_string()];
    let folder = format!("--cert-dir={}", certificates.display());
    own.into_iter().chain([folder]).chain(flags.iter().map(|flag| (*flag).to_owned())).collect()
}

/// A webhook that serves.
struct Hook {
    process: Process,
    client: Client,
    url: String,
    folder: tempfile::TempDir,
}

impl Hook {
    async fn start(flags: &[&str]) -> Hook {
        let folder = folder();
        let flags = [&["--secure-port=0"], flags].concat();
        let mut process = Process::start(&arguments(folder.path(), &flags), &folder.path().join("log"));
        let url = process.first_line().await.trim().to_owned();
        let address = url.strip_prefix("https://").and_then(|rest| rest.strip_suffix("/convert"));
        let address: SocketAddr = address.and_then(|address| address.parse().ok()).expect("says where it is");
        let kubeconfig = Kubeconfig::of_authority(address, &authority(folder.path()));
        Hook { process, client: Client::new(Arc::new(kubeconfig)), url, folder }
    }

    fn files(&self) -> PathBuf {
        self.folder.path().join("conversions")
    }

    /// What is answered to a review.
    async fn review(&self, desired: &str, objects: &[Value]) -> Value {
        let request = json!({"uid": "u", "desiredAPIVersion": format!("{GROUP}/{desired}"), "objects": objects});
        let review = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request});
        let answer = self.client.post("/convert", &review).await.expect(200).json();
        assert_eq!(
            (&answer["kind"], &answer["response"]["uid"]),
            (&json!("ConversionReview"), &json!("u")),
            "{answer}"
        );
        answer["response"].clone()
    }

    async fn convert(&self, desired: &str, objects: &[Value]) -> Vec<Value> {
        let response = self.review(desired, objects).await;
        assert_eq!(response["result"], json!({"status": "Success"}), "{response}");
        response["convertedObjects"].as_array().expect("a list").clone()
    }
}

fn authority(folder: &Path) -> Vec<u8> {
    std::fs::read(folder.join("certificates/ca.crt")).expect("an authority")
}

/// Runs the program until it ends.
async fn run(folder: &Path, flags: &[&str]) -> (Option<i32>, String, String) {
    let log = tempfile::NamedTempFile::new().expect("a file");
    let mut process = Process::start(&arguments(folder, flags), log.path());
    let code = process.ended().await.code();
    let (out, err) = process.said();
    (code, out, err)
}

#[tokio::test]
async fn a_server_that_asks_it_shows_what_the_rules_say() {
    let hook = Hook::start(&[]).await;
    // The server is told of the webhook as an owner would tell it: with what --install prints.
    let (code, printed, err) = run(hook.folder.path(), &["--install", &format!("--url={}", hook.url)]).await;
    assert_eq!(code, Some(0), "{err}");
    let made: Value = serde_json::from_str(&printed).expect("one definition, as it was written");
    assert_eq!(made["spec"]["conversion"]["webhook"]["clientConfig"]["url"], hook.url);
    let server = Server::start(&[]).await;
    let client = server.client();
    define(&client, &made).await;
    let (v1, v2) = (objects(GROUP, "v1", "cranes"), objects(GROUP, "v2", "cranes"));

    let first = client.post(&v1, &crane("v1", "a", json!({"size": 1, "timeoutSeconds": 30}))).await.expect(201);
    let mut events = client.watch(&v2, &format!("resourceVersion={}", first.version() - 1)).await;
    let seen = events.expect("ADDED", "a", first.version()).await;
    assert_eq!(
        (&seen["apiVersion"], &seen["spec"]),
        (&json!("dock.example/v2"), &json!({"count": 1, "timeout": "30s"}))
    );
    client.post(&v2, &crane("v2", "b", json!({"count": 2, "timeout": "5s"}))).await.expect(201);
    let specs = |list: Value| -> Vec<Value> {
        list["items"].as_array().expect("a list").iter().map(|item| item["spec"].clone()).collect()
    };
    let (old, new) = (client.get(&v1).await.expect(200).json(), client.get(&v2).await.expect(200).json());
    assert_eq!(specs(old), [json!({"size": 1, "timeoutSeconds": 30}), json!({"size": 2, "timeoutSeconds": 5})]);
    assert_eq!(specs(new), [json!({"count": 1, "timeout": "30s"}), json!({"count": 2, "timeout": "5s"})]);
    client.patch(&format!("{v2}/a"), MERGE, &json!({"spec": {"timeout": "7s"}})).await.expect(200);
    let read = client.get(&format!("{v1}/a")).await.expect(200).json();
    assert_eq!(read["spec"], json!({"size": 1, "timeoutSeconds": 7}));
    assert_eq!(events.event().await.object["metadata"]["name"], "b");
    assert_eq!(events.event().await.object["spec"]["timeout"], "7s");

    let metrics = hook.client.get("/metrics").await.expect(200);
    let metrics = String::from_utf8_lossy(&metrics.body).into_owned();
    for series in [
        r#"revisor_webhook_objects_total{definition="cranes.dock.example",from="v1",to="v2"}"#,
        r#"revisor_webhook_objects_total{definition="cranes.dock.example",from="v2",to="v1"}"#,
        r#"revisor_webhook_review_seconds_count{definition="cranes.dock.example",to="v2"}"#,
        "revisor_webhook_definitions 1",
    ] {
        assert!(metrics.contains(series), "{series} in {metrics}");
    }
}

/// What one version cannot say is there again in the one that can, whether a webhook or the server itself converts by the
/// rules; and nobody is shown where it is kept.
#[tokio::test]
async fn what_is_kept_is_the_same_by_webhook_and_by_rules() {
    let hook = Hook::start(&[]).await;
    let (_, printed, _) = run(hook.folder.path(), &["--install", &format!("--url={}", hook.url)]).await;
    let by_webhook: Value = serde_json::from_str(&printed).expect("one definition, as it was written");
    let mut stories = Vec::new();
    for by_rules in [false, true] {
        let server = Server::start(&[]).await;
        let client = server.client();
        let mut defined = by_webhook.clone();
        if by_rules {
            defined["spec"].as_object_mut().expect("has a spec").remove("conversion");
        }
        define(&client, &defined).await;
        if by_rules {
            client.post("/apis/versioning.revisor.dev/v1alpha1/conversions", &rules(SECONDS)).await.expect(201);
        }
        stories.push(story(&client).await);
    }
    assert_eq!(stories[0], stories[1]);
    assert_eq!(stories[0].len(), 16);
}

/// What clients of both versions see of an object while it is written through either.
async fn story(client: &Client) -> Vec<Value> {
    let (v1, v2) = (objects(GROUP, "v1", "cranes"), objects(GROUP, "v2", "cranes"));
    let mut seen = Vec::new();
    let mut note = |reply: crate::client::Reply, code: u16| {
        let mut object = reply.expect(code).json();
        assert!(!object.to_string().contains(KEPT), "{object}");
        let metadata = object["metadata"].as_object_mut().expect("has metadata");
        metadata.retain(|name, _| ["labels", "annotations", "generation", "name"].contains(&name.as_str()));
        seen.push(object);
    };
    let all = json!({"count": 1, "timeout": "5s", "mode": "fast"});
    let mut made = crane("v2", "a", all);
    made["metadata"]["annotations"] = json!({KEPT: "{}", "mine": "1"});
    note(client.post(&v2, &made).await, 201);
    note(client.get(&format!("{v1}/a")).await, 200);
    note(client.get(&format!("{v2}/a")).await, 200);
    // Through the version that cannot say it.
    note(client.patch(&format!("{v1}/a"), MERGE, &json!({"spec": {"size": 2}})).await, 200);
    note(client.get(&format!("{v2}/a")).await, 200);
    // Through the one that can, without a word about it, and with one.
    note(client.patch(&format!("{v2}/a"), MERGE, &json!({"spec": {"timeout": "6s"}})).await, 200);
    note(client.get(&format!("{v1}/a")).await, 200);
    note(client.patch(&format!("{v2}/a"), MERGE, &json!({"spec": {"mode": "slow"}})).await, 200);
    note(client.patch(&format!("{v2}/a"), MERGE, &json!({"metadata": {"annotations": {KEPT: "x"}}})).await, 200);
    note(client.get(&format!("{v2}/a")).await, 200);
    let whole = client.get(&format!("{v1}/a")).await.expect(200).json();
    note(client.put(&format!("{v1}/a"), &whole).await, 200);
    note(client.get(&format!("{v2}/a")).await, 200);
    let applied = crane("v2", "a", json!({"count": 9}));
    let path = format!("{v2}/a?fieldManager=other&force=true");
    note(client.patch(&path, crate::client::APPLY, &applied).await, 200);
    note(client.get(&format!("{v1}/a")).await, 200);
    note(client.patch(&format!("{v2}/a"), MERGE, &json!({"spec": {"mode": null}})).await, 200);
    note(client.get(&format!("{v2}/a")).await, 200);
    seen
}

#[tokio::test]
async fn lists_are_converted_and_what_cannot_be_said_travels_along() {
    let hook = Hook::start(&[]).await;
    let count = 1000;
    let of = |n: i32| {
        crane("v2", &format!("c{n}"), json!({"count": n, "timeout": format!("{n}s"), "mode": format!("m{n}")}))
    };
    let all: Vec<Value> = (0..count).map(of).collect();
    let mut there = hook.convert("v1", &all).await;
    for (n, crane) in there.iter_mut().enumerate() {
        assert_eq!(crane["spec"], json!({"size": n, "timeoutSeconds": n}));
        assert!(crane["metadata"]["annotations"][KEPT].is_string(), "{crane}");
        crane["spec"]["size"] = json!(n + 1);
    }
    let back = hook.convert("v2", &there).await;
    for (n, (crane, before)) in back.iter().zip(&all).enumerate() {
        assert_eq!(
            crane["spec"],
            json!({"count": n + 1, "timeout": before["spec"]["timeout"], "mode": before["spec"]["mode"]})
        );
    }
}

#[tokio::test]
async fn bad_input_is_answered_and_hurts_nobody() {
    let hook = Hook::start(&["--max-review-bytes=65536"]).await;
    let client = &hook.client;
    let json = [("content-type", "application/json")];
    for (body, told) in [
        ("{", "no JSON"),
        ("[1]", "no ConversionReview"),
        (r#"{"apiVersion":"v1","kind":"Pod"}"#, "no ConversionReview of apiextensions.k8s.io/v1"),
        (
            r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u"}}"#,
            "desiredAPIVersion",
        ),
    ] {
        let status = client.send(Method::POST, "/convert", &json, body).await.fails(400, "BadRequest");
        assert!(status["message"].as_str().unwrap_or_default().contains(told), "{told}: {status}");
    }
    let large = "x".repeat(65537);
    client.send(Method::POST, "/convert", &json, large).await.fails(413, "RequestEntityTooLarge");
    assert_eq!(client.get("/convert").await.expect(405).header("allow"), Some("POST"));
    client.get("/elsewhere").await.fails(404, "NotFound");
    let good = crane("v1", "a", serde_json::json!({"size": 1}));
    let other = serde_json::json!({"apiVersion": "dock.example/v1", "kind": "Other", "metadata": {"name": "x"}});
    let odd = crane("v2", "odd", serde_json::json!({"timeout": "soon"}));
    for (desired, objects, told) in [
        ("v9", vec![good.clone()], "cranes.dock.example has no version \"dock.example/v9\""),
        ("v2", vec![good.clone(), other], "Other x: no definition of its kind is known here"),
        ("v1", vec![odd], "Crane default/odd: spec.steps[0].rules[1]: "),
    ] {
        let response = hook.review(desired, &objects).await;
        let message = response["result"]["message"].as_str().unwrap_or_default();
        assert_eq!(
            (&response["result"]["status"], &response["convertedObjects"]),
            (&"Failure".into(), &Value::Array(vec![]))
        );
        assert!(message.contains(told), "{told}: {message}");
    }
    assert_eq!(hook.convert("v2", &[good]).await[0]["spec"]["count"], 1);
    for path in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(client.get(path).await.expect(200).text(), "ok", "{path}");
    }
    let mut process = hook.process;
    process.signal("TERM");
    assert!(process.ended().await.success());
}

#[tokio::test]
async fn files_that_change_are_read_again_and_broken_ones_change_nothing() {
    let hook = Hook::start(&["--watch"]).await;
    let old = [crane("v1", "a", json!({"size": 1, "timeoutSeconds": 8}))];
    assert_eq!(hook.convert("v2", &old).await[0]["spec"]["timeout"], "8s");
    let alarm = || async { hook.client.get("/readyz/conversions").await.expect(200).text() };
    assert_eq!(alarm().await, "ok");

    // Every second is lost.
    write(&hook.files(), "rules.json", &rules("string(seconds / 2 * 2) + 's'"));
    let told = eventually(|| async { Some(alarm().await).filter(|told| told != "ok") }).await;
    assert!(told.contains("spec.steps[0].rules[1]: L1: ") && told.contains("\nobject: "), "{told}");
    assert!(hook.process.log().contains("the rules stay as they are"));
    assert_eq!(hook.convert("v2", &old).await[0]["spec"]["timeout"], "8s");
    hook.client.get("/readyz").await.expect(200);

    std::fs::write(hook.files().join("rules.json"), "{").expect("a file can be written");
    eventually(|| async { alarm().await.contains("rules.json, document 1").then_some(()) }).await;

    let mut renamed = rules(SECONDS);
    renamed["spec"]["steps"][0]["rules"][0] = json!({"add": {"path": ".spec.count", "value": 5}});
    write(&hook.files(), "rules.json", &renamed);
    eventually(|| async { (alarm().await == "ok").then_some(()) }).await;
    assert_eq!(hook.convert("v2", &old).await[0]["spec"], json!({"count": 5, "timeout": "8s"}));
}

#[tokio::test]
async fn what_must_not_be_used_is_refused_at_the_start_and_what_is_needed_is_written() {
    let folder = folder();
    let crd = folder.path().join("conversions/crd.yaml");
    std::fs::remove_file(folder.path().join("conversions/crd.json")).expect("is there");
    std::fs::write(&crd, format!("# ours\n---\n{}\n", cranes())).expect("a file can be written");
    write(folder.path(), "conversions/rules.json", &rules("string(seconds / 2 * 2) + 's'"));
    let (code, out, err) = run(folder.path(), &[]).await;
    assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
    assert!(err.contains("rules.json, document 1") && err.contains("spec.steps[0].rules[1]: L1: "), "{err}");

    write(folder.path(), "conversions/rules.json", &rules(SECONDS));
    let (code, _, err) = run(folder.path(), &["--install", "--bind-address=0.0.0.0"]).await;
    assert!(code == Some(1) && err.contains("--url or --service"), "{err}");
    let flags = ["--install", "--apply", "--service=apps/hook:8443"];
    let (code, out, err) = run(folder.path(), &flags).await;
    assert_eq!((code, out), (Some(0), format!("{} written\n", crd.display())), "{err}");
    let written = std::fs::read_to_string(&crd).expect("is there");
    let made: Value =
        serde_json::from_str(written.strip_prefix("# ours\n---\n").expect("the head stays")).expect("JSON");
    let config = &made["spec"]["conversion"]["webhook"]["clientConfig"];
    assert_eq!(config["service"], json!({"namespace": "apps", "name": "hook", "path": "/convert", "port": 8443}));
    use base64::Engine;
    let bundle = base64::engine::general_purpose::STANDARD.decode(config["caBundle"].as_str().expect("a text"));
    assert_eq!(bundle.expect("base64"), authority(folder.path()));
    let (code, out, err) = run(folder.path(), &flags).await;
    assert_eq!((code, out.as_str()), (Some(0), ""), "nothing is new: {err}");
}
