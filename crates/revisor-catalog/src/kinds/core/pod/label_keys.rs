//! `matchLabelKeys` and `mismatchLabelKeys`: keys whose values on the pod itself become part of the label selectors of
//! affinity terms and topology spread constraints when the pod is made.

use revisor_object::{Object, Value};

use crate::{Feature, Features};

/// Writes the values of the named labels into the selectors beside them.
pub(super) fn merge_into_selectors(pod: &mut Object, features: Features) {
    let Some(labels) = pod.object("metadata").and_then(|metadata| metadata.object("labels")).cloned() else { return };
    let spec = pod.object_mut("spec");
    if let Some(affinity) = spec.get_mut("affinity").and_then(Value::as_object_mut) {
        for kind in ["podAffinity", "podAntiAffinity"] {
            let Some(rules) = affinity.get_mut(kind).and_then(Value::as_object_mut) else { continue };
            for term in list(rules, "preferredDuringSchedulingIgnoredDuringExecution") {
                if let Some(term) = term.get_mut("podAffinityTerm").and_then(Value::as_object_mut) {
                    merge(term, &labels);
                }
            }
            list(rules, "requiredDuringSchedulingIgnoredDuringExecution").for_each(|term| merge(term, &labels));
        }
    }
    let are_merged = features.has(Feature::MatchLabelKeysInPodTopologySpread)
        && features.has(Feature::MatchLabelKeysInPodTopologySpreadSelectorMerge);
    if are_merged {
        list(spec, "topologySpreadConstraints").for_each(|constraint| merge(constraint, &labels));
    }
}

fn list<'a>(object: &'a mut Object, name: &str) -> impl Iterator<Item = &'a mut Object> {
    object.array_mut(name).into_iter().flatten().filter_map(Value::as_object_mut)
}

fn merge(term: &mut Object, labels: &Object) {
    let mut added = Vec::new();
    for (keys, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        for key in term.array(keys).iter().filter_map(Value::as_str) {
            if let Some(value) = labels.get(key) {
                added.push(Value::from(Object::from_iter([
                    ("key", Value::from(key)),
                    ("operator", Value::from(operator)),
                    ("values", Value::from(vec![value.clone()])),
                ])));
            }
        }
    }
    // A term without a selector matches nothing, and is left at that.
    let Some(selector) = term.get_mut("labelSelector").and_then(Value::as_object_mut) else { return };
    if added.is_empty() {
        return;
    }
    match selector.array_mut("matchExpressions") {
        Some(expressions) => expressions.append(&mut added),
        None => {
            selector.insert("matchExpressions", added);
        }
    }
}
