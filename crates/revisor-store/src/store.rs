//! The [`Store`] trait. Its documentation is the contract: every sentence has a case in the contract suite.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use revisor_version::Revision;
use tokio::sync::watch;

use crate::{Draft, Entry, Event, Key, StoreError};

/// A future that a trait object can return.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What must be true of a key for a write to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// The key holds nothing.
    Absent,
    /// The key holds the entry of exactly this revision.
    At(Revision),
    /// The key may hold anything or nothing.
    Anything,
}

/// What a write does to its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Store this in place of what is there.
    Put(Draft),
    /// Store this in place of what is there, as a step towards its removal: never refused for want of room. To mark a
    /// key that holds nothing is a [`StoreError::Conflict`].
    Mark(Draft),
    /// Remove what is there. To delete a key that holds nothing is a [`StoreError::Conflict`].
    Delete,
}

impl Change {
    /// What is stored, unless this removes.
    pub fn draft(&self) -> Option<&Draft> {
        match self {
            Change::Put(draft) | Change::Mark(draft) => Some(draft),
            Change::Delete => None,
        }
    }

    /// Whether there must be something for this to happen to.
    pub fn needs_entry(&self) -> bool {
        matches!(self, Change::Mark(_) | Change::Delete)
    }
}

/// One write with its precondition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The key to change.
    pub key: Key,
    /// What the writer believes about the key.
    pub expect: Expect,
    /// What to do to it.
    pub change: Change,
}

/// A write that happened.
pub type Committed = Event;

/// Which part of a listing is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// Only keys after this one, in byte order.
    pub after: Option<Key>,
    /// At most so many entries.
    pub limit: Option<usize>,
    /// The state at this revision; the newest if not given.
    pub at: Option<Revision>,
}

/// Entries of one state of the store, in byte order of their keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The entries.
    pub entries: Vec<Arc<Entry>>,
    /// The revision of the state that they belong to; `None` while nothing was ever written.
    pub revision: Option<Revision>,
    /// How many more the limit cut off.
    pub remaining: usize,
}

/// Some events of the past.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventPage {
    /// In revision order.
    pub events: Vec<Event>,
    /// Every event of the selection up to this revision is among these or was before them; to go on, ask for those
    /// after it. When it is the newest revision, there are no more.
    pub through: Option<Revision>,
}

/// What a store tells a [`Sink`].
#[derive(Debug)]
pub enum News<'a> {
    /// Writes to keys of the sink's prefix, in revision order. Never empty.
    Events(&'a [Event]),
    /// History before this revision is gone from the store for keys of the sink's prefix; who keeps it may drop it
    /// too.
    Compacted(Revision),
    /// Changes before this revision were missed, and nobody can tell them any more: this is what the keys of the
    /// sink's prefix hold at it. The revision may be before those of what was told until now, where the backend was set
    /// back.
    Replaced {
        /// In byte order of their keys.
        entries: &'a [Arc<Entry>],
        /// The state that they belong to. History begins with it.
        revision: Revision,
    },
    /// The store can tell this sink nothing more. The last thing a sink hears.
    Ended(StoreError),
}

/// One who follows the changes of a store.
pub trait Sink: Send + Sync + 'static {
    /// Takes note of `news`. Called by one thread at a time and in order. It must be quick and must not block or
    /// call the store: writers wait for it.
    fn deliver(&self, news: News<'_>);
}

/// Keeps a [`Store::watch`] alive; to drop it ends the watch.
pub struct WatchGuard {
    on_drop: Option<Box<dyn FnOnce() + Send + Sync>>,
}

impl WatchGuard {
    /// A guard that runs `on_drop` when the watch is no longer wanted.
    pub fn new(on_drop: impl FnOnce() + Send + Sync + 'static) -> WatchGuard {
        WatchGuard { on_drop: Some(Box::new(on_drop)) }
    }
}

impl Drop for WatchGuard {
    fn drop(&mut self) {
        if let Some(on_drop) = self.on_drop.take() {
            on_drop();
        }
    }
}

impl std::fmt::Debug for WatchGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WatchGuard").finish_non_exhaustive()
    }
}

/// How far a store has delivered: every sink has heard of every write up to this revision.
pub type Progress = watch::Receiver<Option<Revision>>;

