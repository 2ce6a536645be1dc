//! Events are notes, not records: each is deleted when it has not been written for a while.
//!
//! The original leaves this to leases of its store, which know when an event was last written. Here that is learned
//! from the feed; for events that were there before the server started, from the times that they carry themselves.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use revisor_cache::Item;
use revisor_catalog::Resource;
use revisor_registry::{DeleteOptions, Place, Preconditions, Registry, RegistryError};
use revisor_store::Key;
use revisor_version::Revision;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::Clock;
use crate::metadata::{place, text_at};
use revisor_cache::{Feed, News};

/// How many events are deleted at once: so many deletions share one sync of the disk.
const AT_ONCE: usize = 64;

/// Where an event says when it was last written.
const TIMES: [&[&str]; 4] =
    [&["metadata", "creationTimestamp"], &["lastTimestamp"], &["eventTime"], &["series", "lastObservedTime"]];

/// Deletes events that are older than `ttl`, until it is dropped.
pub(crate) async fn run(registry: Arc<Registry>, clock: Arc<dyn Clock>, ttl: Duration) {
    let Some(events) = registry.built_in().resource("", "v1", "events").cloned() else { return };
    let mut feed = Feed::open(&registry.cache_of(&events), None);
    let mut deadlines = Deadlines::new(ttl);
    loop {
        let due = deadlines.earliest();
        tokio::select! {
            biased;
            news = feed.next() => match news {
                Some(news) => deadlines.note(news, &*clock),
                None => return,
            },
            () = clock.sleep_until(due.unwrap_or_default()), if due.is_some() => {
                let due = deadlines.take_due(clock.uptime());
                for late in delete_all(&registry, &events, due).await {
                    deadlines.set(late.0, late.1, clock.uptime().saturating_add(deadlines.slot));
                }
            }
        }
        tokio::task::consume_budget().await;
    }
}

/// When each event is to go. Times are rounded up to slots, so that the events of a busy hour go in some sixty steps
/// and not one by one.
struct Deadlines {
    ttl: Duration,
    slot: Duration,
    order: BTreeSet<(Duration, Key)>,
    events: HashMap<Key, (Duration, Revision)>,
}

impl Deadlines {
    fn new(ttl: Duration) -> Deadlines {
        let slot = (ttl / 60).clamp(Duration::from_secs(1), Duration::from_secs(60));
        Deadlines { ttl, slot, order: BTreeSet::new(), events: HashMap::new() }
    }

    fn note(&mut self, news: News, clock: &dyn Clock) {
        match news {
            News::Present(item) => {
                let due = clock.uptime().saturating_add(self.ttl.saturating_sub(age(&item, clock.now())));
                self.set(item.key().clone(), item.revision(), due);
            }
            News::Changed { new, .. } => {
                self.set(new.key().clone(), new.revision(), clock.uptime().saturating_add(self.ttl));
            }
            News::Gone(item) => self.remove(item.key()),
            // What was deleted unnoticed is not found when its time comes.
            News::Complete { .. } => {}
        }
    }

    fn set(&mut self, key: Key, revision: Revision, due: Duration) {
        self.remove(&key);
        let slots = due.as_nanos().div_ceil(self.slot.as_nanos());
        let due = self.slot.saturating_mul(u32::try_from(slots).unwrap_or(u32::MAX));
        self.order.insert((due, key.clone()));
        self.events.insert(key, (due, revision));
    }

    fn remove(&mut self, key: &Key) {
        if let Some((due, _)) = self.events.remove(key) {
            self.order.remove(&(due, key.clone()));
        }
    }

    fn earliest(&self) -> Option<Duration> {
        self.order.first().map(|(due, _)| *due)
    }

    fn take_due(&mut self, now: Duration) -> Vec<(Key, Revision)> {
        let mut taken = Vec::new();
        while self.earliest().is_some_and(|due| due <= now) {
            let Some((_, key)) = self.order.pop_first() else { break };
            if let Some((_, revision)) = self.events.remove(&key) {
                taken.push((key, revision));
            }
        }
        taken
    }
}

/// How long ago an event was last written, as far as it says. A time in the future counts as now.
fn age(item: &Item, now: OffsetDateTime) -> Duration {
    let times = TIMES.iter().filter_map(|path| OffsetDateTime::parse(&text_at(item.bytes(), path), &Rfc3339).ok());
    times.max().and_then(|written| Duration::try_from(now - written).ok()).unwrap_or_default()
}

/// Deletes events that still are as they were; answers those that have to be tried again.
async fn delete_all(registry: &Registry, events: &Arc<Resource>, due: Vec<(Key, Revision)>) -> Vec<(Key, Revision)> {
    let deletions = stream::iter(due).map(async |(key, revision)| {
        let preconditions = Preconditions { resource_version: Some(revision.to_string()), uid: None };
        let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
        let (namespace, name) = place(events, key.as_str());
        let target = Place { resource: events, namespace, name: Some(name) };
        match registry.delete(target, &options).await {
            // One that was written again is in the feed, with more time to live.
            Ok(_) | Err(RegistryError::NotFound { .. } | RegistryError::Conflict { .. }) => None,
            Err(error) => {
                tracing::warn!(%key, ?error, "cannot delete an event that is too old");
                Some((key, revision))
            }
        }
    });
    deletions.buffer_unordered(AT_ONCE).filter_map(std::future::ready).collect().await
}
