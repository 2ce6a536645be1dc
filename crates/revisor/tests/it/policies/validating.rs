//! Policies that decide about writes.

use serde_json::json;

use super::{ADMISSION, DEPLOYMENTS, Sort, deployment, enforce, rule};
use crate::client::MERGE;
use crate::harness::Server;
use crate::objects::{CONFIG_MAPS, NAMESPACES, config_map, namespace};

#[tokio::test]
async fn a_policy_counts_in_the_next_request_and_until_it_is_gone() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let spec = json!({
        "matchConstraints": {"resourceRules": [rule("apps", "v1", "deployments")]},
        "variables": [
            {"name": "replicas", "expression": "object.spec.replicas"},
            {"name": "oddReplicas", "expression": "variables.replicas % 2 == 1"},
        ],
        "validations": [
            {"expression": "variables.replicas > 1"},
            {"expression": "variables.oddReplicas", "messageExpression": "'not ' + string(variables.replicas)"},
        ],
    });
    enforce(&client, Sort::Validating, "odd", spec, json!({})).await;
    client.post(DEPLOYMENTS, &deployment("three", 3)).await.expect(201);
    let status = client.post(DEPLOYMENTS, &deployment("two", 2)).await.fails(422, "Invalid");
    let why = "ValidatingAdmissionPolicy 'odd' with binding 'odd-bound' denied request: not 2";
    assert_eq!(status["message"], format!("deployments.apps \"two\" is forbidden: {why}"));
    assert_eq!(
        status["details"],
        json!({"name": "two", "group": "apps", "kind": "deployments", "causes": [{"message": why}]})
    );
    let status = client.post(DEPLOYMENTS, &deployment("one", 1)).await.fails(422, "Invalid");
    assert!(status["message"].as_str().is_some_and(|text| text.ends_with("failed expression: variables.replicas > 1")));
    let scaled = json!({"spec": {"replicas": 4}});
    client.patch(&format!("{DEPLOYMENTS}/three"), MERGE, &scaled).await.fails(422, "Invalid");

    // What is deleted and what is changed counts at once, too.
    let [policies, bindings] = Sort::Validating.collections();
    let changed = json!({"spec": {"validations": [{"expression": "variables.replicas > 3"}]}});
    client.patch(&format!("{policies}/odd"), MERGE, &changed).await.expect(200);
    client.patch(&format!("{DEPLOYMENTS}/three"), MERGE, &scaled).await.expect(200);
    client.post(DEPLOYMENTS, &deployment("one", 1)).await.fails(422, "Invalid");
    client.delete(&format!("{bindings}/odd-bound")).await.expect(200);
    client.post(DEPLOYMENTS, &deployment("one", 1)).await.expect(201);

    // Nothing is stored of what was denied.
    client.get(&format!("{DEPLOYMENTS}/two")).await.expect(404);
}

#[tokio::test]
async fn policies_are_in_force_after_a_restart() {
    let server = Server::start(&[]).await;
    let spec = json!({"validations": [{"expression": "false", "reason": "Forbidden", "message": "no"}]});
    enforce(&server.client(), Sort::Validating, "never", spec, json!({})).await;
    let server = server.restart().await;
    server.client().post(CONFIG_MAPS, &config_map("a", "1")).await.fails(403, "Forbidden");
}

#[tokio::test]
async fn versions_that_are_equivalent_are_asked_about_in_the_version_of_the_policy() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let scalers = |version: &str| format!("/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers");
    let old = json!({"metadata": {"name": "a"}, "spec": {
        "maxReplicas": 3, "targetCPUUtilizationPercentage": 50,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
    }});
    let probe = "object.apiVersion == 'autoscaling/v2' && object.spec.metrics[0].resource.target.averageUtilization == 50 \
                 && request.resource.version == 'v2' && request.requestResource.version == 'v1' \
                 && request.kind.version == 'v2' && request.requestKind.version == 'v1'";
    for (name, policy, code) in [("exact", "Exact", 201), ("equivalent", "Equivalent", 422)] {
        let spec = json!({
            "matchConstraints": {
                "matchPolicy": policy,
                "resourceRules": [rule("autoscaling", "v2", "horizontalpodautoscalers")],
            },
            "validations": [{"expression": format!("!({probe})"), "message": "it is"}],
        });
        enforce(&client, Sort::Validating, name, spec, json!({})).await;
        let path = format!("{}?dryRun=All", scalers("v1"));
        client.post(&path, &old).await.expect(code);
    }
}

