//! Commands that go on: watches and waits.

use serde_json::json;

use super::{start, start_with_controllers};
use crate::harness::eventually;

#[tokio::test]
async fn watches_and_waits() {
    let (server, kubectl) = start(&[]).await;
    kubectl.create("configmap a").await;
    let mut watch = kubectl.begin("get configmaps -w --output-watch-events -o name");
    let line = watch.line().await;
    assert!(line.starts_with("configmap/a"), "{line}");
    kubectl.create("configmap b").await;
    let line = watch.line().await;
    assert!(line.starts_with("configmap/b"), "{line}");
    drop(watch);

    // The waiting command says nothing until the object is gone, so what it is waiting for is looked up on the server.
    let waiting = kubectl.begin("wait --for=delete configmap/a --timeout=30s");
    let client = server.client();
    eventually(|| async {
        let metrics = client.get("/metrics").await;
        let text = String::from_utf8_lossy(&metrics.body).into_owned();
        let mut lines = text.lines().filter(|line| line.starts_with("apiserver_longrunning_requests{"));
        lines.any(|line| line.contains("configmaps") && line.ends_with(" 1")).then_some(())
    })
    .await;
    kubectl.ok("delete configmap a").await;
    assert_eq!(waiting.rest().await, "configmap/a condition met\n");
}

/// The rows of a table come as they change.
#[tokio::test]
async fn follows_a_pod_from_its_making_to_its_end() {
    let (_server, kubectl) = start_with_controllers().await;
    let mut watch = kubectl.begin("get pods -w --output-watch-events");
    kubectl.ok("run first --image=registry.example/p").await;
    assert_eq!(watch.line().await, "EVENT NAME READY STATUS RESTARTS AGE\n");
    watch.line_with("ADDED first 0/1 Pending 0 ").await;
    let ready = json!({"phase": "Running", "containerStatuses": [
        {"name": "first", "ready": true, "restartCount": 0, "image": "registry.example/p", "imageID": "",
         "state": {"running": {}}}]});
    kubectl.set_status("pod first", &ready).await;
    watch.line_with("MODIFIED first 1/1 Running 0 ").await;
    kubectl.ok("delete pod first").await;
    watch.line_with("DELETED first ").await;
}
