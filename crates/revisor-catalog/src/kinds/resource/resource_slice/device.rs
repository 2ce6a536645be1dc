//! One device of a slice: what it is like, how much of it there is, and what keeps others away from it.

use revisor_object::names::{dns1123_subdomain, label_value, qualified_name};
use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, Value};

use super::super::device_claim::EFFECTS;
use super::super::{lists, names};
use super::{LIST_ATTRIBUTES, attributes, capacity, is_true, text, validate_binding, validate_counters};
use crate::checks::{self, problems};
use crate::kinds::resource_names::is_native;
use crate::kinds::semantic_version::SemanticVersion;
use crate::kinds::{amounts, node_selectors};

/// At most so many attributes and capacities together.
const MAX_PROPERTIES: usize = 32;

/// At most so many values of attributes, each element of a list counted.
const MAX_ATTRIBUTE_VALUES: usize = 48;

const MAX_VALUE_BYTES: usize = 64;
const MAX_TAINTS: usize = 16;
const MAX_CONSUMPTIONS: usize = 2;

/// What is wrong with a device in place of one with the same name.
pub(super) fn validate(path: FieldPath<'_>, device: &Object, old: Option<&Object>, selects_nodes: bool) -> FieldErrors {
    let mut errors = names::label(path.child("name"), text(device, "name"));
    errors.extend(validate_counts(path, device));
    let attributes_path = path.child("attributes");
    for (name, attribute) in device.object("attributes").into_iter().flat_map(Object::iter) {
        errors.extend(names::qualified(attributes_path, name));
        if let Some(attribute) = attribute.as_object() {
            errors.extend(validate_attribute(attributes_path.key(&names::shown_key(name)), attribute));
        }
    }
    let capacity_path = path.child("capacity");
    let is_shared = is_true(device, "allowMultipleAllocations");
    for (name, value) in device.object("capacity").into_iter().flat_map(Object::iter) {
        errors.extend(names::qualified(capacity_path, name));
        if let Some(value) = value.as_object() {
            errors.extend(capacity::validate(capacity_path.key(&names::shown_key(name)), value, is_shared));
        }
    }
    // Taints that were there before stay, whatever the rules have become.
    if old.is_none_or(|old| old.get("taints") != device.get("taints")) {
        errors.extend(lists::objects(path.child("taints"), device.array("taints"), MAX_TAINTS, validate_taint));
    }
    let consumptions = device.array("consumesCounters");
    let counters_path = path.child("consumesCounters");
    errors.extend(lists::named(counters_path, consumptions, MAX_CONSUMPTIONS, "counterSet", |path, consumption| {
        validate_counters(path, consumption, "counterSet")
    }));
    errors.extend(validate_nodes(path, device, selects_nodes));
    errors.extend(validate_binding(path, device));
    errors.extend(validate_mappings(path.child("nodeAllocatableResourceMappings"), device));
    errors
}

fn validate_counts(path: FieldPath<'_>, device: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let len = |name| device.object(name).map_or(0, Object::len);
    let properties = len("attributes") + len("capacity");
    let values: usize = attributes(device)
        .map(|attribute| LIST_ATTRIBUTES.iter().map(|name| attribute.array(name).len()).sum::<usize>().max(1))
        .sum();
    for (count, most, what) in
        [(properties, MAX_PROPERTIES, "attributes and capacities"), (values, MAX_ATTRIBUTE_VALUES, "attribute values")]
    {
        if count > most {
            let detail = format!("the total number of {what} must not exceed {most}");
            errors.push(FieldError::invalid(path, BadValue::of(&count), detail));
        }
    }
    errors
}

fn validate_attribute(path: FieldPath<'_>, attribute: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if let Some(value) = attribute.str("string") {
        errors.extend(validate_text(path.child("string"), value));
    }
    if let Some(value) = attribute.str("version") {
        errors.extend(validate_version(path.child("version"), value));
    }
    let strings = path.child("strings");
    for (at, value) in attribute.array("strings").iter().filter_map(Value::as_str).enumerate() {
        errors.extend(validate_text(strings.index(at), value));
    }
    let versions = path.child("versions");
    for (at, value) in attribute.array("versions").iter().filter_map(Value::as_str).enumerate() {
        errors.extend(validate_version(versions.index(at), value));
    }
    if attribute.len() != 1 {
        let value = if attribute.is_empty() { BadValue::from("") } else { BadValue::of(attribute) };
        errors.push(FieldError::invalid(path, value, "exactly one value must be specified"));
    }
    errors
}

