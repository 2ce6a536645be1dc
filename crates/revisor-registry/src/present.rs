//! Showing stored objects in the version that a client asked for.

use std::sync::Arc;

use bytes::Bytes;
use revisor_catalog::Resource;
use revisor_object::Object;
use revisor_version::Revision;

use crate::write::encode;
use crate::{Decoded, RegistryError};

/// The bytes of an object in the version of `resource`. Where that is the stored one, they are the stored bytes.
///
/// An object that cannot be read is shown as it is stored: to hide it from lists would be worse.
pub fn present(resource: &Resource, stored: &Bytes) -> Bytes {
    if resource.is_storage() {
        return stored.clone();
    }
    let Ok(mut object) = Decoded::stored(stored) else { return stored.clone() };
    let revision = revision_of(&object);
    resource.to_shown(&mut object);
    let draft = encode(resource, &object);
    revision.map_or_else(|| draft.bytes().clone(), |revision| draft.at_revision(revision))
}

fn revision_of(object: &Object) -> Option<Revision> {
    let text = object.object("metadata")?.str("resourceVersion")?;
    text.parse().ok().and_then(Revision::new)
}

/// An error that names the resource as the client did.
pub(crate) fn named_as(shown: &Arc<Resource>, mut error: RegistryError) -> RegistryError {
    match &mut error {
        RegistryError::NotFound { resource, .. }
        | RegistryError::AlreadyExists { resource, .. }
        | RegistryError::VersionRequired { resource, .. }
        | RegistryError::Conflict { resource, .. }
        | RegistryError::Forbidden { resource, .. }
        | RegistryError::Contended { resource, .. } => {
            // Errors about other objects than the one that was asked for keep their name.
            if Arc::ptr_eq(resource, shown.storage()) {
                *resource = shown.clone();
            }
        }
        // Rules look at the stored form, and what is wrong with that is said of it.
        RegistryError::Invalid { .. }
        | RegistryError::InvalidOptions { .. }
        | RegistryError::BadRequest(_)
        | RegistryError::NoSuchNamespace(_)
        | RegistryError::NoSuchComponent(_)
        | RegistryError::Expired { .. }
        | RegistryError::TooLargeResourceVersion { .. }
        | RegistryError::PatchTooLarge(_)
        | RegistryError::PatchNotApplicable(_)
        | RegistryError::ApplyConflict(_)
        | RegistryError::SubresourceConflict { .. }
        | RegistryError::BudgetExhausted { .. }
        | RegistryError::ManyBudgets
        | RegistryError::Internal(_)
        | RegistryError::Unreadable
        | RegistryError::Store(_) => {}
    }
    error
}
