//! Policies that change what is written.

use serde_json::{Value, json};

use super::{DEPLOYMENTS, Sort, apply_configuration, deployment, enforce, json_patch, rule};
use crate::client::MERGE;
use crate::harness::Server;
use crate::objects::{CONFIG_MAPS, config_map};

#[tokio::test]
async fn a_deployment_is_changed_by_patches_and_configurations() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let spec = json!({
        "matchConstraints": {"resourceRules": [rule("apps", "v1", "deployments")]},
        "variables": [{"name": "image", "expression": "'registry.example.com/' + object.spec.template.spec.containers[0].image"}],
        "mutations": [
            apply_configuration(
                "Object{metadata: Object.metadata{annotations: {'mutated-by': 'policy'}}, \
                 spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{ \
                 containers: [Object.spec.template.spec.containers{name: 'sidecar', image: 's'}]}}}}",
            ),
            json_patch(
                "[JSONPatch{op: 'replace', path: '/spec/replicas', value: object.spec.replicas + 1}, \
                 JSONPatch{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('example.com/image'), \
                 value: variables.image}]",
            ),
        ],
    });
    enforce(&client, Sort::Mutating, "sidecar", spec, json!({})).await;
    let made = client.post(DEPLOYMENTS, &deployment("web", 2)).await.expect(201).json();
    assert_eq!(made["spec"]["replicas"], 3);
    assert_eq!(
        made["metadata"]["annotations"],
        json!({"mutated-by": "policy", "example.com/image": "registry.example.com/i"})
    );
    let containers = made["spec"]["template"]["spec"]["containers"].as_array().expect("is a list");
    let names: Vec<&Value> = containers.iter().map(|container| &container["name"]).collect();
    assert_eq!(names, ["c", "sidecar"]);
    // What was added has its defaults, and nobody manages it.
    assert_eq!(containers[1]["imagePullPolicy"], "Always");
    let managed = made["metadata"]["managedFields"].to_string();
    assert!(!managed.contains("mutated-by") && !managed.contains("sidecar"), "{managed}");
    assert_eq!(client.get(&format!("{DEPLOYMENTS}/web")).await.expect(200).json()["spec"]["replicas"], 3);
}

#[tokio::test]
async fn what_a_policy_makes_is_validated() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let refuse = json!({"validations": [{"expression": "!('forbidden' in object.data)", "message": "refused"}]});
    enforce(&client, Sort::Validating, "refuse", refuse, json!({})).await;
    for (name, mutation, failure_policy, code, want) in [
        ("denied", json_patch("[JSONPatch{op: 'add', path: '/data/forbidden', value: 'x'}]"), "Fail", 422, "refused"),
        (
            "invalid",
            json_patch("[JSONPatch{op: 'add', path: '/data/' + jsonpatch.escapeKey('a/b'), value: 'x'}]"),
            "Fail",
            422,
            "data[a/b]",
        ),
        (
            "unknown",
            json_patch("[JSONPatch{op: 'add', path: '/nobody', value: 'x'}]"),
            "Fail",
            500,
            "strict decoding error: unknown field \\\"nobody\\\"",
        ),
        (
            "mistyped",
            apply_configuration("Object{data: Object.data{k: Object.data.k{x: 1}}}"),
            "Fail",
            403,
            "error applying patch: failed to convert patch object to typed object: .data.k: expected string",
        ),
        (
            "undeclared",
            apply_configuration("Object{nobody: 'x'}"),
            "Fail",
            403,
            "error applying patch: failed to convert patch object to typed object: .nobody: field not declared in schema",
        ),
        (
            "atomic",
            apply_configuration("Object{metadata: Object.metadata{finalizers: ['a.example.com/x']}}"),
            "Fail",
            201,
            "",
        ),
        (
            "missing",
            json_patch("[JSONPatch{op: 'remove', path: '/gone'}]"),
            "Fail",
            403,
            "denied request: JSON Patch: ",
        ),
        ("missing-ignored", json_patch("[JSONPatch{op: 'remove', path: '/gone'}]"), "Ignore", 201, ""),
        (
            "untested",
            json_patch("[JSONPatch{op: 'test', path: '/data/k', value: 'no'}, JSONPatch{op: 'remove', path: '/data'}]"),
            "Fail",
            201,
            "\"k\":\"v\"",
        ),
        (
            "failing",
            json_patch("[JSONPatch{op: 'add', path: '/data/x', value: object.gone}]"),
            "Fail",
            403,
            "no such key: gone",
        ),
        (
            "renaming",
            json_patch("[JSONPatch{op: 'replace', path: '/metadata/name', value: 'other'}]"),
            "Fail",
            201,
            "\"name\":\"other\"",
        ),
    ] {
        let spec = json!({"failurePolicy": failure_policy, "mutations": [mutation]});
        enforce(&client, Sort::Mutating, name, spec, json!({})).await;
        let reply = client.post(&format!("{CONFIG_MAPS}?dryRun=All"), &config_map("a", "v")).await;
        assert_eq!(reply.code, code, "{name}: {}", reply.text());
        assert!(reply.text().contains(want), "{name}: {}", reply.text());
        if code == 403 {
            let status = reply.json();
            let prefix = format!("policy '{name}' with binding '{name}-bound' denied request: ");
            assert_eq!(status["reason"], "Invalid", "{status}");
            assert!(status["message"].as_str().is_some_and(|text| text.starts_with(&prefix)), "{status}");
        }
        let [policies, bindings] = Sort::Mutating.collections();
        client.delete(&format!("{bindings}/{name}-bound")).await.expect(200);
        client.delete(&format!("{policies}/{name}")).await.expect(200);
    }
    server.assert_well().await;
}

