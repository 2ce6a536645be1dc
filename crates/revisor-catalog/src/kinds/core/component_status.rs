//! Component statuses: how the other parts of a control plane are doing. They are found out when somebody asks and are
//! never stored, so there is nothing to check.

use revisor_object::{FieldErrors, Object};

use crate::{Part, Strategy};

pub(crate) struct ComponentStatuses;

impl Strategy for ComponentStatuses {
    fn validate(&self, _: &Object) -> FieldErrors {
        FieldErrors::new()
    }

    fn validate_update(&self, _: &Object, _: &Object, _: Part<'_>) -> FieldErrors {
        FieldErrors::new()
    }
}
