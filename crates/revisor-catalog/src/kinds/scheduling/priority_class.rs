//! Priority classes: names for numbers that say which pod goes before which.

use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Value};

use crate::checks::{self, immutable};
use crate::{Circumstances, Part, Strategy};

/// The highest value that users may give a class.
const HIGHEST: i64 = 1_000_000_000;

/// What the names of the system's own classes begin with.
const SYSTEM_PREFIX: &str = "system-";

/// The system's own classes.
const SYSTEM: [(&str, i64); 2] = [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];

pub(crate) struct PriorityClasses;

impl Strategy for PriorityClasses {
    fn prepare_create(&self, object: &mut Object, _: Circumstances<'_>) {
        // Nothing that could be counted changes.
        object.object_mut("metadata").insert("generation", 1);
    }

    fn refuses_deletion(&self, name: &str) -> Option<&'static str> {
        let is_system = SYSTEM.iter().any(|(known, _)| *known == name);
        is_system.then_some("this is a system priority class and cannot be deleted")
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        let mut errors = FieldErrors::new();
        let name = object.at(&["metadata", "name"]).and_then(Value::as_str).unwrap_or_default();
        let value = value(object);
        if name.starts_with(SYSTEM_PREFIX) {
            let is_default = object.get("globalDefault").and_then(Value::as_bool) == Some(true);
            let fault = match SYSTEM.iter().find(|(known, _)| *known == name) {
                None => Some(format!("{name} is not a known system priority class")),
                Some((_, known)) if *known != value => Some(format!("value of {name} PriorityClass must be {known}")),
                Some(_) => is_default.then(|| format!("globalDefault of {name} PriorityClass must be false")),
            };
            if let Some(fault) = fault {
                let detail = format!(
                    "priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. error: {fault}"
                );
                errors.push(FieldError::forbidden("metadata.name", detail));
            }
        } else if value > HIGHEST {
            let detail = format!("maximum allowed value of a user defined priority is {HIGHEST}");
            errors.push(FieldError::forbidden("value", detail));
        }
        if let Some(policy) = object.str("preemptionPolicy") {
            let path = FieldPath::root("preemptionPolicy");
            errors.extend(checks::required_one_of(path, policy, &["PreemptLowerPriority", "Never"]));
        }
        errors
    }

    fn validate_update(&self, object: &Object, old: &Object, _: Part<'_>) -> FieldErrors {
        let mut errors = FieldErrors::new();
        if value(object) != value(old) {
            errors.push(FieldError::forbidden("value", "may not be changed in an update."));
        }
        let name = "preemptionPolicy";
        errors.extend(immutable(FieldPath::root(name), object.get(name), old.get(name)));
        errors
    }
}

fn value(object: &Object) -> i64 {
    object.get("value").and_then(Value::as_i64).unwrap_or_default()
}
