//! The wish that a volume be attached to a node, and what became of it.

use revisor_object::names::dns1123_subdomain;
use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Value};

use crate::checks::{immutable, problems};
use crate::kinds::core::persistent_volume::{Context, csi_driver_name, validate_volume_spec};
use crate::strategy::spec_and_metadata_or_status;
use crate::{Part, Places, Strategy};

const SPEC: FieldPath<'static> = FieldPath::root("spec");
const STATUS: FieldPath<'static> = FieldPath::root("status");

/// What a driver notes about an attachment may take up so many bytes.
const MAX_METADATA_BYTES: usize = 256 * 1024;

/// The longest message of an error.
const MAX_MESSAGE_BYTES: usize = 1024;

pub(crate) struct VolumeAttachments;

impl Strategy for VolumeAttachments {
    fn untouched(&self, part: Part<'_>) -> Places {
        spec_and_metadata_or_status(part)
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        let empty = Object::new();
        let spec = object.object("spec").unwrap_or(&empty);
        let mut errors = csi_driver_name(SPEC.child("attacher"), spec.str("attacher").unwrap_or_default());
        let source = spec.object("source").unwrap_or(&empty);
        errors.extend(validate_source(SPEC.child("source"), source));
        let node = spec.str("nodeName").unwrap_or_default();
        errors.extend(problems(SPEC.child("nodeName"), node, dns1123_subdomain(node)));
        errors.extend(validate_status(object.object("status").unwrap_or(&empty)));
        if let Some(volume) = source.str("persistentVolumeName") {
            let path = FieldPath::root("spec.source.persistentVolumeName");
            errors.extend(problems(path, volume, dns1123_subdomain(volume)));
        }
        errors
    }

    fn validate_update(&self, object: &Object, old: &Object, _: Part<'_>) -> FieldErrors {
        let mut errors = self.validate(object);
        errors.extend(immutable(SPEC, object.get("spec"), old.get("spec")));
        errors
    }
}

fn validate_source(path: FieldPath<'_>, source: &Object) -> FieldErrors {
    let one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (source.object("inlineVolumeSpec"), source.str("persistentVolumeName")) {
        (None, None) => FieldErrors::from([FieldError::required(path, one)]),
        (Some(_), Some(_)) => FieldErrors::from([FieldError::forbidden(path, one)]),
        (None, Some("")) => FieldErrors::from([FieldError::required(
            path.child("persistentVolumeName"),
            "must specify non empty persistentVolumeName",
        )]),
        (None, Some(_)) => FieldErrors::new(),
        (Some(spec), None) => {
            let context = Context { volume: "", is_inline: true, allow_invalid_values: false, attributes_class: false };
            validate_volume_spec(path.child("inlineVolumeSpec"), spec, context)
        }
    }
}

fn validate_status(status: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let metadata = status.object("attachmentMetadata").into_iter().flat_map(Object::iter);
    let bytes: usize = metadata.map(|(name, value)| name.len() + value.as_str().unwrap_or_default().len()).sum();
    if bytes > MAX_METADATA_BYTES {
        errors.push(FieldError::too_long(STATUS.child("attachmentMetadata"), MAX_METADATA_BYTES));
    }
    for name in ["attachError", "detachError"] {
        let Some(error) = status.object(name) else { continue };
        let path = STATUS.child(name);
        if error.str("message").unwrap_or_default().len() > MAX_MESSAGE_BYTES {
            // The bound that the original names is another.
            errors.push(FieldError::too_long(path.child("message"), MAX_METADATA_BYTES));
        }
        if let Some(code) = error.get("errorCode").and_then(Value::as_i64)
            && code < 0
        {
            let detail = format!("must be between 0 and {}, inclusive", i32::MAX);
            errors.push(FieldError::invalid(path.child("errorCode"), code, detail));
        }
    }
    errors
}
