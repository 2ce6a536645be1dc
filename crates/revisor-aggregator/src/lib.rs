//! API servers behind this one (upstream: `kube-aggregator`).
//!
//! An APIService that names a service says who serves a group and version. [`Book`] has all that are stored, [`Remote`] is
//! one of those servers and the way to it, [`Aggregator`] passes requests on to them, finds out whether they are
//! available and says so in their status, and knows what they serve ([`View`]), so that discovery and OpenAPI can tell of
//! them.
//!
//! Each of them has connections, bounds and a task of its own, so that one that hangs holds up nobody else.

mod aggregator;
mod availability;
mod availability_metrics;
mod book;
mod keeper;
mod knowledge;
mod legacy_discovery;
mod namespaces;
mod objects;
mod remote;
mod swagger;
mod view;

pub use aggregator::{AggregationError, Aggregator, AggregatorOptions, Asker, Passed};
pub use availability_metrics::AvailabilityMetrics;
pub use book::{Book, Registration};
pub use namespaces::RemoteContent;
pub use objects::{RemoteAction, RemotePlace};
pub use remote::Remote;
pub use revisor_proxy::headers::RemoteUser;
pub use swagger::settle_names;
pub use view::{RemoteVersion, View};
