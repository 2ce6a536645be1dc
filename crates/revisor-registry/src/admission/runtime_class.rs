//! RuntimeClass: what the way to run a pod costs, and where it can be done.

use std::sync::Arc;

use revisor_object::{Object, Quantity, Value};

use super::pod_fields::spec;
use super::{Admission, Attributes, Operation, tolerations};
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
            let merged = tolerations::merge(spec.array("tolerations"), scheduling.array("tolerations"));
            spec.set("tolerations", (!merged.is_empty()).then_some(Value::from(merged)));
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
            None if spec(pod).is_sent("overhead") => {
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
