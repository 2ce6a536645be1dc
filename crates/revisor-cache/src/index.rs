//! [`Index`]: who watches what, so that an event costs what its receivers cost and not what all watchers cost.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;

use revisor_store::Key;
use revisor_version::Revision;

use crate::delivery::Change;
use crate::layout::Layout;
use crate::pace::Pace;
use crate::queue::Queue;
use crate::trigger::Triggered;
use crate::{Delivery, EventKind, Filter, Scope};

/// The dispatcher's side of one watcher.
pub(crate) struct Seat {
    pub(crate) scope: Scope,
    pub(crate) filter: Option<Filter>,
    pub(crate) queue: Queue,
    /// Where in its row the seat is, so that to leave costs the same however many sit there. Under the index's lock.
    number: AtomicUsize,
}

impl Seat {
    /// A seat that is not taken yet.
    pub(crate) fn new(scope: Scope, filter: Option<Filter>, capacity: usize) -> Arc<Seat> {
        Arc::new(Seat { scope, filter, queue: Queue::new(capacity), number: AtomicUsize::new(0) })
    }
}

/// The watchers of one resource that are fed by the dispatcher.
#[derive(Default)]
pub(crate) struct Index {
    /// Events up to here were offered to all seats. It is in here so that it changes under the same lock: one who
    /// takes a seat knows exactly from which event on they are served.
    pub(crate) cursor: Option<Revision>,
    /// When something is offered, see [`ResourceCache::dispatch`](crate::ResourceCache).
    pub(crate) pace: Pace,
    all: Row,
    /// By what they are triggered. Few, and each is asked about every event.
    triggered: HashMap<&'static str, Triggered>,
    namespaces: HashMap<Box<str>, Row>,
    objects: HashMap<Key, Row>,
}

/// Seats with the same scope.
#[derive(Default)]
pub(crate) struct Row(Vec<Taken>);

struct Taken {
    /// The watcher has seen events up to here by itself.
    after: Option<Revision>,
    seat: Arc<Seat>,
}

/// An event on its way along the rows.
pub(crate) struct Round<'a> {
    pub(crate) change: &'a Arc<Change>,
    /// Made when the first one wants it, then shared.
    delivery: Option<Arc<Delivery>>,
    wakers: &'a mut Vec<Waker>,
    offers: usize,
}

impl Index {
    /// Whether nobody has a seat.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty() && self.triggered.is_empty() && self.namespaces.is_empty() && self.objects.is_empty()
    }

    /// Gives a seat to one who has seen every event up to `after`.
    pub(crate) fn insert(&mut self, seat: &Arc<Seat>, after: Option<Revision>) {
        let row = match &seat.scope {
            Scope::All => &mut self.all,
            Scope::Triggered(trigger) => {
                self.triggered.entry(trigger.name).or_insert_with(|| Triggered::new(trigger)).row(trigger)
            }
            Scope::Namespace(namespace) => self.namespaces.entry(namespace.as_str().into()).or_default(),
            Scope::Object(key) => self.objects.entry(key.clone()).or_default(),
        };
        seat.number.store(row.0.len(), Ordering::Relaxed);
        row.0.push(Taken { after, seat: seat.clone() });
    }

    /// Frees the seat, if it is taken.
    pub(crate) fn remove(&mut self, seat: &Arc<Seat>) {
        match &seat.scope {
            Scope::All => self.all.remove(seat),
            Scope::Triggered(trigger) => {
                if let Some(triggered) = self.triggered.get_mut(trigger.name) {
                    triggered.remove(trigger, seat);
                    if triggered.is_empty() {
                        self.triggered.remove(trigger.name);
                    }
                }
            }
            Scope::Namespace(namespace) => {
                if let Some(row) = self.namespaces.get_mut(namespace.as_str()) {
                    row.remove(seat);
                    if row.is_empty() {
                        self.namespaces.remove(namespace.as_str());
                    }
                }
            }
            Scope::Object(key) => {
                if let Some(row) = self.objects.get_mut(key) {
                    row.remove(seat);
                    if row.is_empty() {
                        self.objects.remove(key);
                    }
                }
            }
        }
    }

    /// Offers `change` to those who may want it and collects who is to be woken. Who has no room loses the seat.
    /// Answers how many were asked.
    pub(crate) fn offer(&mut self, change: &Arc<Change>, layout: &Layout, wakers: &mut Vec<Waker>) -> usize {
        let mut round = Round { change, delivery: None, wakers, offers: 0 };
        self.all.offer(&mut round);
        for triggered in self.triggered.values_mut() {
            triggered.offer(&mut round);
        }
        if self.triggered.values().any(Triggered::is_empty) {
            self.triggered.retain(|_, triggered| !triggered.is_empty());
        }
        let key = change.key();
        if let Some(namespace) = layout.namespace_of(key.as_str())
            && let Some(row) = self.namespaces.get_mut(namespace)
        {
            row.offer(&mut round);
            if row.is_empty() {
                self.namespaces.remove(namespace);
            }
        }
        if let Some(row) = self.objects.get_mut(key) {
            row.offer(&mut round);
            if row.is_empty() {
                self.objects.remove(key);
            }
        }
        self.cursor = Some(change.revision());
        round.offers
    }

    /// Takes all seats away, telling each of its queues something, which may depend on up to where its watcher has seen
    /// all events or has them in the queue.
    pub(crate) fn clear(&mut self, tell: impl Fn(&Queue, Option<Revision>) -> Option<Waker>, wakers: &mut Vec<Waker>) {
        let cursor = self.cursor;
        let triggered = self.triggered.values_mut().flat_map(Triggered::rows);
        let apart = self.namespaces.values_mut().chain(self.objects.values_mut());
        let rows = std::iter::once(&mut self.all).chain(triggered).chain(apart);
        for row in rows {
            wakers.extend(row.0.drain(..).filter_map(|taken| tell(&taken.seat.queue, taken.after.max(cursor))));
        }
        self.triggered.clear();
        self.namespaces.clear();
        self.objects.clear();
    }
}

