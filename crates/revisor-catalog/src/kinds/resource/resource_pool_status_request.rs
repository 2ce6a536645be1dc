//! Resource pool status requests: a question about the pools of a driver, which is answered once in the status.

use std::collections::HashSet;

use revisor_object::names::{dns1123_subdomain, dns1123_subdomain_caseless, long_name};
use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, Value};

use super::lists;
use crate::checks::{immutable, problems};
use crate::kinds::conditions;
use crate::kinds::workload::{given_number, number, spec, text};
use crate::strategy::spec_and_metadata_or_status;
use crate::{Part, Places, Strategy};

const SPEC: FieldPath<'static> = FieldPath::root("spec");
const STATUS: FieldPath<'static> = FieldPath::root("status");
const MAX_POOL_NAME: usize = 253;
const MAX_POOLS: usize = 1000;
const MAX_CONDITIONS: usize = 10;
const MAX_ERROR_BYTES: usize = 256;

pub(crate) struct ResourcePoolStatusRequests;

impl Strategy for ResourcePoolStatusRequests {
    fn untouched(&self, part: Part<'_>) -> Places {
        spec_and_metadata_or_status(part)
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        let spec = spec(object);
        let mut errors = validate_driver(SPEC.child("driver"), text(spec, "driver"));
        if let Some(pool) = spec.str("poolName") {
            errors.extend(validate_pool_name(SPEC.child("poolName"), pool));
        }
        let limit = number(spec, "limit");
        if limit > 1000 {
            errors.push(FieldError::invalid(SPEC.child("limit"), limit, "must be less than or equal to 1000"));
        }
        errors.extend(at_least(SPEC.child("limit"), limit, 1));
        errors
    }

    fn validate_update(&self, object: &Object, old: &Object, part: Part<'_>) -> FieldErrors {
        if part == Part::Whole {
            let is_same = object.get("spec") == old.get("spec");
            let shown = BadValue::nothing();
            return if is_same {
                FieldErrors::new()
            } else {
                FieldErrors::from([FieldError::invalid(SPEC, shown, "field is immutable")])
            };
        }
        let (new, was) = (object.get("status"), old.get("status"));
        if new == was {
            return FieldErrors::new();
        }
        let mut errors = FieldErrors::new();
        // An answer is given once.
        errors.extend(was.and_then(|_| immutable(STATUS, new, was)));
        if let Some(status) = object.object("status") {
            if was.is_none() {
                errors.extend(conditions::validate(STATUS.child("conditions"), status.array("conditions")));
            }
            errors.extend(validate_status(status, old.object("status")));
        }
        errors
    }
}

/// What was there before is not looked at again.
fn validate_status(status: &Object, old: Option<&Object>) -> FieldErrors {
    let has_changed = |name| old.is_none_or(|old| old.get(name) != status.get(name));
    let mut errors = FieldErrors::new();
    let path = STATUS.child("poolCount");
    match given_number(status, "poolCount") {
        None => errors.push(FieldError::required(path, "")),
        Some(count) => errors.extend(at_least(path, count, 0)),
    }
    if has_changed("pools") {
        errors.extend(lists::objects(STATUS.child("pools"), status.array("pools"), MAX_POOLS, validate_pool));
    }
    if has_changed("conditions") {
        let (path, conditions) = (STATUS.child("conditions"), status.array("conditions"));
        if conditions.len() > MAX_CONDITIONS {
            errors.push(FieldError::too_many(path, conditions.len(), MAX_CONDITIONS));
        } else {
            let mut seen = HashSet::new();
            let types = conditions.iter().filter_map(Value::as_object).map(|condition| text(condition, "type"));
            let repeated = types.enumerate().filter(|(_, kind)| !seen.insert(*kind));
            errors.extend(repeated.map(|(at, _)| FieldError::duplicate(path.index(at), BadValue::of(&conditions[at]))));
        }
    }
    errors
}

