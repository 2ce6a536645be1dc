//! Storage version migrations: which resource is to be stored again, and how far that has come.

use revisor_object::names::{dns1035_label, dns1123_subdomain};
use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, Value};

use crate::checks::immutable;
use crate::kinds::conditions;
use crate::kinds::workload::{NOTHING, spec, status, text};
use crate::strategy::spec_and_metadata_or_status;
use crate::{Part, Places, Strategy};

const SPEC: FieldPath<'static> = FieldPath::root("spec");
const STATUS: FieldPath<'static> = FieldPath::root("status");
pub(super) const SUCCEEDED: &str = "Succeeded";
pub(super) const FAILED: &str = "Failed";

pub(crate) struct StorageVersionMigrations;

impl Strategy for StorageVersionMigrations {
    fn untouched(&self, part: Part<'_>) -> Places {
        spec_and_metadata_or_status(part)
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        let path = SPEC.child("resource");
        let of = spec(object).object("resource").unwrap_or(NOTHING);
        let (group, resource) = (text(of, "group"), text(of, "resource"));
        let at_resource = path.child("resource");
        let mut errors = FieldErrors::new();
        if resource.is_empty() {
            errors.push(FieldError::required(at_resource, "resource is required to be set"));
        } else {
            errors.extend(joined(at_resource, resource, dns1035_label(resource)));
        }
        if !group.is_empty() {
            errors.extend(joined(path.child("group"), group, dns1123_subdomain(group)));
        }
        errors
    }

    fn validate_update(&self, object: &Object, old: &Object, part: Part<'_>) -> FieldErrors {
        if part != Part::Whole {
            return validate_status(status(object), status(old));
        }
        let mut errors = self.validate(object);
        errors.extend(immutable(SPEC, object.get("spec"), old.get("spec")));
        errors
    }
}

/// All problems of a text as one error.
fn joined(path: FieldPath<'_>, text: &str, problems: Vec<&str>) -> Option<FieldError> {
    (!problems.is_empty()).then(|| FieldError::invalid(path, text, problems.join(",")))
}

fn validate_status(new: &Object, old: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let at_version = STATUS.child("resourceVersion");
    let (version, was) = (text(new, "resourceVersion"), text(old, "resourceVersion"));
    let is_version = version.bytes().all(|byte| byte.is_ascii_digit()) && !version.starts_with('0');
    if !is_version {
        let detail = format!("resource version is not well formed: {version}");
        errors.push(FieldError::invalid(at_version, version, detail));
    }
    let (path, list) = (STATUS.child("conditions"), new.array("conditions"));
    errors.extend(conditions::validate(path, list));
    if !was.is_empty() && was != version {
        errors.push(FieldError::invalid(at_version, version, "field is immutable"));
    }
    let mut refuse = |detail| errors.push(FieldError::invalid(path, BadValue::of(&list), detail));
    if is_true(new, SUCCEEDED) && is_true(new, FAILED) {
        refuse("Both success and failed conditions cannot be true at the same time");
    }
    if is_true(old, SUCCEEDED) && !is_true(new, SUCCEEDED) {
        refuse("Success condition cannot be set to false once it is true");
    }
    if is_true(old, FAILED) && !is_true(new, FAILED) {
        refuse("Failed condition cannot be set to false once it is true");
    }
    errors
}

/// Whether the first condition of a type is true.
pub(super) fn is_true(status: &Object, kind: &str) -> bool {
    let mut conditions = status.array("conditions").iter().filter_map(Value::as_object);
    conditions.find(|condition| text(condition, "type") == kind).is_some_and(|found| text(found, "status") == "True")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::{check, object};

    #[test]
    fn a_migration_names_a_resource() {
        for (resource, want) in [
            (r#"{"resource":"pods"}"#, vec![]),
            (r#"{"group":"apps","resource":"deployments"}"#, vec![]),
            ("{}", vec!["FieldValueRequired spec.resource.resource"]),
            (
                r#"{"group":"A","resource":"Pods"}"#,
                vec!["FieldValueInvalid spec.resource.resource", "FieldValueInvalid spec.resource.group"],
            ),
        ] {
            let migration = object(&format!(r#"{{"spec":{{"resource":{resource}}}}}"#));
            check(resource, &StorageVersionMigrations.validate(&migration), &want);
        }
        let (old, new) = (
            object(r#"{"spec":{"resource":{"resource":"pods"}}}"#),
            object(r#"{"spec":{"resource":{"resource":"nodes"}}}"#),
        );
        let errors = StorageVersionMigrations.validate_update(&new, &old, Part::Whole);
        check("another resource", &errors, &["FieldValueInvalid spec"]);
    }

    #[test]
    fn what_is_done_stays_done() {
        let condition = |kind: &str, truth: &str| {
            format!(
                r#"{{"type":"{kind}","status":"{truth}","reason":"R","lastTransitionTime":"2026-01-01T00:00:00Z"}}"#
            )
        };
        let version = |version: &str| format!(r#"{{"resourceVersion":"{version}"}}"#);
        let with = |conditions: &[String]| format!(r#"{{"conditions":[{}]}}"#, conditions.join(","));
        let (done, failed) = (condition(SUCCEEDED, "True"), condition(FAILED, "True"));
        let (at_version, at_conditions) =
            ("FieldValueInvalid status.resourceVersion", "FieldValueInvalid status.conditions");
        for (old, new, want) in [
            ("{}".to_owned(), version("7"), vec![]),
            ("{}".to_owned(), version("07"), vec![at_version]),
            (version("7"), version("8"), vec![at_version]),
            (version("7"), version("x"), vec![at_version, at_version]),
            (version("7"), "{}".to_owned(), vec![at_version]),
            (with(&[]), with(std::slice::from_ref(&done)), vec![]),
            (with(&[]), with(&[done.clone(), failed.clone()]), vec![at_conditions]),
            (with(std::slice::from_ref(&done)), with(&[condition(SUCCEEDED, "False")]), vec![at_conditions]),
            (with(&[failed]), with(&[done]), vec![at_conditions]),
        ] {
            check(&format!("{old} to {new}"), &validate_status(&object(&new), &object(&old)), &want);
        }
    }
}
