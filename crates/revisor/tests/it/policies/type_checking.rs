//! What the status of policies tells of their expressions.

use serde_json::{Value, json};

use super::{Sort, rule};
use crate::client::{Client, MERGE};
use crate::harness::{Server, eventually};

/// The status of a policy once its newest specification was looked at.
async fn checked(client: &Client, name: &str) -> Value {
    let [policies, _] = Sort::Validating.collections();
    let path = format!("{policies}/{name}");
    eventually(|| async {
        let policy = client.get(&path).await.expect(200).json();
        let observed = policy["status"]["observedGeneration"] == policy["metadata"]["generation"];
        observed.then(|| policy["status"].clone())
    })
    .await
}

#[tokio::test]
async fn the_status_of_a_policy_tells_what_types_know_better() {
    let server = Server::start(&["--controllers=*"]).await;
    let client = server.client();
    let [policies, _] = Sort::Validating.collections();
    let make = async |name: &str, rule: Value, validations: Value| {
        let spec = json!({"matchConstraints": {"resourceRules": [rule]}, "validations": validations});
        client.post(&policies, &json!({"metadata": {"name": name}, "spec": spec})).await.expect(201);
    };
    let deployments = rule("apps", "v1", "deployments");
    make("correct", deployments.clone(), json!([{"expression": "object.spec.replicas > 1"}])).await;
    assert_eq!(checked(&client, "correct").await["typeChecking"], json!({}));

    let confused = json!([{
        "expression": "object.spec.replicas > '1'",
        "messageExpression": "'wants replicas > 1, got ' + object.spec.replicas",
    }]);
    make("confused", deployments, confused).await;
    let status = checked(&client, "confused").await;
    let warnings = status["typeChecking"]["expressionWarnings"].as_array().expect("is a list");
    let [first, second] = &warnings[..] else { panic!("{status}") };
    assert_eq!(first["fieldRef"], "spec.validations[0].expression");
    assert_eq!(
        first["warning"],
        "apps/v1, Kind=Deployment: ERROR: <input>:1:22: found no matching overload for '_>_' applied to '(int, string)'\n \
         | object.spec.replicas > '1'\n | .....................^\n"
    );
    assert_eq!(second["fieldRef"], "spec.validations[0].messageExpression");
    let warning = second["warning"].as_str().unwrap_or_default();
    assert!(warning.contains("found no matching overload for '_+_' applied to '(string, int)'"), "{warning}");
    // When the mistake is mended, the warnings go.
    let mended = json!({"spec": {"validations": [{"expression": "object.spec.replicas > 1"}]}});
    client.patch(&format!("{policies}/confused"), MERGE, &mended).await.expect(200);
    assert!(checked(&client, "confused").await["typeChecking"]["expressionWarnings"].is_null());

    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "replicas": {"type": "integer"}}}}});
    let definition = json!({"metadata": {"name": "gadgets.example.com"}, "spec": {
        "group": "example.com", "scope": "Namespaced",
        "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
    }});
    client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await.expect(201);
    make(
        "custom",
        rule("example.com", "v1", "gadgets"),
        json!([{"expression": "object.foo > 0 && object.spec.replicas < 1"}]),
    )
    .await;
    let status = checked(&client, "custom").await;
    let warning = status["typeChecking"]["expressionWarnings"][0]["warning"].as_str().unwrap_or_default();
    assert!(warning.starts_with("example.com/v1, Kind=Gadget: ERROR: <input>:1:7: undefined field 'foo'"), "{warning}");
}
