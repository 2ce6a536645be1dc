//! [`Cache`]: the resources of one store that are held in memory, and waiting for the store to get somewhere.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use revisor_store::{Page, Progress, Store, StoreError, WatchGuard};
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

/// Derived state over a store (C1). It ends, with all that is watched, when it is dropped.
pub struct Cache {
    store: Arc<dyn Store>,
    options: CacheOptions,
    progress: Progress,
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
    /// A cache without resources over `store`, and its dispatcher.
    ///
    /// # Panics
    /// If there is no tokio runtime to spawn the dispatcher on.
    pub fn start(store: Arc<dyn Store>, options: CacheOptions) -> Arc<Cache> {
        let inbox = Arc::new(Inbox::default());
        tokio::spawn(dispatcher::run(inbox.clone()));
        let progress = store.progress();
        let budget = Arc::new(Budget::new(options.window_bytes));
        Arc::new(Cache { store, options, progress, inbox, budget, resources: Mutex::default() })
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

    /// How far the store has delivered: a read sees at least the state at this revision.
    pub fn revision(&self) -> Option<Revision> {
        *self.progress.borrow()
    }

    /// Waits until a read would see the state at `revision` or a later one, but not longer than `patience`.
    pub async fn wait_for(&self, revision: Revision, patience: Duration) -> Result<(), NotReached> {
        if self.revision() >= Some(revision) {
            return Ok(());
        }
        self.store.hasten(revision);
        let mut progress = self.progress.clone();
        let reached = progress.wait_for(|current| *current >= Some(revision));
        match tokio::time::timeout(patience, reached).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(NotReached { asked: revision, current: self.revision() }),
        }
    }

    /// Asks the store for its newest revision and waits until it is delivered: a read after this one sees every write
    /// that was answered before it, whoever wrote.
    pub async fn freshen(&self) -> Result<Option<Revision>, StoreError> {
        let current = self.store.current_revision().await?;
        if self.revision() < current {
            let mut progress = self.progress.clone();
            progress.wait_for(|reached| *reached >= current).await.map_err(|_| StoreError::Closed)?;
        }
        Ok(current)
    }

    /// How many bytes of memory recent events take.
    pub fn window_bytes(&self) -> usize {
        self.budget.used()
    }

    /// The store that this is a cache of.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
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
        let listing = self.store.list(prefix, Page::default()).await?;
        let resource = ResourceCache::new(
            Layout { prefix: prefix.into(), namespaced },
            classify,
            listing.entries.into_iter().map(Item::new),
            listing.revision,
            &self.options,
            Surroundings {
                store: Arc::downgrade(&self.store),
                progress: self.progress.clone(),
                inbox: self.inbox.clone(),
                budget: self.budget.clone(),
            },
        );
        let guard = self.store.watch(prefix, listing.revision, resource.clone()).await?;
        // Later ones are told to the resource as they come.
        resource.forget(self.store.oldest_revision(prefix));
        Ok(Subscription { resource, _guard: guard })
    }
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
        f.debug_struct("Cache").field("revision", &self.revision()).finish_non_exhaustive()
    }
}
