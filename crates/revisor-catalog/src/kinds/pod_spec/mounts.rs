//! Where the volumes of a pod appear in a container: as directories and as block devices.

use std::collections::HashMap;

use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Seen};

use super::file_path;
use super::members::{is_true, objects, part, text};
use crate::checks::{one_of, required};

const PROPAGATIONS: &[&str] = &["Bidirectional", "HostToContainer", "None"];
const RECURSIVELY_READ_ONLY: &[&str] = &["Disabled", "Enabled", "IfPossible"];

/// The volumes of a spec that have nothing wrong with them, by name.
pub(super) type Volumes<'a> = HashMap<&'a str, &'a Object>;

/// What is wrong with the directories of one container.
pub(super) fn validate(path: FieldPath<'_>, container: &Object, volumes: &Volumes<'_>, errors: &mut FieldErrors) {
    let mut places = Seen::default();
    let [devices, device_places] = members(container, "volumeDevices", ["name", "devicePath"]);
    for (at, mount) in objects(container, "volumeMounts") {
        let at_mount = path.index(at);
        let (name, place) = (text(mount, "name"), text(mount, "mountPath"));
        errors.extend(required(at_mount.child("name"), name));
        if !volumes.contains_key(name) {
            errors.push(FieldError::not_found(at_mount.child("name"), name));
        }
        errors.extend(required(at_mount.child("mountPath"), place));
        if !places.is_new(place) {
            errors.push(FieldError::invalid(at_mount.child("mountPath"), place, "must be unique"));
        }
        if devices.has(&name) {
            let detail = "must not already exist in volumeDevices";
            errors.push(FieldError::invalid(at_mount.child("name"), name, detail));
        }
        if device_places.has(&place) {
            let detail = "must not already exist as a path in volumeDevices";
            errors.push(FieldError::invalid(at_mount.child("mountPath"), place, detail));
        }
        let (sub_path, expression) = (text(mount, "subPath"), text(mount, "subPathExpr"));
        errors.extend(file_path::descending(path.child("subPath"), sub_path));
        if !expression.is_empty() && !sub_path.is_empty() {
            let detail = "subPathExpr and subPath are mutually exclusive";
            errors.push(FieldError::invalid(at_mount.child("subPathExpr"), expression, detail));
        }
        errors.extend(file_path::descending(path.child("subPathExpr"), expression));
        if let Some(propagation) = mount.str("mountPropagation") {
            validate_propagation(path.child("mountPropagation"), propagation, container, errors);
        }
        if let Some(mode) = mount.str("recursiveReadOnly") {
            validate_recursion(path.child("recursiveReadOnly"), mode, mount, errors);
        }
    }
}

/// What the elements of a list have in each of two members.
fn members<'a>(container: &'a Object, list: &str, names: [&str; 2]) -> [Seen<&'a str>; 2] {
    names.map(|name| objects(container, list).map(|(_, element)| text(element, name)).collect())
}

fn validate_propagation(path: FieldPath<'_>, propagation: &str, container: &Object, errors: &mut FieldErrors) {
    errors.extend(one_of(path, propagation, PROPAGATIONS));
    if propagation == "Bidirectional" && !is_true(part(container, "securityContext"), "privileged") {
        let detail = "Bidirectional mount propagation is available only to privileged containers";
        errors.push(FieldError::forbidden(path, detail));
    }
}

fn validate_recursion(path: FieldPath<'_>, mode: &str, mount: &Object, errors: &mut FieldErrors) {
    match mode {
        "Disabled" => {}
        "Enabled" | "IfPossible" => {
            if !is_true(mount, "readOnly") {
                errors.push(FieldError::forbidden(path, "may only be specified when readOnly is true"));
            }
            if mount.str("mountPropagation").is_some_and(|propagation| propagation != "None") {
                let detail = "may only be specified when mountPropagation is None or not specified";
                errors.push(FieldError::forbidden(path, detail));
            }
        }
        _ => errors.push(FieldError::not_supported(path, mode, RECURSIVELY_READ_ONLY)),
    }
}

/// What is wrong with the block devices of one container.
pub(super) fn validate_devices(
    path: FieldPath<'_>,
    container: &Object,
    volumes: &Volumes<'_>,
    errors: &mut FieldErrors,
) {
    let (mut names, mut places) = (Seen::default(), Seen::default());
    if container.array("volumeDevices").is_empty() {
        return;
    }
    let [mounts, mount_places] = members(container, "volumeMounts", ["name", "mountPath"]);
    for (at, device) in objects(container, "volumeDevices") {
        let path = path.index(at);
        let (name, place) = (text(device, "name"), text(device, "devicePath"));
        errors.extend(required(path.child("name"), name));
        if names.has(&name) {
            errors.push(FieldError::invalid(path.child("name"), name, "must be unique"));
        }
        match volumes.get(name) {
            None => errors.push(FieldError::not_found(path.child("name"), name)),
            Some(volume) if volume.contains("persistentVolumeClaim") || volume.contains("ephemeral") => {}
            Some(_) => {
                let detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                errors.push(FieldError::invalid(path.child("name"), name, detail));
            }
        }
        errors.extend(required(path.child("devicePath"), place));
        if places.has(&place) {
            errors.push(FieldError::invalid(path.child("devicePath"), place, "must be unique"));
        }
        if file_path::steps_back(place) {
            errors.push(FieldError::invalid(path.child("devicePath"), place, "can not contain backsteps ('..')"));
        } else {
            places.is_new(place);
        }
        if mounts.has(&name) {
            errors.push(FieldError::invalid(path.child("name"), name, "must not already exist in volumeMounts"));
        }
        if mount_places.has(&place) {
            let detail = "must not already exist as a path in volumeMounts";
            errors.push(FieldError::invalid(path.child("devicePath"), place, detail));
        }
        if !name.is_empty() {
            names.is_new(name);
        }
    }
}
