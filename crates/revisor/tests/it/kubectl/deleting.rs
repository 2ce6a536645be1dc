//! Deletion with what depends on it, by the garbage collector of the server.

use serde_json::{Value, json};

use super::{Kubectl, pod, replica_set, row, start_with_controllers};

/// A replica set and two pods of it, all with this name.
async fn family(kubectl: &Kubectl, name: &str) {
    let (succeeded, text) = kubectl.create_from(&replica_set(name, name, "registry.example/app:1").to_string()).await;
    assert!(succeeded, "{text}");
    let owner = kubectl.json(&format!("get replicaset {name}")).await;
    for number in 1..=2 {
        let (succeeded, text) =
            kubectl.create_from(&pod(&format!("{name}-{number}"), name, Some(&owner)).to_string()).await;
        assert!(succeeded, "{text}");
    }
}

#[tokio::test]
async fn pods_go_after_before_or_without_their_replica_set() {
    let (_server, kubectl) = start_with_controllers().await;
    for name in ["back", "fore", "free"] {
        family(&kubectl, name).await;
    }
    let deleted = |name: &str| format!("replicaset.apps \"{name}\" deleted from default namespace\n");
    assert_eq!(kubectl.ok("delete replicaset back").await, deleted("back"));
    kubectl.ok("wait --for=delete pod -l app=back --timeout=30s").await;
    assert_eq!(kubectl.ok("delete replicaset fore --cascade=foreground").await, deleted("fore"));
    // The command ended when the replica set was gone, and by then its pods were.
    assert_eq!(kubectl.ok("get pods -l app=fore").await, "No resources found in default namespace.\n");
    assert_eq!(kubectl.ok("delete replicaset free --cascade=orphan").await, deleted("free"));
    assert_eq!(kubectl.ok("get pods -o name").await, "pod/free-1\npod/free-2\n");
    let pods = kubectl.json("get pods -l app=free").await;
    for pod in pods["items"].as_array().expect("a list") {
        assert!(pod["metadata"]["ownerReferences"].is_null(), "{pod}");
    }
}

#[tokio::test]
async fn an_owner_waits_for_a_pod_that_is_held() {
    let (_server, kubectl) = start_with_controllers().await;
    family(&kubectl, "held").await;
    kubectl.ok(r#"patch pod held-1 -p '{"metadata":{"finalizers":["example.com/hold"]}}'"#).await;
    kubectl.ok("delete replicaset held --cascade=foreground --wait=false").await;
    kubectl.ok("wait --for=delete pod/held-2 --timeout=30s").await;
    let owner = kubectl.json("get replicaset held").await;
    assert_eq!(owner["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    assert!(owner["metadata"]["deletionTimestamp"].is_string(), "{owner}");
    let waiting = kubectl.begin("wait --for=delete replicaset/held --timeout=30s");
    kubectl.ok(r#"patch pod held-1 --type=merge -p '{"metadata":{"finalizers":null}}'"#).await;
    let told = waiting.rest().await;
    assert!(
        ["", "replicaset.apps/held condition met\n"].contains(&&*told),
        "it may be gone before kubectl looks: {told}"
    );
    assert_eq!(kubectl.ok("get pods -o name").await, "");
}

/// A pod on a node ends when its kubelet has ended it, or at once when somebody insists.
#[tokio::test]
async fn a_pod_on_a_node_ends_gracefully() {
    let (_server, kubectl) = start_with_controllers().await;
    let placed = |name: &str| -> Value {
        let mut pod = pod(name, "placed", None);
        pod["spec"]["nodeName"] = json!("somewhere");
        pod
    };
    for name in ["patient", "forced"] {
        let (succeeded, text) = kubectl.create_from(&placed(name).to_string()).await;
        assert!(succeeded, "{text}");
    }
    kubectl.ok("delete pod patient --grace-period=60 --wait=false").await;
    let pods = kubectl.ok("get pods").await;
    assert_eq!(row(&pods, "patient")[2], "Terminating", "{pods}");
    let ending = kubectl.json("get pod patient").await;
    assert_eq!(ending["metadata"]["deletionGracePeriodSeconds"], 60);
    // The grace can be shortened, and what a kubelet says last is a deletion without grace.
    kubectl.ok("delete pod patient --grace-period=5 --wait=false").await;
    assert_eq!(kubectl.json("get pod patient").await["metadata"]["deletionGracePeriodSeconds"], 5);
    let waiting = kubectl.begin("wait --for=delete pod/patient --timeout=30s");
    let forced = kubectl.ok("delete pod patient forced --force --grace-period=0").await;
    assert!(forced.contains("pod \"forced\" force deleted from default namespace\n"), "{forced}");
    let told = waiting.rest().await;
    assert!(["", "pod/patient condition met\n"].contains(&&*told), "it may be gone before kubectl looks: {told}");
    assert_eq!(kubectl.ok("get pods -o name").await, "");
}

#[tokio::test]
async fn a_namespace_takes_everything_with_it() {
    let (_server, kubectl) = start_with_controllers().await;
    kubectl.create("namespace team").await;
    kubectl.ok("wait --for=create serviceaccount/default -n team --timeout=30s").await;
    kubectl.create("deployment web -n team --image=registry.example/web:1").await;
    kubectl.create("configmap settings -n team --from-literal=k=v").await;
    kubectl.ok("run p -n team --image=registry.example/p").await;
    let text = kubectl.ok("delete all --all -n team").await;
    assert!(text.contains("pod \"p\" deleted") && text.contains("deployment.apps \"web\" deleted"), "{text}");
    assert_eq!(kubectl.ok("delete namespace team").await, "namespace \"team\" deleted\n");
    let text = kubectl.refused("get namespace team").await;
    assert_eq!(text, "Error from server (NotFound): namespaces \"team\" not found\n");
    let text = kubectl.ok("get configmaps -n team").await;
    assert_eq!(text, "No resources found in team namespace.\n");
}
