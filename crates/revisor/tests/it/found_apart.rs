//! What was found by asking the original the same, in places that nothing else here is about.

use serde_json::{Value, json};

use crate::client::{MERGE, Reply};
use crate::harness::Server;

const NAMESPACE: &str = "/api/v1/namespaces/default";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

fn causes(reply: &Reply) -> Vec<Value> {
    reply.json()["details"]["causes"].as_array().cloned().unwrap_or_default()
}

#[tokio::test]
async fn what_is_wrong_with_changed_metadata_is_told_as_often_as_it_is_found() {
    let server = Server::start(&["--controllers=none"]).await;
    let client = server.client();
    let config_maps = format!("{NAMESPACE}/configmaps");
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    client.post(&config_maps, &json!({"metadata": {"name": "a"}})).await.expect(201);
    client.post(LEASES, &json!({"metadata": {"name": "a"}})).await.expect(201);
    client.post(budgets, &json!({"metadata": {"name": "a"}, "spec": {"minAvailable": 1}})).await.expect(201);
    for (collection, times, is_named_by_rule) in [(&*config_maps, 4, true), (LEASES, 3, false), (budgets, 2, false)] {
        let path = format!("{collection}/a?dryRun=All");
        let refused = client.patch(&path, MERGE, &json!({"metadata": {"labels": {"a b": "c"}}})).await.expect(422);
        assert_eq!(causes(&refused).len(), times, "{}", refused.text());
        let text = refused.json()["message"].as_str().map_or(0, |text| text.matches("metadata.labels").count());
        assert_eq!(text, 1, "{}", refused.text());
        let code = client.patch(&path, MERGE, &json!({"metadata": {"generateName": "A_b!"}})).await.code;
        assert_eq!(code, if is_named_by_rule { 422 } else { 200 }, "{collection}");
    }
}

#[tokio::test]
async fn a_refused_object_without_a_name_is_called_by_what_it_would_begin_with() {
    let server = Server::start(&["--controllers=none"]).await;
    let client = server.client();
    client.post("/api/v1/namespaces", &json!({"metadata": {"name": "bare"}})).await.expect(201);
    let spec = json!({"containers": [{"name": "c", "image": "i"}]});
    for (metadata, name) in [(json!({}), "Unknown"), (json!({"generateName": "ab-"}), "ab-")] {
        let pod = json!({"metadata": metadata, "spec": spec});
        let status = client.post("/api/v1/namespaces/bare/pods", &pod).await.fails(403, "Forbidden");
        assert_eq!(status["details"]["name"], name, "{status}");
    }
}

#[tokio::test]
async fn odd_writes_do_what_they_do_in_the_original() {
    let server = Server::start(&["--controllers=none"]).await;
    let client = server.client();
    // Lists of nothing are managed by who sends them, and shown as none.
    let slice = json!({"metadata": {"name": "a"}, "addressType": "IPv4", "endpoints": [], "ports": []});
    let slice = client.post(SLICES, &slice).await.expect(201).json();
    let fields = json!({"f:addressType": {}, "f:endpoints": {}, "f:ports": {}});
    assert_eq!(slice["metadata"]["managedFields"][0]["fieldsV1"], fields);
    assert!(slice["endpoints"].is_null() && slice["ports"].is_null(), "{slice}");
    // A patch that takes away the version leaves nothing that could be found.
    let config_maps = format!("{NAMESPACE}/configmaps");
    client.post(&config_maps, &json!({"metadata": {"name": "a"}, "data": {"a": "b"}})).await.expect(201);
    let unversioned = json!({"apiVersion": null});
    let refused = client.patch(&format!("{config_maps}/a"), MERGE, &unversioned).await.expect(400);
    assert_eq!(refused.warnings(), [r#"299 - "unknown field \"data\"""#, r#"299 - "unknown field \"metadata\"""#]);
    let strict = format!("{config_maps}/a?fieldValidation=Strict");
    client.patch(&strict, MERGE, &unversioned).await.fails(422, "Invalid");
    // Numbers without a fraction are whole in YAML, and not in JSON.
    let sent = r#"{"metadata": {"name": "b"}, "spec": {"leaseDurationSeconds": 3e1}}"#;
    for (media_type, code) in [("application/json", 400), ("application/yaml", 201)] {
        let headers = [("content-type", media_type)];
        client.send(http::Method::POST, LEASES, &headers, sent).await.expect(code);
    }
    // What must be true of an object that is deleted may stand in the query.
    client.delete(&format!("{LEASES}/b?uid=x")).await.fails(409, "Conflict");
    client.delete(&format!("{LEASES}/b?resourceVersion=1")).await.fails(409, "Conflict");
    client.delete(&format!("{LEASES}/b?propagationPolicy=")).await.fails(422, "Invalid");
    client.delete(&format!("{LEASES}/b")).await.expect(200);
    // A namespace is active unless it is said to be something else.
    let namespace = json!({"metadata": {"name": "default"}, "status": {}});
    let namespace = client.put(&format!("{NAMESPACE}/status"), &namespace).await.expect(200).json();
    assert_eq!(namespace["status"]["phase"], "Active");
    // Tokens are asked for by somebody.
    client.post(&format!("{NAMESPACE}/serviceaccounts"), &json!({"metadata": {"name": "a"}})).await.expect(201);
    let token = client.post(&format!("{NAMESPACE}/serviceaccounts/a/token"), &json!({})).await.expect(201).json();
    assert_eq!(token["metadata"]["managedFields"][0]["subresource"], "token", "{token}");
}

#[tokio::test]
async fn paths_and_tables_are_those_of_the_original() {
    let server = Server::start(&["--controllers=none"]).await;
    let client = server.client();
    client.get("/apis/authorization.k8s.io/v1/localsubjectaccessreviews").await.fails(404, "NotFound");
    client.get("/apis/authentication.k8s.io/v1/watch/tokenreviews").await.fails(404, "NotFound");
    assert_eq!(client.get("/index.html").await.expect(200).json(), client.get("/").await.expect(200).json());
    let jobs = client.get("/apis/batch/v1/jobs?fieldSelector=spec.x%3D1").await.fails(400, "BadRequest");
    assert_eq!(jobs["message"], "field label \"spec.x\" not supported for Job");
    for (path, is_null) in [("/apis/rbac.authorization.k8s.io/v1/roles", true), ("/api/v1/configmaps", false)] {
        let path = format!("{path}?labelSelector=no%3Dsuch");
        let headers = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
        let table = client.send(http::Method::GET, &path, &headers, "").await.expect(200).json();
        assert_eq!(table["rows"], if is_null { Value::Null } else { json!([]) }, "{path}");
    }
}
