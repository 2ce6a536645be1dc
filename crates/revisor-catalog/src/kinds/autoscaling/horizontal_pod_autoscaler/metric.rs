//! What an autoscaler looks at: one source of each metric, and a target for it.

use revisor_object::names::{dns1123_label, path_segment_name};
use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Quantity, Value};

use super::{Reference, validate_reference, wrong_version};
use crate::checks::problems;
use crate::kinds::resource_names::container_resource_name;
use crate::kinds::workload::{NOTHING, given_number, shown, text};

/// What is aimed at if nothing is said.
pub(crate) const DEFAULT_CPU_UTILIZATION: i64 = 80;

/// The types of sources in the order of messages.
const TYPES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];

/// The fields of sources in the order in which they are looked at, each with its type.
const SOURCES: [(&str, &str); 5] = [
    ("object", "Object"),
    ("external", "External"),
    ("pods", "Pods"),
    ("resource", "Resource"),
    ("containerResource", "ContainerResource"),
];

/// The metric that aims at this utilization of the processor.
pub(crate) fn cpu_utilization(percent: i64) -> Object {
    let target = [("type", Value::from("Utilization")), ("averageUtilization", Value::from(percent))];
    let target: Object = target.into_iter().collect();
    let resource: Object = [("name", Value::from("cpu")), ("target", Value::from(target))].into_iter().collect();
    [("type", Value::from("Resource")), ("resource", Value::from(resource))].into_iter().collect()
}

pub(super) fn validate(path: FieldPath<'_>, spec: &Object, old: Option<&Object>) -> FieldErrors {
    let rule = if old.is_some_and(has_odd_reference) { Reference::Known } else { Reference::Any };
    let mut errors = FieldErrors::new();
    let mut scales_from_zero = false;
    for (at, metric) in spec.array("metrics").iter().filter_map(Value::as_object).enumerate() {
        errors.extend(validate_metric(path.index(at), metric, rule));
        scales_from_zero |= matches!(text(metric, "type"), "Object" | "External");
    }
    if given_number(spec, "minReplicas") == Some(0) && !scales_from_zero {
        let detail = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.push(FieldError::forbidden(path, detail));
    }
    errors
}

/// Whether a metric that is stored refers to an object in a way that would be refused today.
fn has_odd_reference(spec: &Object) -> bool {
    let metrics = spec.array("metrics").iter().filter_map(Value::as_object);
    metrics.into_iter().filter(|metric| text(metric, "type") == "Object").any(|metric| {
        let described = metric.at(&["object", "describedObject"]).and_then(Value::as_object);
        described.is_some_and(|described| wrong_version(text(described, "apiVersion"), Reference::Any).is_some())
    })
}

fn validate_metric(path: FieldPath<'_>, metric: &Object, rule: Reference) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let at_type = path.child("type");
    let kind = text(metric, "type");
    if kind.is_empty() {
        errors.push(FieldError::required(at_type, "must specify a metric source type"));
    }
    if !TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(at_type, kind, &TYPES));
    }
    let present: Vec<&str> =
        SOURCES.iter().map(|(name, _)| *name).filter(|name| metric.object(name).is_some()).collect();
    if let Some(name) = present.first() {
        let source = metric.object(name).unwrap_or(NOTHING);
        errors.extend(validate_source(path.child(name), name, source, rule));
    }
    let expected = SOURCES.iter().find(|(_, of)| *of == kind).map(|(name, _)| *name);
    if let Some(expected) = expected.filter(|expected| !present.contains(expected)) {
        let detail = "must populate information for the given metric source";
        errors.push(FieldError::required(path.child(expected), detail));
    }
    if expected.is_none() {
        // The original looks for the source of the type, and says once more that there is no such type.
        errors.push(FieldError::not_supported(at_type, kind, &TYPES));
    }
    if present.len() != 1 {
        let others = present.iter().filter(|name| Some(**name) != expected);
        let detail = "must populate the given metric source only";
        errors.extend(others.map(|name| FieldError::forbidden(path.child(name), detail)));
    }
    errors
}

