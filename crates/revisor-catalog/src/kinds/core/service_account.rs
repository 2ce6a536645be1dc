//! ServiceAccounts: identities for processes. Nothing about them is validated but their metadata.

use revisor_object::{FieldError, Object};

use crate::{Part, Strategy};

pub(crate) struct ServiceAccounts;

impl Strategy for ServiceAccounts {
    fn validate(&self, _: &Object) -> Vec<FieldError> {
        Vec::new()
    }

    fn validate_update(&self, _: &Object, _: &Object, _: Part<'_>) -> Vec<FieldError> {
        Vec::new()
    }
}
