//! Leases: who holds what, until when.

use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Value};

use crate::{Circumstances, Feature, Features, Part, Strategy};

const STRATEGIES: [&str; 1] = ["OldestEmulationVersion"];

pub(crate) struct Leases {
    pub(crate) features: Features,
}

impl Strategy for Leases {
    fn settle(&self, object: &mut Object, old: Option<&Object>, _: Circumstances<'_>) {
        if self.features.has(Feature::CoordinatedLeaderElection) {
            return;
        }
        for name in ["strategy", "preferredHolder"] {
            let was_given = old.is_some_and(|old| old.at(&["spec", name]).is_some());
            if !was_given && let Some(Value::Object(spec)) = object.get_mut("spec") {
                spec.remove(name);
            }
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Requester;
    use crate::kinds::tests::{object, terms};

    #[test]
    fn how_a_leader_is_chosen_is_said_where_it_may_be_or_was() {
        let given = r#"{"spec":{"holderIdentity":"a","preferredHolder":"b","strategy":"OldestEmulationVersion"}}"#;
        let bare = r#"{"spec":{"holderIdentity":"a"}}"#;
        for (is_on, old, want) in
            [(false, None, bare), (false, Some(bare), bare), (false, Some(given), given), (true, None, given)]
        {
            let gate = Feature::CoordinatedLeaderElection;
            let features = if is_on { terms().features.with(gate) } else { terms().features.without(gate) };
            let mut lease = object(given);
            let nobody = Circumstances { now: "", requester: Requester::default() };
            Leases { features }.settle(&mut lease, old.map(object).as_ref(), nobody);
            assert_eq!(lease, object(want), "on: {is_on}, old: {old:?}");
        }
    }
}
