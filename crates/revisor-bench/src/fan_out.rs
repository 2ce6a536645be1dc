//! Fan-out: every write reaches many watchers.
//!
//! Writes come in rounds, and a round ends when all watchers have seen all of it. Without rounds the writers would run
//! away from the watchers, the server would drop those that fall behind, as it should, and nothing would be measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::connection::{Connection, Connector};
use crate::encoding::EventCounter;
use crate::http::Body;
use crate::objects::Namespace;
use crate::process::Processes;
use crate::worker::{Operation, Worker};
use crate::workload::Outcome;

/// Writes in a round. Few enough for the queue that a server keeps for each watcher.
const ROUND: usize = 16;

/// How long a round may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Events that all watchers have seen together.
#[derive(Default)]
struct Seen {
    events: AtomicU64,
    more: Notify,
}

/// Runs the phase. The operations of the outcome are events delivered; its latencies are those of whole rounds.
pub(crate) async fn run(
    connector: &Connector,
    namespace: &Namespace,
    workers: &mut Vec<Worker>,
    watchers: u32,
    time: Duration,
    processes: &Processes,
) -> Result<Outcome> {
    let revision = workers.first_mut().context("there is no worker")?.revision().await?;
    let path = format!("{}?watch=true&resourceVersion={revision}&timeoutSeconds=3600", namespace.collection);
    let mut request = Vec::new();
    connector.request_form(&mut request, &path, namespace.encoding.media_type());

    let seen = Arc::new(Seen::default());
    let mut watches = JoinSet::new();
    for _ in 0..watchers {
        let mut connection = connector.connect().await?;
        let body =
            tokio::time::timeout(PATIENCE, connection.open(&request)).await.context("a watch does not begin")??;
        watches.spawn(watch(connection, body, EventCounter::new(namespace.encoding), seen.clone()));
    }

    let mut outcome = Outcome::default();
    let before = processes.cpu()?;
    let start = Instant::now();
    let mut writes = 0;
    while start.elapsed() < time {
        let round = Instant::now();
        writes += write_round(workers).await?;
        let goal = writes * u64::from(watchers);
        tokio::time::timeout(PATIENCE, reach(goal, &seen, &mut watches))
            .await
            .with_context(|| format!("{} of {goal} events arrived", seen.events.load(Ordering::Relaxed)))??;
        outcome.latencies.push(round.elapsed());
    }
    outcome.elapsed = start.elapsed();
    outcome.cpu = before.zip(processes.cpu()?).map(|(before, after)| after.saturating_sub(before));
    outcome.operations = seen.events.load(Ordering::Relaxed);
    watches.shutdown().await;
    Ok(outcome)
}

/// One write by each of the first workers, all at the same time.
async fn write_round(workers: &mut Vec<Worker>) -> Result<u64> {
    let idle = workers.split_off(workers.len().min(ROUND));
    let mut tasks = JoinSet::new();
    for mut worker in workers.drain(..) {
        tasks.spawn(async move {
            let wrote = worker.step(Operation::Update, 0).await?;
            Ok::<_, anyhow::Error>((worker, wrote.is_some()))
        });
    }
    let mut writes = 0;
    while let Some(task) = tasks.join_next().await {
        let (worker, wrote) = task.context("a worker panicked")??;
        workers.push(worker);
        writes += u64::from(wrote);
    }
    workers.extend(idle);
    if writes == 0 {
        bail!("there is no object to write");
    }
    Ok(writes)
}

/// Waits until that many events have been seen. A watch that ends before is an error.
async fn reach(goal: u64, seen: &Seen, watches: &mut JoinSet<Result<()>>) -> Result<()> {
    loop {
        let events = seen.events.load(Ordering::Relaxed);
        if events > goal {
            bail!("{events} events arrived where {goal} were due");
        }
        if events == goal {
            return Ok(());
        }
        tokio::select! {
            () = seen.more.notified() => {}
            Some(ended) = watches.join_next() => ended.context("a watcher panicked")??,
        }
    }
}

/// Counts events until the server ends the watch.
async fn watch(mut connection: Connection, mut body: Body, mut counter: EventCounter, seen: Arc<Seen>) -> Result<()> {
    while body != Body::Done {
        let mut events = 0;
        connection.read_body(&mut body, &mut |bytes: &[u8]| events += counter.count(bytes)).await?;
        if events > 0 {
            seen.events.fetch_add(events, Ordering::Relaxed);
            seen.more.notify_one();
        }
    }
    bail!("the server ended a watch")
}
