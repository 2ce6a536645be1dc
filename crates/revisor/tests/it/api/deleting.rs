//! Deleting: preconditions, finalizers, collections.

use serde_json::json;

use crate::client::{MERGE, name_of};
use crate::harness::Server;
use crate::objects::{CONFIG_MAPS, SECRETS, config_map, labelled, make_config_maps};

#[tokio::test]
async fn preconditions_decide_whether_an_object_goes() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let one = format!("{CONFIG_MAPS}/a");
    let made = client.post(CONFIG_MAPS, &config_map("a", "1")).await.expect(201).json();
    let uid = made["metadata"]["uid"].as_str().expect("a uid");
    let version = made["metadata"]["resourceVersion"].as_str().expect("a version");
    for (conditions, message) in [
        (json!({"uid": "other"}), "the UID in the precondition (other) does not match the UID in record"),
        (json!({"resourceVersion": "1"}), "the ResourceVersion in the precondition (1) does not match"),
        (json!({"uid": uid, "resourceVersion": "1"}), "the ResourceVersion in the precondition (1) does not match"),
    ] {
        let status = client.delete_with(&one, &json!({"preconditions": conditions})).await.fails(409, "Conflict");
        assert!(status["message"].as_str().is_some_and(|text| text.contains(message)), "{status}");
    }
    assert_eq!(client.get(&one).await.expect(200).json(), made);
    let fitting = json!({"preconditions": {"uid": uid, "resourceVersion": version}});
    client.delete_with(&one, &fitting).await.expect(200);
    client.get(&one).await.fails(404, "NotFound");
}

#[tokio::test]
async fn the_systems_own_priority_classes_stay() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let path = "/apis/scheduling.k8s.io/v1/priorityclasses";
    for name in ["system-node-critical", "system-cluster-critical"] {
        let refused = client.delete(&format!("{path}/{name}")).await.fails(403, "Forbidden");
        let why = "is forbidden: this is a system priority class and cannot be deleted";
        assert_eq!(refused["message"], format!("priorityclasses.scheduling.k8s.io \"{name}\" {why}"));
    }
}

#[tokio::test]
async fn a_finalizer_holds_an_object_that_is_marked() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let one = format!("{CONFIG_MAPS}/a");
    let mut object = config_map("a", "1");
    object["metadata"]["finalizers"] = json!(["example.com/held"]);
    client.post(CONFIG_MAPS, &object).await.expect(201);

    let marked = client.delete(&one).await.expect(200);
    let shown = marked.json();
    assert_eq!(shown["kind"], "ConfigMap", "what is still there is shown");
    assert!(shown["metadata"]["deletionTimestamp"].is_string(), "{shown}");
    assert_eq!(shown["metadata"]["deletionGracePeriodSeconds"], 0, "{shown}");
    assert_eq!(client.delete(&one).await.expect(200).version(), marked.version(), "marked once");

    let more = json!({"metadata": {"finalizers": ["example.com/held", "example.com/more"]}});
    let status = client.patch(&one, MERGE, &more).await.fails(422, "Invalid");
    assert_eq!(status["details"]["causes"][0]["field"], "metadata.finalizers", "{status}");
    let unmarked = client.patch(&one, MERGE, &json!({"metadata": {"deletionTimestamp": null}})).await.expect(200);
    assert_eq!(unmarked.json(), shown, "a mark cannot be taken away");

    let mut watch = client.watch(CONFIG_MAPS, &format!("resourceVersion={}", marked.version())).await;
    let changed = client.patch(&one, MERGE, &json!({"data": {"k": "2"}})).await.expect(200);
    client.patch(&one, MERGE, &json!({"metadata": {"finalizers": null}, "data": {"k": "3"}})).await.expect(200);
    client.get(&one).await.fails(404, "NotFound");
    watch.expect("MODIFIED", "a", changed.version()).await;
    let gone = watch.event().await;
    assert_eq!((&*gone.kind, name_of(&gone.object)), ("DELETED", "a"));
    assert!(gone.version() > changed.version());
    assert_eq!(gone.object["data"], json!({"k": "2"}), "the state before the write that let it go");
}

