//! Pods: what a new pod begins with, and what each of its addresses may change about it.
//!
//! A pod's spec is as good as fixed once it is made (`update.rs`); its status is written through `/status`
//! (`status.rs`), containers to look inside through `/ephemeralcontainers`, and resources through `/resize`
//! (`resize.rs`). What pods share with pod templates is in [`pod_spec`](crate::kinds::pod_spec).

mod app_armor;
mod conditions;
mod container_status;
mod label_keys;
mod resize;
mod status;
mod update;

use revisor_object::names::dns1123_label;
use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Value};

use crate::checks::{keep, put_back};
use crate::kinds::field;
use crate::kinds::pod_spec::{self, PodPolicy};
use crate::{Circumstances, Part, Places, SelectableField, Strategy};

pub(crate) const FIELDS: &[SelectableField] = &[
    SelectableField { older_name: "spec.host", ..field("spec.nodeName", &[&["spec", "nodeName"]]) },
    field("spec.restartPolicy", &[&["spec", "restartPolicy"]]),
    field("spec.schedulerName", &[&["spec", "schedulerName"]]),
    field("spec.serviceAccountName", &[&["spec", "serviceAccountName"]]),
    SelectableField { absent: "false", ..field("spec.hostNetwork", &[&["spec", "hostNetwork"]]) },
    field("status.phase", &[&["status", "phase"]]),
    field("status.podIP", &[&["status", "podIP"]]),
    // May be named, but no pod has a value there.
    field("status.podIPs", &[]),
    field("status.nominatedNodeName", &[&["status", "nominatedNodeName"]]),
];

const METADATA: FieldPath<'static> = FieldPath::root("metadata");
const SPEC: FieldPath<'static> = FieldPath::root("spec");

/// The annotation of a pod that only shows what a kubelet runs by itself.
const MIRROR: &str = "kubernetes.io/config.mirror";

pub(crate) struct Pods {
    pub(crate) policy: PodPolicy,
}

impl Strategy for Pods {
    fn default(&self, object: &mut Object) {
        pod_spec::default_annotations(object.object_mut("metadata"));
        pod_spec::default_pod_spec(object.object_mut("spec"), self.policy.features);
        if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
            status::match_addresses(status);
        }
    }

    fn tracked(&self) -> Places {
        &[&["spec"]]
    }

    fn warnings_as_sent(&self, object: &Object) -> Vec<String> {
        pod_spec::annotation_warnings(METADATA.child("annotations"), object)
    }

    fn untouched(&self, part: Part<'_>) -> Places {
        match part {
            // Old kubelets garble owners, and the garbage collector would act on it.
            Part::STATUS => &[&["spec"], &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]],
            Part::Whole => &[&["status"]],
            // They leave nearly all of it, but whoever sends it comes to manage it all the same.
            Part::Subresource(_) => &[],
        }
    }

    fn prepare_create(&self, object: &mut Object, circumstances: Circumstances<'_>) {
        let features = self.policy.features;
        let spec = object.object_mut("spec");
        let qos_class = pod_spec::qos_class(spec, features);
        let is_gated = !spec.array("schedulingGates").is_empty();
        // A class that is given is not reckoned again (upstream: `GetPodQOS`).
        let given = object.at(&["status", "qosClass"]).and_then(Value::as_str).filter(|given| !given.is_empty());
        let qos_class = given.unwrap_or(qos_class).to_owned();
        let mut status: Object =
            [("phase", Value::from("Pending")), ("qosClass", Value::from(qos_class))].into_iter().collect();
        if is_gated {
            conditions::set_scheduling_gated(&mut status, circumstances.now);
        }
        object.insert("status", status);
        label_keys::merge_into_selectors(object, features);
        app_armor::copy_annotations(object);
    }

    fn prepare_update(&self, object: &mut Object, old: &Object, part: Part<'_>, _: Circumstances<'_>) {
        let features = self.policy.features;
        match part {
            Part::Whole => {
                put_back(object, old, self.untouched(part));
            }
            Part::STATUS => {
                put_back(object, old, self.untouched(part));
                status::prepare(object, old);
            }
            Part::Subresource("ephemeralcontainers") => {
                let added = object.object_mut("spec").remove("ephemeralContainers");
                keep_all_else(object, old);
                object.object_mut("spec").set("ephemeralContainers", added);
            }
            Part::Subresource(_) => {
                resize::prepare(object, old, features);
            }
        }
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        let mut errors = validate_metadata_and_spec(object, None, self.policy);
        let spec = spec_of(object);
        if !spec.array("ephemeralContainers").is_empty() {
            errors.push(FieldError::forbidden(SPEC.child("ephemeralContainers"), "cannot be set on create"));
        }
        let is_assigned = !spec.str("nodeName").unwrap_or_default().is_empty();
        if is_assigned && !spec.array("schedulingGates").is_empty() {
            let detail = "cannot be set until all schedulingGates have been cleared";
            errors.push(FieldError::forbidden(SPEC.child("nodeName"), detail));
        }
        errors.extend(pod_spec::validate_profiles_match(SPEC, object));
        errors
    }

    fn validate_update(&self, object: &Object, old: &Object, part: Part<'_>) -> FieldErrors {
        match part {
            Part::Whole => update::validate(object, old, self.policy),
            Part::STATUS => status::validate(object, old, self.policy),
            Part::Subresource("ephemeralcontainers") => validate_ephemeral_containers(object, old, self.policy),
            Part::Subresource(_) => resize::validate(object, old, self.policy),
        }
    }

    fn warnings(&self, object: &Object, old: Option<&Object>) -> Vec<String> {
        // Pods are mostly changed by programs, so only their making is worth the look.
        if old.is_some() {
            return Vec::new();
        }
        let mut warnings = Vec::new();
        let name = object.object("metadata").and_then(|metadata| metadata.str("name")).unwrap_or_default();
        let problems = dns1123_label(name);
        if !problems.is_empty() {
            warnings.push(format!(
                "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS \
                 label is recommended: [{}]",
                problems.join(" ")
            ));
        }
        warnings.extend(pod_spec::template_warnings(FieldPath::none(), object, self.policy.features));
        warnings
    }

    fn subresource_warnings(&self, object: &Object, old: &Object) -> Vec<String> {
        // Only statuses have addresses, and other writes leave them as they are.
        if object.get("status") == old.get("status") { Vec::new() } else { status::warnings(object) }
    }

    fn grace_period(&self, object: &Object, asked: Option<i64>) -> Option<i64> {
        let spec = spec_of(object);
        let phase = object.at(&["status", "phase"]).and_then(Value::as_str).unwrap_or_default();
        // Nothing runs yet, or nothing runs any more.
        if spec.str("nodeName").unwrap_or_default().is_empty() || matches!(phase, "Failed" | "Succeeded") {
            return Some(0);
        }
        let usual = || spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64).unwrap_or_default();
        let period = asked.unwrap_or_else(usual);
        Some(if period < 0 { 1 } else { period })
    }
}

