//! The service account `default` of every namespace.

use revisor_object::{Object, Value};

use crate::in_every_namespace::Wanted;

/// What the controller keeps in every namespace.
pub(crate) struct DefaultServiceAccount;

impl Wanted for DefaultServiceAccount {
    fn plural(&self) -> &'static str {
        "serviceaccounts"
    }

    fn name(&self) -> &'static str {
        "default"
    }

    fn fresh(&self) -> Object {
        let metadata: Object = [("name", Value::from(self.name()))].into_iter().collect();
        [("metadata", Value::from(metadata))].into_iter().collect()
    }

    fn mend(&self, _: &mut Object) -> bool {
        // What people make of their account is theirs.
        false
    }
}
