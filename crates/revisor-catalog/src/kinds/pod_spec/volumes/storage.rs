//! Volumes on storage that is named in place: network file systems, and the disks and services from before drivers.
//! Persistent volumes have most of them too.

use revisor_object::names::dns1123_label;
use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object};

use crate::checks::{one_of, problems, required};
use crate::kinds::initiator_name::is_initiator_name;
use crate::kinds::pod_spec::file_path;
use crate::kinds::pod_spec::members::{NONE, given_number, is_true, number, text};

const HOST_PORT_RULE: &str = "must be a host:port pair or multiple pairs separated by commas";
const MAX_TENANT: usize = 64;

/// Texts and lists that a source must have.
const REQUIRED: &[(&str, &[&str])] = &[
    ("gitRepo", &["repository"]),
    ("gcePersistentDisk", &["pdName"]),
    ("awsElasticBlockStore", &["volumeID"]),
    ("nfs", &["server", "path"]),
    ("glusterfs", &["endpoints", "path"]),
    ("rbd", &["monitors", "image"]),
    ("cinder", &["volumeID"]),
    ("cephfs", &["monitors"]),
    ("flexVolume", &["driver"]),
    ("azureFile", &["secretName", "shareName"]),
    ("azureDisk", &["diskName", "diskURI"]),
    ("vsphereVolume", &["volumePath"]),
    ("photonPersistentDisk", &["pdID"]),
    ("portworxVolume", &["volumeID"]),
    ("scaleIO", &["gateway", "system", "volumeName"]),
    ("storageos", &["volumeName"]),
    ("iscsi", &["targetPortal", "iqn"]),
];

/// What is wrong with a source of the kind `kind`, the name of its member.
pub(crate) fn validate(path: FieldPath<'_>, kind: &str, source: &Object, errors: &mut FieldErrors) {
    let (_, members) = REQUIRED.iter().find(|(name, _)| *name == kind).unwrap_or(&("", &[]));
    for name in *members {
        if text(source, name).is_empty() && source.array(name).is_empty() {
            errors.push(FieldError::required(path.child(name), ""));
        }
    }
    match kind {
        "gitRepo" => errors.extend(file_path::descending(path.child("directory"), text(source, "directory"))),
        "gcePersistentDisk" | "awsElasticBlockStore" => {
            let partition = number(source, "partition");
            if !(0..=255).contains(&partition) {
                let detail = "must be between 1 and 255, inclusive";
                errors.push(FieldError::invalid(path.child("partition"), partition, detail));
            }
        }
        "nfs" if !text(source, "path").starts_with('/') => {
            errors.push(FieldError::invalid(path.child("path"), text(source, "path"), "must be an absolute path"));
        }
        "cinder" => errors.extend(validate_secret(path, source)),
        "iscsi" => validate_iscsi(path, source, errors),
        "fc" => validate_fibre_channel(path, source, errors),
        "flocker" => validate_flocker(path, source, errors),
        "flexVolume" => validate_flex(path, source, errors),
        "azureDisk" => validate_azure_disk(path, source, errors),
        "quobyte" => validate_quobyte(path, source, errors),
        "storageos" => {
            for name in ["volumeName", "volumeNamespace"] {
                let given = text(source, name);
                if !given.is_empty() {
                    errors.extend(problems(path.child(name), given, dns1123_label(given)));
                }
            }
            errors.extend(validate_secret(path, source));
        }
        _ => {}
    }
}

fn validate_secret(path: FieldPath<'_>, source: &Object) -> Option<FieldError> {
    let name = text(source.object("secretRef")?, "name");
    required(path.child("secretRef").child("name"), name)
}

fn validate_iscsi(path: FieldPath<'_>, source: &Object, errors: &mut FieldErrors) {
    let target = text(source, "iqn");
    if !target.is_empty() {
        errors.extend(validate_initiator(path.child("iqn"), target));
    }
    let lun = number(source, "lun");
    errors.extend(crate::checks::in_range(path.child("lun"), lun, 0, 255));
    let needs_secret = is_true(source, "chapAuthDiscovery") || is_true(source, "chapAuthSession");
    if needs_secret && !source.contains("secretRef") {
        errors.push(FieldError::required(path.child("secretRef"), ""));
    }
    if let Some(initiator) = source.str("initiatorName") {
        errors.extend(validate_initiator(path.child("initiatorname"), initiator));
    }
}

