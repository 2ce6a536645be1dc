//! The sources of persistent volumes: exactly one of many, most of them of drivers that are gone.

use revisor_object::names::{dns1123_label, dns1123_subdomain};
use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, Value};

use crate::checks::{self, in_range, problems};
use crate::kinds::initiator_name::is_initiator_name;
use crate::kinds::members::{number, text};

/// One kind of source.
struct Source {
    field: &'static str,
    /// What the path of its errors calls it.
    path: &'static str,
    /// What the error that it is one too many calls it; `None` if it may stand beside another.
    alone: Option<&'static str>,
    validate: fn(FieldPath<'_>, &Object) -> FieldErrors,
}

const fn source(field: &'static str, validate: fn(FieldPath<'_>, &Object) -> FieldErrors) -> Source {
    Source { field, path: field, alone: Some(field), validate }
}

/// All sources, in the order in which they are looked at: the first that is given is the one.
const SOURCES: &[Source] = &[
    source("hostPath", host_path),
    Source { path: "persistentDisk", ..source("gcePersistentDisk", gce_disk) },
    source("awsElasticBlockStore", aws_disk),
    source("glusterfs", glusterfs),
    source("flocker", flocker),
    source("nfs", nfs),
    source("rbd", rbd),
    source("quobyte", quobyte),
    Source { alone: Some("cephFS"), ..source("cephfs", cephfs) },
    source("iscsi", iscsi),
    source("cinder", cinder),
    source("fc", fibre_channel),
    Source { alone: None, ..source("flexVolume", flex) },
    source("azureFile", azure_file),
    source("vsphereVolume", |path, source| texts(path, source, &["volumePath"])),
    source("photonPersistentDisk", |path, source| texts(path, source, &["pdID"])),
    source("portworxVolume", |path, source| texts(path, source, &["volumeID"])),
    source("azureDisk", azure_disk),
    source("scaleIO", |path, source| texts(path, source, &["gateway", "system", "volumeName"])),
    source("local", local),
    source("storageos", storage_os),
    source("csi", csi),
];

