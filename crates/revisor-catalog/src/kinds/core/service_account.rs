//! ServiceAccounts: identities for processes. Nothing about them is validated but their metadata.

use revisor_object::{FieldErrors, Object};

use crate::{Part, Strategy};

pub(crate) struct ServiceAccounts;

impl Strategy for ServiceAccounts {
    fn validate(&self, _: &Object) -> FieldErrors {
        FieldErrors::new()
    }

    fn validate_update(&self, _: &Object, _: &Object, _: Part<'_>) -> FieldErrors {
        FieldErrors::new()
    }
}
