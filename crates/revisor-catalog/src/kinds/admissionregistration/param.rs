//! The parameters of policies: of which kind they are, and which objects a binding passes.

use revisor_object::names::{dns1035_label, dns1123_subdomain, path_segment_name};
use revisor_object::{FieldError, FieldErrors, FieldPath, LabelSelectorOptions, Object, StructuredLabelSelector};

use crate::checks::{problems, required_one_of};

/// What is wrong with the kind of a policy's parameters.
pub(super) fn validate_param_kind(path: FieldPath<'_>, kind: &Object, errors: &mut FieldErrors) {
    let at_version = path.child("apiVersion");
    let api_version = kind.str("apiVersion").unwrap_or_default();
    let mut invalid = |value: &str, problems: &[&str]| {
        if !problems.is_empty() {
            errors.push(FieldError::invalid(at_version, value, problems.join(",")));
        }
    };
    match api_version.split_once('/') {
        Some((_, version)) if version.contains('/') => {
            invalid(api_version, &[&*format!("unexpected GroupVersion string: {api_version}")]);
        }
        split => {
            let (group, version) = split.unwrap_or(("", api_version));
            if !group.is_empty() {
                invalid(group, &dns1123_subdomain(group));
            }
            match (api_version, version) {
                ("", _) => errors.push(FieldError::required(at_version, "")),
                (_, "") => invalid(api_version, &["version must be specified"]),
                _ => invalid(version, &dns1035_label(version)),
            }
        }
    }
    let at_kind = path.child("kind");
    let name = kind.str("kind").unwrap_or_default();
    if name.is_empty() {
        errors.push(FieldError::required(at_kind, ""));
        return;
    }
    let problems = dns1035_label(&name.to_lowercase());
    if !problems.is_empty() {
        let detail = format!("may have mixed case, but should otherwise match: {}", problems.join(","));
        errors.push(FieldError::invalid(at_kind, name, detail));
    }
}

/// What is wrong with a binding's reference to parameters.
pub(super) fn validate_param_ref(path: FieldPath<'_>, reference: &Object, errors: &mut FieldErrors) {
    const EITHER: &str = "name and selector are mutually exclusive";
    let name = reference.str("name").unwrap_or_default();
    let selector = reference.object("selector");
    if !name.is_empty() {
        errors.extend(problems(path.child("name"), name, path_segment_name(name)));
        if selector.is_some() {
            errors.push(FieldError::forbidden(path.child("name"), EITHER));
        }
    }
    if let Some(selector) = selector {
        let selector = StructuredLabelSelector::new(selector);
        errors.extend(selector.validate(&path.child("selector"), LabelSelectorOptions::default()));
        if !name.is_empty() {
            errors.push(FieldError::forbidden(path.child("selector"), EITHER));
        }
    } else if name.is_empty() {
        errors.push(FieldError::required(path, "one of name or selector must be specified"));
    }
    let action = reference.str("parameterNotFoundAction").unwrap_or_default();
    errors.extend(required_one_of(path.child("parameterNotFoundAction"), action, &["Deny", "Allow"]));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::{check, object};

    #[test]
    fn kinds_of_parameters() {
        for (kind, want) in [
            (r#"{"apiVersion":"v1","kind":"ConfigMap"}"#, &[][..]),
            (r#"{"apiVersion":"a.example/v1","kind":"K"}"#, &[]),
            ("{}", &["FieldValueRequired p.apiVersion", "FieldValueRequired p.kind"]),
            (r#"{"apiVersion":"a/b/c","kind":"K"}"#, &["FieldValueInvalid p.apiVersion"]),
            (r#"{"apiVersion":"a/","kind":"K"}"#, &["FieldValueInvalid p.apiVersion"]),
            (
                r#"{"apiVersion":"A/1","kind":"K"}"#,
                &["FieldValueInvalid p.apiVersion", "FieldValueInvalid p.apiVersion"],
            ),
            (r#"{"apiVersion":"v1","kind":"K!"}"#, &["FieldValueInvalid p.kind"]),
        ] {
            let mut errors = FieldErrors::new();
            validate_param_kind(FieldPath::root("p"), &object(kind), &mut errors);
            check(kind, &errors, want);
        }
    }

    #[test]
    fn parameters_are_named_or_selected() {
        for (reference, want) in [
            (r#"{"name":"p","parameterNotFoundAction":"Deny"}"#, &[][..]),
            (r#"{"selector":{},"parameterNotFoundAction":"Allow"}"#, &[]),
            (r#"{"parameterNotFoundAction":"Deny"}"#, &["FieldValueRequired p"]),
            (r#"{"name":"p"}"#, &["FieldValueRequired p.parameterNotFoundAction"]),
            (
                r#"{"name":"a/b","parameterNotFoundAction":"Panic"}"#,
                &["FieldValueInvalid p.name", "FieldValueNotSupported p.parameterNotFoundAction"],
            ),
            (
                r#"{"name":"p","selector":{},"parameterNotFoundAction":"Deny"}"#,
                &["FieldValueForbidden p.name", "FieldValueForbidden p.selector"],
            ),
        ] {
            let mut errors = FieldErrors::new();
            validate_param_ref(FieldPath::root("p"), &object(reference), &mut errors);
            check(reference, &errors, want);
        }
    }
}
