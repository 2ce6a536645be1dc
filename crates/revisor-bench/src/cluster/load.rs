//! [`Load`]: what happens in a cluster while it lives: nodes say that they are there, and pods come and go.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::objects::{Objects, pod_name};
use super::protobuf;
use super::size::{ClusterSize, PODS_PER_SERVICE};
use super::watches::Watches;
use crate::connection::Request;
use crate::encoding::Encoding;
use crate::http2::Http2Client;
use crate::latency::Latencies;
use crate::objects::revision;

/// How often a kubelet renews its lease and reads its node.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// How often a kubelet says of its node that nothing has changed.
const NODE_STATUS: Duration = Duration::from_secs(300);

/// How long a pod lives: half an hour is that of a cluster in which much is rolled out.
const POD_LIFE: Duration = Duration::from_secs(1800);

/// How long what is under way at the end may take.
const GRACE: Duration = Duration::from_secs(60);

/// What is sent to say that something has changed, as kubelets do.
const PATCH: &str = "application/strategic-merge-patch+json";

/// The times of all requests, by what they are.
type Times = BTreeMap<&'static str, Latencies>;

/// What happens in a cluster.
pub(super) struct Load {
    size: ClusterSize,
    shared: Arc<Shared>,
}

struct Shared {
    objects: Arc<Objects>,
    controllers: Http2Client,
    kubelets: Vec<Http2Client>,
    /// What each node knows its lease is at, once it has looked.
    leases: Vec<Mutex<Option<u64>>>,
    services: u32,
    times: Mutex<Times>,
}

/// Something that happens again and again.
#[derive(Debug, Clone, Copy)]
enum Work {
    /// A kubelet renews its lease.
    Lease,
    /// A kubelet looks at its node.
    Node,
    /// A kubelet tells of its node.
    Status,
    /// A pod comes, and the oldest goes.
    Pod,
}

impl Load {
    pub(super) fn new(
        size: ClusterSize,
        objects: Arc<Objects>,
        controllers: Http2Client,
        kubelets: Vec<Http2Client>,
    ) -> Load {
        let leases = kubelets.iter().map(|_| Mutex::default()).collect();
        let services = size.services().max(1);
        let times = Mutex::default();
        Load { size, shared: Arc::new(Shared { objects, controllers, kubelets, leases, services, times }) }
    }

    /// Lets all of it happen for a while, when `pods` were made before. Answers how long requests took, and how many pods
    /// were made now.
    pub(super) async fn run(
        self,
        time: Duration,
        pods: u32,
        watches: &Watches,
    ) -> Result<(Vec<(String, Latencies)>, u32)> {
        let ClusterSize { nodes, pods: live } = self.size;
        // When each is due next, how long after that again, and how often it was.
        let start = Instant::now();
        let every = |period: Duration, of: u32| period / of.max(1);
        let mut due = [
            (Work::Lease, start, every(HEARTBEAT, nodes), 0_u32),
            (Work::Node, start, every(HEARTBEAT, nodes), 0),
            (Work::Status, start, every(NODE_STATUS, nodes), 0),
            (Work::Pod, start, every(POD_LIFE, live), 0),
        ];
        let mut tasks: JoinSet<Result<()>> = JoinSet::new();
        let mut made = pods;
        while let Some((work, at, period, count)) = due.iter_mut().min_by_key(|(_, at, ..)| *at) {
            if *at >= start + time {
                break;
            }
            tokio::time::sleep_until(*at).await;
            let (shared, began, number) = (self.shared.clone(), *at, *count);
            match *work {
                Work::Lease => drop(tasks.spawn(async move { shared.renew(number % nodes, began).await })),
                Work::Node => drop(tasks.spawn(async move { shared.look(number % nodes, began).await })),
                Work::Status => drop(tasks.spawn(async move { shared.tell(number % nodes, number, began).await })),
                Work::Pod => {
                    let (new, old) = (made, made - live);
                    made += 1;
                    // The scheduler spreads pods; which node an old one is on follows from its number.
                    let (node, old_node) = (new % nodes, old % nodes);
                    watches.expect(node, pod_name(new));
                    let change = Replacement { new, node, old, old_node, nodes };
                    tasks.spawn(async move { shared.replace(change, began).await });
                }
            }
            *at += *period;
            *count += 1;
            while let Some(done) = tasks.try_join_next() {
                done.context("a request panicked")??;
            }
        }
        let rest = async {
            while let Some(done) = tasks.join_next().await {
                done.context("a request panicked")??;
            }
            Ok::<_, anyhow::Error>(())
        };
        tokio::time::timeout(GRACE, rest).await.context("requests are not answered")??;
        if watches.ended() > 0 {
            bail!("the server ended {} watches", watches.ended());
        }
        let times = std::mem::take(&mut *self.shared.times.lock().unwrap_or_else(PoisonError::into_inner));
        Ok((times.into_iter().map(|(name, times)| (name.to_owned(), times)).collect(), made))
    }
}

/// One pod that takes the place of another.
#[derive(Debug, Clone, Copy)]
struct Replacement {
    new: u32,
    node: u32,
    old: u32,
    old_node: u32,
    nodes: u32,
}

