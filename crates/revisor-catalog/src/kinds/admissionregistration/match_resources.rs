//! `matchConstraints` and `matchResources`: what a policy applies to.

use revisor_object::{FieldError, FieldErrors, FieldPath, LabelSelectorOptions, Object, StructuredLabelSelector};

use super::MATCH_POLICIES;
use super::resource_rule::validate_named_rules;
use crate::checks::one_of;

/// What is wrong with a description of what a policy applies to.
pub(super) fn validate_match_resources(path: FieldPath<'_>, resources: &Object, errors: &mut FieldErrors) {
    match resources.str("matchPolicy") {
        Some(policy) => errors.extend(one_of(path.child("matchPolicy"), policy, &MATCH_POLICIES)),
        None => errors.push(FieldError::required(path.child("matchPolicy"), "")),
    }
    for name in ["namespaceSelector", "objectSelector"] {
        let path = path.child(name);
        match resources.object(name) {
            Some(selector) => {
                let selector = StructuredLabelSelector::new(selector);
                errors.extend(selector.validate(&path, LabelSelectorOptions::default()));
            }
            None => errors.push(FieldError::required(path, "")),
        }
    }
    for name in ["resourceRules", "excludeResourceRules"] {
        validate_named_rules(path.child(name), resources.array(name), errors);
    }
}

/// What is wrong with the constraints of a policy: they must name resources, so that types are known.
pub(super) fn validate_match_constraints(path: FieldPath<'_>, constraints: Option<&Object>, errors: &mut FieldErrors) {
    let Some(constraints) = constraints else { return errors.push(FieldError::required(path, "")) };
    validate_match_resources(path, constraints, errors);
    if constraints.array("resourceRules").is_empty() {
        errors.push(FieldError::required(path.child("resourceRules"), ""));
    }
}