#[tokio::test]
async fn propagation_is_asked_for_by_finalizers() {
    let server = Server::start(&[]).await;
    let client = server.client();
    for (options, finalizer) in [
        (json!({"propagationPolicy": "Foreground"}), "foregroundDeletion"),
        (json!({"propagationPolicy": "Orphan"}), "orphan"),
        (json!({"orphanDependents": true}), "orphan"),
    ] {
        client.post(CONFIG_MAPS, &config_map("a", "1")).await.expect(201);
        let one = format!("{CONFIG_MAPS}/a");
        let marked = client.delete_with(&one, &options).await.expect(200).json();
        assert_eq!(marked["metadata"]["finalizers"], json!([finalizer]), "{options}");
        client.delete_with(&one, &json!({"propagationPolicy": "Background"})).await.expect(200);
        client.get(&one).await.fails(404, "NotFound");
    }
    // Who asks in the older way for dependents to go too is told that it has not happened yet.
    let held = json!({"metadata": {"name": "a", "finalizers": ["example.com/hold"]}});
    client.post(CONFIG_MAPS, &held).await.expect(201);
    let one = format!("{CONFIG_MAPS}/a");
    client.delete_with(&one, &json!({"orphanDependents": false})).await.expect(202);
    client.delete(&format!("{one}?orphanDependents=false")).await.expect(202);
    client.delete_with(&one, &json!({"propagationPolicy": "Background"})).await.expect(200);
    client.patch(&one, MERGE, &json!({"metadata": {"finalizers": null}})).await.expect(200);
    let bad = json!({"propagationPolicy": "Whatever"});
    client.delete_with(&format!("{CONFIG_MAPS}/a"), &bad).await.fails(422, "Invalid");
}

#[tokio::test]
async fn a_collection_is_deleted_as_far_as_it_is_selected() {
    let server = Server::start(&[]).await;
    let client = server.client();
    for (name, value) in [("a", "x"), ("b", "y"), ("c", "x"), ("d", "z")] {
        client.post(CONFIG_MAPS, &labelled(name, "l", value)).await.expect(201);
    }
    let elsewhere = "/api/v1/namespaces/kube-public/configmaps";
    client.post(elsewhere, &labelled("a", "l", "x")).await.expect(201);
    client.post(SECRETS, &json!({"metadata": {"name": "a", "labels": {"l": "x"}}})).await.expect(201);
    for (query, deleted, left) in [
        ("labelSelector=l%3Dx", vec!["a", "c"], vec!["b", "d"]),
        ("labelSelector=l%3Dx", vec![], vec!["b", "d"]),
        ("fieldSelector=metadata.name%3Dd", vec!["d"], vec!["b"]),
        ("", vec!["b"], vec![]),
    ] {
        let reply = client.delete(&format!("{CONFIG_MAPS}?{query}")).await.expect(200);
        assert_eq!(reply.names(), deleted, "{query}");
        assert_eq!(client.get(CONFIG_MAPS).await.names(), left, "{query}");
    }
    assert_eq!(client.get(elsewhere).await.names(), ["a"]);
    assert_eq!(client.get(SECRETS).await.names(), ["a"]);
    client.delete("/api/v1/configmaps").await.fails(405, "MethodNotAllowed");
    make_config_maps(&client, &["e"]).await;
    client.delete(&format!("{CONFIG_MAPS}?labelSelector=%3D%3D")).await.fails(400, "BadRequest");
    assert_eq!(client.get(CONFIG_MAPS).await.names(), ["e"]);
}

#[tokio::test]
async fn a_limit_spares_the_rest_of_a_collection_and_says_where_it_begins() {
    let server = Server::start(&[]).await;
    let client = server.client();
    for name in ["a", "b", "c"] {
        client.post(CONFIG_MAPS, &config_map(name, "1")).await.expect(201);
    }
    let names = |list: &serde_json::Value| -> Vec<String> {
        list["items"].as_array().into_iter().flatten().map(|item| name_of(item).to_owned()).collect()
    };
    let query = "fieldSelector=metadata.name!%3Dkube-root-ca.crt";
    let before = client.get(&format!("{CONFIG_MAPS}?{query}")).await.expect(200).json();
    let deleted = client.delete(&format!("{CONFIG_MAPS}?limit=2&{query}")).await.expect(200).json();
    assert_eq!(names(&deleted), ["a", "b"]);
    assert!(deleted["metadata"]["continue"].is_string(), "{deleted}");
    assert_eq!(deleted["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"], "as it was listed");
    let rest = client.get(&format!("{CONFIG_MAPS}?{query}")).await.expect(200).json();
    assert_eq!(names(&rest), ["c"]);
}

#[tokio::test]
async fn who_deletes_a_job_is_told_of_the_pods_that_stay() {
    const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
    let told = "299 - \"child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to \
                remove them or set propagationPolicy=Orphan to suppress this warning\"";
    let server = Server::start(&[]).await;
    let client = server.client();
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
    client.post(JOBS, &json!({"metadata": {"name": "j"}, "spec": {"template": template}})).await.expect(201);
    let job = format!("{JOBS}/j?dryRun=All");
    for (path, code, is_told) in [
        (job.clone(), 200, true),
        (format!("{JOBS}?dryRun=All"), 200, true),
        // Whether or not there is anything to be deleted, but not for what is no deletion at all.
        (format!("{JOBS}/none"), 404, true),
        (format!("{job}&propagationPolicy=Sometimes"), 422, false),
        (format!("{job}&propagationPolicy=Orphan"), 200, false),
        (format!("{job}&orphanDependents=false"), 200, false),
    ] {
        let reply = client.delete(&path).await.expect(code);
        let want: &[&str] = if is_told { &[told] } else { &[] };
        assert_eq!(reply.warnings(), want, "{path}");
    }
}
