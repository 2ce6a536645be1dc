//! Resource slices: the devices that a driver offers, on one node or on several.

mod capacity;
mod device;

use revisor_object::names::{dns1123_subdomain, qualified_name};
use revisor_object::{BadValue, ByValue, FieldError, FieldErrors, FieldPath, Object, Seen, Value};

pub(super) use self::device::validate_taint;
use super::{lists, names};
use crate::checks::{immutable, problems};
use crate::kinds::members::{is_true, text};
use crate::kinds::node_selectors;
use crate::{Circumstances, Part, Places, Strategy};

const SPEC: FieldPath<'static> = FieldPath::root("spec");

const MAX_DEVICES: usize = 128;

/// At most so many devices if one of them makes use of what is costly.
const MAX_COSTLY_DEVICES: usize = 64;

const MAX_COUNTER_SETS: usize = 8;
const MAX_COUNTERS: usize = 32;
const MAX_BINDING_CONDITIONS: usize = 4;

/// Attributes that are lists, which are a feature of their own.
const LIST_ATTRIBUTES: [&str; 4] = ["bools", "ints", "strings", "versions"];

fn devices(object: &Object) -> impl Iterator<Item = &Object> {
    let devices = object.object("spec").map(|spec| spec.array("devices")).unwrap_or_default();
    devices.iter().filter_map(Value::as_object)
}

fn attributes(device: &Object) -> impl Iterator<Item = &Object> {
    device.object("attributes").into_iter().flat_map(Object::iter).filter_map(|(_, value)| value.as_object())
}

pub(crate) struct ResourceSlices;

impl Strategy for ResourceSlices {
    fn tracked(&self) -> Places {
        &[&["spec"]]
    }

    fn settle(&self, object: &mut Object, _: Option<&Object>, circumstances: Circumstances<'_>) {
        let Some(Value::Object(spec)) = object.get_mut("spec") else { return };
        note_taints(spec, circumstances.now);
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        validate(object, None)
    }

    fn validate_update(&self, object: &Object, old: &Object, _: Part<'_>) -> FieldErrors {
        validate(object, Some(old))
    }

    fn warnings(&self, object: &Object, _: Option<&Object>) -> Vec<String> {
        let driver = object.at(&["spec", "driver"]).and_then(Value::as_str).unwrap_or_default();
        if driver == driver.to_lowercase() {
            return Vec::new();
        }
        vec![format!("spec.driver: driver names should be lowercase; {driver:?} contains uppercase characters")]
    }
}

/// Notes when taints were added.
fn note_taints(spec: &mut Object, now: &str) {
    for device in spec.array_mut("devices").into_iter().flatten().filter_map(Value::as_object_mut) {
        for taint in device.array_mut("taints").into_iter().flatten().filter_map(Value::as_object_mut) {
            if !taint.contains("timeAdded") {
                taint.insert("timeAdded", now);
            }
        }
    }
}

fn validate(object: &Object, old: Option<&Object>) -> FieldErrors {
    let empty = Object::new();
    let spec = object.object("spec").unwrap_or(&empty);
    let old_spec = old.map(|old| old.object("spec").unwrap_or(&empty));
    let pool_path = SPEC.child("pool");
    let mut errors = names::driver(SPEC.child("driver"), text(spec, "driver"));
    errors.extend(validate_pool(pool_path, spec.object("pool").unwrap_or(&empty)));
    if let Some(old_spec) = old_spec {
        let pool_name = ["pool", "name"];
        errors.extend(immutable(pool_path.child("name"), spec.at(&pool_name), old_spec.at(&pool_name)));
        for name in ["driver", "nodeName"] {
            errors.extend(immutable(SPEC.child(name), spec.get(name), old_spec.get(name)));
        }
    }
    errors.extend(validate_nodes(spec));
    if spec.is_sent("sharedCounters") && spec.is_sent("devices") {
        errors.push(FieldError::invalid(SPEC, "", "only one of `sharedCounters` or `devices` is allowed"));
    }
    let is_costly = |device: &Object| {
        device.contains("taints")
            || device.contains("consumesCounters")
            || attributes(device).any(|attribute| LIST_ATTRIBUTES.iter().any(|name| attribute.contains(name)))
    };
    let most = if devices(object).any(is_costly) { MAX_COSTLY_DEVICES } else { MAX_DEVICES };
    let per_device = is_true(spec, "perDeviceNodeSelection");
    errors.extend(lists::named(SPEC.child("devices"), spec.array("devices"), most, "name", |path, device| {
        let before = old.and_then(|old| devices(old).find(|other| other.get("name") == device.get("name")));
        device::validate(path, device, before, per_device)
    }));
    let sets = spec.array("sharedCounters");
    errors.extend(lists::named(SPEC.child("sharedCounters"), sets, MAX_COUNTER_SETS, "name", |path, set| {
        validate_counters(path, set, "name")
    }));
    errors
}

