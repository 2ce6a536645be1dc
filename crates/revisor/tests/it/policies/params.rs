//! The parameters of policies.

use serde_json::{Value, json};

use super::{Sort, enforce, rule};
use crate::client::{Client, MERGE};
use crate::harness::Server;
use crate::objects::{CONFIG_MAPS, NAMESPACES, config_map, namespace};

const LIMITS: &str = "/apis/rules.example.com/v1/namespaces/default/limits";

/// Defines a kind of parameters.
async fn define_limits(client: &Client) {
    let schema = json!({"type": "object", "properties": {"most": {"type": "integer"}}});
    let definition = json!({"metadata": {"name": "limits.rules.example.com"}, "spec": {
        "group": "rules.example.com", "scope": "Namespaced",
        "names": {"plural": "limits", "singular": "limit", "kind": "Limit"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
    }});
    client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await.expect(201);
}

fn limit(name: &str, most: i64, labels: Value) -> Value {
    let metadata = json!({"name": name, "labels": labels});
    json!({"apiVersion": "rules.example.com/v1", "kind": "Limit", "metadata": metadata, "most": most})
}

#[tokio::test]
async fn custom_objects_are_parameters_as_they_are_now() {
    let server = Server::start(&[]).await;
    let client = server.client();
    define_limits(&client).await;
    let spec = json!({
        "paramKind": {"apiVersion": "rules.example.com/v1", "kind": "Limit"},
        "validations": [{
            "expression": "object.data.k.size() <= params.most && params.kind == 'Limit'",
            "messageExpression": "'at most ' + string(params.most)",
        }],
    });
    let named = json!({"paramRef": {"name": "small", "parameterNotFoundAction": "Deny"}});
    enforce(&client, Sort::Validating, "small", spec.clone(), named).await;
    let path = format!("{CONFIG_MAPS}?dryRun=All");
    let post = async |value: &str| {
        let reply = client.post(&path, &config_map("a", value)).await;
        (reply.code, reply.json()["message"].as_str().unwrap_or_default().to_owned())
    };
    let (code, message) = post("xx").await;
    assert_eq!(code, 422);
    let why = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction";
    assert!(message.ends_with(why), "{message}");

    client.post(LIMITS, &limit("small", 2, json!({}))).await.expect(201);
    assert_eq!(post("xx").await.0, 201);
    assert!(post("xxx").await.1.ends_with("denied request: at most 2"));
    client.patch(&format!("{LIMITS}/small"), MERGE, &json!({"most": 3})).await.expect(200);
    assert_eq!(post("xxx").await.0, 201);

    // Of several, all must be satisfied; where there are none, that may be well.
    let [_, bindings] = Sort::Validating.collections();
    client.delete(&format!("{bindings}/small-bound")).await.expect(200);
    let selected = json!({"policyName": "small", "validationActions": ["Deny"], "paramRef": {
        "selector": {"matchLabels": {"in": "force"}}, "parameterNotFoundAction": "Allow"}});
    client.post(&bindings, &json!({"metadata": {"name": "selected"}, "spec": selected})).await.expect(201);
    assert_eq!(post("xxxxx").await.0, 201);
    client.post(LIMITS, &limit("five", 5, json!({"in": "force"}))).await.expect(201);
    client.post(LIMITS, &limit("four", 4, json!({"in": "force"}))).await.expect(201);
    assert_eq!(post("xxxx").await.0, 201);
    assert!(post("xxxxx").await.1.ends_with("denied request: at most 4"));

    // When the kind is gone, so is the policy.
    client.delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/limits.rules.example.com").await.expect(200);
    crate::harness::eventually(|| async { (client.get(LIMITS).await.code == 404).then_some(()) }).await;
    assert!(post("x").await.1.contains("failed to find resource referenced by paramKind"));
}

#[tokio::test]
async fn parameters_are_in_the_namespace_of_the_write_or_in_the_one_that_is_named() {
    let server = Server::start(&[]).await;
    let client = server.client();
    client.post(NAMESPACES, &namespace("n")).await.expect(201);
    for (namespace, prefix) in [("default", "d-"), ("n", "n-")] {
        let settings = json!({"metadata": {"name": "settings"}, "data": {"prefix": prefix}});
        client.post(&format!("{NAMESPACES}/{namespace}/configmaps"), &settings).await.expect(201);
    }
    let spec = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConstraints": {"resourceRules": [rule("", "v1", "secrets"), rule("", "v1", "nodes")]},
        "validations": [{"expression": "object.metadata.name.startsWith(params.data.prefix)"}],
    });
    let reference = |namespace: Option<&str>| {
        let mut reference = json!({"name": "settings", "parameterNotFoundAction": "Deny"});
        if let Some(namespace) = namespace {
            reference["namespace"] = json!(namespace);
        }
        json!({"paramRef": reference})
    };
    enforce(&client, Sort::Validating, "own", spec.clone(), reference(None)).await;
    let post = async |path: &str, name: &str| {
        let reply = client.post(&format!("{path}?dryRun=All"), &json!({"metadata": {"name": name}})).await;
        (reply.code, reply.text())
    };
    let (here, there) = (format!("{NAMESPACES}/default/secrets"), format!("{NAMESPACES}/n/secrets"));
    for (path, name, code) in [(&here, "d-a", 201), (&here, "n-a", 422), (&there, "n-a", 201), (&there, "d-a", 422)] {
        assert_eq!(post(path, name).await.0, code, "{path} {name}");
    }
    let (code, text) = post("/api/v1/nodes", "n-a").await;
    assert_eq!(code, 422);
    let why = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources";
    assert!(text.contains(why), "{text}");
    let [_, bindings] = Sort::Validating.collections();
    client.delete(&format!("{bindings}/own-bound")).await.expect(200);
    enforce(&client, Sort::Validating, "named", spec, reference(Some("n"))).await;
    for (path, name, code) in [(&*here, "d-a", 422), (&here, "n-a", 201), ("/api/v1/nodes", "n-a", 201)] {
        assert_eq!(post(path, name).await.0, code, "{path} {name}");
    }
}
