//! How fast an autoscaler scales up and down.

use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Quantity, Value};

use crate::checks::one_of;
use crate::kinds::workload::{fill, given_number, number, text};

/// The directions in which there can be rules.
const DIRECTIONS: [&str; 2] = ["scaleUp", "scaleDown"];

const MAX_PERIOD_SECONDS: i64 = 1800;
const MAX_STABILIZATION_WINDOW_SECONDS: i64 = 3600;

/// Fills in both directions. How long to wait before scaling down is the controller's to decide.
pub(super) fn default(behavior: &mut Object) {
    let up = behavior.object_mut("scaleUp");
    fill(up, "stabilizationWindowSeconds", 0);
    fill(up, "selectPolicy", "Max");
    fill(up, "policies", vec![policy("Pods", 4), policy("Percent", 100)]);
    let down = behavior.object_mut("scaleDown");
    fill(down, "selectPolicy", "Max");
    fill(down, "policies", vec![policy("Percent", 100)]);
}

fn policy(kind: &str, value: i64) -> Value {
    let members = [("type", Value::from(kind)), ("value", Value::from(value)), ("periodSeconds", Value::from(15))];
    Value::Object(members.into_iter().collect())
}

pub(super) fn validate(path: FieldPath<'_>, behavior: &Object) -> FieldErrors {
    DIRECTIONS
        .into_iter()
        .filter_map(|name| Some((name, behavior.object(name)?)))
        .flat_map(|(name, rules)| validate_rules(path.child(name), rules))
        .collect()
}

fn validate_rules(path: FieldPath<'_>, rules: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let at_window = path.child("stabilizationWindowSeconds");
    match given_number(rules, "stabilizationWindowSeconds") {
        Some(window @ ..0) => {
            errors.push(FieldError::invalid(at_window, window, "must be greater than or equal to zero"));
        }
        Some(window) if window > MAX_STABILIZATION_WINDOW_SECONDS => {
            let detail = format!("must be less than or equal to {MAX_STABILIZATION_WINDOW_SECONDS}");
            errors.push(FieldError::invalid(at_window, window, detail));
        }
        _ => {}
    }
    if let Some(choice) = rules.str("selectPolicy") {
        errors.extend(one_of(path.child("selectPolicy"), choice, &["Disabled", "Max", "Min"]));
    }
    let at_policies = path.child("policies");
    let policies = rules.array("policies");
    if policies.is_empty() {
        errors.push(FieldError::required(at_policies, "must specify at least one Policy"));
    }
    for (at, policy) in policies.iter().filter_map(Value::as_object).enumerate() {
        errors.extend(validate_policy(at_policies.index(at), policy));
    }
    let tolerance = rules.str("tolerance");
    if let Some(tolerance) = tolerance.filter(|text| Quantity::parse(text).is_ok_and(|value| value.is_negative())) {
        errors.push(FieldError::invalid(path.child("tolerance"), tolerance, "must be greater than or equal to 0"));
    }
    errors
}

fn validate_policy(path: FieldPath<'_>, policy: &Object) -> FieldErrors {
    let mut errors: FieldErrors =
        one_of(path.child("type"), text(policy, "type"), &["Percent", "Pods"]).into_iter().collect();
    for name in ["value", "periodSeconds"] {
        let number = number(policy, name);
        if number <= 0 {
            errors.push(FieldError::invalid(path.child(name), number, "must be greater than zero"));
        }
    }
    let period = number(policy, "periodSeconds");
    if period > MAX_PERIOD_SECONDS {
        let detail = format!("must be less than or equal to {MAX_PERIOD_SECONDS}");
        errors.push(FieldError::invalid(path.child("periodSeconds"), period, detail));
    }
    errors
}
