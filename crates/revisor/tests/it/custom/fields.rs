//! How the fields of each version are used, and by whom.

use std::collections::BTreeMap;

use http::Method;
use serde_json::{Value, json};

use super::converter::Converter;
use super::{define, definition, objects, version};
use crate::client::{Client, MERGE};
use crate::harness::{GUEST_TOKEN, Server};

const GROUP: &str = "loom.example";
const FIELDS: &str = "/apis/versioning.revisor.dev/v1alpha1/versionreports/looms.loom.example/fields";
const CONVERSIONS: &str = "/apis/versioning.revisor.dev/v1alpha1/conversions";

fn looms() -> Value {
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer"}));
    let thread = json!({"type": "object", "properties": {"name": text, "colour": text}});
    let mut threads = json!({"type": "array", "items": thread, "x-kubernetes-list-type": "map"});
    threads["x-kubernetes-list-map-keys"] = json!(["name"]);
    threads["items"]["required"] = json!(["name"]);
    let old = json!({"type": "object", "properties": {"size": number, "old": text, "threads": threads}});
    let new = json!({"type": "object", "properties": {"count": number, "mode": text, "threads": threads}});
    let mut unserved = version("v3", false, new.clone());
    unserved["served"] = json!(false);
    definition(GROUP, "looms", json!([version("v1", true, old), version("v2", false, new), unserved]))
}

async fn make(client: &Client, version: &str, name: &str, manager: &str, spec: Value) -> Value {
    let path = format!("{}?fieldManager={manager}", objects(GROUP, version, "looms"));
    let api_version = format!("{GROUP}/{version}");
    let loom = json!({"apiVersion": api_version, "kind": "Loom", "metadata": {"name": name}, "spec": spec});
    client.post(&path, &loom).await.expect(201).json()
}

/// How many objects set a field of a version, and who manages it.
fn uses(body: &Value) -> BTreeMap<(String, String), (u64, Vec<String>)> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let mut uses = BTreeMap::new();
    for version in body["versions"].as_array().expect("versions") {
        for field in version["fields"].as_array().expect("fields") {
            let managers = field["managers"].as_array().expect("managers").iter();
            let managers = managers.map(|manager| text(&manager["manager"])).collect();
            let objects = field["objects"].as_u64().expect("a number");
            uses.insert((text(&version["name"]), text(&field["path"])), (objects, managers));
        }
    }
    uses
}

#[tokio::test]
async fn fields_are_counted_in_the_shape_of_each_version() {
    let server = Server::start(&[]).await;
    let client = server.client();
    define(&client, &looms()).await;
    let steps = json!([{"from": "v1", "to": "v2", "rules": [{"move": {"from": ".spec.size", "to": ".spec.count"}}]}]);
    let conversion = json!({
        "apiVersion": "versioning.revisor.dev/v1alpha1",
        "kind": "Conversion",
        "metadata": {"name": format!("looms.{GROUP}")},
        "spec": {"steps": steps},
    });
    client.post(CONVERSIONS, &conversion).await.expect(201);
    make(&client, "v1", "a", "ada", json!({"size": 1, "old": "o", "threads": [{"name": "x"}, {"name": "y"}]})).await;
    make(&client, "v1", "b", "ada", json!({"size": 2})).await;
    let made = make(&client, "v2", "c", "bob", json!({"mode": "m"})).await;
    let reply = client.get(FIELDS).await.expect(200);
    let body = reply.json();
    assert_eq!(
        (&body["kind"], &body["apiVersion"]),
        (&json!("VersionFields"), &json!("versioning.revisor.dev/v1alpha1"))
    );
    let uses = uses(&body);
    let ada = || vec!["ada".to_owned()];
    for (version, path, want) in [
        ("v1", ".spec", (3, ada())),
        ("v1", ".spec.size", (2, ada())),
        ("v1", ".spec.old", (1, ada())),
        ("v1", ".spec.threads", (1, ada())),
        ("v1", ".spec.threads[*].name", (1, ada())),
        ("v1", ".spec.threads[*].colour", (0, vec![])),
        ("v2", ".spec.count", (2, vec![])),
        ("v2", ".spec.mode", (1, vec!["bob".to_owned()])),
        ("v2", ".spec.threads[*].name", (1, vec![])),
    ] {
        assert_eq!(uses.get(&(version.to_owned(), path.to_owned())), Some(&want), "{version} {path}");
    }
    assert!(!uses.contains_key(&("v1".to_owned(), ".spec.count".to_owned())));
    assert!(!uses.keys().any(|(_, path)| path.contains("metadata")), "{uses:?}");
    let v2 = body["versions"][1]["fields"].as_array().expect("fields");
    let mode = v2.iter().find(|field| field["path"] == ".spec.mode").expect("is told");
    assert_eq!(mode["managers"][0]["lastWriteTime"], made["metadata"]["managedFields"][0]["time"]);
    assert!(reply.header("servedatresourceversion").is_some());
}

