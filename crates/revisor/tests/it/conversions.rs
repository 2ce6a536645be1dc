//! Conversions: rules between the versions of a custom resource, written to a server as every other object is.

mod bad_input;
mod definitions;
mod guards;
mod stories;
mod written;

use serde_json::{Value, json};

use crate::client::{Client, Reply};
use crate::custom::{self, DEFINITIONS, define};

pub(crate) const CONVERSIONS: &str = "/apis/versioning.revisor.dev/v1alpha1/conversions";

/// The one definition of each of these tests.
const NAME: &str = "boats.rules.example";
const GROUP: &str = "rules.example";

/// A definition of boats whose versions have specs with these properties; the first is stored.
fn boats(versions: &[(&str, Value)]) -> Value {
    let versions: Vec<Value> = (versions.iter().enumerate())
        .map(|(at, (name, properties))| {
            let spec = json!({"type": "object", "properties": properties});
            let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
            json!({"name": name, "served": true, "storage": at == 0, "schema": schema})
        })
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {"plural": "boats", "singular": "boat", "kind": "Boat"},
            "versions": versions,
        },
    })
}

/// Boats of two versions that name their length otherwise.
fn renamed() -> Value {
    boats(&[("v1", json!({"size": {"type": "integer"}})), ("v2", json!({"length": {"type": "integer"}}))])
}

/// A Conversion of the boats with this spec.
fn conversion(spec: &Value) -> Value {
    json!({
        "apiVersion": "versioning.revisor.dev/v1alpha1",
        "kind": "Conversion",
        "metadata": {"name": NAME},
        "spec": spec,
    })
}

/// The one that goes with [`renamed`], held by somebody.
fn held() -> Value {
    let mut held = conversion(&rename());
    held["metadata"]["finalizers"] = json!(["rules.example/keep"]);
    held
}

/// Makes another definition, so that conversions are served.
async fn define_another(client: &Client) {
    let version = custom::version("v1", true, json!({"type": "object"}));
    define(client, &custom::definition("other.example", "trees", json!([version]))).await;
}

fn step(from: &str, to: &str, rules: Value) -> Value {
    json!({"from": from, "to": to, "rules": rules})
}

/// The rule that goes with [`renamed`].
fn rename() -> Value {
    json!({"steps": [step("v1", "v2", json!([{"move": {"from": ".spec.size", "to": ".spec.length"}}]))]})
}

/// Where the Conversion is.
fn at() -> String {
    format!("{CONVERSIONS}/{NAME}")
}

/// Where boats of a version are.
fn fleet(version: &str) -> String {
    format!("/apis/{GROUP}/{version}/boats")
}

fn boat(version: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("{GROUP}/{version}"), "kind": "Boat", "metadata": {"name": name}, "spec": spec})
}

async fn propose(client: &Client, spec: &Value) -> Reply {
    client.post(CONVERSIONS, &conversion(spec)).await
}

/// What the conditions of a Conversion say.
fn conditions(conversion: &Value) -> Vec<(String, String, String)> {
    let all = conversion["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    all.iter().map(|known| (text(&known["type"]), text(&known["status"]), text(&known["reason"]))).collect()
}

/// The causes of a refusal, by their fields.
fn causes(reply: &Reply) -> Vec<(String, String)> {
    let status = reply.json();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let causes = status["details"]["causes"].as_array().cloned().unwrap_or_default();
    causes.iter().map(|cause| (text(&cause["field"]), text(&cause["message"]))).collect()
}

/// The warnings of an answer, one per line.
fn warnings(reply: &Reply) -> String {
    let texts = reply.headers.get_all("warning").iter().map(|value| value.to_str().expect("is text"));
    texts.collect::<Vec<_>>().join("\n")
}

/// Changes the definition as its owner would: reads it, changes it, writes it.
async fn amend(client: &Client, change: impl Fn(&mut Value), query: &str) -> Reply {
    let path = format!("{DEFINITIONS}/{NAME}");
    let mut definition = client.get(&path).await.expect(200).json();
    change(&mut definition);
    client.put(&format!("{path}{query}"), &definition).await
}
