//! The bindings of policies: with which parameters a policy is used, on what, and what happens then.

use std::collections::HashSet;

use revisor_object::names::dns1123_subdomain;
use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object};

use super::match_resources::validate_match_resources;
use super::param::validate_param_ref;
use super::reserved_names;
use super::resource_rule::validate_mutable;
use crate::checks::{one_of, problems};
use crate::{Features, Part, Places, Strategy};

const ACTIONS: [&str; 3] = ["Audit", "Deny", "Warn"];

pub(crate) struct ValidatingAdmissionPolicyBindings {
    pub(super) features: Features,
}

impl Strategy for ValidatingAdmissionPolicyBindings {
    fn tracked(&self) -> Places {
        &[&["spec"]]
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        let mut errors = validate_validating(object);
        errors.extend(reserved_names::validate(object, self.features));
        errors
    }

    fn validate_update(&self, object: &Object, _: &Object, _: Part<'_>) -> FieldErrors {
        validate_validating(object)
    }

    fn warnings(&self, object: &Object, old: Option<&Object>) -> Vec<String> {
        reserved_names::warnings(object, old, self.features)
    }
}

fn validate_validating(object: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let spec = object.object("spec").unwrap_or(const { &Object::new() });
    validate_binding(spec, &mut errors);
    let root = FieldPath::root("spec");
    validate_actions(root.child("validationActions"), spec, &mut errors);
    errors
}

pub(crate) struct MutatingAdmissionPolicyBindings {
    pub(super) features: Features,
}

impl Strategy for MutatingAdmissionPolicyBindings {
    fn tracked(&self) -> Places {
        &[&["spec"]]
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        let mut errors = validate_mutating(object);
        errors.extend(reserved_names::validate(object, self.features));
        errors
    }

    fn validate_update(&self, object: &Object, _: &Object, _: Part<'_>) -> FieldErrors {
        validate_mutating(object)
    }

    fn warnings(&self, object: &Object, old: Option<&Object>) -> Vec<String> {
        reserved_names::warnings(object, old, self.features)
    }
}

fn validate_mutating(object: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let spec = object.object("spec").unwrap_or(const { &Object::new() });
    validate_binding(spec, &mut errors);
    if let Some(resources) = spec.object("matchResources") {
        let root = FieldPath::root("spec");
        let path = root.child("matchResources");
        validate_mutable(path.child("resourceRules"), resources.array("resourceRules"), &mut errors);
    }
    errors
}

fn validate_binding(spec: &Object, errors: &mut FieldErrors) {
    let path = FieldPath::root("spec");
    match spec.str("policyName").unwrap_or_default() {
        "" => errors.push(FieldError::required(path.child("policyName"), "")),
        name => errors.extend(problems(path.child("policyName"), name, dns1123_subdomain(name))),
    }
    if let Some(reference) = spec.object("paramRef") {
        validate_param_ref(path.child("paramRef"), reference, errors);
    }
    if let Some(resources) = spec.object("matchResources") {
        validate_match_resources(path.child("matchResources"), resources, errors);
    }
}

fn validate_actions(path: FieldPath<'_>, spec: &Object, errors: &mut FieldErrors) {
    let actions = spec.array("validationActions");
    let mut seen = HashSet::new();
    for (at, action) in actions.iter().enumerate() {
        let action = action.as_str().unwrap_or_default();
        errors.extend(one_of(path.index(at), action, &ACTIONS));
        if !seen.insert(action) {
            errors.push(FieldError::duplicate(path.index(at), action));
        }
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the \
                      API response and headers serves no purpose)";
        errors.push(FieldError::invalid(path, BadValue::of(&actions), detail));
    }
    if actions.is_empty() {
        errors.push(FieldError::required(path, "at least one validation action is required"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::{check, object, terms};

    #[test]
    fn bindings_are_checked() {
        let actions = "FieldValueRequired spec.validationActions";
        for (spec, validating, mutating) in [
            (r#"{"policyName":"p","validationActions":["Deny","Audit"]}"#, &[][..], &[][..]),
            ("{}", &["FieldValueRequired spec.policyName", actions], &["FieldValueRequired spec.policyName"]),
            (
                r#"{"policyName":"P"}"#,
                &["FieldValueInvalid spec.policyName", actions],
                &["FieldValueInvalid spec.policyName"],
            ),
            (
                r#"{"policyName":"p","validationActions":["Deny","Warn","Deny","Shout"]}"#,
                &[
                    "FieldValueInvalid spec.validationActions",
                    "FieldValueDuplicate spec.validationActions[2]",
                    "FieldValueNotSupported spec.validationActions[3]",
                ],
                &[],
            ),
        ] {
            let binding = object(&format!(r#"{{"spec":{spec}}}"#));
            let features = terms().features;
            check(spec, &ValidatingAdmissionPolicyBindings { features }.validate(&binding), validating);
            check(spec, &MutatingAdmissionPolicyBindings { features }.validate(&binding), mutating);
        }
    }
}
