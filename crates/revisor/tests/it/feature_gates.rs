//! Feature gates: what they switch off cannot be said anew, and what was said while they were on stays.

use http::Method;
use serde_json::{Value, json};

use crate::client::Client;
use crate::harness::Server;

const PODS: &str = "/api/v1/namespaces/default/pods";
const DRIVERS: &str = "/apis/storage.k8s.io/v1/csidrivers";
const SERVICES: &str = "/api/v1/namespaces/default/services";

/// A pod with what came to pods after 1.33.
fn pod(name: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "automountServiceAccountToken": false,
            "hostnameOverride": "a.example",
            "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
            "volumes": [{"name": "v", "image": {"reference": "i:1"}}],
            "containers": [{
                "name": "c",
                "image": "i:1",
                "restartPolicy": "Never",
                "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            }],
        },
    })
}

/// Which of it a pod has, and the class of service that follows.
fn said(pod: &Value) -> (bool, bool, bool, bool, &str) {
    let spec = &pod["spec"];
    let container = &spec["containers"][0];
    (
        spec.get("hostnameOverride").is_some(),
        spec.get("resources").is_some(),
        spec.get("volumes").is_some() && container.get("volumeMounts").is_some(),
        container.get("restartPolicy").is_some(),
        pod["status"]["qosClass"].as_str().unwrap_or_default(),
    )
}

const ALL: (bool, bool, bool, bool, &str) = (true, true, true, true, "Guaranteed");
const NONE: (bool, bool, bool, bool, &str) = (false, false, false, false, "BestEffort");

/// Reads a pod, changes a label, and writes it back.
async fn touch(client: &Client, name: &str, value: &str) -> Value {
    let path = format!("{PODS}/{name}");
    let mut pod = client.get(&path).await.expect(200).json();
    pod["metadata"]["labels"] = json!({"touched": value});
    client.put(&path, &pod).await.expect(200).json()
}

#[tokio::test]
async fn what_came_later_is_dropped_when_new_and_kept_when_known() {
    let account = json!({"metadata": {"name": "default"}});
    let driver = |name: &str| json!({"metadata": {"name": name}, "spec": {"nodeAllocatableUpdatePeriodSeconds": 60}});
    let server = Server::start(&["--emulation-version=1.33", "--controllers=none"]).await;
    let client = server.client();
    client.post("/api/v1/namespaces/default/serviceaccounts", &account).await.expect(201);
    assert_eq!(said(&client.post(PODS, &pod("early")).await.expect(201).json()), NONE);
    let early = client.post(DRIVERS, &driver("early.example")).await.expect(201).json();
    assert_eq!(early["spec"].get("nodeAllocatableUpdatePeriodSeconds"), None);
    let token = json!({"metadata": {"uid": "another"}, "spec": {}});
    let tokens = "/api/v1/namespaces/default/serviceaccounts/default/token";
    assert_eq!(client.post(tokens, &token).await.expect(201).warnings().len(), 1);
    let service = json!({"metadata": {"name": "1st"}, "spec": {"ports": [{"port": 80}]}});
    client.post(SERVICES, &service).await.fails(422, "Invalid");

    let server = server.kill9().with_flags(&["--controllers=none"]).start().await;
    let client = server.client();
    assert_eq!(said(&touch(&client, "early", "later").await), NONE);
    assert_eq!(said(&client.post(PODS, &pod("late")).await.expect(201).json()), ALL);
    let late = client.post(DRIVERS, &driver("late.example")).await.expect(201).json();
    assert_eq!(late["spec"]["nodeAllocatableUpdatePeriodSeconds"], 60);
    client.post(SERVICES, &service).await.expect(201);
    client.post(tokens, &token).await.fails(409, "Conflict");

    let server = server.kill9().with_flags(&["--emulation-version=1.33", "--controllers=none"]).start().await;
    let client = server.client();
    assert_eq!(said(&touch(&client, "late", "earlier").await), ALL);
    let mut late = client.get(&format!("{DRIVERS}/late.example")).await.expect(200).json();
    late["spec"]["nodeAllocatableUpdatePeriodSeconds"] = json!(90);
    let late = client.put(&format!("{DRIVERS}/late.example"), &late).await.expect(200).json();
    assert_eq!(late["spec"]["nodeAllocatableUpdatePeriodSeconds"], 90);
    let mut service = client.get(&format!("{SERVICES}/1st")).await.expect(200).json();
    service["metadata"]["labels"] = json!({"a": "b"});
    client.put(&format!("{SERVICES}/1st"), &service).await.expect(200);
    assert_eq!(said(&client.post(PODS, &pod("again")).await.expect(201).json()), NONE);
    server.assert_well().await;
}

