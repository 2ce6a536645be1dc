//! Server-side apply to built-in kinds.

use serde_json::{Value, json};

use crate::client::{APPLY, MERGE};
use crate::harness::Server;

const CONFIG_MAP: &str = "/api/v1/namespaces/default/configmaps/one";
const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/default/deployments/one";

fn config_map(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": data})
}

fn deployment(more: Value) -> Value {
    let mut spec = json!({
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    });
    spec.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "one"}, "spec": spec})
}

/// Who manages the place at the end of this path, and whether it is known since when.
fn managers_of(object: &Value, path: &str) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default();
    let managing = entries.iter().filter(|entry| entry["fieldsV1"].pointer(path).is_some());
    let shown = |entry: &Value| {
        let text = |name: &str| entry[name].as_str().unwrap_or_default();
        let since = if entry["time"].is_null() { "" } else { " timed" };
        format!("{} {} {}{since}", text("manager"), text("apiVersion"), text("subresource"))
    };
    let mut managers: Vec<String> = managing.map(shown).collect();
    // Entries are in the order of their times, which tell no seconds apart.
    managers.sort();
    managers
}

#[tokio::test]
async fn a_configuration_is_taken_at_its_word() {
    let server = Server::start(&[]).await;
    let client = server.client();
    client.patch(&format!("{DEPLOYMENT}?fieldManager=a"), APPLY, &deployment(json!({"replicas": 2}))).await.expect(201);
    // Who says null says something.
    let null =
        client.patch(&format!("{DEPLOYMENT}?fieldManager=b"), APPLY, &deployment(json!({"replicas": null}))).await;
    assert_eq!(
        null.fails(409, "Conflict")["message"],
        r#"Apply failed with 1 conflict: conflict with "a": .spec.replicas"#
    );
    let path = format!("{DEPLOYMENT}?fieldManager=b&force=true");
    let forced = client.patch(&path, APPLY, &deployment(json!({"replicas": null}))).await.expect(200).json();
    assert_eq!((&forced["spec"]["replicas"], managers_of(&forced, "/f:spec/f:replicas").len()), (&json!(1), 1));

    for (name, query, body, code, message) in [
        (
            "a repeated key",
            "fieldManager=a&fieldValidation=Strict",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  k: a\n  k: b\n",
            400,
            "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  line 7: key \"k\" already set in map",
        ),
        (
            "an unknown field",
            "fieldManager=a",
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"},"date":{}}"#,
            500,
            "failed to create typed patch object (/one; /v1, Kind=ConfigMap): .date: field not declared in schema",
        ),
        (
            "a manager that cannot be printed",
            "fieldManager=a%07",
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"}}"#,
            422,
            r#"PatchOptions.meta.k8s.io "" is invalid: fieldManager: Invalid value: "a\a": invalid character U+0007 (at position 1)"#,
        ),
    ] {
        let path = format!("{CONFIG_MAP}?{query}");
        let answer = client.send(http::Method::PATCH, &path, &[("content-type", APPLY)], body).await;
        assert_eq!((answer.code, &answer.json()["message"]), (code, &json!(message)), "{name}");
    }
}

