//! Fan-out: every write reaches many watchers.
//!
//! Writes come in rounds, and a round ends when all watchers have seen all of it. Without rounds the writers would run
//! away from the watchers, the server would drop those that fall behind, as it should, and nothing would be measured. A
//! round of one write tells how long a lone event takes. Asked for so, writes come at a steady rate instead, and who falls
//! behind is seen by how long events take.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};

use crate::channel::{Channel, Channels};
use crate::connection::Request;
use crate::encoding::EventCounter;
use crate::latency::Latencies;
use crate::objects::Namespace;
use crate::process::Processes;
use crate::worker::{Operation, Worker};
use crate::workload::Outcome;

/// Writes in a round. Few enough for the queue that a server keeps for each watcher.
pub(crate) const ROUND: usize = 16;

/// How long a round may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// What comes before a lone event: long enough for what the one before it has set going to have ended.
pub(crate) const PAUSE: Duration = Duration::from_millis(5);

/// So many watchers tell how long events took to reach them at a steady rate. More would tell the same.
const TELLERS: u32 = 100;

/// Watchers of one collection.
pub(crate) struct FanOut {
    watchers: u32,
    watches: JoinSet<Result<()>>,
    seen: Arc<Seen>,
    writes: u64,
}

/// Events that all watchers have seen together.
#[derive(Default)]
struct Seen {
    events: AtomicU64,
    bytes: AtomicU64,
    more: Notify,
    /// When the writes were begun that are made at a steady rate, and how long their events took.
    steady: Mutex<(Vec<Instant>, Latencies)>,
}

impl FanOut {
    /// So many watchers, who have yet to come.
    pub(crate) fn of(watchers: u32) -> FanOut {
        FanOut { watchers, watches: JoinSet::new(), seen: Arc::default(), writes: 0 }
    }

    /// Begins the watches.
    pub(crate) async fn open(
        channels: &Channels,
        namespace: &Namespace,
        worker: &mut Worker,
        watchers: u32,
    ) -> Result<FanOut> {
        let revision = worker.revision().await?;
        let path = format!("{}?watch=true&resourceVersion={revision}&timeoutSeconds=3600", namespace.collection);
        let request = Request::get(&path, namespace.encoding.media_type());
        let mut fan_out = FanOut::of(watchers);
        for number in 0..watchers {
            let mut channel = channels.open().await?;
            tokio::time::timeout(PATIENCE, channel.open(&request)).await.context("a watch does not begin")??;
            fan_out.watch(channel, EventCounter::new(namespace.encoding), number < TELLERS);
        }
        Ok(fan_out)
    }

    /// Counts what comes in on a channel.
    pub(crate) fn watch(&mut self, channel: Channel, counter: EventCounter, tells: bool) {
        self.watches.spawn(watch(channel, counter, self.seen.clone(), tells));
    }

    /// How many bytes an event has, as it is sent.
    pub(crate) fn event_bytes(&self) -> u64 {
        let [bytes, events] = [&self.seen.bytes, &self.seen.events].map(|count| count.load(Ordering::Relaxed));
        bytes.checked_div(events).unwrap_or_default()
    }

