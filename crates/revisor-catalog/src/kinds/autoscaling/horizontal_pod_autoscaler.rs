//! HorizontalPodAutoscalers: what is scaled, by which metrics ([`metric`]), and how fast ([`behavior`]).

mod behavior;
mod metric;

pub(super) use metric::{DEFAULT_CPU_UTILIZATION, cpu_utilization};

use revisor_object::names::path_segment_name;
use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Value};

use super::conversion::drop_round_trip_annotations;
use crate::checks::problems;
use crate::kinds::workload::{NOTHING, given_number, negative, number, spec as spec_of, status, text};
use crate::strategy::spec_or_status;
use crate::{Feature, Features, Part, Places, Strategy};

const SPEC: FieldPath<'static> = FieldPath::root("spec");

pub(crate) struct HorizontalPodAutoscalers {
    pub(crate) features: Features,
}

impl Strategy for HorizontalPodAutoscalers {
    fn default(&self, object: &mut Object) {
        let spec = object.object_mut("spec");
        if spec.array("metrics").is_empty() {
            spec.insert("metrics", vec![Value::Object(cpu_utilization(DEFAULT_CPU_UTILIZATION))]);
        }
        if let Some(behavior) = spec.get_mut("behavior").and_then(Value::as_object_mut) {
            behavior::default(behavior);
        }
        drop_round_trip_annotations(object);
    }

    fn untouched(&self, part: Part<'_>) -> Places {
        spec_or_status(part)
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        validate_spec(spec_of(object), None, self.features)
    }

    fn validate_update(&self, object: &Object, old: &Object, part: Part<'_>) -> FieldErrors {
        if part == Part::STATUS {
            return negative(FieldPath::root("status"), status(object), &["currentReplicas", "desiredReplicas"]);
        }
        validate_spec(spec_of(object), Some(spec_of(old)), self.features)
    }
}

/// What a reference to another object may look like.
#[derive(Clone, Copy)]
enum Reference {
    /// With a group.
    Grouped,
    /// With or without a group.
    Any,
    /// As it was before.
    Known,
}

fn validate_spec(spec: &Object, old: Option<&Object>, features: Features) -> FieldErrors {
    let mut errors = FieldErrors::new();
    // Who has none at all keeps it, whether it may be asked for or not.
    let is_zero_known = old.and_then(|old| given_number(old, "minReplicas")) == Some(0);
    let least = if features.has(Feature::HPAScaleToZero) || is_zero_known { 0 } else { 1 };
    let min = given_number(spec, "minReplicas");
    if let Some(min) = min.filter(|min| *min < least) {
        let detail = format!("must be greater than or equal to {least}");
        errors.push(FieldError::invalid(SPEC.child("minReplicas"), min, detail));
    }
    let (at_max, max) = (SPEC.child("maxReplicas"), number(spec, "maxReplicas"));
    if max == 0 {
        errors.push(FieldError::required(at_max, "must be set and greater than 0"));
    } else if max < 0 {
        errors.push(FieldError::invalid(at_max, max, "must be greater than or equal to 1"));
    }
    if min.is_some_and(|min| max < min) {
        errors.push(FieldError::invalid(at_max, max, "must be greater than or equal to `minReplicas`"));
    }
    let target = spec.object("scaleTargetRef").unwrap_or(NOTHING);
    let old_target = old.map(|old| old.object("scaleTargetRef").unwrap_or(NOTHING));
    let is_known =
        old_target.is_some_and(|old| ["apiVersion", "kind"].iter().all(|name| text(old, name) == text(target, name)));
    let rule = match text(target, "kind") {
        _ if is_known => Reference::Known,
        "ReplicationController" => Reference::Any,
        _ => Reference::Grouped,
    };
    errors.extend(validate_reference(SPEC.child("scaleTargetRef"), target, rule));
    errors.extend(metric::validate(SPEC.child("metrics"), spec, old));
    if let Some(behavior) = spec.object("behavior") {
        errors.extend(behavior::validate(SPEC.child("behavior"), behavior));
    }
    errors
}

/// What is wrong with a reference to an object by version, kind and name.
fn validate_reference(path: FieldPath<'_>, reference: &Object, rule: Reference) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for name in ["kind", "name"] {
        let (at, value) = (path.child(name), text(reference, name));
        if value.is_empty() {
            errors.push(FieldError::required(at, ""));
        } else {
            errors.extend(problems(at, value, path_segment_name(value)));
        }
    }
    let version = text(reference, "apiVersion");
    let wrong = wrong_version(version, rule);
    errors.extend(wrong.map(|detail| FieldError::invalid(path.child("apiVersion"), version, detail)));
    errors
}

fn wrong_version(version: &str, rule: Reference) -> Option<String> {
    match (version.matches('/').count(), rule) {
        (_, Reference::Known) => None,
        (0 | 1, Reference::Any) => None,
        (1, Reference::Grouped) if !version.starts_with('/') => None,
        (0 | 1, Reference::Grouped) => Some("apiVersion must specify API group".to_owned()),
        _ => Some(format!("unexpected GroupVersion string: {version}")),
    }
}

#[cfg(test)]
mod tests;
