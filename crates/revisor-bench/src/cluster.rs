//! A cluster's load: what the components of a cluster with so many nodes and pods ask of its API server, in the proportions
//! and the ways in which they do: over HTTP/2, in protobuf, each node with connections of its own.
//!
//! Work comes at the times at which it would come, whether or not what was asked before is answered; times count from
//! there. `size` says how large a cluster is, `objects` what is sent, `watches` who listens, `load` what happens when.

mod load;
mod objects;
mod size;
mod watches;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::time::Instant;

use crate::connection::{Connector, Request};
use crate::encoding::Encoding;
use crate::http2::{self, Http2Client};
use crate::latency::Latencies;
use crate::objects::list_revision;
use crate::process::Processes;
use crate::report::{Phase, ServerReport};
use crate::workload::Outcome;
use crate::{Endpoint, Options};

use load::Load;
use objects::Objects;
pub use size::ClusterSize;
use watches::Watches;

/// A cluster holds as long as ninety-nine of a hundred requests of every kind are answered within this.
const HOLDS: Duration = Duration::from_secs(1);

/// How much larger the next cluster is that is tried, in percent, and how many are tried.
const GROWTH: u32 = 150;
const MOST_SIZES: usize = 12;

/// Requests under way at once while a cluster is set up.
const SETTING_UP: usize = 64;

/// The longest time to set up what is missing of a cluster.
const SETUP: Duration = Duration::from_secs(900);

/// A cluster on one server.
struct Cluster {
    connector: Connector,
    objects: Arc<Objects>,
    /// Who creates, binds and deletes pods.
    controllers: Http2Client,
    /// One per node.
    kubelets: Vec<Http2Client>,
    watches: Watches,
    /// Pods that were made so far; the last ones are there.
    pods: u32,
}

/// Measures the cluster that the options name, or clusters from that size on until one does not hold.
pub(crate) async fn measure(
    name: &str,
    endpoint: Endpoint,
    processes: Processes,
    options: &Options,
    size: ClusterSize,
    progress: &mut dyn FnMut(&str),
) -> Result<ServerReport> {
    progress(&format!("{name}: at rest"));
    let idle_bytes = processes.resident_at_rest(options.rest).await?;
    let mut report = ServerReport { name: name.to_owned(), idle_bytes, ..Default::default() };
    let mut cluster = Cluster::open(endpoint).await.with_context(|| format!("{name} cannot be set up"))?;
    let time = Duration::from_secs(options.seconds.into());
    let mut size = size;
    for step in 0..MOST_SIZES {
        progress(&format!("{name}: setting up {size}"));
        tokio::time::timeout(SETUP, cluster.grow_to(size)).await.context("the cluster is not set up in time")??;
        report.loaded_bytes = processes.resident_at_rest(options.rest).await?;
        report.objects = size.pods;
        progress(&format!("{name}: {size}"));
        let phases = cluster.run(size, time, &processes).await?;
        let holds = phases.iter().all(|phase| Duration::from_micros(phase.p99_micros.into()) < HOLDS);
        let is_last = !options.cluster_limit || !holds || step + 1 == MOST_SIZES || size.grown(GROWTH).is_none();
        if options.cluster_limit {
            progress(&format!("{name}: {size} {}", if holds { "holds" } else { "does not hold" }));
        }
        if holds || report.phases.is_empty() || !options.cluster_limit {
            report.phases = phases;
        }
        match size.grown(GROWTH) {
            Some(grown) if !is_last => size = grown,
            _ => break,
        }
    }
    cluster.close().await;
    Ok(report)
}

impl Cluster {
    async fn open(endpoint: Endpoint) -> Result<Cluster> {
        let connector = Connector::speaking(endpoint, http2::PROTOCOL)?;
        let controllers = Http2Client::connect(&connector).await?;
        let objects = Arc::new(Objects::new());
        for (path, body) in objects.needs() {
            let request = Request { method: "POST", path: &path, body: body.as_bytes(), ..json() };
            // What is there already is as good; what is missing is noticed with the first object that needs it.
            let _ = controllers.call(&request, &mut |_| ()).await;
        }
        let watches = Watches::default();
        Ok(Cluster { connector, objects, controllers, kubelets: Vec::new(), watches, pods: 0 })
    }