fn validate_initiator(path: FieldPath<'_>, name: &str) -> Option<FieldError> {
    let detail = match is_initiator_name(name) {
        Some(true) => return None,
        Some(false) => "must be valid format",
        None => "must be valid format starting with iqn, eui, or naa",
    };
    Some(FieldError::invalid(path, name, detail))
}

fn validate_fibre_channel(path: FieldPath<'_>, source: &Object, errors: &mut FieldErrors) {
    let (targets, ids) = (source.array("targetWWNs"), source.array("wwids"));
    let at_targets = path.child("targetWWNs");
    if targets.is_empty() && ids.is_empty() {
        let detail = "must specify either targetWWNs or wwids, but not both";
        errors.push(FieldError::required(at_targets, detail));
    }
    if !targets.is_empty() && !ids.is_empty() {
        let detail = "targetWWNs and wwids can not be specified simultaneously";
        errors.push(FieldError::invalid(at_targets, BadValue::of(&targets), detail));
    }
    if targets.is_empty() {
        return;
    }
    match given_number(source, "lun") {
        None => errors.push(FieldError::required(path.child("lun"), "lun is required if targetWWNs is specified")),
        Some(lun) => errors.extend(crate::checks::in_range(path.child("lun"), lun, 0, 255)),
    }
}

fn validate_flocker(path: FieldPath<'_>, source: &Object, errors: &mut FieldErrors) {
    let name = text(source, "datasetName");
    match (name.is_empty(), text(source, "datasetUUID").is_empty()) {
        (true, true) => {
            errors.push(FieldError::required(path, "one of datasetName and datasetUUID is required"));
        }
        (false, false) => {
            let detail = "datasetName and datasetUUID can not be specified simultaneously";
            errors.push(FieldError::invalid(path, "resource", detail));
        }
        _ => {}
    }
    if name.contains('/') {
        errors.push(FieldError::invalid(path.child("datasetName"), name, "must not contain '/'"));
    }
}

fn validate_flex(path: FieldPath<'_>, source: &Object, errors: &mut FieldErrors) {
    let path = path.child("options");
    for (key, _) in source.object("options").unwrap_or(NONE).iter() {
        let namespace = key.split('/').next().unwrap_or_default();
        let namespace = format!(".{}", namespace.to_lowercase());
        if namespace.ends_with(".kubernetes.io") || namespace.ends_with(".k8s.io") {
            let detail = "kubernetes.io and k8s.io namespaces are reserved";
            errors.push(FieldError::invalid(path.key(key), key, detail));
        }
    }
}

fn validate_azure_disk(path: FieldPath<'_>, source: &Object, errors: &mut FieldErrors) {
    if let Some(mode) = source.str("cachingMode") {
        errors.extend(one_of(path.child("cachingMode"), mode, &["None", "ReadOnly", "ReadWrite"]));
    }
    let Some(kind) = source.str("kind") else { return };
    errors.extend(one_of(path.child("kind"), kind, &["Dedicated", "Managed", "Shared"]));
    let uri = text(source, "diskURI");
    let (prefix, form) = if kind == "Managed" {
        (
            "/subscriptions/",
            "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
        )
    } else {
        ("https://", "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd")
    };
    if !uri.starts_with(prefix) {
        errors.push(FieldError::not_supported(path.child("diskURI"), uri, &[form]));
    }
}

fn validate_quobyte(path: FieldPath<'_>, source: &Object, errors: &mut FieldErrors) {
    let registry = text(source, "registry");
    if registry.is_empty() {
        errors.push(FieldError::required(path.child("registry"), HOST_PORT_RULE));
    } else if text(source, "tenant").len() > MAX_TENANT {
        let detail = "must be a UUID and may not exceed a length of 64 characters";
        errors.push(FieldError::required(path.child("tenant"), detail));
    } else {
        let bad = registry.split(',').filter(|pair| !is_host_and_port(pair));
        errors.extend(bad.map(|_| FieldError::invalid(path.child("registry"), registry, HOST_PORT_RULE)));
    }
    if text(source, "volume").is_empty() {
        errors.push(FieldError::required(path.child("volume"), ""));
    }
}

/// A host, in brackets if it has colons itself, and after a colon a port, which may be anything.
fn is_host_and_port(pair: &str) -> bool {
    let Some((host, port)) = pair.rsplit_once(':') else { return false };
    let host = match host.strip_prefix('[') {
        Some(rest) => match rest.strip_suffix(']') {
            Some(host) => host,
            None => return false,
        },
        None if host.contains(':') => return false,
        None => host,
    };
    !host.contains(['[', ']']) && !port.contains(['[', ']'])
}
