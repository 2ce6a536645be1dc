//! Showing stored objects in the version that a client asked for.
//!
//! What this server alone can show is shown here, at once. Where that always works ([`Resource::is_certain`]) it is done
//! when the object is sent; where somebody has to be asked, or something may fail, it was done before
//! ([`Registry::list`], [`EventStream`]) and the bytes come along. What is made of an object of the cache is remembered
//! beside it: only what is finished, and under the shape that it has.
//!
//! [`Registry::list`]: crate::Registry::list
//! [`EventStream`]: crate::EventStream

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use revisor_cache::Item;
use revisor_catalog::{Resource, Unconverted};
use revisor_object::Object;
use revisor_store::Draft;
use revisor_version::Revision;

use crate::write::encode;
use crate::{Decoded, RegistryError};

/// An object of the cache that is to be sent.
#[derive(Debug, Clone)]
pub struct Presented {
    /// The object as it is stored.
    pub item: Arc<Item>,
    /// As it is shown, where that could not wait until it is sent.
    pub shown: Option<Bytes>,
}

impl From<Arc<Item>> for Presented {
    fn from(item: Arc<Item>) -> Presented {
        Presented { item, shown: None }
    }
}

impl AsRef<Item> for Presented {
    fn as_ref(&self) -> &Item {
        &self.item
    }
}

/// The bytes of a stored object in the version of `resource`, which can show all of its objects. Where that is the stored
/// version, they are the stored bytes.
pub fn present(resource: &Resource, stored: &Bytes) -> Bytes {
    shown_or_stored(show_now(resource, stored), stored)
}

/// The same of an object of the cache. What is shown as it is stored is only looked at: to count one more owner of the
/// bytes of each object costs as much as to copy a small one.
pub fn present_item<'i>(resource: &Resource, item: &'i Item) -> Cow<'i, Bytes> {
    if is_item_shown_as_stored(resource, item) {
        return Cow::Borrowed(item.bytes());
    }
    Cow::Owned(shown_or_stored(show_item_now(resource, item), item.bytes()))
}

/// Who is certain does not fail; were it otherwise, to hide an object from a list would be worse than to show it so.
fn shown_or_stored(shown: Result<Bytes, Unconverted>, stored: &Bytes) -> Bytes {
    shown.unwrap_or_else(|unconverted| {
        tracing::error!(?unconverted, "an object is shown as it is stored, because nobody converted it before");
        stored.clone()
    })
}

/// The bytes of a stored object in the version of `resource`, if they can be made at once.
///
/// An object that cannot be read is shown as it is stored: to hide it from lists would be worse.
pub(crate) fn show_now(resource: &Resource, stored: &Bytes) -> Result<Bytes, Unconverted> {
    if is_shown_as_stored(resource, stored) {
        return Ok(stored.clone());
    }
    let Ok(mut object) = Decoded::stored_as(resource, stored) else { return Ok(stored.clone()) };
    match resource.custom() {
        None => resource.to_shown(&mut object),
        Some(custom) => object = custom.show(object)?,
    }
    Ok(encode_shown(resource, &object, stored))
}

/// The same of an object of the cache, beside which it is remembered.
pub(crate) fn show_item_now(resource: &Resource, item: &Item) -> Result<Bytes, Unconverted> {
    if let Some(shown) = remembered(resource, item) {
        return Ok(shown);
    }
    let shown = show_now(resource, item.bytes())?;
    item.keep_shown(resource.shape, shown.clone());
    Ok(shown)
}

/// What is there already of an object of the cache.
pub(crate) fn remembered(resource: &Resource, item: &Item) -> Option<Bytes> {
    if is_item_shown_as_stored(resource, item) { Some(item.bytes().clone()) } else { item.shown(resource.shape) }
}

/// Whether the stored bytes of an object are those that clients of `resource` see.
pub(crate) fn is_shown_as_stored(resource: &Resource, stored: &[u8]) -> bool {
    resource.shape.is_stored() && !resource.is_stored_otherwise(stored)
}

/// The same of an object of the cache, of which whoever wrote it may have known it.
fn is_item_shown_as_stored(resource: &Resource, item: &Item) -> bool {
    item.entry().is_shown_as(resource.shape) || is_shown_as_stored(resource, item.bytes())
}

/// Encodes an object as it is shown. If nothing is different from how it is stored, nothing new is kept.
pub(crate) fn encode_shown(resource: &Resource, object: &Object, stored: &Bytes) -> Bytes {
    let draft: Draft = encode(resource, object);
    let shown = revision_of(object).map_or_else(|| draft.bytes().clone(), |revision| draft.at_revision(revision));
    if shown == *stored { stored.clone() } else { shown }
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
        | RegistryError::ForbiddenBecause { resource, .. }
        | RegistryError::Contended { resource, .. } => {
            // Errors about other objects than the one that was asked for keep their name.
            if Arc::ptr_eq(resource, shown.working()) {
                *resource = shown.clone();
            }
        }
        // Rules look at the stored form, and what is wrong with that is said of it.
        RegistryError::Invalid { .. }
        | RegistryError::InvalidOptions { .. }
        | RegistryError::BadRequest(_)
        | RegistryError::Denied(_)
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
        | RegistryError::OtherType { .. }
        | RegistryError::Untyped { .. }
        | RegistryError::Conversion(_)
        | RegistryError::TooManyRequests(_)
        | RegistryError::Undecided(_)
        | RegistryError::TimedOut
        | RegistryError::Internal(_)
        | RegistryError::Unreadable
        | RegistryError::Store(_) => {}
    }
    error
}
