//! ConfigMaps: texts and bytes by key, up to 1 MiB, optionally frozen.

use revisor_object::names::config_map_key;
use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Value};

use crate::{Part, Strategy};

/// How many bytes the values of one ConfigMap or Secret may have.
pub(super) const MAX_DATA_BYTES: usize = 1024 * 1024;

pub(crate) struct ConfigMaps;

impl Strategy for ConfigMaps {
    fn validate(&self, object: &Object) -> FieldErrors {
        let mut errors = FieldErrors::new();
        let mut size = 0;
        let binary = object.object("binaryData");
        let data_path = FieldPath::root("data");
        for (key, value) in object.object("data").into_iter().flat_map(Object::iter) {
            for problem in config_map_key(key) {
                errors.push(FieldError::invalid(data_path.key(key), key, problem));
            }
            if binary.is_some_and(|binary| binary.contains(key)) {
                let detail = "duplicate of key present in binaryData";
                errors.push(FieldError::invalid(data_path.key(key), key, detail));
            }
            size += value.as_str().unwrap_or_default().len();
        }
        let binary_path = FieldPath::root("binaryData");
        for (key, value) in binary.into_iter().flat_map(Object::iter) {
            for problem in config_map_key(key) {
                errors.push(FieldError::invalid(binary_path.key(key), key, problem));
            }
            size += decoded_len(value);
        }
        if size > MAX_DATA_BYTES {
            errors.push(FieldError::too_long(FieldPath::root(""), MAX_DATA_BYTES));
        }
        errors
    }

    fn validate_update(&self, object: &Object, old: &Object, _: Part<'_>) -> FieldErrors {
        let mut errors = frozen(object, old, &["data", "binaryData"]);
        errors.extend(self.validate(object));
        errors
    }
}

/// How many bytes a canonical base64 text stands for.
pub(super) fn decoded_len(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default();
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    text.len() / 4 * 3 - padding.min(2)
}

/// What was changed of an object that is marked immutable.
pub(super) fn frozen(object: &Object, old: &Object, parts: &[&str]) -> FieldErrors {
    let is_frozen = |object: &Object| object.get("immutable").and_then(Value::as_bool) == Some(true);
    if !is_frozen(old) {
        return FieldErrors::new();
    }
    let detail = "field is immutable when `immutable` is set";
    let thawed = (!is_frozen(object)).then_some("immutable");
    let changed = parts.iter().copied().filter(|part| object.get(part) != old.get(part) || object.is_sent_empty(part));
    thawed.into_iter().chain(changed).map(|part| FieldError::forbidden(FieldPath::root(part), detail)).collect()
}
