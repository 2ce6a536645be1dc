//! Resource claims: what is asked for, which devices were allocated for it, and who uses them.

mod status;

use revisor_object::{FieldError, FieldPath, Object};

use super::device_claim;
use super::selectors::Selectors;
use crate::checks::{immutable, put_back};
use crate::strategy::spec_and_metadata_or_status;
use crate::{Circumstances, Part, Places, Strategy};

const SPEC: FieldPath<'static> = FieldPath::root("spec");

pub(crate) struct ResourceClaims {
    pub(super) selectors: Selectors,
}

impl Strategy for ResourceClaims {
    fn default(&self, object: &mut Object) {
        device_claim::default_spec(object.object_mut("spec"));
    }

    fn untouched(&self, part: Part<'_>) -> Places {
        spec_and_metadata_or_status(part)
    }

    fn prepare_update(&self, object: &mut Object, old: &Object, part: Part<'_>, _: Circumstances<'_>) {
        put_back(object, old, self.untouched(part));
        if part != Part::Whole {
            status::forget_deallocated(object, old);
        }
    }

    fn validate(&self, object: &Object) -> Vec<FieldError> {
        let empty = Object::new();
        device_claim::validate_spec(SPEC, object.object("spec").unwrap_or(&empty), &self.selectors)
    }

    fn validate_update(&self, object: &Object, old: &Object, part: Part<'_>) -> Vec<FieldError> {
        match part {
            // What cannot change need not be looked at again.
            Part::Whole => immutable(SPEC, object.get("spec"), old.get("spec")).into_iter().collect(),
            Part::Subresource(_) => status::validate(object, old),
        }
    }
}

#[cfg(test)]
mod tests;