/// A map from keys to encoded objects with one history.
///
/// **Revisions.** Every write that happens gets the next number of one sequence over all keys, starting at 1, or at the
/// first number that a backend has for others; where others write to the same backend, the next that they leave. A
/// number is never given twice, also not after a crash (S1). A write that does not happen takes none.
///
/// **Durability.** When [`write`](Store::write) answers, the change survives a crash at any later point (S2). Nobody
/// sees a change (by get, list, watch or the answer) before it is durable.
///
/// **Isolation.** Preconditions are checked against the newest state, one write after the other: of two writers with
/// one precondition, one wins (S3) and the other gets [`StoreError::Conflict`] with what is there now.
///
/// **Delivery.** When `write` answers, every sink has heard of the change and [`progress`](Store::progress) has
/// reached its revision.
///
/// **History.** States and events of the keys with a prefix are kept back to
/// [`oldest_revision`](Store::oldest_revision), which moves forward by retention or by [`compact`](Store::compact) and
/// never passes the newest. The state at the oldest revision can be read and watched from; before it everything is
/// [`StoreError::Compacted`]. A store may keep more history of some keys than of others.
///
/// **Others.** Several stores, in one process or in many, may be open on one backend. All of this then holds for what any
/// of them does, and what another one did is delivered as if it had been written here.
///
/// **Cancellation.** To drop the future of a `write` does not take the write back: it may or may not happen.
pub trait Store: Send + Sync + 'static {
    /// The newest entry of `key`.
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Arc<Entry>>, StoreError>>;

    /// The entries whose keys start with `prefix`, all of one state. At a revision that was not written yet:
    /// [`StoreError::Future`].
    fn list<'a>(&'a self, prefix: &'a str, page: Page) -> BoxFuture<'a, Result<Listing, StoreError>>;

    /// Performs one write, or fails with [`StoreError::Conflict`] and changes nothing. A put that makes the state
    /// larger fails with [`StoreError::NoSpace`] where the store is full.
    fn write(&self, write: Write) -> BoxFuture<'_, Result<Committed, StoreError>>;

    /// Tells `sink` of every write after `after` to keys that start with `prefix`, each once and in order (W1): those
    /// of the past before this call's future is done, the later ones as they happen. `None` is from the beginning of
    /// history, which fails once anything was compacted. A revision that was not written yet is
    /// [`StoreError::Future`].
    fn watch<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<Revision>,
        sink: Arc<dyn Sink>,
    ) -> BoxFuture<'a, Result<WatchGuard, StoreError>>;

    /// The writes after `after` to keys that start with `prefix`, in order: at most `limit`, and fewer where they are
    /// large. Who follows [`through`](EventPage::through) gets each once. `None` is from the beginning of history, and
    /// fails as that of a [`watch`](Store::watch) does.
    fn events<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<Revision>,
        limit: usize,
    ) -> BoxFuture<'a, Result<EventPage, StoreError>>;

    /// Whether what is stored of this entry should be written anew although it says what it is to say: because it would
    /// be encrypted otherwise today. An entry that is no longer there is not stale, and nothing is in a store that
    /// encrypts nothing.
    fn is_stale<'a>(&'a self, _entry: &'a Entry) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async { Ok(false) })
    }

    /// The newest revision; `None` while nothing was ever written. Where others write to the same backend, it is
    /// asked, so that a read at this revision is consistent.
    fn current_revision(&self) -> BoxFuture<'_, Result<Option<Revision>, StoreError>>;

    /// The oldest revision at which all keys that start with `prefix` can be read and watched from; `None` while all
    /// of their history is there. No longer prefix has a later one.
    fn oldest_revision(&self, prefix: &str) -> Option<Revision>;

    /// How far events were delivered to sinks.
    fn progress(&self) -> Progress;

    /// Says that somebody waits for [`progress`](Store::progress) to reach a revision, which may have been used for
    /// something that no sink hears of. A store that is told of everything needs no hint.
    fn hasten(&self, revision: Revision) {
        let _ = revision;
    }

    /// Forgets history before `revision`. To compact to where history already begins is no error; to a revision that
    /// was not written yet is [`StoreError::Future`].
    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Why writes are refused, if they are. Reads go on.
    fn failure(&self) -> Option<StoreError>;

    /// Refuses further writes, finishes those that wait, and gives up the backend.
    fn close(&self) -> BoxFuture<'_, ()>;
}
