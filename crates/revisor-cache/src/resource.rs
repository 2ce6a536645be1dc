//! [`ResourceCache`]: what the cache holds of one resource, and the [`Sink`] that the store feeds it through.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, Weak};
use std::time::Duration;

use revisor_store::{Entry, News, Progress, Sink, Store, StoreError};
use revisor_version::Revision;
use tokio::time::Instant;

use crate::budget::Budget;
use crate::cache::freshen;
use crate::delivery::Change;
use crate::dispatcher::{Inbox, Scratch, Turn};
use crate::history::{Beyond, Expired, History, Keep, Past};
use crate::index::{Index, Seat};
use crate::layout::Layout;
use crate::queue::Queue;
use crate::revision_cell::RevisionCell;
use crate::snapshot::Table;
use crate::{CacheOptions, Classify, Delivery, Item, NotReached, Scope, Snapshot, WatchRequest, Watcher};

/// How many events the writer thread applies before it lets readers in.
const EVENTS_PER_LOCK: usize = 64;
/// How many events one step of the dispatcher takes, and how many offers to watchers it makes before it stops early:
/// so long does one who comes or goes wait for the index.
const EVENTS_PER_STEP: usize = 64;
const OFFERS_PER_STEP: usize = 4096;
/// How many past states are remembered: the pages of so many lists, read side by side, cost one replay each.
const RECALLED: usize = 8;

/// The objects of one resource, their recent history, and those who watch them.
pub struct ResourceCache {
    layout: Arc<Layout>,
    history: RwLock<History>,
    recalled: Mutex<VecDeque<(Option<Revision>, Table)>>,
    index: Mutex<Index>,
    /// The last event in the history.
    delivered: RevisionCell,
    /// The index's cursor, published when everything up to it was pushed.
    dispatched: RevisionCell,
    /// How much was replaced up to the newest state; snapshots share it.
    replaced: Arc<AtomicU64>,
    watchers: AtomicUsize,
    /// Whether the dispatcher was told that there is something to do.
    dirty: AtomicBool,
    around: Surroundings,
    watcher_queue: usize,
    me: Weak<ResourceCache>,
}

/// What a resource has in common with the others of its cache.
pub(crate) struct Surroundings {
    // Weak, because the store feeds the resource and so holds it.
    pub(crate) store: Weak<dyn Store>,
    pub(crate) progress: Progress,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) budget: Arc<Budget>,
}

/// What became of a watcher that wanted a seat.
pub(crate) enum Joined {
    /// It has one.
    Live,
    /// There are events that it has not seen yet.
    Behind,
    /// There will be no more events.
    Ended,
}

impl ResourceCache {
    /// The cache of a resource whose history begins with `items` at `start`, tallied by `classify` if there is one.
    pub(crate) fn new(
        layout: Layout,
        classify: Option<Classify>,
        items: impl IntoIterator<Item = Arc<Item>>,
        start: Option<Revision>,
        options: &CacheOptions,
        around: Surroundings,
    ) -> Arc<ResourceCache> {
        let layout = Arc::new(layout);
        let mut table = Table::empty(layout.clone());
        for item in items {
            table.put(item);
        }
        let keep = Keep { events: options.snapshot_every.max(1), bytes: around.budget.step() };
        let history = History::new(table, start, keep);
        let history = match classify {
            Some(classify) => history.tallied(classify),
            None => history,
        };
        let resource = Arc::new_cyclic(|me| ResourceCache {
            layout,
            history: RwLock::new(history),
            recalled: Mutex::default(),
            index: Mutex::default(),
            delivered: RevisionCell::new(start),
            dispatched: RevisionCell::new(start),
            replaced: Arc::default(),
            watchers: AtomicUsize::new(0),
            dirty: AtomicBool::new(false),
            around,
            watcher_queue: options.watcher_queue,
            me: me.clone(),
        });
        resource.around.budget.enter(resource.me.clone());
        resource
    }

    /// The newest delivered state of the object at `key`.
    pub fn get(&self, key: &str) -> Option<Arc<Item>> {
        self.history().newest().get(key).cloned()
    }

