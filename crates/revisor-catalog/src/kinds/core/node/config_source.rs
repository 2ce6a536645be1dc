//! Where the configuration of a kubelet once came from. Nothing reads it any more; old objects may still have it.

use revisor_object::names::{config_map_key, dns1123_label, dns1123_subdomain};
use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object};

use crate::checks::problems;
use crate::kinds::members::text;

/// What is wrong with the source that is asked for.
pub(super) fn validate_spec(path: FieldPath<'_>, source: &Object) -> FieldErrors {
    validate(path, source, |path, map| {
        let set = ["uid", "resourceVersion"].into_iter().filter(|name| !text(map, name).is_empty());
        set.map(|name| FieldError::forbidden(path.child(name), format!("{name} must not be set in spec"))).collect()
    })
}

/// What is wrong with the sources that are in use.
pub(super) fn validate_status(path: FieldPath<'_>, status: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for name in ["assigned", "active", "lastKnownGood"] {
        let Some(source) = status.object(name) else { continue };
        errors.extend(validate(path.child(name), source, |path, map| {
            let missing = ["uid", "resourceVersion"].into_iter().filter(|name| text(map, name).is_empty());
            missing.map(|name| FieldError::required(path.child(name), "")).collect()
        }));
    }
    errors
}

fn validate(
    path: FieldPath<'_>,
    source: &Object,
    identity: impl Fn(FieldPath<'_>, &Object) -> FieldErrors,
) -> FieldErrors {
    let Some(map) = source.object("configMap") else {
        let detail = "exactly one reference subfield must be non-nil";
        return FieldErrors::from([FieldError::invalid(path, BadValue::of(source), detail)]);
    };
    let path = path.child("configMap");
    let mut errors = identity(path, map);
    for name in ["namespace", "name", "kubeletConfigKey"] {
        let value = text(map, name);
        let found = match name {
            _ if value.is_empty() => {
                errors.push(FieldError::required(path.child(name), ""));
                continue;
            }
            "namespace" => dns1123_label(value),
            "name" => dns1123_subdomain(value),
            _ => config_map_key(value),
        };
        errors.extend(problems(path.child(name), value, found));
    }
    errors
}
