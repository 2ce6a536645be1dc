//! Lease candidates: who could hold a lease, and by which versions one of them is chosen.

use revisor_object::{FieldError, FieldErrors, FieldPath, Object};

use super::lease::validate_strategy;
use crate::kinds::semantic_version::SemanticVersion;
use crate::kinds::workload::{spec, text};
use crate::{Part, Strategy};

const SPEC: FieldPath<'static> = FieldPath::root("spec");
const OLDEST: &str = "OldestEmulationVersion";
const NO_VERSION: &str = "must be a valid semantic version";

pub(crate) struct LeaseCandidates;

impl Strategy for LeaseCandidates {
    fn validate(&self, object: &Object) -> FieldErrors {
        let spec = spec(object);
        let mut errors = FieldErrors::new();
        if text(spec, "leaseName").is_empty() {
            errors.push(FieldError::required(SPEC.child("leaseName"), ""));
        }
        let (emulation, binary) = (text(spec, "emulationVersion"), text(spec, "binaryVersion"));
        // What is no version counts as 0.0.0 below.
        let emulated = SemanticVersion::parse(emulation);
        if !emulation.is_empty() && emulated.is_none() {
            errors.push(FieldError::invalid(SPEC.child("emulationVersion"), emulation, NO_VERSION));
        }
        let emulated = emulated.unwrap_or_default();
        let at_binary = SPEC.child("binaryVersion");
        if binary.is_empty() {
            errors.push(FieldError::required(at_binary, ""));
        } else {
            let parsed = SemanticVersion::parse(binary);
            if parsed.is_none() {
                errors.push(FieldError::invalid(at_binary, binary, NO_VERSION));
            }
            if !emulation.is_empty() && parsed.unwrap_or_default() < emulated {
                let detail = "must be greater than or equal to `emulationVersion`";
                errors.push(FieldError::invalid(at_binary, binary, detail));
            }
        }
        match text(spec, "strategy") {
            "" => errors.push(FieldError::required(SPEC.child("strategy"), "")),
            strategy => {
                if strategy == OLDEST && emulated == SemanticVersion::default() {
                    let detail = "must be specified when `strategy` is 'OldestEmulationVersion'";
                    errors.push(FieldError::required(SPEC.child("emulationVersion"), detail));
                }
                validate_strategy(strategy, SPEC.child("strategy"), &mut errors);
            }
        }
        errors
    }

    fn validate_update(&self, object: &Object, old: &Object, _: Part<'_>) -> FieldErrors {
        let mut errors = self.validate(object);
        let (lease, was) = (text(spec(object), "leaseName"), text(spec(old), "leaseName"));
        if lease != was {
            errors.push(FieldError::invalid(SPEC.child("leaseName"), lease, "field is immutable"));
        }
        errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::{check, object};

    fn candidate(lease: &str, emulation: &str, binary: &str, strategy: &str) -> Object {
        object(&format!(
            r#"{{"spec":{{"leaseName":"{lease}","emulationVersion":"{emulation}","binaryVersion":"{binary}","strategy":"{strategy}"}}}}"#
        ))
    }

    #[test]
    fn candidates_say_which_versions_they_are() {
        let emulation = "FieldValueRequired spec.emulationVersion";
        let bad_binary = "FieldValueInvalid spec.binaryVersion";
        for (lease, emulated, binary, strategy, want) in [
            ("a", "1.2.0", "1.2.3", OLDEST, vec![]),
            ("a", "", "1.2.3", "example.com/s", vec![]),
            ("a", "", "1.2.3", OLDEST, vec![emulation]),
            ("a", "0.0.0", "1.2.3", OLDEST, vec![emulation]),
            ("a", "1.3.0", "1.2.3", OLDEST, vec![bad_binary]),
            ("a", "1.3.0", "1", OLDEST, vec![bad_binary, bad_binary]),
            ("a", "1.2", "1.2.3", OLDEST, vec!["FieldValueInvalid spec.emulationVersion", emulation]),
            ("a", "1.2.0", "1.2.3", "other", vec!["FieldValueNotSupported spec.strategy.strategy"]),
            (
                "",
                "",
                "",
                "",
                vec![
                    "FieldValueRequired spec.leaseName",
                    "FieldValueRequired spec.binaryVersion",
                    "FieldValueRequired spec.strategy",
                ],
            ),
        ] {
            let candidate = candidate(lease, emulated, binary, strategy);
            check(&format!("{emulated} {binary} {strategy}"), &LeaseCandidates.validate(&candidate), &want);
        }
    }

    #[test]
    fn a_candidate_stays_with_its_lease() {
        let (old, new) = (candidate("a", "1.2.0", "1.2.3", OLDEST), candidate("b", "1.2.0", "1.2.3", OLDEST));
        let errors = LeaseCandidates.validate_update(&new, &old, Part::Whole);
        check("another lease", &errors, &["FieldValueInvalid spec.leaseName"]);
    }
}