    /// The newest delivered state.
    ///
    /// Its revision is that of the whole store as far as it was delivered, not only of the last write to this
    /// resource, and never below that of an object in it.
    pub fn snapshot(&self) -> Snapshot {
        // Read before the map: all that this progress speaks of is in the map, but not the other way round.
        let progress = *self.around.progress.borrow();
        let history = self.history();
        self.snapshot_of(history.newest().clone(), progress.max(history.last()))
    }

    /// The state at exactly this revision, which the store must have reached; `None` if that is longer ago than what
    /// is held in memory, so that it has to be read from the store ([`page_at`](ResourceCache::page_at)).
    pub fn snapshot_at(&self, revision: Revision) -> Result<Option<Snapshot>, Expired> {
        let (after, replay) = {
            let history = self.history();
            let after = match history.at(revision)? {
                Past::Ready(table) => return Ok(Some(self.snapshot_of(table, Some(revision)))),
                Past::After(after) => after,
                Past::Stored => return Ok(None),
            };
            if let Some((_, table)) = self.recalled().iter().find(|(recalled, _)| *recalled == after) {
                return Ok(Some(self.snapshot_of(table.clone(), Some(revision))));
            }
            (after, history.replay(after))
        };
        let table = replay.run();
        let mut recalled = self.recalled();
        // Two who replayed the same state at once may both put it here; it is one of few and soon gone again.
        let forgotten = if recalled.len() >= RECALLED { recalled.pop_front() } else { None };
        recalled.push_back((after, table.clone()));
        drop(recalled);
        drop(forgotten);
        Ok(Some(self.snapshot_of(table, Some(revision))))
    }

    /// How far the store of this resource has delivered: a read sees at least the state at this revision.
    pub fn reached(&self) -> Option<Revision> {
        *self.around.progress.borrow()
    }

    /// Waits until a read would see the state at `revision` or a later one, but not longer than `patience`.
    pub async fn wait_for(&self, revision: Revision, patience: Duration) -> Result<(), NotReached> {
        if self.reached() >= Some(revision) {
            return Ok(());
        }
        if let Some(store) = self.store() {
            store.hasten(revision);
        }
        let mut progress = self.around.progress.clone();
        let reached = progress.wait_for(|current| *current >= Some(revision));
        match tokio::time::timeout(patience, reached).await {
            Ok(Ok(_)) => Ok(()),
            _ => Err(NotReached { asked: revision, current: self.reached() }),
        }
    }

    /// Asks the store of this resource for its newest revision and waits until it is delivered: a read after this one
    /// sees every write to the resource that was answered before it, whoever wrote.
    pub async fn freshen(&self) -> Result<Option<Revision>, StoreError> {
        let store = self.store().ok_or(StoreError::Closed)?;
        freshen(&*store, self.around.progress.clone()).await
    }

    /// Starts a watch.
    pub fn watch(self: &Arc<Self>, request: WatchRequest) -> Result<Watcher, Expired> {
        Watcher::new(self.clone(), request)
    }

    /// The last change that was delivered. One who has seen every change up to here has missed nothing.
    pub fn delivered(&self) -> Option<Revision> {
        self.delivered.read()
    }

    /// The next changes after `position`, in order and at most `limit`, for those who follow without waiting. `None` if
    /// some are no longer in memory: then a [`snapshot`](ResourceCache::snapshot) has what they came to.
    pub fn changes_after(&self, position: Option<Revision>, limit: usize) -> Option<Vec<Arc<Delivery>>> {
        let mut found = Vec::new();
        self.read_window(&mut { position }, &Scope::All, limit, &mut found).ok()?;
        Some(found.iter().map(Change::delivery).collect())
    }

    /// How many watch.
    pub fn watcher_count(&self) -> usize {
        self.watchers.load(Ordering::SeqCst)
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.history().newest().len()
    }

