//! [`RegistryError`]: why a request was not done, closed over what the API layer answers.

use std::sync::Arc;

use revisor_catalog::Resource;
use revisor_merge::{Conflict, describe_conflicts};
use revisor_object::{FieldErrors, Status};
use revisor_store::{Entry, StoreError};
use revisor_version::Revision;

/// Why a request was not done.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// There is no such object.
    #[error("{} {name:?} not found", resource.qualified_name())]
    NotFound {
        /// Of this resource.
        resource: Arc<Resource>,
        /// The name asked for.
        name: String,
    },
    /// The object to be created is there already.
    #[error("{} {name:?} already exists", resource.qualified_name())]
    AlreadyExists {
        /// Of this resource.
        resource: Arc<Resource>,
        /// The name that is taken.
        name: String,
        /// Whether the object that has it is on its way out.
        being_deleted: bool,
        /// Whether the name was to be one that nobody has.
        is_generated: bool,
    },
    /// An update of a kind that may not be overwritten unseen names no version.
    #[error("{} {name:?} is invalid: an update must name a version", resource.qualified_name())]
    VersionRequired {
        /// Of this resource.
        resource: Arc<Resource>,
        /// The name of the object.
        name: String,
    },
    /// The object is not what the writer believed it to be.
    #[error("conflict on {} {name:?}: {why}", resource.qualified_name())]
    Conflict {
        /// Of this resource.
        resource: Arc<Resource>,
        /// The name of the object.
        name: String,
        /// What did not match.
        why: String,
        /// Whether it is told of by its kind instead of its resource.
        is_by_kind: bool,
    },
    /// What was asked of a part of the object does not go with the state it is in.
    #[error("conflict on {}/{subresource} {name:?}: {why}", resource.qualified_name())]
    SubresourceConflict {
        /// Of this resource.
        resource: Arc<Resource>,
        /// The part of the object.
        subresource: &'static str,
        /// The name of the object.
        name: String,
        /// What did not go with it.
        why: String,
    },
    /// A disruption budget does not allow an eviction.
    #[error("{message} {cause}")]
    BudgetExhausted {
        /// What was refused.
        message: &'static str,
        /// Which budget, and why.
        cause: String,
        /// After how many seconds it may be tried again; zero if that cannot be said.
        retry_seconds: u32,
    },
    /// Several disruption budgets select one pod.
    #[error("This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.")]
    ManyBudgets,
    /// The object breaks rules of its kind.
    #[error("{} {name:?} is invalid", resource.qualified_name())]
    Invalid {
        /// Of this resource.
        resource: Arc<Resource>,
        /// The name of the object.
        name: String,
        /// Every rule that it breaks.
        errors: FieldErrors,
    },
    /// The object is of another type than its address says.
    #[error("{kind} {name:?} is of another type")]
    OtherType {
        /// The group that it claims.
        group: String,
        /// The kind that it claims.
        kind: String,
        /// Its name.
        name: String,
        /// What is wrong.
        errors: FieldErrors,
    },
    /// An applied configuration does not fit the schema of its object.
    #[error("failed to create typed patch object ({object}): {problem}")]
    Untyped {
        /// Its namespace, name and type.
        object: String,
        /// What does not fit.
        problem: String,
    },
    /// The options of the request break rules of their kind.
    #[error("{kind} is invalid")]
    InvalidOptions {
        /// `ListOptions`, `DeleteOptions`, `PatchOptions`, …
        kind: &'static str,
        /// Every rule that they break.
        errors: FieldErrors,
    },
    /// The request cannot be understood.
    #[error("{0}")]
    BadRequest(String),
    /// The object may not be made or deleted here.
    #[error("{} {name:?} is forbidden: {why}", resource.qualified_name())]
    Forbidden {
        /// Of this resource.
        resource: Arc<Resource>,
        /// The name of the object.
        name: String,
        /// Why not.
        why: String,
        /// The namespace, if the reason is that it is being deleted.
        terminating_namespace: Option<String>,
    },
    /// A webhook or a policy refuses it, in words of its own.
    #[error("{}", .0.message)]
    Denied(Box<Status>),
    /// The object may not be made so, for a reason that has a name of its own.
    #[error("{} {name:?} is forbidden: {why}", resource.qualified_name())]
    ForbiddenBecause {
        /// Of this resource.
        resource: Arc<Resource>,
        /// The name of the object.
        name: String,
        /// Why not.
        why: String,
        /// The name of the reason.
        cause: &'static str,
    },
    /// A plugin lets no more of these through at the moment.
    #[error("Too many requests: {0}")]
    TooManyRequests(String),
    /// A plugin could not come to a decision.
    #[error("{0}")]
    Undecided(String),
    /// The namespace of the request does not exist.
    #[error("namespace {0:?} not found")]
    NoSuchNamespace(String),
    /// There is no such component to find out about.
    #[error("componentstatus {0:?} not found")]
    NoSuchComponent(String),
    /// History does not reach back to the version asked for.
    #[error("{message}")]
    Expired {
        /// What to tell the client.
        message: String,
        /// A token to go on with the newest state.
        continue_token: Option<String>,
    },
    /// The version asked for has not been reached.
    #[error("too large resource version: {asked}, current: {current}")]
    TooLargeResourceVersion {
        /// The version asked for.
        asked: u64,
        /// The newest version.
        current: u64,
    },
    /// A JSON patch has more operations than are allowed.
    #[error("{0}")]
    PatchTooLarge(String),
    /// A patch does not fit the object.
    #[error("{0}")]
    PatchNotApplicable(String),
    /// Others manage fields that were to be applied.
    #[error("{}", describe_conflicts(.0))]
    ApplyConflict(Vec<Conflict>),
    /// The object could not be brought into another version.
    #[error("{0}")]
    Conversion(String),
    /// Others kept changing the object.
    #[error("{} {name:?} kept changing", resource.qualified_name())]
    Contended {
        /// Of this resource.
        resource: Arc<Resource>,
        /// The name of the object.
        name: String,
    },
    /// The time of the request was over before it was done.
    #[error("request did not complete within the allotted timeout")]
    TimedOut,
    /// The server could not do it, and the client is not to blame.
    #[error("{0}")]
    Internal(String),
    /// What is stored is no object: a fault of whoever stored it.
    #[error("the stored object cannot be read")]
    Unreadable,
    /// The store could not do its part.
    #[error("the store failed")]
    Store(#[from] StoreError),
}