fn validate_pool(path: FieldPath<'_>, pool: &Object) -> FieldErrors {
    let mut errors = validate_driver(path.child("driver"), text(pool, "driver"));
    errors.extend(match text(pool, "poolName") {
        "" => FieldErrors::from([FieldError::required(path.child("poolName"), "")]),
        name => validate_pool_name(path.child("poolName"), name),
    });
    match number(pool, "generation") {
        0 => errors.push(FieldError::required(path.child("generation"), "")),
        generation => errors.extend(at_least(path.child("generation"), generation, 0)),
    }
    for (name, least) in [
        ("resourceSliceCount", 1),
        ("totalDevices", 0),
        ("allocatedDevices", 0),
        ("availableDevices", 0),
        ("unavailableDevices", 0),
    ] {
        errors.extend(given_number(pool, name).and_then(|count| at_least(path.child(name), count, least)));
    }
    if let Some(node) = pool.str("nodeName") {
        errors.extend(problems(path.child("nodeName"), node, dns1123_subdomain(node)));
    }
    if pool.str("validationError").is_some_and(|error| error.len() > MAX_ERROR_BYTES) {
        errors.push(FieldError::too_long(path.child("validationError"), MAX_ERROR_BYTES));
    }
    errors
}

fn validate_driver(path: FieldPath<'_>, driver: &str) -> FieldErrors {
    match driver {
        "" => FieldErrors::from([FieldError::required(path, "")]),
        driver => problems(path, driver, dns1123_subdomain_caseless(driver)),
    }
}

/// Names of pools as the other kinds of the group have them; here the problems say which segment they are about.
fn validate_pool_name(path: FieldPath<'_>, name: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if name.len() > MAX_POOL_NAME {
        errors.push(FieldError::too_long(path, MAX_POOL_NAME));
    }
    for (at, part) in name.split('/').enumerate() {
        if part.is_empty() {
            errors.push(FieldError::invalid(path, name, format!("segment {at}: must not be empty")));
            continue;
        }
        let found = long_name(part).into_iter().map(|problem| format!("segment {at}: {problem}"));
        errors.extend(problems(path, part, found));
    }
    errors
}

fn at_least(path: FieldPath<'_>, number: i64, least: i64) -> Option<FieldError> {
    let detail = || format!("must be greater than or equal to {least}");
    (number < least).then(|| FieldError::invalid(path, number, detail()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::{check, object};

    #[test]
    fn questions_are_about_a_driver() {
        for (spec, want) in [
            (r#"{"driver":"d.Example.com","limit":100}"#, vec![]),
            (r#"{"driver":"d","poolName":"a/b","limit":1000}"#, vec![]),
            (r#"{"limit":0}"#, vec!["FieldValueRequired spec.driver", "FieldValueInvalid spec.limit"]),
            (
                r#"{"driver":"?","poolName":"a//B","limit":1001}"#,
                vec![
                    "FieldValueInvalid spec.driver",
                    "FieldValueInvalid spec.poolName",
                    "FieldValueInvalid spec.poolName",
                    "FieldValueInvalid spec.limit",
                ],
            ),
        ] {
            check(spec, &ResourcePoolStatusRequests.validate(&object(&format!(r#"{{"spec":{spec}}}"#))), &want);
        }
    }

    #[test]
    fn answers_are_given_once() {
        let request = |status: &str| match status {
            "" => object(r#"{"spec":{"driver":"d"}}"#),
            status => object(&format!(r#"{{"spec":{{"driver":"d"}},"status":{status}}}"#)),
        };
        let pool = r#"{"poolCount":1,"pools":[{"driver":"d","poolName":"p","generation":1}]}"#;
        for (old, new, want) in [
            ("", "", vec![]),
            ("", pool, vec![]),
            (pool, pool, vec![]),
            ("", "{}", vec!["FieldValueRequired status.poolCount"]),
            (pool, r#"{"poolCount":2}"#, vec!["FieldValueInvalid status"]),
            (pool, "", vec!["FieldValueInvalid status"]),
            (
                "",
                r#"{"poolCount":-1,"pools":[{"resourceSliceCount":0,"totalDevices":-1,"nodeName":"A"}]}"#,
                vec![
                    "FieldValueInvalid status.poolCount",
                    "FieldValueRequired status.pools[0].driver",
                    "FieldValueRequired status.pools[0].poolName",
                    "FieldValueRequired status.pools[0].generation",
                    "FieldValueInvalid status.pools[0].resourceSliceCount",
                    "FieldValueInvalid status.pools[0].totalDevices",
                    "FieldValueInvalid status.pools[0].nodeName",
                ],
            ),
        ] {
            let part = Part::Subresource("status");
            let errors = ResourcePoolStatusRequests.validate_update(&request(new), &request(old), part);
            check(&format!("{old} to {new}"), &errors, &want);
        }
    }
}
