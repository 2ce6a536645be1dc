//! Admission policies as their users have them: made by one request, in force with the next.

mod mutating;
mod params;
mod type_checking;
mod validating;

use serde_json::{Value, json};

use crate::client::Client;

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

/// A sort of policy.
#[derive(Clone, Copy)]
enum Sort {
    Validating,
    Mutating,
}

impl Sort {
    fn collections(self) -> [String; 2] {
        let name = match self {
            Sort::Validating => "validating",
            Sort::Mutating => "mutating",
        };
        [format!("{ADMISSION}/{name}admissionpolicies"), format!("{ADMISSION}/{name}admissionpolicybindings")]
    }
}

/// A rule for the creation and change of resources of a version.
fn rule(group: &str, version: &str, resource: &str) -> Value {
    json!({"apiGroups": [group], "apiVersions": [version], "resources": [resource], "operations": ["CREATE", "UPDATE"]})
}

fn config_maps() -> Value {
    json!([rule("", "v1", "configmaps")])
}

/// Puts a policy in force: what `spec` does not say is about config maps, and the binding is as usual.
async fn enforce(client: &Client, sort: Sort, name: &str, spec: Value, binding: Value) {
    let [policies, bindings] = sort.collections();
    let mut whole = json!({"matchConstraints": {"resourceRules": config_maps()}});
    if let Sort::Mutating = sort {
        whole["reinvocationPolicy"] = json!("Never");
    }
    merge(&mut whole, spec);
    client.post(&policies, &json!({"metadata": {"name": name}, "spec": whole})).await.expect(201);
    let mut whole = json!({"policyName": name});
    if let Sort::Validating = sort {
        whole["validationActions"] = json!(["Deny"]);
    }
    merge(&mut whole, binding);
    client.post(&bindings, &json!({"metadata": {"name": format!("{name}-bound")}, "spec": whole})).await.expect(201);
}

fn merge(whole: &mut Value, change: Value) {
    if let Value::Object(members) = change {
        members.into_iter().for_each(|(name, value)| whole[name] = value);
    }
}

fn json_patch(expression: &str) -> Value {
    json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}})
}

fn apply_configuration(expression: &str) -> Value {
    json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}})
}

fn deployment(name: &str, replicas: i64) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    }})
}
