//! The status of a claim: the allocation, which never changes once it is there, who it is reserved for, and what
//! drivers say about the devices.

use std::collections::HashSet;

use revisor_object::{
    BadValue, ByValue, FieldError, FieldErrors, FieldPath, Object, Seen, Value, interface_address_problems,
};

use super::super::device_claim::{MAX_CONFIGURATIONS, RequestNames, validate_configuration, validate_raw};
use super::super::{lists, names};
use crate::checks::{self, immutable, problems};
use crate::kinds::members::text;
use crate::kinds::resource::resource_slice::validate_binding;
use crate::kinds::{conditions, node_selectors};

const STATUS: FieldPath<'static> = FieldPath::root("status");

const MAX_RESULTS: usize = 32;
const MAX_RESERVATIONS: usize = 256;
const MAX_CONDITIONS: usize = 8;
const MAX_DATA_BYTES: usize = 10 * 1024;
const MAX_ADDRESSES: usize = 16;
const MAX_INTERFACE_NAME: usize = 256;
const MAX_HARDWARE_ADDRESS: usize = 128;

/// What a device is known by: its driver, pool and name, and the share of it if it is shared.
type DeviceId<'a> = (&'a str, &'a str, &'a str, Option<&'a str>);

fn device_id(object: &Object) -> DeviceId<'_> {
    (text(object, "driver"), text(object, "pool"), text(object, "device"), object.str("shareID"))
}

/// A device as errors show it, which is as the original's own type for it (`SharedDeviceID`).
fn show(id: DeviceId<'_>) -> BadValue {
    let (driver, pool, device, share) = id;
    let quoted = |text: &str| Value::from(text).to_json();
    BadValue::Text(format!(
        r#"{{"Driver":{},"Pool":{},"Device":{},"ShareID":{}}}"#,
        quoted(driver),
        quoted(pool),
        quoted(device),
        quoted(share.unwrap_or_default())
    ))
}

fn allocated(object: &Object) -> HashSet<DeviceId<'_>> {
    let results = object.at(&["status", "allocation", "devices", "results"]).and_then(Value::as_array);
    results.unwrap_or_default().iter().filter_map(Value::as_object).map(device_id).collect()
}

/// Drops what drivers said about devices that are not allocated any more.
pub(super) fn forget_deallocated(object: &mut Object, old: &Object) {
    let (now, before) = (allocated(object), allocated(old));
    let devices = object.at(&["status", "devices"]).and_then(Value::as_array).unwrap_or_default();
    let is_gone = |device: &Value| {
        let id = device.as_object().map(device_id);
        id.is_some_and(|id| before.contains(&id) && !now.contains(&id))
    };
    if !devices.iter().any(is_gone) {
        return;
    }
    let left: Vec<Value> = devices.iter().filter(|device| !is_gone(device)).cloned().collect();
    let status = object.object_mut("status");
    status.set("devices", (!left.is_empty()).then(|| Value::from(left)));
}

/// What is wrong with the status of a claim in place of the old one.
pub(super) fn validate(object: &Object, old: &Object) -> FieldErrors {
    let empty = Object::new();
    let status = object.object("status").unwrap_or(&empty);
    let old_status = old.object("status").unwrap_or(&empty);
    let reserved = status.array("reservedFor");
    let reserved_path = STATUS.child("reservedFor");
    let mut errors = lists::named(reserved_path, reserved, MAX_RESERVATIONS, "uid", |path, consumer| {
        let missing = ["resource", "name", "uid"].into_iter();
        missing.filter_map(|name| checks::required(path.child(name), text(consumer, name))).collect()
    });
    let known = allocated(object);
    let devices = status.array("devices");
    let devices_path = STATUS.child("devices");
    errors.extend(lists::objects(devices_path, devices, usize::MAX, |path, device| {
        validate_device(path, device, &known)
    }));
    let mut seen = HashSet::new();
    for (at, device) in devices.iter().filter_map(Value::as_object).enumerate() {
        if !seen.insert(device_id(device)) {
            errors.push(FieldError::duplicate(devices_path.index(at), show(device_id(device))));
        }
    }
    let allocation = status.object("allocation");
    if !reserved.is_empty() {
        let is_marked = object.at(&["metadata", "deletionTimestamp"]).is_some();
        let was_reserved: Seen<ByValue<'_>> = old_status.array("reservedFor").iter().map(ByValue).collect();
        if allocation.is_none() {
            errors.push(FieldError::forbidden(reserved_path, "may not be specified when `allocated` is not set"));
        } else if is_marked && reserved.iter().any(|consumer| !was_reserved.has(&ByValue(consumer))) {
            let detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
            errors.push(FieldError::forbidden(reserved_path, detail));
        }
    }
    let path = STATUS.child("allocation");
    match (allocation, old_status.contains("allocation")) {
        (Some(_), true) => errors.extend(immutable(path, status.get("allocation"), old_status.get("allocation"))),
        (Some(allocation), false) => {
            let requests = RequestNames::of(object.object("spec"));
            errors.extend(validate_allocation(path, allocation, &requests));
        }
        (None, _) => {}
    }
    errors
}

