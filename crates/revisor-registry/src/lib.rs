//! Generic create, get, list, watch, update, patch and delete, the same for every resource of the catalog.
//!
//! Which read a request means is one pure table ([`read_plan`](crate::ListPlan)); the order of the steps of a write is
//! invariant R1. HTTP is not known here: errors are a closed enum that the API layer turns into statuses.

mod actor;
mod admission;
mod allocation;
mod api_services;
mod apply;
mod binding;
mod body;
mod bootstrap;
mod component_status;
mod conversion;
mod conversions;
mod definition_rehearsal;
mod definitions;
mod delete;
mod error;
mod escalation;
mod event_stream;
mod eviction;
mod field_versions;
mod flow_book;
mod identity;
mod lasting;
mod managed_fields;
mod node_book;
mod overwrite;
mod patch;
mod policy_book;
mod policy_tally;
mod policy_types;
mod present;
mod quota;
mod read;
mod read_plan;
mod registry;
mod rehearsal;
mod rewrite;
mod role_book;
mod scale;
mod scale_fields;
mod secret_labels;
mod selection;
mod semver_policy;
mod server_identity;
mod service_addresses;
mod version_fields;
mod version_reports;
mod version_usage;
mod workbench;
mod write;

pub use actor::Actor;
pub use admission::{
    AdmissionConfig, AdmissionFamily, AdmissionNotes, AdmissionOptions, AdmissionPlugin, AdmissionSample,
    AuditAnnotation, EventLimit, EventLimitType, ImagePolicyConfig, LimitedResource, ManifestDocument, ManifestError,
    Operation, PodSecurityConfig, PodSecurityLevel, SentOptions, StaticManifests, TolerationDefaults,
    TolerationSeconds, validate_node_selector,
};
pub use allocation::{ServiceNetwork, taken_node_ports};
pub use body::{Decoded, FieldValidation, Format};
pub use bootstrap::Advertised;
pub use delete::{DeleteOptions, Deleted, DeletedCollection, Preconditions};
pub use error::RegistryError;
pub use event_stream::{EventStream, StreamItem};
pub use eviction::Eviction;
pub use flow_book::{FlowBook, FlowConfig};
pub use identity::Environment;
pub use patch::PatchKind;
pub use policy_tally::{POLICY_BUCKETS, PolicySample};
pub use present::{Presented, present, present_item};
pub use quota::{Evaluator, Recount};
pub use read::{GetRequest, Got, ListItems, ListRequest, Listed, WatchRequest, Watched};
pub use read_plan::{ListPlan, ListVersions, WatchPlan, plan_list, plan_watch};
pub use registry::{Registry, RegistryOptions};
pub use rehearsal::{Rehearsal, RehearsalEffect, RehearsalFinding, SeenRequests, Stored, ToCome};
pub use revisor_admission::GroupVersionKind;
pub use rewrite::{MigrationStage, Rewrite};
pub use selection::Selection;
pub use server_identity::{KnownServer, ServerIdentity};
pub use service_addresses::ServiceStanding;
pub use workbench::{Workbench, is_light, off_the_workers};
pub use write::{Place, Saved, UnstoredWrite, WithinWrite, WriteOptions};
