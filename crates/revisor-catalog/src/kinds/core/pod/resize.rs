//! `/resize`: the cpu and memory of containers that run, and of the pod as a whole.

use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Value};

use super::{MIRROR, SPEC, annotations_of, keep_all_else, objects, spec_of, validate_metadata_and_spec};
use crate::checks::keep;
use crate::kinds::pod_spec::resource_list::is_sidecar;
use crate::kinds::pod_spec::{self, PodPolicy};
use crate::{Feature, Features};

/// Puts back everything but resources and how a change of them is done.
pub(super) fn prepare(pod: &mut Object, old: &Object, features: Features) {
    let (new_spec, old_spec) = (spec_of(pod), spec_of(old));
    let lists = ["containers", "initContainers"];
    // Containers that were added or taken away are left for validation to find.
    if lists.iter().any(|list| new_spec.array(list).len() != old_spec.array(list).len()) {
        return;
    }
    let resized = lists.map(|list| resized_containers(new_spec.array(list), old_spec.array(list)));
    let resources = new_spec.get("resources").cloned();
    keep_all_else(pod, old);
    let spec = pod.object_mut("spec");
    if features.has(Feature::InPlacePodLevelResourcesVerticalScaling) {
        spec.set("resources", resources);
    }
    for (list, containers) in lists.into_iter().zip(resized) {
        if !containers.is_empty() {
            spec.insert(list, containers);
        }
    }
}

/// The old containers with the new resources. If they were renamed or moved, the new ones as they are.
fn resized_containers(new: &[Value], old: &[Value]) -> Vec<Value> {
    let name = |container: &Value| container.as_object().and_then(|it| it.str("name")).unwrap_or_default().to_owned();
    if new.iter().zip(old).any(|(new, old)| name(new) != name(old)) {
        return new.to_vec();
    }
    let pairs = new.iter().filter_map(Value::as_object).zip(old.iter().filter_map(Value::as_object));
    pairs
        .map(|(new, old)| {
            let mut resized = old.clone();
            keep(&mut resized, new, &["resources", "resizePolicy"]);
            Value::from(resized)
        })
        .collect()
}

/// What is wrong with a resize.
pub(super) fn validate(pod: &Object, old: &Object, policy: PodPolicy) -> FieldErrors {
    if annotations_of(old).contains(MIRROR) {
        return FieldErrors::from([FieldError::forbidden("[]", "static pods cannot be resized")]);
    }
    let (spec, old_spec) = (spec_of(pod), spec_of(old));
    if old_spec.object("os").and_then(|os| os.str("name")) == Some("windows") {
        return FieldErrors::from([FieldError::forbidden("[]", "windows pods cannot be resized")]);
    }
    let mut errors = validate_metadata_and_spec(pod, Some(old), policy);
    errors.extend(validate_support(spec, old_spec, old.object("status"), policy.features));
    let mut rest = spec.clone();
    if has_resources(spec) || has_resources(old_spec) {
        if !policy.features.has(Feature::InPlacePodLevelResourcesVerticalScaling) {
            let detail = "resize of pods with pod-level resources is forbidden when \
                          InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled";
            errors.push(FieldError::forbidden("[]", detail));
            return errors;
        }
        errors.extend(take_back_pod_resources(&mut rest, spec, old_spec));
    }
    let order = validate_order(spec, old_spec);
    if !order.is_empty() {
        errors.extend(order);
        return errors;
    }
    for list in ["initContainers", "containers"] {
        let path = SPEC.child(list);
        for (at, (new, old)) in objects(spec, list).zip(objects(old_spec, list)).enumerate() {
            if list == "initContainers" && !is_resizable(old, policy.features) {
                continue;
            }
            let container = path.index(at);
            let resources = container.child("resources");
            for (name, detail) in
                [("requests", "resource requests cannot be removed"), ("limits", "resource limits cannot be removed")]
            {
                if takes_away(new.object("resources"), old.object("resources"), name) {
                    errors.push(FieldError::forbidden(resources.child(name), detail));
                }
            }
        }
    }
    errors.extend(take_back_container_resources(&mut rest, old_spec, policy.features));
    if errors.is_empty() && rest != *old_spec {
        errors.push(FieldError::forbidden(SPEC, "only cpu and memory resources are mutable"));
    }
    errors
}

/// Whether the resources of a container that runs before the others can be changed while the pod runs.
fn is_resizable(container: &Object, features: Features) -> bool {
    is_sidecar(container) || features.has(Feature::InPlacePodVerticalScalingInitContainers)
}

