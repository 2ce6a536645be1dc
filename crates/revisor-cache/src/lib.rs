//! Derived state over a store: per resource an ordered persistent map of objects, a window of recent events, and
//! those who watch.
//!
//! ```text
//!  store's writer thread          one task                    one task per request
//!  ─────────────────────          ────────                    ────────────────────
//!  deliver ─▶ History   ────────▶ dispatch ─▶ Index ─▶ Queue ─▶ Watcher ─▶ client
//!             map, window,  dirty             who wants this?     │
//!             kept states                                         │ starts and catches up from
//!                ▲────────────────────────────────────────────────┤ the history,
//!  store's disk ◀─────────────────────────────────────────────────┘ and before that from the store
//! ```
//!
//! Where a resource is tallied ([`Cache::add_tallied`]), the history also counts its objects by a class of the caller's.
//!
//! Everything here can be rebuilt from the store (C1): [`Cache::add`] does so at start-up, from the newest state. How
//! long history is kept is the store's decision alone. The windows hold as much of its end as fits a budget of memory
//! that all resources share; what is older is read from the store when somebody asks, and nobody else can tell.
//!
//! Three kinds of lock, in the order in which they may be taken: the index of watchers (dispatcher and those who come
//! and go), the history (the writer thread, briefly, and every reader), a watcher's queue. The writer thread takes
//! the history's only, so that no number of watchers slows a write down (W2).

mod budget;
mod cache;
mod delivery;
mod dispatcher;
mod encodings;
mod feed;
mod history;
mod index;
mod item;
mod layout;
mod pace;
mod queue;
mod ranks;
mod resource;
mod revision_cell;
mod snapshot;
mod stored;
mod tally;
mod trigger;
mod watcher;

pub use cache::{Cache, CacheOptions, NotReached};
pub use delivery::{Delivery, EventKind, FrameForm, FrameKey};
pub use encodings::{EncodedKey, EncodingRoom};
pub use feed::{Feed, News};
pub use history::Expired;
pub use item::{Item, View};
pub use resource::ResourceCache;
pub use snapshot::{Footprint, Snapshot};
pub use stored::{PastError, PastPage};
pub use tally::Classify;
pub use trigger::{Trigger, TriggerValue};
pub use watcher::{Filter, Scope, WatchItem, WatchRequest, WatchStart, Watcher};
