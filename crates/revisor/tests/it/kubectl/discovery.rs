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
    let text = squeezed(&kubectl.ok("explain deployment.spec.replicas").await);
    assert!(text.contains("\nFIELD: replicas <integer>\n") && text.contains("\nNumber of desired pods. "), "{text}");
    let text = squeezed(&kubectl.ok("explain deployment.spec.strategy.type").await);
    assert!(text.contains("\nENUM:\nRecreate\nRollingUpdate\n"), "{text}");
    let text = squeezed(&kubectl.ok("explain pods.spec.containers --recursive").await);
    for line in
        ["name <string> -required-", "limits <map[string]Quantity>", "ports <[]ContainerPort>", "privileged <boolean>"]
    {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    let text = kubectl.refused("explain configmap.nonsense").await;
    assert!(text.ends_with("error: field \"nonsense\" does not exist\n"), "{text}");
}

/// A definition with a field that is explained.
const GADGETS: &str = r#"{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.disco.example.com"},
    "spec": {"group": "disco.example.com", "scope": "Namespaced",
        "names": {"plural": "gadgets", "kind": "Gadget", "shortNames": ["gd"], "categories": ["all"]},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
            "type": "object", "description": "A gadget.", "properties": {"spec": {
                "type": "object", "required": ["size"], "properties": {
                    "size": {"type": "integer", "description": "How large it is."},
                    "color": {"type": "string", "enum": ["red", "blue"]}}}}}}}]}}"#;

#[tokio::test]
async fn knows_custom_resources_as_it_knows_built_in_ones() {
    let (_server, kubectl) = start(&["--controllers=*"]).await;
    let (succeeded, text) = kubectl.create_from(GADGETS).await;
    assert!(succeeded, "{text}");
    kubectl.ok("wait --for=condition=established --timeout=30s crd/gadgets.disco.example.com").await;
    let resources = kubectl.squeezed("api-resources --api-group=disco.example.com --no-headers").await;
    assert_eq!(resources, "gadgets gd disco.example.com/v1 true Gadget\n");
    assert!(kubectl.ok("api-resources --categories=all -o name").await.contains("gadgets.disco.example.com\n"));
    assert!(kubectl.ok("api-versions").await.contains("disco.example.com/v1\n"));

    let text = squeezed(&kubectl.ok("explain gadgets").await);
    let head = "GROUP: disco.example.com\nKIND: Gadget\nVERSION: v1\n\nDESCRIPTION:\nA gadget.\n";
    assert!(text.starts_with(head) && text.contains("\nmetadata <ObjectMeta>\n"), "{text}");
    let text = squeezed(&kubectl.ok("explain gd.spec").await);
    for line in ["size <integer> -required-", "How large it is.", "color <string>", "enum: red, blue"] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    let text = squeezed(&kubectl.ok("explain versionreports.status.droppableVersions").await);
    assert!(text.contains("\nThe versions that nothing keeps from being dropped.\n"), "{text}");
    // What explains a type must be readable in its older form too.
    let text = squeezed(&kubectl.ok("explain gd.spec --output=plaintext-openapiv2").await);
    assert!(text.contains("\nsize <integer> -required-\nHow large it is.\n"), "{text}");
    let text = squeezed(&kubectl.ok("explain pod.spec.containers.ports --output=plaintext-openapiv2").await);
    assert!(text.contains("\ncontainerPort <integer> -required-\n"), "{text}");
}

/// A file with two objects, one of a kind that everyone knows.
fn list(data: &str, spec: &str) -> String {
    format!(
        r#"{{"apiVersion": "v1", "kind": "List", "items": [
            {{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "a"}}, {data}}},
            {{"apiVersion": "disco.example.com/v1", "kind": "Gadget", "metadata": {{"name": "a"}}, "spec": {spec}}}]}}"#
    )
}

#[tokio::test]
async fn checks_files_with_several_objects_before_it_sends_any() {
    let (_server, kubectl) = start(&["--controllers=*"]).await;
    let (succeeded, text) = kubectl.create_from(GADGETS).await;
    assert!(succeeded, "{text}");
    kubectl.ok("wait --for=condition=established --timeout=30s crd/gadgets.disco.example.com").await;
    let create = "create --validate=strict -f -";
    for (data, spec, problem) in [
        (r#""datas": {}"#, r#"{"size": 1}"#, "unknown field \"datas\" in io.k8s.api.core.v1.ConfigMap"),
        (r#""data": {}"#, r#"{"sizes": 1}"#, "unknown field \"sizes\" in com.example.disco.v1.Gadget.spec"),
        (r#""data": {}"#, "{}", "missing required field \"size\" in com.example.disco.v1.Gadget.spec"),
        (r#""data": {}"#, r#"{"size": "large"}"#, "got \"string\", expected \"integer\""),
    ] {
        let text = kubectl.refused_with(create, &list(data, spec)).await;
        assert!(text.contains(problem), "{problem}: {text}");
    }
    assert_eq!(kubectl.ok("get gadgets -o name").await, "", "nothing was sent");
    let text = kubectl.ok_with(create, &list(r#""data": {}"#, r#"{"size": 1}"#)).await;
    assert_eq!(text, "configmap/a created\ngadget.disco.example.com/a created\n");
    let text = kubectl.ok_with("apply --validate=strict -f -", &list(r#""data": {}"#, r#"{"size": 2}"#)).await;
    assert!(text.contains("gadget.disco.example.com/a configured\n"), "{text}");
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