    /// Writes in rounds of `size`. The operations of the outcome are events delivered; its latencies are those of whole
    /// rounds.
    pub(crate) async fn rounds(
        &mut self,
        workers: &mut Vec<Worker>,
        size: usize,
        time: Duration,
        processes: &Processes,
    ) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        let (before, first) = (processes.cpu()?, self.writes);
        let start = Instant::now();
        while start.elapsed() < time {
            if size == 1 {
                tokio::time::sleep(PAUSE).await;
            }
            let round = Instant::now();
            self.writes += write_round(workers, size).await?;
            self.reach(self.writes).await?;
            outcome.latencies.push(round.elapsed());
        }
        outcome.elapsed = start.elapsed();
        outcome.cpu = before.zip(processes.cpu()?).map(|(before, after)| after.saturating_sub(before));
        outcome.operations = (self.writes - first) * u64::from(self.watchers);
        Ok(outcome)
    }

    /// Single writes with a pause before each, of which nobody is told: what a lone write costs, for what it costs with
    /// watchers to be held against.
    pub(crate) async fn unwatched(workers: &mut Vec<Worker>, time: Duration, processes: &Processes) -> Result<Outcome> {
        let outcome = FanOut::of(0).rounds(workers, 1, time, processes).await?;
        Ok(Outcome { operations: outcome.latencies.len() as u64, ..outcome })
    }

    /// Writes at a steady rate, whether or not events arrive. The latencies are those of events, from the beginning of
    /// their write on.
    pub(crate) async fn steadily(
        &mut self,
        workers: &mut Vec<Worker>,
        rate: u32,
        time: Duration,
        processes: &Processes,
    ) -> Result<Outcome> {
        let (before, first) = (processes.cpu()?, self.writes);
        let start = Instant::now();
        let mut ticks = tokio::time::interval(Duration::from_secs(1) / rate);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let mut writing = JoinSet::new();
        while start.elapsed() < time {
            ticks.tick().await;
            while let Some(done) = writing.try_join_next() {
                workers.push(done.context("a worker panicked")??);
            }
            if workers.is_empty() {
                let done = writing.join_next().await.context("there is no worker")?;
                workers.push(done.context("a worker panicked")??);
            }
            let Some(mut worker) = workers.pop() else { continue };
            self.writes += 1;
            self.seen.begun();
            writing.spawn(async move {
                worker.step(Operation::Update, 0).await?.context("there is no object to write")?;
                Ok::<_, anyhow::Error>(worker)
            });
        }
        while let Some(done) = writing.join_next().await {
            workers.push(done.context("a worker panicked")??);
        }
        self.reach(self.writes).await?;
        Ok(Outcome {
            operations: (self.writes - first) * u64::from(self.watchers),
            elapsed: start.elapsed(),
            latencies: self.seen.take_latencies(),
            cpu: before.zip(processes.cpu()?).map(|(before, after)| after.saturating_sub(before)),
            ..Outcome::default()
        })
    }

    /// Waits until every watcher has seen so many writes. A watch that ends before is an error.
    pub(crate) async fn reach(&mut self, writes: u64) -> Result<()> {
        let goal = writes * u64::from(self.watchers);
        let Self { seen, watches, .. } = self;
        let all = async {
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
        };
        let reached = tokio::time::timeout(PATIENCE, all).await;
        reached.with_context(|| format!("{} of {goal} events arrived", seen.events.load(Ordering::Relaxed)))?
    }

    /// Ends the watches.
    pub(crate) async fn close(mut self) {
        self.watches.shutdown().await;
    }
}

impl Seen {
    /// Counts events that came to one watcher.
    fn add(&self, events: u64) {
        self.events.fetch_add(events, Ordering::Relaxed);
        self.more.notify_one();
    }

    /// Remembers when a write was begun.
    fn begun(&self) {
        self.steady.lock().unwrap_or_else(PoisonError::into_inner).0.push(Instant::now());
    }

    /// Remembers how long these events took, as they are counted of one watcher.
    fn tell(&self, events: std::ops::Range<u64>) {
        let now = Instant::now();
        let mut steady = self.steady.lock().unwrap_or_else(PoisonError::into_inner);
        let (begun, latencies) = &mut *steady;
        for event in events {
            if let Some(begun) = usize::try_from(event).ok().and_then(|event| begun.get(event)) {
                latencies.push(now - *begun);
            }
        }
    }

    fn take_latencies(&self) -> Latencies {
        std::mem::take(&mut self.steady.lock().unwrap_or_else(PoisonError::into_inner).1)
    }
}

/// One write by each of the first workers, all at the same time.
async fn write_round(workers: &mut Vec<Worker>, size: usize) -> Result<u64> {
    let idle = workers.split_off(workers.len().min(size));
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

/// Counts events until the server ends the watch.
async fn watch(mut channel: Channel, mut counter: EventCounter, seen: Arc<Seen>, tells: bool) -> Result<()> {
    let mut count = 0;
    loop {
        let (mut events, mut bytes) = (0, 0);
        let has_more = channel
            .read(&mut |piece: &[u8]| {
                events += counter.count(piece);
                bytes += piece.len() as u64;
            })
            .await?;
        seen.bytes.fetch_add(bytes, Ordering::Relaxed);
        if events > 0 {
            if tells {
                seen.tell(count..count + events);
            }
            count += events;
            seen.add(events);
        }
        if !has_more {
            bail!("the server ended a watch");
        }
    }
}
