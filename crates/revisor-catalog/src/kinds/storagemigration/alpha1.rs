//! Migrations as `v1alpha1` has them, which releases before 1.35 know: the resource has a version, and conditions say when
//! they were updated. No later release can read it, so here alone the shape in which objects are stored depends on the
//! release (`conversion` of the kinds).

use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, Value};

use super::storage_version_migration::{FAILED, SUCCEEDED, is_true};
use crate::conversion::Conversion;
use crate::kinds::conditions;
use crate::kinds::workload::{NOTHING, spec, status, text};
use crate::strategy::spec_and_metadata_or_status;
use crate::{Part, Places, Strategy};

const SPEC: FieldPath<'static> = FieldPath::root("spec");
const STATUS: FieldPath<'static> = FieldPath::root("status");
const RUNNING: &str = "Running";

/// When a condition was written, in this version and in later ones.
const UPDATED: &str = "lastUpdateTime";
const CHANGED: &str = "lastTransitionTime";

pub(crate) struct FirstMigrations;

impl Strategy for FirstMigrations {
    fn untouched(&self, part: Part<'_>) -> Places {
        spec_and_metadata_or_status(part)
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        let (path, of) = (SPEC.child("resource"), resource(object));
        let demand = |name: &'static str| {
            let is_missing = text(of, name).is_empty();
            is_missing.then(|| FieldError::required(path.child(name), format!("{name} is required")))
        };
        let mut errors = FieldErrors::new();
        errors.extend(["resource", "version"].into_iter().filter_map(demand));
        errors
    }

    fn validate_update(&self, object: &Object, old: &Object, part: Part<'_>) -> FieldErrors {
        if part != Part::Whole {
            return validate_status(status(object), status(old));
        }
        // One that was written by a later release in the meantime has no version any more.
        let has_version = !text(resource(old), "version").is_empty();
        let mut errors = if has_version { self.validate(object) } else { FieldErrors::new() };
        let (new, old) = (resource(object), resource(old));
        // The original names them without what they are in.
        for name in ["group", "version", "resource"] {
            if text(new, name) != text(old, name) {
                errors.push(FieldError::invalid(FieldPath::root(name), text(new, name), "field is immutable"));
            }
        }
        errors
    }
}

fn resource(object: &Object) -> &Object {
    spec(object).object("resource").unwrap_or(NOTHING)
}

fn validate_status(new: &Object, old: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let at_version = STATUS.child("resourceVersion");
    let (version, was) = (text(new, "resourceVersion"), text(old, "resourceVersion"));
    match version.parse::<i64>() {
        _ if version.is_empty() => {}
        Ok(number) if number < 0 => {
            errors.push(FieldError::invalid(at_version, number, "must be greater than or equal to 0"));
        }
        Ok(_) => {}
        Err(_) => {
            let detail = format!(
                "failed to parse resource version {version:?}: strconv.ParseInt: parsing {version:?}: invalid syntax"
            );
            errors.push(FieldError::invalid(at_version, version, detail));
        }
    }
    let (path, list) = (STATUS.child("conditions"), new.array("conditions"));
    errors.extend(conditions::validate_told(path, list, UPDATED));
    if !was.is_empty() && was != version {
        errors.push(FieldError::invalid(at_version, version, "cannot be updated"));
    }
    let is = |kind| is_true(new, kind);
    let was = |kind| is_true(old, kind);
    for (is_wrong, detail) in [
        (is(SUCCEEDED) && is(FAILED), "Both success and failed conditions cannot be true at the same time"),
        (is(SUCCEEDED) && is(RUNNING), "Running condition cannot be true when success condition is true"),
        (is(FAILED) && is(RUNNING), "Running condition cannot be true when failed condition is true"),
        (was(SUCCEEDED) && !is(SUCCEEDED), "Success condition cannot be set to false once it is true"),
        (was(FAILED) && !is(FAILED), "Failed condition cannot be set to false once it is true"),
    ] {
        if is_wrong {
            errors.push(FieldError::invalid(path, BadValue::of(&list), detail));
        }
    }
    errors
}

/// Between this version and later ones. What only this version has goes: later releases need neither, and there is no
/// way back to a release that has it but to delete migrations, which are over by then.
pub(crate) struct FirstVersion;

