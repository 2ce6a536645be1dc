//! [`Seat`]: what a request takes of its level, or waits for, until it is dropped.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use revisor_auth::Attributes;
use revisor_flowcontrol::{Finished, RequestId, WatchKey, WatchTracker};
use revisor_object::FieldSelector;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::level::Level;
use super::{Clock, KindTimings, lock};
use crate::inflight::RequestKind;
use crate::query::Query;

/// The seats of a request. They are given back when this is dropped, or a while later, if others still work on what it
/// did; a request that still waits for them leaves its queue.
#[derive(Debug)]
pub(crate) struct Seat {
    level: Arc<Level>,
    id: RequestId,
    clock: Clock,
    is_watch: bool,
    kind: RequestKind,
    kinds: Arc<KindTimings>,
    /// Whether it was counted among those that are served.
    is_executing: bool,
}

impl Seat {
    pub(super) fn new(
        level: Arc<Level>,
        id: RequestId,
        clock: Clock,
        is_watch: bool,
        kind: RequestKind,
        kinds: Arc<KindTimings>,
    ) -> Seat {
        Seat { level, id, clock, is_watch, kind, kinds, is_executing: false }
    }

    /// It has its seats.
    pub(super) fn begin(&mut self) {
        self.is_executing = true;
        self.kinds.add(self.kind, true, 1.0, self.clock.now());
    }

    /// Waits for its turn; answers whether it came in time.
    pub(super) async fn wait(&self, until: Instant) -> bool {
        let _waiting = Waiting::begin(&self.kinds, self.kind, self.clock);
        let turn = poll_fn(|cx| {
            let mut queues = self.level.lock();
            if queues.set.is_executing(self.id) {
                return Poll::Ready(());
            }
            match &mut queues.set.payload_mut(self.id).waker {
                Some(known) => known.clone_from(cx.waker()),
                none => *none = Some(cx.waker().clone()),
            }
            Poll::Pending
        });
        let in_time = tokio::time::timeout_at(until, turn).await.is_ok();
        // It may have come at the last moment.
        in_time || self.level.lock().set.is_executing(self.id)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let now = self.clock.now();
        if self.is_executing {
            self.kinds.add(self.kind, true, -1.0, now);
        }
        let mut queues = self.level.lock();
        if queues.set.cancel(self.id, now) {
            return;
        }
        let finished = queues.set.finish(self.id, self.is_watch, now);
        queues.wake();
        drop(queues);
        let Finished::Lingers(time) = finished else { return };
        let (level, id, clock) = (Arc::clone(&self.level), self.id, self.clock);
        let release = move || {
            let mut queues = level.lock();
            queues.set.release(id, clock.now());
            queues.wake();
        };
        match Handle::try_current() {
            Ok(runtime) => {
                runtime.spawn(async move {
                    tokio::time::sleep(time).await;
                    release();
                });
            }
            // The server is going away.
            Err(_) => release(),
        }
    }
}

/// A request that waits, as it is counted.
struct Waiting<'a> {
    kinds: &'a KindTimings,
    kind: RequestKind,
    clock: Clock,
}

impl<'a> Waiting<'a> {
    fn begin(kinds: &'a KindTimings, kind: RequestKind, clock: Clock) -> Waiting<'a> {
        kinds.add(kind, false, 1.0, clock.now());
        Waiting { kinds, kind, clock }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.kinds.add(self.kind, false, -1.0, self.clock.now());
    }
}

/// A watch that is counted among those that writes are told to, until this is dropped.
#[derive(Debug)]
pub(crate) struct TrackedWatch {
    watches: Arc<Mutex<WatchTracker>>,
    hash: u64,
}

impl TrackedWatch {
    pub(super) fn begin(
        watches: &Arc<Mutex<WatchTracker>>,
        attributes: &Attributes<'_>,
        query: Option<&str>,
    ) -> Option<TrackedWatch> {
        let target = attributes.resource?;
        // As in the original, watches of the pods of one node are found by an index and cost others nothing.
        if target.resource == "pods" {
            let query = Query::parse(query);
            let selector = query.text("fieldSelector").parse::<FieldSelector>().ok();
            if selector
                .as_ref()
                .and_then(|selector| selector.exact("spec.nodeName"))
                .is_some_and(|node| !node.is_empty())
            {
                return None;
            }
        }
        let (group, resource) = (target.group, target.resource);
        let key = WatchKey { group, resource, namespace: target.namespace, name: target.name };
        let hash = lock(watches).begin(&key);
        Some(TrackedWatch { watches: Arc::clone(watches), hash })
    }
}

impl Drop for TrackedWatch {
    fn drop(&mut self) {
        lock(&self.watches).end(self.hash);
    }
}
