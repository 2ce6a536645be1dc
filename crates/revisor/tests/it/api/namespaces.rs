//! Namespaces: their phases, their subresources, and what they mean for what is in them.

use serde_json::{Value, json};

use crate::client::{MERGE, name_of};
use crate::harness::{SILENT, Server};
use crate::objects::{NAMESPACES, config_map, namespace};

#[tokio::test]
async fn the_namespaces_of_a_cluster_are_there_from_the_start() {
    let server = Server::start(&SILENT).await;
    let client = server.client();
    assert_eq!(client.get(NAMESPACES).await.names(), ["default", "kube-node-lease", "kube-public", "kube-system"]);
    for name in ["default", "kube-system", "kube-public"] {
        client.delete(&format!("{NAMESPACES}/{name}")).await.fails(403, "Forbidden");
    }
    let versions = client.get(NAMESPACES).await.version();
    let server = server.restart_in_order().await;
    assert_eq!(server.client().get(NAMESPACES).await.version(), versions, "a start writes nothing twice");
}

#[tokio::test]
async fn a_namespace_is_active_then_terminating_then_gone() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let one = format!("{NAMESPACES}/n");
    let made = client.post(NAMESPACES, &namespace("n")).await.expect(201).json();
    assert_eq!(made["metadata"]["labels"], json!({"kubernetes.io/metadata.name": "n"}));
    assert_eq!((&made["spec"], &made["status"]), (&json!({"finalizers": ["kubernetes"]}), &json!({"phase": "Active"})));
    client.post(&format!("{one}/configmaps"), &config_map("a", "1")).await.expect(201);

    let marked = client.delete(&one).await.expect(200);
    let object = marked.json();
    assert_eq!(object["status"]["phase"], "Terminating");
    assert!(object["metadata"]["deletionTimestamp"].is_string(), "{object}");
    assert_eq!(client.get(&one).await.expect(200).json(), object);

    // What is there stays and can be changed, but nothing joins it.
    client.get(&format!("{one}/configmaps/a")).await.expect(200);
    client.patch(&format!("{one}/configmaps/a"), MERGE, &json!({"data": {"k": "2"}})).await.expect(200);
    for query in ["", "?dryRun=All"] {
        let reply = client.post(&format!("{one}/configmaps{query}"), &config_map("b", "1")).await;
        let status = reply.fails(403, "Forbidden");
        assert_eq!(
            status["message"],
            "configmaps \"b\" is forbidden: unable to create new content in namespace n because it is being terminated"
        );
        assert_eq!(status["details"]["causes"][0]["reason"], "NamespaceTerminating", "{status}");
        assert_eq!(status["details"]["causes"][0]["field"], "metadata.namespace", "{status}");
    }

    let mut watch = client.watch(NAMESPACES, &format!("resourceVersion={}", marked.version())).await;
    let done = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "n"}, "spec": {"finalizers": []}});
    client.put(&format!("{one}/finalize"), &done).await.expect(200);
    client.get(&one).await.fails(404, "NotFound");
    let gone = watch.event().await;
    assert_eq!((&*gone.kind, name_of(&gone.object)), ("DELETED", "n"));
}

#[tokio::test]
async fn subresources_write_their_part_only() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let one = format!("{NAMESPACES}/n");
    let made = client.post(NAMESPACES, &namespace("n")).await.expect(201).json();
    assert_eq!(client.get(&format!("{one}/status")).await.expect(200).json(), made);

    // The whole object cannot say what its finalizers and its status are.
    let mut whole = made.clone();
    whole["spec"]["finalizers"] = json!([]);
    whole["status"] = json!({"phase": "Terminating"});
    whole["metadata"]["annotations"] = json!({"a": "b"});
    let saved = client.put(&one, &whole).await.expect(200).json();
    assert_eq!((&saved["spec"], &saved["status"]), (&made["spec"], &made["status"]));
    assert_eq!(saved["metadata"]["annotations"], json!({"a": "b"}));

    let condition = json!({"type": "C", "status": "True", "reason": "R", "message": "m"});
    let patch = json!({"status": {"conditions": [condition]}, "spec": {"finalizers": []}});
    let saved = client.patch(&format!("{one}/status"), MERGE, &patch).await.expect(200).json();
    assert_eq!(saved["spec"], made["spec"]);
    assert_eq!(saved["status"]["conditions"][0]["type"], "C", "{saved}");
    assert_eq!(saved["status"]["phase"], "Active", "{saved}");

    for (method, path) in [("DELETE", "status"), ("POST", "status"), ("GET", "finalize"), ("PATCH", "finalize")] {
        let method = method.parse().expect("a method");
        let headers = [("content-type", MERGE)];
        client.send(method, &format!("{one}/{path}"), &headers, "{}").await.fails(405, "MethodNotAllowed");
    }
    client.delete(NAMESPACES).await.fails(405, "MethodNotAllowed");
}

#[tokio::test]
async fn nothing_is_made_in_a_namespace_that_is_not_there() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let away = "/api/v1/namespaces/away";
    for (path, object) in [
        (format!("{away}/configmaps"), config_map("a", "1")),
        (format!("{away}/configmaps"), config_map("no name at all", "1")),
        (format!("{away}/secrets"), json!({"metadata": {"name": "a"}})),
        ("/apis/coordination.k8s.io/v1/namespaces/away/leases".to_owned(), json!({"metadata": {"name": "a"}})),
    ] {
        let status = client.post(&path, &object).await.fails(404, "NotFound");
        assert_eq!(status["message"], "namespaces \"away\" not found");
        assert_eq!(status["details"], json!({"name": "away", "kind": "namespaces"}));
        assert_eq!(client.get(&path).await.expect(200).json()["items"], Value::Array(vec![]));
    }
    let mut elsewhere = config_map("a", "1");
    elsewhere["metadata"]["namespace"] = json!("kube-system");
    let status = client.post("/api/v1/namespaces/default/configmaps", &elsewhere).await.fails(400, "BadRequest");
    assert_eq!(
        status["message"],
        "the namespace of the provided object does not match the namespace sent on the request"
    );
}
