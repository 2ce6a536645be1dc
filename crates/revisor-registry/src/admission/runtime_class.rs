//! RuntimeClass: what the way to run a pod costs, and where it can be done.

use revisor_object::{Object, Quantity, Value};

use super::pod_fields::{spec, text};
use super::{Admission, Operation, Review};
use crate::{Registry, RegistryError};

pub(crate) struct RuntimeClass;

impl Admission for RuntimeClass {
    fn admit(&self, registry: &Registry, review: &Review<'_>, pod: &mut Object) -> Result<(), RegistryError> {
        if !concerns(review) {
            return Ok(());
        }
        let Some(class) = class_of(registry, review, pod)? else { return Ok(()) };
        let spec = pod.object_mut("spec");
        if let Some(overhead) = class.object("overhead") {
            let fixed = overhead.object("podFixed").filter(|fixed| !fixed.is_empty());
            if let Some(given) = spec.object("overhead").filter(|given| !given.is_empty()) {
                require_same(review, Some(given), fixed)?;
            }
            spec.set("overhead", fixed.cloned().map(Value::from));
        }
        if let Some(scheduling) = class.object("scheduling") {
            for (key, wanted) in scheduling.object("nodeSelector").into_iter().flat_map(Object::iter) {
                let selector = spec.object_mut("nodeSelector");
                let wanted = wanted.as_str().unwrap_or_default();
                if let Some(given) = selector.str(key).filter(|given| *given != wanted) {
                    return Err(review.forbidden(format!(
                        "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {wanted}; pod.spec.nodeSelector[{key}] = {given}"
                    )));
                }
                selector.insert(key, wanted);
            }
            let tolerations = merge_tolerations(spec.array("tolerations"), scheduling.array("tolerations"));
            spec.set("tolerations", (!tolerations.is_empty()).then_some(Value::from(tolerations)));
        }
        Ok(())
    }

    fn validate(&self, registry: &Registry, review: &Review<'_>, pod: &Object) -> Result<(), RegistryError> {
        if !concerns(review) {
            return Ok(());
        }
        let class = class_of(registry, review, pod)?;
        let given = spec(pod).object("overhead");
        match class.as_ref().and_then(|class| class.object("overhead")) {
            Some(overhead) => require_same(review, given, overhead.object("podFixed")),
            None if given.is_some() => {
                let why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
                Err(review.forbidden(why))
            }
            None => Ok(()),
        }
    }
}

fn concerns(review: &Review<'_>) -> bool {
    review.is_about("", "pods") && review.operation == Operation::Create
}

fn class_of(registry: &Registry, review: &Review<'_>, pod: &Object) -> Result<Option<Object>, RegistryError> {
    let Some(name) = spec(pod).str("runtimeClassName") else { return Ok(None) };
    let class = registry.stored("node.k8s.io", "v1", "runtimeclasses", None, name);
    let missing = || review.forbidden(format!("pod rejected: RuntimeClass {name:?} not found"));
    class.ok_or_else(missing).map(Some)
}

fn require_same(review: &Review<'_>, given: Option<&Object>, wanted: Option<&Object>) -> Result<(), RegistryError> {
    let empty = Object::new();
    let (given, wanted) = (given.unwrap_or(&empty), wanted.unwrap_or(&empty));
    let amount = |value: &Value| value.as_str().and_then(|text| Quantity::parse(text).ok());
    let is_same = given.len() == wanted.len()
        && given.iter().all(|(name, value)| wanted.get(name).is_some_and(|other| amount(other) == amount(value)));
    if is_same {
        return Ok(());
    }
    Err(review.forbidden("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"))
}

/// Both lists of tolerations, without those that another one covers.
fn merge_tolerations(first: &[Value], second: &[Value]) -> Vec<Value> {
    let all: Vec<&Value> = first.iter().chain(second).collect();
    let mut merged: Vec<Value> = Vec::new();
    for (at, toleration) in all.iter().enumerate() {
        let is_covered = merged.iter().any(|other| covers(other, toleration))
            || all[at + 1..].iter().any(|other| other != toleration && covers(other, toleration));
        if !is_covered {
            merged.push((*toleration).clone());
        }
    }
    merged
}

/// Whether all that one toleration tolerates, another does too.
fn covers(wide: &Value, narrow: &Value) -> bool {
    if wide == narrow {
        return true;
    }
    let (Some(wide), Some(narrow)) = (wide.as_object(), narrow.as_object()) else { return false };
    let is_any_key = text(wide, "key").is_empty() && text(wide, "operator") == "Exists";
    if text(wide, "key") != text(narrow, "key") && !is_any_key {
        return false;
    }
    if !matches!(text(wide, "effect"), effect if effect.is_empty() || effect == text(narrow, "effect")) {
        return false;
    }
    let seconds = |toleration: &Object| toleration.get("tolerationSeconds").and_then(Value::as_i64);
    if text(wide, "effect") == "NoExecute"
        && let Some(most) = seconds(wide)
        && seconds(narrow).is_none_or(|asked| asked > most)
    {
        return false;
    }
    match text(wide, "operator") {
        "Exists" => true,
        "Equal" | "" => text(narrow, "operator") == "Equal" && text(narrow, "value") == text(wide, "value"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use revisor_object::parse_json;

    use super::*;

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
