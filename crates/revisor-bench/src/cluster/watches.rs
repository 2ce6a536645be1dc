//! [`Watches`]: who listens in a cluster: the controllers and the scheduler, and on each node a kubelet, to what concerns
//! its node, and a kube-proxy, to all services and their endpoints.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::objects::node_name;
use super::protobuf;
use crate::connection::{Connector, Request};
use crate::encoding::{Encoding, EventCounter};
use crate::http::find;
use crate::http2::{self, Http2Client};
use crate::latency::Latencies;

/// What kube-controller-manager and kube-scheduler watch, as far as a cluster of pods and services has it. Each has one
/// connection for all of its watches.
const CONTROLLERS: &[&str] = &[
    "/api/v1/pods",
    "/api/v1/nodes",
    "/api/v1/services",
    "/api/v1/namespaces",
    "/api/v1/serviceaccounts",
    "/api/v1/secrets",
    "/api/v1/configmaps",
    "/api/v1/endpoints",
    "/api/v1/persistentvolumes",
    "/api/v1/persistentvolumeclaims",
    "/api/v1/replicationcontrollers",
    "/api/v1/resourcequotas",
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/replicasets",
    "/apis/apps/v1/statefulsets",
    "/apis/apps/v1/daemonsets",
    "/apis/batch/v1/jobs",
    "/apis/batch/v1/cronjobs",
    "/apis/coordination.k8s.io/v1/leases",
    "/apis/discovery.k8s.io/v1/endpointslices",
    "/apis/networking.k8s.io/v1/ingresses",
    "/apis/policy/v1/poddisruptionbudgets",
];
const SCHEDULER: &[&str] = &[
    "/api/v1/pods",
    "/api/v1/nodes",
    "/api/v1/services",
    "/api/v1/namespaces",
    "/api/v1/persistentvolumes",
    "/api/v1/persistentvolumeclaims",
    "/api/v1/replicationcontrollers",
    "/apis/apps/v1/replicasets",
    "/apis/apps/v1/statefulsets",
    "/apis/policy/v1/poddisruptionbudgets",
    "/apis/storage.k8s.io/v1/csinodes",
    "/apis/storage.k8s.io/v1/storageclasses",
];
/// What every node's kube-proxy watches.
const PROXY: &[&str] = &["/api/v1/services", "/apis/discovery.k8s.io/v1/endpointslices"];

/// The watches of a cluster.
#[derive(Default)]
pub(super) struct Watches {
    tasks: JoinSet<()>,
    told: Arc<Told>,
    count: usize,
    /// What they begin after: to be told of a whole cluster first would only take time.
    revision: u64,
}

/// What was told to those who watch.
#[derive(Default)]
struct Told {
    events: AtomicU64,
    /// Watches that the server has ended.
    ended: AtomicU64,
    expected: Mutex<Expected>,
}

/// Pods that their node has yet to see, by node and name, and how long it took the others.
#[derive(Default)]
struct Expected {
    pods: Vec<(u32, String, Instant)>,
    seen: Latencies,
}

impl Watches {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// How many events were told since they were last forgotten.
    pub(super) fn events(&self) -> u64 {
        self.told.events.load(Ordering::Relaxed)
    }

    /// How many watches have ended, which none should.
    pub(super) fn ended(&self) -> u64 {
        self.told.ended.load(Ordering::Relaxed)
    }

    /// Forgets what was told so far.
    pub(super) fn forget(&self) {
        self.told.events.store(0, Ordering::Relaxed);
        *self.told.expected() = Expected::default();
    }

    /// A pod is about to be bound to a node.
    pub(super) fn expect(&self, node: u32, pod: String) {
        self.told.expected().pods.push((node, pod, Instant::now()));
    }

    /// How long it took until nodes saw what was bound to them.
    pub(super) fn take_seen(&self) -> Latencies {
        std::mem::take(&mut self.told.expected().seen)
    }

    /// Lets those that come begin with what happens after this.
    pub(super) fn begin_after(&mut self, revision: u64) {
        self.revision = revision;
    }

    pub(super) async fn of_control_plane(&mut self, connector: &Connector) -> Result<()> {
        for paths in [CONTROLLERS, SCHEDULER] {
            let client = Http2Client::connect(connector).await?;
            for path in paths {
                self.add(&client, path, None).await?;
            }
        }
        Ok(())
    }

    pub(super) async fn of_node(&mut self, connector: &Connector, kubelet: &Http2Client, node: u32) -> Result<()> {
        let name = node_name(node);
        self.add(kubelet, &format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{name}"), Some(node)).await?;
        self.add(kubelet, &format!("/api/v1/nodes?fieldSelector=metadata.name%3D{name}"), None).await?;
        self.add(kubelet, "/api/v1/services", None).await?;
        let proxy = Http2Client::connect(connector).await?;
        for path in PROXY {
            self.add(&proxy, path, None).await?;
        }
        Ok(())
    }

    /// Begins a watch; `node` is the one whose pods it tells of.
    async fn add(&mut self, client: &Http2Client, path: &str, node: Option<u32>) -> Result<()> {
        let separator = if path.contains('?') { '&' } else { '?' };
        let revision = self.revision;
        let path = format!("{path}{separator}watch=true&resourceVersion={revision}&timeoutSeconds=3600");
        let mut stream = client.open(&Request { method: "GET", path: &path, ..protobuf() }).await?;
        let told = self.told.clone();
        // The connection lives as long as its watches.
        let client = client.clone();
        self.count += 1;
        self.tasks.spawn(async move {
            let mut counter = EventCounter::new(Encoding::Protobuf);
            let mut take = |bytes: &[u8]| {
                told.events.fetch_add(counter.count(bytes), Ordering::Relaxed);
                if let Some(node) = node {
                    told.expected().see(node, bytes);
                }
            };
            while let Ok(true) = http2::read(&mut stream, &mut take).await {}
            told.ended.fetch_add(1, Ordering::Relaxed);
            drop(client);
        });
        Ok(())
    }
}

impl Told {
    fn expected(&self) -> std::sync::MutexGuard<'_, Expected> {
        self.expected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Expected {
    /// Something came in from a node's watch of its pods.
    fn see(&mut self, node: u32, bytes: &[u8]) {
        let seen = &mut self.seen;
        self.pods.retain(|(of, pod, bound)| {
            let is_here = *of == node && find(bytes, pod.as_bytes()).is_some();
            if is_here {
                seen.push(bound.elapsed());
            }
            !is_here
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_seen_by_its_node_once() {
        let pods = vec![(1, "pod-1".into(), Instant::now()), (2, "pod-2".into(), Instant::now())];
        let mut expected = Expected { pods, ..Expected::default() };
        expected.see(2, b"..pod-1..");
        assert_eq!((expected.pods.len(), expected.seen.len()), (2, 0), "another node's");
        expected.see(2, b"..pod-2..");
        expected.see(2, b"..pod-2..");
        assert_eq!((expected.pods.len(), expected.seen.len()), (1, 1));
    }
}