impl Row {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn offer(&mut self, round: &mut Round<'_>) {
        round.offers += self.0.len();
        let mut number = 0;
        while let Some(taken) = self.0.get(number) {
            if taken.offer(round) {
                number += 1;
            } else {
                self.remove_at(number);
            }
        }
    }

    pub(crate) fn remove(&mut self, seat: &Arc<Seat>) {
        let number = seat.number.load(Ordering::Relaxed);
        if self.0.get(number).is_some_and(|taken| Arc::ptr_eq(&taken.seat, seat)) {
            self.remove_at(number);
        }
    }

    fn remove_at(&mut self, number: usize) {
        self.0.swap_remove(number);
        if let Some(moved) = self.0.get(number) {
            moved.seat.number.store(number, Ordering::Relaxed);
        }
    }
}

impl Taken {
    /// Whether the seat stays taken.
    fn offer(&self, round: &mut Round<'_>) -> bool {
        if Some(round.change.revision()) <= self.after {
            return true;
        }
        let (stays, waker) = match self.kind(round.change) {
            Ok(None) => return true,
            Ok(Some(kind)) => {
                let delivery = round.delivery.get_or_insert_with(|| round.change.delivery());
                self.seat.queue.push((kind, delivery.clone()))
            }
            Err(FilterPanicked) => (false, self.seat.queue.close()),
        };
        round.wakers.extend(waker);
        stays
    }

    /// A filter belongs to one request. If it panics that request ends, not the task that serves all of them.
    fn kind(&self, change: &Change) -> Result<Option<EventKind>, FilterPanicked> {
        let Some(filter) = &self.seat.filter else { return Ok(change.kind(None)) };
        catch_unwind(AssertUnwindSafe(|| change.kind(Some(filter)))).map_err(|_| {
            tracing::error!(key = %change.key(), "the filter of a watch panicked; the watch ends");
            FilterPanicked
        })
    }
}

