//! [`Cache`]: the resources of a server's stores that are held in memory.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use futures_util::future::try_join_all;
use revisor_store::{Committed, Entry, Page, Progress, Store, StoreError, Stores, WatchGuard, Write};
use revisor_version::Revision;
use tokio::sync::OnceCell;

use crate::budget::Budget;
use crate::dispatcher::{self, Inbox};
use crate::layout::Layout;
use crate::resource::Surroundings;
use crate::{Classify, Item, ResourceCache};

/// How often a resource is listed anew when the store compacts between the list and the watch.
const ATTEMPTS: usize = 16;

/// The bounds of a cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheOptions {
    /// How many events may wait for one watcher before it has to catch up from the window.
    pub watcher_queue: usize,
    /// After how many events of a resource its state is kept: the longest replay that a read of the past costs.
    pub snapshot_every: usize,
    /// How many bytes of memory recent events may take, of all resources together. Older ones are read from the store.
    pub window_bytes: usize,
}

impl Default for CacheOptions {
    fn default() -> CacheOptions {
        CacheOptions { watcher_queue: 1024, snapshot_every: 256, window_bytes: 32 << 20 }
    }
}

/// The store has not reached a revision in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("revision {asked} was not reached, the newest is {}", current.map_or(0, Revision::get))]
pub struct NotReached {
    /// The revision that was waited for.
    pub asked: Revision,
    /// The revision that was reached instead.
    pub current: Option<Revision>,
}

/// Derived state over stores (C1). It ends, with all that is watched, when it is dropped.
pub struct Cache {
    stores: Stores,
    options: CacheOptions,
    inbox: Arc<Inbox>,
    budget: Arc<Budget>,
    /// A cell is filled once however many add the same resource at the same time.
    resources: Mutex<HashMap<Box<str>, Arc<OnceCell<Subscription>>>>,
}

/// A resource that the store feeds. To drop it ends the resource.
struct Subscription {
    resource: Arc<ResourceCache>,
    _guard: WatchGuard,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.resource.end();
    }
}

impl Cache {
    /// A cache without resources over `stores`, and its dispatcher.
    ///
    /// # Panics
    /// If there is no tokio runtime to spawn the dispatcher on.
    pub fn start(stores: impl Into<Stores>, options: CacheOptions) -> Arc<Cache> {
        let inbox = Arc::new(Inbox::default());
        tokio::spawn(dispatcher::run(inbox.clone()));
        let budget = Arc::new(Budget::new(options.window_bytes));
        Arc::new(Cache { stores: stores.into(), options, inbox, budget, resources: Mutex::default() })
    }

    /// The resource with this key prefix, read from the store if it is not there yet.
    pub async fn add(self: &Arc<Self>, prefix: &str, namespaced: bool) -> Result<Arc<ResourceCache>, StoreError> {
        self.add_with(prefix, namespaced, None).await
    }

    /// The same, whose objects are counted by their classes ([`ResourceCache::counts`]). A resource that is there
    /// already stays as it is.
    pub async fn add_tallied(
        self: &Arc<Self>,
        prefix: &str,
        namespaced: bool,
        classify: Classify,
    ) -> Result<Arc<ResourceCache>, StoreError> {
        self.add_with(prefix, namespaced, Some(classify)).await
    }

    async fn add_with(
        self: &Arc<Self>,
        prefix: &str,
        namespaced: bool,
        classify: Option<Classify>,
    ) -> Result<Arc<ResourceCache>, StoreError> {
        let cell = self.resources().entry(prefix.into()).or_default().clone();
        match cell.get_or_try_init(|| self.subscribe(prefix, namespaced, classify)).await {
            Ok(subscription) => Ok(subscription.resource.clone()),
            Err(error) => {
                let mut resources = self.resources();
                let is_unused = |cell: &Arc<OnceCell<_>>| !cell.initialized() && Arc::strong_count(cell) <= 2;
                if resources.get(prefix).is_some_and(|held| Arc::ptr_eq(held, &cell) && is_unused(held)) {
                    resources.remove(prefix);
                }
                Err(error)
            }
        }
    }

