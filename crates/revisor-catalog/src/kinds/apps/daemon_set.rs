//! DaemonSets: one pod of a template on every node.
//!
//! How often the template was changed is shown in an annotation, which is what remains of a field of earlier versions.

use revisor_object::{
    BadValue, FieldError, FieldErrors, FieldPath, LabelSelectorOptions, Object, StructuredLabelSelector, Value,
};

use crate::checks::{immutable, parse_int, put_back};
use crate::kinds::pod_spec::{self, PodPolicy};
use crate::kinds::workload::{
    NOTHING, collisions_forgotten, default_template, fill, mismatch, negative, share, shown, spec, status, template,
    template_labels, template_warnings, text, validate_lasting_pods,
};
use crate::strategy::spec_or_status;
use crate::{Circumstances, Part, Places, Strategy};

const SPEC: FieldPath<'static> = FieldPath::root("spec");

const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

pub(crate) struct DaemonSets {
    pub(crate) policy: PodPolicy,
}

impl Strategy for DaemonSets {
    fn default(&self, object: &mut Object) {
        let spec = object.object_mut("spec");
        default_template(spec, self.policy.features);
        let strategy = spec.object_mut("updateStrategy");
        if text(strategy, "type") == "RollingUpdate" {
            let rolling = strategy.object_mut("rollingUpdate");
            fill(rolling, "maxUnavailable", 1);
        }
        if let Some(rolling) = strategy.get_mut("rollingUpdate").and_then(Value::as_object_mut) {
            // What stands there without effect is complete as well.
            fill(rolling, "maxUnavailable", 0);
            fill(rolling, "maxSurge", 0);
        }
        // Whoever writes the object manages the annotation, although the server says what stands in it.
        set_template_generation(object, template_generation(object));
    }

    fn unreadable(&self, object: &Object) -> Option<String> {
        let written = object.at(&["metadata", "annotations", TEMPLATE_GENERATION]).and_then(Value::as_str)?;
        parse_int(written).err()
    }

    fn tracked(&self) -> Places {
        &[&["spec"]]
    }

    fn untouched(&self, part: Part<'_>) -> Places {
        spec_or_status(part)
    }

    fn settle(&self, object: &mut Object, old: Option<&Object>, _: Circumstances<'_>) {
        let generation = match old {
            None => template_generation(object).max(1),
            Some(old) => {
                let is_changed = template(spec(object)) != template(spec(old));
                template_generation(old).saturating_add(i64::from(is_changed))
            }
        };
        set_template_generation(object, generation);
    }

    fn prepare_update(&self, object: &mut Object, old: &Object, part: Part<'_>, circumstances: Circumstances<'_>) {
        put_back(object, old, self.untouched(part));
        if part == Part::STATUS {
            // It is kept in an annotation, which came with the status.
            set_template_generation(object, template_generation(old));
        } else {
            self.settle(object, Some(old), circumstances);
        }
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        validate_spec(spec(object), None, self.policy)
    }

    fn validate_update(&self, object: &Object, old: &Object, part: Part<'_>) -> FieldErrors {
        if part == Part::STATUS {
            return validate_status(status(object), status(old));
        }
        let path = SPEC.child("selector");
        let frozen = immutable(path, spec(object).get("selector"), spec(old).get("selector"));
        let mut errors: FieldErrors = frozen.into_iter().collect();
        errors.extend(validate_spec(spec(object), Some(spec(old)), self.policy));
        errors
    }

    fn warnings(&self, object: &Object, old: Option<&Object>) -> Vec<String> {
        match old {
            Some(old) if template(spec(object)) == template(spec(old)) => Vec::new(),
            _ => template_warnings(spec(object), self.policy.features),
        }
    }
}

fn template_generation(object: &Object) -> i64 {
    let written = object.at(&["metadata", "annotations", TEMPLATE_GENERATION]).and_then(Value::as_str);
    written.and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn set_template_generation(object: &mut Object, generation: i64) {
    let annotations = object.object_mut("metadata").object_mut("annotations");
    annotations.insert(TEMPLATE_GENERATION, generation.to_string());
}

fn validate_spec(spec: &Object, old: Option<&Object>, policy: PodPolicy) -> FieldErrors {
    let mut errors = validate_selector(spec, old);
    errors.extend(pod_spec::validate_template(SPEC.child("template"), template(spec), old.map(template), policy));
    errors.extend(validate_lasting_pods(spec, "DaemonSet"));
    errors.extend(negative(SPEC, spec, &["minReadySeconds"]));
    errors.extend(validate_strategy(spec));
    errors.extend(negative(SPEC, spec, &["revisionHistoryLimit"]));
    errors
}

/// A selector that is missing is only told by what it does not find.
fn validate_selector(spec: &Object, old: Option<&Object>) -> FieldErrors {
    let path = SPEC.child("selector");
    let Some(object) = spec.object("selector") else { return FieldErrors::from([mismatch(spec)]) };
    let selector = StructuredLabelSelector::new(object);
    let was_invalid = old.and_then(|old| old.object("selector")).map(StructuredLabelSelector::new);
    let options = LabelSelectorOptions {
        allow_invalid_values: was_invalid.is_some_and(StructuredLabelSelector::has_invalid_value),
        ..LabelSelectorOptions::default()
    };
    let mut errors = selector.validate(&path, options);
    if selector.to_selector().is_ok() && !selector.matches(template_labels(spec)) {
        errors.push(mismatch(spec));
    }
    if selector.is_empty() {
        let detail = "empty selector is invalid for daemonset";
        errors.push(FieldError::invalid(path, BadValue::of(object), detail));
    }
    errors
}

fn validate_strategy(spec: &Object) -> FieldErrors {
    let path = SPEC.child("updateStrategy");
    let strategy = spec.object("updateStrategy").unwrap_or(NOTHING);
    match text(strategy, "type") {
        "OnDelete" => FieldErrors::new(),
        "RollingUpdate" => {
            let rolling = strategy.object("rollingUpdate").unwrap_or(NOTHING);
            validate_rolling_update(path.child("rollingUpdate"), rolling)
        }
        _ => FieldErrors::from([FieldError::not_supported(
            path,
            shown(spec, "updateStrategy"),
            &["RollingUpdate", "OnDelete"],
        )]),
    }
}

fn validate_rolling_update(path: FieldPath<'_>, rolling: &Object) -> FieldErrors {
    let (unavailable, surge) = (share(rolling, "maxUnavailable"), share(rolling, "maxSurge"));
    let (at_unavailable, at_surge) = (path.child("maxUnavailable"), path.child("maxSurge"));
    let mut errors = unavailable.check_int_or_percent(&at_unavailable);
    errors.extend(surge.check_int_or_percent(&at_surge));
    errors.extend(unavailable.check_at_most_100_percent(&at_unavailable));
    errors.extend(surge.check_at_most_100_percent(&at_surge));
    match (unavailable.int_or_percent() != 0, surge.int_or_percent() != 0) {
        (true, true) => {
            let detail = "may not be set when maxUnavailable is non-zero";
            errors.push(FieldError::invalid(at_surge, BadValue::from(surge), detail));
        }
        (false, false) => errors.push(FieldError::required(at_unavailable, "cannot be 0 when maxSurge is 0")),
        _ => {}
    }
    errors
}

fn validate_status(status: &Object, old: &Object) -> FieldErrors {
    let path = FieldPath::root("status");
    let counts = [
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    ];
    let mut errors = negative(path, status, &counts);
    errors.extend(collisions_forgotten(path, status, old));
    errors
}

#[cfg(test)]
mod tests;
