//! What was found by asking the original the same, in places that nothing else here is about.

use serde_json::{Value, json};

use crate::client::{MERGE, Reply, STRATEGIC};
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

#[tokio::test]
async fn a_strategic_merge_patch_is_read_into_its_type_without_json() {
    let server = Server::start(&["--controllers=none"]).await;
    let client = server.client();
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec = json!({"selector": {"matchLabels": {"a": "b"}}, "template": template});
    client.post(deployments, &json!({"metadata": {"name": "d"}, "spec": spec})).await.expect(201);
    // Numbers are cut to the bits that there are.
    for (subresource, replicas, want) in
        [("", json!(3.0), 3), ("", json!(4_294_967_298_i64), 2), ("/scale", json!(2.0), 2)]
    {
        let path = format!("{deployments}/d{subresource}?dryRun=All");
        let changed = client.patch(&path, STRATEGIC, &json!({"spec": {"replicas": replicas}})).await.expect(200).json();
        assert_eq!(changed["spec"]["replicas"], want, "{changed}");
    }
    for (subresource, patch, field, told) in [
        ("", json!({"spec": {"replicas": 2_147_483_648_i64}}), "spec.replicas", "-2147483648: must be greater than"),
        ("", json!({"spec": {"replicas": 1.5}}), "patch", "cannot convert float64 to int32"),
        ("", json!({"spec": {"strategy": "x"}}), "patch", "cannot restore struct from: string"),
        ("", json!({"metadata": {"labels": {"a": 1}}}), "patch", "cannot convert int64 to string"),
        ("/scale", json!({"spec": {"replicas": "3"}}), "patch", r#""map[spec:map[replicas:3]]": unrecognized type"#),
    ] {
        let path = format!("{deployments}/d{subresource}?dryRun=All");
        let refused = client.patch(&path, STRATEGIC, &patch).await.expect(422);
        let cause = &causes(&refused)[0];
        assert_eq!(cause["field"], field, "{}", refused.text());
        assert!(cause["message"].as_str().is_some_and(|message| message.contains(told)), "{}", refused.text());
    }
}

#[tokio::test]
async fn what_a_kind_says_of_its_names_is_said_of_what_they_begin_with() {
    let server = Server::start(&["--controllers=none"]).await;
    let client = server.client();
    let services = format!("{NAMESPACE}/services");
    let addresses = "/apis/networking.k8s.io/v1/ipaddresses";
    client.post(&services, &json!({"metadata": {"name": "a"}, "spec": {"ports": [{"port": 1}]}})).await.expect(201);
    let parent = json!({"resource": "things", "name": "a", "group": "g.example"});
    let address = |metadata: Value| json!({"metadata": metadata, "spec": {"parentRef": parent}});
    client.post(addresses, &address(json!({"name": "192.0.2.1"}))).await.expect(201);
    // An address with something behind it would be none.
    let made = client.post(addresses, &address(json!({"generateName": "192.0.2.3"}))).await.expect(201).json();
    assert_eq!(made["metadata"]["name"], "192.0.2.3");
    let named = address(json!({"name": "192.0.2.2", "generateName": "a,b"}));
    let refused = client.post(addresses, &named).await.expect(422);
    assert_eq!(causes(&refused)[0]["field"], "metadata.generateName", "{}", refused.text());
    for (path, prefix, code) in [
        (format!("{services}/a"), "a/b", 422),
        (format!("{services}/a"), "A_b", 200),
        (format!("{addresses}/192.0.2.1"), "a", 422),
    ] {
        let change = json!({"metadata": {"generateName": prefix}});
        client.patch(&format!("{path}?dryRun=All"), MERGE, &change).await.expect(code);
    }
}

#[tokio::test]
async fn who_binds_beside_the_pod_does_not_say_which_one_is_meant() {
    let server = Server::start(&["--controllers=none"]).await;
    let client = server.client();
    let spec = json!({"containers": [{"name": "c", "image": "i"}]});
    let account = json!({"metadata": {"name": "default"}});
    client.post(&format!("{NAMESPACE}/serviceaccounts"), &account).await;
    client.post(&format!("{NAMESPACE}/pods"), &json!({"metadata": {"name": "p"}, "spec": spec})).await.expect(201);
    let binding = json!({"metadata": {"name": "p", "uid": "other"}, "target": {"name": "n"}});
    client.post(&format!("{NAMESPACE}/pods/p/binding?dryRun=All"), &binding).await.fails(409, "Conflict");
    client.post(&format!("{NAMESPACE}/bindings?dryRun=All"), &binding).await.expect(201);
}
