//! Conversions: rules between the versions of a custom resource. Here they are held to what can be said without their
//! definition; whether they keep the laws is found out by the registry, which knows both.

use revisor_convert::Spec;
use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Seen};

use crate::kinds::conditions;
use crate::kinds::workload::status;
use crate::strategy::spec_and_metadata_or_status;
use crate::{Part, Places, Strategy};

pub(crate) struct Conversions;

impl Strategy for Conversions {
    fn tracked(&self) -> Places {
        &[&["spec"]]
    }

    fn untouched(&self, part: Part<'_>) -> Places {
        spec_and_metadata_or_status(part)
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        match Spec::read(object) {
            Ok(spec) => repetitions(&spec),
            Err(errors) => errors,
        }
    }

    fn validate_update(&self, object: &Object, old: &Object, part: Part<'_>) -> FieldErrors {
        if part == Part::Whole {
            // What was accepted once stays, whatever is asked of new ones.
            return if object.get("spec") == old.get("spec") { FieldErrors::new() } else { self.validate(object) };
        }
        let path = FieldPath::root("status");
        conditions::validate(path.child("conditions"), status(object).array("conditions"))
    }
}

/// What is said twice: whoever applies a part of a Conversion could not say which of the two is meant.
fn repetitions(spec: &Spec) -> FieldErrors {
    let (mut steps, mut versions, mut tolerated) = (Seen::default(), Seen::default(), Seen::default());
    let mut errors = FieldErrors::new();
    for step in &spec.steps {
        let name = format!("{} to {}", step.from, step.to);
        if !steps.is_new(name.clone()) {
            errors.push(FieldError::duplicate(&step.field, name));
        }
    }
    for entry in &spec.canonicalize {
        if !versions.is_new(entry.version.as_str()) {
            errors.push(FieldError::duplicate(format!("{}.version", entry.field), entry.version.as_str()));
        }
    }
    for entry in &spec.tolerate {
        let name = format!("{} of {}", entry.path, entry.version);
        if !tolerated.is_new(name.clone()) {
            errors.push(FieldError::duplicate(&entry.field, name));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::object;

    #[test]
    fn what_is_wrong_with_the_rules_by_themselves_is_said_at_its_place() {
        for (spec, want) in [
            (r#"{"steps":[{"from":"v1","to":"v2","rules":[{"move":{"from":".a","to":".b"}}]}]}"#, &[][..]),
            (r#"{"steps":[{"from":"v1","to":"v1","rules":[{}]}]}"#, &["spec.steps[0].to", "spec.steps[0].rules[0]"]),
            (r#"{"steps":[{"from":"v1","to":"v2"},{"from":"v1","to":"v2"}]}"#, &["spec.steps[1]"]),
            (r#"{"canonicalize":[{"version":"v1"},{"version":"v1"}]}"#, &["spec.canonicalize[1].version"]),
            (
                r#"{"tolerate":[{"version":"v1","path":".a","reason":"r"},{"version":"v1","path":".a","reason":"s"}]}"#,
                &["spec.tolerate[1]"],
            ),
        ] {
            let conversion = object(&format!(r#"{{"spec":{spec}}}"#));
            let errors = Conversions.validate(&conversion);
            let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
            assert_eq!(fields, want, "{spec}");
        }
    }

    #[test]
    fn the_status_is_held_to_the_form_of_conditions() {
        let old = object("{}");
        let new = object(r#"{"status":{"conditions":[{"type":"Accepted","status":"Perhaps"}]}}"#);
        let errors = Conversions.validate_update(&new, &old, Part::STATUS);
        assert!(errors.iter().any(|error| error.field == "status.conditions[0].status"), "{errors:?}");
        assert!(Conversions.validate_update(&new, &old, Part::Whole).is_empty());
    }
}
