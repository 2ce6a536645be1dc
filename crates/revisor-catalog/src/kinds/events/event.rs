//! Events that are written in this group: held to all rules, and all but the series is for good. Their faults are named
//! as in the core form, with one exception.

use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Value};

use crate::checks::immutable;
use crate::kinds::core::event::validate_event;
use crate::{Part, Strategy};

/// What may not be changed, by the names of the core form.
const FROZEN: [&str; 14] = [
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    // Compared twice.
    "reason",
    "type",
    "eventTime",
    "action",
    "related",
    "reportingComponent",
    "reportingInstance",
];

/// What the newer form has no use for.
const OLD: [&str; 3] = ["firstTimestamp", "lastTimestamp", "count"];

/// How this group calls who reports.
const REPORTER: &str = "reportingController";

pub(crate) struct StrictEvents;

impl Strategy for StrictEvents {
    fn may_own(&self) -> bool {
        false
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        let mut errors = validate_event(object, REPORTER);
        errors.extend(validate_series(object));
        if is_unset(object.get("eventTime")) {
            errors.push(FieldError::required("eventTime", ""));
        }
        let kind = object.str("type").unwrap_or_default();
        if !matches!(kind, "Normal" | "Warning") {
            errors.push(FieldError::invalid("type", "", format!("has invalid value: {kind}")));
        }
        let mut unset = |name| errors.push(FieldError::invalid(FieldPath::root(name), "", "needs to be unset"));
        for name in OLD {
            if !is_unset(object.get(name)) {
                unset(name);
            }
        }
        let source = object.object("source");
        if source.is_some_and(|source| ["component", "host"].iter().any(|name| !is_unset(source.get(name)))) {
            unset("source");
        }
        errors
    }

    fn validate_update(&self, object: &Object, old: &Object, _: Part<'_>) -> FieldErrors {
        let mut errors = validate_event(object, REPORTER);
        if object.get("series") != old.get("series") {
            errors.extend(validate_series(object));
        }
        for name in FROZEN {
            let shown = if name == "reportingComponent" { REPORTER } else { name };
            errors.extend(immutable(FieldPath::root(shown), object.get(name), old.get(name)));
        }
        errors
    }
}

fn is_unset(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null | Value::Int(0)) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(_) => false,
    }
}

fn validate_series(object: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let Some(series) = object.object("series") else { return errors };
    if series.get("count").and_then(Value::as_i64).unwrap_or_default() < 2 {
        errors.push(FieldError::invalid("series.count", "", "should be at least 2"));
    }
    if is_unset(series.get("lastObservedTime")) {
        errors.push(FieldError::required("series.lastObservedTime", ""));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::{check, object};

    fn event(change: &str) -> Object {
        let mut event = object(
            r#"{"metadata":{"namespace":"n"},"eventTime":"t","type":"Normal","action":"A","reason":"R",
                "reportingComponent":"a/c","reportingInstance":"i","involvedObject":{"namespace":"n"}}"#,
        );
        for (name, value) in object(change).iter() {
            event.set(name, (!value.is_null()).then(|| value.clone()));
        }
        event
    }

    #[test]
    fn new_events_are_held_to_more() {
        for (change, want) in [
            ("{}", &[][..]),
            (r#"{"eventTime":null}"#, &["FieldValueRequired eventTime"]),
            (r#"{"type":null}"#, &["FieldValueInvalid type"]),
            (
                r#"{"reportingComponent":null}"#,
                &[
                    "FieldValueRequired reportingController",
                    "FieldValueInvalid reportingController",
                    "FieldValueInvalid reportingController",
                ],
            ),
            (
                r#"{"series":{"count":1}}"#,
                &["FieldValueInvalid series.count", "FieldValueRequired series.lastObservedTime"],
            ),
            (
                r#"{"count":3,"firstTimestamp":"t","source":{"host":"h"}}"#,
                &["FieldValueInvalid count", "FieldValueInvalid firstTimestamp", "FieldValueInvalid source"],
            ),
        ] {
            check(change, &StrictEvents.validate(&event(change)), want);
        }
    }

    #[test]
    fn only_the_series_changes() {
        let old = event("{}");
        for (change, want) in [
            (r#"{"series":{"count":2,"lastObservedTime":"t"}}"#, &[][..]),
            (r#"{"series":{"count":1,"lastObservedTime":"t"}}"#, &["FieldValueInvalid series.count"]),
            (r#"{"reason":"S"}"#, &["FieldValueInvalid reason", "FieldValueInvalid reason"]),
            (
                r#"{"reportingComponent":"a/d","message":"m"}"#,
                &["FieldValueInvalid reportingController", "FieldValueInvalid message"],
            ),
        ] {
            check(change, &StrictEvents.validate_update(&event(change), &old, Part::Whole), want);
        }
    }
}
