//! [`StoreError`]: closed over the decisions that a caller of a store can make.

use std::sync::Arc;

use revisor_version::Revision;

use crate::{Entry, Key, TransformError};

/// A cause whose type does not matter to the caller.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a store did not do what it was asked to.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The precondition of a write does not hold. The current entry is there so that the caller can decide and
    /// retry without another read.
    #[error("key {key} is not as the writer expected")]
    Conflict {
        /// The key of the write.
        key: Key,
        /// What the key holds, if anything.
        current: Option<Arc<Entry>>,
    },
    /// History no longer reaches back to the revision asked for.
    #[error("revision {asked} was compacted, the oldest is {oldest}")]
    Compacted {
        /// The revision that the caller asked for.
        asked: Revision,
        /// The oldest revision that can still be read or watched from.
        oldest: Revision,
    },
    /// The revision asked for has not been written yet.
    #[error("revision {asked} is in the future, the newest is {}", newest.map_or(0, Revision::get))]
    Future {
        /// The revision that the caller asked for.
        asked: Revision,
        /// The newest revision of the store.
        newest: Option<Revision>,
    },
    /// A write or a sync failed; the store serves reads and refuses writes until it is opened again. A writer that
    /// waited for the failed sync gets this too, and cannot know whether its write is there after that.
    #[error("the store is read-only since a write failed: {0}")]
    ReadOnly(Arc<str>),
    /// The store was shut down.
    #[error("the store is closed")]
    Closed,
    /// The write queue is full: the caller should tell its client to retry.
    #[error("too many writes are waiting")]
    Overloaded,
    /// A key or an object is larger than a store takes.
    #[error("the {what} has {size} bytes, a store takes at most {limit}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// How large it is.
        size: usize,
        /// How large it may be.
        limit: usize,
    },
    /// The store holds as much as it may, and the write would make its state larger. Deletions go on.
    #[error("the store is full: its objects take {used} bytes of a quota of {quota}")]
    NoSpace {
        /// How many bytes the newest state takes.
        used: u64,
        /// How many bytes state and history may take together.
        quota: u64,
    },
    /// An object could not be encrypted, or what is stored could not be decrypted.
    #[error("unable to transform key {key:?}: {cause}")]
    Transform {
        /// The key of the object.
        key: Key,
        /// Why.
        cause: TransformError,
    },
    /// The backend failed in a way that says nothing about the request.
    #[error("the backend failed")]
    Backend(#[source] Arc<dyn std::error::Error + Send + Sync>),
}
