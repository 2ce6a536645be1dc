//! Taints, which keep pods away, and tolerations, which let them come all the same.

use revisor_object::names::{label_value, qualified_name};
use revisor_object::{FieldError, FieldErrors, FieldPath, Seen, Value};

use crate::checks::{self, parse_int, problems};
use crate::kinds::members::text;

const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// What is wrong with the taints of a node.
pub(crate) fn validate_taints(path: FieldPath<'_>, taints: &[Value]) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let mut seen = Seen::default();
    for (at, taint) in taints.iter().filter_map(Value::as_object).enumerate() {
        let path = path.index(at);
        let (key, value, effect) = (text(taint, "key"), text(taint, "value"), text(taint, "effect"));
        errors.extend(problems(path.child("key"), key, qualified_name(key)));
        let value_problems = label_value(value);
        if !value_problems.is_empty() {
            errors.push(FieldError::invalid(path.child("value"), value, value_problems.join(";")));
        }
        errors.extend(checks::required_one_of(path.child("effect"), effect, EFFECTS));
        if !seen.is_new((key, effect)) {
            let shown = revisor_object::BadValue::of(taint);
            let detail = "taints must be unique by key and effect pair".to_owned();
            errors.push(FieldError { detail, ..FieldError::duplicate(path, shown) });
        }
    }
    errors
}

/// What is wrong with a list of tolerations. They may compare numbers only where the old object does so already.
pub(crate) fn validate_tolerations(path: FieldPath<'_>, tolerations: &[Value], may_compare: bool) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for (at, toleration) in tolerations.iter().filter_map(Value::as_object).enumerate() {
        let path = path.index(at);
        let operator_path = path.child("operator");
        let (key, operator) = (text(toleration, "key"), text(toleration, "operator"));
        let (value, effect) = (text(toleration, "value"), text(toleration, "effect"));
        if !key.is_empty() {
            errors.extend(problems(path.child("key"), key, qualified_name(key)));
        } else if operator != "Exists" {
            let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.push(FieldError::invalid(operator_path, operator, detail));
        }
        if toleration.contains("tolerationSeconds") && effect != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(FieldError::invalid(path.child("effect"), effect, detail));
        }
        match operator {
            "Equal" | "" => {
                let found = label_value(value);
                if !found.is_empty() {
                    errors.push(FieldError::invalid(operator_path, value, found.join(";")));
                }
            }
            "Exists" if value.is_empty() => {}
            "Exists" => {
                let detail = "value must be empty when `operator` is 'Exists'";
                errors.push(FieldError::invalid(operator_path, value, detail));
            }
            "Lt" | "Gt" if may_compare => errors.extend(validate_number(path.child("value"), value)),
            // Comparisons are known, but the feature is off.
            "Lt" | "Gt" => {
                errors.push(FieldError::not_supported(operator_path, operator, &["Equal", "Exists", "Lt", "Gt"]));
            }
            _ => errors.push(FieldError::not_supported(operator_path, operator, &["Equal", "Exists"])),
        }
        if !effect.is_empty() {
            errors.extend(checks::one_of(path.child("effect"), effect, EFFECTS));
        }
    }
    errors
}

fn validate_number(path: FieldPath<'_>, value: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let digits = value.strip_prefix('-').unwrap_or(value);
    let is_integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_canonical = is_integer && (digits == "0" && digits == value || !digits.starts_with('0'));
    if !is_canonical {
        let detail = "must be a valid decimal integer in canonical form";
        errors.push(FieldError::invalid(path, value, detail));
    }
    if let Err(problem) = parse_int(value) {
        errors.push(FieldError::invalid(path, value, problem));
    }
    errors
}
