//! [`Mirror`]: what etcd holds, as far as its stream of changes has told, and the last of these changes.
//!
//! Bookkeeping without I/O: [`Shared`](crate::shared::Shared) puts it behind a lock, and the follower feeds it.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::time::SystemTime;

use revisor_store::{Entry, Event, Key, Listing, Page};
use revisor_version::Revision;

/// How many of the last changes are remembered, for those who begin to watch and those who wrote them.
const RECENT: usize = 4096;

/// And how many bytes of replaced objects may be held by that.
const RECENT_BYTES: usize = 16 << 20;

/// What is known of an etcd.
#[derive(Default)]
pub(crate) struct Mirror {
    state: BTreeMap<Key, Arc<Entry>>,
    /// Everything up to here is known.
    revision: Option<Revision>,
    recent: VecDeque<Event>,
    recent_bytes: usize,
    /// Every change after this one is among the recent ones.
    recent_from: Option<Revision>,
    /// History before this is gone.
    oldest: Option<Revision>,
}

/// A change as etcd tells it.
#[derive(Debug)]
pub(crate) enum Told {
    /// A key has this now.
    Put(Arc<Entry>),
    /// A key is gone since this revision.
    Deleted(Key, Revision),
}

impl Mirror {
    /// Begins anew with this state.
    pub(crate) fn replace(&mut self, entries: Vec<Arc<Entry>>, revision: Option<Revision>) {
        self.state = entries.into_iter().map(|entry| (entry.key().clone(), entry)).collect();
        self.recent.clear();
        self.recent_bytes = 0;
        (self.recent_from, self.revision) = (revision, revision);
    }

    /// Takes in changes, in order, and answers them as events. What is known already is left out.
    pub(crate) fn apply(&mut self, told: Vec<Told>) -> Vec<Event> {
        let mut events = Vec::with_capacity(told.len());
        let known = self.revision;
        for change in told {
            let (revision, old, new) = match change {
                Told::Put(entry) if Some(entry.revision()) > known => {
                    let old = self.state.insert(entry.key().clone(), entry.clone());
                    (entry.revision(), old, Some(entry))
                }
                // What was never seen, such as a key that was made and deleted while nobody listened, is no news.
                Told::Deleted(key, revision) if Some(revision) > known => match self.state.remove(&key) {
                    Some(old) => (revision, Some(old), None),
                    None => continue,
                },
                Told::Put(_) | Told::Deleted(..) => continue,
            };
            self.revision = self.revision.max(Some(revision));
            let event = Event { revision, time: SystemTime::UNIX_EPOCH, old, new };
            self.remember(event.clone());
            events.push(event);
        }
        events
    }

    /// Notes that everything up to a revision is known. Answers whether that is news.
    pub(crate) fn reach(&mut self, revision: Option<Revision>) -> bool {
        let is_news = self.revision < revision;
        self.revision = self.revision.max(revision);
        is_news
    }

    pub(crate) fn revision(&self) -> Option<Revision> {
        self.revision
    }

    pub(crate) fn oldest(&self) -> Option<Revision> {
        self.oldest
    }

    /// Notes that history before a revision is gone. Answers whether that is news.
    pub(crate) fn forget_before(&mut self, oldest: Option<Revision>) -> bool {
        let is_news = self.oldest < oldest;
        self.oldest = self.oldest.max(oldest);
        is_news
    }

    /// What a key holds.
    pub(crate) fn get(&self, key: &str) -> Option<&Arc<Entry>> {
        self.state.get(key)
    }

    /// All that begins with `prefix`.
    pub(crate) fn entries(&self, prefix: &str) -> Vec<Arc<Entry>> {
        self.range(prefix, None).cloned().collect()
    }

    /// A part of the newest state.
    pub(crate) fn list(&self, prefix: &str, page: &Page) -> Listing {
        let mut found = self.range(prefix, page.after.as_ref());
        let entries: Vec<_> = found.by_ref().take(page.limit.unwrap_or(usize::MAX)).cloned().collect();
        Listing { entries, revision: self.revision, remaining: found.count() }
    }

    /// The changes after `after`, if all of them are remembered.
    pub(crate) fn events_after(&self, after: Option<Revision>) -> Option<impl Iterator<Item = &Event>> {
        let start = self.recent.partition_point(|event| Some(event.revision) <= after);
        (after >= self.recent_from).then(|| self.recent.range(start..))
    }

    /// The change that was made at a revision to a key.
    pub(crate) fn event_at(&self, revision: Revision, key: &Key) -> Option<&Event> {
        let start = self.recent.partition_point(|event| event.revision < revision);
        let at = self.recent.range(start..).take_while(|event| event.revision == revision);
        at.into_iter().find(|event| event.key() == key)
    }

    /// The last change of all, if it is remembered.
    pub(crate) fn last_event(&self) -> Option<&Event> {
        self.recent.back()
    }

    fn range(&self, prefix: &str, after: Option<&Key>) -> impl Iterator<Item = &Arc<Entry>> {
        let start = match after {
            Some(after) if after.as_str() >= prefix => Bound::Excluded(after.as_str()),
            _ => Bound::Included(prefix),
        };
        let found = self.state.range::<str, _>((start, Bound::Unbounded));
        let prefix = prefix.to_owned();
        found.take_while(move |(key, _)| key.as_str().starts_with(&prefix)).map(|(_, entry)| entry)
    }

    fn remember(&mut self, event: Event) {
        self.recent_bytes += held_by(&event);
        self.recent.push_back(event);
        while self.recent.len() > RECENT || self.recent_bytes > RECENT_BYTES {
            let Some(gone) = self.recent.pop_front() else { return };
            self.recent_bytes -= held_by(&gone);
            self.recent_from = Some(gone.revision);
        }
    }
}

/// How many bytes would not be held without an event.
fn held_by(event: &Event) -> usize {
    event.old.as_ref().map_or(0, |old| old.bytes().len())
}

#[cfg(test)]
mod tests {
    use revisor_store::Draft;

    use super::*;

    fn at(number: u64) -> Revision {
        Revision::new(number).expect("not zero")
    }

    fn entry(key: &str, number: u64) -> Arc<Entry> {
        Arc::new(Entry::new(Key::new(key), at(number), &Draft::opaque(vec![b'x'; 100])))
    }

    #[test]
    fn what_is_told_twice_counts_once() {
        let mut mirror = Mirror::default();
        mirror.replace(vec![entry("/a", 5)], Some(at(7)));
        let told = vec![Told::Put(entry("/a", 5)), Told::Deleted(Key::new("/b"), at(8)), Told::Put(entry("/a", 9))];
        let events = mirror.apply(told);
        assert_eq!(events.iter().map(|event| event.revision.get()).collect::<Vec<_>>(), [9]);
        assert_eq!(
            (mirror.revision(), mirror.events_after(Some(at(7))).expect("all are there").count()),
            (Some(at(9)), 1)
        );
        assert!(mirror.events_after(Some(at(6))).is_none(), "nobody knows what was before the beginning");
    }

    #[test]
    fn only_the_last_changes_are_remembered() {
        let mut mirror = Mirror::default();
        for number in 0..RECENT as u64 + 10 {
            mirror.apply(vec![Told::Put(entry("/a", number + 2))]);
        }
        assert!(mirror.events_after(None).is_none());
        assert!(mirror.event_at(at(5), &Key::new("/a")).is_none());
        assert!(mirror.event_at(at(500), &Key::new("/a")).is_some());
        assert!(mirror.event_at(at(500), &Key::new("/b")).is_none());
        assert_eq!(mirror.events_after(Some(at(RECENT as u64))).expect("are there").count(), 11);
    }
}