#[tokio::test]
async fn policies_apply_to_deletions_and_parts_but_not_to_themselves() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let everything = json!([{
        "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"],
    }]);
    let spec = json!({
        "matchConstraints": {"resourceRules": everything},
        "matchConditions": [{"name": "labelled", "expression":
            "[object, oldObject].exists(o, o != null && 'guarded' in o.?metadata.?labels.orValue({}))"}],
        "validations": [{"expression": "false", "messageExpression":
            "request.operation + ' ' + request.resource.resource + ' ' + request.?subResource.orValue('-')"}],
    });
    let guarded = json!({"guarded": "yes"});
    let mut kept = config_map("kept", "1");
    kept["metadata"]["labels"] = guarded.clone();
    client.post(CONFIG_MAPS, &kept).await.expect(201);
    let mut scaled = deployment("scaled", 1);
    scaled["metadata"]["labels"] = guarded.clone();
    client.post(DEPLOYMENTS, &scaled).await.expect(201);
    enforce(&client, Sort::Validating, "guard", spec, json!({})).await;

    let message = |status: serde_json::Value| status["message"].as_str().unwrap_or_default().to_owned();
    let kept = format!("{CONFIG_MAPS}/kept");
    let denied = message(client.delete(&kept).await.fails(422, "Invalid"));
    assert!(denied.ends_with("denied request: DELETE configmaps -"), "{denied}");
    let denied = message(client.delete(CONFIG_MAPS).await.fails(422, "Invalid"));
    assert!(denied.ends_with("denied request: DELETE configmaps -"), "{denied}");
    client.get(&kept).await.expect(200);
    let status = format!("{DEPLOYMENTS}/scaled/status");
    let change = json!({"status": {"observedGeneration": 1}});
    let denied = message(client.patch(&status, MERGE, &change).await.fails(422, "Invalid"));
    assert!(denied.ends_with("denied request: UPDATE deployments status"), "{denied}");

    // Webhooks are guarded, policies are not: else nobody could take them back.
    let metadata = json!({"name": "x", "labels": guarded});
    let webhooks = format!("{ADMISSION}/validatingwebhookconfigurations");
    client.post(&webhooks, &json!({"metadata": metadata, "webhooks": []})).await.fails(422, "Invalid");
    let [policies, bindings] = Sort::Validating.collections();
    let spec = json!({"policyName": "guard", "validationActions": ["Deny"]});
    client.post(&bindings, &json!({"metadata": metadata, "spec": spec})).await.expect(201);
    client.patch(&format!("{policies}/guard"), MERGE, &json!({"metadata": {"labels": guarded}})).await.expect(200);
    client.delete(&format!("{policies}/guard")).await.expect(200);
    client.delete(&kept).await.expect(200);
}