fn validate_text(path: FieldPath<'_>, value: &str) -> Option<FieldError> {
    (value.len() > MAX_VALUE_BYTES).then(|| FieldError::too_long(path, MAX_VALUE_BYTES))
}

fn validate_version(path: FieldPath<'_>, value: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if SemanticVersion::parse(value).is_none() {
        let detail = "must be a string compatible with semver.org spec 2.0.0";
        errors.push(FieldError::invalid(path, value, detail));
    }
    errors.extend(validate_text(path, value));
    errors
}

/// What is wrong with a taint.
pub(in crate::kinds::resource) fn validate_taint(path: FieldPath<'_>, taint: &Object) -> FieldErrors {
    let (key, value) = (text(taint, "key"), text(taint, "value"));
    let mut errors = problems(path.child("key"), key, qualified_name(key));
    if !value.is_empty() {
        errors.extend(problems(path.child("value"), value, label_value(value)));
    }
    errors.extend(checks::required_one_of(path.child("effect"), text(taint, "effect"), EFFECTS));
    errors
}

/// The nodes of a device by itself, where the slice leaves that to its devices.
fn validate_nodes(path: FieldPath<'_>, device: &Object, selects_nodes: bool) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if !selects_nodes {
        if ["nodeName", "nodeSelector", "allNodes"].iter().any(|name| device.contains(name)) {
            let detail = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is \
                          set to true in the ResourceSlice spec";
            errors.push(FieldError::invalid(path, BadValue::nothing(), detail));
        }
        return errors;
    }
    let mut ways = Vec::new();
    match device.str("nodeName") {
        Some("") => errors.push(FieldError::invalid(path.child("nodeName"), "", "must not be empty")),
        Some(name) => {
            ways.push("`nodeName`");
            errors.extend(problems(path.child("nodeName"), name, dns1123_subdomain(name)));
        }
        None => {}
    }
    if let Some(selector) = device.object("nodeSelector") {
        ways.push("`nodeSelector`");
        errors.extend(node_selectors::validate(path.child("nodeSelector"), selector, false));
    }
    match device.get("allNodes").and_then(Value::as_bool) {
        Some(true) => ways.push("`allNodes`"),
        Some(false) => {
            errors.push(FieldError::invalid(path.child("allNodes"), false, "must be either unset or set to true"));
        }
        None => {}
    }
    let one = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is \
               set to true in the ResourceSlice spec";
    match ways.len() {
        0 => errors.push(FieldError::required(path, one)),
        1 => {}
        _ => errors.push(FieldError::invalid(path, format!("{{{}}}", ways.join(", ")), one)),
    }
    errors
}

/// How the device counts against what its node has.
fn validate_mappings(path: FieldPath<'_>, device: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let mappings = device.object("nodeAllocatableResourceMappings").into_iter().flat_map(Object::iter);
    for (name, mapping) in mappings {
        let path = path.key(name);
        let Some(mapping) = mapping.as_object() else { continue };
        if !is_native(name) {
            errors.push(FieldError::invalid(path, name, "must be a node allocatable resource name"));
        }
        if let Some(multiplier) = mapping.get("allocationMultiplier") {
            let multiplier = amounts::amount(multiplier);
            if multiplier.sign() <= 0 {
                let path = path.child("allocationMultiplier");
                errors.push(FieldError::invalid(path, multiplier.to_string(), "must be positive"));
            }
        }
        let key_path = path.child("capacityKey");
        match mapping.str("capacityKey") {
            Some("") => errors.push(FieldError::invalid(key_path, "", "capacityKey must not be an empty string")),
            Some(key) if device.object("capacity").is_none_or(|capacity| !capacity.contains(key)) => {
                errors.push(FieldError::not_found(key_path, key));
            }
            _ => {}
        }
    }
    errors
}
