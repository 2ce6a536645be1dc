//! Annotations of pods that the server understands: they came before the fields that say the same today, and must make
//! sense, and agree with the fields where both are given.

use revisor_object::{FieldError, FieldPath, Object, Value, parse_json};

use super::{MIRROR, SPEC, annotations_of, objects, spec_of};

const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/tolerations";
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

const CONTAINER_LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// What is wrong with the annotations of a pod or of a pod template with this spec. A deletion cost that was wrong
/// before may stay.
pub(crate) fn validate(
    path: FieldPath<'_>,
    annotations: &Object,
    spec: &Object,
    old: Option<&Object>,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let has_container = |name: &str| {
        let containers = CONTAINER_LISTS.iter().flat_map(|list| objects(spec, list));
        containers.into_iter().any(|container| container.str("name") == Some(name))
    };
    for (key, value) in annotations.iter() {
        let value = value.as_str().unwrap_or_default();
        match key {
            MIRROR if spec.str("nodeName").unwrap_or_default().is_empty() => {
                let detail = "must set spec.nodeName if mirror pod annotation is set";
                errors.push(FieldError::invalid(path.key(key), value, detail));
            }
            TOLERATIONS if !value.is_empty() => {
                let is_list = parse_json(value.as_bytes()).is_ok_and(|parsed| parsed.value.as_array().is_some());
                if !is_list {
                    errors.push(FieldError::invalid(path, TOLERATIONS, "must be a JSON list of tolerations"));
                }
            }
            DELETION_COST => {
                let was_wrong = || {
                    let before = old.and_then(|old| old.str(DELETION_COST));
                    before.is_some_and(|before| !is_deletion_cost(before))
                };
                if !is_deletion_cost(value) && !was_wrong() {
                    errors.push(FieldError::invalid(path.key(key), value, "must be a 32bit integer"));
                }
            }
            SECCOMP_POD => errors.extend(validate_seccomp(path.child(key), value)),
            _ if key.starts_with(SECCOMP_CONTAINER) => errors.extend(validate_seccomp(path.child(key), value)),
            _ => {
                let Some(name) = key.strip_prefix(APP_ARMOR) else { continue };
                if !has_container(name) {
                    errors.push(FieldError::invalid(path.key(key), name, "container not found"));
                }
                let is_known =
                    matches!(value, "" | "runtime/default" | "unconfined") || value.starts_with("localhost/");
                if !is_known {
                    let detail = format!("invalid AppArmor profile name: {value:?}");
                    errors.push(FieldError::invalid(path.key(key), value, detail));
                }
            }
        }
    }
    errors
}

/// A number in its one form: no plus sign and no leading zeros.
fn is_deletion_cost(text: &str) -> bool {
    let is_regular = matches!(text.as_bytes(), [b'0'] | [b'-' | b'1'..=b'9', ..]);
    is_regular && text.parse::<i32>().is_ok()
}

fn validate_seccomp(path: FieldPath<'_>, profile: &str) -> Option<FieldError> {
    if matches!(profile, "runtime/default" | "docker/default" | "unconfined") {
        return None;
    }
    let Some(file) = profile.strip_prefix("localhost/") else {
        return Some(FieldError::invalid(path, profile, "must be a valid seccomp profile"));
    };
    if file.starts_with('/') {
        return Some(FieldError::invalid(path, file, "must be a relative path"));
    }
    file.split('/').any(|step| step == "..").then(|| FieldError::invalid(path, file, "must not contain '..'"))
}

/// Profiles that are given twice, as an annotation and as a field, must be the same.
pub(super) fn validate_profiles_match(pod: &Object) -> Vec<FieldError> {
    let (annotations, spec) = (annotations_of(pod), spec_of(pod));
    if annotations.is_empty() {
        return Vec::new();
    }
    let mut errors = Vec::new();
    let pod_context = spec.object("securityContext");
    if let (Some(field), Some(annotation)) =
        (pod_context.and_then(|context| context.object("seccompProfile")), annotations.str(SECCOMP_POD))
    {
        let path = SPEC.child("securityContext");
        errors.extend(mismatch(path.child("seccompProfile"), "seccomp", field, annotation));
    }
    let is_windows = spec.object("os").and_then(|os| os.str("name")) == Some("windows");
    for list in CONTAINER_LISTS {
        for (at, container) in objects(spec, list).enumerate() {
            let name = container.str("name").unwrap_or_default();
            let context = container.object("securityContext");
            let path = SPEC.child(list);
            let path = path.index(at);
            let path = path.child("securityContext");
            let profile = |context: Option<&Object>, name| context.and_then(|it| it.object(name)).cloned();
            let seccomp = profile(context, "seccompProfile");
            if let (Some(field), Some(annotation)) = (seccomp, annotations.str(&format!("{SECCOMP_CONTAINER}{name}"))) {
                errors.extend(mismatch(path.child("seccompProfile"), "seccomp", &field, annotation));
            }
            if is_windows {
                continue;
            }
            let app_armor = profile(context, "appArmorProfile").or_else(|| profile(pod_context, "appArmorProfile"));
            if let (Some(field), Some(annotation)) = (app_armor, annotations.str(&format!("{APP_ARMOR}{name}"))) {
                errors.extend(mismatch(path.child("appArmorProfile"), "apparmor", &field, annotation));
            }
        }
    }
    errors
}

fn mismatch(path: FieldPath<'_>, what: &str, field: &Object, annotation: &str) -> Option<FieldError> {
    let of_type =
        || FieldError::forbidden(path.child("type"), format!("{what} type in annotation and field must match"));
    let is_default = annotation == "runtime/default" || (what == "seccomp" && annotation == "docker/default");
    match field.get("type").and_then(Value::as_str)? {
        "Unconfined" if annotation != "unconfined" => Some(of_type()),
        "RuntimeDefault" if !is_default => Some(of_type()),
        "Localhost" => match annotation.strip_prefix("localhost/") {
            None => Some(of_type()),
            Some(name) if field.str("localhostProfile") != Some(name) => {
                let detail = format!("{what} profile in annotation and field must match");
                Some(FieldError::forbidden(path.child("localhostProfile"), detail))
            }
            Some(_) => None,
        },
        _ => None,
    }
}
