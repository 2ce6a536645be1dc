//! `meta/v1` conditions, as the statuses of newer kinds have them.

use revisor_object::names::qualified_name;
use revisor_object::{FieldError, FieldErrors, FieldPath, Seen, Value};

use super::workload::{number, text};
use crate::checks::{one_of, problems};

const MAX_REASON_BYTES: usize = 1024;
const MAX_MESSAGE_BYTES: usize = 32 * 1024;

const BAD_REASON: &str = "a condition reason must start with alphabetic character, optionally followed by a string of \
                          alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. \
                          'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex \
                          used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";

/// What is wrong with a list of conditions.
pub(crate) fn validate(path: FieldPath<'_>, conditions: &[Value]) -> FieldErrors {
    validate_told(path, conditions, "lastTransitionTime")
}

/// The same where another field says when they were told.
pub(crate) fn validate_told(path: FieldPath<'_>, conditions: &[Value], time: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let mut seen = Seen::default();
    for (at, condition) in conditions.iter().filter_map(Value::as_object).enumerate() {
        let path = path.index(at);
        let kind = text(condition, "type");
        if !seen.is_new(kind) {
            errors.push(FieldError::duplicate(path.child("type"), kind));
        }
        errors.extend(problems(path.child("type"), kind, qualified_name(kind)));
        errors.extend(one_of(path.child("status"), text(condition, "status"), &["False", "True", "Unknown"]));
        let generation = number(condition, "observedGeneration");
        if generation < 0 {
            let detail = "must be greater than or equal to zero";
            errors.push(FieldError::invalid(path.child("observedGeneration"), generation, detail));
        }
        if text(condition, time).is_empty() {
            errors.push(FieldError::required(path.child("lastTransitionTime"), ""));
        }
        let (at_reason, reason) = (path.child("reason"), text(condition, "reason"));
        if reason.is_empty() {
            errors.push(FieldError::required(at_reason, ""));
        } else if !is_reason(reason) {
            errors.push(FieldError::invalid(at_reason, reason, BAD_REASON));
        }
        if reason.len() > MAX_REASON_BYTES {
            errors.push(FieldError::too_long(at_reason, MAX_REASON_BYTES));
        }
        if text(condition, "message").len() > MAX_MESSAGE_BYTES {
            errors.push(FieldError::too_long(path.child("message"), MAX_MESSAGE_BYTES));
        }
    }
    errors
}

/// A word of letters, digits and a few signs, that begins with a letter and does not end with a separator.
fn is_reason(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b',' | b':');
    text.bytes().next().is_some_and(|first| first.is_ascii_alphabetic())
        && text.bytes().all(is_inner)
        && !text.ends_with([',', ':'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons() {
        for (text, want) in [
            ("Ready", true),
            ("a", true),
            ("My_Reason,Other:1", true),
            ("R_", true),
            ("", false),
            ("1a", false),
            ("a:", false),
            ("a b", false),
        ] {
            assert_eq!(is_reason(text), want, "{text}");
        }
    }
}
