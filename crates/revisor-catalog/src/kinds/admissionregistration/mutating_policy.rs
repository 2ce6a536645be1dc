//! MutatingAdmissionPolicies: expressions that say how objects are changed.

use revisor_object::{FieldError, FieldPath, Object};

use super::REINVOCATION_POLICIES;
use super::resource_rule::validate_mutable;
use super::validating_policy::validate_common;
use crate::checks::{required, required_one_of};
use crate::{Part, Strategy};

pub(crate) struct MutatingAdmissionPolicies;

impl Strategy for MutatingAdmissionPolicies {
    fn tracked(&self) -> &'static [&'static [&'static str]] {
        &[&["spec"]]
    }

    fn validate(&self, object: &Object) -> Vec<FieldError> {
        validate_policy(object, None)
    }

    fn validate_update(&self, object: &Object, old: &Object, _: Part<'_>) -> Vec<FieldError> {
        validate_policy(object, Some(old))
    }
}

fn validate_policy(object: &Object, old: Option<&Object>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let empty = Object::new();
    let path = FieldPath::root("spec");
    let spec = object.object("spec").unwrap_or(&empty);
    validate_common(path, spec, old.and_then(|old| old.object("spec")), &mut errors);
    if let Some(constraints) = spec.object("matchConstraints") {
        let at_constraints = path.child("matchConstraints");
        validate_mutable(at_constraints.child("resourceRules"), constraints.array("resourceRules"), &mut errors);
    }
    let mutations = path.child("mutations");
    if spec.array("mutations").is_empty() {
        errors.push(FieldError::required(mutations, "mutations must contain at least one item"));
    }
    for (at, mutation) in spec.array("mutations").iter().enumerate() {
        if let Some(mutation) = mutation.as_object() {
            validate_mutation(mutations.index(at), mutation, &mut errors);
        }
    }
    let reinvocation = spec.str("reinvocationPolicy").unwrap_or_default();
    errors.extend(required_one_of(path.child("reinvocationPolicy"), reinvocation, &REINVOCATION_POLICIES));
    errors
}

fn validate_mutation(path: FieldPath<'_>, mutation: &Object, errors: &mut Vec<FieldError>) {
    let kind = mutation.str("patchType").unwrap_or_default();
    let (own, other) = match kind {
        "JSONPatch" => ("jsonPatch", "applyConfiguration"),
        "ApplyConfiguration" => ("applyConfiguration", "jsonPatch"),
        _ => {
            return errors.extend(required_one_of(path.child("patchType"), kind, &["ApplyConfiguration", "JSONPatch"]));
        }
    };
    let at_own = path.child(own);
    match mutation.object(own) {
        Some(patch) => {
            errors.extend(required(at_own.child("expression"), patch.str("expression").unwrap_or_default().trim()));
        }
        None => errors.push(FieldError::required(at_own, format!("must be specified when patchType is {kind}"))),
    }
    if mutation.contains(other) {
        let detail = format!("must not be specified when patchType is {kind}");
        errors.push(FieldError::invalid(path.child(other), format!("{{{other}}}"), detail));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::{check, object};

    #[test]
    fn mutations_are_of_one_sort() {
        for (mutation, want) in [
            (r#"{"patchType":"JSONPatch","jsonPatch":{"expression":"x"}}"#, &[][..]),
            (r#"{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":"x"}}"#, &[]),
            ("{}", &["FieldValueRequired m.patchType"]),
            (r#"{"patchType":"Diff"}"#, &["FieldValueNotSupported m.patchType"]),
            (r#"{"patchType":"JSONPatch"}"#, &["FieldValueRequired m.jsonPatch"]),
            (
                r#"{"patchType":"ApplyConfiguration","applyConfiguration":{},"jsonPatch":{"expression":"x"}}"#,
                &["FieldValueRequired m.applyConfiguration.expression", "FieldValueInvalid m.jsonPatch"],
            ),
        ] {
            let mut errors = Vec::new();
            validate_mutation(FieldPath::root("m"), &object(mutation), &mut errors);
            check(mutation, &errors, want);
        }
    }

    #[test]
    fn deletions_cannot_be_changed() {
        let policy = object(
            r#"{"spec":{"failurePolicy":"Fail","reinvocationPolicy":"Never",
                "mutations":[{"patchType":"JSONPatch","jsonPatch":{"expression":"x"}}],
                "matchConstraints":{"matchPolicy":"Exact","namespaceSelector":{},"objectSelector":{},"resourceRules":
                [{"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"],"operations":["CREATE","DELETE"]}]}}}"#,
        );
        let want = ["FieldValueNotSupported spec.matchConstraints.resourceRules.operations"];
        check("deletion", &MutatingAdmissionPolicies.validate(&policy), &want);
    }
}
