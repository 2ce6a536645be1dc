//! A phase: many workers do one operation until they are through or the time is up.

use std::time::Duration;

use anyhow::{Context, Result};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::latency::Latencies;
use crate::process::Processes;
use crate::worker::{Operation, Worker};

/// How long after its end a phase may take to answer requests that are under way.
const GRACE: Duration = Duration::from_secs(60);

/// Operations of one worker in one phase. Keeps the list of latencies small whatever the flags say.
const MAX_OPERATIONS: usize = 2_000_000;

/// What to do, and for how long at most.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) operation: Operation,
    /// Workers that take part.
    pub(crate) workers: usize,
    pub(crate) time: Duration,
}

/// What a phase came to.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) operations: u64,
    pub(crate) bytes: u64,
    pub(crate) elapsed: Duration,
    pub(crate) latencies: Latencies,
    /// CPU time of the server, if its processes are known.
    pub(crate) cpu: Option<Duration>,
}

/// Runs a phase.
pub(crate) async fn run(workers: &mut Vec<Worker>, plan: Plan, processes: &Processes) -> Result<Outcome> {
    let live = workers.iter().map(|worker| worker.items() as u64).sum();
    let idle = workers.split_off(plan.workers.min(workers.len()));
    let before = processes.cpu()?;
    let start = Instant::now();
    let end = start + plan.time;

    let mut tasks = JoinSet::new();
    for worker in workers.drain(..) {
        tasks.spawn(work(worker, plan.operation, live, end));
    }
    let mut outcome = Outcome::default();
    let all = async {
        while let Some(task) = tasks.join_next().await {
            let (worker, bytes, latencies) = task.context("a worker panicked")??;
            workers.push(worker);
            outcome.bytes += bytes;
            outcome.operations += latencies.len() as u64;
            outcome.latencies.extend(latencies);
        }
        Ok::<_, anyhow::Error>(())
    };
    let name = plan.operation;
    tokio::time::timeout_at(end + GRACE, all).await.with_context(|| format!("{name:?} did not come to an end"))??;
    outcome.elapsed = start.elapsed();
    outcome.cpu = before.zip(processes.cpu()?).map(|(before, after)| after.saturating_sub(before));
    workers.extend(idle);
    Ok(outcome)
}

async fn work(mut worker: Worker, operation: Operation, live: u64, end: Instant) -> Result<(Worker, u64, Latencies)> {
    worker.start_walk();
    let mut latencies = Latencies::default();
    let mut bytes = 0;
    let mut now = Instant::now();
    while now < end && latencies.len() < MAX_OPERATIONS {
        let Some(count) = worker.step(operation, live).await? else { break };
        let before = std::mem::replace(&mut now, Instant::now());
        latencies.push(now - before);
        bytes += count;
    }
    Ok((worker, bytes, latencies))
}
