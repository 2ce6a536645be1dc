//! Spread constraints: how evenly the pods of a selection are to be spread over the parts of a topology.

use std::collections::{HashMap, HashSet};

use revisor_object::names::qualified_name;
use revisor_object::{FieldError, FieldErrors, FieldPath, LabelSelectorOptions, Object, StructuredLabelSelector};

use super::members::{NONE, entries, given_number, number, objects, part, text, texts};
use super::options::Options;
use crate::checks::{one_of, positive, problems};
use crate::{Feature, Features};

const ACTIONS: &[&str] = &["DoNotSchedule", "ScheduleAnyway"];
const POLICIES: &[&str] = &["Honor", "Ignore"];
const IN_BOTH: &str = "exists in both matchLabelKeys and labelSelector";
const WITHOUT_SELECTOR: &str = "must not be specified when labelSelector is not set";

/// What is wrong with the spread constraints of a spec.
pub(super) fn validate(path: FieldPath<'_>, spec: &Object, options: Options, errors: &mut FieldErrors) {
    fn told_apart_by(constraint: &Object) -> (&str, &str) {
        (text(constraint, "topologyKey"), text(constraint, "whenUnsatisfiable"))
    }
    let constraints = || objects(spec, "topologySpreadConstraints");
    let last: HashMap<(&str, &str), usize> = constraints().map(|(at, it)| (told_apart_by(it), at)).collect();
    for (at, constraint) in constraints() {
        let path = path.index(at);
        errors.extend(positive(path.child("maxSkew"), number(constraint, "maxSkew")));
        let (key, action) = told_apart_by(constraint);
        if key.is_empty() {
            errors.push(FieldError::required(path.child("topologyKey"), "can not be empty"));
        }
        errors.extend(one_of(path.child("whenUnsatisfiable"), action, ACTIONS));
        if last.get(&(key, action)).is_some_and(|last| *last > at) {
            let path = path.child("{topologyKey, whenUnsatisfiable}");
            errors.push(FieldError::duplicate(path, format!("{{{key}, {action}}}")));
        }
        if let Some(domains) = given_number(constraint, "minDomains") {
            errors.extend(positive(path.child("minDomains"), domains));
            if action != "DoNotSchedule" {
                let detail = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
                errors.push(FieldError::invalid(path.child("minDomains"), domains, detail));
            }
        }
        for name in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            if let Some(policy) = constraint.str(name) {
                errors.extend(one_of(path.child(name), policy, POLICIES));
            }
        }
        if options.older_spread_keys {
            validate_keys_by_older_rule(path.child("matchLabelKeys"), constraint, errors);
        } else {
            validate_keys(path, constraint, errors);
        }
        if !options.bad_spread_selectors {
            let selector = StructuredLabelSelector::new(part(constraint, "labelSelector"));
            errors.extend(selector.validate(&path.child("labelSelector"), LabelSelectorOptions::default()));
        }
    }
}

/// Whether the label keys of a spec's constraints are looked at by the older rule. Where those of the old spec do not
/// stand the rule that the features ask for, it is the other one: they cannot be changed any more.
pub(super) fn has_older_keys(old: Option<&Object>, features: Features) -> bool {
    if !features.has(Feature::MatchLabelKeysInPodTopologySpread) {
        return true;
    }
    let is_merged = features.has(Feature::MatchLabelKeysInPodTopologySpreadSelectorMerge);
    let is_sound = |constraint: &Object| {
        let mut errors = FieldErrors::new();
        if is_merged {
            validate_keys(FieldPath::none(), constraint, &mut errors);
        } else {
            validate_keys_by_older_rule(FieldPath::none(), constraint, &mut errors);
        }
        errors.is_empty()
    };
    let are_sound =
        old.is_none_or(|old| objects(old, "topologySpreadConstraints").all(|(_, constraint)| is_sound(constraint)));
    is_merged != are_sound
}

/// What is wrong with keys whose values a pod takes from its own labels: `matchLabelKeys` and `mismatchLabelKeys`,
/// which only affinities have.
pub(super) fn validate_keys(path: FieldPath<'_>, term: &Object, errors: &mut FieldErrors) {
    let selector = term.object("labelSelector");
    for name in ["matchLabelKeys", "mismatchLabelKeys"] {
        let path = path.child(name);
        if selector.is_none() && !term.array(name).is_empty() {
            errors.push(FieldError::forbidden(path, WITHOUT_SELECTOR));
            continue;
        }
        for (at, key) in texts(term, name) {
            errors.extend(problems(path.index(at), key, qualified_name(key)));
        }
    }
    // The keys have been added to the selector already. One that is there twice was there before.
    let mut selected: HashSet<&str> = entries(selector.unwrap_or(NONE), "matchLabels").map(|(key, _)| key).collect();
    let last_matched: HashMap<&str, usize> = texts(term, "matchLabelKeys").map(|(at, key)| (key, at)).collect();
    for (_, expression) in objects(selector.unwrap_or(NONE), "matchExpressions") {
        let key = text(expression, "key");
        if !selected.insert(key)
            && let Some(at) = last_matched.get(key)
        {
            errors.push(FieldError::invalid(path.index(*at), key, IN_BOTH));
        }
    }
    let at_keys = path.child("matchLabelKeys");
    let mismatched: HashSet<&str> = texts(term, "mismatchLabelKeys").map(|(_, key)| key).collect();
    for (at, key) in texts(term, "matchLabelKeys") {
        if mismatched.contains(key) {
            let detail = "exists in both matchLabelKeys and mismatchLabelKeys";
            errors.push(FieldError::invalid(at_keys.index(at), key, detail));
        }
    }
}

/// The rule from before keys were added to the selector.
fn validate_keys_by_older_rule(path: FieldPath<'_>, constraint: &Object, errors: &mut FieldErrors) {
    if constraint.array("matchLabelKeys").is_empty() {
        return;
    }
    let selector = constraint.object("labelSelector");
    if selector.is_none() {
        errors.push(FieldError::forbidden(path, WITHOUT_SELECTOR));
    }
    let selector = selector.unwrap_or(NONE);
    let expressions = objects(selector, "matchExpressions");
    let expressed: HashSet<&str> = expressions.map(|(_, expression)| text(expression, "key")).collect();
    for (at, key) in texts(constraint, "matchLabelKeys") {
        errors.extend(problems(path.index(at), key, qualified_name(key)));
        if part(selector, "matchLabels").contains(key) || expressed.contains(key) {
            errors.push(FieldError::invalid(path.index(at), key, IN_BOTH));
        }
    }
}
