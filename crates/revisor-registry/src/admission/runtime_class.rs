//! RuntimeClass: what the way to run a pod costs, and where it can be done.

use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use revisor_object::{ByValue, Object, Quantity, Seen, Value};

use super::pod_fields::{spec, text};
use super::{Admission, Attributes, Operation};
use crate::{Registry, RegistryError};

pub(crate) struct RuntimeClass;

impl Admission for RuntimeClass {
    fn name(&self) -> &'static str {
        "RuntimeClass"
    }

    fn handles(&self, operation: Operation) -> bool {
        operation == Operation::Create
    }

    fn admit(&self, registry: &Registry, attributes: &Attributes<'_>, pod: &mut Object) -> Result<(), RegistryError> {
        if !concerns(attributes) {
            return Ok(());
        }
        let Some(class) = class_of(registry, attributes, pod)? else { return Ok(()) };
        let spec = pod.object_mut("spec");
        if let Some(overhead) = class.object("overhead") {
            let fixed = overhead.object("podFixed").filter(|fixed| !fixed.is_empty());
            if let Some(given) = spec.object("overhead").filter(|given| !given.is_empty()) {
                require_same(attributes, Some(given), fixed)?;
            }
            spec.set("overhead", fixed.cloned().map(Value::from));
        }
        if let Some(scheduling) = class.object("scheduling") {
            let selected = scheduling.object("nodeSelector").filter(|selected| !selected.is_empty());
            for (key, wanted) in selected.into_iter().flat_map(Object::iter) {
                let selector = spec.object_mut("nodeSelector");
                let wanted = wanted.as_str().unwrap_or_default();
                if let Some(given) = selector.str(key).filter(|given| *given != wanted) {
                    return Err(attributes.forbidden(format!(
                        "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {wanted}; pod.spec.nodeSelector[{key}] = {given}"
                    )));
                }
            }
            if let Some(selected) = selected {
                let all = selected.iter().map(|(key, wanted)| (key.into(), wanted.clone()));
                spec.object_mut("nodeSelector").insert_all(all.collect());
            }
            let tolerations = merge_tolerations(spec.array("tolerations"), scheduling.array("tolerations"));
            spec.set("tolerations", (!tolerations.is_empty()).then_some(Value::from(tolerations)));
        }
        Ok(())
    }

    fn validate(&self, registry: &Registry, attributes: &Attributes<'_>, pod: &Object) -> Result<(), RegistryError> {
        if !concerns(attributes) {
            return Ok(());
        }
        let class = class_of(registry, attributes, pod)?;
        let given = spec(pod).object("overhead");
        match class.as_ref().and_then(|class| class.object("overhead")) {
            Some(overhead) => require_same(attributes, given, overhead.object("podFixed")),
            None if given.is_some() => {
                let why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
                Err(attributes.forbidden(why))
            }
            None => Ok(()),
        }
    }
}

fn concerns(attributes: &Attributes<'_>) -> bool {
    attributes.is_about("", "pods") && attributes.operation == Operation::Create
}

fn class_of(
    registry: &Registry,
    attributes: &Attributes<'_>,
    pod: &Object,
) -> Result<Option<Arc<Object>>, RegistryError> {
    let Some(name) = spec(pod).str("runtimeClassName") else { return Ok(None) };
    let class = registry.read_once("node.k8s.io", "v1", "runtimeclasses", None, name);
    let missing = || attributes.forbidden(format!("pod rejected: RuntimeClass {name:?} not found"));
    class.ok_or_else(missing).map(Some)
}

fn require_same(
    attributes: &Attributes<'_>,
    given: Option<&Object>,
    wanted: Option<&Object>,
) -> Result<(), RegistryError> {
    let empty = Object::new();
    let (given, wanted) = (given.unwrap_or(&empty), wanted.unwrap_or(&empty));
    let amount = |value: &Value| value.as_str().and_then(|text| Quantity::parse(text).ok());
    let is_same = given.len() == wanted.len()
        && given.iter().all(|(name, value)| wanted.get(name).is_some_and(|other| amount(other) == amount(value)));
    if is_same {
        return Ok(());
    }
    Err(attributes.forbidden("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"))
}

/// Both lists of tolerations, without those that another one covers.
fn merge_tolerations(first: &[Value], second: &[Value]) -> Vec<Value> {
    let all: Vec<&Value> = first.iter().chain(second).collect();
    // Of equal ones only the last counts as one that comes later.
    let last: HashMap<ByValue<'_>, usize> = all.iter().enumerate().map(|(at, it)| (ByValue(it), at)).collect();
    let mut later = Reach::default();
    last.iter().for_each(|(toleration, at)| later.add(toleration.0, *at));
    let mut kept = Reach::default();
    let mut merged: Vec<&Value> = Vec::new();
    let mut seen = Seen::default();
    for (at, toleration) in all.iter().copied().enumerate() {
        let is_covered = seen.has(&ByValue(toleration))
            || kept.covers(toleration, 0, usize::MAX)
            || later.covers(toleration, at + 1, last[&ByValue(toleration)]);
        if !is_covered {
            kept.add(toleration, merged.len());
            seen.is_new(ByValue(toleration));
            merged.push(toleration);
        }
    }
    merged.into_iter().cloned().collect()
}

