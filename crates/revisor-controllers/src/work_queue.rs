//! [`WorkQueue`]: keys that something is to be done about, each at most once at a time, with longer and longer pauses
//! after failures.

mod tally;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::Notify;

use crate::Clock;
pub(crate) use tally::QueueTally;
pub use tally::{Durations, QUEUE_BUCKETS, QueueSample};

/// What became of the work on a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// There is nothing left to do.
    Done,
    /// It has to be tried again.
    Retry,
    /// It has to be tried again, but not before so long.
    RetryAfter(Duration),
}

/// The pauses between attempts: doubled after each failure, within bounds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Backoff {
    pub(crate) first: Duration,
    pub(crate) longest: Duration,
}

impl Backoff {
    fn after(&self, failures: u32) -> Duration {
        let doubled = self.first.saturating_mul(1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX));
        doubled.min(self.longest)
    }
}

/// Keys to be worked on. A key that is added while it waits is not added twice; one that is added while it is worked
/// on comes once more afterwards, and never to two workers at once. So the queue is bounded by the number of keys.
pub(crate) struct WorkQueue<K> {
    state: Mutex<State<K>>,
    news: Notify,
    clock: Arc<dyn Clock>,
    backoff: Backoff,
    tally: Arc<QueueTally>,
}

struct State<K> {
    ready: VecDeque<K>,
    /// The keys in `ready`, and since when each of them is there.
    waiting: HashMap<K, Duration>,
    running: HashSet<K>,
    /// Those of them that have to come again.
    again: HashSet<K>,
    /// The keys that come later, by when, and when each of them comes.
    later: BTreeSet<(Duration, K)>,
    due: HashMap<K, Duration>,
    failures: HashMap<K, u32>,
}

/// A key that is worked on. To drop it ends that.
struct Turn<'q, K: Clone + Eq + Hash + Ord> {
    queue: &'q WorkQueue<K>,
    key: K,
    begun: Duration,
}

impl<K: Clone + Eq + Hash + Ord> WorkQueue<K> {
    /// A queue whose keys `tally` counts.
    pub(crate) fn new(clock: Arc<dyn Clock>, backoff: Backoff, tally: Arc<QueueTally>) -> WorkQueue<K> {
        let state = State {
            ready: VecDeque::new(),
            waiting: HashMap::new(),
            running: HashSet::new(),
            again: HashSet::new(),
            later: BTreeSet::new(),
            due: HashMap::new(),
            failures: HashMap::new(),
        };
        WorkQueue { state: Mutex::new(state), news: Notify::new(), clock, backoff, tally }
    }

    /// Lets a worker have this key as soon as one is free.
    pub(crate) fn add(&self, key: K) {
        self.put(&mut self.state(), key);
        self.news.notify_one();
    }

    /// Lets a worker have this key when so much time has passed, or earlier if it was to come earlier.
    pub(crate) fn add_after(&self, key: K, pause: Duration) {
        let due = self.clock.uptime().saturating_add(pause);
        self.state().add_at(key, due);
        self.news.notify_one();
    }

    /// Works on keys for ever, one after the other.
    pub(crate) async fn work<F: Future<Output = Outcome>>(&self, act: impl Fn(K) -> F) {
        loop {
            let turn = self.next().await;
            let outcome = act(turn.key.clone()).await;
            turn.end(outcome);
        }
    }

    async fn next(&self) -> Turn<'_, K> {
        loop {
            // Asked for before the state is looked at, so that what is added after that look wakes this worker.
            let news = self.news.notified();
            let earliest = {
                let mut state = self.state();
                let now = self.clock.uptime();
                for key in state.take_due(now) {
                    self.put(&mut state, key);
                }
                if let Some(key) = state.ready.pop_front() {
                    let since = state.waiting.remove(&key).unwrap_or(now);
                    self.tally.begun(now, now.saturating_sub(since));
                    state.running.insert(key.clone());
                    if !state.ready.is_empty() {
                        self.news.notify_one();
                    }
                    return Turn { queue: self, key, begun: now };
                }
                state.later.first().map(|(due, _)| *due)
            };
            match earliest {
                None => news.await,
                Some(due) => {
                    tokio::select! {
                        () = news => {}
                        () = self.clock.sleep_until(due) => {}
                    }
                }
            }
        }
    }

    /// Puts a key among those that are ready, unless it is there, or is worked on and has to come again.
    fn put(&self, state: &mut State<K>, key: K) {
        if state.add(key, self.clock.uptime()) {
            self.tally.added();
        }
    }

    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().expect("no holder of the queue panics")
    }
}

impl<K: Clone + Eq + Hash + Ord> State<K> {
    /// Answers whether it is ready now and was not before.
    fn add(&mut self, key: K, now: Duration) -> bool {
        if let Some(due) = self.due.remove(&key) {
            self.later.remove(&(due, key.clone()));
        }
        if self.running.contains(&key) {
            self.again.insert(key);
            return false;
        }
        if self.waiting.contains_key(&key) {
            return false;
        }
        self.waiting.insert(key.clone(), now);
        self.ready.push_back(key);
        true
    }

    fn add_at(&mut self, key: K, due: Duration) {
        if self.waiting.contains_key(&key) || self.again.contains(&key) {
            return;
        }
        match self.due.get(&key) {
            Some(earlier) if *earlier <= due => return,
            Some(later) => {
                let later = *later;
                self.later.remove(&(later, key.clone()));
            }
            None => {}
        }
        self.due.insert(key.clone(), due);
        self.later.insert((due, key));
    }

    fn take_due(&mut self, now: Duration) -> Vec<K> {
        let mut come = Vec::new();
        while self.later.first().is_some_and(|(due, _)| *due <= now) {
            if let Some((_, key)) = self.later.pop_first() {
                self.due.remove(&key);
                come.push(key);
            }
        }
        come
    }
}

impl<K: Clone + Eq + Hash + Ord> Turn<'_, K> {
    fn end(self, outcome: Outcome) {
        let mut state = self.queue.state();
        let pause = match outcome {
            Outcome::Done => {
                state.failures.remove(&self.key);
                return;
            }
            Outcome::Retry => Duration::ZERO,
            Outcome::RetryAfter(pause) => pause,
        };
        let failures = state.failures.entry(self.key.clone()).or_default();
        *failures = failures.saturating_add(1);
        let pause = self.queue.backoff.after(*failures).max(pause.min(self.queue.backoff.longest));
        drop(state);
        self.queue.tally.retried();
        self.queue.add_after(self.key.clone(), pause);
    }
}

impl<K: Clone + Eq + Hash + Ord> Drop for Turn<'_, K> {
    fn drop(&mut self) {
        self.queue.tally.ended(self.begun);
        let mut state = self.queue.state();
        state.running.remove(&self.key);
        if state.again.remove(&self.key) {
            self.queue.put(&mut state, self.key.clone());
            self.queue.news.notify_one();
        }
    }
}

#[cfg(test)]
mod tests;
