//! Volumes whose files come from elsewhere in the API: ConfigMaps, Secrets and the pod itself.

use revisor_object::{FieldError, FieldErrors, FieldPath, Object};

use crate::checks::required;
use crate::kinds::pod_spec::members::{given_number, objects, text};
use crate::kinds::pod_spec::{env, file_path};

const MODE_RULE: &str = "must be a number between 0 and 0777 (octal), both inclusive";

/// What is wrong with a volume of the keys of a ConfigMap or a Secret.
pub(super) fn validate_keys(path: FieldPath<'_>, kind: &str, source: &Object, errors: &mut FieldErrors) {
    let name = if kind == "secret" { "secretName" } else { "name" };
    errors.extend(required(path.child(name), text(source, name)));
    errors.extend(validate_mode(path, "defaultMode", source));
    let path = path.child("items");
    for (at, item) in objects(source, "items") {
        validate_item(path.index(at), item, errors);
    }
}

/// What is wrong with one key and the file that shows it.
pub(super) fn validate_item(path: FieldPath<'_>, item: &Object, errors: &mut FieldErrors) {
    errors.extend(required(path.child("key"), text(item, "key")));
    let file = text(item, "path");
    errors.extend(required(path.child("path"), file));
    errors.extend(file_path::local_and_free(path.child("path"), file));
    errors.extend(validate_mode(path, "mode", item));
}

/// What is wrong with the permissions of files.
pub(super) fn validate_mode(path: FieldPath<'_>, name: &str, holder: &Object) -> Option<FieldError> {
    let mode = given_number(holder, name)?;
    (!(0..=0o777).contains(&mode)).then(|| FieldError::invalid(path.child(name), mode, MODE_RULE))
}

/// What is wrong with a volume of facts about the pod.
pub(super) fn validate_downward(path: FieldPath<'_>, source: &Object, errors: &mut FieldErrors) {
    errors.extend(validate_mode(path, "defaultMode", source));
    for (_, file) in objects(source, "items") {
        validate_downward_file(path, file, errors);
    }
}

/// What is wrong with one file of facts about the pod. The path is that of the volume, not of the file.
pub(super) fn validate_downward_file(path: FieldPath<'_>, file: &Object, errors: &mut FieldErrors) {
    let place = text(file, "path");
    errors.extend(required(path.child("path"), place));
    errors.extend(file_path::local_and_free(path.child("path"), place));
    match (file.object("fieldRef"), file.object("resourceFieldRef")) {
        (Some(field), other) => {
            env::validate_file_field(path.child("fieldRef"), field, errors);
            if other.is_some() {
                let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
                errors.push(FieldError::invalid(path, "resource", detail));
            }
        }
        (None, Some(resource)) => env::validate_resource(path.child("resourceFieldRef"), resource, true, errors),
        (None, None) => {
            errors.push(FieldError::required(path, "one of fieldRef and resourceFieldRef is required"));
        }
    }
    errors.extend(validate_mode(path, "mode", file));
}