#[tokio::test]
async fn a_policy_is_asked_again_when_another_changed_the_object_after_it() {
    let server = Server::start(&[]).await;
    let client = server.client();
    // Counts how many keys there are whenever it is asked.
    let count =
        "[JSONPatch{op: 'add', path: '/data/count', value: string(object.data.filter(k, k != 'count').size())}]";
    let add = "'late' in object.data ? [] : [JSONPatch{op: 'add', path: '/data/late', value: 'x'}]";
    for (name, policy, expression) in
        [("a-once", "Never", count), ("b-again", "IfNeeded", ""), ("c-late", "Never", add)]
    {
        let again = count.replace("count", "again");
        let expression = if expression.is_empty() { &again } else { expression };
        let spec = json!({"reinvocationPolicy": policy, "mutations": [json_patch(expression)]});
        enforce(&client, Sort::Mutating, name, spec, json!({})).await;
    }
    let made = client.post(CONFIG_MAPS, &config_map("a", "v")).await.expect(201).json();
    assert_eq!(made["data"], json!({"k": "v", "count": "1", "again": "3", "late": "x"}));
}

#[tokio::test]
async fn a_policy_that_wants_to_be_asked_again_is_so_also_after_its_own_patch() {
    let grow = "[JSONPatch{op: 'add', path: '/data/n' + string(object.data.size()), value: 'x'}]";
    for (policy, want) in
        [("Never", json!({"k": "v", "n1": "x"})), ("IfNeeded", json!({"k": "v", "n1": "x", "n2": "x"}))]
    {
        let server = Server::start(&[]).await;
        let client = server.client();
        let spec = json!({"reinvocationPolicy": policy, "mutations": [json_patch(grow)]});
        enforce(&client, Sort::Mutating, "grows", spec, json!({})).await;
        let made = client.post(CONFIG_MAPS, &config_map("a", "v")).await.expect(201).json();
        assert_eq!(made["data"], want, "{policy}");
    }
}

#[tokio::test]
async fn custom_objects_and_other_versions_are_changed_too() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let schema = |field: &str| {
        json!({"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": {field: {"type": "string"}, "mode": {"type": "string", "default": "on"}}}}}})
    };
    let definition = json!({"metadata": {"name": "gadgets.example.com"}, "spec": {
        "group": "example.com", "scope": "Namespaced",
        "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget"},
        "versions": [
            {"name": "v1", "served": true, "storage": true, "schema": schema("size")},
            {"name": "v2", "served": true, "storage": false, "schema": schema("size")},
        ],
    }});
    client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await.expect(201);
    let spec = json!({
        "matchConstraints": {"resourceRules": [rule("example.com", "v2", "gadgets")]},
        "mutations": [
            apply_configuration("Object{spec: Object.spec{size: object.apiVersion}}"),
            json_patch("[JSONPatch{op: 'remove', path: '/spec/mode'}, JSONPatch{op: 'add', path: '/spec/unknown', value: 1}]"),
        ],
    });
    enforce(&client, Sort::Mutating, "gadgets", spec, json!({})).await;
    for version in ["v1", "v2"] {
        let gadgets = format!("/apis/example.com/{version}/namespaces/default/gadgets");
        let object = json!({"apiVersion": format!("example.com/{version}"), "kind": "Gadget",
            "metadata": {"name": version}, "spec": {"mode": "off"}});
        let made = client.post(&gadgets, &object).await.expect(201).json();
        assert_eq!(made["apiVersion"], format!("example.com/{version}"));
        assert_eq!(made["spec"], json!({"size": "example.com/v2", "mode": "on"}), "{version}");
    }
    let path = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers";
    let spec = json!({
        "matchConstraints": {"resourceRules": [rule("autoscaling", "v2", "horizontalpodautoscalers")]},
        "mutations": [apply_configuration("Object{spec: Object.spec{maxReplicas: 7, minReplicas: 2}}")],
    });
    enforce(&client, Sort::Mutating, "scalers", spec, json!({})).await;
    let scaler = json!({"metadata": {"name": "a"}, "spec": {
        "maxReplicas": 3, "targetCPUUtilizationPercentage": 50,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
    }});
    let made = client.post(path, &scaler).await.expect(201).json();
    assert_eq!([&made["spec"]["maxReplicas"], &made["spec"]["minReplicas"]], [7, 2]);
    assert_eq!(made["spec"]["targetCPUUtilizationPercentage"], 50);
    client.patch(&format!("{path}/a"), MERGE, &json!({"spec": {"minReplicas": 1}})).await.expect(200);
    assert_eq!(client.get(&format!("{path}/a")).await.json()["spec"]["minReplicas"], 2);
}