fn validate_source(path: FieldPath<'_>, kind: &str, source: &Object, rule: Reference) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let part = |name: &str| source.object(name).unwrap_or(NOTHING);
    if kind == "object" {
        errors.extend(validate_reference(path.child("describedObject"), part("describedObject"), rule));
    }
    match kind {
        "resource" | "containerResource" => errors.extend(validate_resource(path, kind, source)),
        _ => errors.extend(validate_identifier(path.child("metric"), part("metric"))),
    }
    let (at_target, target) = (path.child("target"), part("target"));
    errors.extend(validate_target(at_target, target));
    let has = |name| target.contains(name);
    let required = |name, detail| FieldError::required(at_target.child(name), detail);
    match kind {
        "object" if !has("value") && !has("averageValue") => {
            errors.push(required("averageValue", "must set either a target value or averageValue"));
        }
        "external" if !has("value") && !has("averageValue") => {
            let detail = "must set either a target value for metric or a per-pod target";
            errors.push(required("averageValue", detail));
        }
        "external" if has("value") && has("averageValue") => {
            let detail = "may not set both a target value for metric and a per-pod target";
            errors.push(FieldError::forbidden(at_target.child("value"), detail));
        }
        "pods" if !has("averageValue") => {
            errors.push(required("averageValue", "must specify a positive target averageValue"));
        }
        "resource" | "containerResource" if !has("averageUtilization") && !has("averageValue") => {
            let detail = "must set either a target raw value or a target utilization";
            errors.push(required("averageUtilization", detail));
        }
        "resource" | "containerResource" if has("averageUtilization") && has("averageValue") => {
            let detail = "may not set both a target raw value and a target utilization";
            errors.push(FieldError::forbidden(at_target.child("averageValue"), detail));
        }
        _ => {}
    }
    errors
}

fn validate_resource(path: FieldPath<'_>, kind: &str, source: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let (at_name, name) = (path.child("name"), text(source, "name"));
    if name.is_empty() {
        errors.push(FieldError::required(at_name, "must specify a resource name"));
    }
    if kind == "containerResource" {
        if !name.is_empty() {
            errors.extend(container_resource_name(at_name, name));
        }
        let (at_container, container) = (path.child("container"), text(source, "container"));
        if container.is_empty() {
            errors.push(FieldError::required(at_container, "must specify a container"));
        } else {
            errors.extend(problems(at_container, container, dns1123_label(container)));
        }
    }
    errors
}

fn validate_identifier(path: FieldPath<'_>, metric: &Object) -> FieldErrors {
    let (at, name) = (path.child("name"), text(metric, "name"));
    if name.is_empty() {
        return FieldErrors::from([FieldError::required(at, "must specify a metric name")]);
    }
    problems(at, name, path_segment_name(name))
}

fn validate_target(path: FieldPath<'_>, target: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let (at_type, kind) = (path.child("type"), text(target, "type"));
    if kind.is_empty() {
        errors.push(FieldError::required(at_type, "must specify a metric target type"));
    }
    if !matches!(kind, "Utilization" | "Value" | "AverageValue") {
        let detail = "must be either Utilization, Value, or AverageValue";
        errors.push(FieldError::invalid(at_type, kind, detail));
    }
    for name in ["value", "averageValue"] {
        let quantity = target.str(name).and_then(|text| Quantity::parse(text).ok());
        if quantity.is_some_and(|quantity| quantity.sign() != 1) {
            errors.push(FieldError::invalid(path.child(name), shown(target, name), "must be positive"));
        }
    }
    if let Some(percent) = given_number(target, "averageUtilization").filter(|percent| *percent < 1) {
        errors.push(FieldError::invalid(path.child("averageUtilization"), percent, "must be greater than 0"));
    }
    errors
}