    /// Forgets the resource with this key prefix. Those who watch it get what was already delivered and then end.
    pub fn remove(&self, prefix: &str) {
        let removed = self.resources().remove(prefix);
        // Dropped here, where the lock is free: it calls into the store.
        drop(removed);
    }

    /// Asks every store for its newest revision and waits until it is delivered: a read after this one, of whichever
    /// resource, sees every write that was answered before it, whoever wrote. Who reads one resource only asks
    /// [its own](ResourceCache::freshen).
    pub async fn freshen(&self) -> Result<(), StoreError> {
        let asked = self.stores.all().map(|store| freshen(&**store, store.progress()));
        try_join_all(asked).await.map(drop)
    }

    /// Writes to the store that has the key.
    pub async fn write(&self, write: Write) -> Result<Committed, StoreError> {
        self.store_of(write.key.as_str()).write(write).await
    }

    /// Whether what is stored of this entry should be written anew ([`Store::is_stale`]).
    pub async fn is_stale(&self, entry: &Entry) -> Result<bool, StoreError> {
        self.store_of(entry.key().as_str()).is_stale(entry).await
    }

    /// How many bytes of memory recent events take.
    pub fn window_bytes(&self) -> usize {
        self.budget.used()
    }

    /// The store that has a key, or all keys that begin so.
    pub fn store_of(&self, key: &str) -> &Arc<dyn Store> {
        self.stores.of(key)
    }

    fn resources(&self) -> MutexGuard<'_, HashMap<Box<str>, Arc<OnceCell<Subscription>>>> {
        self.resources.lock().expect("no holder of the resources panics")
    }

    /// Reads the newest state and follows the store from there.
    async fn subscribe(
        &self,
        prefix: &str,
        namespaced: bool,
        classify: Option<Classify>,
    ) -> Result<Subscription, StoreError> {
        let mut attempt = 1;
        loop {
            match self.subscribe_once(prefix, namespaced, classify).await {
                // So much was written in the meantime that the store has forgotten where the list was.
                Err(StoreError::Compacted { .. }) if attempt < ATTEMPTS => attempt += 1,
                outcome => return outcome,
            }
        }
    }

    async fn subscribe_once(
        &self,
        prefix: &str,
        namespaced: bool,
        classify: Option<Classify>,
    ) -> Result<Subscription, StoreError> {
        let store = self.store_of(prefix);
        let listing = store.list(prefix, Page::default()).await?;
        let resource = ResourceCache::new(
            Layout { prefix: prefix.into(), namespaced },
            classify,
            listing.entries.into_iter().map(Item::new),
            listing.revision,
            &self.options,
            Surroundings {
                store: Arc::downgrade(store),
                progress: store.progress(),
                inbox: self.inbox.clone(),
                budget: self.budget.clone(),
            },
        );
        let guard = store.watch(prefix, listing.revision, resource.clone()).await?;
        // Later ones are told to the resource as they come.
        resource.forget(store.oldest_revision(prefix));
        Ok(Subscription { resource, _guard: guard })
    }
}

/// Waits until everything is delivered that a store has now. Answers how far that is.
pub(crate) async fn freshen(store: &dyn Store, mut progress: Progress) -> Result<Option<Revision>, StoreError> {
    let current = store.current_revision().await?;
    if *progress.borrow() < current {
        progress.wait_for(|reached| *reached >= current).await.map_err(|_| StoreError::Closed)?;
    }
    Ok(current)
}

impl Drop for Cache {
    fn drop(&mut self) {
        // First the resources, so that the dispatcher still ends their watchers before it ends itself.
        self.resources().clear();
        self.inbox.close();
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("resources", &self.resources().len()).finish_non_exhaustive()
    }
}
