//! The objects of a cluster, as its components send them: with the path that they are sent to.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::size::{ClusterSize, PODS_PER_SERVICE};
use crate::encoding::Encoding;
use crate::objects::POD;

/// Where nodes renew their leases.
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

/// Makes the objects of one cluster.
pub(super) struct Objects {
    /// The namespace of its pods, which also sets its nodes apart from those of others.
    name: String,
    /// What every pod runs.
    spec: Value,
}

impl Objects {
    pub(super) fn new() -> Objects {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let name = format!("cluster-{}-{}", std::process::id(), now.as_millis());
        Objects { name, spec: serde_json::from_str(POD).unwrap_or_default() }
    }

    /// What has to be there first, in JSON.
    pub(super) fn needs(&self) -> Vec<(String, String)> {
        let namespace = |name: &str| {
            let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}).to_string();
            ("/api/v1/namespaces".to_owned(), body)
        };
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
        let accounts = format!("{}/serviceaccounts", self.namespace_path());
        vec![namespace("kube-node-lease"), namespace(&self.name), (accounts, account.to_string())]
    }

    pub(super) fn namespace_path(&self) -> String {
        format!("/api/v1/namespaces/{}", self.name)
    }

    pub(super) fn node(&self, node: u32) -> (String, Vec<u8>) {
        let node = json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": node_name(node), "labels": {"kubernetes.io/os": "linux", "bench": self.name}},
        });
        ("/api/v1/nodes".to_owned(), write(&node))
    }

    pub(super) fn node_path(&self, node: u32) -> String {
        format!("/api/v1/nodes/{}", node_name(node))
    }

    /// What a kubelet says of its node when nothing has happened: the patch of its status.
    pub(super) fn node_status(&self, turn: u64) -> Vec<u8> {
        let condition = |kind: &str, status: &str| {
            let message = format!("kubelet has looked {turn} times");
            json!({"type": kind, "status": status, "reason": "KubeletLooked", "message": message})
        };
        let conditions = [
            condition("MemoryPressure", "False"),
            condition("DiskPressure", "False"),
            condition("PIDPressure", "False"),
            condition("Ready", "True"),
        ];
        let capacity = json!({"cpu": "32", "memory": "128Gi", "pods": "110"});
        json!({"status": {"capacity": capacity, "conditions": conditions}}).to_string().into_bytes()
    }

    pub(super) fn new_lease(&self, node: u32) -> (String, Vec<u8>) {
        (LEASES.to_owned(), self.lease(node, None))
    }

    pub(super) fn lease_path(&self, node: u32) -> String {
        format!("{LEASES}/{}", node_name(node))
    }

    /// A node's lease, renewed now, in place of the one at this revision.
    pub(super) fn lease(&self, node: u32, revision: Option<u64>) -> Vec<u8> {
        let revision = revision.map(|revision| revision.to_string());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        write(&json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": node_name(node), "namespace": "kube-node-lease", "resourceVersion": revision},
            "spec": {
                "holderIdentity": node_name(node),
                "leaseDurationSeconds": 40,
                "renewTime": u64::try_from(now).unwrap_or_default(),
            },
        }))
    }

    /// A pod that has its node, as if it had been bound long ago.
    pub(super) fn settled_pod(&self, pod: u32, node: u32) -> (String, Vec<u8>) {
        self.pod_with(pod, Some(node))
    }

    /// A pod as a controller makes it.
    pub(super) fn pod(&self, pod: u32) -> (String, Vec<u8>) {
        self.pod_with(pod, None)
    }

    fn pod_with(&self, pod: u32, node: Option<u32>) -> (String, Vec<u8>) {
        let mut spec = self.spec.clone();
        if let Some(node) = node {
            spec["nodeName"] = node_name(node).into();
        }
        let object = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": pod_name(pod),
                "namespace": self.name,
                "labels": {"app": format!("service-{}", pod / PODS_PER_SERVICE), "pod-template-hash": "5d4f8c7b9"},
            },
            "spec": spec,
        });
        (format!("{}/pods", self.namespace_path()), write(&object))
    }

    pub(super) fn pod_path(&self, pod: u32) -> String {
        format!("{}/pods/{}", self.namespace_path(), pod_name(pod))
    }

    /// What the scheduler says.
    pub(super) fn binding(&self, pod: u32, node: u32) -> Vec<u8> {
        write(&json!({
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod_name(pod), "namespace": self.name},
            "target": {"kind": "Node", "name": node_name(node)},
        }))
    }

    /// What a kubelet says of a pod: the patch of its status.
    pub(super) fn pod_status(&self, pod: u32, phase: &str, is_ready: bool) -> Vec<u8> {
        let status = if is_ready { "True" } else { "False" };
        let condition = |kind: &str| json!({"type": kind, "status": status});
        let conditions = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"].map(condition);
        let address = address(pod);
        json!({"status": {
            "phase": phase,
            "conditions": conditions,
            "hostIP": "10.0.0.1",
            "podIP": address,
            "podIPs": [{"ip": address}],
        }})
        .to_string()
        .into_bytes()
    }

    /// What is said to have happened to a pod.
    pub(super) fn event(&self, pod: u32, reason: &str) -> (String, Vec<u8>) {
        let object = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": format!("{}.{}", pod_name(pod), reason.to_lowercase()), "namespace": self.name},
            "involvedObject": {"kind": "Pod", "namespace": self.name, "name": pod_name(pod), "apiVersion": "v1"},
            "reason": reason,
            "message": format!("{reason} {}/{}", self.name, pod_name(pod)),
            "source": {"component": "kubelet"},
            "type": "Normal",
        });
        (format!("{}/events", self.namespace_path()), write(&object))
    }

    pub(super) fn new_slice(&self, service: u32, size: ClusterSize) -> (String, Vec<u8>) {
        let first = service * PODS_PER_SERVICE;
        let pods: Vec<u32> = (first..size.pods.min(first + PODS_PER_SERVICE)).collect();
        (self.slices_path(), self.slice(service, &pods, size.nodes))
    }

    fn slices_path(&self) -> String {
        format!("/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices", self.name)
    }

    pub(super) fn slice_path(&self, service: u32) -> String {
        format!("{}/service-{service}", self.slices_path())
    }

    /// The endpoints of a service.
    pub(super) fn slice(&self, service: u32, pods: &[u32], nodes: u32) -> Vec<u8> {
        let endpoint = |pod: &u32| {
            json!({
                "addresses": [address(*pod)],
                "conditions": {"ready": true, "serving": true, "terminating": false},
                "targetRef": {"kind": "Pod", "namespace": self.name, "name": pod_name(*pod)},
                "nodeName": node_name(pod % nodes),
            })
        };
        let name = format!("service-{service}");
        write(&json!({
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": name, "namespace": self.name, "labels": {"kubernetes.io/service-name": name}},
            "addressType": "IPv4",
            "endpoints": pods.iter().map(endpoint).collect::<Vec<_>>(),
            "ports": [{"name": "http", "protocol": "TCP", "port": 8080}],
        }))
    }
}

pub(super) fn node_name(node: u32) -> String {
    format!("node-{node:05}")
}

pub(super) fn pod_name(pod: u32) -> String {
    format!("pod-{pod:07}")
}

/// An address for a pod; those of pods that are long gone are used again.
fn address(pod: u32) -> String {
    let [_, high, middle, low] = pod.to_be_bytes();
    format!("10.{}.{middle}.{low}", high.saturating_add(1))
}

fn write(object: &Value) -> Vec<u8> {
    Encoding::Protobuf.write(object.to_string())
}
