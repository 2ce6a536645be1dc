//! The store's contract, held by a store whose reads and watches are answered by the cache.
//!
//! Writes go to an embedded store. What the cache delivers is passed on to sinks by pulling: whoever must not answer
//! before the sinks have heard something pulls until they have.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::SystemTime;

use revisor_cache::{
    Cache, CacheOptions, Expired, Filter, Item, PastError, ResourceCache, Scope, Snapshot, WatchItem, WatchRequest,
    WatchStart, Watcher,
};
use revisor_store::contract::Fixture;
use revisor_store::embedded::{EmbeddedOptions, EmbeddedStore};
use revisor_store::{
    BoxFuture, Committed, Entry, Event, EventPage, Listing, News, Page, Progress, Sink, Store, StoreError, WatchGuard,
    Write,
};
use revisor_version::Revision;
use tempfile::TempDir;

use crate::fixture::{look, soon};

/// With windows that hold all that the cases write.
mod from_memory {
    revisor_store::contract_tests!(super::Folder::new(1 << 20));
}

/// With windows that hold nothing, so that everything of the past is read from the store.
mod from_the_store {
    revisor_store::contract_tests!(super::Folder::new(0));
}

/// The cache does not keep the times of events, so all of them have this one.
const TIME: SystemTime = SystemTime::UNIX_EPOCH;

struct Folder {
    folder: TempDir,
    window_bytes: usize,
}

impl Folder {
    fn new(window_bytes: usize) -> Folder {
        Folder { folder: tempfile::tempdir().expect("a folder for the test"), window_bytes }
    }
}

impl Fixture for Folder {
    fn open(&self) -> BoxFuture<'_, Arc<dyn Store>> {
        Box::pin(async {
            let options = EmbeddedOptions { clock: Arc::new(|| TIME), ..EmbeddedOptions::new(self.folder.path()) };
            let store = EmbeddedStore::open(options).await.expect("the store opens");
            // Small, so that the cases get to the edges.
            let options = CacheOptions { watcher_queue: 4, snapshot_every: 3, window_bytes: self.window_bytes };
            let cache = Cache::start(Arc::new(store), options);
            let all = cache.add("", false).await.expect("the store can be read");
            let store: Arc<dyn Store> = Arc::new(CachedStore { cache, all, feeders: Arc::default() });
            store
        })
    }
}

struct CachedStore {
    cache: Arc<Cache>,
    all: Arc<ResourceCache>,
    feeders: Arc<Mutex<Vec<Arc<Feeder>>>>,
}

/// Passes what a watcher yields on to a sink.
struct Feeder {
    has_ended: AtomicBool,
    feed: tokio::sync::Mutex<Feed>,
}

struct Feed {
    prefix: String,
    watcher: Watcher,
    sink: Arc<dyn Sink>,
    /// A watch begins after a revision. One from the beginning is one after the first, and that one is read.
    wants_first: bool,
}

fn compacted(expired: Expired) -> StoreError {
    StoreError::Compacted { asked: expired.asked, oldest: expired.oldest }
}

fn entry(item: &Arc<Item>) -> Arc<Entry> {
    item.entry().clone()
}

fn list(snapshot: &Snapshot, prefix: &str, page: &Page) -> Listing {
    let mut rest = snapshot.range(prefix, page.after.as_ref().map(|key| key.as_str()));
    let entries: Vec<_> = rest.by_ref().take(page.limit.unwrap_or(usize::MAX)).map(entry).collect();
    Listing { entries, revision: snapshot.revision(), remaining: rest.count() }
}

impl CachedStore {
    /// The newest revision, which is there to be read from the cache.
    async fn check(&self, asked: Option<Revision>) -> Result<Option<Revision>, StoreError> {
        let newest = self.all.freshen().await?;
        match asked {
            Some(asked) if Some(asked) > newest => Err(StoreError::Future { asked, newest }),
            _ => Ok(newest),
        }
    }

    /// A page of the past, from memory or from the store.
    async fn page(&self, at: Revision, prefix: &str, page: Page) -> Result<Listing, StoreError> {
        if let Some(snapshot) = self.all.snapshot_at(at).map_err(compacted)? {
            return Ok(list(&snapshot, prefix, &page));
        }
        let after = page.after.as_ref().map(|key| key.as_str());
        let read = self.all.page_at(at, prefix, after, page.limit).await.map_err(|error| match error {
            PastError::Expired(expired) => compacted(expired),
            PastError::Store(error) => error,
        })?;
        let entries = read.items.iter().map(entry).collect();
        Ok(Listing { entries, revision: Some(at), remaining: read.remaining })
    }

    /// Waits until every sink has heard of the write at `revision`.
    async fn feed_all(&self, revision: Revision) {
        let feeders = self.feeders.lock().expect("no holder panics").clone();
        for feeder in feeders {
            soon(self.feed(&feeder, revision)).await;
        }
    }