/// What a toleration tolerates, but for its time: which key, or any; which effect, or any if that is empty; which value,
/// or any.
type Extent<'t> = (Option<&'t str>, &'t str, Option<&'t str>);

/// How long tolerations tolerate what they do, and their places, by what they tolerate. The longest is on top.
#[derive(Default)]
struct Reach<'t>(HashMap<Extent<'t>, BinaryHeap<(i64, usize)>>);

impl<'t> Reach<'t> {
    fn add(&mut self, toleration: &'t Value, at: usize) {
        let Some(toleration) = toleration.as_object() else { return };
        let (key, effect) = (text(toleration, "key"), text(toleration, "effect"));
        let extent = match text(toleration, "operator") {
            "Exists" => ((!key.is_empty()).then_some(key), effect, None),
            "Equal" | "" => (Some(key), effect, Some(text(toleration, "value"))),
            _ => return,
        };
        let seconds = if effect == "NoExecute" { seconds(toleration) } else { i64::MAX };
        self.0.entry(extent).or_default().push((seconds, at));
    }

    /// Whether all that a toleration tolerates, one of these does too that stands at `from` or later, and not at
    /// `itself`. Those before are forgotten: nobody asks for them again.
    fn covers(&mut self, narrow: &'t Value, from: usize, itself: usize) -> bool {
        let Some(narrow) = narrow.as_object() else { return false };
        let needed = seconds(narrow);
        let value = (text(narrow, "operator") == "Equal").then(|| text(narrow, "value"));
        let keys = [Some(text(narrow, "key")), None];
        let mut extents = keys.into_iter().flat_map(|key| {
            let effects = [text(narrow, "effect"), ""];
            effects.into_iter().flat_map(move |effect| [None, value].map(|value| (key, effect, value)))
        });
        extents.any(|extent| self.0.get_mut(&extent).is_some_and(|heap| longest(heap, from, itself) >= Some(needed)))
    }
}

/// The longest time of those that stand at `from` or later, but not at `itself`.
fn longest(heap: &mut BinaryHeap<(i64, usize)>, from: usize, itself: usize) -> Option<i64> {
    let mut aside = None;
    while let Some((_, at)) = heap.peek() {
        if *at >= from && *at != itself {
            break;
        }
        let top = heap.pop();
        aside = top.filter(|(_, at)| *at == itself && *at >= from).or(aside);
    }
    let found = heap.peek().map(|(seconds, _)| *seconds);
    heap.extend(aside);
    found
}

/// For how long something is tolerated.
fn seconds(toleration: &Object) -> i64 {
    toleration.get("tolerationSeconds").and_then(Value::as_i64).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use revisor_object::parse_json;

    use super::*;

    #[test]
    fn many_tolerations_are_not_compared_with_all_others() {
        let toleration = |at: usize| {
            let text = format!(
                r#"{{"key":"k","operator":"Equal","value":"v{}","effect":"NoExecute","tolerationSeconds":{at}}}"#,
                at / 2
            );
            parse_json(text.as_bytes()).expect("is JSON").value
        };
        let all: Vec<Value> = (0..200_000).map(toleration).collect();
        let (first, second) = all.split_at(100_000);
        // Of two that differ in their time only, the longer one stays.
        let longer: Vec<Value> = (0..200_000).skip(1).step_by(2).map(toleration).collect();
        assert_eq!(merge_tolerations(first, second), longer);
    }

    #[test]
    fn tolerations_that_another_covers_are_dropped() {
        let list = |text: &str| match parse_json(text.as_bytes()).expect("is JSON").value {
            Value::Array(items) => items,
            other => panic!("no list: {other:?}"),
        };
        let a = r#"{"key":"a","operator":"Equal","value":"1"}"#;
        let any_a = r#"{"key":"a","operator":"Exists"}"#;
        let all = r#"{"operator":"Exists"}"#;
        let short = r#"{"key":"b","operator":"Exists","effect":"NoExecute","tolerationSeconds":5}"#;
        let long = r#"{"key":"b","operator":"Exists","effect":"NoExecute"}"#;
        for (first, second, want) in [
            (format!("[{a}]"), format!("[{any_a}]"), format!("[{any_a}]")),
            (format!("[{any_a}]"), format!("[{a},{any_a}]"), format!("[{any_a}]")),
            (format!("[{a},{short}]"), format!("[{all}]"), format!("[{all}]")),
            (format!("[{long}]"), format!("[{short}]"), format!("[{long}]")),
            (format!("[{a}]"), format!("[{short}]"), format!("[{a},{short}]")),
        ] {
            assert_eq!(merge_tolerations(&list(&first), &list(&second)), list(&want), "{first} and {second}");
        }
    }
}