#[tokio::test]
async fn a_policy_that_has_no_answer_denies_or_is_ignored() {
    let server = Server::start(&[]).await;
    let client = server.client();
    for (name, failure_policy, code) in [("ignore", "Ignore", 201), ("fail", "Fail", 422)] {
        let [policies, bindings] = Sort::Validating.collections();
        for (change, want) in [
            (
                json!({"validations": [{"expression": "object.data.missing == 'x'"}]}),
                "expression 'object.data.missing == 'x'' resulted in error: no such key: missing",
            ),
            (
                json!({"matchConditions": [{"name": "c", "expression": "object.data.missing == 'x'"}]}),
                "expression 'object.data.missing == 'x'' resulted in error: no such key: missing",
            ),
            (
                json!({"paramKind": {"apiVersion": "nobody.example.com/v1", "kind": "Nothing"}}),
                "failed to configure policy: failed to find resource referenced by paramKind: \
                 'nobody.example.com/v1, Kind=Nothing'",
            ),
            (
                json!({"validations": [{"expression":
                    "object.data.k.split('').all(a, object.data.k.split('').all(b, (a + b).matches('^x*$')))"}]}),
                "resulted in error: operation cancelled: actual cost limit exceeded",
            ),
        ] {
            let mut spec = json!({"failurePolicy": failure_policy, "validations": [{"expression": "true"}]});
            super::merge(&mut spec, change);
            enforce(&client, Sort::Validating, name, spec.clone(), json!({})).await;
            let path = format!("{CONFIG_MAPS}?dryRun=All");
            let reply = client.post(&path, &config_map("a", &"x".repeat(2000))).await.expect(code);
            if code != 201 {
                let message = reply.json()["message"].as_str().unwrap_or_default().to_owned();
                assert!(message.ends_with(want), "{message}\n{spec}");
            }
            client.delete(&format!("{bindings}/{name}-bound")).await.expect(200);
            client.delete(&format!("{policies}/{name}")).await.expect(200);
        }
    }
    server.assert_well().await;
}

#[tokio::test]
async fn warnings_and_numbers_tell_of_what_was_let_through() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let spec = json!({"validations": [{"expression": "object.data.k == 'good'", "message": "not good"}]});
    enforce(&client, Sort::Validating, "advice", spec, json!({"validationActions": ["Warn", "Audit"]})).await;
    let reply = client.post(CONFIG_MAPS, &config_map("a", "bad")).await.expect(201);
    let warning =
        "299 - \"Validation failed for ValidatingAdmissionPolicy 'advice' with binding 'advice-bound': not good\"";
    assert_eq!(reply.warnings(), [warning]);
    assert!(client.post(CONFIG_MAPS, &config_map("b", "good")).await.expect(201).warnings().is_empty());
    let metrics = String::from_utf8(client.get("/metrics").await.expect(200).body.to_vec()).expect("is a text");
    for action in ["audit", "warn"] {
        let line = format!(
            "apiserver_validating_admission_policy_check_total{{policy=\"advice\",policy_binding=\"advice-bound\",\
             error_type=\"invalid_error\",enforcement_action=\"{action}\"}} 1"
        );
        assert!(metrics.contains(&line), "{line} in {metrics}");
    }
    assert!(metrics.contains("apiserver_validating_admission_policy_check_duration_seconds_bucket{policy=\"advice\""));
}

#[tokio::test]
async fn namespaces_are_selected_by_their_labels() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let mut red = namespace("red");
    red["metadata"]["labels"] = json!({"team": "red"});
    client.post(NAMESPACES, &red).await.expect(201);
    client.post(NAMESPACES, &namespace("blue")).await.expect(201);
    let spec = json!({
        "matchConstraints": {
            "namespaceSelector": {"matchLabels": {"team": "red"}},
            "resourceRules": [rule("", "v1", "configmaps"), rule("", "v1", "namespaces")],
        },
        "validations": [{
            "expression": "namespaceObject != null && namespaceObject.metadata.labels.team != 'red'",
            "message": "not in red",
        }],
    });
    enforce(&client, Sort::Validating, "red", spec, json!({})).await;
    for (path, object, code) in [
        (format!("{NAMESPACES}/red/configmaps"), config_map("a", "1"), 422),
        (format!("{NAMESPACES}/blue/configmaps"), config_map("a", "1"), 201),
        // Of a namespace its own labels count, as they are to be.
        (format!("{NAMESPACES}?dryRun=All"), json!({"metadata": {"name": "x", "labels": {"team": "red"}}}), 422),
        (format!("{NAMESPACES}?dryRun=All"), namespace("y"), 201),
    ] {
        client.post(&path, &object).await.expect(code);
    }
}
