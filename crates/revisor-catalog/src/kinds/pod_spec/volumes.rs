//! The volumes of a spec. A volume has exactly one source; each family of sources has a file of its own below.

mod files;
mod projected;
mod storage;

use std::collections::HashSet;

use revisor_object::names::{dns1123_label, dns1123_subdomain};
use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Value};

use super::containers::validate_pull_policy;
use super::file_path;
use super::members::{objects, part, text};
use super::mounts::Volumes;
use super::options::Options;
use crate::checks::{annotations, labels, one_of, problems, required};
use crate::kinds::amounts::amount;
use crate::kinds::core::claim;

/// The sources in the order in which the original looks at them: only the first of several counts. With each stands
/// the name under which it is refused as one too many.
const SOURCES: &[(&str, &str)] = &[
    ("emptyDir", "emptyDir"),
    ("hostPath", "hostPath"),
    ("gitRepo", "gitRepo"),
    ("gcePersistentDisk", "gcePersistentDisk"),
    ("awsElasticBlockStore", "awsElasticBlockStore"),
    ("secret", "secret"),
    ("nfs", "nfs"),
    ("iscsi", "iscsi"),
    ("glusterfs", "glusterfs"),
    ("flocker", "flocker"),
    ("persistentVolumeClaim", "persistentVolumeClaim"),
    ("rbd", "rbd"),
    ("cinder", "cinder"),
    ("cephfs", "cephFS"),
    ("quobyte", "quobyte"),
    ("downwardAPI", "downwarAPI"),
    ("fc", "fc"),
    ("flexVolume", "flexVolume"),
    ("configMap", "configMap"),
    ("azureFile", "azureFile"),
    ("vsphereVolume", "vsphereVolume"),
    ("photonPersistentDisk", "photonPersistentDisk"),
    ("portworxVolume", "portworxVolume"),
    ("azureDisk", "azureDisk"),
    ("storageos", "storageos"),
    ("projected", "projected"),
    ("scaleIO", "scaleIO"),
    ("csi", "csi"),
    ("ephemeral", "ephemeral"),
    ("image", "image"),
];

const HOST_PATH_TYPES: &[&str] =
    &["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];

const MAX_ISCSI_NAME: usize = 64;
const MAX_DRIVER_NAME: usize = 63;

/// What is wrong with the volumes of a spec, and those with nothing wrong. Metadata are given if the spec is a pod's.
pub(super) fn validate<'a>(
    path: FieldPath<'_>,
    spec: &'a Object,
    metadata: Option<&Object>,
    options: Options,
    errors: &mut FieldErrors,
) -> Volumes<'a> {
    let pod = metadata.map(|metadata| text(metadata, "name")).unwrap_or_default();
    // The claims that will be made for this pod, which nothing else may use.
    let made: HashSet<String> = objects(spec, "volumes")
        .filter(|(_, volume)| !pod.is_empty() && volume.contains("ephemeral"))
        .map(|(_, volume)| format!("{pod}-{}", text(volume, "name")))
        .collect();
    let mut sound = Volumes::new();
    for (at, volume) in objects(spec, "volumes") {
        let path = path.index(at);
        let before = errors.len();
        let name = text(volume, "name");
        validate_source(path, volume, pod, options, errors);
        match name {
            "" => errors.push(FieldError::required(path.child("name"), "")),
            name => errors.extend(problems(path.child("name"), name, dns1123_label(name))),
        }
        if sound.contains_key(name) {
            errors.push(FieldError::duplicate(path.child("name"), name));
        }
        if errors.len() == before {
            sound.insert(name, volume);
        }
        if let Some(claim) = volume.object("persistentVolumeClaim")
            && made.contains(text(claim, "claimName"))
        {
            let detail = "must not reference a PVC that gets created for an ephemeral volume";
            let path = path.child("persistentVolumeClaim");
            errors.push(FieldError::invalid(path.child("claimName"), text(claim, "claimName"), detail));
        }
    }
    sound
}

