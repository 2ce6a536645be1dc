//! Custom resources, from their definitions to their last objects, as those who write them meet them.

mod applying;
mod bad_input;
mod controller;
mod conversion;
mod converter;
mod fields;
mod harbours;
mod monitors;
mod odd_paths;
mod owners;
mod permits;
mod rehearsing;
mod restarts;
mod retiring;
mod rules;
mod rules_around;
mod semver;
mod usage;

pub(crate) use converter::certified;
use serde_json::{Value, json};

use crate::client::Client;
use crate::harness::eventually;

pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A definition whose kind, list kind and singular follow from its plural: `boats` has `Boat`.
pub(crate) fn definition(group: &str, plural: &str, versions: Value) -> Value {
    let singular = plural.strip_suffix('s').expect("a regular plural");
    let kind = singular[..1].to_uppercase() + &singular[1..];
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": singular, "kind": kind},
            "versions": versions,
        },
    })
}

/// A version with a status, whose objects have this spec.
pub(crate) fn version(name: &str, storage: bool, spec: Value) -> Value {
    let whole = json!({"type": "object", "properties": {"spec": spec, "status": {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
    }}});
    json!({
        "name": name,
        "served": true,
        "storage": storage,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": whole},
    })
}

/// A schema that takes everything.
fn anything() -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// Makes a definition. Its resources are there when this is done.
pub(crate) async fn define(client: &Client, definition: &Value) -> Value {
    client.post(DEFINITIONS, definition).await.expect(201).json()
}

/// Where the objects of a resource live in the default namespace.
pub(crate) fn objects(group: &str, version: &str, plural: &str) -> String {
    format!("/apis/{group}/{version}/namespaces/default/{plural}")
}

/// The causes of a refusal.
fn causes(status: &Value) -> Vec<(&str, &str)> {
    let causes = status["details"]["causes"].as_array().map(Vec::as_slice).unwrap_or_default();
    causes.iter().map(|cause| (text(&cause["field"]), text(&cause["message"]))).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Waits until something is no longer there.
pub(crate) async fn gone(client: &Client, path: &str) {
    eventually(|| async { (client.get(path).await.code == 404).then_some(()) }).await;
}
