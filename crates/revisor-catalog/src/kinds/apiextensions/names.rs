//! The names of a defined kind.

use revisor_object::names::dns1035_label;
use revisor_object::{FieldError, FieldErrors, FieldPath, Object};

use crate::kinds::members::{text, texts};

/// What is wrong with names, those that are asked for and those that were accepted.
pub(super) fn validate(path: FieldPath<'_>, names: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for name in ["plural", "singular"] {
        let value = text(names, name);
        if !value.is_empty() {
            errors.extend(label(path.child(name), value, value, ""));
        }
    }
    for name in ["kind", "listKind"] {
        let value = text(names, name);
        if !value.is_empty() {
            let prefix = "may have mixed case, but should otherwise match: ";
            errors.extend(label(path.child(name), value, &value.to_lowercase(), prefix));
        }
    }
    let labels = |name| {
        let list = path.child(name);
        texts(names, name).filter_map(|(at, value)| label(list.index(at), value, value, "")).collect::<Vec<_>>()
    };
    errors.extend(labels("shortNames"));
    let (kind, list_kind) = (text(names, "kind"), text(names, "listKind"));
    if !kind.is_empty() && kind == list_kind {
        let detail = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(path.child("listKind"), list_kind, detail));
    }
    errors.extend(labels("categories"));
    errors
}

fn label(path: FieldPath<'_>, value: &str, checked: &str, prefix: &str) -> Option<FieldError> {
    let problems = dns1035_label(checked);
    (!problems.is_empty()).then(|| FieldError::invalid(path, value, format!("{prefix}{}", problems.join(","))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::{check, object};

    #[test]
    fn names_are_labels() {
        for (names, want) in [
            (
                r#"{"plural":"things","singular":"thing","kind":"Thing","listKind":"ThingList","shortNames":["t"]}"#,
                &[][..],
            ),
            ("{}", &[]),
            (
                r#"{"plural":"Things","singular":"1","kind":"A_b","listKind":"A b","shortNames":["ok","No"],"categories":["-"]}"#,
                &[
                    "FieldValueInvalid n.plural",
                    "FieldValueInvalid n.singular",
                    "FieldValueInvalid n.kind",
                    "FieldValueInvalid n.listKind",
                    "FieldValueInvalid n.shortNames[1]",
                    "FieldValueInvalid n.categories[0]",
                ],
            ),
            (r#"{"kind":"A","listKind":"A"}"#, &["FieldValueInvalid n.listKind"]),
        ] {
            check(names, &validate(FieldPath::root("n"), &object(names)), want);
        }
    }
}