    /// How many objects there are of each class that has some, in the order of the classes; all at one moment. Empty
    /// also where the resource is not tallied.
    pub fn counts(&self) -> Vec<(Box<str>, u64)> {
        self.history().tally().map(|tally| tally.counts().to_vec()).unwrap_or_default()
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many events are held in memory.
    pub fn window_len(&self) -> usize {
        self.history().window_len()
    }

    /// How many bytes they take.
    pub fn window_bytes(&self) -> usize {
        self.history().weight()
    }

    /// What the keys of this resource start with.
    pub fn prefix(&self) -> &str {
        &self.layout.prefix
    }

    /// How the keys of this resource are made up.
    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// How far the store has delivered.
    pub(crate) fn progress(&self) -> &Progress {
        &self.around.progress
    }

    /// How many events wait for one watcher at most.
    pub(crate) fn watcher_queue(&self) -> usize {
        self.watcher_queue
    }

    /// Fails if `revision` is before what the store still has.
    pub(crate) fn check_kept(&self, revision: Revision) -> Result<(), Expired> {
        self.history().check_kept(revision)
    }

    /// The store, as long as it is there.
    pub(crate) fn store(&self) -> Option<Arc<dyn Store>> {
        self.around.store.upgrade()
    }

    /// Forgets what the store has forgotten.
    pub(crate) fn forget(&self, oldest: Option<Revision>) {
        let Some(oldest) = oldest else { return };
        let removed = self.history.write().expect("no holder of the history panics").compact(oldest);
        self.around.budget.give_back(removed.weight);
        let mut recalled = self.recalled();
        let all = std::mem::take(&mut *recalled).into_iter();
        let (kept, forgotten): (VecDeque<_>, VecDeque<_>) = all.partition(|(after, _)| *after >= Some(oldest));
        *recalled = kept;
        drop(recalled);
        drop((removed, forgotten));
    }

    /// Drops the oldest events in memory, some `excess` bytes of them. Answers how many it were.
    pub(crate) fn shorten(&self, excess: usize) -> usize {
        let removed = self.history.write().expect("no holder of the history panics").shorten(excess);
        self.around.budget.give_back(removed.weight);
        removed.weight
    }

    /// Begins again with this state, because changes before it were missed. Those who watch find that history has
    /// passed them.
    fn begin_again(&self, entries: &[Arc<Entry>], revision: Revision) {
        let mut table = Table::empty(self.layout.clone());
        for entry in entries {
            table.put(Item::new(entry.clone()));
        }
        let mut history = self.history.write().expect("no holder of the history panics");
        let before = history.weight();
        let removed = history.begin_again(table, revision);
        self.around.budget.give_back(before);
        self.delivered.publish(history.last());
        self.replaced.store(history.newest().replaced(), Ordering::Relaxed);
        drop(history);
        self.recalled().clear();
        drop(removed);
        self.post();
    }

    /// Lets nothing more come in: watchers get what there is and end.
    pub(crate) fn end(&self) {
        self.history.write().expect("no holder of the history panics").end();
        self.post();
    }

    /// Counts one who watches. To be called before the history is read for them, see [`deliver`](Sink::deliver).
    pub(crate) fn enter(&self) {
        self.watchers.fetch_add(1, Ordering::SeqCst);
    }

    /// Forgets one who watched.
    pub(crate) fn leave(&self, seat: &Arc<Seat>) {
        self.index().remove(seat);
        self.watchers.fetch_sub(1, Ordering::SeqCst);
    }

    /// Collects the changes in `scope` among the next `limit` ones after `position`, which moves on. Answers how many
    /// were looked at.
    pub(crate) fn read_window(
        &self,
        position: &mut Option<Revision>,
        scope: &Scope,
        limit: usize,
        found: &mut Vec<Arc<Change>>,
    ) -> Result<usize, Beyond> {
        let history = self.history();
        let mut count = 0;
        for change in history.changes_after(*position)?.take(limit) {
            count += 1;
            *position = Some(change.revision());
            if scope.contains(change.key(), &self.layout) {
                found.push(change.clone());
            }
        }
        Ok(count)
    }

    /// Gives a seat to one who has seen every event up to `position`, unless there are later ones.
    ///
    /// Upholds W1: under the index's lock nothing is dispatched. An event that the dispatcher still has before it is
    /// either later than the history that is looked at here, and will be offered, or not later than `position`, and
    /// will be skipped.
    pub(crate) fn join(&self, seat: &Arc<Seat>, position: Option<Revision>) -> Joined {
        let mut index = self.index();
        let history = self.history();
        if history.last() > position {
            return Joined::Behind;
        }
        if history.has_ended() {
            return Joined::Ended;
        }
        if index.is_empty() {
            // While nobody watched nothing was dispatched, and nobody is left who would want it.
            index.cursor = history.last();
            self.dispatched.publish(index.cursor);
        }
        index.insert(seat, position);
        Joined::Live
    }

    /// Up to where everything is in the queues. One who reads this and then finds their queue empty has had every
    /// event up to here.
    pub(crate) fn settled(&self) -> Option<Revision> {
        // In this order: what the progress speaks of was delivered, and what was dispatched before is in the queues.
        let progress = *self.around.progress.borrow();
        let delivered = self.delivered.read();
        let dispatched = self.dispatched.read();
        if dispatched >= delivered { dispatched.max(progress) } else { dispatched }
    }

    /// Carries some events from the window to the queues. Answers when to go on.
    pub(crate) fn dispatch(&self, scratch: &mut Scratch) -> Turn {
        let mut index = self.index();
        // It stays dirty meanwhile, so that nobody posts: it is in the line already.
        if let Some(until) = index.pace.waits_until(Instant::now()) {
            return Turn::NotBefore(until);
        }
        // Before looking: what comes in from now on posts again.
        self.dirty.store(false, Ordering::SeqCst);
        let Scratch { changes, wakers } = scratch;
        let (last, has_ended) = {
            let history = self.history();
            if index.is_empty() {
                index.cursor = history.last();
            } else {
                match history.changes_after(index.cursor) {
                    Ok(window) => changes.extend(window.take(EVENTS_PER_STEP).cloned()),
                    Err(_) => {
                        // The window lost events before they were dispatched. Every watcher finds out by itself
                        // whether it has missed one, and whether the store still has it.
                        index.clear(Queue::overrun, wakers);
                        index.cursor = history.last();
                    }
                }
            }
            (history.last(), history.has_ended())
        };
        let mut offers = 0;
        let events = changes.len();
        for change in changes.drain(..) {
            // What is left of the step's events is taken from the window again in the next step.
            if offers < OFFERS_PER_STEP {
                offers += index.offer(&change, &self.layout, wakers);
            }
        }
        self.dispatched.publish(index.cursor);
        index.pace.told(wakers.len(), events);
        if index.cursor < last {
            drop(index);
            self.post();
            return Turn::More;
        }
        if has_ended {
            index.clear(|queue, _| queue.close(), wakers);
        }
        index.pace.rest(Instant::now());
        Turn::Over
    }

    fn post(&self) {
        if !self.dirty.swap(true, Ordering::SeqCst) {
            self.around.inbox.post(self.me.clone());
        }
    }

    fn snapshot_of(&self, table: Table, revision: Option<Revision>) -> Snapshot {
        Snapshot::new(table, revision, Arc::clone(&self.replaced))
    }

    fn history(&self) -> RwLockReadGuard<'_, History> {
        self.history.read().expect("no holder of the history panics")
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().expect("no holder of the index panics")
    }

