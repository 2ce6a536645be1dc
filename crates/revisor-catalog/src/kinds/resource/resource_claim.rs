//! Resource claims: what is asked for, which devices were allocated for it, and who uses them.

mod status;

use revisor_object::{FieldErrors, FieldPath, Object};

use super::device_claim;
use super::selectors::Selectors;
use crate::checks::immutable;
use crate::strategy::spec_and_metadata_or_status;
use crate::{Features, Part, Places, Strategy};

const SPEC: FieldPath<'static> = FieldPath::root("spec");

pub(crate) struct ResourceClaims {
    pub(super) selectors: Selectors,
    pub(super) features: Features,
}

impl Strategy for ResourceClaims {
    fn default(&self, object: &mut Object) {
        device_claim::default_spec(object.object_mut("spec"));
    }

    fn untouched(&self, part: Part<'_>) -> Places {
        spec_and_metadata_or_status(part)
    }

    fn settle_status(&self, object: &mut Object, old: &Object) {
        status::forget_deallocated(object, old);
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        let empty = Object::new();
        device_claim::validate_spec(SPEC, object.object("spec").unwrap_or(&empty), &self.selectors, self.features)
    }

    fn validate_update(&self, object: &Object, old: &Object, part: Part<'_>) -> FieldErrors {
        match part {
            // What cannot change need not be looked at again.
            Part::Whole => immutable(SPEC, object.get("spec"), old.get("spec")).into_iter().collect(),
            Part::Subresource(_) => status::validate(object, old),
        }
    }
}

#[cfg(test)]
mod tests;