fn validate_source<'v>(path: FieldPath<'_>, volume: &'v Object, pod: &str, options: Options, errors: &mut FieldErrors) {
    // A volume has one source, so its members are looked for among the sources, and not all of these in the volume.
    let source = |(name, value): (&str, &'v Value)| {
        let at = SOURCES.iter().position(|(source, _)| *source == name)?;
        value.as_object().map(|source| (at, source))
    };
    let mut given: Vec<(usize, &'v Object)> = volume.iter().filter_map(source).collect();
    given.sort_unstable_by_key(|(at, _)| *at);
    let mut is_first = true;
    for (at, source) in given {
        let (name, refused_as) = &SOURCES[at];
        if !is_first {
            let detail = "may not specify more than 1 volume type";
            errors.push(FieldError::forbidden(path.child(refused_as), detail));
        } else {
            is_first = false;
            let at_source = path.child(if *name == "gcePersistentDisk" { "persistentDisk" } else { name });
            match *name {
                "emptyDir" => {
                    if source.get("sizeLimit").is_some_and(|limit| amount(limit).is_negative()) {
                        let detail = "SizeLimit field must be a valid resource quantity";
                        errors.push(FieldError::forbidden(at_source.child("sizeLimit"), detail));
                    }
                }
                "hostPath" => validate_host_path(at_source, source, errors),
                "secret" | "configMap" => files::validate_keys(at_source, name, source, errors),
                "downwardAPI" => files::validate_downward(at_source, source, errors),
                "projected" => projected::validate(at_source, source, options, errors),
                "persistentVolumeClaim" => {
                    errors.extend(required(at_source.child("claimName"), text(source, "claimName")));
                }
                "csi" => validate_csi(at_source, source, errors),
                "ephemeral" => {
                    validate_ephemeral(at_source, source, options, errors);
                    validate_claim_name(path, pod, text(volume, "name"), errors);
                }
                "image" => {
                    if options.is_pod {
                        errors.extend(required(at_source.child("reference"), text(source, "reference")));
                    }
                    errors.extend(validate_pull_policy(at_source.child("pullPolicy"), text(source, "pullPolicy")));
                }
                other => storage::validate(at_source, other, source, errors),
            }
        }
        if *name == "iscsi" && source.contains("initiatorName") {
            let of_volume = text(volume, "name");
            if of_volume.len() + 1 + text(source, "targetPortal").len() > MAX_ISCSI_NAME {
                let detail = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if \
                              iscsi.initiatorName is specified.";
                errors.push(FieldError::invalid(path.child("name"), of_volume, detail));
            }
        }
    }
    if is_first {
        errors.push(FieldError::required(path, "must specify a volume type"));
    }
}

fn validate_host_path(path: FieldPath<'_>, source: &Object, errors: &mut FieldErrors) {
    let place = text(source, "path");
    if place.is_empty() {
        errors.push(FieldError::required(path.child("path"), ""));
        return;
    }
    errors.extend(file_path::no_backsteps(path.child("path"), place));
    errors.extend(one_of(path.child("type"), text(source, "type"), HOST_PATH_TYPES));
}

fn validate_csi(path: FieldPath<'_>, source: &Object, errors: &mut FieldErrors) {
    errors.extend(validate_driver(path.child("driver"), text(source, "driver")));
    if let Some(secret) = source.object("nodePublishSecretRef") {
        match text(secret, "name") {
            "" => {
                let path = path.child("nodePublishSecretRef");
                errors.push(FieldError::required(path.child("name"), ""));
            }
            name => errors.extend(problems(path.child("name"), name, dns1123_subdomain(name))),
        }
    }
}

/// What is wrong with the name of a storage driver.
pub(crate) fn validate_driver(path: FieldPath<'_>, name: &str) -> FieldErrors {
    if name.is_empty() {
        return FieldErrors::from([FieldError::required(path, "")]);
    }
    let mut errors = FieldErrors::new();
    if name.len() > MAX_DRIVER_NAME {
        errors.push(FieldError::too_long(path, MAX_DRIVER_NAME));
    }
    errors.extend(problems(path, name, dns1123_subdomain(&name.to_lowercase())));
    errors
}

fn validate_ephemeral(path: FieldPath<'_>, source: &Object, options: Options, errors: &mut FieldErrors) {
    let path = path.child("volumeClaimTemplate");
    let Some(template) = source.object("volumeClaimTemplate") else {
        errors.push(FieldError::required(path, ""));
        return;
    };
    let metadata = part(template, "metadata");
    let at_metadata = path.child("metadata");
    errors.extend(annotations(at_metadata.child("annotations"), metadata.object("annotations")));
    errors.extend(labels(at_metadata.child("labels"), metadata.object("labels")));
    for name in metadata.names_sent().filter(|name| !matches!(*name, "annotations" | "labels")) {
        // The letters are the original's.
        let shown = if name == "uid" { "uID" } else { name };
        errors.push(FieldError::forbidden(at_metadata.child(shown), "cannot be set"));
    }
    errors.extend(claim::validate_claim_spec(path.child("spec"), part(template, "spec"), options.features));
}

/// The claim for an ephemeral volume is named after its pod and its volume.
fn validate_claim_name(path: FieldPath<'_>, pod: &str, volume: &str, errors: &mut FieldErrors) {
    if pod.is_empty() || volume.is_empty() {
        return;
    }
    let claim = format!("{pod}-{volume}");
    for problem in dns1123_subdomain(&claim) {
        let detail = format!("PVC name {claim:?}: {problem}");
        errors.push(FieldError::invalid(path.child("name"), volume, detail));
    }
}