fn validate_pool(path: FieldPath<'_>, pool: &Object) -> FieldErrors {
    let number = |name| pool.get(name).and_then(Value::as_i64).unwrap_or_default();
    let mut errors = names::pool(path.child("name"), text(pool, "name"));
    let (count, generation) = (number("resourceSliceCount"), number("generation"));
    if count <= 0 {
        errors.push(FieldError::invalid(path.child("resourceSliceCount"), count, "must be greater than zero"));
    }
    if generation < 0 {
        let detail = "must be greater than or equal to zero";
        errors.push(FieldError::invalid(path.child("generation"), generation, detail));
    }
    errors
}

/// The nodes that devices are available on, said in exactly one of several ways.
fn validate_nodes(spec: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let mut ways = Vec::new();
    match spec.str("nodeName") {
        Some("") => {
            let detail = "must be either unset or set to a non-empty string";
            errors.push(FieldError::invalid(SPEC.child("nodeName"), "", detail));
        }
        Some(name) => {
            ways.push("`nodeName`");
            errors.extend(problems(SPEC.child("nodeName"), name, dns1123_subdomain(name)));
        }
        None => {}
    }
    if let Some(selector) = spec.object("nodeSelector") {
        ways.push("`nodeSelector`");
        let path = SPEC.child("nodeSelector");
        errors.extend(node_selectors::validate(path, selector, false));
        if selector.array("nodeSelectorTerms").len() != 1 {
            let value = BadValue::of_sent(selector, "nodeSelectorTerms");
            let detail = "must have exactly one node selector term";
            errors.push(FieldError::invalid(path.child("nodeSelectorTerms"), value, detail));
        }
    }
    for (name, way) in [("allNodes", "`allNodes`"), ("perDeviceNodeSelection", "`perDeviceNodeSelection`")] {
        match spec.get(name).and_then(Value::as_bool) {
            Some(true) => ways.push(way),
            Some(false) => {
                errors.push(FieldError::invalid(SPEC.child(name), false, "must be either unset or set to true"));
            }
            None => {}
        }
    }
    let one = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
    match ways.len() {
        0 => errors.push(FieldError::required(SPEC, one)),
        1 => {}
        _ => {
            let detail = format!("{one}, but multiple fields are set");
            errors.push(FieldError::invalid(SPEC, format!("{{{}}}", ways.join(", ")), detail));
        }
    }
    errors
}

/// A set of counters, or what a device takes from one, by the name of the set.
fn validate_counters(path: FieldPath<'_>, set: &Object, name: &str) -> FieldErrors {
    let mut errors = match text(set, name) {
        "" => FieldErrors::from([FieldError::required(path.child(name), "")]),
        set => names::label(path.child(name), set),
    };
    let path = path.child("counters");
    match set.object("counters").filter(|counters| !counters.is_empty()) {
        None => errors.push(FieldError::required(path, "")),
        Some(counters) if counters.len() > MAX_COUNTERS => {
            errors.push(FieldError::too_many(path, counters.len(), MAX_COUNTERS));
        }
        Some(counters) => errors.extend(counters.iter().flat_map(|(name, _)| names::label(path, name))),
    }
    errors
}

/// The conditions that must be met, or that must not arise, before a device is bound. Allocations repeat them.
pub(super) fn validate_binding(path: FieldPath<'_>, holder: &Object) -> FieldErrors {
    let (wanted, unwanted) = (holder.array("bindingConditions"), holder.array("bindingFailureConditions"));
    let (wanted_path, unwanted_path) = (path.child("bindingConditions"), path.child("bindingFailureConditions"));
    let label = |path: FieldPath<'_>, name: &str| problems(path, name, qualified_name(name));
    let mut errors = lists::texts(wanted_path, wanted, MAX_BINDING_CONDITIONS, label);
    errors.extend(lists::texts(unwanted_path, unwanted, MAX_BINDING_CONDITIONS, label));
    errors.extend(lists::duplicates(wanted_path, wanted.iter().filter_map(Value::as_str)));
    let known: Seen<ByValue<'_>> = wanted.iter().map(ByValue).collect();
    let mut seen = Seen::default();
    for (at, condition) in unwanted.iter().enumerate() {
        if !seen.is_new(ByValue(condition)) {
            errors.push(FieldError::duplicate(unwanted_path.index(at), BadValue::of(condition)));
        }
        if known.has(&ByValue(condition)) {
            let detail = "bindingFailureConditions must not overlap with bindingConditions";
            errors.push(FieldError::invalid(unwanted_path.index(at), BadValue::of(condition), detail));
        }
    }
    if wanted.is_empty() && !unwanted.is_empty() {
        let detail = "bindingConditions are required to use bindingFailureConditions";
        errors.push(FieldError::invalid(wanted_path, BadValue::of(&Value::Null), detail));
    }
    if unwanted.is_empty() && !wanted.is_empty() {
        let detail = "bindingFailureConditions are required to use bindingConditions";
        errors.push(FieldError::invalid(unwanted_path, BadValue::of(&Value::Null), detail));
    }
    errors
}

#[cfg(test)]
mod tests;