    fn recalled(&self) -> MutexGuard<'_, VecDeque<(Option<Revision>, Table)>> {
        self.recalled.lock().expect("no holder of the recalled states panics")
    }
}

impl Sink for ResourceCache {
    /// Runs on the store's writer thread: it touches no watcher (W2), only the history, and says that there is news.
    fn deliver(&self, news: News<'_>) {
        match news {
            News::Events(events) => {
                for some in events.chunks(EVENTS_PER_LOCK) {
                    let mut history = self.history.write().expect("no holder of the history panics");
                    let before = history.weight();
                    for event in some {
                        history.apply(event);
                    }
                    self.around.budget.take(history.weight() - before);
                    self.delivered.publish(history.last());
                    self.replaced.store(history.newest().replaced(), Ordering::Relaxed);
                }
                self.around.budget.settle();
                // One who watches is counted before they look at the history. So either they have seen these events
                // there, or they are counted here; with nobody to tell, no task needs to run.
                if self.watcher_count() > 0 {
                    self.post();
                }
            }
            News::Compacted(oldest) => self.forget(Some(oldest)),
            News::Replaced { entries, revision } => self.begin_again(entries, revision),
            News::Ended(reason) => {
                tracing::debug!(prefix = self.prefix(), %reason, "the store tells nothing more");
                self.end();
            }
        }
    }
}

impl Drop for ResourceCache {
    fn drop(&mut self) {
        self.around.budget.give_back(self.window_bytes());
    }
}

impl fmt::Debug for ResourceCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceCache").field("prefix", &self.prefix()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