struct FilterPanicked;

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use revisor_store::{Draft, Entry};

    use super::*;
    use crate::{Item, Trigger, TriggerValue};

    fn at(number: u64) -> Revision {
        Revision::new(number).expect("not zero")
    }

    fn change(number: u64, key: &str) -> Arc<Change> {
        let entry = Entry::new(Key::new(key), at(number), &Draft::opaque(&b"x"[..]));
        Change::new(at(number), None, Some(Item::new(Arc::new(entry))))
    }

    fn layout() -> Layout {
        Layout { prefix: "/r/".into(), namespaced: true }
    }

    fn received(seat: &Seat) -> Vec<u64> {
        let mut events = VecDeque::new();
        seat.queue.take(&mut events, Waker::noop());
        events.iter().map(|(_, delivery)| delivery.revision().get()).collect()
    }

    /// A seat that is taken from the beginning on.
    fn seat(index: &mut Index, scope: Scope) -> Arc<Seat> {
        let seat = Seat::new(scope, None, 8);
        index.insert(&seat, None);
        seat
    }

    #[test]
    fn an_event_is_offered_only_to_those_whose_scope_it_is_in() {
        let mut index = Index::default();
        let all = seat(&mut index, Scope::All);
        let in_a = seat(&mut index, Scope::Namespace("a".into()));
        let in_b = seat(&mut index, Scope::Namespace("b".into()));
        let object = seat(&mut index, Scope::Object(Key::new("/r/a/x")));
        let other = seat(&mut index, Scope::Object(Key::new("/r/a/z")));
        let mut wakers = Vec::new();
        for (number, key, offers) in [(1, "/r/a/x", 3), (2, "/r/a/y", 2), (3, "/r/b/x", 2), (4, "/r/c/x", 1)] {
            assert_eq!(index.offer(&change(number, key), &layout(), &mut wakers), offers, "{key}");
        }
        for (name, seat, want) in [
            ("all", all, vec![1, 2, 3, 4]),
            ("namespace a", in_a, vec![1, 2]),
            ("namespace b", in_b, vec![3]),
            ("object", object, vec![1]),
            ("other object", other, vec![]),
        ] {
            assert_eq!(received(&seat), want, "{name}");
            index.remove(&seat);
        }
        assert!(index.is_empty(), "no row stays behind");
    }

    #[test]
    fn events_go_to_those_who_wait_for_the_value_before_or_behind() {
        let read: TriggerValue = Arc::new(|item| std::str::from_utf8(item.bytes()).expect("a text"));
        let only = |name, value: &str| Scope::Triggered(Trigger { name, value: value.into(), read: read.clone() });
        let mut index = Index::default();
        let filter: Filter = Arc::new(|item| &item.bytes()[..] == b"red");
        let red = Seat::new(only("colour", "red"), Some(filter), 8);
        index.insert(&red, None);
        let blue = seat(&mut index, only("colour", "blue"));
        let other = seat(&mut index, only("shape", "red"));
        let everybody = seat(&mut index, Scope::All);
        let item = |text: &str| {
            let entry = Entry::new(Key::new("/r/a/x"), at(1), &Draft::opaque(text.as_bytes().to_vec()));
            Item::new(Arc::new(entry))
        };
        for (number, old, new, offers) in [
            (1, None, Some("red"), 3),
            (2, Some("red"), Some("red"), 3),
            (3, Some("red"), Some("blue"), 4),
            (4, Some("blue"), Some("green"), 2),
            (5, Some("green"), None, 1),
        ] {
            let change = Change::new(at(number), old.map(item), new.map(item));
            assert_eq!(index.offer(&change, &layout(), &mut Vec::new()), offers, "{old:?} becomes {new:?}");
        }
        for (name, seat, want) in [
            ("red", red, vec![1, 2, 3]),
            ("blue", blue, vec![3, 4]),
            ("of another name", other, vec![1, 2, 3]),
            ("everybody", everybody, vec![1, 2, 3, 4, 5]),
        ] {
            assert_eq!(received(&seat), want, "{name}");
            index.remove(&seat);
        }
        assert!(index.is_empty(), "no row stays behind");
    }

    #[test]
    fn a_value_that_cannot_be_read_keeps_nothing_from_those_who_wait() {
        let read: TriggerValue = Arc::new(|_| panic!("as the test wants"));
        let mut index = Index::default();
        let seat = seat(&mut index, Scope::Triggered(Trigger { name: "colour", value: "red".into(), read }));
        index.offer(&change(1, "/r/a/x"), &layout(), &mut Vec::new());
        assert_eq!(received(&seat), [1]);
    }

    #[test]
    fn who_is_full_loses_the_seat_and_the_others_keep_theirs() {
        let mut index = Index::default();
        let seats: Vec<_> = [1, 8, 1, 8].map(|capacity| Seat::new(Scope::All, None, capacity)).into();
        for seat in &seats {
            index.insert(seat, None);
        }
        let mut wakers = Vec::new();
        let offers: Vec<_> =
            (1..=3).map(|number| index.offer(&change(number, "/r/a/x"), &layout(), &mut wakers)).collect();
        assert_eq!(offers, [4, 4, 2]);
        let got: Vec<_> = seats.iter().map(|seat| received(seat)).collect();
        assert_eq!(got, [vec![1], vec![1, 2, 3], vec![1], vec![1, 2, 3]]);
        for seat in &seats {
            index.remove(seat);
        }
        assert!(index.is_empty(), "seats that moved are found again");
    }

    #[test]
    fn events_that_were_seen_before_taking_the_seat_are_not_repeated() {
        let mut index = Index::default();
        let seat = Seat::new(Scope::All, None, 8);
        index.insert(&seat, Some(at(2)));
        for number in 1..=3 {
            index.offer(&change(number, "/r/a/x"), &layout(), &mut Vec::new());
        }
        assert_eq!(received(&seat), [3]);
    }

    #[test]
    fn a_filter_that_panics_ends_its_own_watch_only() {
        let mut index = Index::default();
        let bad = Seat::new(Scope::All, Some(Arc::new(|_| panic!("as the test wants"))), 8);
        let good = Seat::new(Scope::All, None, 8);
        index.insert(&bad, None);
        index.insert(&good, None);
        assert_eq!(index.offer(&change(1, "/r/a/x"), &layout(), &mut Vec::new()), 2);
        assert_eq!(index.offer(&change(2, "/r/a/x"), &layout(), &mut Vec::new()), 1);
        assert_eq!(received(&good), [1, 2]);
        let taken = bad.queue.take(&mut VecDeque::new(), Waker::noop());
        assert_eq!(taken, crate::queue::Taken::Closed);
    }
}
