//! What the kinds that make pods from a template have in common: the template, the selector that must find its pods,
//! and counts that may not be negative. What a template itself may look like is in [`pod_spec`].

use revisor_object::names::dns1123_label;
use revisor_object::{
    BadValue, FieldError, FieldErrors, FieldPath, IntOrString, LabelSelectorOptions, Object, StructuredLabelSelector,
    Value,
};

use super::pod_spec;
use crate::{Features, checks};

pub(crate) use super::members::{NONE as NOTHING, given_number, number, text};

const MISMATCH: &str = "`selector` does not match template `labels`";

/// The spec of an object.
pub(crate) fn spec(object: &Object) -> &Object {
    object.object("spec").unwrap_or(NOTHING)
}

/// The status of an object.
pub(crate) fn status(object: &Object) -> &Object {
    object.object("status").unwrap_or(NOTHING)
}

/// The template of a spec.
pub(crate) fn template(spec: &Object) -> &Object {
    spec.object("template").unwrap_or(NOTHING)
}

/// The pod spec of the template of a spec.
pub(crate) fn pod(spec: &Object) -> &Object {
    template(spec).object("spec").unwrap_or(NOTHING)
}

/// The labels of the template of a spec.
pub(crate) fn template_labels(spec: &Object) -> Option<&Object> {
    spec.at(&["template", "metadata", "labels"]).and_then(Value::as_object)
}

/// Gives a member its default where it is absent.
pub(crate) fn fill(object: &mut Object, name: &str, value: impl Into<Value>) {
    if !object.contains(name) {
        object.insert(name, value);
    }
}

/// A member as it is shown in an error.
pub(crate) fn shown(object: &Object, name: &str) -> BadValue {
    BadValue::of_sent(object, name)
}

/// Fills in the template of a spec.
pub(crate) fn default_template(spec: &mut Object, features: Features) {
    let template = spec.object_mut("template");
    template.object_mut("spec");
    pod_spec::default_template(template, features);
}

/// What is unwise about a new object: about its name, which its pods inherit, and about its template.
pub(crate) fn warnings_on_create(object: &Object, features: Features) -> Vec<String> {
    let mut warnings: Vec<String> = name_warning(object).into_iter().collect();
    warnings.extend(template_warnings(spec(object), features));
    warnings
}

/// What is unwise about the template of a spec.
pub(crate) fn template_warnings(spec: &Object, features: Features) -> Vec<String> {
    let path = FieldPath::root("spec");
    pod_spec::template_warnings(path.child("template"), template(spec), features)
}

/// What is unwise about the template of a spec that was changed.
pub(crate) fn warnings_on_update(object: &Object, old: &Object, features: Features) -> Vec<String> {
    if is_counted(object, old) { template_warnings(spec(object), features) } else { Vec::new() }
}

/// Whether a write was one of a status. Others leave it as it was.
pub(crate) fn is_about_status(object: &Object, old: &Object) -> bool {
    object.get("status") != old.get("status")
}

/// Whether a write raised the generation: changed what is wanted.
pub(crate) fn is_counted(object: &Object, old: &Object) -> bool {
    let path = ["metadata", "generation"];
    object.at(&path) != old.at(&path)
}

/// The warning about a name that can be part of a pod's name, but not of a host's.
pub(crate) fn name_warning(object: &Object) -> Option<String> {
    let name = object.at(&["metadata", "name"]).and_then(Value::as_str).unwrap_or_default();
    let problems = dns1123_label(name);
    (!problems.is_empty()).then(|| {
        format!(
            "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; \
             a DNS label is recommended: [{}]",
            problems.join(" ")
        )
    })
}

