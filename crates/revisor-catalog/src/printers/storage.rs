//! Volumes, claims and drivers, and the kinds about stored versions.

use revisor_object::{Object, Value};

use super::cells;
use super::core::number_or_text;
use super::fields::{
    age, amount, annotation, array, first_of, is_going, name, object, objects, or, size, text, texts, truth, value,
};
use crate::Moment;

/// The annotation that named the storage class before there was a field.
const OLD_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// How the access modes there are abbreviated, in the order in which they are shown.
const ACCESS_MODES: [(&str, &str); 4] =
    [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];

fn access_modes(here: &Object, path: &str) -> String {
    let given = texts(here, path);
    let shown = ACCESS_MODES.iter().filter(|(mode, _)| given.contains(mode)).map(|(_, short)| *short);
    shown.collect::<Vec<_>>().join(",")
}

fn phase(here: &Object) -> &str {
    if is_going(here) { "Terminating" } else { text(here, "status.phase") }
}

fn class_of(here: &Object) -> &str {
    annotation(here, OLD_CLASS).unwrap_or_else(|| text(here, "spec.storageClassName"))
}

/// How much storage the list of resources there has.
fn storage(here: &Object, path: &str) -> String {
    amount(object(here, path).and_then(|resources| resources.get("storage")))
}

pub(super) fn volume(volume: &Object, now: Moment) -> Vec<Value> {
    let claim = object(volume, "spec.claimRef");
    let claim = claim.map(|claim| format!("{}/{}", text(claim, "namespace"), text(claim, "name")));
    cells![
        name(volume),
        storage(volume, "spec.capacity"),
        access_modes(volume, "spec.accessModes"),
        text(volume, "spec.persistentVolumeReclaimPolicy"),
        phase(volume),
        claim.unwrap_or_default(),
        class_of(volume),
        number_or_text(volume, "spec.volumeAttributesClassName", "<unset>"),
        text(volume, "status.reason"),
        age(volume, now),
        number_or_text(volume, "spec.volumeMode", "<unset>"),
    ]
}

pub(super) fn claim(claim: &Object, now: Moment) -> Vec<Value> {
    let volume = text(claim, "spec.volumeName");
    // What a claim gets is known once it is bound.
    let is_bound = !volume.is_empty();
    let when_bound = |text: String| if is_bound { text } else { String::new() };
    cells![
        name(claim),
        phase(claim),
        volume,
        when_bound(storage(claim, "status.capacity")),
        when_bound(access_modes(claim, "status.accessModes")),
        class_of(claim),
        number_or_text(claim, "spec.volumeAttributesClassName", "<unset>"),
        age(claim, now),
        number_or_text(claim, "spec.volumeMode", "<unset>"),
    ]
}

pub(super) fn storage_class(class: &Object, now: Moment) -> Vec<Value> {
    let is_marked = |name| annotation(class, name) == Some("true");
    let is_default = is_marked("storageclass.kubernetes.io/is-default-class")
        || is_marked("storageclass.beta.kubernetes.io/is-default-class");
    let mark = if is_default { " (default)" } else { "" };
    cells![
        format!("{}{mark}", name(class)),
        text(class, "provisioner"),
        or(text(class, "reclaimPolicy"), "Delete"),
        or(text(class, "volumeBindingMode"), "Immediate"),
        truth(class, "allowVolumeExpansion"),
        age(class, now),
    ]
}

pub(super) fn attributes_class(class: &Object, now: Moment) -> Vec<Value> {
    cells![name(class), text(class, "driverName"), age(class, now)]
}

pub(super) fn attachment(attachment: &Object, now: Moment) -> Vec<Value> {
    cells![
        name(attachment),
        text(attachment, "spec.attacher"),
        text(attachment, "spec.source.persistentVolumeName"),
        text(attachment, "spec.nodeName"),
        truth(attachment, "status.attached"),
        age(attachment, now),
    ]
}

pub(super) fn node(node: &Object, now: Moment) -> Vec<Value> {
    cells![name(node), size(array(node, "spec.drivers")), age(node, now)]
}

pub(super) fn driver(driver: &Object, now: Moment) -> Vec<Value> {
    let attaches = value(driver, "spec.attachRequired").and_then(Value::as_bool).unwrap_or(true);
    let audiences = objects(driver, "spec.tokenRequests").map(|request| text(request, "audience"));
    let audiences = match value(driver, "spec.tokenRequests") {
        Some(_) => audiences.collect::<Vec<_>>().join(","),
        None => "<unset>".to_owned(),
    };
    cells![
        name(driver),
        attaches,
        truth(driver, "spec.podInfoOnMount"),
        truth(driver, "spec.storageCapacity"),
        audiences,
        truth(driver, "spec.requiresRepublish"),
        or(&texts(driver, "spec.volumeLifecycleModes").join(","), "<none>"),
        age(driver, now),
    ]
}

pub(super) fn storage_version(version: &Object, now: Moment) -> Vec<Value> {
    let of_server = |server: &Object| format!("{}={}", text(server, "apiServerID"), text(server, "encodingVersion"));
    let versions = objects(version, "status.storageVersions").map(of_server);
    let many = array(version, "status.storageVersions").len();
    cells![
        name(version),
        number_or_text(version, "status.commonEncodingVersion", "<unset>"),
        first_of(versions, many, 3, ",", "<unset>"),
        age(version, now),
    ]
}

pub(super) fn migration(migration: &Object, _: Moment) -> Vec<Value> {
    let (group, resource) = (text(migration, "spec.resource.group"), text(migration, "spec.resource.resource"));
    let qualified = if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
    let conditions = objects(migration, "status.conditions").filter(|condition| text(condition, "status") == "True");
    let mut kinds = conditions.map(|condition| text(condition, "type"));
    let status = kinds.rfind(|kind| ["Running", "Failed", "Succeeded"].contains(kind));
    cells![name(migration), qualified, status.unwrap_or("Unknown")]
}
