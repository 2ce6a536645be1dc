//! What may become of a claim: once made, nearly nothing of its spec changes, so that quotas and limits hold.

use revisor_object::names::qualified_name;
use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Quantity, Value};

use super::{Allowances, CLASS_ANNOTATION, SPEC};
use crate::checks::{immutable, problems};
use crate::kinds::amounts::{self, amount_of, same_amounts};
use crate::kinds::resource_names::is_native;
use crate::{Feature, Features};

/// How far a change of size has come.
const RESIZE_STATUSES: &[&str] = &[
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];

/// What is wrong with a claim in place of the old one, beyond what is wrong with it by itself.
pub(super) fn validate(object: &Object, old: &Object, allowances: Allowances, features: Features) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let empty = Object::new();
    let spec = object.object("spec").unwrap_or(&empty);
    let old_spec = old.object("spec").unwrap_or(&empty);

    let class = class_change(object, old);
    if class != ClassChange::FromAnnotation {
        let (annotation, old_annotation) = (class_annotation(object), class_annotation(old));
        if annotation != old_annotation {
            let path = format!("metadata.annotations.{CLASS_ANNOTATION}");
            errors.push(FieldError::invalid(path, annotation.unwrap_or_default(), "field is immutable"));
        }
    }
    if !same_spec(object, spec, old_spec, class) {
        let detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for \
                      bound claims";
        let (old_spec, spec) = compared_specs(object, spec, old_spec, class);
        errors.push(FieldError::changed(SPEC, &old_spec, &spec, detail));
    }
    let storage = |spec: &Object| amount_of(requests(spec), "storage").unwrap_or(Quantity::ZERO);
    let size = storage(spec);
    if size < storage(old_spec) {
        let capacity = old.object("status").and_then(|status| status.object("capacity"));
        // A claim whose growth failed may ask for less again, but a volume never shrinks.
        if !allowances.recovery {
            let detail = "field can not be less than previous value";
            errors.push(FieldError::forbidden("spec.resources.requests.storage", detail));
        } else if size <= amount_of(capacity, "storage").unwrap_or(Quantity::ZERO) {
            let detail = "field can not be less than status.capacity";
            errors.push(FieldError::forbidden("spec.resources.requests.storage", detail));
        }
    }
    errors.extend(immutable(FieldPath::root("volumeMode"), spec.get("volumeMode"), old_spec.get("volumeMode")));
    let class = "volumeAttributesClassName";
    if spec.get(class) != old_spec.get(class) {
        if !features.has(Feature::VolumeAttributesClass) {
            let detail = "update is forbidden when the VolumeAttributesClass feature gate is disabled";
            errors.push(FieldError::forbidden(SPEC.child(class), detail));
        }
        if allowances.attributes_class {
            errors.extend(attributes_class(spec, old));
        }
    }
    errors
}

fn class_annotation(object: &Object) -> Option<&str> {
    object.at(&["metadata", "annotations", CLASS_ANNOTATION]).and_then(Value::as_str)
}

/// How the class of a claim changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClassChange {
    /// The field takes over what the annotation said.
    FromAnnotation,
    /// A claim without a class gets one.
    FromNone,
    /// In no way that is allowed.
    Other,
}

fn class_change(object: &Object, old: &Object) -> ClassChange {
    let class = object.at(&["spec", "storageClassName"]).and_then(Value::as_str);
    let (Some(class), None) = (class, old.at(&["spec", "storageClassName"])) else { return ClassChange::Other };
    match (class_annotation(old), class_annotation(object)) {
        (Some(before), None) if before == class => ClassChange::FromAnnotation,
        (Some(before), Some(now)) if before == class && now == before => ClassChange::FromAnnotation,
        (Some(before), _) if before != class => ClassChange::Other,
        _ => ClassChange::FromNone,
    }
}

fn requests(spec: &Object) -> Option<&Object> {
    spec.object("resources")?.object("requests")
}

