//! What of a job's template may be changed: nothing while it runs; where its pods go and what they may use while it is
//! suspended.

use revisor_object::{BadValue, FieldError, FieldPath, Object, Value};

use super::status::has_condition;
use crate::kinds::workload::{NOTHING, number, spec as spec_of, status as status_of, template, text};
use crate::{Feature, Features};

pub(super) fn validate_update(object: &Object, old: &Object, features: Features) -> Option<FieldError> {
    let new = template(spec_of(object));
    let before = template(spec_of(old));
    if new == before {
        return None;
    }
    let root = FieldPath::root("spec");
    let path = root.child("template");
    let mut allowed = before.clone();
    let may_move = if features.has(Feature::MutableSchedulingDirectivesForSuspendedJobs) {
        is_at_rest(old)
    } else {
        is_suspended(old) && !status_of(old).contains("startTime")
    };
    if may_move {
        allow_placement(&mut allowed, new);
    }
    if !features.has(Feature::MutablePodResourcesForSuspendedJobs) || !is_at_rest(old) {
        return (allowed != *new).then(|| frozen(path, new));
    }
    let (pod, new_pod) = (allowed.object_mut("spec"), new.object("spec").unwrap_or(NOTHING));
    for list in ["containers", "initContainers"] {
        allow_resources(pod, new_pod, list);
    }
    // Only the pod's spec is compared, as in the original.
    (&*pod != new_pod).then(|| frozen(path.child("spec"), new_pod))
}

fn frozen(path: FieldPath<'_>, value: &Object) -> FieldError {
    FieldError::invalid(path, BadValue::of(value), "field is immutable")
}

fn is_suspended(old: &Object) -> bool {
    spec_of(old).get("suspend").and_then(Value::as_bool) == Some(true)
}

/// Whether a job is suspended and none of its pods are left.
fn is_at_rest(old: &Object) -> bool {
    let status = status_of(old);
    let was_stopped = !status.contains("startTime") || has_condition(status, "Suspended", "True");
    is_suspended(old) && was_stopped && number(status, "active") == 0
}

/// Takes over from the new template what decides where its pods go.
fn allow_placement(allowed: &mut Object, new: &Object) {
    let (metadata, new_metadata) = (allowed.object_mut("metadata"), new.object("metadata").unwrap_or(NOTHING));
    for name in ["annotations", "labels"] {
        metadata.set(name, new_metadata.get(name).cloned());
    }
    if metadata.is_empty() && !new.contains("metadata") {
        allowed.remove("metadata");
    }
    let new_pod = new.object("spec").unwrap_or(NOTHING);
    let pod = allowed.object_mut("spec");
    for name in ["nodeSelector", "tolerations", "schedulingGates"] {
        pod.set(name, new_pod.get(name).cloned());
    }
    match (new_pod.object("affinity"), pod.contains("affinity")) {
        (None, true) => {
            let affinity = pod.object_mut("affinity");
            affinity.remove("nodeAffinity");
            if affinity.is_empty() {
                pod.remove("affinity");
            }
        }
        (Some(affinity), _) => {
            let node_affinity = affinity.get("nodeAffinity").cloned();
            pod.object_mut("affinity").set("nodeAffinity", node_affinity);
        }
        (None, false) => {}
    }
}

/// Takes over from the new pod what its containers may use, where they are the same containers.
fn allow_resources(pod: &mut Object, new_pod: &Object, list: &str) {
    let new = new_pod.array(list);
    let Some(containers) = pod.array_mut(list).filter(|containers| containers.len() == new.len()) else { return };
    for (container, new) in containers.iter_mut().zip(new) {
        let (Some(container), Some(new)) = (container.as_object_mut(), new.as_object()) else { continue };
        if text(container, "name") == text(new, "name") {
            container.set("resources", new.get("resources").cloned());
        }
    }
}