impl Shared {
    async fn renew(&self, node: u32, due: Instant) -> Result<()> {
        let (kubelet, path) = (&self.kubelets[node as usize], self.objects.lease_path(node));
        let known = || self.leases[node as usize].lock().unwrap_or_else(PoisonError::into_inner);
        let mut answer = Vec::new();
        let seen = *known();
        let seen = match seen {
            Some(seen) => seen,
            None => {
                let request = Request { method: "GET", path: &path, ..protobuf() };
                kubelet.call(&request, &mut |bytes| answer.extend_from_slice(bytes)).await?;
                revision(Encoding::Protobuf, &answer)?
            }
        };
        answer.clear();
        let body = self.objects.lease(node, Some(seen));
        kubelet.call(&put(&path, &body), &mut |bytes| answer.extend_from_slice(bytes)).await?;
        self.took("renew a lease", due);
        *known() = Some(revision(Encoding::Protobuf, &answer)?);
        Ok(())
    }

    async fn look(&self, node: u32, due: Instant) -> Result<()> {
        let path = format!("{}?resourceVersion=0", self.objects.node_path(node));
        let request = Request { method: "GET", path: &path, ..protobuf() };
        self.ask("read a node", &self.kubelets[node as usize], request, due).await
    }

    async fn tell(&self, node: u32, turn: u32, due: Instant) -> Result<()> {
        let path = format!("{}/status", self.objects.node_path(node));
        let body = self.objects.node_status(turn.into());
        self.ask("patch a node's status", &self.kubelets[node as usize], patch(&path, &body), due).await
    }

    /// A pod comes and another goes, each with all that is asked for it.
    async fn replace(&self, change: Replacement, due: Instant) -> Result<()> {
        let Replacement { new, node, old, old_node, nodes } = change;
        let (objects, controllers) = (&self.objects, &self.controllers);
        let kubelet = &self.kubelets[node as usize];
        let (path, body) = objects.pod(new);
        self.ask("create a pod", controllers, post(&path, &body), due).await?;
        let path = objects.pod_path(new);
        let binding = objects.binding(new, node);
        self.ask("bind a pod", controllers, post(&format!("{path}/binding"), &binding), Instant::now()).await?;
        for (phase, is_ready, reason) in [("Pending", false, "Scheduled"), ("Running", true, "Started")] {
            let status = objects.pod_status(new, phase, is_ready);
            let status_path = format!("{path}/status");
            self.ask("patch a pod's status", kubelet, patch(&status_path, &status), Instant::now()).await?;
            let (events, event) = objects.event(new, reason);
            self.ask("create an event", kubelet, post(&events, &event), Instant::now()).await?;
        }
        self.update_slice(new, nodes).await?;

        let path = objects.pod_path(old);
        let kubelet = &self.kubelets[old_node as usize];
        let delete = |path| Request { method: "DELETE", path, ..protobuf() };
        let gracefully = format!("{path}?gracePeriodSeconds=30");
        self.ask("delete a pod gracefully", controllers, delete(&gracefully), Instant::now()).await?;
        self.update_slice(old, nodes).await?;
        let status = objects.pod_status(old, "Succeeded", false);
        let status_path = format!("{path}/status");
        self.ask("patch a pod's status", kubelet, patch(&status_path, &status), Instant::now()).await?;
        let at_once = format!("{path}?gracePeriodSeconds=0");
        self.ask("delete a pod", kubelet, delete(&at_once), Instant::now()).await
    }

    /// The slice of the service that a pod belongs to, with another pod in it or one less. Pods that come take the places
    /// of those that went, so that there are as many services as in the beginning.
    async fn update_slice(&self, pod: u32, nodes: u32) -> Result<()> {
        let service = pod / PODS_PER_SERVICE % self.services;
        let first = pod.saturating_sub(PODS_PER_SERVICE - 1);
        let pods: Vec<u32> = (first..=pod).collect();
        let (path, body) = (self.objects.slice_path(service), self.objects.slice(service, &pods, nodes));
        self.ask("update endpoints", &self.controllers, put(&path, &body), Instant::now()).await
    }

    /// Sends a request, and remembers how long it took since it was due.
    async fn ask(&self, name: &'static str, client: &Http2Client, request: Request<'_>, due: Instant) -> Result<()> {
        client.call(&request, &mut |_| ()).await.with_context(|| name.to_owned())?;
        self.took(name, due);
        Ok(())
    }

    fn took(&self, name: &'static str, due: Instant) {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.entry(name).or_default().push(due.elapsed());
    }
}

fn post<'a>(path: &'a str, body: &'a [u8]) -> Request<'a> {
    Request { method: "POST", path, body, ..protobuf() }
}

fn put<'a>(path: &'a str, body: &'a [u8]) -> Request<'a> {
    Request { method: "PUT", path, body, ..protobuf() }
}

fn patch<'a>(path: &'a str, body: &'a [u8]) -> Request<'a> {
    Request { method: "PATCH", path, body, media_type: PATCH, ..protobuf() }
}
