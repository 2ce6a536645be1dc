//! A store on etcd, for several servers at once, of this program and of the original.
//!
//! [`Client`] speaks etcd's API over gRPC, to whichever member answers. [`EtcdStore`] is the [`Store`] on it: a mirror of
//! what is stored, kept by one stream of changes, and writes that are answered when the mirror has them. What the bytes
//! mean is left to a [`Codec`]. [`Reading`] and [`Writing`] move the state of a store out of an etcd, or of a [`Snapshot`]
//! of one, and into it.
//!
//! [`Store`]: revisor_store::Store

mod arrivals;
mod asker;
mod chunks;
mod client;
mod codec;
mod compactor;
mod endpoint;
mod error;
mod follower;
mod grpc;
mod keyspace;
mod leases;
mod loading;
mod members;
#[allow(missing_docs, reason = "the messages of etcd are documented by etcd")]
pub mod messages;
mod mirror;
mod page_size;
mod past;
mod prober;
mod reading;
mod shared;
mod snapshot;
mod store;
mod under_way;
mod writes;
mod writing;

pub use client::Client;
pub use codec::{Codec, Decoded};
pub use endpoint::{EndpointError, TlsFiles};
pub use error::{Code, EtcdError};
pub use prober::Prober;
pub use reading::{Pages, Reading, ReadingError, Stored};
#[doc(hidden)]
pub use snapshot::read_whole as read_whole_snapshot;
pub use snapshot::{HashCheck, Snapshot, SnapshotError};
pub use store::{EtcdOptions, EtcdStore, OpenError};
pub use writing::{Found, SharedLease, Writing, WritingError};
