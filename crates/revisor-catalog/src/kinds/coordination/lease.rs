//! Leases: who holds what, until when.

use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Value};

use crate::{Part, Strategy};

const STRATEGIES: [&str; 1] = ["OldestEmulationVersion"];

pub(crate) struct Leases;

impl Strategy for Leases {
    fn validate(&self, object: &Object) -> FieldErrors {
        let mut errors = FieldErrors::new();
        let Some(spec) = object.object("spec") else { return errors };
        let path = FieldPath::root("spec");
        let number = |name| spec.get(name).and_then(Value::as_i64);
        if let Some(seconds) = number("leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
            errors.push(FieldError::invalid(path.child("leaseDurationSeconds"), seconds, "must be greater than 0"));
        }
        if let Some(count) = number("leaseTransitions").filter(|count| *count < 0) {
            let detail = "must be greater than or equal to 0";
            errors.push(FieldError::invalid(path.child("leaseTransitions"), count, detail));
        }
        let strategy = spec.str("strategy");
        if let Some(strategy) = strategy {
            validate_strategy(strategy, path.child("strategy"), &mut errors);
        }
        if spec.str("preferredHolder").is_some_and(|holder| !holder.is_empty())
            && strategy.unwrap_or_default().is_empty()
        {
            let detail = "may only be specified if `strategy` is defined";
            errors.push(FieldError::forbidden(path.child("preferredHolder"), detail));
        }
        errors
    }

    fn validate_update(&self, object: &Object, _: &Object, _: Part<'_>) -> FieldErrors {
        self.validate(object)
    }
}

/// The strategies that have no domain in front are Kubernetes' own; others are for anyone to invent. The original names
/// the field twice.
pub(super) fn validate_strategy(strategy: &str, path: FieldPath<'_>, errors: &mut FieldErrors) {
    let path = path.child("strategy");
    if strategy.contains('/') {
        for problem in revisor_object::names::qualified_name(strategy) {
            errors.push(FieldError::invalid(path, strategy, problem));
        }
    } else if !STRATEGIES.contains(&strategy) {
        errors.push(FieldError::not_supported(path, strategy, &STRATEGIES));
    }
}
