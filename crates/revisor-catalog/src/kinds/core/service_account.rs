//! ServiceAccounts: identities for processes. Nothing about them is validated but their metadata.

use revisor_object::{FieldErrors, Object, Value};

use crate::{Circumstances, Part, Strategy};

pub(crate) struct ServiceAccounts;

impl Strategy for ServiceAccounts {
    fn settle(&self, object: &mut Object, _: Option<&Object>, _: Circumstances<'_>) {
        // Of the secrets only their names are kept (upstream: `cleanSecretReferences`).
        for secret in object.array_mut("secrets").into_iter().flatten().filter_map(Value::as_object_mut) {
            let name = secret.remove("name");
            *secret = Object::new();
            secret.set("name", name);
        }
    }

    fn validate(&self, _: &Object) -> FieldErrors {
        FieldErrors::new()
    }

    fn validate_update(&self, _: &Object, _: &Object, _: Part<'_>) -> FieldErrors {
        FieldErrors::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Requester;
    use crate::kinds::tests::object;

    #[test]
    fn of_secrets_only_their_names_are_kept() {
        let mut account =
            object(r#"{"secrets":[{"name":"a","kind":"Secret","namespace":"x","uid":"y"},{"kind":"b"}]}"#);
        let circumstances = Circumstances { now: "", requester: Requester::default() };
        ServiceAccounts.settle(&mut account, None, circumstances);
        assert_eq!(account, object(r#"{"secrets":[{"name":"a"},{}]}"#));
    }
}