/// What is wrong with the selector of a spec, which is there for good, and with a template that it does not find.
/// `owner` is what the message about an empty selector calls the kind; `unreadable` is what is said of a selector that
/// cannot be evaluated.
pub(crate) fn validate_selector(spec: &Object, owner: &str, unreadable: &str) -> FieldErrors {
    let root = FieldPath::root("spec");
    let path = root.child("selector");
    let Some(object) = spec.object("selector") else {
        return FieldErrors::from([FieldError::required(path, ""), mismatch(spec)]);
    };
    let selector = StructuredLabelSelector::new(object);
    let mut errors = selector.validate(&path, LabelSelectorOptions::default());
    if selector.is_empty() {
        let detail = format!("empty selector is invalid for {owner}");
        errors.push(FieldError::invalid(path, BadValue::of(object), detail));
        return errors;
    }
    match selector.to_selector() {
        Err(_) => errors.push(FieldError::invalid(path, BadValue::of(object), unreadable)),
        Ok(_) if selector.matches(template_labels(spec)) => {}
        Ok(_) => errors.push(mismatch(spec)),
    }
    errors
}

/// The error that a selector does not find what the template makes.
pub(crate) fn mismatch(spec: &Object) -> FieldError {
    let metadata = spec.at(&["template", "metadata"]).and_then(Value::as_object);
    let labels = metadata.map_or_else(|| BadValue::of(&Value::Null), |metadata| shown(metadata, "labels"));
    FieldError::invalid("spec.template.metadata.labels", labels, MISMATCH)
}

/// Whether the selector of a spec can be evaluated. Where it cannot, the template is not looked at.
pub(crate) fn has_readable_selector(spec: &Object) -> bool {
    spec.object("selector").is_none_or(|object| StructuredLabelSelector::new(object).to_selector().is_ok())
}

/// What is wrong with a template whose pods are to run for ever.
pub(crate) fn validate_lasting_pods(spec: &Object, owner: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let (root, pod) = (FieldPath::root("spec"), pod(spec));
    let template = root.child("template");
    let path = template.child("spec");
    if text(pod, "restartPolicy") != "Always" {
        let policy = text(pod, "restartPolicy");
        errors.push(FieldError::not_supported(path.child("restartPolicy"), policy, &["Always"]));
    }
    if pod.contains("activeDeadlineSeconds") {
        let detail = format!("activeDeadlineSeconds in {owner} is not Supported");
        errors.push(FieldError::forbidden(path.child("activeDeadlineSeconds"), detail));
    }
    errors
}

/// One error for each of these members that is negative.
pub(crate) fn negative(path: FieldPath<'_>, object: &Object, names: &[&str]) -> FieldErrors {
    names.iter().filter_map(|name| checks::not_negative(path.child(name), number(object, name))).collect()
}

/// One error for each of these members of a status that is greater than its `replicas`.
pub(crate) fn beyond_replicas(path: FieldPath<'_>, status: &Object, names: &[&str]) -> FieldErrors {
    let replicas = number(status, "replicas");
    let beyond = names.iter().filter(|name| number(status, name) > replicas);
    let detail = "cannot be greater than status.replicas";
    beyond.map(|name| FieldError::invalid(path.child(name), number(status, name), detail)).collect()
}

/// The error that more replicas are available than ready; `bound` is how the message calls the latter.
pub(crate) fn available_beyond_ready(path: FieldPath<'_>, status: &Object, bound: &str) -> Option<FieldError> {
    let available = number(status, "availableReplicas");
    (available > number(status, "readyReplicas")).then(|| {
        FieldError::invalid(path.child("availableReplicas"), available, format!("cannot be greater than {bound}"))
    })
}

/// The error that `collisionCount` went down or away.
pub(crate) fn collisions_forgotten(path: FieldPath<'_>, status: &Object, old: &Object) -> Option<FieldError> {
    let before = given_number(old, "collisionCount")?;
    let now = given_number(status, "collisionCount");
    let is_less = now.is_none_or(|now| now < before);
    let error = || FieldError::invalid(path.child("collisionCount"), now.unwrap_or_default(), "cannot be decremented");
    is_less.then(error)
}

/// A member that is a number or a percentage.
pub(crate) fn share<'o>(object: &'o Object, name: &str) -> IntOrString<'o> {
    object.get(name).and_then(IntOrString::of).unwrap_or(IntOrString::Int(0))
}