fn validate_support(spec: &Object, old_spec: &Object, status: Option<&Object>, features: Features) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let recorded = status.and_then(|status| status.str("qosClass")).unwrap_or_default();
    let before = if recorded.is_empty() { pod_spec::qos_class(old_spec, features) } else { recorded };
    if before != pod_spec::qos_class(spec, features) {
        let detail = "Pod QOS Class may not change as a result of resizing";
        errors.push(FieldError::invalid(SPEC, before, detail));
    }
    // A kubelet that can resize shows the resources of what runs; one that shows none cannot.
    let statuses = status.into_iter().flat_map(|status| objects(status, "containerStatuses"));
    let is_running = |status: &&Object| status.object("state").is_some_and(|state| state.contains("running"));
    if statuses.into_iter().find(is_running).is_some_and(|status| !status.contains("resources")) {
        errors.push(FieldError::forbidden(SPEC, "Pod running on node without support for resize"));
    }
    if status.is_some_and(|status| !status.array("nodeAllocatableResourceClaimStatuses").is_empty()) {
        let detail = "pods with node allocatable resource claims cannot be resized";
        errors.push(FieldError::forbidden(SPEC, detail));
    }
    errors
}

fn has_resources(spec: &Object) -> bool {
    spec.object("resources").is_some_and(|resources| {
        ["requests", "limits"].iter().any(|name| resources.object(name).is_some_and(|list| !list.is_empty()))
    })
}

fn takes_away(new: Option<&Object>, old: Option<&Object>, list: &str) -> bool {
    let new = new.and_then(|resources| resources.object(list));
    let mut before = old.and_then(|resources| resources.object(list)).into_iter().flat_map(Object::iter);
    before.any(|(name, _)| new.is_none_or(|new| !new.contains(name)))
}

/// No container may come, go, move or get another name.
fn validate_order(spec: &Object, old_spec: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for list in ["containers", "initContainers"] {
        let path = SPEC.child(list);
        if spec.array(list).len() != old_spec.array(list).len() {
            errors.push(FieldError::forbidden(path, format!("{list} may not be added or removed on resize")));
            continue;
        }
        for (at, (new, old)) in objects(spec, list).zip(objects(old_spec, list)).enumerate() {
            if new.str("name") != old.str("name") {
                let detail = format!("{list} may not be renamed or reordered on resize");
                errors.push(FieldError::forbidden(path.index(at).child("name"), detail));
            }
        }
    }
    errors
}

fn take_back_pod_resources(rest: &mut Object, spec: &Object, old_spec: &Object) -> FieldErrors {
    let path = SPEC.child("resources");
    let (new, old) = (spec.object("resources"), old_spec.object("resources"));
    if old.is_some() && new.is_none() {
        return FieldErrors::from([FieldError::forbidden(path, "pod-level resources cannot be removed")]);
    }
    let mut errors = FieldErrors::new();
    for (name, detail) in [
        ("requests", "pod-level resource requests cannot be removed"),
        ("limits", "pod-level resource limits cannot be removed"),
    ] {
        if takes_away(new, old, name) {
            errors.push(FieldError::forbidden(path.child(name), detail));
        }
    }
    if let Some(resources) = rest.get_mut("resources").and_then(Value::as_object_mut) {
        take_back_cpu_and_memory(resources, old);
        if old.is_none() && resources.is_empty() {
            rest.remove("resources");
        }
    }
    if rest.get("resources") != old_spec.get("resources") {
        let detail = "only cpu and memory resources are mutable at pod-level";
        errors.push(FieldError::forbidden(SPEC, detail));
    }
    errors
}

/// Puts back the cpu and memory of every container, and says what else is different.
fn take_back_container_resources(rest: &mut Object, old_spec: &Object, features: Features) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for list in ["containers", "initContainers"] {
        let path = SPEC.child(list);
        let containers = rest.array_mut(list).into_iter().flatten().filter_map(Value::as_object_mut);
        for (at, (container, old)) in containers.zip(objects(old_spec, list)).enumerate() {
            let is_changed = container != old;
            if list == "initContainers" && !is_resizable(container, features) {
                let detail = "resources for non-sidecar init containers are immutable";
                errors.extend(is_changed.then(|| FieldError::forbidden(SPEC, detail)));
                continue;
            }
            let resources = container.object_mut("resources");
            take_back_cpu_and_memory(resources, old.object("resources"));
            resources.remove("claims");
            errors.extend(validate_rest(list, path.index(at), container, old, is_changed));
        }
    }
    errors
}

fn validate_rest(list: &str, path: FieldPath<'_>, rest: &Object, old: &Object, is_changed: bool) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if list == "containers" {
        if rest != old {
            errors.push(FieldError::forbidden(SPEC, "only cpu and memory resources are mutable"));
        }
        return errors;
    }
    if rest != old {
        let detail = "only cpu and memory resources for init or sidecar containers are mutable";
        errors.push(FieldError::forbidden(path, detail));
    }
    let needs_restart = objects(rest, "resizePolicy").any(|it| it.str("restartPolicy") == Some("RestartContainer"));
    if is_changed && !is_sidecar(rest) && needs_restart {
        let detail = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized";
        errors.push(FieldError::forbidden(path, detail));
    }
    errors
}

fn take_back_cpu_and_memory(resources: &mut Object, old: Option<&Object>) {
    for list in ["requests", "limits"] {
        let before = old.and_then(|old| old.object(list));
        let amounts = resources.object_mut(list);
        for name in ["cpu", "memory"] {
            amounts.set(name, before.and_then(|before| before.get(name)).cloned());
        }
        if amounts.is_empty() {
            resources.remove(list);
        }
    }
}
