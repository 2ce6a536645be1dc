//! [`NextWrite`]: the next write of an object, by somebody who changes nothing about it.
//!
//! It takes the steps of [`write`](crate::write) in their order, as far as they are a matter of the object alone. What
//! other objects have a say in (quotas, policies, who manages what) is left out.

use std::collections::HashSet;
use std::sync::Arc;

use revisor_catalog::{Circumstances, Part, Requester, Resource, Unconverted};
use revisor_object::{FieldErrors, Object, Value, Warnings, clip_joined};

use super::{Origin, RehearsalEffect, RehearsalFinding};
use crate::Decoded;
use crate::write::{check_updated_metadata, encode};

/// How many places are named at which an object would be stored otherwise.
const NAMED: usize = 5;

/// What comes of a write that changes nothing.
#[derive(Debug, Default)]
pub(super) struct NextWrite {
    errors: FieldErrors,
    /// Why it cannot be done at all.
    failure: Option<String>,
    warnings: Vec<String>,
    /// In which way it is stored otherwise than it was.
    difference: Option<String>,
}

impl NextWrite {
    /// The next write of a custom object through a version.
    pub(super) fn of_custom(resource: &Arc<Resource>, stored: &Object, origin: Origin, now: &str) -> NextWrite {
        let Some(custom) = resource.custom() else { return NextWrite::default() };
        let (shown, beneath) = custom.show_to_write(stored.clone());
        let mut old = match shown {
            Ok(old) => old,
            Err(unconverted) => return NextWrite::failed(unconverted),
        };
        old.remove("apiVersion");
        old.remove("kind");
        let (mut object, mut next) = NextWrite::validated(resource, &old, now);
        object.insert("apiVersion", resource.api_version.as_str());
        object.insert("kind", resource.kind.as_str());
        match custom.lay_down(object, &beneath) {
            // What a live server shows in another version, or keeps beside what it shows, is stored in nobody knows which
            // way.
            Ok(_) if origin == Origin::Api && stored.str("apiVersion") != Some(custom.storage_version()) => {}
            Ok(laid_down) => next.compare(stored, encode(resource, &laid_down.stored).bytes()),
            Err(Unconverted::Failed(why)) => next.failure = Some(why),
            Err(Unconverted::Asks { .. }) => {}
        }
        next
    }

    /// The next write of an object of a built-in kind, in the version in which it is stored.
    pub(super) fn of_built_in(resource: &Arc<Resource>, stored: &Object, now: &str) -> NextWrite {
        let (object, mut next) = NextWrite::validated(resource, stored, now);
        next.compare(stored, encode(resource, &object).bytes());
        next
    }

    /// Prepares and validates an object in its own place.
    fn validated(resource: &Arc<Resource>, old: &Object, now: &str) -> (Object, NextWrite) {
        let circumstances = Circumstances { now, requester: Requester::default() };
        let mut object = old.clone();
        resource.default(&mut object);
        resource.complete(&mut object);
        resource.prepare_update(&mut object, old, Part::Whole, circumstances);
        let mut warnings = Warnings::default();
        let mut errors = check_updated_metadata(resource, &object, old, Part::Whole);
        let strategy = &resource.strategy;
        errors.extend(strategy.validate_update_warning(&object, old, Part::Whole, circumstances, &mut warnings));
        warnings.extend(strategy.warnings(&object, Some(old)));
        let warnings = warnings.iter().map(ToString::to_string).collect();
        (object, NextWrite { errors, warnings, ..NextWrite::default() })
    }

    fn failed(unconverted: Unconverted) -> NextWrite {
        let failure = match unconverted {
            Unconverted::Failed(why) => Some(why),
            // Only the webhook knows, and it is not asked: it may be another one by then.
            Unconverted::Asks { .. } => None,
        };
        NextWrite { failure, ..NextWrite::default() }
    }

    fn compare(&mut self, stored: &Object, new: &[u8]) {
        if let Ok(new) = Decoded::stored(new) {
            self.difference = difference(stored, &new);
        }
    }

    /// Why it is refused.
    pub(super) fn refusal(&self) -> Option<String> {
        let mut told = HashSet::new();
        let errors = self.errors.iter().map(ToString::to_string).chain(self.failure.clone());
        let errors: Vec<String> = errors.filter(|error| told.insert(error.clone())).collect();
        (!errors.is_empty()).then(|| clip_joined(errors, "; "))
    }

    /// Adds what else comes of it: what it is refused for or shows less of is known already, and what is not stored is not
    /// stored otherwise.
    pub(super) fn tell(
        self,
        found: &mut Vec<RehearsalFinding>,
        finding: impl Fn(RehearsalEffect, String) -> RehearsalFinding,
    ) {
        let is_harmed = !found.is_empty();
        if !self.warnings.is_empty() {
            found.push(finding(RehearsalEffect::Warned, clip_joined(&self.warnings, "; ")));
        }
        if let Some(difference) = self.difference.filter(|_| !is_harmed) {
            found.push(finding(RehearsalEffect::StoredOtherwise, difference));
        }
    }
}

/// How two objects differ, but for their revision.
fn difference(stored: &Object, new: &Object) -> Option<String> {
    let version = |object: &Object| object.str("apiVersion").unwrap_or_default().to_owned();
    let (before, after) = (version(stored), version(new));
    let mut places = Vec::new();
    let without_type = |object: &Object| {
        let mut object = object.clone();
        object.remove("apiVersion");
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("resourceVersion");
        }
        Value::Object(object)
    };
    compare(&without_type(stored), &without_type(new), &mut String::new(), &mut places);
    let mut said = Vec::new();
    if before != after {
        said.push(format!("as {after} instead of {before}"));
    }
    if !places.is_empty() {
        let more = places.len() > NAMED;
        places.truncate(NAMED);
        said.push(format!("with changes at {}{}", places.join(", "), if more { " and more" } else { "" }));
    }
    (!said.is_empty()).then(|| said.join(", "))
}

/// Notes the places at which two values differ, one more than are named.
fn compare(old: &Value, new: &Value, path: &mut String, places: &mut Vec<String>) {
    if old == new || places.len() > NAMED {
        return;
    }
    let length = path.len();
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let added = new.iter().map(|(name, _)| name).filter(|name| !old.contains(name));
            for name in old.iter().map(|(name, _)| name).chain(added) {
                path.push('.');
                path.push_str(name);
                compare(old.get(name).unwrap_or(&Value::Null), new.get(name).unwrap_or(&Value::Null), path, places);
                path.truncate(length);
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (at, (old, new)) in old.iter().zip(new).enumerate() {
                path.push_str(&format!("[{at}]"));
                compare(old, new, path, places);
                path.truncate(length);
            }
        }
        _ => places.push(path.clone()),
    }
}