const HOST_PATH_TYPES: &[&str] =
    &["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];

/// What is wrong with the source of a volume with this name.
pub(super) fn validate(path: FieldPath<'_>, spec: &Object, volume: &str, has_affinity: bool) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let mut is_given = false;
    for source in SOURCES {
        let Some(value) = spec.object(source.field) else { continue };
        match source.alone {
            Some(name) if is_given => {
                errors.push(FieldError::forbidden(path.child(name), "may not specify more than 1 volume type"));
                continue;
            }
            _ => is_given = true,
        }
        let found = (source.validate)(path.child(source.path), value);
        if source.field == "iscsi" {
            // What comes first is whether there is a portal at all.
            let (missing, rest): (Vec<_>, Vec<_>) =
                found.into_iter().partition(|error| error.field.ends_with(".targetPortal"));
            errors.extend(missing);
            errors.extend(portal_length(path.child("iscsi"), value, volume));
            errors.extend(rest);
        } else {
            errors.extend(found);
        }
        if source.field == "local" && !has_affinity {
            errors.push(FieldError::required(path.child("nodeAffinity"), "Local volume requires node affinity"));
        }
    }
    if !is_given {
        errors.push(FieldError::required(path, "must specify a volume type"));
    }
    errors
}

/// Whether two volumes have the same source. A driver's secret for expansion may be added later.
pub(super) fn same(spec: &Object, old: &Object) -> bool {
    let spec = without_added_secret(spec, old);
    SOURCES.iter().all(|source| spec.object(source.field) == old.object(source.field))
}

/// The spec of a volume without the secret for expansion, if both have a driver and the old one no such secret.
pub(super) fn without_added_secret(spec: &Object, old: &Object) -> Object {
    let secret = "controllerExpandSecretRef";
    let mut spec = spec.clone();
    if old.object("csi").is_some_and(|csi| !csi.contains(secret))
        && let Some(csi) = spec.get_mut("csi").and_then(Value::as_object_mut)
    {
        csi.remove(secret);
    }
    spec
}

/// Whether a path is that of the root folder, however it is written.
pub(super) fn is_root(path: &str) -> bool {
    let depth = path.split('/').fold(0_usize, |depth, step| match step {
        "" | "." => depth,
        ".." => depth.saturating_sub(1),
        _ => depth + 1,
    });
    path.starts_with('/') && depth == 0
}

/// Texts that must be given.
fn texts(path: FieldPath<'_>, source: &Object, names: &[&str]) -> FieldErrors {
    names.iter().filter_map(|name| checks::required(path.child(name), text(source, name))).collect()
}

fn no_backsteps(path: FieldPath<'_>, target: &str) -> Option<FieldError> {
    target.split('/').any(|step| step == "..").then(|| FieldError::invalid(path, target, "must not contain '..'"))
}

fn host_path(path: FieldPath<'_>, source: &Object) -> FieldErrors {
    let mut errors = texts(path, source, &["path"]);
    if errors.is_empty() {
        errors.extend(no_backsteps(path.child("path"), text(source, "path")));
        if let Some(kind) = source.str("type") {
            errors.extend(checks::one_of(path.child("type"), kind, HOST_PATH_TYPES));
        }
    }
    errors
}

fn local(path: FieldPath<'_>, source: &Object) -> FieldErrors {
    let mut errors = texts(path, source, &["path"]);
    if errors.is_empty() {
        errors.extend(no_backsteps(path.child("path"), text(source, "path")));
    }
    errors
}

fn partition(path: FieldPath<'_>, source: &Object) -> Option<FieldError> {
    let partition = number(source, "partition");
    // Zero stands for the whole disk, though the message does not say so.
    if partition == 0 { None } else { in_range(path.child("partition"), partition, 1, 255) }
}

fn gce_disk(path: FieldPath<'_>, source: &Object) -> FieldErrors {
    let mut errors = texts(path, source, &["pdName"]);
    errors.extend(partition(path, source));
    errors
}

fn aws_disk(path: FieldPath<'_>, source: &Object) -> FieldErrors {
    let mut errors = texts(path, source, &["volumeID"]);
    errors.extend(partition(path, source));
    errors
}

fn glusterfs(path: FieldPath<'_>, source: &Object) -> FieldErrors {
    let mut errors = texts(path, source, &["endpoints", "path"]);
    let path = path.child("endpointsNamespace");
    match source.str("endpointsNamespace") {
        Some("") => {
            let detail = "if the endpointnamespace is set, it must be a valid namespace name";
            errors.push(FieldError::invalid(path, "", detail));
        }
        Some(namespace) => errors.extend(problems(path, namespace, dns1123_label(namespace))),
        None => {}
    }
    errors
}

fn flocker(path: FieldPath<'_>, source: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let name = text(source, "datasetName");
    match (name, text(source, "datasetUUID")) {
        ("", "") => errors.push(FieldError::required(path, "one of datasetName and datasetUUID is required")),
        ("", _) | (_, "") => {}
        _ => {
            let detail = "datasetName and datasetUUID can not be specified simultaneously";
            errors.push(FieldError::invalid(path, "resource", detail));
        }
    }
    if name.contains('/') {
        errors.push(FieldError::invalid(path.child("datasetName"), name, "must not contain '/'"));
    }
    errors
}

fn nfs(path: FieldPath<'_>, source: &Object) -> FieldErrors {
    let mut errors = texts(path, source, &["server", "path"]);
    let target = text(source, "path");
    if !target.starts_with('/') {
        errors.push(FieldError::invalid(path.child("path"), target, "must be an absolute path"));
    }
    errors
}

fn monitors(path: FieldPath<'_>, source: &Object) -> Option<FieldError> {
    source.array("monitors").is_empty().then(|| FieldError::required(path.child("monitors"), ""))
}

fn rbd(path: FieldPath<'_>, source: &Object) -> FieldErrors {
    let mut errors: FieldErrors = monitors(path, source).into_iter().collect();
    errors.extend(texts(path, source, &["image"]));
    errors
}

fn cephfs(path: FieldPath<'_>, source: &Object) -> FieldErrors {
    monitors(path, source).into_iter().collect()
}

fn quobyte(path: FieldPath<'_>, source: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let registry = text(source, "registry");
    let pairs = "must be a host:port pair or multiple pairs separated by commas";
    if registry.is_empty() {
        errors.push(FieldError::required(path.child("registry"), pairs));
    } else if text(source, "tenant").len() >= 65 {
        let detail = "must be a UUID and may not exceed a length of 64 characters";
        errors.push(FieldError::required(path.child("tenant"), detail));
    } else {
        let bad = registry.split(',').filter(|pair| !is_host_port(pair));
        errors.extend(bad.map(|_| FieldError::invalid(path.child("registry"), registry, pairs)));
    }
    errors.extend(texts(path, source, &["volume"]));
    errors
}

/// Whether a text has the form `host:port` or `[host]:port`. Neither part is looked at.
fn is_host_port(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let no_brackets = |text: &str| !text.contains(['[', ']']);
    let host_is_good = match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').is_some_and(no_brackets),
        None => !host.contains(':') && no_brackets(host),
    };
    host_is_good && no_brackets(port)
}

