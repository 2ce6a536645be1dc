//! What a server offers, and what kubectl tells of it.

use super::{squeezed, start};

#[tokio::test]
async fn finds_out_what_there_is() {
    let (_server, kubectl) = start(&[]).await;
    let versions = kubectl.ok("api-versions").await;
    for version in
        ["apps/v1", "autoscaling/v1", "autoscaling/v2", "batch/v1", "coordination.k8s.io/v1", "policy/v1", "v1"]
    {
        assert!(versions.lines().any(|line| line == version), "{versions}");
    }
    let resources = kubectl.squeezed("api-resources --no-headers").await;
    for row in [
        "configmaps cm v1 true ConfigMap",
        "namespaces ns v1 false Namespace",
        "nodes no v1 false Node",
        "pods po v1 true Pod",
        "services svc v1 true Service",
        "deployments deploy apps/v1 true Deployment",
        "replicasets rs apps/v1 true ReplicaSet",
        "horizontalpodautoscalers hpa autoscaling/v2 true HorizontalPodAutoscaler",
        "cronjobs cj batch/v1 true CronJob",
        "leases coordination.k8s.io/v1 true Lease",
        "ingresses ing networking.k8s.io/v1 true Ingress",
        "poddisruptionbudgets pdb policy/v1 true PodDisruptionBudget",
    ] {
        assert!(resources.lines().any(|line| line == row), "{row}: {resources}");
    }
    let all = kubectl.ok("api-resources --categories=all -o name").await;
    for name in ["deployments.apps", "jobs.batch", "pods", "services"] {
        assert!(all.lines().any(|line| line == name), "{all}");
    }
    assert!(!all.lines().any(|line| line == "configmaps"), "{all}");

    let version = kubectl.json("version").await;
    assert_eq!(version["serverVersion"]["minor"], "36", "{version}");
    assert_eq!(kubectl.ok("get --raw /readyz").await, "ok");
    let raw = kubectl.ok("get --raw /api/v1/namespaces/default").await;
    assert!(raw.starts_with(r#"{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"default","#), "{raw}");
    let text = kubectl.ok("cluster-info").await;
    assert!(text.contains("control plane") && text.contains("https://127.0.0.1:"), "{text}");
    let text = kubectl.refused("get nonsense").await;
    assert_eq!(text, "error: the server doesn't have a resource type \"nonsense\"\n");
}

#[tokio::test]
async fn explains_fields() {
    let (_server, kubectl) = start(&[]).await;
    let text = squeezed(&kubectl.ok("explain deployment.spec.strategy").await);
    assert!(
        text.starts_with("GROUP: apps\nKIND: Deployment\nVERSION: v1\n\nFIELD: strategy <DeploymentStrategy>\n"),
        "{text}"
    );
    assert!(
        text.contains("\nrollingUpdate <RollingUpdateDeployment>\n") && text.contains("\ntype <string>\n"),
        "{text}"
    );
    let text = squeezed(&kubectl.ok("explain pods.spec.containers --recursive").await);
    for line in
        ["name <string> -required-", "limits <map[string]Quantity>", "ports <[]ContainerPort>", "privileged <boolean>"]
    {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    let text = kubectl.refused("explain configmap.nonsense").await;
    assert!(text.ends_with("error: field \"nonsense\" does not exist\n"), "{text}");
}

#[tokio::test]
async fn reads_long_lists_in_pages_and_events() {
    let (_server, kubectl) = start(&[]).await;
    for name in ["a", "b", "c", "d", "e"] {
        kubectl.create(&format!("configmap {name}")).await;
    }
    let chunked = kubectl.ok("get configmaps --chunk-size=2 -o name").await;
    assert_eq!(chunked.lines().count(), 5, "{chunked}");

    let event = r#"{"kind":"Event","apiVersion":"v1","metadata":{"name":"e"},"reason":"Tested","message":"it works",
        "type":"Normal","involvedObject":{"apiVersion":"v1","kind":"ConfigMap","namespace":"default","name":"a"}}"#;
    let (succeeded, text) = kubectl.create_from(event).await;
    assert!(succeeded, "{text}");
    let events = kubectl.squeezed("get events").await;
    assert!(events.contains(" Normal Tested configmap/a it works\n"), "{events}");
    let events = kubectl.squeezed("events --for=configmap/a").await;
    assert!(events.contains(" Normal Tested ConfigMap/a it works\n"), "{events}");
}
