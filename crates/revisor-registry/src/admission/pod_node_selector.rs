//! PodNodeSelector: a namespace says on which nodes its pods run, and which labels they may choose nodes by.

use std::collections::BTreeMap;

use revisor_object::{Object, Value, names};

use super::pod_fields::{annotations, spec};
use super::{Admission, Attributes, Operation};
use crate::{Registry, RegistryError};

/// The annotation of a namespace.
const ANNOTATION: &str = "scheduler.alpha.kubernetes.io/node-selector";
/// The selector for namespaces without one.
const DEFAULT: &str = "clusterDefaultNodeSelector";

type Labels = BTreeMap<String, String>;

/// Has the selector of each namespace, and the default one, as texts.
pub(super) struct PodNodeSelector(pub(super) BTreeMap<String, String>);

impl Admission for PodNodeSelector {
    fn name(&self) -> &'static str {
        "PodNodeSelector"
    }

    fn handles(&self, operation: Operation) -> bool {
        operation == Operation::Create
    }

    fn admit(&self, registry: &Registry, attributes: &Attributes<'_>, pod: &mut Object) -> Result<(), RegistryError> {
        if !attributes.is_about("", "pods") {
            return Ok(());
        }
        let mut selector = self.of_namespace(registry, attributes)?;
        let own = selector_of(pod);
        refuse_conflict(attributes, &selector, &own)?;
        selector.extend(own);
        if !selector.is_empty() {
            let labels: Object =
                selector.iter().map(|(name, value)| (name.as_str(), Value::from(value.as_str()))).collect();
            pod.object_mut("spec").insert("nodeSelector", labels);
        }
        self.validate(registry, attributes, pod)
    }

    fn validate(&self, registry: &Registry, attributes: &Attributes<'_>, pod: &Object) -> Result<(), RegistryError> {
        if !attributes.is_about("", "pods") {
            return Ok(());
        }
        let own = selector_of(pod);
        refuse_conflict(attributes, &self.of_namespace(registry, attributes)?, &own)?;
        let allowed = self.0.get(attributes.namespace.unwrap_or_default()).map_or("", String::as_str);
        let allowed = parse(allowed).map_err(RegistryError::Undecided)?;
        if allowed.is_empty() || own.iter().all(|(name, value)| allowed.get(name) == Some(value)) {
            return Ok(());
        }
        Err(attributes.forbidden("pod node label selector labels conflict with its namespace whitelist"))
    }
}

impl PodNodeSelector {
    fn of_namespace(&self, registry: &Registry, attributes: &Attributes<'_>) -> Result<Labels, RegistryError> {
        let name = attributes.namespace.unwrap_or_default();
        let Some(namespace) = registry.read_once("", "v1", "namespaces", None, name) else {
            return Err(RegistryError::Internal(format!("namespace {name} does not exist")));
        };
        let default = || self.0.get(DEFAULT).map_or("", String::as_str);
        parse(annotations(&namespace).str(ANNOTATION).unwrap_or_else(default)).map_err(RegistryError::Undecided)
    }
}

fn refuse_conflict(attributes: &Attributes<'_>, one: &Labels, other: &Labels) -> Result<(), RegistryError> {
    if one.iter().any(|(name, value)| other.get(name).is_some_and(|known| known != value)) {
        return Err(attributes.forbidden("pod node label selector conflicts with its namespace node label selector"));
    }
    Ok(())
}

fn selector_of(pod: &Object) -> Labels {
    let labels = spec(pod).object("nodeSelector").into_iter().flat_map(Object::iter);
    labels.map(|(name, value)| (name.to_owned(), value.as_str().unwrap_or_default().to_owned())).collect()
}

/// What is wrong with a selector of the configuration.
pub fn validate_node_selector(selector: &str) -> Result<(), String> {
    parse(selector).map(drop)
}

/// The labels of `a=b,c=d` (upstream: `ConvertSelectorToLabelsMap`).
fn parse(selector: &str) -> Result<Labels, String> {
    let mut labels = Labels::new();
    if selector.is_empty() {
        return Ok(labels);
    }
    for label in selector.split(',') {
        let parts: Vec<&str> = label.split('=').collect();
        let [name, value] = parts[..] else { return Err(format!("invalid selector: [{}]", parts.join(" "))) };
        let (name, value) = (name.trim(), value.trim());
        if let [problem, ..] = names::qualified_name(name).as_slice() {
            return Err(format!("key: Invalid value: {name:?}: {problem}"));
        }
        if let [problem, ..] = names::label_value(value).as_slice() {
            return Err(format!("values[0][{name}]: Invalid value: {value:?}: {problem}"));
        }
        labels.insert(name.to_owned(), value.to_owned());
    }
    Ok(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_equalities() {
        for (text, want) in
            [("", Some(0)), ("a=b", Some(1)), ("a=b, c=d", Some(2)), ("a", None), ("a=b=c", None), ("-=b", None)]
        {
            assert_eq!(parse(text).ok().map(|labels| labels.len()), want, "{text}");
        }
    }
}