fn iscsi(path: FieldPath<'_>, source: &Object) -> FieldErrors {
    let mut errors = texts(path, source, &["targetPortal"]);
    match text(source, "iqn") {
        "" => errors.push(FieldError::required(path.child("iqn"), "")),
        name => errors.extend(initiator_name(path.child("iqn"), name)),
    }
    errors.extend(in_range(path.child("lun"), number(source, "lun"), 0, 255));
    let is_set = |name| source.get(name).and_then(Value::as_bool) == Some(true);
    let secret_path = path.child("secretRef");
    match source.object("secretRef") {
        Some(secret) => errors.extend(texts(secret_path, secret, &["name"])),
        None if is_set("chapAuthDiscovery") || is_set("chapAuthSession") => {
            errors.push(FieldError::required(secret_path, ""));
        }
        None => {}
    }
    if let Some(name) = source.str("initiatorName") {
        errors.extend(initiator_name(path.child("initiatorname"), name));
    }
    errors
}

fn portal_length(path: FieldPath<'_>, source: &Object, volume: &str) -> Option<FieldError> {
    let portal = text(source, "targetPortal");
    let is_long = source.contains("initiatorName") && volume.len() + 1 + portal.len() > 64;
    let detail = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if \
                  iscsi.initiatorName is specified.";
    is_long.then(|| FieldError::invalid(path.child("targetportal"), portal, detail))
}

fn initiator_name(path: FieldPath<'_>, name: &str) -> Option<FieldError> {
    (is_initiator_name(name) != Some(true)).then(|| FieldError::invalid(path, name, "must be valid format"))
}

fn cinder(path: FieldPath<'_>, source: &Object) -> FieldErrors {
    let mut errors = texts(path, source, &["volumeID"]);
    if let Some(secret) = source.object("secretRef") {
        errors.extend(texts(path.child("secretRef"), secret, &["name", "namespace"]));
    }
    errors
}

fn fibre_channel(path: FieldPath<'_>, source: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let targets_path = path.child("targetWWNs");
    let (targets, ids) = (source.array("targetWWNs"), source.array("wwids"));
    if targets.is_empty() && ids.is_empty() {
        let detail = "must specify either targetWWNs or wwids, but not both";
        errors.push(FieldError::required(targets_path, detail));
    }
    if !targets.is_empty() && !ids.is_empty() {
        let detail = "targetWWNs and wwids can not be specified simultaneously";
        errors.push(FieldError::invalid(targets_path, BadValue::of(&targets), detail));
    }
    if !targets.is_empty() {
        match source.get("lun").and_then(Value::as_i64) {
            Some(lun) => errors.extend(in_range(path.child("lun"), lun, 0, 255)),
            None => errors.push(FieldError::required(path.child("lun"), "lun is required if targetWWNs is specified")),
        }
    }
    errors
}

