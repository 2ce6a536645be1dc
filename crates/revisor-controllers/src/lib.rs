//! What a server needs without a cluster around it: the controllers that finish deletions, keep what every namespace
//! has, count what quotas limit, gather the rules of roles and store anew what is stored otherwise, and the expiry of
//! events.
//!
//! ```text
//!  cache ──feed──▶ controller ──key──▶ work queue ──▶ worker ──▶ registry
//!    ▲                                     ▲ │ retry                │
//!    │                                     └─┘                      │
//!    └──────────────────────── events of its writes ────────────────┘
//! ```
//!
//! Each controller is one task that follows feeds of the cache and works off a queue of keys. It reads from the cache
//! and writes through the registry, as a client would, with preconditions where it acts on what it has read. Nothing
//! polls: an idle server wakes no controller, but for the quotas that it has, which are counted again every few minutes. Which resources exist is a list that may grow while they run.

mod clock;
mod cluster_role_aggregation;
mod controllers;
mod event_expiry;
mod garbage;
mod in_every_namespace;
mod metadata;
mod namespace;
mod resource_quota;
mod root_ca;
mod service_account;
mod storage_version_migrator;
mod uid;
mod validating_admission_policy_status;
mod work_queue;

pub use clock::{Clock, Sleep, SystemClock};
pub use controllers::{Controller, Controllers, ControllersOptions, ResourceList};
