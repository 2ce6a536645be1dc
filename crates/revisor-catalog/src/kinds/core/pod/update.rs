//! What an update of a pod may change: images, the deadline, tolerations, gates, and little else.

use revisor_object::{BadValue, ByValue, FieldError, FieldErrors, Object, Seen, Value};

use super::{METADATA, MIRROR, SPEC, annotations_of, objects, spec_of, validate_metadata_and_spec};
use crate::checks::{in_range, keep};
use crate::kinds::pod_spec::{self, PodPolicy};

const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// What may change, as the refusal of any other change lists it.
const CHANGEABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
                          `spec.tolerations` (only additions to existing tolerations),\
                          `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// What is wrong with a pod in place of the old one.
pub(super) fn validate(pod: &Object, old: &Object, policy: PodPolicy) -> FieldErrors {
    let mut errors = validate_metadata_and_spec(pod, Some(old), policy);
    errors.extend(validate_annotations(pod, old, policy));
    let (new_spec, old_spec) = (spec_of(pod), spec_of(old));
    for list in ["containers", "initContainers"] {
        if new_spec.array(list).len() != old_spec.array(list).len() {
            let detail = "pod updates may not add or remove containers";
            errors.push(FieldError::forbidden(SPEC.child(list), detail));
            return errors;
        }
        let path = SPEC.child(list);
        for (at, container) in objects(new_spec, list).enumerate() {
            if container.str("image").unwrap_or_default().is_empty() {
                errors.push(FieldError::required(path.index(at).child("image"), ""));
            }
            // As for a new pod, so once more.
            errors.extend(pod_spec::validate_image_padding(path.index(at).child("image"), container));
        }
    }
    let (deadline_errors, is_final) = validate_deadline(new_spec, old_spec);
    errors.extend(deadline_errors);
    if is_final {
        return errors;
    }
    errors.extend(validate_tolerations(new_spec, old_spec, policy));
    errors.extend(validate_gates(new_spec, old_spec));
    if new_spec == old_spec {
        return errors;
    }
    let mut rest = new_spec.clone();
    take_back_changeable(&mut rest, old_spec);
    if !old_spec.array("schedulingGates").is_empty() {
        errors.extend(take_back_placement(&mut rest, old_spec));
    }
    if rest != *old_spec {
        let detail = format!("pod updates may not change fields other than {CHANGEABLE}");
        errors.push(FieldError::changed(SPEC, old_spec, &rest, detail));
    }
    errors
}

/// Annotations that a kubelet or the server has acted on already stay as they are. After that, all that mean something to
/// the server are looked at, also where they have been before (upstream: `ValidatePodSpecificAnnotationUpdates`).
pub(super) fn validate_annotations(pod: &Object, old_pod: &Object, policy: PodPolicy) -> FieldErrors {
    let (new, old) = (annotations_of(pod), annotations_of(old_pod));
    let path = METADATA.child("annotations");
    let mut errors = FieldErrors::new();
    let mut refuse = |key: &str, what: &str| {
        let subject = if key == MIRROR { "mirror pod annotation" } else { "AppArmor annotations" };
        errors.push(FieldError::forbidden(path.key(key), format!("may not {what} {subject}")));
    };
    let is_fixed = |key: &str| key == MIRROR || key.starts_with(APP_ARMOR);
    for (key, value) in old.iter().filter(|(key, _)| is_fixed(key)) {
        if new.get(key) != Some(value) {
            refuse(key, "remove or update");
        }
    }
    for (key, _) in new.iter().filter(|(key, _)| is_fixed(key)) {
        if !old.contains(key) {
            refuse(key, "add");
        }
    }
    errors.extend(pod_spec::validate_annotations(path, pod, Some(old_pod), policy));
    errors
}

/// A deadline may be set and brought forward. Also answers whether to look no further.
fn validate_deadline(new_spec: &Object, old_spec: &Object) -> (FieldErrors, bool) {
    let path = SPEC.child("activeDeadlineSeconds");
    let seconds = |spec: &Object| spec.get("activeDeadlineSeconds").and_then(Value::as_i64);
    match (seconds(new_spec), seconds(old_spec)) {
        (Some(new), old) => {
            if let Some(error) = in_range(path, new, 0, i64::from(i32::MAX)) {
                return (FieldErrors::from([error]), true);
            }
            if old.is_some_and(|old| old < new) {
                let detail = "must be less than or equal to previous value";
                return (FieldErrors::from([FieldError::invalid(path, new, detail)]), true);
            }
            (FieldErrors::new(), false)
        }
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            (FieldErrors::from([FieldError::invalid(path, BadValue::of(&Value::Null), detail)]), false)
        }
        (None, None) => (FieldErrors::new(), false),
    }
}

/// Every old toleration must still be there, but for its time. If they are, all are looked at once more (upstream:
/// `validateOnlyAddedTolerations`).
fn validate_tolerations(new_spec: &Object, old_spec: &Object, policy: PodPolicy) -> FieldErrors {
    fn but_time(toleration: &Object) -> Vec<(&str, ByValue<'_>)> {
        let members = toleration.iter().filter(|(name, _)| *name != "tolerationSeconds");
        members.map(|(name, value)| (name, ByValue(value))).collect()
    }
    let kept: Seen<Vec<(&str, ByValue<'_>)>> = objects(new_spec, "tolerations").map(but_time).collect();
    let all_are_kept = objects(old_spec, "tolerations").all(|before| kept.has(&but_time(before)));
    let path = SPEC.child("tolerations");
    if all_are_kept {
        return pod_spec::validate_tolerations(path, new_spec, old_spec, policy);
    }
    let detail = "existing toleration can not be modified except its tolerationSeconds";
    FieldErrors::from([FieldError::forbidden(path, detail)])
}

/// Gates may only be taken away.
fn validate_gates(new_spec: &Object, old_spec: &Object) -> FieldErrors {
    let name = |gate: &Object| gate.str("name").unwrap_or_default().to_owned();
    let known: Seen<String> = objects(old_spec, "schedulingGates").map(name).collect();
    let path = SPEC.child("schedulingGates");
    objects(new_spec, "schedulingGates")
        .map(name)
        .enumerate()
        .filter(|(_, gate)| !known.has(gate))
        .map(|(at, gate)| {
            let detail = format!("only deletion is allowed, but found new scheduling gate '{gate}'");
            FieldError::forbidden(path.index(at).child("name"), detail)
        })
        .collect()
}

/// Puts back everything in a spec that may change, so that what is left can be compared.
fn take_back_changeable(spec: &mut Object, old: &Object) {
    for list in ["containers", "initContainers"] {
        let containers = spec.array_mut(list).into_iter().flatten().filter_map(Value::as_object_mut);
        for (container, before) in containers.zip(objects(old, list)) {
            container.set("image", before.get("image").cloned());
        }
    }
    keep(spec, old, &["activeDeadlineSeconds", "schedulingGates", "tolerations"]);
    let grace = |spec: &Object| spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64);
    if grace(old).is_some_and(|seconds| seconds < 0) && grace(spec) == Some(1) {
        keep(spec, old, &["terminationGracePeriodSeconds"]);
    }
}

/// The same for what else may change while a pod is not to be scheduled: its placement may be narrowed.
fn take_back_placement(spec: &mut Object, old: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if spec.get("nodeSelector") != old.get("nodeSelector") {
        let new = spec.object("nodeSelector");
        let mut before = old.object("nodeSelector").into_iter().flat_map(Object::iter);
        if !before.all(|(key, value)| new.and_then(|new| new.get(key)) == Some(value)) {
            let detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
            let shown = new.map_or_else(|| BadValue::of(&Value::Null), BadValue::of);
            errors.push(FieldError::invalid(SPEC.child("nodeSelector"), shown, detail));
        }
        keep(spec, old, &["nodeSelector"]);
    }
    let affinity_of =
        |spec: &Object| spec.object("affinity").and_then(|affinity| affinity.object("nodeAffinity")).cloned();
    let (new, before) = (affinity_of(spec), affinity_of(old));
    if new == before {
        return errors;
    }
    errors.extend(validate_narrower(new.as_ref(), before.as_ref()));
    match spec.get_mut("affinity").and_then(Value::as_object_mut) {
        None => {
            spec.object_mut("affinity").set("nodeAffinity", before.map(Value::from));
        }
        Some(affinity) => {
            let is_new = !old.contains("affinity");
            let is_alone = !affinity.contains("podAffinity") && !affinity.contains("podAntiAffinity");
            affinity.set("nodeAffinity", before.map(Value::from));
            if is_new && is_alone {
                spec.remove("affinity");
            }
        }
    }
    errors
}

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// Terms that nodes must meet may get more conditions, but no term may be added or taken away.
fn validate_narrower(new: Option<&Object>, old: Option<&Object>) -> FieldErrors {
    let terms_of = |affinity: Option<&Object>| -> Vec<Value> {
        let required = affinity.and_then(|affinity| affinity.object(REQUIRED));
        required.map(|required| required.array("nodeSelectorTerms").to_vec()).unwrap_or_default()
    };
    let (new_terms, old_terms) = (terms_of(new), terms_of(old));
    if old_terms.is_empty() {
        return FieldErrors::new();
    }
    let affinity = SPEC.child("affinity");
    let node_affinity = affinity.child("nodeAffinity");
    let required = node_affinity.child(REQUIRED);
    let path = required.child("nodeSelectorTerms");
    if new_terms.len() != old_terms.len() {
        let detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        let required = new.and_then(|affinity| affinity.object(REQUIRED));
        let shown =
            required.map_or_else(BadValue::nothing, |required| BadValue::of_sent(required, "nodeSelectorTerms"));
        return FieldErrors::from([FieldError::invalid(path, shown, detail)]);
    }
    let pairs = new_terms.iter().zip(&old_terms).enumerate();
    pairs
        .filter(|(_, (new, old))| !only_adds(new.as_object(), old.as_object()))
        .map(|(at, (new, _))| {
            let detail = "only additions are allowed (no mutations or deletions)";
            FieldError::invalid(path.index(at), BadValue::of(new), detail)
        })
        .collect()
}

fn only_adds(new: Option<&Object>, old: Option<&Object>) -> bool {
    let list = |term: Option<&Object>, name| term.map(|term| term.array(name).to_vec()).unwrap_or_default();
    let lists = ["matchExpressions", "matchFields"];
    // An empty term matches nothing; to add to it would make it match something.
    let was_empty = lists.iter().all(|name| list(old, name).is_empty());
    if was_empty && lists.iter().any(|name| !list(new, name).is_empty()) {
        return false;
    }
    lists.iter().all(|name| list(new, name).starts_with(&list(old, name)))
}
