//! ServiceAccounts: identities for processes. Nothing about them is validated but their metadata.

use revisor_object::{FieldErrors, Object, Value};

use crate::{Circumstances, Part, Strategy};

/// Makes an account refuse pods that mount other secrets than its own.
const ENFORCE_MOUNTABLE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";

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

    /// Upstream: `warnIfHasEnforceMountableSecretsAnnotation`.
    fn warnings(&self, object: &Object, old: Option<&Object>) -> Vec<String> {
        let is_enforced =
            |account: &Object| account.at(&["metadata", "annotations", ENFORCE_MOUNTABLE_SECRETS]).is_some();
        if !is_enforced(object) || old.is_some_and(is_enforced) {
            return Vec::new();
        }
        vec![format!(
            "metadata.annotations[{ENFORCE_MOUNTABLE_SECRETS}]: deprecated in v1.32+; prefer separate namespaces to \
             isolate access to mounted secrets"
        )]
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
    fn only_who_begins_to_enforce_mountable_secrets_is_warned() {
        let plain = object("{}");
        let enforcing = object(r#"{"metadata":{"annotations":{"kubernetes.io/enforce-mountable-secrets":""}}}"#);
        for (object, old, want) in [
            (&plain, None, 0),
            (&enforcing, None, 1),
            (&enforcing, Some(&plain), 1),
            (&enforcing, Some(&enforcing), 0),
            (&plain, Some(&enforcing), 0),
        ] {
            assert_eq!(ServiceAccounts.warnings(object, old).len(), want, "{object:?} {old:?}");
        }
    }

    #[test]
    fn of_secrets_only_their_names_are_kept() {
        let mut account =
            object(r#"{"secrets":[{"name":"a","kind":"Secret","namespace":"x","uid":"y"},{"kind":"b"}]}"#);
        let circumstances = Circumstances { now: "", requester: Requester::default() };
        ServiceAccounts.settle(&mut account, None, circumstances);
        assert_eq!(account, object(r#"{"secrets":[{"name":"a"},{}]}"#));
    }
}