fn validate_allocation(path: FieldPath<'_>, allocation: &Object, requests: &RequestNames<'_>) -> FieldErrors {
    let empty = Object::new();
    let devices = allocation.object("devices").unwrap_or(&empty);
    let devices_path = path.child("devices");
    let results = devices.array("results");
    let mut errors = lists::objects(devices_path.child("results"), results, MAX_RESULTS, |path, result| {
        let mut errors = requests.validate(path.child("request"), text(result, "request"));
        errors.extend(names::driver(path.child("driver"), text(result, "driver")));
        errors.extend(names::pool(path.child("pool"), text(result, "pool")));
        errors.extend(names::label(path.child("device"), text(result, "device")));
        errors.extend(validate_binding(path, result));
        errors.extend(result.str("shareID").and_then(|share| names::uid(path.child("shareID"), share)));
        errors
    });
    let config = devices.array("config");
    // From the class and from the claim.
    let most = 2 * MAX_CONFIGURATIONS;
    errors.extend(lists::objects(devices_path.child("config"), config, most, |path, config| {
        let source = text(config, "source");
        let mut errors: FieldErrors =
            checks::required_one_of(path.child("source"), source, &["FromClaim", "FromClass"]).into_iter().collect();
        errors.extend(requests.validate_all(path.child("requests"), config.array("requests")));
        errors.extend(validate_configuration(path, config));
        errors
    }));
    if let Some(selector) = allocation.object("nodeSelector") {
        errors.extend(node_selectors::validate(path.child("nodeSelector"), selector, false));
    }
    errors
}

fn validate_device(path: FieldPath<'_>, device: &Object, known: &HashSet<DeviceId<'_>>) -> FieldErrors {
    let mut errors = names::driver(path.child("driver"), text(device, "driver"));
    errors.extend(names::pool(path.child("pool"), text(device, "pool")));
    errors.extend(names::label(path.child("device"), text(device, "device")));
    errors.extend(device.str("shareID").and_then(|share| names::uid(path.child("shareID"), share)));
    let id = device_id(device);
    if !known.contains(&id) {
        let detail = "must be an allocated device in the claim";
        errors.push(FieldError::invalid(path, show(id), detail));
    }
    let reported = device.array("conditions");
    if reported.len() > MAX_CONDITIONS {
        errors.push(FieldError::too_many(path.child("conditions"), reported.len(), MAX_CONDITIONS));
    }
    errors.extend(conditions::validate(path.child("conditions"), reported));
    if device.contains("data") {
        errors.extend(validate_raw(path.child("data"), device.get("data"), MAX_DATA_BYTES));
    }
    if let Some(network) = device.object("networkData") {
        errors.extend(validate_network(path.child("networkData"), network));
    }
    errors
}

fn validate_network(path: FieldPath<'_>, network: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for (name, most) in [("interfaceName", MAX_INTERFACE_NAME), ("hardwareAddress", MAX_HARDWARE_ADDRESS)] {
        if text(network, name).len() > most {
            errors.push(FieldError::too_long(path.child(name), most));
        }
    }
    let addresses = network.array("ips");
    errors.extend(lists::distinct_texts(path.child("ips"), addresses, MAX_ADDRESSES, |path, address| {
        problems(path, address, interface_address_problems(address))
    }));
    errors
}
