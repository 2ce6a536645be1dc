//! What pods and everything with a pod template have in common: the defaults of a pod's spec that depend on other
//! fields, and what may be wrong with it.

use revisor_object::{FieldError, FieldPath, Object};

/// Fills in the spec of a pod template (`{metadata, spec}`).
pub(crate) fn default_template(template: &mut Object) {
    if let Some(spec) = template.get_mut("spec").and_then(revisor_object::Value::as_object_mut) {
        default_spec(spec);
    }
}

/// Fills in the spec of a pod or of a pod template.
pub(crate) fn default_spec(spec: &mut Object) {
    let _ = spec;
}

/// What is wrong with a pod template (`{metadata, spec}`). What was wrong with the old one already in ways that the
/// original tolerates on update is tolerated.
pub(crate) fn validate_template(path: FieldPath<'_>, template: &Object, old: Option<&Object>) -> Vec<FieldError> {
    let _ = (path, template, old);
    Vec::new()
}

/// What is wrong with the spec of a pod, given its metadata.
pub(crate) fn validate_spec(
    path: FieldPath<'_>,
    spec: &Object,
    metadata: &Object,
    old: Option<&Object>,
) -> Vec<FieldError> {
    let _ = (path, spec, metadata, old);
    Vec::new()
}

/// What is unwise about a pod template.
pub(crate) fn template_warnings(path: FieldPath<'_>, template: &Object, old: Option<&Object>) -> Vec<String> {
    let _ = (path, template, old);
    Vec::new()
}

/// Drops the fields of a spec whose feature is off, unless the old spec uses them already.
pub(crate) fn drop_disabled_fields(spec: &mut Object, old: Option<&Object>) {
    let _ = (spec, old);
}
