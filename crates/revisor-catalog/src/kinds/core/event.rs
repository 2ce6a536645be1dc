//! Core events: notes about other objects. Those with an `eventTime` are of the newer sort and held to more.

use revisor_object::names::{dns1123_subdomain, qualified_name};
use revisor_object::{FieldError, FieldErrors, FieldPath, Object};

use crate::{Part, Strategy};

const MAX_REPORTING_INSTANCE: usize = 128;
const MAX_ACTION: usize = 128;
const MAX_REASON: usize = 128;
const MAX_MESSAGE: usize = 1024;

pub(crate) struct Events;

impl Strategy for Events {
    fn may_own(&self) -> bool {
        false
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        validate_event(object, "reportingComponent")
    }

    fn validate_update(&self, object: &Object, _: &Object, _: Part<'_>) -> FieldErrors {
        self.validate(object)
    }
}

/// What is wrong with an event, whichever group it was written in. The groups have different names for the reporter.
pub(crate) fn validate_event(object: &Object, reporter: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let text = |name| object.str(name).unwrap_or_default();
    let namespace = object.object("metadata").and_then(|metadata| metadata.str("namespace")).unwrap_or_default();
    let about = object.object("involvedObject").and_then(|about| about.str("namespace")).unwrap_or_default();
    let is_new = object.get("eventTime").is_some_and(|time| !time.is_null());
    let agrees = match (is_new, about) {
        (false, "") => matches!(namespace, "" | "default"),
        (false, about) => about == namespace,
        (true, "") => matches!(namespace, "default" | "kube-system"),
        (true, _) => true,
    };
    if !agrees {
        let involved = FieldPath::root("involvedObject");
        let detail = "does not match event.namespace";
        errors.push(FieldError::invalid(involved.child("namespace"), about, detail));
    }
    if is_new {
        let reporter = FieldPath::root(reporter);
        if text("reportingComponent").is_empty() {
            errors.push(FieldError::required(reporter, ""));
        }
        for problem in qualified_name(text("reportingComponent")) {
            errors.push(FieldError::invalid(reporter, text("reportingComponent"), problem));
        }
        for (name, most, is_required) in [
            ("reportingInstance", MAX_REPORTING_INSTANCE, true),
            ("action", MAX_ACTION, true),
            ("reason", MAX_REASON, true),
            ("message", MAX_MESSAGE, false),
        ] {
            let path = FieldPath::root(name);
            if is_required && text(name).is_empty() {
                errors.push(FieldError::required(path, ""));
            }
            if text(name).len() > most {
                errors.push(FieldError::invalid(path, "", format!("can have at most {most} characters")));
            }
        }
    }
    for problem in dns1123_subdomain(namespace) {
        errors.push(FieldError::invalid(FieldPath::root("namespace"), namespace, problem));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use revisor_object::Value;

    #[test]
    fn only_an_event_with_a_time_is_held_to_the_newer_rules() {
        for (time, is_held) in [(None, false), (Some(Value::Null), false), (Some("2026-01-01".into()), true)] {
            let metadata: Object = [("namespace", Value::from("default"))].into_iter().collect();
            let mut event: Object = [("metadata", Value::from(metadata))].into_iter().collect();
            event.set("eventTime", time.clone());
            assert_eq!(Events.validate(&event).is_empty(), !is_held, "{time:?}");
        }
    }
}
