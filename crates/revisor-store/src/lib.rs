//! Where objects live: the [`Store`] trait, its contract in words, the contract suite that every
//! implementation runs ([`contract`]), and the [`embedded`] engine.
//!
//! A store knows keys, bytes and revisions. It knows nothing of kinds, schemas or HTTP.

pub mod contract;
pub mod embedded;
mod entry;
mod error;
mod event;
mod key;
mod sinks;
mod store;
mod stores;
mod transformer;

pub use entry::{Draft, Entry};
pub use error::{BoxError, StoreError};
pub use event::Event;
pub use key::Key;
pub use sinks::{Registration, Sinks};
pub use store::{
    BoxFuture, Change, Committed, EventPage, Expect, Listing, News, Page, Progress, Sink, Store, WatchGuard, Write,
};
pub use stores::Stores;
pub use transformer::{
    ENCRYPTED, Identity, MOST_TRANSFORMED_EXTRA, Plain, ResourceTransformers, TransformError, Transformer,
};