    /// Adds what is missing to a cluster of this size: objects first, then those who watch them.
    async fn grow_to(&mut self, size: ClusterSize) -> Result<()> {
        let first = self.kubelets.len() as u32;
        let nodes = (first..size.nodes).flat_map(|node| [self.objects.node(node), self.objects.new_lease(node)]);
        let pods = (self.pods..size.pods).map(|pod| self.objects.settled_pod(pod, pod % size.nodes));
        let slices = (0..size.services()).map(|service| self.objects.new_slice(service, size));
        let known = self.pods.div_ceil(size::PODS_PER_SERVICE);
        self.create_all(nodes.chain(pods).chain(slices.skip(known as usize)).collect()).await?;
        self.pods = self.pods.max(size.pods);
        let mut list = Vec::new();
        let request = Request { method: "GET", path: "/api/v1/namespaces?limit=1", ..json() };
        self.controllers.call(&request, &mut |bytes| list.extend_from_slice(bytes)).await?;
        self.watches.begin_after(list_revision(Encoding::Json, &list)?);
        if first == 0 {
            self.watches.of_control_plane(&self.connector).await?;
        }
        for node in first..size.nodes {
            self.kubelets.push(Http2Client::connect(&self.connector).await?);
            self.watches.of_node(&self.connector, &self.kubelets[node as usize], node).await?;
        }
        Ok(())
    }

    async fn create_all(&self, objects: Vec<(String, Vec<u8>)>) -> Result<()> {
        let mut tasks = tokio::task::JoinSet::new();
        for (path, body) in objects {
            if tasks.len() >= SETTING_UP {
                tasks.join_next().await.context("nothing is under way")?.context("a request panicked")??;
            }
            let client = self.controllers.clone();
            tasks.spawn(async move {
                client.call(&Request { method: "POST", path: &path, body: &body, ..protobuf() }, &mut |_| ()).await
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.context("a request panicked")??;
        }
        Ok(())
    }

    /// Lets the cluster live for a while.
    async fn run(&mut self, size: ClusterSize, time: Duration, processes: &Processes) -> Result<Vec<Phase>> {
        let load = Load::new(size, self.objects.clone(), self.controllers.clone(), self.kubelets.clone());
        self.watches.forget();
        let (before, start) = (processes.cpu()?, Instant::now());
        let (times, pods) = load.run(time, self.pods, &self.watches).await?;
        self.pods = pods;
        let elapsed = start.elapsed();
        let cpu = before.zip(processes.cpu()?).map(|(before, after)| after.saturating_sub(before));
        let resident = processes.resident()?;
        let mut all = Latencies::default();
        let mut phases = Vec::new();
        for (name, latencies) in times {
            all.extend(latencies.clone());
            phases.push(phase(&name, latencies, elapsed, None));
        }
        let events = self.watches.events();
        phases.insert(
            0,
            Phase { resident_bytes: resident, ..phase(&format!("{size}: all requests"), all, elapsed, cpu) },
        );
        let told = Outcome { operations: events, elapsed, ..Outcome::default() };
        phases.push(Phase::new(&format!("events to {} watches", self.watches.len()), told, None));
        phases.push(phase("a bound pod seen by its node", self.watches.take_seen(), elapsed, None));
        Ok(phases)
    }

    /// Ends the watches and removes what was made, as far as that is one request.
    async fn close(self) {
        let path = self.objects.namespace_path();
        let _ = self.controllers.call(&Request { method: "DELETE", path: &path, ..json() }, &mut |_| ()).await;
    }
}

fn phase(name: &str, latencies: Latencies, elapsed: Duration, cpu: Option<Duration>) -> Phase {
    let operations = latencies.len() as u64;
    Phase::new(name, Outcome { operations, elapsed, latencies, cpu, bytes: 0 }, None)
}

/// A request as components make it.
fn protobuf() -> Request<'static> {
    let media_type = Encoding::Protobuf.media_type();
    Request { accepts: media_type, media_type, ..Request::default() }
}

fn json() -> Request<'static> {
    let media_type = Encoding::Json.media_type();
    Request { accepts: media_type, media_type, ..Request::default() }
}
