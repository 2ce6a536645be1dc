//! Nodes: shown, closed, tainted and emptied.

use serde_json::json;

use super::{pod, row, start_with_controllers};

#[tokio::test]
async fn a_node_is_shown_and_emptied() {
    let (_server, kubectl) = start_with_controllers().await;
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {
        "name": "n", "labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/hostname": "n"}}});
    let (succeeded, text) = kubectl.create_from(&node.to_string()).await;
    assert!(succeeded && text == "node/n created\n", "{text}");
    let status = json!({
        "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
        "allocatable": {"cpu": "3500m", "memory": "7Gi", "pods": "110"},
        "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}],
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "well"}],
        "nodeInfo": {"kubeletVersion": "v1.36.0", "osImage": "Linux", "kernelVersion": "6.1", "containerRuntimeVersion": "x://1",
            "machineID": "", "systemUUID": "", "bootID": "", "kubeProxyVersion": "", "operatingSystem": "linux",
            "architecture": "amd64"},
    });
    kubectl.set_status("node n", &status).await;
    assert_eq!(kubectl.ok("wait --for=condition=Ready node/n").await, "node/n condition met\n");
    let nodes = kubectl.ok("get nodes -o wide").await;
    assert_eq!(row(&nodes, "n")[1..3], ["Ready", "worker"], "{nodes}");
    assert!(row(&nodes, "n").contains(&"192.0.2.1".to_owned()), "{nodes}");

    let mut placed = pod("p", "placed", None);
    placed["spec"]["nodeName"] = json!("n");
    placed["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "350m"}});
    let (succeeded, text) = kubectl.create_from(&placed.to_string()).await;
    assert!(succeeded, "{text}");
    let described = kubectl.squeezed("describe node n").await;
    for line in ["Roles: worker", "Unschedulable: false", "cpu 350m (10%) 0 (0%)", "Non-terminated Pods: (1 in total)"]
    {
        assert!(described.lines().any(|found| found == line), "{line}: {described}");
    }

    assert_eq!(kubectl.ok("cordon n").await, "node/n cordoned\n");
    assert_eq!(row(&kubectl.ok("get node n").await, "n")[1], "Ready,SchedulingDisabled");
    assert_eq!(kubectl.ok("taint node n example.com/full=yes:NoSchedule").await, "node/n tainted\n");
    assert_eq!(kubectl.ok("taint node n example.com/full-").await, "node/n untainted\n");
    let mut draining = kubectl.begin("drain n --force --timeout=30s");
    assert_eq!(draining.line_with("evicting pod").await, "evicting pod default/p\n");
    kubectl.ok("wait --for=jsonpath={.metadata.deletionTimestamp} pod/p --timeout=30s").await;
    kubectl.ok("delete pod p --force --grace-period=0").await;
    let rest = draining.rest().await;
    assert!(rest.ends_with("pod/p evicted\nnode/n drained\n"), "{rest}");
    assert_eq!(kubectl.ok("uncordon n").await, "node/n uncordoned\n");
}
