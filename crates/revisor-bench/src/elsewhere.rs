//! How soon a write through one server is seen by a watch at another one that shares its store.
//!
//! One write at a time, so that no write waits for another. The clock of both figures starts when the write is sent: the
//! answer has the latency of the store in it, and what the watch takes beyond that is the way to the other server.

use std::time::Duration;

use anyhow::Result;
use tokio::time::Instant;

use crate::channel::Channels;
use crate::fan_out::FanOut;
use crate::objects::Namespace;
use crate::process::Processes;
use crate::worker::{Operation, Worker};
use crate::workload::Outcome;

/// Runs the phase. Answers the outcome of the writes, and of the events at the other server.
pub(crate) async fn run(
    other: &Channels,
    namespace: &Namespace,
    worker: &mut Worker,
    time: Duration,
    processes: &Processes,
) -> Result<(Outcome, Outcome)> {
    let mut watch = FanOut::open(other, namespace, worker, 1).await?;
    let (mut answered, mut arrived) = (Outcome::default(), Outcome::default());
    let before = processes.cpu()?;
    let start = Instant::now();
    while start.elapsed() < time {
        let sent = Instant::now();
        let write = async { worker.step(Operation::Update, 0).await.map(|_| sent.elapsed()) };
        let event = async { watch.reach(answered.operations + 1).await.map(|()| sent.elapsed()) };
        let (write, event) = tokio::join!(write, event);
        answered.latencies.push(write?);
        arrived.latencies.push(event?);
        answered.operations += 1;
    }
    let cpu = before.zip(processes.cpu()?).map(|(before, after)| after.saturating_sub(before));
    (answered.elapsed, answered.cpu) = (start.elapsed(), cpu);
    (arrived.elapsed, arrived.cpu, arrived.operations) = (answered.elapsed, cpu, answered.operations);
    watch.close().await;
    Ok((answered, arrived))
}
