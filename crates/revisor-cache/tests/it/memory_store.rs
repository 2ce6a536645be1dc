//! [`MemoryStore`]: a store without a disk, so that a test decides when it compacts, closes or lets go of history.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use revisor_store::{
    BoxFuture, Change, Committed, Draft, Entry, Event, EventPage, Expect, Key, Listing, News, Page, Progress, Sink,
    Store, StoreError, WatchGuard, Write,
};
use revisor_version::Revision;
use tokio::sync::watch;

/// Keeps the whole log and pretends to have forgotten what was compacted.
pub(crate) struct MemoryStore {
    inner: Arc<Mutex<Inner>>,
    progress: watch::Sender<Option<Revision>>,
}

#[derive(Default)]
struct Inner {
    newest: BTreeMap<Key, Arc<Entry>>,
    log: Vec<Event>,
    oldest: Option<Revision>,
    sinks: Vec<Subscriber>,
    watches: u64,
    write_after_list: Option<(Key, Revision)>,
}

struct Subscriber {
    id: u64,
    prefix: String,
    sink: Arc<dyn Sink>,
}

impl MemoryStore {
    pub(crate) fn new() -> Arc<MemoryStore> {
        Arc::new(MemoryStore { inner: Arc::default(), progress: watch::Sender::new(None) })
    }

    /// Everything that was ever written.
    pub(crate) fn log(&self) -> Vec<Event> {
        self.lock().log.clone()
    }

    /// How many sinks are fed.
    pub(crate) fn sink_count(&self) -> usize {
        self.lock().sinks.len()
    }

    /// Writes to `key` and compacts to `revision` right after the next listing, as others and retention might.
    pub(crate) fn write_and_compact_after_next_list(&self, key: Key, revision: Revision) {
        self.lock().write_after_list = Some((key, revision));
    }

    /// Performs writes that need no precondition, delivered as one batch.
    pub(crate) fn write_all(&self, writes: impl IntoIterator<Item = (Key, Change)>) -> Option<Revision> {
        let mut inner = self.lock();
        let events: Vec<Event> = writes.into_iter().map(|(key, change)| inner.commit(key, change)).collect();
        inner.publish(&events);
        let newest = inner.revision();
        self.progress.send_replace(newest);
        newest
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().expect("no holder panics")
    }
}

impl Inner {
    fn revision(&self) -> Option<Revision> {
        self.log.last().map(|event| event.revision)
    }

    fn commit(&mut self, key: Key, change: Change) -> Event {
        let revision = self.revision().map_or(Revision::FIRST, Revision::next);
        let old = self.newest.remove(&key);
        let new = change.draft().map(|draft| Arc::new(Entry::new(key.clone(), revision, draft)));
        if let Some(entry) = &new {
            self.newest.insert(key, entry.clone());
        }
        let event = Event { revision, time: SystemTime::now(), old, new };
        self.log.push(event.clone());
        event
    }

    fn publish(&self, events: &[Event]) {
        for Subscriber { prefix, sink, .. } in &self.sinks {
            let own: Vec<Event> =
                events.iter().filter(|event| event.key().as_str().starts_with(prefix)).cloned().collect();
            if !own.is_empty() {
                sink.deliver(News::Events(&own));
            }
        }
    }

    fn check(&self, asked: Option<Revision>) -> Result<(), StoreError> {
        match (asked, self.oldest) {
            (Some(asked), _) if Some(asked) > self.revision() => {
                Err(StoreError::Future { asked, newest: self.revision() })
            }
            (asked, Some(oldest)) if asked < Some(oldest) => {
                Err(StoreError::Compacted { asked: asked.unwrap_or(Revision::FIRST), oldest })
            }
            _ => Ok(()),
        }
    }

    fn compact(&mut self, revision: Revision) {
        if self.oldest < Some(revision) {
            self.oldest = Some(revision);
            for subscriber in &self.sinks {
                subscriber.sink.deliver(News::Compacted(revision));
            }
        }
    }
}

/// The state of a store after these events.
pub(crate) fn replay<'a>(events: impl IntoIterator<Item = &'a Event>) -> BTreeMap<Key, Arc<Entry>> {
    let mut state = BTreeMap::new();
    for event in events {
        match &event.new {
            Some(entry) => state.insert(event.key().clone(), entry.clone()),
            None => state.remove(event.key()),
        };
    }
    state
}

