//! Profiles that confine processes: seccomp and AppArmor, in their fields and in the annotations that came before.

use std::cell::LazyCell;
use std::collections::HashSet;

use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object};

use super::file_path;
use super::members::{all_containers, part, text};

/// The annotation for seccomp of a whole pod.
pub(super) const SECCOMP_OF_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
/// How the annotations for seccomp of a container begin; its name follows.
pub(super) const SECCOMP_OF_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
/// How the annotations for AppArmor begin; the name of a container follows.
pub(super) const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

const LOCALHOST: &str = "localhost/";
const RUNTIME_DEFAULT: &str = "runtime/default";
const DOCKER_DEFAULT: &str = "docker/default";
const UNCONFINED: &str = "unconfined";

const TYPES: &[&str] = &["Localhost", "RuntimeDefault", "Unconfined"];
const MAX_APP_ARMOR_PROFILE: usize = 4095;

/// What is wrong with a seccomp profile.
pub(super) fn validate_seccomp(path: FieldPath<'_>, profile: &Object, errors: &mut FieldErrors) {
    let kind = text(profile, "type");
    if kind.is_empty() {
        errors.push(FieldError::required(path.child("type"), "type is required when seccompProfile is set"));
    } else if !TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(path.child("type"), kind, TYPES));
    }
    let at_local = path.child("localhostProfile");
    match (kind, profile.str("localhostProfile")) {
        ("Localhost", None) => {
            errors.push(FieldError::required(at_local, "must be set when seccomp type is Localhost"));
        }
        ("Localhost", Some(local)) => errors.extend(file_path::descending(at_local, local)),
        (_, Some(_)) => {
            let detail = "can only be set when seccomp type is Localhost";
            errors.push(FieldError::invalid(at_local, BadValue::of(profile), detail));
        }
        (_, None) => {}
    }
}

/// What is wrong with an AppArmor profile.
pub(super) fn validate_app_armor(path: FieldPath<'_>, profile: &Object, errors: &mut FieldErrors) {
    let at_local = path.child("localhostProfile");
    let missing = || FieldError::required(at_local, "must be set when AppArmor type is Localhost");
    match (text(profile, "type"), profile.str("localhostProfile")) {
        ("Localhost", None) => errors.push(missing()),
        ("Localhost", Some(local)) => {
            if local.trim() != local {
                errors.push(FieldError::invalid(at_local, local, "must not be padded with whitespace"));
            } else if local.is_empty() {
                errors.push(missing());
            }
            if local.len() > MAX_APP_ARMOR_PROFILE {
                errors.push(FieldError::too_long(at_local, MAX_APP_ARMOR_PROFILE));
            }
        }
        ("RuntimeDefault" | "Unconfined", None) => {}
        ("RuntimeDefault" | "Unconfined", Some(local)) => {
            errors.push(FieldError::invalid(at_local, local, "can only be set when AppArmor type is Localhost"));
        }
        ("", _) => {
            errors.push(FieldError::required(path.child("type"), "type is required when appArmorProfile is set"));
        }
        (kind, _) => errors.push(FieldError::not_supported(path.child("type"), kind, TYPES)),
    }
}

/// What is wrong with the profiles in annotations.
pub(super) fn validate_annotations(path: FieldPath<'_>, annotations: &Object, spec: &Object, errors: &mut FieldErrors) {
    let containers = LazyCell::new(|| -> HashSet<&str> {
        all_containers(spec).map(|(_, _, container)| text(container, "name")).collect()
    });
    for (key, profile) in annotations.iter() {
        let profile = profile.as_str().unwrap_or_default();
        if key == SECCOMP_OF_POD || key.starts_with(SECCOMP_OF_CONTAINER) {
            let path = path.child(key);
            match profile.strip_prefix(LOCALHOST) {
                Some(local) => errors.extend(file_path::descending(path, local)),
                None if matches!(profile, RUNTIME_DEFAULT | DOCKER_DEFAULT | UNCONFINED) => {}
                None => errors.push(FieldError::invalid(path, profile, "must be a valid seccomp profile")),
            }
        }
        if let Some(container) = key.strip_prefix(APP_ARMOR) {
            if !containers.contains(container) {
                errors.push(FieldError::invalid(path.key(key), container, "container not found"));
            }
            let is_sound = matches!(profile, "" | RUNTIME_DEFAULT | UNCONFINED) || profile.starts_with(LOCALHOST);
            if !is_sound {
                let detail = format!("invalid AppArmor profile name: {profile:?}");
                errors.push(FieldError::invalid(path.key(key), profile, detail));
            }
        }
    }
}

/// Where a profile is given both as a field and as an annotation, both must say the same.
pub(super) fn validate_agreement(path: FieldPath<'_>, annotations: &Object, spec: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let context = part(spec, "securityContext");
    if let (Some(profile), Some(annotation)) = (context.object("seccompProfile"), annotations.str(SECCOMP_OF_POD)) {
        let path = path.child("securityContext");
        errors.extend(disagreement(path.child("seccompProfile"), "seccomp", annotation, profile));
    }
    for (list, at, container) in all_containers(spec) {
        let profile = part(container, "securityContext").object("seccompProfile");
        if let Some(profile) = profile
            && let Some(annotation) = annotations.str(&format!("{SECCOMP_OF_CONTAINER}{}", text(container, "name")))
        {
            let path = path.child(list);
            let path = path.index(at);
            let path = path.child("securityContext");
            errors.extend(disagreement(path.child("seccompProfile"), "seccomp", annotation, profile));
        }
    }
    if text(part(spec, "os"), "name") == "windows" {
        return errors;
    }
    for (list, at, container) in all_containers(spec) {
        let profile = part(container, "securityContext").object("appArmorProfile");
        let profile = profile.or_else(|| context.object("appArmorProfile"));
        if let Some(profile) = profile
            && let Some(annotation) = annotations.str(&format!("{APP_ARMOR}{}", text(container, "name")))
        {
            let path = path.child(list);
            let path = path.index(at);
            let path = path.child("securityContext");
            errors.extend(disagreement(path.child("appArmorProfile"), "apparmor", annotation, profile));
        }
    }
    errors
}

fn disagreement(path: FieldPath<'_>, of: &str, annotation: &str, profile: &Object) -> Option<FieldError> {
    let agrees = match text(profile, "type") {
        "Unconfined" => annotation == UNCONFINED,
        "RuntimeDefault" => annotation == RUNTIME_DEFAULT || (of == "seccomp" && annotation == DOCKER_DEFAULT),
        "Localhost" => match annotation.strip_prefix(LOCALHOST) {
            None => false,
            Some(local) if profile.str("localhostProfile") == Some(local) => true,
            Some(_) => {
                let detail = format!("{of} profile in annotation and field must match");
                return Some(FieldError::forbidden(path.child("localhostProfile"), detail));
            }
        },
        _ => true,
    };
    let detail = || format!("{of} type in annotation and field must match");
    (!agrees).then(|| FieldError::forbidden(path.child("type"), detail()))
}

/// Whether a profile says what an annotation for AppArmor says.
pub(super) fn is_same_app_armor(profile: &Object, annotation: &str) -> bool {
    let local = profile.str("localhostProfile");
    match annotation {
        UNCONFINED => text(profile, "type") == "Unconfined" && local.is_none(),
        RUNTIME_DEFAULT => text(profile, "type") == "RuntimeDefault" && local.is_none(),
        other => {
            let named = other.strip_prefix(LOCALHOST).filter(|name| !name.is_empty());
            named.is_some() && text(profile, "type") == "Localhost" && local == named
        }
    }
}