fn spec_of(object: &Object) -> &Object {
    const NONE: &Object = &Object::new();
    object.object("spec").unwrap_or(NONE)
}

fn annotations_of(object: &Object) -> &Object {
    const NONE: &Object = &Object::new();
    object.object("metadata").and_then(|metadata| metadata.object("annotations")).unwrap_or(NONE)
}

/// The whole old pod, but for the parts of metadata that the registry looks after.
fn keep_all_else(object: &mut Object, old: &Object) {
    keep(object, old, &["spec", "status"]);
    if let Some(metadata) = old.object("metadata") {
        let kept = [
            "labels",
            "annotations",
            "finalizers",
            "ownerReferences",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
        ];
        keep(object.object_mut("metadata"), metadata, &kept);
    }
}

/// What is wrong with a pod that pod templates are not held to, and everything that they are.
fn validate_metadata_and_spec(object: &Object, old: Option<&Object>, policy: PodPolicy) -> FieldErrors {
    let spec = spec_of(object);
    let empty = Object::new();
    let metadata = object.object("metadata").unwrap_or(&empty);
    let mut errors = pod_spec::validate_annotations(METADATA.child("annotations"), object, old, policy);
    errors.extend(pod_spec::validate_spec(SPEC, spec, metadata, old.map(spec_of), policy));
    if spec.str("serviceAccountName").unwrap_or_default().is_empty() {
        let volumes = SPEC.child("volumes");
        for (at, volume) in objects(spec, "volumes").enumerate() {
            let sources = volume.object("projected").map(|projected| projected.array("sources")).unwrap_or_default();
            for (of, source) in sources.iter().filter_map(Value::as_object).enumerate() {
                if source.contains("serviceAccountToken") {
                    let detail = "must not be specified when serviceAccountName is not set";
                    let path = volumes.index(at);
                    let path = path.child("projected");
                    let path = path.child("sources");
                    let path = path.index(of);
                    errors.push(FieldError::forbidden(path.child("serviceAccountToken"), detail));
                }
            }
        }
    }
    for list in ["containers", "initContainers"] {
        let path = SPEC.child(list);
        for (at, container) in objects(spec, list).enumerate() {
            errors.extend(pod_spec::validate_image_padding(path.index(at).child("image"), container));
        }
    }
    errors
}

/// The elements of a list of objects.
fn objects<'a>(object: &'a Object, list: &str) -> impl Iterator<Item = &'a Object> {
    object.array(list).iter().filter_map(Value::as_object)
}

fn validate_ephemeral_containers(object: &Object, old: &Object, policy: PodPolicy) -> FieldErrors {
    if annotations_of(old).contains(MIRROR) {
        return FieldErrors::from([FieldError::forbidden("[]", "static pods do not support ephemeral containers")]);
    }
    let mut errors = validate_metadata_and_spec(object, Some(old), policy);
    errors.extend(update::validate_annotations(object, old, policy));
    let path = SPEC.child("ephemeralContainers");
    for before in objects(spec_of(old), "ephemeralContainers") {
        let name = before.str("name").unwrap_or_default();
        let now = objects(spec_of(object), "ephemeralContainers").find(|container| container.str("name") == Some(name));
        match now {
            None => {
                let detail = format!("existing ephemeral containers {name:?} may not be removed\n");
                errors.push(FieldError::forbidden(path, detail));
            }
            Some(now) if now != before => {
                let detail = format!("existing ephemeral containers {name:?} may not be changed");
                errors.push(FieldError::changed(path, before, now, detail));
            }
            Some(_) => {}
        }
    }
    errors
}

#[cfg(test)]
mod tests;
