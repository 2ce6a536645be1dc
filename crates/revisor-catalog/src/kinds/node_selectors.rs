//! Selectors of nodes, as volumes and device claims use them, and the labels of nodes that went out of use.

use revisor_object::names::{dns1123_subdomain, label_value, qualified_name};
use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Value};

use crate::checks::problems;

/// What is wrong with a node selector. Values that cannot be those of a label are let pass where the old had some.
pub(crate) fn validate(path: FieldPath<'_>, selector: &Object, allow_invalid_values: bool) -> FieldErrors {
    let path = path.child("nodeSelectorTerms");
    let terms = selector.array("nodeSelectorTerms");
    if terms.is_empty() {
        return FieldErrors::from([FieldError::required(path, "must have at least one node selector term")]);
    }
    let terms = terms.iter().filter_map(Value::as_object).enumerate();
    terms.flat_map(|(at, term)| validate_term(path.index(at), term, allow_invalid_values)).collect()
}

/// What is wrong with one term of a node selector.
pub(crate) fn validate_term(path: FieldPath<'_>, term: &Object, allow_invalid_values: bool) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let expressions = path.child("matchExpressions");
    for (at, expression) in term.array("matchExpressions").iter().filter_map(Value::as_object).enumerate() {
        errors.extend(validate_expression(expressions.index(at), expression, allow_invalid_values));
    }
    let fields = path.child("matchFields");
    for (at, field) in term.array("matchFields").iter().filter_map(Value::as_object).enumerate() {
        errors.extend(validate_field(fields.index(at), field));
    }
    errors
}

/// Whether a node selector has values that cannot be those of a label.
pub(crate) fn has_invalid_value(selector: &Object) -> bool {
    let terms = selector.array("nodeSelectorTerms").iter().filter_map(Value::as_object);
    let expressions = terms.flat_map(|term| term.array("matchExpressions")).filter_map(Value::as_object);
    let mut values = expressions.flat_map(|expression| expression.array("values")).filter_map(Value::as_str);
    values.any(|value| !label_value(value).is_empty())
}

fn validate_expression(path: FieldPath<'_>, expression: &Object, allow_invalid_values: bool) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let values = expression.array("values");
    let values_path = path.child("values");
    let operator = expression.str("operator").unwrap_or_default();
    match operator {
        "In" | "NotIn" if values.is_empty() => {
            errors.push(FieldError::required(values_path, "must be specified when `operator` is 'In' or 'NotIn'"));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(values_path, detail));
        }
        "Gt" | "Lt" if values.len() != 1 => {
            let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            errors.push(FieldError::required(values_path, detail));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        _ => errors.push(FieldError::invalid(path.child("operator"), operator, "not a valid selector operator")),
    }
    let key = expression.str("key").unwrap_or_default();
    errors.extend(problems(path.child("key"), key, qualified_name(key)));
    if !allow_invalid_values {
        for (at, value) in values.iter().filter_map(Value::as_str).enumerate() {
            errors.extend(problems(values_path.index(at), value, label_value(value)));
        }
    }
    errors
}

fn validate_field(path: FieldPath<'_>, field: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let values = field.array("values");
    let values_path = path.child("values");
    let operator = field.str("operator").unwrap_or_default();
    match operator {
        "In" | "NotIn" if values.len() != 1 => {
            let detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            errors.push(FieldError::required(values_path, detail));
        }
        "In" | "NotIn" => {}
        _ => errors.push(FieldError::invalid(path.child("operator"), operator, "not a valid selector operator")),
    }
    let key = field.str("key").unwrap_or_default();
    if key == "metadata.name" {
        for (at, value) in values.iter().filter_map(Value::as_str).enumerate() {
            errors.extend(problems(values_path.index(at), value, dns1123_subdomain(value)));
        }
    } else {
        errors.push(FieldError::invalid(path.child("key"), key, "not a valid field selector key"));
    }
    errors
}

/// What to say about a label of nodes that went out of use.
pub(crate) fn deprecated_label(key: &str) -> Option<&'static str> {
    Some(match key {
        "beta.kubernetes.io/arch" => r#"deprecated since v1.14; use "kubernetes.io/arch" instead"#,
        "beta.kubernetes.io/os" => r#"deprecated since v1.14; use "kubernetes.io/os" instead"#,
        "failure-domain.beta.kubernetes.io/region" => {
            r#"deprecated since v1.17; use "topology.kubernetes.io/region" instead"#
        }
        "failure-domain.beta.kubernetes.io/zone" => {
            r#"deprecated since v1.17; use "topology.kubernetes.io/zone" instead"#
        }
        "beta.kubernetes.io/instance-type" => {
            r#"deprecated since v1.17; use "node.kubernetes.io/instance-type" instead"#
        }
        "app.kubernetes.io/created-by" => "deprecated since v1.9",
        "scheduler.alpha.kubernetes.io/preferAvoidPods" => "deprecated since v1.22; use Taints and Tolerations instead",
        "node-role.kubernetes.io/master" => r#"use "node-role.kubernetes.io/control-plane" instead"#,
        _ => return None,
    })
}

/// The label that took the place of one that was in beta.
pub(crate) fn successor(key: &str) -> Option<&'static str> {
    Some(match key {
        "beta.kubernetes.io/arch" => "kubernetes.io/arch",
        "beta.kubernetes.io/os" => "kubernetes.io/os",
        "failure-domain.beta.kubernetes.io/region" => "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone" => "topology.kubernetes.io/zone",
        "beta.kubernetes.io/instance-type" => "node.kubernetes.io/instance-type",
        _ => return None,
    })
}

/// Warnings about labels out of use in a list of `{key, …}`.
pub(crate) fn expression_warnings(path: FieldPath<'_>, expressions: &[Value]) -> Vec<String> {
    let mut warnings = Vec::new();
    for (at, expression) in expressions.iter().filter_map(Value::as_object).enumerate() {
        let key = expression.str("key").unwrap_or_default();
        if let Some(message) = deprecated_label(key) {
            warnings.push(format!("{}: {key} is {message}", path.index(at).child("key")));
        }
    }
    warnings
}