impl Store for MemoryStore {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Arc<Entry>>, StoreError>> {
        let found = self.lock().newest.get(key).cloned();
        Box::pin(async move { Ok(found) })
    }

    fn list<'a>(&'a self, prefix: &'a str, page: Page) -> BoxFuture<'a, Result<Listing, StoreError>> {
        let mut inner = self.lock();
        let listing = match (page.at.map(|at| inner.check(Some(at))), page.at) {
            (Some(Err(error)), _) => Err(error),
            (_, at) => {
                let revision = at.or(inner.revision());
                let state = replay(inner.log.iter().filter(|event| Some(event.revision) <= revision));
                let entries = state.into_values().filter(|entry| {
                    entry.key().as_str().starts_with(prefix) && Some(entry.key()) > page.after.as_ref()
                });
                let mut entries: Vec<_> = entries.collect();
                let remaining = page.limit.map_or(0, |limit| entries.len().saturating_sub(limit));
                entries.truncate(page.limit.unwrap_or(usize::MAX));
                Ok(Listing { entries, revision, remaining })
            }
        };
        if let Some((key, revision)) = inner.write_after_list.take() {
            let event = inner.commit(key, Change::Put(Draft::opaque(&b"text"[..])));
            inner.publish(std::slice::from_ref(&event));
            self.progress.send_replace(Some(event.revision));
            inner.compact(revision);
        }
        Box::pin(async move { listing })
    }

    fn write(&self, write: Write) -> BoxFuture<'_, Result<Committed, StoreError>> {
        let mut inner = self.lock();
        let current = inner.newest.get(&write.key).cloned();
        let holds = match write.expect {
            Expect::Absent => current.is_none(),
            Expect::At(revision) => current.as_ref().is_some_and(|entry| entry.revision() == revision),
            Expect::Anything => current.is_some() || !write.change.needs_entry(),
        };
        let outcome = if holds {
            let event = inner.commit(write.key, write.change);
            inner.publish(std::slice::from_ref(&event));
            self.progress.send_replace(Some(event.revision));
            Ok(event)
        } else {
            Err(StoreError::Conflict { key: write.key, current })
        };
        Box::pin(async move { outcome })
    }

    fn watch<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<Revision>,
        sink: Arc<dyn Sink>,
    ) -> BoxFuture<'a, Result<WatchGuard, StoreError>> {
        let mut inner = self.lock();
        let outcome = inner.check(after).map(|()| {
            let past: Vec<Event> = inner.log.iter().filter(|event| Some(event.revision) > after).cloned().collect();
            let id = inner.watches;
            inner.watches += 1;
            let others = std::mem::replace(&mut inner.sinks, vec![Subscriber { id, prefix: prefix.to_owned(), sink }]);
            inner.publish(&past);
            inner.sinks.extend(others);
            let shared = self.inner.clone();
            WatchGuard::new(move || {
                shared.lock().expect("no holder panics").sinks.retain(|subscriber| subscriber.id != id);
            })
        });
        Box::pin(async move { outcome })
    }

    fn events<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<Revision>,
        limit: usize,
    ) -> BoxFuture<'a, Result<EventPage, StoreError>> {
        let inner = self.lock();
        let page = inner.check(after).map(|()| {
            let own = |event: &&Event| event.key().as_str().starts_with(prefix) && Some(event.revision) > after;
            let events: Vec<Event> = inner.log.iter().filter(own).take(limit).cloned().collect();
            let cut = events.last().filter(|_| events.len() == limit).map(|event| event.revision);
            EventPage { events, through: cut.or(inner.revision()) }
        });
        Box::pin(async move { page })
    }

    fn current_revision(&self) -> BoxFuture<'_, Result<Option<Revision>, StoreError>> {
        let revision = self.lock().revision();
        Box::pin(async move { Ok(revision) })
    }

    fn oldest_revision(&self, _prefix: &str) -> Option<Revision> {
        self.lock().oldest
    }

    fn progress(&self) -> Progress {
        self.progress.subscribe()
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StoreError>> {
        self.lock().compact(revision);
        Box::pin(async { Ok(()) })
    }

    fn failure(&self) -> Option<StoreError> {
        None
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        for subscriber in std::mem::take(&mut self.lock().sinks) {
            subscriber.sink.deliver(News::Ended(StoreError::Closed));
        }
        Box::pin(async {})
    }
}
