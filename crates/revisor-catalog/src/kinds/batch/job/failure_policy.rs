//! `podFailurePolicy`: what a job does about pods that failed, by exit code or condition.

use revisor_object::names::qualified_name;
use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, Seen, Value};

use crate::checks::{one_of, problems};
use crate::kinds::workload::{pod, shown, text};

const MAX_RULES: usize = 20;
const MAX_EXIT_CODES: usize = 255;
const MAX_CONDITIONS: usize = 20;

const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];
const OPERATORS: [&str; 2] = ["In", "NotIn"];
const STATUSES: [&str; 3] = ["False", "True", "Unknown"];

pub(super) fn validate(path: FieldPath<'_>, policy: &Object, spec: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let at_rules = path.child("rules");
    let rules = policy.array("rules");
    if rules.len() > MAX_RULES {
        errors.push(FieldError::too_many(at_rules, rules.len(), MAX_RULES));
    }
    let containers = ["containers", "initContainers"].into_iter().flat_map(|list| pod(spec).array(list));
    let containers: Seen<&str> =
        containers.filter_map(Value::as_object).map(|container| text(container, "name")).collect();
    for (at, rule) in rules.iter().filter_map(Value::as_object).enumerate() {
        errors.extend(validate_rule(at_rules.index(at), rule, spec, &containers));
    }
    errors
}

fn validate_rule(path: FieldPath<'_>, rule: &Object, spec: &Object, containers: &Seen<&str>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let at_action = path.child("action");
    match text(rule, "action") {
        "FailIndex" if spec.contains("backoffLimitPerIndex") => {}
        action @ "FailIndex" => {
            let detail = "requires the backoffLimitPerIndex to be set";
            errors.push(FieldError::invalid(at_action, action, detail));
        }
        action => errors.extend(named(at_action, action, &ACTIONS)),
    }
    let codes = rule.object("onExitCodes");
    if let Some(codes) = codes {
        errors.extend(validate_exit_codes(path.child("onExitCodes"), codes, containers));
    }
    let conditions = rule.array("onPodConditions");
    errors.extend(validate_conditions(path.child("onPodConditions"), conditions));
    let one_only = match (codes.is_some(), conditions.is_empty()) {
        (true, false) => Some("specifying both OnExitCodes and OnPodConditions is not supported"),
        (false, true) => Some("specifying one of OnExitCodes and OnPodConditions is required"),
        _ => None,
    };
    errors.extend(one_only.map(|detail| FieldError::invalid(path, BadValue::Omitted, detail)));
    errors
}

/// A word that must be given, and be one of these.
fn named(path: FieldPath<'_>, word: &str, allowed: &[&str]) -> Option<FieldError> {
    if word.is_empty() {
        let all = allowed.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" ");
        return Some(FieldError::required(path, format!("valid values: [{all}]")));
    }
    one_of(path, word, allowed)
}

fn validate_conditions(path: FieldPath<'_>, conditions: &[Value]) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if conditions.len() > MAX_CONDITIONS {
        errors.push(FieldError::too_many(path, conditions.len(), MAX_CONDITIONS));
    }
    for (at, condition) in conditions.iter().filter_map(Value::as_object).enumerate() {
        let path = path.index(at);
        let kind = text(condition, "type");
        errors.extend(problems(path.child("type"), kind, qualified_name(kind)));
        errors.extend(named(path.child("status"), text(condition, "status"), &STATUSES));
    }
    errors
}

fn validate_exit_codes(path: FieldPath<'_>, codes: &Object, containers: &Seen<&str>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let operator = text(codes, "operator");
    errors.extend(named(path.child("operator"), operator, &OPERATORS));
    if let Some(container) = codes.str("containerName").filter(|name| !containers.has(name)) {
        let detail = "must be one of the container or initContainer names in the pod template";
        errors.push(FieldError::invalid(path.child("containerName"), container, detail));
    }
    let at_values = path.child("values");
    let values: Vec<i64> = codes.array("values").iter().filter_map(Value::as_i64).collect();
    if values.is_empty() {
        errors.push(FieldError::invalid(at_values, shown(codes, "values"), "at least one value is required"));
    } else if values.len() > MAX_EXIT_CODES {
        errors.push(FieldError::too_many(at_values, values.len(), MAX_EXIT_CODES));
    }
    let mut seen = std::collections::BTreeSet::new();
    for (at, value) in values.iter().copied().enumerate() {
        let path = at_values.index(at);
        if operator == "In" && value == 0 {
            errors.push(FieldError::invalid(path, value, "must not be 0 for the In operator"));
        }
        if !seen.insert(value) {
            errors.push(FieldError::duplicate(path, value));
        }
    }
    if !values.is_sorted() {
        errors.push(FieldError::invalid(at_values, shown(codes, "values"), "must be ordered"));
    }
    errors
}
