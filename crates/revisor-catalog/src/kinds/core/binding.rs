//! Bindings: never stored. To make one is to put a pod on a node, which the registry does.

use revisor_object::{FieldErrors, Object};

use crate::{Part, Strategy};

pub(crate) struct Bindings;

impl Strategy for Bindings {
    fn validate(&self, _: &Object) -> FieldErrors {
        FieldErrors::new()
    }

    fn validate_update(&self, _: &Object, _: &Object, _: Part<'_>) -> FieldErrors {
        FieldErrors::new()
    }
}
