//! [`Batch`]: events that are written beside the requests that they are about. Those that wait are bounded by number and
//! by bytes; what does not fit is counted and lost.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use crate::Truncation;
use crate::backend::{Counts, Output, Plugin, write_log};

/// How many bytes of events wait at most, whatever their number.
const MAX_BYTES: usize = 256 << 20;

/// How many batches are on their way to a webhook at once.
const MAX_SENDING: usize = 32;

/// How events are gathered.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchOptions {
    /// How many may wait.
    pub buffer_size: usize,
    /// How many are written at once.
    pub max_size: usize,
    /// How long is waited until there are so many.
    pub max_wait: Duration,
    /// How often batches are written at most.
    pub throttle: Option<Throttle>,
}

/// How often something is done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Throttle {
    /// So often in a second, on average.
    pub per_second: f64,
    /// So often at once, after a pause.
    pub burst: usize,
}

/// Events that are gathered.
#[derive(Debug)]
pub(crate) struct Batch {
    sender: Mutex<Option<mpsc::Sender<Bytes>>>,
    waiting: Arc<AtomicUsize>,
    worker: Mutex<Option<JoinHandle<()>>>,
    counts: Arc<Counts>,
}

impl Batch {
    pub(crate) fn begin(
        options: BatchOptions,
        output: Output,
        truncation: Option<Truncation>,
        counts: &Arc<Counts>,
    ) -> Batch {
        let (sender, events) = mpsc::channel(options.buffer_size.max(1));
        let waiting = Arc::new(AtomicUsize::new(0));
        let bucket = options.throttle.map(Bucket::full);
        let worker = Worker {
            options,
            output,
            max_bytes: truncation.map_or(usize::MAX, |truncation| truncation.max_batch_bytes),
            events,
            waiting: Arc::clone(&waiting),
            bucket,
            sending: Arc::new(Semaphore::new(MAX_SENDING)),
            counts: Arc::clone(counts),
        };
        let worker = tokio::spawn(worker.run());
        Batch {
            sender: Mutex::new(Some(sender)),
            waiting,
            worker: Mutex::new(Some(worker)),
            counts: Arc::clone(counts),
        }
    }

    pub(crate) fn add(&self, event: Bytes) {
        let size = event.len();
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(sender) = &*sender else {
            self.counts.fail(Plugin::Buffered, 1, &"audit backend shut down");
            return;
        };
        let fits = self.waiting.fetch_add(size, Ordering::Relaxed) + size <= MAX_BYTES;
        if !fits || sender.try_send(event).is_err() {
            self.waiting.fetch_sub(size, Ordering::Relaxed);
            self.counts.fail(Plugin::Buffered, 1, &"audit buffer queue blocked");
        }
    }

    /// Writes all that waits.
    pub(crate) async fn close(&self) {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner).take();
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(worker) = worker {
            // If it failed, that was logged, and there is nothing left to do.
            let _ = worker.await;
        }
    }
}

struct Worker {
    options: BatchOptions,
    output: Output,
    max_bytes: usize,
    events: mpsc::Receiver<Bytes>,
    waiting: Arc<AtomicUsize>,
    bucket: Option<Bucket>,
    sending: Arc<Semaphore>,
    counts: Arc<Counts>,
}

impl Worker {
    async fn run(mut self) {
        while let Some(batch) = self.gather().await {
            if let Some(bucket) = &mut self.bucket {
                bucket.take().await;
            }
            self.write(batch).await;
        }
        // Those that are on their way have arrived when all may be on their way again.
        let _ = self.sending.acquire_many(MAX_SENDING as u32).await;
    }

    /// The next events: as many as may come together, or those that came in time.
    async fn gather(&mut self) -> Option<Vec<Bytes>> {
        let first = self.events.recv().await?;
        let mut batch = vec![first];
        let due = Instant::now() + self.options.max_wait;
        while batch.len() < self.options.max_size {
            match timeout_at(due, self.events.recv()).await {
                Ok(Some(event)) => batch.push(event),
                Ok(None) | Err(_) => break,
            }
        }
        Some(batch)
    }

    async fn write(&self, batch: Vec<Bytes>) {
        let size: usize = batch.iter().map(Bytes::len).sum();
        match &self.output {
            Output::Log(log) => {
                let (log, counts) = (Arc::clone(log), Arc::clone(&self.counts));
                let write = move || {
                    for event in &batch {
                        write_log(&log, event, &counts);
                    }
                };
                // A panic in it was logged; the events are lost with it.
                let _ = tokio::task::spawn_blocking(write).await;
                self.waiting.fetch_sub(size, Ordering::Relaxed);
            }
            Output::Webhook(webhook) => {
                for part in split(batch, self.max_bytes) {
                    let Ok(permit) = Arc::clone(&self.sending).acquire_owned().await else { return };
                    let (webhook, counts) = (Arc::clone(webhook), Arc::clone(&self.counts));
                    let waiting = Arc::clone(&self.waiting);
                    tokio::spawn(async move {
                        webhook.send(&part, &counts).await;
                        waiting.fetch_sub(part.iter().map(Bytes::len).sum(), Ordering::Relaxed);
                        drop(permit);
                    });
                }
            }
        }
    }
}

/// Batches of at most so many bytes, unless one event alone is more.
fn split(batch: Vec<Bytes>, max_bytes: usize) -> Vec<Vec<Bytes>> {
    let mut parts: Vec<Vec<Bytes>> = Vec::new();
    let mut size = 0;
    for event in batch {
        if parts.is_empty() || size + event.len() > max_bytes {
            parts.push(Vec::new());
            size = 0;
        }
        size += event.len();
        if let Some(part) = parts.last_mut() {
            part.push(event);
        }
    }
    parts
}

/// Tokens that come back with time.
struct Bucket {
    throttle: Throttle,
    tokens: f64,
    at: Instant,
}

impl Bucket {
    fn full(throttle: Throttle) -> Bucket {
        Bucket { throttle, tokens: throttle.burst as f64, at: Instant::now() }
    }

    async fn take(&mut self) {
        let now = Instant::now();
        let Throttle { per_second, burst } = self.throttle;
        self.tokens = (self.tokens + now.duration_since(self.at).as_secs_f64() * per_second).min(burst as f64);
        self.at = now;
        if self.tokens < 1.0 {
            let wait = Duration::from_secs_f64((1.0 - self.tokens) / per_second);
            tokio::time::sleep(wait).await;
            self.at = Instant::now();
            self.tokens = 1.0;
        }
        self.tokens -= 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_split_by_size() {
        let event = |size: usize| Bytes::from(vec![0; size]);
        let sizes = |parts: Vec<Vec<Bytes>>| -> Vec<Vec<usize>> {
            parts.iter().map(|part| part.iter().map(Bytes::len).collect()).collect()
        };
        let batch = vec![event(4), event(4), event(4), event(20), event(1)];
        assert_eq!(sizes(split(batch, 10)), [vec![4, 4], vec![4], vec![20], vec![1]]);
    }

    #[tokio::test(start_paused = true)]
    async fn tokens_come_back_with_time() {
        let mut bucket = Bucket::full(Throttle { per_second: 2.0, burst: 3 });
        let started = Instant::now();
        for _ in 0..5 {
            bucket.take().await;
        }
        assert_eq!(started.elapsed(), Duration::from_secs(1));
    }
}
