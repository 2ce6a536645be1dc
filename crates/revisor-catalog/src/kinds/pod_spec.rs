//! What pods and everything with a pod template have in common: the defaults of a pod's spec that depend on other
//! fields, and what may be wrong with it.
//!
//! Each noun of a spec has a file of its own below this one. What only pods have, and how they may change, is the
//! business of their own kind.

mod affinity;
mod annotations;
mod containers;
mod defaults;
mod disabled;
mod dns;
mod env;
mod file_path;
mod handlers;
mod image;
mod members;
mod mounts;
mod options;
mod ports;
mod profiles;
mod qos;
pub(crate) mod resource_list;
mod resources;
pub(crate) mod restart_rules;
mod security_context;
mod spec;
mod topology_spread;
mod volumes;
mod warnings;
mod windows;

use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Value};

use crate::kinds::taints;
use crate::{Features, checks};
use members::part;
use options::Options;

/// What whoever runs the server lets all pods do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PodPolicy {
    /// Whether containers may be privileged, or processes of the host.
    pub(crate) allow_privileged: bool,
    /// The features that are on.
    pub(crate) features: Features,
}

/// Fills in the spec of a pod template (`{metadata, spec}`).
pub(crate) fn default_template(template: &mut Object, features: Features) {
    if let Some(metadata) = template.get_mut("metadata").and_then(Value::as_object_mut) {
        default_annotations(metadata);
    }
    if let Some(spec) = template.get_mut("spec").and_then(Value::as_object_mut) {
        defaults::default_spec(spec, features);
    }
}

/// Fills in the spec of a pod: what templates get too, and what only pods do.
pub(crate) fn default_pod_spec(spec: &mut Object, features: Features) {
    defaults::default_spec(spec, features);
    defaults::default_pod_spec(spec, features);
}

/// Drops annotations by which older releases meant fields of the spec. Templates have it done to them already.
pub(crate) fn default_annotations(metadata: &mut Object) {
    defaults::default_annotations(metadata);
}

/// What is wrong with a pod template (`{metadata, spec}`). What was wrong with the old one already in ways that the
/// original tolerates on update is tolerated.
pub(crate) fn validate_template(
    path: FieldPath<'_>,
    template: &Object,
    old: Option<&Object>,
    policy: PodPolicy,
) -> FieldErrors {
    let (metadata, spec) = (part(template, "metadata"), part(template, "spec"));
    let options = Options::new(false, spec, old.map(|old| part(old, "spec")), policy)
        .with_metadata(old.map(|old| part(old, "metadata")));
    let at_spec = path.child("spec");
    // The paths of labels and annotations are the original's, which leaves metadata out.
    let mut errors = checks::labels(path.child("labels"), metadata.object("labels"));
    errors.extend(checks::annotations(path.child("annotations"), metadata.object("annotations")));
    annotations::validate(path.child("annotations"), metadata, spec, || options, &mut errors);
    errors.extend(spec::validate(at_spec, spec, None, options));
    errors.extend(profiles::validate_agreement(at_spec, part(metadata, "annotations"), spec));
    if !spec.array("ephemeralContainers").is_empty() {
        let detail = "ephemeral containers not allowed in pod template";
        errors.push(FieldError::forbidden(at_spec.child("ephemeralContainers"), detail));
    }
    errors
}

/// What is wrong with the spec of a pod, given its metadata and the spec that it had before.
pub(crate) fn validate_spec(
    path: FieldPath<'_>,
    spec: &Object,
    metadata: &Object,
    old: Option<&Object>,
    policy: PodPolicy,
) -> FieldErrors {
    spec::validate(path, spec, Some(metadata), Options::new(true, spec, old, policy))
}

/// What is wrong with the annotations of a pod (`{metadata, spec}`) that mean something to the server.
pub(crate) fn validate_annotations(
    path: FieldPath<'_>,
    pod: &Object,
    old: Option<&Object>,
    policy: PodPolicy,
) -> FieldErrors {
    let spec = part(pod, "spec");
    let options = || {
        let options = Options::new(true, spec, old.map(|old| part(old, "spec")), policy);
        options.with_metadata(old.map(|old| part(old, "metadata")))
    };
    let mut errors = FieldErrors::new();
    annotations::validate(path, part(pod, "metadata"), spec, options, &mut errors);
    errors
}

/// The error that the name of an image has white space around it.
pub(crate) fn validate_image_padding(path: FieldPath<'_>, container: &Object) -> Option<FieldError> {
    containers::validate_image_padding(path, container)
}

/// What is wrong with the tolerations of the spec of a pod in place of the old one.
pub(crate) fn validate_tolerations(path: FieldPath<'_>, spec: &Object, old: &Object, policy: PodPolicy) -> FieldErrors {
    let options = Options::new(true, spec, Some(old), policy);
    taints::validate_tolerations(path, spec.array("tolerations"), options.comparing_tolerations)
}

/// Where the profiles that confine a pod (`{metadata, spec}`) are given both as fields and as annotations and do not
/// agree. The path is that of its spec.
pub(crate) fn validate_profiles_match(path: FieldPath<'_>, pod: &Object) -> FieldErrors {
    profiles::validate_agreement(path, part(part(pod, "metadata"), "annotations"), part(pod, "spec"))
}

/// What is unwise about a pod template, or about a pod if the path leads nowhere. That it was so before is no excuse.
pub(crate) fn template_warnings(path: FieldPath<'_>, template: &Object, features: Features) -> Vec<String> {
    let is_template = path.to_string() != FieldPath::none().to_string();
    warnings::of(path, is_template, template, features)
}

/// What is unwise about the annotations of a pod (`{metadata, spec}`) as it was sent: those that become fields.
pub(crate) fn annotation_warnings(path: FieldPath<'_>, pod: &Object) -> Vec<String> {
    let annotations = part(part(pod, "metadata"), "annotations");
    let spec = part(pod, "spec");
    if annotations.is_empty() || members::text(part(spec, "os"), "name") == "windows" {
        return Vec::new();
    }
    warnings::of_app_armor_annotations(path, annotations, spec)
}

pub(crate) use disabled::DISABLED;

/// The class of service of a pod with this spec.
pub(crate) fn qos_class(spec: &Object, features: Features) -> &'static str {
    qos::qos_class(spec, features)
}

#[cfg(test)]
mod tests;
