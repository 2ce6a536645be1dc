//! Names that are kept for webhooks and policies in files. Whether such files are read is a feature; without it, the
//! names are only advised against.

use revisor_object::{FieldError, Object, Value};

use crate::{Feature, Features};

const SUFFIX: &str = ".static.k8s.io";

/// What is wrong with the name of a new object.
pub(super) fn validate(object: &Object, features: Features) -> Option<FieldError> {
    let name = reserved(object).filter(|_| features.has(Feature::ManifestBasedAdmissionControlConfig))?;
    Some(FieldError::invalid("metadata.name", name, advice()))
}

/// What is unwise about the name of an object, new or in place of an old one.
pub(super) fn warnings(object: &Object, old: Option<&Object>, features: Features) -> Vec<String> {
    let is_refused = old.is_none() && features.has(Feature::ManifestBasedAdmissionControlConfig);
    let name = reserved(object).filter(|_| !is_refused);
    name.map(|_| format!("metadata.name: {}", advice())).into_iter().collect()
}

fn reserved(object: &Object) -> Option<&str> {
    let name = object.at(&["metadata", "name"]).and_then(Value::as_str)?;
    name.ends_with(SUFFIX).then_some(name)
}

fn advice() -> String {
    format!(
        "names ending with {SUFFIX:?} are reserved for static manifest-based configurations and cannot be managed via \
         the API"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::{object, terms};

    #[test]
    fn reserved_names_are_refused_or_advised_against() {
        let (ours, theirs) =
            (object(r#"{"metadata":{"name":"a"}}"#), object(r#"{"metadata":{"name":"a.static.k8s.io"}}"#));
        let off = terms().features.without(Feature::ManifestBasedAdmissionControlConfig);
        let on = off.with(Feature::ManifestBasedAdmissionControlConfig);
        for (features, object, is_refused, new, changed) in [
            (off, &ours, false, 0, 0),
            (off, &theirs, false, 1, 1),
            (on, &ours, false, 0, 0),
            (on, &theirs, true, 0, 1),
        ] {
            assert_eq!(validate(object, features).is_some(), is_refused);
            assert_eq!(warnings(object, None, features).len(), new);
            assert_eq!(warnings(object, Some(object), features).len(), changed);
        }
    }
}
