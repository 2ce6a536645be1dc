//! The whole measurement, in order: our server first, then its peer, with the same work.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::channel::Channels;
use crate::encoding::Encoding;
use crate::fan_out::{FanOut, ROUND};
use crate::limit::{Limit, Way};
use crate::objects::{Kind, Namespace};
use crate::process::Processes;
use crate::report::{Phase, Report, ServerReport};
use crate::server::OwnServer;
use crate::webhook_server::WebhookServer;
use crate::widgets::Conversion;
use crate::worker::{Operation, Worker};
use crate::workload::{Outcome, Plan};
use crate::{Endpoint, Options, cluster, converter, elsewhere, migrate, policies, reviewers, scale, workload};

/// Workers that list everything at the same time. More would only wait for each other's megabytes.
const LISTERS: usize = 4;

/// The longest time to set a server up: connections, namespace.
const SETUP: Duration = Duration::from_secs(60);

/// How long policies and webhooks are waited for.
const POLICIES: Duration = Duration::from_secs(3);

/// Measures what the options ask for. Lines about the progress go to `progress`.
pub async fn run(options: &Options, progress: &mut dyn FnMut(&str)) -> Result<Report> {
    if options.conversion.is_some() && options.kind != Kind::Widgets {
        bail!("--conversion is for --kind widgets");
    }
    if options.encoding == Encoding::Protobuf && options.kind == Kind::Widgets {
        bail!("custom objects have no form in protobuf");
    }
    let peer = match (&options.peer, &options.peer_token) {
        (Some(url), Some(token)) => Some((Endpoint::new(url, token)?, Processes::new(options.peer_pid.clone()))),
        _ => None,
    };
    let mut servers = Vec::new();
    match (&options.server, &options.token) {
        (Some(url), Some(token)) => {
            let processes = Processes::new(options.pid.clone());
            servers.push(measure("revisor", Endpoint::new(url, token)?, processes, options, None, progress).await?);
        }
        _ => {
            let Some(binary) = &options.binary else { bail!("give either --server or --binary") };
            let ours = Ours::new(binary, options);
            progress(if ours.is_shared {
                "starting a server on an etcd"
            } else {
                "starting a server on an empty folder"
            });
            let server = ours.start().await?;
            let processes = Processes::new(vec![server.pid()]);
            let endpoint = server.endpoint.clone();
            let mut report = measure("revisor", endpoint, processes, options, Some(&ours), progress).await?;
            report.ready_seconds = Some(server.ready.as_secs_f64());
            servers.push(report);
        }
    }
    if let Some((endpoint, processes)) = peer {
        servers.push(measure("peer", endpoint, processes, options, None, progress).await?);
    }
    Ok(Report { servers })
}

/// How servers of our own are started.
struct Ours<'a> {
    binary: &'a Path,
    flags: Vec<String>,
    /// Whether another one can share the store.
    is_shared: bool,
}