impl RegistryError {
    /// Whether it failed because the server stops, which nobody has to be told: what was left to do is done at the next
    /// start.
    pub fn is_stop(&self) -> bool {
        matches!(self, RegistryError::Store(StoreError::Closed))
    }

    /// Whether somebody stands against a write whom another request may find of another mind: admission refuses it, or
    /// could not be asked.
    pub fn is_refusal(&self) -> bool {
        use RegistryError as Error;
        matches!(
            self,
            Error::Forbidden { .. }
                | Error::Denied(_)
                | Error::ForbiddenBecause { .. }
                | Error::Invalid { .. }
                | Error::TooManyRequests(_)
                | Error::Undecided(_)
                | Error::NoSuchNamespace(_)
                | Error::TimedOut
                | Error::Internal(_)
        )
    }

    pub(crate) fn not_found(resource: &Arc<Resource>, name: &str) -> RegistryError {
        RegistryError::NotFound { resource: resource.clone(), name: name.to_owned() }
    }

    pub(crate) fn conflict(resource: &Arc<Resource>, name: &str, why: impl Into<String>) -> RegistryError {
        RegistryError::Conflict {
            resource: resource.clone(),
            name: name.to_owned(),
            why: why.into(),
            is_by_kind: false,
        }
    }

    /// Fails if what is stored of an object cannot be read.
    pub(crate) fn check_readable(entry: &Entry) -> Result<(), RegistryError> {
        match entry.problem() {
            Some(why) => {
                Err(RegistryError::Internal(format!("unable to read what is stored at {}: {why}", entry.key())))
            }
            None => Ok(()),
        }
    }

    pub(crate) fn too_large(asked: Revision, current: Option<Revision>) -> RegistryError {
        RegistryError::TooLargeResourceVersion { asked: asked.get(), current: current.map_or(0, Revision::get) }
    }
}
