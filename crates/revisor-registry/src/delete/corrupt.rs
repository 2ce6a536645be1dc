//! Deletion of objects that cannot be read, for those who insist on it and may: what is stored is removed without being
//! looked at, so there are no finalizers, no preconditions and no admission (upstream: `corruptObjectDeleter`).

use revisor_auth::{Attributes as Question, Decision, ResourceAttributes};
use revisor_catalog::Feature;
use revisor_object::{FieldError, FieldErrors, FieldPath, KindRef, Status};
use revisor_store::{Change, Expect, Key, StoreError, Write};

use super::{DeleteOptions, Deleted};
use crate::escalation::user;
use crate::{Place, Registry, RegistryError, WriteOptions};

/// The option that asks for it.
pub(crate) const OPTION: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";

/// What one must be allowed to do, beside to delete.
const VERB: &str = "unsafe-delete-ignore-read-errors";

/// Says in the audit log that it was tried.
const ANNOTATION: &str = "apiserver.k8s.io/unsafe-delete-ignore-read-error";

impl DeleteOptions {
    /// What cannot be asked for together with this (upstream: `ValidateIgnoreStoreReadError`).
    pub(super) fn validate_unsafe(&self, errors: &mut FieldErrors) {
        let others = [
            (self.dry_run, ".dryRun"),
            (self.propagation_policy.is_some(), ".propagationPolicy"),
            (self.orphan_dependents.is_some(), ".orphanDependents"),
            (self.grace_period_seconds.is_some(), ".gracePeriodSeconds"),
            (self.has_preconditions, ".preconditions"),
        ];
        for (_, other) in others.into_iter().filter(|(is_set, _)| *is_set) {
            errors.push(refused(format!("cannot be set together with {other}")));
        }
    }
}

impl Registry {
    /// Whether objects may be deleted unread, and this one is to be.
    pub(super) fn is_unsafe(&self, options: &DeleteOptions) -> bool {
        options.ignore_store_read_error && self.catalog.features().has(Feature::AllowUnsafeMalformedObjectDeletion)
    }

    /// Refuses to delete a collection so.
    pub(super) fn refuse_unsafe_collection(&self, options: &DeleteOptions) -> Result<(), RegistryError> {
        if !self.is_unsafe(options) {
            return Ok(());
        }
        let why = "is not allowed with DELETECOLLECTION, try again after removing the option";
        Err(RegistryError::InvalidOptions { kind: "DeleteOptions", errors: [refused(why)].into() })
    }

    /// Removes an object that cannot be read.
    pub(super) async fn delete_corrupt(
        &self,
        target: Place<'_>,
        write: WriteOptions<'_>,
    ) -> Result<Deleted, RegistryError> {
        if let Some(notes) = write.notes {
            notes.annotate(ANNOTATION, "");
        }
        self.authorize_unsafe(target, write)?;
        let Place { resource, namespace, name } = target;
        let (stored, name) = (resource.working(), name.unwrap_or_default());
        let key = stored.key(namespace, name);
        let cache = self.cache_of(stored);
        cache.freshen().await?;
        if cache.get(&key).is_none_or(|item| item.entry().problem().is_none()) {
            let why = "is exclusively used to delete corrupt object(s), try again by removing this option";
            // The resource stands where others have their kind.
            let kind = KindRef { group: &resource.group, kind: &resource.plural };
            return Err(RegistryError::Denied(Box::new(Status::invalid(kind, name, &[refused(why)]))));
        }
        tracing::info!(%key, "deleting what cannot be read");
        let write = Write { key: Key::new(key), expect: Expect::Anything, change: Change::Delete };
        match self.cache.write(write).await {
            // Somebody else was faster.
            Ok(_) | Err(StoreError::Conflict { .. }) => Ok(Deleted::Unread),
            Err(error) => Err(error.into()),
        }
    }

    /// As upstream: `authorizeUnsafeDelete`.
    fn authorize_unsafe(&self, target: Place<'_>, write: WriteOptions<'_>) -> Result<(), RegistryError> {
        let Some(user) = user(write.requester) else { return Ok(()) };
        let Place { resource, namespace, name } = target;
        let asked = ResourceAttributes {
            group: &resource.group,
            version: &resource.version,
            resource: &resource.plural,
            namespace,
            name,
            ..ResourceAttributes::default()
        };
        let question = Question { user: &user, verb: VERB, path: "", resource: Some(asked) };
        match self.authorizer.authorize(&question) {
            Decision::Allow => Ok(()),
            Decision::Forbidden(refusal) => Err(RegistryError::Forbidden {
                resource: resource.clone(),
                name: name.unwrap_or_default().to_owned(),
                why: format!("not permitted to do {VERB:?}, reason: {}", refusal.reason),
                terminating_namespace: None,
            }),
        }
    }
}

fn refused(why: impl Into<String>) -> FieldError {
    FieldError::invalid(FieldPath::root(OPTION), true, why.into())
}
