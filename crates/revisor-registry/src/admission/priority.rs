//! Priority: the class of a pod becomes its priority, and there is one default class at most.

use revisor_object::{Object, Value};

use super::pod_fields::text;
use super::{Admission, Operation, Review};
use crate::{Registry, RegistryError};

const GROUP: &str = "scheduling.k8s.io";

pub(crate) struct Priority;

impl Admission for Priority {
    fn admit(&self, registry: &Registry, review: &Review<'_>, pod: &mut Object) -> Result<(), RegistryError> {
        if !review.is_about("", "pods") {
            return Ok(());
        }
        let spec = pod.object_mut("spec");
        match review.operation {
            Operation::Create => set_priority(registry, review, spec),
            Operation::Update => {
                // The server set these, and clients that do not know them leave them out.
                let old = review.old.and_then(|old| old.object("spec"));
                for name in ["priority", "preemptionPolicy"] {
                    if !spec.contains(name) {
                        spec.set(name, old.and_then(|old| old.get(name)).cloned());
                    }
                }
                Ok(())
            }
        }
    }

    fn validate(&self, registry: &Registry, review: &Review<'_>, class: &Object) -> Result<(), RegistryError> {
        if !review.is_about(GROUP, "priorityclasses") || !is_default(class) {
            return Ok(());
        }
        let Some(known) = default_class(registry) else { return Ok(()) };
        let name = name_of(&known);
        if review.operation == Operation::Create || name != name_of(class) {
            let why = format!("PriorityClass {name} is already marked as default. Only one default can exist");
            return Err(review.forbidden(why));
        }
        Ok(())
    }
}

fn set_priority(registry: &Registry, review: &Review<'_>, spec: &mut Object) -> Result<(), RegistryError> {
    let class = match text(spec, "priorityClassName") {
        "" => default_class(registry),
        name => {
            let class = registry.stored(GROUP, "v1", "priorityclasses", None, name);
            let missing = || review.forbidden(format!("no PriorityClass with name {name} was found"));
            Some(class.ok_or_else(missing)?)
        }
    };
    let (name, priority, policy) = match &class {
        Some(class) => {
            let priority = class.get("value").and_then(Value::as_i64).unwrap_or_default();
            (name_of(class).to_owned(), priority, class.str("preemptionPolicy"))
        }
        None => (String::new(), 0, Some("PreemptLowerPriority")),
    };
    if let Some(given) = spec.get("priority").and_then(Value::as_i64).filter(|given| *given != priority) {
        return Err(review.forbidden(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller \
             computed {priority} from the given PriorityClass name"
        )));
    }
    if let (Some(given), Some(policy)) = (spec.str("preemptionPolicy"), policy)
        && given != policy
    {
        return Err(review.forbidden(format!(
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
fn default_class(registry: &Registry) -> Option<Object> {
    let classes = registry.all_stored(GROUP, "v1", "priorityclasses", None);
    let value = |class: &Object| class.get("value").and_then(Value::as_i64).unwrap_or_default();
    classes.into_iter().filter(is_default).min_by_key(value)
}

fn is_default(class: &Object) -> bool {
    class.get("globalDefault").and_then(Value::as_bool) == Some(true)
}

fn name_of(class: &Object) -> &str {
    class.object("metadata").map(|metadata| text(metadata, "name")).unwrap_or_default()
}