impl Conversion for FirstVersion {
    fn to_stored(&self, object: &mut Object) {
        if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
            spec.remove("continueToken");
            if let Some(resource) = spec.get_mut("resource").and_then(Value::as_object_mut) {
                resource.remove("version");
                // Later versions always say which group, also if it has no name; they compare it.
                if !resource.contains("group") {
                    resource.insert("group", "");
                }
            }
        }
        each_condition(object, |condition| {
            let time = condition.remove(UPDATED);
            condition.set(CHANGED, time);
        });
    }

    fn to_shown(&self, object: &mut Object) {
        let spec = object.get_mut("spec").and_then(Value::as_object_mut);
        let resource = spec.and_then(|spec| spec.get_mut("resource")).and_then(Value::as_object_mut);
        if let Some(resource) = resource.filter(|resource| resource.str("group") == Some("")) {
            resource.remove("group");
        }
        each_condition(object, |condition| {
            condition.remove("observedGeneration");
            let time = condition.remove(CHANGED);
            condition.set(UPDATED, time);
        });
    }
}

fn each_condition(object: &mut Object, change: impl Fn(&mut Object)) {
    let status = object.get_mut("status").and_then(Value::as_object_mut);
    let conditions = status.and_then(|status| status.array_mut("conditions"));
    conditions.into_iter().flatten().filter_map(Value::as_object_mut).for_each(change);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::{check, object};

    #[test]
    fn a_migration_of_old_names_a_resource_with_its_version() {
        let of = |resource: &str| object(&format!(r#"{{"spec":{{"resource":{resource}}}}}"#));
        for (resource, want) in [
            (r#"{"resource":"pods","version":"v1"}"#, vec![]),
            (r#"{"resource":"pods"}"#, vec!["FieldValueRequired spec.resource.version"]),
            ("{}", vec!["FieldValueRequired spec.resource.resource", "FieldValueRequired spec.resource.version"]),
        ] {
            check(resource, &FirstMigrations.validate(&of(resource)), &want);
        }
        let (old, new) = (of(r#"{"resource":"pods","version":"v1"}"#), of(r#"{"resource":"pods","version":"v2"}"#));
        let errors = FirstMigrations.validate_update(&new, &old, Part::Whole);
        check("another version", &errors, &["FieldValueInvalid version"]);
    }

    #[test]
    fn what_is_done_is_not_running() {
        let status = |kinds: &[&str], version: &str| {
            let condition = |kind: &&str| {
                format!(r#"{{"type":"{kind}","status":"True","reason":"R","lastUpdateTime":"2026-01-01T00:00:00Z"}}"#)
            };
            let conditions: Vec<String> = kinds.iter().map(condition).collect();
            object(&format!(r#"{{"conditions":[{}],"resourceVersion":"{version}"}}"#, conditions.join(",")))
        };
        let (at_version, at_conditions) =
            ("FieldValueInvalid status.resourceVersion", "FieldValueInvalid status.conditions");
        let before = status(&[RUNNING], "7");
        for (name, new, want) in [
            ("done", status(&[SUCCEEDED], "7"), vec![]),
            ("running too", status(&[RUNNING, FAILED], "7"), vec![at_conditions]),
            ("another state", status(&[RUNNING], "8"), vec![at_version]),
            ("below nothing", status(&[RUNNING], "-7"), vec![at_version, at_version]),
            ("no number", status(&[RUNNING], "x"), vec![at_version, at_version]),
        ] {
            check(name, &validate_status(&new, &before), &want);
        }
    }

    #[test]
    fn what_later_versions_have_comes_back() {
        let later = r#"{"spec":{"resource":{"group":"apps","resource":"deployments"}},"status":{"conditions":[{"lastTransitionTime":"2026-01-01T00:00:00Z","status":"True","type":"Running"}],"resourceVersion":"7"}}"#;
        let former = r#"{"spec":{"resource":{"group":"apps","resource":"deployments"}},"status":{"conditions":[{"lastUpdateTime":"2026-01-01T00:00:00Z","status":"True","type":"Running"}],"resourceVersion":"7"}}"#;
        let mut of_core = object(r#"{"spec":{"resource":{"resource":"pods","version":"v1"}}}"#);
        FirstVersion.to_stored(&mut of_core);
        assert_eq!(of_core, object(r#"{"spec":{"resource":{"group":"","resource":"pods"}}}"#));
        FirstVersion.to_shown(&mut of_core);
        assert_eq!(of_core, object(r#"{"spec":{"resource":{"resource":"pods"}}}"#));
        let mut migration = object(later);
        FirstVersion.to_shown(&mut migration);
        assert_eq!(migration, object(former));
        let resource = migration.object_mut("spec").object_mut("resource");
        resource.insert("version", "v1");
        migration.object_mut("spec").insert("continueToken", "t");
        FirstVersion.to_stored(&mut migration);
        assert_eq!(migration, object(later));
    }
}
