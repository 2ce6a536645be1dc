//! Persistent volumes: where the storage behind claims comes from.

mod sources;

use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, Value};

pub(crate) use self::sources::csi_driver_name;
use super::claim::{self, CLASS_ANNOTATION, VOLUME_MODES};
use crate::checks::{self, immutable, put_back};
use crate::kinds::{amounts, node_selectors};
use crate::strategy::spec_or_status;
use crate::{Circumstances, Feature, Features, Part, Places, Strategy};

const SPEC: FieldPath<'static> = FieldPath::root("spec");

const ATTRIBUTES_CLASS: &str = "volumeAttributesClassName";

const MOUNT_OPTIONS_ANNOTATION: &str = "volume.beta.kubernetes.io/mount-options";

const RECLAIM_POLICIES: &[&str] = &["Delete", "Recycle", "Retain"];

/// What the annotation for mount options can be used with.
const MOUNTABLE: &[&str] = &[
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "nfs",
    "rbd",
    "quobyte",
    "iscsi",
    "cinder",
    "cephfs",
    "azureFile",
    "vsphereVolume",
    "azureDisk",
    "photonPersistentDisk",
];

/// Sources that nothing serves any more, the name that warnings give them, and what they say.
const REMOVED_SOURCES: &[(&str, &str, &str)] = &[
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

pub(crate) struct PersistentVolumes {
    pub(crate) features: Features,
}

impl Strategy for PersistentVolumes {
    fn default(&self, object: &mut Object) {
        let spec = object.object_mut("spec");
        for (name, value) in [("persistentVolumeReclaimPolicy", "Retain"), ("volumeMode", "Filesystem")] {
            if !spec.contains(name) {
                spec.insert(name, value);
            }
        }
        amounts::round(spec, "capacity");
    }

    fn untouched(&self, part: Part<'_>) -> Places {
        spec_or_status(part)
    }

    fn prepare_create(&self, object: &mut Object, circumstances: Circumstances<'_>) {
        let members = [("phase", Value::from("Pending")), ("lastPhaseTransitionTime", Value::from(circumstances.now))];
        let status: Object = members.into_iter().collect();
        object.insert("status", status);
    }

    fn prepare_update(&self, object: &mut Object, old: &Object, part: Part<'_>, circumstances: Circumstances<'_>) {
        put_back(object, old, self.untouched(part));
        if part == Part::Whole {
            return;
        }
        let time = |object: &Object| object.at(&["status", "lastPhaseTransitionTime"]).cloned();
        let same_phase = object.at(&["status", "phase"]) == old.at(&["status", "phase"]);
        let (now, before) = (time(object), time(old));
        let status = object.object_mut("status");
        if same_phase && now.is_none() {
            status.set("lastPhaseTransitionTime", before);
        } else if !same_phase && (now.is_none() || now == before) {
            status.insert("lastPhaseTransitionTime", circumstances.now);
        }
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        let attributes_class = self.features.has(Feature::VolumeAttributesClass);
        let mut errors = validate_volume(object, false, attributes_class);
        errors.extend(mount_options(object));
        errors
    }

    fn validate_update(&self, object: &Object, old: &Object, part: Part<'_>) -> FieldErrors {
        if part != Part::Whole {
            return FieldErrors::new();
        }
        let old_selector = old.at(&["spec", "nodeAffinity", "required"]).and_then(Value::as_object);
        let allow_invalid_values = old_selector.is_some_and(node_selectors::has_invalid_value);
        let attributes_class =
            self.features.has(Feature::VolumeAttributesClass) || old.at(&["spec", ATTRIBUTES_CLASS]).is_some();
        let own = validate_volume(object, allow_invalid_values, attributes_class);
        // The original looks at the volume twice and says everything twice.
        let mut errors = own.clone();
        errors.extend(mount_options(object));
        errors.extend(own);
        errors.extend(validate_change(object, old, self.features));
        errors
    }

    fn warnings(&self, object: &Object, _: Option<&Object>) -> Vec<String> {
        let mut warnings = Vec::new();
        for (name, what) in [
            (CLASS_ANNOTATION, r#"deprecated since v1.8; use "storageClassName" attribute instead"#),
            (MOUNT_OPTIONS_ANNOTATION, r#"deprecated since v1.31; use "mountOptions" attribute instead"#),
        ] {
            if object.at(&["metadata", "annotations", name]).is_some() {
                warnings.push(format!("metadata.annotations[{name}]: {what}"));
            }
        }
        let Some(spec) = object.object("spec") else { return warnings };
        if spec.str("persistentVolumeReclaimPolicy") == Some("Recycle") {
            warnings.push(
                "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the \
                 recommended approach is to use dynamic provisioning."
                    .to_owned(),
            );
        }
        let terms_path = FieldPath::root("spec.nodeAffinity.required.nodeSelectorTerms");
        let terms = spec.at(&["nodeAffinity", "required", "nodeSelectorTerms"]).and_then(Value::as_array);
        for (at, term) in terms.unwrap_or_default().iter().filter_map(Value::as_object).enumerate() {
            let path = terms_path.index(at);
            let expressions = term.array("matchExpressions");
            warnings.extend(node_selectors::expression_warnings(path.child("matchExpressions"), expressions));
        }
        let removed = REMOVED_SOURCES.iter().filter(|(source, ..)| spec.contains(source));
        warnings.extend(removed.map(|(_, name, what)| format!("spec.{name}: {what}")));
        warnings
    }
}

fn validate_volume(object: &Object, allow_invalid_values: bool, attributes_class: bool) -> FieldErrors {
    let empty = Object::new();
    let name = object.at(&["metadata", "name"]).and_then(Value::as_str).unwrap_or_default();
    let context = Context { volume: name, is_inline: false, allow_invalid_values, attributes_class };
    validate_volume_spec(SPEC, object.object("spec").unwrap_or(&empty), context)
}

/// Where the spec of a volume stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    /// The name of the volume; empty if it has none.
    pub(crate) volume: &'a str,
    /// Whether it is part of another object, where much of it has no meaning.
    pub(crate) is_inline: bool,
    /// Whether values that cannot be those of labels are let pass.
    pub(crate) allow_invalid_values: bool,
    /// Whether the class of attributes is looked at. Of an inline volume it is not.
    pub(crate) attributes_class: bool,
}

/// What is wrong with the spec of a volume.
pub(crate) fn validate_volume_spec(path: FieldPath<'_>, spec: &Object, context: Context<'_>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if context.is_inline {
        let inline = "may not be specified in the context of inline volumes";
        for name in ["claimRef", "capacity"] {
            if spec.contains(name) {
                errors.push(FieldError::forbidden(path.child(name), inline));
            }
        }
        if !spec.contains("csi") {
            let detail = "has to be specified in the context of inline volumes";
            errors.push(FieldError::required(path.child("csi"), detail));
        }
    }
    let modes = path.child("accessModes");
    if spec.array("accessModes").is_empty() {
        errors.push(FieldError::required(modes, ""));
    }
    errors.extend(claim::access_modes(modes, spec));
    if !context.is_inline {
        errors.extend(validate_capacity(path.child("capacity"), spec));
    }
    errors.extend(validate_reclaim_policy(path, spec, context));

    let affinity_path = path.child("nodeAffinity");
    let mut has_affinity = false;
    if let Some(affinity) = spec.object("nodeAffinity") {
        if context.is_inline {
            let detail = "may not be specified in the context of inline volumes";
            errors.push(FieldError::forbidden(affinity_path, detail));
        } else {
            has_affinity = true;
            let required = affinity_path.child("required");
            match affinity.object("required") {
                Some(selector) => {
                    errors.extend(node_selectors::validate(required, selector, context.allow_invalid_values));
                }
                None => errors.push(FieldError::required(required, "must specify required node constraints")),
            }
        }
    }
    errors.extend(sources::validate(path, spec, context.volume, has_affinity));
    let root_path = spec.object("hostPath").and_then(|source| source.str("path"));
    let recycles = spec.str("persistentVolumeReclaimPolicy") == Some("Recycle");
    if recycles && root_path.is_some_and(sources::is_root) {
        let detail = "may not be 'recycle' for a hostPath mount of '/'";
        errors.push(FieldError::forbidden(path.child("persistentVolumeReclaimPolicy"), detail));
    }
    errors.extend(validate_class_and_mode(path, spec, context));
    errors
}

fn validate_capacity(path: FieldPath<'_>, spec: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let capacity = spec.object("capacity");
    let count = capacity.map_or(0, Object::len);
    if count == 0 {
        errors.push(FieldError::required(path, ""));
    }
    if count > 1 || capacity.is_none_or(|capacity| !capacity.contains("storage")) {
        errors.push(FieldError::not_supported(path, BadValue::of_sent(spec, "capacity"), &["storage"]));
    }
    for (name, value) in capacity.into_iter().flat_map(Object::iter) {
        let quantity = amounts::amount(value);
        errors.extend(amounts::basic(path.key(name), &quantity));
        errors.extend(amounts::positive(path.key(name), &quantity));
    }
    errors
}

fn validate_reclaim_policy(path: FieldPath<'_>, spec: &Object, context: Context<'_>) -> Option<FieldError> {
    let policy = spec.str("persistentVolumeReclaimPolicy").filter(|policy| !policy.is_empty())?;
    let path = path.child("persistentVolumeReclaimPolicy");
    if !context.is_inline {
        return checks::one_of(path, policy, RECLAIM_POLICIES);
    }
    let detail = "may only be Retain in the context of inline volumes";
    (policy != "Retain").then(|| FieldError::forbidden(path, detail))
}

fn validate_class_and_mode(path: FieldPath<'_>, spec: &Object, context: Context<'_>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let class = spec.str("storageClassName").unwrap_or_default();
    let class_path = path.child("storageClassName");
    if context.is_inline && !class.is_empty() {
        errors.push(FieldError::forbidden(class_path, "may not be specified in the context of inline volumes"));
    } else {
        errors.extend(claim::class_name(class_path, class));
    }
    if let Some(mode) = spec.str("volumeMode") {
        let mode_path = path.child("volumeMode");
        if !context.is_inline {
            errors.extend(checks::one_of(mode_path, mode, VOLUME_MODES));
        } else if mode != "Filesystem" {
            let detail = "may not specify volumeMode other than Filesystem in the context of inline volumes";
            errors.push(FieldError::forbidden(mode_path, detail));
        }
    }
    if let Some(attributes) = spec.str(ATTRIBUTES_CLASS).filter(|_| context.attributes_class) {
        let attributes_path = path.child(ATTRIBUTES_CLASS);
        if attributes.is_empty() {
            errors.push(FieldError::required(attributes_path, "an empty string is disallowed"));
        }
        errors.extend(claim::class_name(attributes_path, attributes));
        if !spec.contains("csi") {
            let detail = "has to be specified when using volumeAttributesClassName";
            errors.push(FieldError::required(path.child("csi"), detail));
        }
    }
    errors
}

fn mount_options(object: &Object) -> Option<FieldError> {
    object.at(&["metadata", "annotations", MOUNT_OPTIONS_ANNOTATION])?;
    let is_mountable = object.object("spec").is_some_and(|spec| MOUNTABLE.iter().any(|source| spec.contains(source)));
    let path = format!("metadata.annotations.{MOUNT_OPTIONS_ANNOTATION}");
    (!is_mountable).then(|| FieldError::forbidden(path, "may not specify mount options for this volume type"))
}

fn validate_change(object: &Object, old: &Object, features: Features) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let empty = Object::new();
    let (spec, old_spec) = (object.object("spec").unwrap_or(&empty), old.object("spec").unwrap_or(&empty));
    if !sources::same(spec, old_spec) {
        let detail = "spec.persistentvolumesource is immutable after creation";
        let changed = sources::without_added_secret(spec, old_spec);
        errors.push(FieldError::changed("spec.persistentvolumesource", old_spec, &changed, detail));
    }
    errors.extend(immutable(FieldPath::root("volumeMode"), spec.get("volumeMode"), old_spec.get("volumeMode")));
    let affinity = spec.get("nodeAffinity");
    if !features.has(Feature::MutablePVNodeAffinity)
        && let Some(old_affinity) = old_spec.get("nodeAffinity")
        && !affinity.is_some_and(|affinity| same_affinity(affinity, old_affinity))
    {
        let value = affinity.map_or(BadValue::of(&Value::Null), BadValue::of);
        let detail = "field is immutable, except for updating from beta label to GA";
        errors.push(FieldError::invalid("nodeAffinity", value, detail));
    }
    let class_path = SPEC.child(ATTRIBUTES_CLASS);
    let is_same_class = spec.get(ATTRIBUTES_CLASS) == old_spec.get(ATTRIBUTES_CLASS);
    if !is_same_class && !features.has(Feature::VolumeAttributesClass) {
        let detail = "update is forbidden when the VolumeAttributesClass feature gate is disabled";
        errors.push(FieldError::forbidden(class_path, detail));
    }
    if old_spec.contains(ATTRIBUTES_CLASS) && !spec.contains(ATTRIBUTES_CLASS) {
        errors.push(FieldError::forbidden(class_path, "update from non-nil value to nil is forbidden"));
    }
    errors
}

/// Whether two affinities are the same but for labels that were replaced by their successors.
fn same_affinity(new: &Value, old: &Value) -> bool {
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => {
            new.len() == old.len()
                && new.iter().all(|(name, value)| {
                    let before = old.get(name);
                    // A label without a successor has the empty one in the original, so its key may become that; what
                    // is wrong with an empty key is told by itself.
                    let renamed = || {
                        let before = before.and_then(Value::as_str).and_then(node_selectors::successor);
                        name == "key" && value.as_str() == Some(before.unwrap_or_default())
                    };
                    before.is_some_and(|before| same_affinity(value, before)) || renamed()
                })
        }
        (Value::Array(new), Value::Array(old)) => {
            new.len() == old.len() && new.iter().zip(old).all(|(new, old)| same_affinity(new, old))
        }
        _ => new == old,
    }
}

#[cfg(test)]
mod tests;
