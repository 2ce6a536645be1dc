//! A store on etcd, for several servers at once, of this program and of the original.
//!
//! [`Client`] speaks etcd's API over gRPC, to whichever member answers. [`EtcdStore`] is the [`Store`] on it: a mirror of
//! what is stored, kept by one stream of changes, and writes that are answered when the mirror has them. What the bytes
//! mean is left to a [`Codec`].
//!
//! [`Store`]: revisor_store::Store

mod asker;
mod client;
mod codec;
mod compactor;
mod endpoint;
mod error;
mod follower;
mod grpc;
mod keyspace;
mod leases;
mod members;
#[allow(missing_docs, reason = "the messages of etcd are documented by etcd")]
pub mod messages;
mod mirror;
mod past;
mod prober;
mod shared;
mod store;
mod under_way;
mod writes;

pub use client::Client;
pub use codec::{Codec, Decoded};
pub use endpoint::{EndpointError, TlsFiles};
pub use error::{Code, EtcdError};
pub use prober::Prober;
pub use store::{EtcdOptions, EtcdStore, OpenError};
