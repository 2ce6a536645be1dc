//! [`QueueTally`]: what became of the keys of a work queue, for whoever measures.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::Clock;

/// The bounds of the distributions in seconds: from ten nanoseconds to ten seconds, as in the original.
pub const QUEUE_BUCKETS: [f64; 10] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0];

/// Counts what becomes of the keys of a queue.
pub(crate) struct QueueTally {
    name: &'static str,
    clock: Arc<dyn Clock>,
    numbers: Mutex<Numbers>,
}

#[derive(Default)]
struct Numbers {
    depth: u64,
    adds: u64,
    retries: u64,
    waited: Durations,
    worked: Durations,
    /// Since when those keys are worked on that are worked on now.
    begun: Vec<Duration>,
}

/// Durations by their length.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Durations {
    /// How many are within each of [`QUEUE_BUCKETS`], and not within the one before.
    pub buckets: [u64; QUEUE_BUCKETS.len()],
    /// How many there are.
    pub count: u64,
    /// What they add up to, in seconds.
    pub sum: f64,
}

impl Durations {
    fn add(&mut self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        if let Some(bucket) = QUEUE_BUCKETS.iter().position(|bound| seconds <= *bound) {
            self.buckets[bucket] += 1;
        }
        self.count += 1;
        self.sum += seconds;
    }
}

/// What became of the keys of a queue.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueSample {
    /// Whose queue it is.
    pub name: &'static str,
    /// How many keys wait.
    pub depth: u64,
    /// How many were added.
    pub adds: u64,
    /// How many came again because the work on them failed.
    pub retries: u64,
    /// How long keys waited.
    pub waited: Durations,
    /// How long the work on them took.
    pub worked: Durations,
    /// For how long those keys are worked on that are worked on now, in all.
    pub unfinished: Duration,
    /// For how long the one of them is worked on that is worked on longest.
    pub longest: Duration,
}

impl QueueTally {
    pub(crate) fn new(name: &'static str, clock: Arc<dyn Clock>) -> QueueTally {
        QueueTally { name, clock, numbers: Mutex::default() }
    }

    /// A key was added that did not wait yet.
    pub(super) fn added(&self) {
        let mut numbers = self.numbers();
        numbers.adds += 1;
        numbers.depth += 1;
    }

    /// The work on a key has begun, for which it has waited so long.
    pub(super) fn begun(&self, at: Duration, waited: Duration) {
        let mut numbers = self.numbers();
        numbers.depth = numbers.depth.saturating_sub(1);
        numbers.waited.add(waited);
        numbers.begun.push(at);
    }

    /// The work on a key has ended that began then.
    pub(super) fn ended(&self, begun: Duration) {
        let worked = self.clock.uptime().saturating_sub(begun);
        let mut numbers = self.numbers();
        if let Some(known) = numbers.begun.iter().position(|known| *known == begun) {
            numbers.begun.swap_remove(known);
        }
        numbers.worked.add(worked);
    }

    /// A key has to come again.
    pub(super) fn retried(&self) {
        self.numbers().retries += 1;
    }

    /// What became of the keys so far.
    pub(crate) fn sample(&self) -> QueueSample {
        let now = self.clock.uptime();
        let numbers = self.numbers();
        let running = || numbers.begun.iter().map(|begun| now.saturating_sub(*begun));
        QueueSample {
            name: self.name,
            depth: numbers.depth,
            adds: numbers.adds,
            retries: numbers.retries,
            waited: numbers.waited,
            worked: numbers.worked,
            unfinished: running().sum(),
            longest: running().max().unwrap_or_default(),
        }
    }

    fn numbers(&self) -> MutexGuard<'_, Numbers> {
        // Numbers are whole after every statement.
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