#[tokio::test]
async fn versions_of_a_built_in_kind_share_their_managers() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let scaler = |version: &str, more: Value| {
        let mut spec =
            json!({"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 5});
        spec.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        json!({"apiVersion": format!("autoscaling/{version}"), "kind": "HorizontalPodAutoscaler",
               "metadata": {"name": "one"}, "spec": spec})
    };
    let path = |version: &str, manager: &str| {
        format!("/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers/one?fieldManager={manager}")
    };
    let first = scaler("v1", json!({"targetCPUUtilizationPercentage": 50}));
    client.patch(&path("v1", "a"), APPLY, &first).await.expect(201);
    let metric = |percent: i64| {
        let target = json!({"type": "Utilization", "averageUtilization": percent});
        json!({"metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]})
    };
    let other = client.patch(&path("v2", "b"), APPLY, &scaler("v2", metric(60))).await.fails(409, "Conflict");
    assert_eq!(
        other["message"],
        r#"Apply failed with 1 conflict: conflict with "a": .spec.targetCPUUtilizationPercentage"#
    );
    client.patch(&path("v2", "b"), APPLY, &scaler("v2", metric(50))).await.expect(200);
    // What was said in one version is given up in another.
    let mut more = metric(50);
    more["behavior"] = json!({"scaleDown": {"stabilizationWindowSeconds": 1}});
    let moved = client.patch(&path("v2", "a"), APPLY, &scaler("v2", more)).await.expect(200).json();
    assert_eq!(managers_of(&moved, "/f:spec/f:metrics"), ["a autoscaling/v2  timed", "b autoscaling/v2 "]);
    assert_eq!(moved["spec"]["behavior"]["scaleDown"]["policies"].as_array().map(Vec::len), Some(1));
    // What does not fit its type cannot be shown in another version either; that is no failure of the server.
    let unfit = scaler("v1", json!({"targetCPUUtilizationPercentage": 0.5}));
    let refused = client.patch(&format!("{}&force=true", path("v1", "a")), APPLY, &unfit).await.expect(422).json();
    assert!(refused["message"].as_str().expect("a message").contains("cannot unmarshal number 0.5"), "{refused}");
    let changed = json!({"spec": {"targetCPUUtilizationPercentage": 70}});
    let changed = client.patch(&path("v1", "u"), MERGE, &changed).await.expect(200).json();
    assert_eq!(managers_of(&changed, "/f:spec/f:metrics"), [""; 0]);
    assert_eq!(managers_of(&changed, "/f:spec/f:targetCPUUtilizationPercentage"), ["u autoscaling/v1  timed"]);
}

#[tokio::test]
async fn a_scale_has_managers_of_its_own() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let scale = |replicas: i64| json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "one"}, "spec": {"replicas": replicas}});
    client.patch(&format!("{DEPLOYMENT}?fieldManager=a"), APPLY, &deployment(json!({}))).await.expect(201);
    let path = format!("{DEPLOYMENT}/scale?fieldManager=s");
    let refused = client.patch(&path, APPLY, &scale(3)).await.fails(409, "Conflict");
    assert_eq!(
        refused["message"],
        "Apply failed with 1 conflict: conflict with \"before-first-apply\" with subresource \"scale\" using autoscaling/v1: .spec.replicas"
    );
    client.patch(&format!("{path}&force=true"), APPLY, &scale(3)).await.expect(200);
    let managers = async || managers_of(&client.get(DEPLOYMENT).await.expect(200).json(), "/f:spec/f:replicas");
    assert_eq!(managers().await, ["s apps/v1 scale"]);
    client.put(&format!("{DEPLOYMENT}/scale?fieldManager=u"), &scale(4)).await.expect(200);
    assert_eq!(managers().await, ["u apps/v1 scale"]);
}

#[tokio::test]
async fn a_new_object_may_name_its_managers() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let entry = |manager: &str, version: &str| {
        json!({"manager": manager, "operation": "Apply", "apiVersion": version, "fieldsType": "FieldsV1",
               "fieldsV1": {"f:data": {"f:other": {}}}})
    };
    let mut object = config_map(json!({"k": "v"}));
    object["metadata"]["managedFields"] = json!([entry("a", "v1"), entry("b", "v7")]);
    let path = CONFIG_MAP.strip_suffix("/one").expect("its name");
    let made = client.post(path, &object).await.expect(201).json();
    assert_eq!(managers_of(&made, "/f:data/f:other"), ["a v1 "], "one of a version that is not there goes");
    object["metadata"] = json!({"name": "two", "managedFields": [entry(&"x".repeat(200), "v1")]});
    let refused = client.post(path, &object).await.fails(422, "Invalid");
    assert_eq!(refused["details"]["causes"][0]["field"], "metadata.managedFields[0].manager");
}

/// Though nobody can see it afterwards.
#[tokio::test]
async fn who_sends_a_list_with_nothing_in_it_manages_it() {
    const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
    let server = Server::start(&[]).await;
    let client = server.client();
    for (name, rules, want) in [("given", json!([]), vec!["a"]), ("not-given", Value::Null, vec![])] {
        let role = json!({"metadata": {"name": name}, "rules": rules});
        let made = client.post(&format!("{ROLES}?fieldManager=a"), &role).await.expect(201).json();
        assert_eq!(made["rules"], Value::Null, "{name}");
        let entries = made["metadata"]["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default();
        let managers: Vec<&str> = entries.iter().filter_map(|entry| entry["manager"].as_str()).collect();
        assert_eq!(managers, want, "{name}");
    }
    let one = format!("{ROLES}/given");
    let same = client.get(&one).await.expect(200).json();
    let again = client.put(&format!("{one}?fieldManager=b"), &same).await.expect(200).json();
    assert_eq!(managers_of(&again, "/f:rules"), ["a rbac.authorization.k8s.io/v1  timed"]);
    let sent = json!({"metadata": {"name": "given"}, "rules": []});
    let taken = client.put(&format!("{one}?fieldManager=b"), &sent).await.expect(200).json();
    assert_eq!(managers_of(&taken, "/f:rules"), ["b rbac.authorization.k8s.io/v1  timed"]);
}
