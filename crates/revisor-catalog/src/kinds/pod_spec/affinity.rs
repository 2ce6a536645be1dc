//! Affinities: which nodes a pod wants to run on, and next to which pods it does or does not.

use revisor_object::names::{dns1123_label, dns1123_subdomain, label_value, qualified_name};
use revisor_object::{FieldError, FieldPath, LabelSelectorOptions, Object, StructuredLabelSelector};

use super::members::{NONE, number, objects, part, text, texts};
use super::options::Options;
use super::topology_spread;
use crate::checks::problems;

/// The member with the terms that must hold.
pub(super) const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
/// The member with the terms that should hold.
pub(super) const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// What is wrong with the affinities of a spec.
pub(super) fn validate(path: FieldPath<'_>, affinity: &Object, options: Options, errors: &mut Vec<FieldError>) {
    if let Some(nodes) = affinity.object("nodeAffinity") {
        let path = path.child("nodeAffinity");
        if let Some(selector) = nodes.object(REQUIRED) {
            validate_node_selector(path.child(REQUIRED), selector, options.bad_node_values, errors);
        }
        let path = path.child(PREFERRED);
        for (at, term) in objects(nodes, PREFERRED) {
            let path = path.index(at);
            errors.extend(validate_weight(path.child("weight"), term));
            // Bad values are no reason to refuse what is only a wish.
            validate_node_term(path.child("preference"), part(term, "preference"), true, errors);
        }
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let Some(pods) = affinity.object(kind) else { continue };
        let path = path.child(kind);
        let at_required = path.child(REQUIRED);
        for (at, term) in objects(pods, REQUIRED) {
            validate_pod_term(at_required.index(at), term, options, errors);
        }
        let at_preferred = path.child(PREFERRED);
        for (at, weighted) in objects(pods, PREFERRED) {
            let path = at_preferred.index(at);
            errors.extend(validate_weight(path.child("weight"), weighted));
            validate_pod_term(path.child("podAffinityTerm"), part(weighted, "podAffinityTerm"), options, errors);
        }
    }
}

fn validate_weight(path: FieldPath<'_>, weighted: &Object) -> Option<FieldError> {
    let weight = number(weighted, "weight");
    (!(1..=100).contains(&weight)).then(|| FieldError::invalid(path, weight, "must be in the range 1-100"))
}

/// What is wrong with a choice of nodes.
pub(crate) fn validate_node_selector(
    path: FieldPath<'_>,
    selector: &Object,
    bad_values: bool,
    errors: &mut Vec<FieldError>,
) {
    let path = path.child("nodeSelectorTerms");
    if selector.array("nodeSelectorTerms").is_empty() {
        errors.push(FieldError::required(path, "must have at least one node selector term"));
    }
    for (at, term) in objects(selector, "nodeSelectorTerms") {
        validate_node_term(path.index(at), term, bad_values, errors);
    }
}

fn validate_node_term(path: FieldPath<'_>, term: &Object, bad_values: bool, errors: &mut Vec<FieldError>) {
    let at_expressions = path.child("matchExpressions");
    for (at, expression) in objects(term, "matchExpressions") {
        validate_label_requirement(at_expressions.index(at), expression, bad_values, errors);
    }
    let at_fields = path.child("matchFields");
    for (at, requirement) in objects(term, "matchFields") {
        validate_field_requirement(at_fields.index(at), requirement, errors);
    }
}

fn validate_label_requirement(
    path: FieldPath<'_>,
    requirement: &Object,
    bad_values: bool,
    errors: &mut Vec<FieldError>,
) {
    let at_values = path.child("values");
    let count = requirement.array("values").len();
    match text(requirement, "operator") {
        "In" | "NotIn" if count == 0 => {
            errors.push(FieldError::required(at_values, "must be specified when `operator` is 'In' or 'NotIn'"));
        }
        "Exists" | "DoesNotExist" if count > 0 => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(at_values, detail));
        }
        "Gt" | "Lt" if count != 1 => {
            let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            errors.push(FieldError::required(at_values, detail));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        other => errors.push(FieldError::invalid(path.child("operator"), other, "not a valid selector operator")),
    }
    let key = text(requirement, "key");
    errors.extend(problems(path.child("key"), key, qualified_name(key)));
    if bad_values {
        return;
    }
    for (at, value) in texts(requirement, "values") {
        errors.extend(problems(at_values.index(at), value, label_value(value)));
    }
}

fn validate_field_requirement(path: FieldPath<'_>, requirement: &Object, errors: &mut Vec<FieldError>) {
    match text(requirement, "operator") {
        "In" | "NotIn" => {
            if requirement.array("values").len() != 1 {
                let detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
                errors.push(FieldError::required(path.child("values"), detail));
            }
        }
        other => errors.push(FieldError::invalid(path.child("operator"), other, "not a valid selector operator")),
    }
    let key = text(requirement, "key");
    if key != "metadata.name" {
        errors.push(FieldError::invalid(path.child("key"), key, "not a valid field selector key"));
        return;
    }
    let path = path.child("values");
    for (at, value) in texts(requirement, "values") {
        errors.extend(problems(path.index(at), value, dns1123_subdomain(value)));
    }
}

fn validate_pod_term(path: FieldPath<'_>, term: &Object, options: Options, errors: &mut Vec<FieldError>) {
    let selector_options =
        LabelSelectorOptions { allow_invalid_values: options.bad_affinity_values, ..LabelSelectorOptions::default() };
    for name in ["labelSelector", "namespaceSelector"] {
        let selector = StructuredLabelSelector::new(term.object(name).unwrap_or(NONE));
        errors.extend(selector.validate(&path.child(name), selector_options));
    }
    for (_, namespace) in texts(term, "namespaces") {
        errors.extend(problems(path.child("namespace"), namespace, dns1123_label(namespace)));
    }
    topology_spread::validate_keys(path, term, errors);
    let key = text(term, "topologyKey");
    if key.is_empty() {
        errors.push(FieldError::required(path.child("topologyKey"), "can not be empty"));
    }
    errors.extend(problems(path.child("topologyKey"), key, qualified_name(key)));
}
