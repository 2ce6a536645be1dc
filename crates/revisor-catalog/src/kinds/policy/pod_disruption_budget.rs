//! PodDisruptionBudgets: how many pods may be missing because somebody wanted it so.

use revisor_object::{
    BadValue, FieldError, FieldErrors, FieldPath, IntOrString, LabelSelectorOptions, Object, StructuredLabelSelector,
};

use crate::checks::one_of;
use crate::kinds::conditions;
use crate::kinds::workload::{negative, spec as spec_of, status as status_of};
use crate::strategy::spec_or_status;
use crate::{Part, Places, Strategy};

const SPEC: FieldPath<'static> = FieldPath::root("spec");

pub(crate) struct PodDisruptionBudgets;

impl Strategy for PodDisruptionBudgets {
    fn tracked(&self) -> Places {
        &[&["spec"]]
    }

    fn untouched(&self, part: Part<'_>) -> Places {
        spec_or_status(part)
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        validate_spec(spec_of(object), LabelSelectorOptions::default())
    }

    fn validate_update(&self, object: &Object, old: &Object, part: Part<'_>) -> FieldErrors {
        if part == Part::STATUS {
            return validate_status(status_of(object));
        }
        // Whatever was wrong with the old selector, its values are let pass.
        let old = spec_of(old).object("selector").map(StructuredLabelSelector::new);
        let strict = LabelSelectorOptions::default();
        let was_wrong = old.is_some_and(|selector| !selector.validate(&SPEC.child("selector"), strict).is_empty());
        validate_spec(spec_of(object), LabelSelectorOptions { allow_invalid_values: was_wrong, ..strict })
    }
}

fn validate_spec(spec: &Object, options: LabelSelectorOptions) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if spec.contains("minAvailable") && spec.contains("maxUnavailable") {
        let detail = "minAvailable and maxUnavailable cannot be both set";
        errors.push(FieldError::invalid(SPEC, BadValue::of(spec), detail));
    }
    for name in ["minAvailable", "maxUnavailable"] {
        let path = SPEC.child(name);
        if let Some(bound) = spec.get(name).and_then(IntOrString::of) {
            errors.extend(bound.check_int_or_percent(&path));
            errors.extend(bound.check_at_most_100_percent(&path));
        }
    }
    if let Some(selector) = spec.object("selector") {
        errors.extend(StructuredLabelSelector::new(selector).validate(&SPEC.child("selector"), options));
    }
    if let Some(policy) = spec.str("unhealthyPodEvictionPolicy") {
        let policies = ["AlwaysAllow", "IfHealthyBudget"];
        errors.extend(one_of(SPEC.child("unhealthyPodEvictionPolicy"), policy, &policies));
    }
    errors
}

fn validate_status(status: &Object) -> FieldErrors {
    let path = FieldPath::root("status");
    let mut errors = conditions::validate(path.child("conditions"), status.array("conditions"));
    let counts = ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"];
    errors.extend(negative(path, status, &counts));
    errors
}
