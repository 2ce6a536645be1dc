//! Showing stored objects in the version that a client asked for.
//!
//! What can be shown by this server alone is made where it is sent, and remembered beside the object. What only a
//! webhook can convert has been converted before ([`Registry::list`], [`EventStream`]) and is remembered then.
//!
//! [`Registry::list`]: crate::Registry::list
//! [`EventStream`]: crate::EventStream

use std::sync::Arc;

use bytes::Bytes;
use revisor_cache::{Delivery, EventKind, Item};
use revisor_catalog::{Custom, CustomConversion, Resource};
use revisor_object::Object;
use revisor_store::Draft;
use revisor_version::Revision;

use crate::write::encode;
use crate::{Decoded, RegistryError};

/// The bytes of an object in the version of `resource`. Where that is the stored one, they are the stored bytes.
///
/// An object that cannot be read is shown as it is stored: to hide it from lists would be worse.
pub fn present(resource: &Resource, stored: &Bytes) -> Bytes {
    present_here(resource, stored).unwrap_or_else(|| stored.clone())
}

/// The same; `None` where only a webhook can show the object.
fn present_here(resource: &Resource, stored: &Bytes) -> Option<Bytes> {
    if is_shown_as_stored(resource, stored) {
        return Some(stored.clone());
    }
    let Ok(mut object) = Decoded::stored(stored) else { return Some(stored.clone()) };
    match resource.custom() {
        None => resource.to_shown(&mut object),
        Some(custom) => {
            if needs_webhook(resource, &object) {
                return None;
            }
            let is_own = custom.is_own(&object);
            custom.settle(&mut object);
            if !is_own {
                custom.take_in(&mut object);
            }
        }
    }
    Some(encode_shown(resource, &object, stored))
}

/// The bytes of an object of the cache in the version of `resource`; see [`present`]. Only what is finished is
/// remembered: what a webhook has yet to convert must not be taken for what it made of it.
pub fn present_item(resource: &Resource, item: &Item) -> Bytes {
    if is_shown_as_stored(resource, item.bytes()) {
        return item.bytes().clone();
    }
    if let Some(shown) = item.shown(resource.shape) {
        return shown;
    }
    match present_here(resource, item.bytes()) {
        Some(shown) => {
            item.keep_shown(resource.shape, shown.clone());
            shown
        }
        None => item.bytes().clone(),
    }
}

/// Whether the stored bytes of an object are those that clients of `resource` see.
fn is_shown_as_stored(resource: &Resource, stored: &[u8]) -> bool {
    resource.shape == 0 && !resource.is_stored_otherwise(stored)
}

/// The bytes of the object of an event in the version of `resource`, if they have to be known before it is framed.
pub fn present_event(resource: &Resource, kind: EventKind, delivery: &Delivery) -> Option<Bytes> {
    needs_memory(resource).then(|| delivery.frame(converted_key(resource, kind), || delivery.object(kind)))
}

/// Under which number an event remembers its object after a webhook has converted it.
pub(crate) fn converted_key(resource: &Resource, kind: EventKind) -> u64 {
    // The numbers below belong to those who send events.
    resource.shape | if kind == EventKind::Deleted { 0xff } else { 0xfe }
}

/// Whether objects of this resource may have to be converted by a webhook.
pub(crate) fn needs_memory(resource: &Resource) -> bool {
    let is_asked = |custom: &Custom| match custom.conversion() {
        CustomConversion::ByName | CustomConversion::ByRules(_) => false,
        CustomConversion::ByWebhook(_) | CustomConversion::Impossible(_) => true,
    };
    resource.custom().is_some_and(is_asked)
}

/// Whether only a webhook can show this stored object.
pub(crate) fn needs_webhook(resource: &Resource, object: &Object) -> bool {
    needs_memory(resource) && resource.custom().is_some_and(|custom| !custom.is_own(object))
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
        | RegistryError::TimedOut
        | RegistryError::Internal(_)
        | RegistryError::Unreadable
        | RegistryError::Store(_) => {}
    }
    error
}
