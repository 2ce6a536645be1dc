//! Priority: the class of a pod or of a group of pods becomes its priority, and there is one default class at most.

use std::sync::Arc;

use revisor_catalog::Feature;
use revisor_object::{Object, Value};

use super::pod_fields::text;
use super::{Admission, Attributes, Operation};
use crate::{Registry, RegistryError};

const GROUP: &str = "scheduling.k8s.io";

pub(crate) struct Priority;

impl Admission for Priority {
    fn name(&self) -> &'static str {
        "Priority"
    }

    fn handles(&self, operation: Operation) -> bool {
        matches!(operation, Operation::Create | Operation::Update)
    }

    fn admit(&self, registry: &Registry, attributes: &Attributes<'_>, pod: &mut Object) -> Result<(), RegistryError> {
        if attributes.is_about(GROUP, "podgroups") && attributes.operation == Operation::Create {
            let is_on = registry.catalog.features().has(Feature::WorkloadAwarePreemption);
            return if is_on { set_group_priority(registry, attributes, pod.object_mut("spec")) } else { Ok(()) };
        }
        if !attributes.is_about("", "pods") {
            return Ok(());
        }
        let spec = pod.object_mut("spec");
        match attributes.operation {
            Operation::Create => set_priority(registry, attributes, spec),
            Operation::Update => {
                // The server set these, and clients that do not know them leave them out.
                let old = attributes.old.and_then(|old| old.object("spec"));
                for name in ["priority", "preemptionPolicy"] {
                    if !spec.contains(name) {
                        spec.set(name, old.and_then(|old| old.get(name)).cloned());
                    }
                }
                Ok(())
            }
            Operation::Delete | Operation::Connect => Ok(()),
        }
    }

    fn validate(&self, registry: &Registry, attributes: &Attributes<'_>, class: &Object) -> Result<(), RegistryError> {
        if !attributes.is_about(GROUP, "priorityclasses") || !is_default(class) {
            return Ok(());
        }
        let Some(known) = default_class(registry) else { return Ok(()) };
        let name = name_of(&known);
        if attributes.operation == Operation::Create || name != name_of(class) {
            let why = format!("PriorityClass {name} is already marked as default. Only one default can exist");
            return Err(attributes.forbidden(why));
        }
        Ok(())
    }
}

/// The class that a spec names, or else the default one.
fn class_of(
    registry: &Registry,
    attributes: &Attributes<'_>,
    spec: &Object,
) -> Result<Option<Arc<Object>>, RegistryError> {
    match text(spec, "priorityClassName") {
        "" => Ok(default_class(registry)),
        name => {
            let class = registry.read_once(GROUP, "v1", "priorityclasses", None, name);
            let missing = || attributes.forbidden(format!("no PriorityClass with name {name} was found"));
            class.ok_or_else(missing).map(Some)
        }
    }
}

fn value_of(class: &Object) -> i64 {
    class.get("value").and_then(Value::as_i64).unwrap_or_default()
}

fn set_group_priority(
    registry: &Registry,
    attributes: &Attributes<'_>,
    spec: &mut Object,
) -> Result<(), RegistryError> {
    let class = class_of(registry, attributes, spec)?;
    let priority = class.as_deref().map(value_of).unwrap_or_default();
    if let Some(given) = spec.get("priority").and_then(Value::as_i64).filter(|given| *given != priority) {
        return Err(attributes.forbidden(format!(
            "priority set in the pod group ({given}) must match the priority computed ({priority}) based on the \
             priority class set in the spec"
        )));
    }
    spec.insert("priority", priority);
    spec.set("priorityClassName", class.map(|class| Value::from(name_of(&class))));
    Ok(())
}

fn set_priority(registry: &Registry, attributes: &Attributes<'_>, spec: &mut Object) -> Result<(), RegistryError> {
    let class = class_of(registry, attributes, spec)?;
    let (name, priority, policy) = match &class {
        Some(class) => (name_of(class).to_owned(), value_of(class), class.str("preemptionPolicy")),
        None => (String::new(), 0, Some("PreemptLowerPriority")),
    };
    if let Some(given) = spec.get("priority").and_then(Value::as_i64).filter(|given| *given != priority) {
        return Err(attributes.forbidden(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller \
             computed {priority} from the given PriorityClass name"
        )));
    }
    if let (Some(given), Some(policy)) = (spec.str("preemptionPolicy"), policy)
        && given != policy
    {
        return Err(attributes.forbidden(format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission \
             controller computed {policy} from the given PriorityClass name"
        )));
    }
    spec.set("priorityClassName", (!name.is_empty()).then(|| Value::from(name)));
    spec.insert("priority", priority);
    if let Some(policy) = policy {
        spec.insert("preemptionPolicy", policy);
    }
    Ok(())
}

/// The class of pods that name none. If several were made at once, the lowest.
fn default_class(registry: &Registry) -> Option<Arc<Object>> {
    let classes = registry.all_read_once(GROUP, "v1", "priorityclasses", None);
    classes.into_iter().filter(|class| is_default(class)).min_by_key(|class| value_of(class))
}

fn is_default(class: &Object) -> bool {
    class.get("globalDefault").and_then(Value::as_bool) == Some(true)
}

fn name_of(class: &Object) -> &str {
    class.object("metadata").map(|metadata| text(metadata, "name")).unwrap_or_default()
}
