//! Affinities: which nodes a pod wants to run on, and next to which pods it does or does not.

use revisor_object::names::{dns1123_label, qualified_name};
use revisor_object::{FieldError, FieldErrors, FieldPath, LabelSelectorOptions, Object, StructuredLabelSelector};

use super::members::{NONE, number, objects, part, text, texts};
use super::options::Options;
use super::topology_spread;
use crate::checks::problems;
use crate::kinds::node_selectors;

/// The member with the terms that must hold.
pub(super) const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
/// The member with the terms that should hold.
pub(super) const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// What is wrong with the affinities of a spec.
pub(super) fn validate(path: FieldPath<'_>, affinity: &Object, options: Options, errors: &mut FieldErrors) {
    if let Some(nodes) = affinity.object("nodeAffinity") {
        let path = path.child("nodeAffinity");
        if let Some(selector) = nodes.object(REQUIRED) {
            errors.extend(node_selectors::validate(path.child(REQUIRED), selector, options.bad_node_values));
        }
        let path = path.child(PREFERRED);
        for (at, term) in objects(nodes, PREFERRED) {
            let path = path.index(at);
            errors.extend(validate_weight(path.child("weight"), term));
            // Bad values are no reason to refuse what is only a wish.
            errors.extend(node_selectors::validate_term(path.child("preference"), part(term, "preference"), true));
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

fn validate_pod_term(path: FieldPath<'_>, term: &Object, options: Options, errors: &mut FieldErrors) {
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
