//! [`Queue`]: what the dispatcher has for one watcher. Bounded, and pushing to it never waits (W2).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;

use revisor_version::Revision;

use crate::{Delivery, EventKind};

/// How many bytes of objects may wait for one watcher, the first event apart. The window forgets large objects early;
/// a watcher that does not read must not keep them alive.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// One event for one watcher.
pub(crate) type Queued = (EventKind, Arc<Delivery>);

/// Between the dispatcher, which pushes, and one watcher, which takes all there is at once.
pub(crate) struct Queue {
    inner: Mutex<Inner>,
    capacity: usize,
}

struct Inner {
    events: VecDeque<Queued>,
    /// Of the objects of `events`.
    bytes: usize,
    waker: Option<Waker>,
    gate: Gate,
}

enum Gate {
    Open,
    /// An event did not fit. Those up to this revision were pushed or are not for this watcher.
    Overrun(Option<Revision>),
    Closed,
}

/// What the watcher found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// At least one event.
    Events,
    /// Nothing; the waker will be woken when there is.
    Nothing,
    /// All that was pushed was taken, and it was not everything: go on by yourself after this revision.
    Overrun(Option<Revision>),
    /// There was and will be nothing more.
    Closed,
}

impl Queue {
    /// An empty queue for at most `capacity` events.
    pub(crate) fn new(capacity: usize) -> Queue {
        let inner = Inner { events: VecDeque::new(), bytes: 0, waker: None, gate: Gate::Open };
        Queue { inner: Mutex::new(inner), capacity: capacity.max(1) }
    }

    /// Adds an event and says who is to be woken. If it does not fit, the queue is overrun: false, and no event may be
    /// pushed until the watcher has noticed.
    pub(crate) fn push(&self, event: Queued) -> (bool, Option<Waker>) {
        let mut inner = self.lock();
        let bytes = inner.bytes + weight(&event.1);
        let has_room = inner.events.len() < self.capacity && (bytes <= MAX_BYTES || inner.events.is_empty());
        let fits = has_room && matches!(inner.gate, Gate::Open);
        if fits {
            inner.bytes = bytes;
            inner.events.push_back(event);
        } else {
            inner.overrun(event.1.revision().previous());
        }
        (fits, inner.waker.take())
    }

    /// Tells the watcher to go on by itself after `revision`.
    pub(crate) fn overrun(&self, revision: Option<Revision>) -> Option<Waker> {
        let mut inner = self.lock();
        inner.overrun(revision);
        inner.waker.take()
    }

    /// Ends the queue once it was emptied.
    pub(crate) fn close(&self) -> Option<Waker> {
        let mut inner = self.lock();
        inner.gate = Gate::Closed;
        inner.waker.take()
    }

    /// Moves all events to `events`, which must be empty: one lock for all of them.
    pub(crate) fn take(&self, events: &mut VecDeque<Queued>, waker: &Waker) -> Taken {
        debug_assert!(events.is_empty(), "events that were taken come before those that are taken now");
        let mut inner = self.lock();
        if !inner.events.is_empty() {
            std::mem::swap(&mut inner.events, events);
            inner.bytes = 0;
            return Taken::Events;
        }
        match inner.gate {
            Gate::Open => {
                match &mut inner.waker {
                    Some(old) => old.clone_from(waker),
                    none => *none = Some(waker.clone()),
                }
                Taken::Nothing
            }
            Gate::Overrun(revision) => {
                inner.gate = Gate::Open;
                Taken::Overrun(revision)
            }
            Gate::Closed => Taken::Closed,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect("no holder of a queue panics")
    }
}

/// How many bytes of objects an event keeps alive.
fn weight(delivery: &Delivery) -> usize {
    [delivery.old(), delivery.new()].into_iter().flatten().map(|item| item.bytes().len()).sum()
}

impl Inner {
    fn overrun(&mut self, revision: Option<Revision>) {
        // The first event that was left out decides where to go on.
        if matches!(self.gate, Gate::Open) {
            self.gate = Gate::Overrun(revision);
        }
    }
}

#[cfg(test)]
mod tests {
    use revisor_store::{Draft, Entry, Key};

    use super::*;
    use crate::Item;
    use crate::delivery::Change;

    fn event(number: u64) -> Queued {
        event_of(number, b"x".to_vec())
    }

    fn event_of(number: u64, bytes: Vec<u8>) -> Queued {
        let revision = Revision::new(number).expect("not zero");
        let entry = Entry::new(Key::new("/a"), revision, &Draft::opaque(bytes));
        (EventKind::Added, Change::new(revision, None, Some(Item::new(Arc::new(entry)))).delivery())
    }

    fn take(queue: &Queue) -> (Taken, Vec<u64>) {
        let mut events = VecDeque::new();
        let taken = queue.take(&mut events, Waker::noop());
        (taken, events.iter().map(|(_, delivery)| delivery.revision().get()).collect())
    }

    #[test]
    fn large_objects_fill_a_queue_before_it_is_full() {
        let queue = Queue::new(1000);
        assert!(queue.push(event_of(1, vec![b'x'; 2 * MAX_BYTES])).0, "one event always fits");
        assert!(!queue.push(event_of(2, vec![b'x'])).0);
        assert_eq!(take(&queue), (Taken::Events, vec![1]));
        assert_eq!(take(&queue), (Taken::Overrun(Revision::new(1)), vec![]));
        assert!(queue.push(event_of(2, vec![b'x'])).0, "what was taken weighs nothing");
    }

    #[test]
    fn events_come_out_in_order_and_all_at_once() {
        let queue = Queue::new(3);
        assert!(queue.push(event(1)).0);
        assert!(queue.push(event(2)).0);
        assert_eq!(take(&queue), (Taken::Events, vec![1, 2]));
        assert_eq!(take(&queue), (Taken::Nothing, vec![]));
        assert!(queue.push(event(3)).1.is_some(), "who found nothing is woken");
        assert!(queue.push(event(4)).1.is_none(), "and once is enough");
    }

    #[test]
    fn what_does_not_fit_is_noticed_after_what_did() {
        let queue = Queue::new(1);
        assert!(queue.push(event(4)).0);
        assert!(!queue.push(event(7)).0);
        assert!(!queue.push(event(8)).0, "nothing is pushed behind a gap");
        assert_eq!(take(&queue), (Taken::Events, vec![4]));
        assert!(!queue.push(event(9)).0, "also not when there is room again");
        assert_eq!(take(&queue), (Taken::Overrun(Revision::new(6)), vec![]));
        assert!(queue.push(event(10)).0);
    }

    #[test]
    fn a_closed_queue_is_emptied_first() {
        let queue = Queue::new(2);
        assert!(queue.push(event(1)).0);
        assert!(queue.close().is_none());
        assert_eq!(take(&queue), (Taken::Events, vec![1]));
        assert_eq!(take(&queue), (Taken::Closed, vec![]));
    }
}
