//! The rules that say which writes a webhook or policy is asked about.

use std::collections::HashSet;

use revisor_object::names::path_segment_name;
use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, Value};

use crate::checks::{one_of, problems, required};

const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const SCOPES: [&str; 3] = ["*", "Cluster", "Namespaced"];

/// The operations whose objects can be changed.
const MUTABLE_OPERATIONS: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];

/// What is wrong with rules.
pub(super) fn validate_rules(path: FieldPath<'_>, rules: &[Value], errors: &mut FieldErrors) {
    for (at, rule) in rules.iter().enumerate() {
        if let Some(rule) = rule.as_object() {
            validate_rule(path.index(at), rule, errors);
        }
    }
}

/// What is wrong with rules that may name single objects.
pub(super) fn validate_named_rules(path: FieldPath<'_>, rules: &[Value], errors: &mut FieldErrors) {
    for (at, rule) in rules.iter().enumerate() {
        let Some(rule) = rule.as_object() else { continue };
        let path = path.index(at);
        let names = path.child("resourceNames");
        let mut seen = HashSet::new();
        for (at, name) in texts(rule, "resourceNames").enumerate() {
            errors.extend(problems(names.index(at), name, path_segment_name(name)));
            if !seen.insert(name) {
                errors.push(FieldError::duplicate(names.index(at), name));
            }
        }
        validate_rule(path, rule, errors);
    }
}

/// Deletions have no object that could be changed.
pub(super) fn validate_mutable(path: FieldPath<'_>, rules: &[Value], errors: &mut FieldErrors) {
    let path = path.child("operations");
    for operation in rules.iter().filter_map(Value::as_object).flat_map(|rule| texts(rule, "operations")) {
        errors.extend(one_of(path, operation, &MUTABLE_OPERATIONS));
    }
}

fn texts<'a>(rule: &'a Object, name: &str) -> impl ExactSizeIterator<Item = &'a str> + Clone {
    rule.array(name).iter().map(|value| value.as_str().unwrap_or_default())
}

fn validate_rule(path: FieldPath<'_>, rule: &Object, errors: &mut FieldErrors) {
    validate_values(path, rule, "operations", "operations", errors);
    let operations = path.child("operations");
    for (at, operation) in texts(rule, "operations").enumerate() {
        errors.extend(one_of(operations.index(at), operation, &OPERATIONS));
    }
    validate_values(path, rule, "apiGroups", "API groups", errors);
    validate_values(path, rule, "apiVersions", "API versions", errors);
    let versions = path.child("apiVersions");
    for (at, version) in texts(rule, "apiVersions").enumerate() {
        errors.extend(required(versions.index(at), version));
    }
    validate_resources(path.child("resources"), rule, errors);
    if let Some(scope) = rule.str("scope") {
        errors.extend(one_of(path.child("scope"), scope, &SCOPES));
    }
}

/// There must be some values, and no others beside an asterisk.
fn validate_values(path: FieldPath<'_>, rule: &Object, name: &str, what: &str, errors: &mut FieldErrors) {
    let mut values = texts(rule, name);
    if values.len() == 0 {
        errors.push(FieldError::required(path.child(name), ""));
    }
    if values.len() > 1 && values.any(|value| value == "*") {
        let detail = format!("if '*' is present, must not specify other {what}");
        errors.push(FieldError::invalid(path.child(name), BadValue::of(&rule.get(name)), detail));
    }
}

/// Resources and their subresources: what an asterisk covers is not named again.
fn validate_resources(path: FieldPath<'_>, rule: &Object, errors: &mut FieldErrors) {
    let resources = texts(rule, "resources");
    let count = resources.len();
    if count == 0 {
        errors.push(FieldError::required(path, ""));
    }
    let (mut with_all_parts, mut of_all_resources) = (HashSet::new(), HashSet::new());
    let (mut has_everything, mut has_all_resources, mut ends_in_bare_name) = (false, false, false);
    for (at, text) in resources.enumerate() {
        if text.is_empty() {
            errors.push(FieldError::required(path.index(at), ""));
            continue;
        }
        has_everything |= text == "*/*";
        has_all_resources |= text == "*";
        let Some((resource, part)) = text.split_once('/') else {
            // As in the original, the last of the names without a subresource decides.
            ends_in_bare_name = text != "*";
            continue;
        };
        if with_all_parts.contains(resource) {
            let detail = format!("if '{resource}/*' is present, must not specify {text}");
            errors.push(FieldError::invalid(path.index(at), text, detail));
        }
        if of_all_resources.contains(part) {
            let detail = format!("if '*/{part}' is present, must not specify {text}");
            errors.push(FieldError::invalid(path.index(at), text, detail));
        }
        if part == "*" {
            with_all_parts.insert(resource);
        }
        if resource == "*" {
            of_all_resources.insert(part);
        }
    }
    let mut invalid = |detail| errors.push(FieldError::invalid(path, BadValue::of(&rule.get("resources")), detail));
    if count > 1 && has_everything {
        invalid("if '*/*' is present, must not specify other resources");
    }
    if has_all_resources && ends_in_bare_name {
        invalid("if '*' is present, must not specify other resources without subresources");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::{check, object};

    fn errors_of(change: (&str, &str)) -> FieldErrors {
        let mut rule =
            object(r#"{"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"]}"#);
        let changed = object(&format!(r#"{{"value":{}}}"#, change.1));
        rule.set(change.0, changed.get("value").cloned());
        let mut errors = FieldErrors::new();
        validate_named_rules(FieldPath::root("r"), &[rule.into()], &mut errors);
        errors
    }

    #[test]
    fn rules_name_what_an_asterisk_does_not_cover() {
        for (field, value, want) in [
            ("resources", r#"["pods","pods/log"]"#, &[][..]),
            ("resources", r#"["*","pods/log"]"#, &[]),
            ("resources", "[]", &["FieldValueRequired r[0].resources"]),
            ("resources", r#"["a",""]"#, &["FieldValueRequired r[0].resources[1]"]),
            ("resources", r#"["a/*","a/b"]"#, &["FieldValueInvalid r[0].resources[1]"]),
            ("resources", r#"["*/b","a/b"]"#, &["FieldValueInvalid r[0].resources[1]"]),
            ("resources", r#"["a/b","a/*"]"#, &[]),
            ("resources", r#"["*/*","a"]"#, &["FieldValueInvalid r[0].resources"]),
            ("resources", r#"["*","a"]"#, &["FieldValueInvalid r[0].resources"]),
            ("resources", r#"["a","*"]"#, &[]),
            ("operations", "[]", &["FieldValueRequired r[0].operations"]),
            ("operations", r#"["*","CREATE"]"#, &["FieldValueInvalid r[0].operations"]),
            ("operations", r#"["create"]"#, &["FieldValueNotSupported r[0].operations[0]"]),
            ("apiGroups", r#"["*","a"]"#, &["FieldValueInvalid r[0].apiGroups"]),
            (
                "apiVersions",
                r#"["*",""]"#,
                &["FieldValueInvalid r[0].apiVersions", "FieldValueRequired r[0].apiVersions[1]"],
            ),
            ("scope", r#""Some""#, &["FieldValueNotSupported r[0].scope"]),
            (
                "resourceNames",
                r#"["a","a","b/c"]"#,
                &["FieldValueDuplicate r[0].resourceNames[1]", "FieldValueInvalid r[0].resourceNames[2]"],
            ),
        ] {
            check(&format!("{field} {value}"), &errors_of((field, value)), want);
        }
    }
}