    async fn feed(&self, feeder: &Feeder, revision: Revision) {
        let mut feed = feeder.feed.lock().await;
        if feed.wants_first {
            feed.wants_first = false;
            let first = self.page(Revision::FIRST, &feed.prefix, Page::default()).await.expect("history is whole");
            let own = first.entries.into_iter().next();
            if own.is_some() && !feeder.has_ended.load(Ordering::SeqCst) {
                let event = Event { revision: Revision::FIRST, time: TIME, old: None, new: own };
                feed.sink.deliver(News::Events(&[event]));
            }
        }
        while !feeder.has_ended.load(Ordering::SeqCst) {
            match look(&mut feed.watcher).await {
                Poll::Ready(Some(WatchItem::Event(_, delivery))) => {
                    let (old, new) = (delivery.old().map(entry), delivery.new().map(entry));
                    let event = Event { revision: delivery.revision(), time: TIME, old, new };
                    feed.sink.deliver(News::Events(&[event]));
                }
                Poll::Ready(None) => {
                    feeder.has_ended.store(true, Ordering::SeqCst);
                    feed.sink.deliver(News::Ended(StoreError::Closed));
                }
                Poll::Ready(other) => panic!("the watch fell behind: {other:?}"),
                Poll::Pending if feed.watcher.progress() >= Some(revision) => return,
                Poll::Pending => tokio::task::yield_now().await,
            }
        }
    }
}

impl Store for CachedStore {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Arc<Entry>>, StoreError>> {
        Box::pin(async move {
            self.check(None).await?;
            Ok(self.all.get(key).as_ref().map(entry))
        })
    }

    fn list<'a>(&'a self, prefix: &'a str, page: Page) -> BoxFuture<'a, Result<Listing, StoreError>> {
        Box::pin(async move {
            self.check(page.at).await?;
            match page.at {
                Some(at) => self.page(at, prefix, page).await,
                None => Ok(list(&self.all.snapshot(), prefix, &page)),
            }
        })
    }

    fn write(&self, write: Write) -> BoxFuture<'_, Result<Committed, StoreError>> {
        Box::pin(async move {
            let committed = self.cache.write(write).await?;
            self.feed_all(committed.revision).await;
            Ok(committed)
        })
    }

    fn watch<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<Revision>,
        sink: Arc<dyn Sink>,
    ) -> BoxFuture<'a, Result<WatchGuard, StoreError>> {
        Box::pin(async move {
            let newest = self.check(after).await?;
            if let (None, Some(oldest)) = (after, self.oldest_revision("")) {
                return Err(StoreError::Compacted { asked: Revision::FIRST, oldest });
            }
            let own = prefix.to_owned();
            let filter: Filter = Arc::new(move |item| item.key().as_str().starts_with(&own));
            let start = WatchStart::After(after.unwrap_or(Revision::FIRST));
            let request = WatchRequest { scope: Scope::All, filter: Some(filter), start };
            let watcher = self.all.watch(request).map_err(compacted)?;
            let feed = Feed { prefix: prefix.to_owned(), watcher, sink, wants_first: after.is_none() };
            let feeder = Arc::new(Feeder { has_ended: AtomicBool::new(false), feed: tokio::sync::Mutex::new(feed) });
            self.feeders.lock().expect("no holder panics").push(feeder.clone());
            if let Some(newest) = newest {
                soon(self.feed(&feeder, newest)).await;
            }
            let feeders = self.feeders.clone();
            Ok(WatchGuard::new(move || {
                feeder.has_ended.store(true, Ordering::SeqCst);
                feeders.lock().expect("no holder panics").retain(|other| !Arc::ptr_eq(other, &feeder));
            }))
        })
    }

    fn events<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<Revision>,
        limit: usize,
    ) -> BoxFuture<'a, Result<EventPage, StoreError>> {
        // The cache has none of its own: it reads these.
        self.cache.store_of("").events(prefix, after, limit)
    }

    fn current_revision(&self) -> BoxFuture<'_, Result<Option<Revision>, StoreError>> {
        Box::pin(self.all.freshen())
    }

    fn oldest_revision(&self, prefix: &str) -> Option<Revision> {
        self.cache.store_of("").oldest_revision(prefix)
    }

    fn progress(&self) -> Progress {
        self.cache.store_of("").progress()
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            self.cache.store_of("").compact(revision).await?;
            let feeders = self.feeders.lock().expect("no holder panics").clone();
            for feeder in feeders {
                feeder.feed.lock().await.sink.deliver(News::Compacted(revision));
            }
            Ok(())
        })
    }

    fn failure(&self) -> Option<StoreError> {
        self.cache.store_of("").failure()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.cache.store_of("").close().await;
            let feeders = self.feeders.lock().expect("no holder panics").clone();
            for feeder in feeders {
                // There is no such revision: it goes on to the end.
                soon(self.feed(&feeder, Revision::new(u64::MAX).expect("not zero"))).await;
            }
        })
    }
}
