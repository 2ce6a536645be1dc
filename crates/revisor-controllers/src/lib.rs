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
//!
//! Where several servers share a store, those of one run ([`ElectedControllers`]).

mod clock;
mod cluster_role_aggregation;
mod controllers;
mod elected;
mod elsewhere;
mod event_expiry;
mod garbage;
mod in_every_namespace;
mod leader_election;
mod metadata;
mod namespace;
mod resource_quota;
mod root_ca;
mod service_account;
mod service_account_tokens;
mod storage_version_migrator;
mod uid;
mod validating_admission_policy_status;
mod work_queue;

pub use clock::{Clock, Sleep, SystemClock};
pub use controllers::{Controller, Controllers, ControllersOptions, QueueTallies, ResourceList};
pub use elected::ElectedControllers;
pub use elsewhere::{
    ActionElsewhere, AnswerElsewhere, Asking, ContentElsewhere, Elsewhere, Emptying, EventsElsewhere, Opening,
    RequestElsewhere, ResourceElsewhere, ResourcesElsewhere,
};
pub use leader_election::{LeaderElection, LeaderElectionError, LeaderElectionOptions};
pub use service_account_tokens::{SecretToken, TokenMaker};
pub use work_queue::{Durations, QUEUE_BUCKETS, QueueSample};