impl<'a> Ours<'a> {
    fn new(binary: &'a Path, options: &Options) -> Ours<'a> {
        let own = if options.migrate { &migrate::FLAGS[..] } else { &["--controllers=none"] };
        let mut flags: Vec<String> = own.iter().map(|flag| (*flag).to_owned()).collect();
        if let Some(urls) = &options.etcd_servers {
            // A prefix of its own, so that whatever else is there stays apart.
            flags.extend([format!("--etcd-servers={urls}"), format!("--etcd-prefix=/bench-{}", std::process::id())]);
        }
        Ours { binary, flags, is_shared: options.etcd_servers.is_some() }
    }

    async fn start(&self) -> Result<OwnServer> {
        OwnServer::start(self.binary, &self.flags.iter().map(String::as_str).collect::<Vec<_>>()).await
    }
}

async fn measure(
    name: &str,
    endpoint: Endpoint,
    processes: Processes,
    options: &Options,
    ours: Option<&Ours<'_>>,
    progress: &mut dyn FnMut(&str),
) -> Result<ServerReport> {
    if let Some(size) = options.cluster {
        return cluster::measure(name, endpoint, processes, options, size, progress).await;
    }
    progress(&format!("{name}: at rest"));
    let idle_bytes = processes.resident_at_rest(options.rest).await?;
    let mut drive = tokio::time::timeout(SETUP, Drive::open(endpoint.clone(), processes, options))
        .await
        .with_context(|| format!("{name} does not answer"))?
        .with_context(|| format!("{name} cannot be set up"))?;
    let mut report = ServerReport { name: name.to_owned(), idle_bytes, ..ServerReport::default() };
    let phases = if options.scale {
        scale::phases(&mut drive, options, &mut |line| progress(&format!("{name}: {line}"))).await
    } else if options.migrate {
        migrate::phases(&mut drive, &endpoint, options, &mut |line| progress(&format!("{name}: {line}"))).await
    } else {
        phases(&mut drive, options, ours, &mut report, &mut |line| progress(&format!("{name}: {line}"))).await
    };
    report.phases = phases.with_context(|| format!("{name} cannot be measured"))?;
    drive.close().await;
    Ok(report)
}

async fn phases(
    drive: &mut Drive,
    options: &Options,
    ours: Option<&Ours<'_>>,
    report: &mut ServerReport,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Phase>> {
    let everyone = drive.workers.len();
    let time = Duration::from_secs(options.seconds.into());
    let mut phases = Vec::new();

    progress("create");
    let created = drive.fill(options.objects, options).await?;
    phases.push(drive.phase("create", created)?);
    progress("at rest");
    report.loaded_bytes = drive.processes.resident_at_rest(options.rest).await?;
    report.objects = options.objects;

    let beside = match ours.filter(|ours| ours.is_shared) {
        Some(ours) => {
            progress("start of another server");
            let beside = ours.start().await?;
            phases.push(Phase::new("start of another server", beside.started()?, beside.resident()?));
            Some(beside)
        }
        None => None,
    };

    if options.fan_out {
        phases.extend(drive.fan_out(options, progress).await?);
        return Ok(phases);
    }

    if options.conversion.is_some() {
        // Nothing is remembered yet of what the objects look like in this version.
        progress("first list");
        let once = Plan { operation: Operation::List, workers: 1, time: Duration::from_millis(1) };
        let outcome = drive.run(once).await?;
        phases.push(drive.phase("list, the first time", outcome)?);
    }

    for (name, operation, workers) in [
        ("get", Operation::Get, everyone),
        ("update", Operation::Update, everyone),
        ("apply", Operation::Apply, everyone),
        ("list", Operation::List, LISTERS),
        ("list as a table", Operation::Table, LISTERS),
        ("list, pages of 500", Operation::Page, LISTERS),
    ] {
        progress(name);
        let outcome = drive.run(Plan { operation, workers, time }).await?;
        phases.push(drive.phase(name, outcome)?);
    }

    phases.extend(drive.fan_out(options, progress).await?);

    let other = match (&beside, &options.watch_server, &options.token) {
        (Some(beside), ..) => Some(beside.endpoint().clone()),
        (None, Some(url), Some(token)) => Some(Endpoint::new(url, token)?),
        _ => None,
    };
    if let Some(other) = other {
        progress("watch at the other server");
        let other = Channels::new(other, options.http2.then_some(options.streams))?;
        let (answered, arrived) = drive.seen_elsewhere(&other, time).await?;
        phases.push(drive.phase("update, one at a time", answered)?);
        phases.push(drive.phase("the same, seen at the other server", arrived)?);
    }

    progress("delete");
    let outcome = drive.shrink(0, options).await?;
    phases.push(drive.phase("delete", outcome)?);
    Ok(phases)
}

/// Waits until the objects can be asked for: what was defined a moment ago may not be.
async fn until_served(worker: &mut Worker, namespace: &Namespace) -> Result<()> {
    let path = format!("{}?limit=1", namespace.collection);
    let served = async {
        // An answer that is no success ends the wait of one turn, not the benchmark.
        while worker.call("GET", &path, "").await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(SETUP, served).await.with_context(|| format!("{path} is not served"))
}

/// A server, the workers connected to it, and the namespace that they work in.
pub(crate) struct Drive {
    channels: Channels,
    namespace: Arc<Namespace>,
    processes: Processes,
    workers: Vec<Worker>,
    /// Converts for as long as there are objects.
    _converter: Option<WebhookServer>,
    /// Lets every write pass.
    _reviewer: Option<WebhookServer>,
    /// Objects below this number have been created.
    numbers: u32,
    /// So many policies are in force.
    policies: u32,
    /// So many webhooks are asked.
    webhooks: u32,
}

impl Drive {
    async fn open(endpoint: Endpoint, processes: Processes, options: &Options) -> Result<Self> {
        let channels = Channels::new(endpoint, options.http2.then_some(options.streams))?;
        // A name of its own, so that a second run on the same server does not meet the objects of the first.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let namespace = Namespace::new(
            format!("bench-{}-{}", std::process::id(), now.as_millis()),
            options.kind,
            options.conversion,
            options.encoding,
        );
        let namespace = Arc::new(namespace);
        let converting = match options.conversion {
            Some(Conversion::Webhook) => Some(WebhookServer::start(converter::review).await?),
            _ => None,
        };
        let reviewer = match options.webhooks {
            0 => None,
            _ => Some(WebhookServer::start(reviewers::review).await?),
        };
        let mut workers = Vec::new();
        for first in 0..options.connections {
            workers.push(Worker::connect(&channels, &namespace, first, options.connections).await?);
        }
        let first = workers.first_mut().context("there is no worker")?;
        first.call("POST", "/api/v1/namespaces", &namespace.manifest()).await?;
        let mut needs = namespace.needs(converting.as_ref().map(|webhook| &webhook.client_config));
        let client = reviewer.as_ref().map(|reviewer| &reviewer.client_config).unwrap_or(&Value::Null);
        needs.extend(reviewers::configuration(&namespace, options.webhooks, client));
        // Last: what is in no namespace has to pass them, too.
        needs.extend(policies::policies(&namespace, options.policies));
        for (path, name, need) in needs {
            // If it is there already, that is as good.
            let made = first.call("POST", &path, &need).await;
            if first.call("GET", &format!("{path}/{name}"), "").await.is_err() {
                made.with_context(|| format!("{name} is needed"))?;
            }
        }
        until_served(first, &namespace).await?;
        if options.policies + options.webhooks > 0 {
            // The original takes up to a second to put them in force.
            tokio::time::sleep(POLICIES).await;
        }
        Ok(Self {
            channels,
            namespace,
            processes,
            workers,
            _converter: converting,
            _reviewer: reviewer,
            numbers: 0,
            policies: options.policies,
            webhooks: options.webhooks,
        })
    }

    /// Another kind of objects on the same server.
    pub(crate) async fn beside(&self, endpoint: Endpoint, options: &Options) -> Result<Self> {
        Drive::open(endpoint, self.processes.clone(), options).await
    }

    /// One more connection, which has no objects.
    pub(crate) async fn worker(&self) -> Result<Worker> {
        Worker::connect(&self.channels, &self.namespace, 0, 1).await
    }

    /// Hands the workers over to somebody who gives them back.
    pub(crate) fn take_workers(&mut self) -> Vec<Worker> {
        std::mem::take(&mut self.workers)
    }

    pub(crate) fn give_workers(&mut self, workers: Vec<Worker>) {
        self.workers = workers;
    }

    /// The CPU time of the server so far, if its processes are known.
    pub(crate) fn cpu(&self) -> Result<Option<Duration>> {
        self.processes.cpu()
    }

    pub(crate) fn workers(&self) -> usize {
        self.workers.len()
    }

    pub(crate) async fn run(&mut self, plan: Plan) -> Result<Outcome> {
        workload::run(&mut self.workers, plan, &self.processes).await
    }

    /// Creates objects until there are as many as asked for. Numbers go on where they ended, also after deletions, so
    /// that no name is used twice.
    pub(crate) async fn fill(&mut self, objects: u32, options: &Options) -> Result<Outcome> {
        self.numbers += objects.saturating_sub(self.live());
        let end = self.numbers;
        self.workers.iter_mut().for_each(|worker| worker.create_up_to(end));
        let outcome = self.run(self.to_the_end(Operation::Create, options)).await?;
        let live = self.live();
        if live < objects {
            bail!("{live} of {objects} objects were created in the given time; raise --limit-seconds");
        }
        Ok(outcome)
    }

    fn live(&self) -> u32 {
        let live: usize = self.workers.iter().map(Worker::items).sum();
        u32::try_from(live).unwrap_or(u32::MAX)
    }

    /// Deletes objects until each worker has no more than its share of `keep`.
    pub(crate) async fn shrink(&mut self, keep: u32, options: &Options) -> Result<Outcome> {
        let share = keep as usize / self.workers.len().max(1);
        self.workers.iter_mut().for_each(|worker| worker.delete_down_to(share));
        self.run(self.to_the_end(Operation::Delete, options)).await
    }

    /// Events to many watchers, and what a bare loop needs for as many.
    async fn fan_out(&mut self, options: &Options, progress: &mut dyn FnMut(&str)) -> Result<Vec<Phase>> {
        let (watchers, time) = (options.watchers, Duration::from_secs(options.seconds.into()));
        progress("watch");
        let Self { channels, namespace, processes, workers, .. } = self;
        let first = workers.first_mut().context("there is no worker")?;
        let mut fan_out = FanOut::open(channels, namespace, first, watchers).await?;
        let mut outcomes = Vec::new();
        match options.event_rate {
            Some(rate) => {
                let outcome = fan_out.steadily(workers, rate, time, processes).await?;
                outcomes.push((format!("events to {watchers} watchers, {rate} writes/s"), outcome));
            }
            None => {
                let outcome = fan_out.rounds(workers, ROUND, time, processes).await?;
                outcomes.push((format!("events to {watchers} watchers"), outcome));
                let lone = fan_out.rounds(workers, 1, time / 2, processes).await?;
                outcomes.push((format!("a lone event to {watchers} watchers"), lone));
            }
        }
        let event_bytes = fan_out.event_bytes();
        fan_out.close().await;
        if options.event_rate.is_none() {
            let write = FanOut::unwatched(workers, time / 2, processes).await?;
            outcomes.push(("a lone write that nobody watches".to_owned(), write));
        }
        let mut ways = vec![("one by one", Way::OneByOne), ("a round at once", Way::Together)];
        if options.event_rate.is_none() {
            ways.push(("a lone event", Way::Alone));
        }
        for (name, way) in ways {
            let limit = Limit { watchers, encoding: self.namespace.encoding, event_bytes, way, time: time / 2 };
            outcomes.push((format!("limit: a bare loop, {name}"), limit.run().await?));
        }
        outcomes.into_iter().map(|(name, outcome)| self.phase(&name, outcome)).collect()
    }

    async fn seen_elsewhere(&mut self, other: &Channels, time: Duration) -> Result<(Outcome, Outcome)> {
        let Self { namespace, processes, workers, .. } = self;
        let worker = workers.first_mut().context("there is no worker")?;
        elsewhere::run(other, namespace, worker, time, processes).await
    }

    fn to_the_end(&self, operation: Operation, options: &Options) -> Plan {
        Plan { operation, workers: self.workers.len(), time: Duration::from_secs(options.limit_seconds.into()) }
    }

    pub(crate) fn phase(&self, name: &str, outcome: Outcome) -> Result<Phase> {
        Ok(Phase::new(name, outcome, self.resident()?))
    }

    fn resident(&self) -> Result<Option<u64>> {
        self.processes.resident()
    }

    /// Leaves the server as it was found. The figures are in already, so a failure here does not matter.
    pub(crate) async fn close(mut self) {
        let namespace = format!("/api/v1/namespaces/{}", self.namespace.name);
        let policies = policies::policies(&self.namespace, self.policies);
        let webhooks = reviewers::configuration(&self.namespace, self.webhooks, &Value::Null);
        let policies = webhooks.into_iter().chain(policies).map(|(collection, name, _)| format!("{collection}/{name}"));
        if let Some(worker) = self.workers.first_mut() {
            let all = async {
                for path in policies.chain([namespace]) {
                    let _ = worker.call("DELETE", &path, "").await;
                }
            };
            let _ = tokio::time::timeout(SETUP, all).await;
        }
    }
}
