//! Validating admission webhooks that the load has to pass, all answered by the bench itself.

use serde_json::{Value, json};

use crate::objects::Namespace;

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// The configuration of so many webhooks for a namespace that are all found at `client`, with the collection that it is
/// made in and its name; nothing for none.
pub(crate) fn configuration(namespace: &Namespace, count: u32, client: &Value) -> Option<(String, String, String)> {
    let rule =
        json!({"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["CREATE", "UPDATE"]});
    let webhook = |number: u32| {
        json!({
            "name": format!("w{number}.bench.example.com"),
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": client,
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace.name}},
            "rules": [rule],
        })
    };
    let webhooks: Vec<Value> = (0..count).map(webhook).collect();
    let manifest = json!({"metadata": {"name": namespace.name}, "webhooks": webhooks});
    (count > 0).then(|| (CONFIGURATIONS.to_owned(), namespace.name.clone(), manifest.to_string()))
}

/// The answer to an AdmissionReview: yes.
pub(crate) fn review(review: Value) -> Value {
    json!({
        "apiVersion": review["apiVersion"],
        "kind": "AdmissionReview",
        "response": {"uid": review["request"]["uid"], "allowed": true},
    })
}