#[tokio::test]
async fn fields_are_found_described_and_guarded() {
    let server = Server::start(&[]).await;
    let client = server.client();
    define(&client, &looms()).await;
    let resources = client.get("/apis/versioning.revisor.dev/v1alpha1").await.expect(200).json();
    let found = resources["resources"].as_array().expect("resources").iter();
    let found = found.clone().find(|known| known["name"] == "versionreports/fields").cloned();
    let want = json!({"name": "versionreports/fields", "singularName": "", "namespaced": false, "kind": "VersionFields", "verbs": ["get"]});
    assert_eq!(found, Some(want));
    let document = client.get("/openapi/v3/apis/versioning.revisor.dev/v1alpha1").await.expect(200).json();
    let path = "/apis/versioning.revisor.dev/v1alpha1/versionreports/{name}/fields";
    let answer = &document["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]["$ref"];
    assert_eq!(answer, "#/components/schemas/dev.revisor.versioning.v1alpha1.VersionFields");
    let schema = &document["components"]["schemas"]["dev.revisor.versioning.v1alpha1.FieldUse"]["properties"];
    assert!(schema["path"]["description"].is_string(), "{schema}");

    let elsewhere = FIELDS.replace("looms", "booms");
    client.get(&elsewhere).await.fails(404, "NotFound");
    client.post(FIELDS, &json!({})).await.fails(405, "MethodNotAllowed");
    let nobody = client.acting_as("nobody");
    let refused = nobody.get(FIELDS).await.fails(403, "Forbidden");
    let message = refused["message"].as_str().unwrap_or_default();
    assert!(message.contains("cannot get resource \"versionreports/fields\""), "{message}");
    let yaml = client.send(Method::GET, FIELDS, &[("accept", "application/yaml")], String::new()).await.expect(200);
    assert!(yaml.text().contains("kind: VersionFields\n"), "{}", yaml.text());
}

#[tokio::test]
async fn what_a_webhook_converts_is_counted_in_its_shape() {
    fn convert(wanted: &str, loom: &mut Value) {
        let (from, to) = if wanted.ends_with("v1") { ("count", "size") } else { ("size", "count") };
        if let Some(spec) = loom["spec"].as_object_mut()
            && let Some(value) = spec.remove(from)
        {
            spec.insert(to.to_owned(), value);
        }
    }
    let converter = Converter::start("localhost", convert).await;
    let server = Server::start(&[]).await;
    let client = server.client();
    let mut defined = looms();
    defined["spec"]["conversion"] = converter.by_url();
    define(&client, &defined).await;
    make(&client, "v1", "a", "ada", json!({"size": 1})).await;
    let path = objects(GROUP, "v1", "looms");
    client.patch(&format!("{path}/a?fieldManager=eve"), MERGE, &json!({"spec": {"old": "x"}})).await.expect(200);
    let uses = uses(&client.get(FIELDS).await.expect(200).json());
    let at = |version: &str, path: &str| uses.get(&(version.to_owned(), path.to_owned())).cloned();
    assert_eq!(at("v1", ".spec.old"), Some((1, vec!["eve".to_owned()])));
    assert_eq!((at("v2", ".spec.count"), at("v2", ".spec.mode")), (Some((1, vec![])), Some((0, vec![]))));
    assert_eq!(at("v3", ".spec.count"), Some((1, vec![])), "served or not");
}

#[tokio::test]
async fn the_command_draws_fields_as_a_tree_also_where_there_are_no_reports() {
    let server = Server::start(&[]).await;
    let client = server.client();
    define(&client, &looms()).await;
    make(&client, "v1", "a", "ada", json!({"size": 1, "threads": [{"name": "x"}]})).await;
    let (code, out, err) = server.command("crd usage looms.loom.example --version v1", &[]).await;
    assert_eq!(code, Some(0), "{err}");
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[..3], ["looms.loom.example", "", "v1: 1 object"], "{out}");
    assert!(lines[3].starts_with("├─ spec") && lines[3].contains("1  ada ("), "{out}");
    assert!(lines[4].starts_with("│  ├─ old") && lines[4].ends_with(" 0"), "{out}");
    assert!(lines.iter().any(|line| line.starts_with("│     ├─ [*].colour")), "{out}");

    // Whoever may not see the reports counts the objects: the same comes out, of the versions that are served.
    let rules = json!([
        {"verbs": ["get"], "apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"]},
        {"verbs": ["list"], "apiGroups": [GROUP], "resources": ["looms"]},
    ]);
    let roles = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({"metadata": {"name": "reader"}, "rules": rules});
    client.post(&format!("{roles}/clusterroles"), &role).await.expect(201);
    let binding = json!({
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}],
    });
    client.post(&format!("{roles}/clusterrolebindings"), &binding).await.expect(201);
    let versions = async |more: &[&str]| {
        let (code, out, err) = server.command("crd usage looms.loom.example -o json", more).await;
        assert_eq!(code, Some(0), "{err}");
        let told: Value = serde_json::from_str(&out).expect("is JSON");
        told["versions"].as_array().expect("versions").clone()
    };
    let (told, counted) = (versions(&[]).await, versions(&["--token", GUEST_TOKEN]).await);
    assert_eq!((told.len(), counted.len()), (3, 2));
    assert_eq!(told[..2], counted[..]);

    let (code, _, err) = server.command("crd usage booms.loom.example", &[]).await;
    assert!(code == Some(2) && err.contains("there is no definition \"booms.loom.example\""), "{err}");
    let (code, _, err) = server.command("crd usage looms.loom.example --version v9", &[]).await;
    assert!(code == Some(2) && err.contains("has no version \"v9\", but v1, v2, v3"), "{err}");
}
