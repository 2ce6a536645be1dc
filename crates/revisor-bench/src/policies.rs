//! Admission policies that the load passes: each with a variable and five expressions of the usual sort, all satisfied.

use serde_json::{Value, json};

use crate::objects::Namespace;

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";

/// What every object of the load satisfies.
const EXPRESSIONS: [&str; 5] = [
    "object.metadata.name.startsWith('o-')",
    "object.metadata.name.matches('^[a-z0-9-]+$') && variables.labels < 100",
    "!has(object.metadata.labels) || object.metadata.labels.all(k, object.metadata.labels[k].size() < 64)",
    "request.userInfo.username != 'nobody' && request.namespace == object.metadata.namespace",
    "oldObject == null || object.metadata.uid == oldObject.metadata.uid",
];

/// So many policies for a namespace with their bindings, each with the collection that it is made in and its name.
pub(crate) fn policies(namespace: &Namespace, count: u32) -> Vec<(String, String, String)> {
    let need = |number: u32| {
        let name = format!("{}-{number}", namespace.name);
        let [policy, binding] = manifests(&namespace.name, &name);
        [("validatingadmissionpolicies", policy), ("validatingadmissionpolicybindings", binding)]
            .map(|(plural, manifest)| (format!("{ADMISSION}/{plural}"), name.clone(), manifest.to_string()))
    };
    (0..count).flat_map(need).collect()
}

fn manifests(namespace: &str, name: &str) -> [Value; 2] {
    let rule =
        json!({"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["CREATE", "UPDATE"]});
    let spec = json!({
        "matchConstraints": {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "resourceRules": [rule],
        },
        "variables": [{"name": "labels", "expression": "has(object.metadata.labels) ? object.metadata.labels.size() : 0"}],
        "validations": EXPRESSIONS.map(|expression| json!({"expression": expression})),
    });
    [
        json!({"metadata": {"name": name}, "spec": spec}),
        json!({"metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}}),
    ]
}