fn flex(path: FieldPath<'_>, source: &Object) -> FieldErrors {
    let mut errors = texts(path, source, &["driver"]);
    let options = path.child("options");
    for (key, _) in source.object("options").into_iter().flat_map(Object::iter) {
        let namespace = key.split('/').next().unwrap_or_default().to_lowercase();
        let is_within =
            |domain: &str| namespace.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        if is_within("kubernetes.io") || is_within("k8s.io") {
            let detail = "kubernetes.io and k8s.io namespaces are reserved";
            errors.push(FieldError::invalid(options.key(key), key, detail));
        }
    }
    errors
}

fn azure_file(path: FieldPath<'_>, source: &Object) -> FieldErrors {
    let mut errors = texts(path, source, &["secretName", "shareName"]);
    if let Some(namespace) = source.str("secretNamespace") {
        errors.extend(checks::required(path.child("secretNamespace"), namespace));
    }
    errors
}

fn azure_disk(path: FieldPath<'_>, source: &Object) -> FieldErrors {
    let mut errors = texts(path, source, &["diskName", "diskURI"]);
    if let Some(mode) = source.str("cachingMode") {
        errors.extend(checks::one_of(path.child("cachingMode"), mode, &["None", "ReadOnly", "ReadWrite"]));
    }
    if let Some(kind) = source.str("kind") {
        errors.extend(checks::one_of(path.child("kind"), kind, &["Dedicated", "Managed", "Shared"]));
        let (prefix, form) = if kind == "Managed" {
            let form =
                "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
            ("/subscriptions/", form)
        } else {
            ("https://", "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd")
        };
        let uri = text(source, "diskURI");
        if !uri.starts_with(prefix) {
            errors.push(FieldError::not_supported(path.child("diskURI"), uri, &[form]));
        }
    }
    errors
}

fn storage_os(path: FieldPath<'_>, source: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    match text(source, "volumeName") {
        "" => errors.push(FieldError::required(path.child("volumeName"), "")),
        name => errors.extend(problems(path.child("volumeName"), name, dns1123_label(name))),
    }
    let namespace = text(source, "volumeNamespace");
    if !namespace.is_empty() {
        errors.extend(problems(path.child("volumeNamespace"), namespace, dns1123_label(namespace)));
    }
    if let Some(secret) = source.object("secretRef") {
        errors.extend(texts(path.child("secretRef"), secret, &["name", "namespace"]));
    }
    errors
}

fn csi(path: FieldPath<'_>, source: &Object) -> FieldErrors {
    let mut errors = csi_driver_name(path.child("driver"), text(source, "driver"));
    errors.extend(texts(path, source, &["volumeHandle"]));
    for name in
        ["controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef"]
    {
        if let Some(secret) = source.object(name) {
            errors.extend(secret_reference(path.child(name), secret));
        }
    }
    errors
}

fn secret_reference(path: FieldPath<'_>, secret: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    match text(secret, "name") {
        "" => errors.push(FieldError::required(path.child("name"), "")),
        name => errors.extend(problems(path.child("name"), name, dns1123_subdomain(name))),
    }
    match text(secret, "namespace") {
        "" => errors.push(FieldError::required(path.child("namespace"), "")),
        namespace => errors.extend(problems(path.child("namespace"), namespace, dns1123_label(namespace))),
    }
    errors
}

/// The name of a driver: a domain, in any case.
pub(crate) fn csi_driver_name(path: FieldPath<'_>, name: &str) -> FieldErrors {
    if name.is_empty() {
        return FieldErrors::from([FieldError::required(path, "")]);
    }
    let mut errors = FieldErrors::new();
    if name.len() > 63 {
        errors.push(FieldError::too_long(path, 63));
    }
    errors.extend(problems(path, name, dns1123_subdomain(&name.to_lowercase())));
    errors
}
