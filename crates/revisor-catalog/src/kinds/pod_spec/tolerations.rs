//! Tolerations: the taints of nodes that a pod puts up with.

use revisor_object::names::{label_value, qualified_name};
use revisor_object::{FieldError, FieldPath, Object};

use super::members::{objects, text};
use crate::checks::{one_of, problems};

const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// What is wrong with the tolerations of a spec.
pub(crate) fn validate(path: FieldPath<'_>, holder: &Object, may_compare: bool, errors: &mut Vec<FieldError>) {
    for (at, toleration) in objects(holder, "tolerations") {
        let path = path.index(at);
        let (key, operator) = (text(toleration, "key"), text(toleration, "operator"));
        let (value, effect) = (text(toleration, "value"), text(toleration, "effect"));
        if key.is_empty() {
            if operator != "Exists" {
                let detail =
                    "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
                errors.push(FieldError::invalid(path.child("operator"), operator, detail));
            }
        } else {
            errors.extend(problems(path.child("key"), key, qualified_name(key)));
        }
        if toleration.contains("tolerationSeconds") && effect != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(FieldError::invalid(path.child("effect"), effect, detail));
        }
        match operator {
            "Equal" | "" => {
                let found = label_value(value);
                if !found.is_empty() {
                    errors.push(FieldError::invalid(path.child("operator"), value, found.join(";")));
                }
            }
            "Exists" => {
                if !value.is_empty() {
                    let detail = "value must be empty when `operator` is 'Exists'";
                    errors.push(FieldError::invalid(path.child("operator"), value, detail));
                }
            }
            "Lt" | "Gt" if may_compare => validate_number(path.child("value"), value, errors),
            "Lt" | "Gt" => {
                let all = ["Equal", "Exists", "Lt", "Gt"];
                errors.push(FieldError::not_supported(path.child("operator"), operator, &all));
            }
            _ => errors.push(FieldError::not_supported(path.child("operator"), operator, &["Equal", "Exists"])),
        }
        if !effect.is_empty() {
            errors.extend(one_of(path.child("effect"), effect, EFFECTS));
        }
    }
}

fn validate_number(path: FieldPath<'_>, value: &str, errors: &mut Vec<FieldError>) {
    let digits = value.strip_prefix('-').unwrap_or(value);
    let is_integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_canonical = is_integer && (digits == "0" && digits == value || !digits.starts_with('0'));
    if !is_canonical {
        let detail = "must be a valid decimal integer in canonical form";
        errors.push(FieldError::invalid(path, value, detail));
    }
    if value.parse::<i64>().is_err() {
        let reason = if is_integer { "value out of range" } else { "invalid syntax" };
        errors.push(FieldError::invalid(path, value, format!("strconv.ParseInt: parsing {value:?}: {reason}")));
    }
}
