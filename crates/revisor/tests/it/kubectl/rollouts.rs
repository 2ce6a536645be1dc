//! Rollouts, with the tests in the place of the controller that makes replica sets and counts pods.

use serde_json::{Value, json};

use super::{Kubectl, reference, replica_set, start};

/// Makes the replica set that a revision of the deployment stands for.
async fn revision(kubectl: &Kubectl, deployment: &Value, number: u32, image: &str) {
    let mut set = replica_set(&format!("web-{number}"), "web", image);
    set["metadata"]["ownerReferences"] = json!([reference(deployment)]);
    set["metadata"]["annotations"] = json!({
        "deployment.kubernetes.io/revision": number.to_string(),
        "kubernetes.io/change-cause": format!("change {number}"),
    });
    let (succeeded, text) = kubectl.create_from(&set.to_string()).await;
    assert!(succeeded, "{text}");
}

#[tokio::test]
async fn a_rollout_is_followed_to_its_end() {
    let (_server, kubectl) = start(&[]).await;
    kubectl.create("deployment web --image=registry.example/web:1 --replicas=2").await;
    let mut following = kubectl.begin("rollout status deployment/web --timeout=30s");
    assert_eq!(following.line().await, "Waiting for deployment spec update to be observed...\n");
    kubectl.set_status("deployment web", &json!({"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1})).await;
    let line = following.line_with("Waiting for deployment \"web\"").await;
    assert_eq!(
        line,
        "Waiting for deployment \"web\" rollout to finish: 1 out of 2 new replicas have been updated...\n"
    );
    let done = json!({"replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2});
    kubectl.set_status("deployment web", &done).await;
    following.line_with("deployment \"web\" successfully rolled out").await;
    following.rest().await;
    let rows = kubectl.squeezed("get deployment web").await;
    assert!(rows.contains("\nweb 2/2 2 2 "), "{rows}");
    let available =
        json!({"conditions": [{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}]});
    kubectl.set_status("deployment web", &available).await;
    let text = kubectl.ok("wait --for=condition=Available deployment/web").await;
    assert_eq!(text, "deployment.apps/web condition met\n");
}

#[tokio::test]
async fn a_rollout_is_paused_restarted_and_undone() {
    let (_server, kubectl) = start(&[]).await;
    kubectl.create("deployment web --image=registry.example/web:1").await;
    let text = kubectl.refused("rollout undo deployment/web").await;
    assert_eq!(text, "error: no rollout history found for deployment \"web\"\n");

    let deployment = kubectl.json("get deployment web").await;
    revision(&kubectl, &deployment, 1, "registry.example/web:1").await;
    kubectl.ok("set image deployment/web web=registry.example/web:2").await;
    revision(&kubectl, &deployment, 2, "registry.example/web:2").await;
    let history = kubectl.squeezed("rollout history deployment/web").await;
    assert_eq!(history, "deployment.apps/web\nREVISION CHANGE-CAUSE\n1 change 1\n2 change 2\n\n");
    let second = kubectl.squeezed("rollout history deployment/web --revision=2").await;
    assert!(second.starts_with("deployment.apps/web with revision #2\n"), "{second}");
    assert!(second.contains("\nImage: registry.example/web:2\n"), "{second}");

    assert_eq!(kubectl.ok("rollout pause deployment/web").await, "deployment.apps/web paused\n");
    let text = kubectl.refused("rollout pause deployment/web").await;
    assert_eq!(text, "error: deployments.apps \"web\" is already paused\n");
    let text = kubectl.refused("rollout undo deployment/web").await;
    assert!(text.contains("cannot rollback a paused deployment"), "{text}");
    assert_eq!(kubectl.ok("rollout resume deployment/web").await, "deployment.apps/web resumed\n");
    assert_eq!(kubectl.ok("rollout undo deployment/web").await, "deployment.apps/web rolled back\n");
    let found = kubectl.json("get deployment web").await;
    assert_eq!(found["spec"]["template"]["spec"]["containers"][0]["image"], "registry.example/web:1");
    assert!(found["spec"]["paused"].is_null(), "{found}");

    assert_eq!(kubectl.ok("rollout restart deployment/web").await, "deployment.apps/web restarted\n");
    let restarted = kubectl.json("get deployment web").await;
    let annotations = &restarted["spec"]["template"]["metadata"]["annotations"];
    assert!(annotations["kubectl.kubernetes.io/restartedAt"].is_string(), "{restarted}");
    assert_eq!(restarted["metadata"]["generation"].as_i64(), found["metadata"]["generation"].as_i64().map(|n| n + 1));
}

#[tokio::test]
async fn stateful_and_daemon_sets_roll_out_too() {
    let (_server, kubectl) = start(&[]).await;
    let template = json!({
        "metadata": {"labels": {"app": "x"}},
        "spec": {"containers": [{"name": "c", "image": "registry.example/x:1"}]},
    });
    let selector = json!({"matchLabels": {"app": "x"}});
    let stateful = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s"},
        "spec": {"replicas": 2, "serviceName": "s", "selector": selector, "template": template}});
    let daemon = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d"},
        "spec": {"selector": selector, "template": template}});
    let (succeeded, text) = kubectl.create_from(&format!("{stateful}\n---\n{daemon}")).await;
    assert!(succeeded && text == "statefulset.apps/s created\ndaemonset.apps/d created\n", "{text}");
    assert_eq!(kubectl.ok("scale statefulset s --replicas=1").await, "statefulset.apps/s scaled\n");
    assert_eq!(kubectl.ok("rollout restart daemonset/d").await, "daemonset.apps/d restarted\n");
    assert_eq!(
        kubectl.ok("set image statefulset/s c=registry.example/x:2").await,
        "statefulset.apps/s image updated\n"
    );

    let status = json!({
        "observedGeneration": 3, "replicas": 1, "readyReplicas": 1, "updatedReplicas": 1, "availableReplicas": 1,
        "currentRevision": "s-1", "updateRevision": "s-1",
    });
    kubectl.set_status("statefulset s", &status).await;
    let text = kubectl.ok("rollout status statefulset/s").await;
    assert_eq!(text, "partitioned roll out complete: 1 new pods have been updated...\n");
    let status = json!({
        "observedGeneration": 2, "currentNumberScheduled": 1, "desiredNumberScheduled": 1, "numberMisscheduled": 0,
        "numberReady": 1, "updatedNumberScheduled": 1, "numberAvailable": 1,
    });
    kubectl.set_status("daemonset d", &status).await;
    assert_eq!(kubectl.ok("rollout status daemonset/d").await, "daemon set \"d\" successfully rolled out\n");
    let both = kubectl.squeezed("get statefulset,daemonset").await;
    assert!(both.contains("statefulset.apps/s 1/1 ") && both.contains("daemonset.apps/d 1 1 1 1 1 <none> "), "{both}");
}
