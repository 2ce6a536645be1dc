//! Objects as the tests send them, and where they live.

use serde_json::{Value, json};

use crate::client::Client;

pub(crate) const NAMESPACES: &str = "/api/v1/namespaces";
pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(crate) const SECRETS: &str = "/api/v1/namespaces/default/secrets";
pub(crate) const SERVICE_ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
pub(crate) const EVENTS: &str = "/api/v1/namespaces/default/events";
pub(crate) const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

/// A config map with one value.
pub(crate) fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": value}})
}

/// A config map with one label and nothing else.
pub(crate) fn labelled(name: &str, key: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {key: value}}})
}

pub(crate) fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// Makes config maps with these names, in this order, and returns their versions.
pub(crate) async fn make_config_maps(client: &Client, names: &[&str]) -> Vec<u64> {
    let mut versions = Vec::new();
    for name in names {
        versions.push(client.post(CONFIG_MAPS, &config_map(name, "1")).await.expect(201).version());
    }
    versions
}
