//! [`Level`] and [`Flow`]: what stored priority levels and flow schemas come to while the server runs.

use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;
use std::time::Duration;

use http::{HeaderValue, Method, Uri};
use revisor_auth::Identity;
use revisor_flowcontrol::{
    Distinguisher, FlowSchema, Limits, Moment, PriorityLevel, QueueSet, Queuing, RequestDigest, RetryAfter,
};

use super::{header, lock};

/// The schema that is tried last and takes everybody.
const CATCH_ALL: &str = "catch-all";

/// All flows and levels, as they are until the configuration changes.
#[derive(Debug, Default)]
pub(super) struct Flows {
    /// In the order in which they are tried.
    pub(super) flows: Vec<Flow>,
    pub(super) levels: Vec<Arc<Level>>,
}

/// A flow schema.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) schema: FlowSchema,
    pub(super) uid: HeaderValue,
    pub(super) level: Arc<Level>,
    /// Where its requests are counted.
    pub(super) tally: usize,
}

/// A priority level.
#[derive(Debug)]
pub(super) struct Level {
    pub(super) spec: PriorityLevel,
    pub(super) uid: HeaderValue,
    pub(super) limits: Limits,
    /// How many seats one request may take; zero if it does not say.
    pub(super) max_seats: u64,
    /// Whether it is no more, and only stays for those who wait there.
    pub(super) is_quiescing: bool,
    /// Shared with what it was under other configurations.
    queues: Arc<Mutex<Queues>>,
}

/// The requests of a level.
#[derive(Debug)]
pub(super) struct Queues {
    pub(super) set: QueueSet<Asker>,
    /// The seats that it was to have when levels borrowed last.
    pub(super) target: f64,
    retry_after: RetryAfter,
}

/// What is known of a request. Nothing in it is a copy.
#[derive(Debug)]
pub(super) struct Asker {
    pub(super) user: Identity,
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) distinguisher: Option<Distinguisher>,
    /// Who waits for it.
    pub(super) waker: Option<Waker>,
}

impl Flows {
    /// Where the flow of a request is.
    pub(super) fn flow_of(&self, digest: &RequestDigest<'_>) -> usize {
        let matching = self.flows.iter().position(|flow| flow.schema.matches(digest));
        let catch_all = || self.flows.iter().position(|flow| flow.schema.name == CATCH_ALL);
        matching.or_else(catch_all).expect("the schemas that must be there are always there")
    }
}

impl Level {
    /// A level; `before` is what it was under the last configuration.
    pub(super) fn new(
        spec: PriorityLevel,
        limits: Limits,
        max_seats: u64,
        is_quiescing: bool,
        before: Option<&Arc<Level>>,
        now: Moment,
    ) -> Level {
        let queues = match before {
            Some(level) => Arc::clone(&level.queues),
            None => {
                // Half of what it lends is lent, until it is known what it needs.
                let seats = limits.nominal - (limits.nominal - limits.lower) / 2;
                let set = QueueSet::new(spec.queuing, seats, seats, now);
                Arc::new(Mutex::new(Queues { set, target: 0.0, retry_after: RetryAfter::default() }))
            }
        };
        Level { uid: header(&spec.uid), spec, limits, max_seats, is_quiescing, queues }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Queues> {
        lock(&self.queues)
    }

    /// How many requests may wait.
    pub(super) fn room(&self) -> usize {
        match self.spec.queuing {
            Queuing::Queue { queues, length_limit, .. } => queues * length_limit,
            _ => 0,
        }
    }
}

impl Queues {
    /// Wakes those who have got their seats.
    pub(super) fn wake(&mut self) {
        while let Some(asker) = self.set.woken() {
            if let Some(waker) = asker.waker.take() {
                waker.wake();
            }
        }
    }

    /// A request is refused; after how many seconds it may come back.
    pub(super) fn refuse(&mut self, since_start: Duration) -> u64 {
        // The first second is one, so that none is the second before.
        self.retry_after.refuse(since_start.as_secs() + 1)
    }
}