/// Whether nothing changed but what may.
fn same_spec(object: &Object, spec: &Object, old: &Object, class: ClassChange) -> bool {
    let is_bound = object.at(&["status", "phase"]).and_then(Value::as_str) == Some("Bound");
    let same = |name: &str| spec.get(name) == old.get(name);
    let limits = |spec: &'_ Object| spec.object("resources").and_then(|resources| resources.object("limits")).cloned();
    let same_requests = match (requests(spec), requests(old)) {
        (Some(new), Some(old)) if is_bound => {
            let without_size = |list: &Object| {
                let mut list = list.clone();
                list.remove("storage");
                list
            };
            same_amounts(Some(&without_size(new)), Some(&without_size(old)))
        }
        (new, old) => same_amounts(new, old),
    };
    ["accessModes", "selector", "volumeMode", "dataSource", "dataSourceRef"].into_iter().all(same)
        && (same("volumeName") || !old.contains("volumeName"))
        && (same("storageClassName") || class != ClassChange::Other)
        && (same("volumeAttributesClassName") || is_bound)
        && same_requests
        && same_amounts(limits(spec).as_ref(), limits(old).as_ref())
}

/// The specs as they are compared, without what may change.
fn compared_specs(object: &Object, spec: &Object, old: &Object, class: ClassChange) -> (Object, Object) {
    let (mut spec, mut old) = (spec.clone(), old.clone());
    let is_bound = object.at(&["status", "phase"]).and_then(Value::as_str) == Some("Bound");
    if !old.contains("volumeName") {
        old.set("volumeName", spec.get("volumeName").cloned());
    }
    if class != ClassChange::Other {
        spec.set("storageClassName", old.get("storageClassName").cloned());
    }
    if is_bound {
        spec.set("volumeAttributesClassName", old.get("volumeAttributesClassName").cloned());
        let size = requests(&old).and_then(|requests| requests.get("storage")).cloned();
        let asked = spec.get_mut("resources").and_then(Value::as_object_mut);
        if let Some(requests) = asked.and_then(|resources| resources.get_mut("requests")).and_then(Value::as_object_mut)
        {
            requests.set("storage", size);
        }
    }
    (old, spec)
}

/// A class that was once applied cannot be taken back.
fn attributes_class(spec: &Object, old: &Object) -> Option<FieldError> {
    let name = "volumeAttributesClassName";
    old.at(&["status", "currentVolumeAttributesClassName"])?;
    let what = match spec.str(name) {
        None => "nil",
        Some("") => "empty string",
        Some(_) => return None,
    };
    let detail = format!("update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil");
    Some(FieldError::forbidden(SPEC.child(name), detail))
}

/// What is wrong with the status of a claim.
pub(super) fn validate_status(object: &Object, allowances: Allowances) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let empty = Object::new();
    if object.object("spec").is_none_or(|spec| spec.array("accessModes").is_empty()) {
        // The capital letter is the original's.
        errors.push(FieldError::required("Spec.accessModes", ""));
    }
    let status = object.object("status").unwrap_or(&empty);
    let root = FieldPath::root("status");
    let path = root.child("capacity");
    for (name, value) in status.object("capacity").into_iter().flat_map(Object::iter) {
        errors.extend(amounts::basic(path.key(name), &amounts::amount(value)));
    }
    if !allowances.recovery {
        return errors;
    }
    let path = root.child("allocatedResourceStatuses");
    for (name, value) in status.object("allocatedResourceStatuses").into_iter().flat_map(Object::iter) {
        errors.extend(resource_key(path, name));
        if !RESIZE_STATUSES.contains(&value.as_str().unwrap_or_default()) {
            errors.push(FieldError::not_supported(path, name, RESIZE_STATUSES));
        }
    }
    let path = root.child("allocatedResources");
    for (name, value) in status.object("allocatedResources").into_iter().flat_map(Object::iter) {
        let found = resource_key(path, name);
        if found.is_empty() {
            let quantity = amounts::amount(value);
            let negative = amounts::basic(path.key(name), &quantity);
            errors.extend(negative.or_else(|| amounts::not_negative(path.key(name), &quantity)));
        }
        errors.extend(found);
    }
    errors
}

/// A resource of a volume: of those that Kubernetes defines only its storage.
fn resource_key(path: FieldPath<'_>, name: &str) -> FieldErrors {
    let mut errors = problems(path, name, qualified_name(name));
    if errors.is_empty() && is_native(name) && name != "storage" {
        errors.push(FieldError::not_supported(path, name, &["storage"]));
    }
    errors
}