#[tokio::test]
async fn gates_are_switched_one_by_one() {
    let sleeping = |name: &str| {
        json!({
            "metadata": {"name": name},
            "spec": {
                "automountServiceAccountToken": false,
                "os": {"name": "linux"},
                "tolerations": [{"key": "a", "operator": "Gt", "value": "1"}],
                "containers": [{"name": "c", "image": "i:1", "lifecycle": {"stopSignal": "SIGUSR1"}}],
            },
        })
    };
    let gates = "--feature-gates=ContainerStopSignals=true,TaintTolerationComparisonOperators=true";
    let server = Server::start(&[gates, "--controllers=none"]).await;
    let client = server.client();
    let account = json!({"metadata": {"name": "default"}});
    client.post("/api/v1/namespaces/default/serviceaccounts", &account).await.expect(201);
    let known = client.post(PODS, &sleeping("known")).await.expect(201).json();
    assert_eq!(known["spec"]["containers"][0]["lifecycle"]["stopSignal"], "SIGUSR1");

    let server = server.kill9().with_flags(&["--controllers=none"]).start().await;
    let client = server.client();
    let known = touch(&client, "known", "off").await;
    assert_eq!(known["spec"]["containers"][0]["lifecycle"]["stopSignal"], "SIGUSR1");
    let refused = client.post(PODS, &sleeping("new")).await.fails(422, "Invalid");
    assert_eq!(refused["details"]["causes"][0]["field"], "spec.tolerations[0].operator");
    let mut new = sleeping("new");
    new["spec"]["tolerations"] = json!([]);
    let new = client.post(PODS, &new).await.expect(201).json();
    assert_eq!(new["spec"]["containers"][0].get("lifecycle"), None);
    server.assert_well().await;
}

#[tokio::test]
async fn how_the_server_answers_is_switched_too() {
    let started = "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let maps = "/api/v1/namespaces/default/configmaps";
    for (flags, is_on) in [
        (vec![], true),
        // Releases differ in what they have on by themselves.
        (
            vec![
                "--emulation-version=1.33",
                "--feature-gates=StorageVersionHash=false,OpenAPIEnums=false,APIResponseCompression=false",
            ],
            false,
        ),
    ] {
        let server = Server::start(&flags).await;
        let client = server.client();
        let list = client.get("/apis/apps/v1").await.expect(200).json();
        let deployments =
            list["resources"].as_array().and_then(|all| all.iter().find(|one| one["name"] == "deployments"));
        assert_eq!(deployments.is_some_and(|found| found.get("storageVersionHash").is_some()), is_on);
        let document = client.get("/openapi/v3/api/v1").await.expect(200);
        let policy =
            &document.json()["components"]["schemas"]["io.k8s.api.core.v1.Container"]["properties"]["imagePullPolicy"];
        assert_eq!(policy.get("enum").is_some(), is_on, "{policy}");

        let text = "x".repeat(200_000);
        let large = json!({"metadata": {"name": "large"}, "data": {"a": text}});
        client.post(maps, &large).await.expect(201);
        let gzip = [("accept-encoding", "gzip")];
        let reply = client.send(Method::GET, &format!("{maps}/large"), &gzip, "").await.expect(200);
        assert_eq!(reply.header("content-encoding").is_some(), is_on);

        if is_on {
            let mut watch = client.watch(maps, started.trim_start_matches("?watch=1&")).await;
            assert_eq!(watch.event().await.kind, "ADDED");
            assert_eq!(watch.event().await.kind, "BOOKMARK");
        } else {
            let status = client.get(&format!("{maps}{started}")).await.fails(422, "Invalid");
            assert_eq!(status["details"]["causes"][0]["field"], "sendInitialEvents", "{status}");
            // The older way is there, and says nothing about where the state ends.
            let mut watch = client.watch(maps, "resourceVersion=0&allowWatchBookmarks=true").await;
            assert_eq!(watch.event().await.kind, "ADDED");
            let made = client.post(maps, &json!({"metadata": {"name": "next"}})).await.expect(201).version();
            watch.expect("ADDED", "next", made).await;
        }
    }
}
