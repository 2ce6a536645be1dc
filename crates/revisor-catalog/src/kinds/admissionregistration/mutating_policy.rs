//! MutatingAdmissionPolicies: expressions that say how objects are changed.

use revisor_cel::Type;
use revisor_object::{FieldError, FieldErrors, FieldPath, Object};

use super::REINVOCATION_POLICIES;
use super::expressions::{Composition, Expressions, Scope};
use super::reserved_names;
use super::resource_rule::validate_mutable;
use super::validating_policy::validate_common;
use crate::checks::required_one_of;
use crate::{Features, Part, Places, Strategy};

pub(crate) struct MutatingAdmissionPolicies {
    pub(super) expressions: Expressions,
    pub(super) features: Features,
}

impl Strategy for MutatingAdmissionPolicies {
    fn tracked(&self) -> Places {
        &[&["spec"]]
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        let mut errors = validate_policy(&self.expressions, object, None);
        errors.extend(reserved_names::validate(object, self.features));
        errors
    }

    fn warnings(&self, object: &Object, old: Option<&Object>) -> Vec<String> {
        reserved_names::warnings(object, old, self.features)
    }

    fn validate_update(&self, object: &Object, old: &Object, _: Part<'_>) -> FieldErrors {
        validate_policy(&self.expressions, object, Some(old))
    }
}

fn validate_policy(expressions: &Expressions, object: &Object, old: Option<&Object>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let empty = Object::new();
    let path = FieldPath::root("spec");
    let spec = object.object("spec").unwrap_or(&empty);
    let mut policy = expressions.composed(old);
    validate_common(path, spec, old.and_then(|old| old.object("spec")), expressions, &mut policy, &mut errors);
    let scope = Scope { params: spec.contains("paramKind"), authorizer: true, patch: true };
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
            validate_mutation(mutations.index(at), mutation, &policy, scope, &mut errors);
        }
    }
    let reinvocation = spec.str("reinvocationPolicy").unwrap_or_default();
    errors.extend(required_one_of(path.child("reinvocationPolicy"), reinvocation, &REINVOCATION_POLICIES));
    errors
}

fn validate_mutation(
    path: FieldPath<'_>,
    mutation: &Object,
    policy: &Composition<'_>,
    scope: Scope,
    errors: &mut FieldErrors,
) {
    let kind = mutation.str("patchType").unwrap_or_default();
    let (own, other, wanted) = match kind {
        "JSONPatch" => ("jsonPatch", "applyConfiguration", Type::list(Type::object("JSONPatch"))),
        "ApplyConfiguration" => ("applyConfiguration", "jsonPatch", Type::object("Object")),
        _ => {
            return errors.extend(required_one_of(path.child("patchType"), kind, &["ApplyConfiguration", "JSONPatch"]));
        }
    };
    let at_own = path.child(own);
    match mutation.object(own) {
        Some(patch) => {
            let at_expression = at_own.child("expression");
            match patch.str("expression").unwrap_or_default().trim() {
                "" => errors.push(FieldError::required(at_expression, "")),
                text => errors.extend(policy.check(at_expression, (text, text), scope, &[wanted])),
            }
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
    use crate::kinds::tests::{check, object, terms};

    #[test]
    fn mutations_are_of_one_sort() {
        let expressions = Expressions::new(&terms());
        for (mutation, want) in [
            (
                r#"{"patchType":"JSONPatch","jsonPatch":{"expression":"[JSONPatch{op: 'remove', path: '/a'}]"}}"#,
                &[][..],
            ),
            (r#"{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":"Object{}"}}"#, &[]),
            ("{}", &["FieldValueRequired m.patchType"]),
            (
                r#"{"patchType":"JSONPatch","jsonPatch":{"expression":"Object{}"}}"#,
                &["FieldValueInvalid m.jsonPatch.expression"],
            ),
            (
                r#"{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":"params.x"}}"#,
                &["FieldValueInvalid m.applyConfiguration.expression"],
            ),
            (r#"{"patchType":"Diff"}"#, &["FieldValueNotSupported m.patchType"]),
            (r#"{"patchType":"JSONPatch"}"#, &["FieldValueRequired m.jsonPatch"]),
            (
                r#"{"patchType":"ApplyConfiguration","applyConfiguration":{},"jsonPatch":{"expression":"[JSONPatch{op: 'remove', path: '/a'}]"}}"#,
                &["FieldValueRequired m.applyConfiguration.expression", "FieldValueInvalid m.jsonPatch"],
            ),
        ] {
            let mut errors = FieldErrors::new();
            let scope = Scope { params: false, authorizer: true, patch: true };
            validate_mutation(FieldPath::root("m"), &object(mutation), &expressions.composed(None), scope, &mut errors);
            check(mutation, &errors, want);
        }
    }

    #[test]
    fn deletions_cannot_be_changed() {
        let policy = object(
            r#"{"spec":{"failurePolicy":"Fail","reinvocationPolicy":"Never",
                "mutations":[{"patchType":"JSONPatch","jsonPatch":{"expression":"[JSONPatch{op: 'remove', path: '/a'}]"}}],
                "matchConstraints":{"matchPolicy":"Exact","namespaceSelector":{},"objectSelector":{},"resourceRules":
                [{"apiGroups":[""],"apiVersions":["v1"],"resources":["pods"],"operations":["CREATE","DELETE"]}]}}}"#,
        );
        let want = ["FieldValueNotSupported spec.matchConstraints.resourceRules.operations"];
        let policies =
            MutatingAdmissionPolicies { expressions: Expressions::new(&terms()), features: terms().features };
        check("deletion", &policies.validate(&policy), &want);
    }
}
