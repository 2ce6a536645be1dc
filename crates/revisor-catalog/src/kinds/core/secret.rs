//! Secrets: bytes by key with a type that says which keys there must be.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use revisor_object::names::config_map_key;
use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Value, parse_json};

use super::config_map::{MAX_DATA_BYTES, decoded_len, frozen};
use super::tls_pair;
use crate::checks::immutable;
use crate::{Part, Strategy};

const SERVICE_ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";

pub(crate) struct Secrets;

impl Strategy for Secrets {
    fn default(&self, object: &mut Object) {
        if object.str("type").unwrap_or_default().is_empty() {
            object.insert("type", "Opaque");
        }
        // stringData is for writing only: what it says goes into data, over what is there.
        if let Some(Value::Object(texts)) = object.remove("stringData") {
            let encoded =
                texts.iter().map(|(key, text)| (key.into(), STANDARD.encode(text.as_str().unwrap_or_default()).into()));
            object.object_mut("data").insert_all(encoded.collect());
        }
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        let mut errors = FieldErrors::new();
        let path = FieldPath::root("data");
        let empty = Object::new();
        let data = object.object("data").unwrap_or(&empty);
        let mut size = 0;
        for (key, value) in data.iter() {
            for problem in config_map_key(key) {
                errors.push(FieldError::invalid(path.key(key), key, problem));
            }
            size += decoded_len(value);
        }
        if size > MAX_DATA_BYTES {
            errors.push(FieldError::too_long(path, MAX_DATA_BYTES));
        }
        let require = |key: &str| (!data.contains(key)).then(|| FieldError::required(path.key(key), ""));
        match object.str("type").unwrap_or_default() {
            "kubernetes.io/service-account-token" => {
                let account = object.at(&["metadata", "annotations", SERVICE_ACCOUNT_NAME]).and_then(Value::as_str);
                if account.unwrap_or_default().is_empty() {
                    let metadata = FieldPath::root("metadata");
                    let annotations = metadata.child("annotations");
                    errors.push(FieldError::required(annotations.key(SERVICE_ACCOUNT_NAME), ""));
                }
            }
            "kubernetes.io/dockercfg" => errors.extend(json_object(data, ".dockercfg")),
            "kubernetes.io/dockerconfigjson" => errors.extend(json_object(data, ".dockerconfigjson")),
            "kubernetes.io/basic-auth" if !data.contains("username") && !data.contains("password") => {
                errors.extend(require("username"));
                errors.extend(require("password"));
            }
            "kubernetes.io/ssh-auth" if data.str("ssh-privatekey").unwrap_or_default().is_empty() => {
                errors.push(FieldError::required(path.key("ssh-privatekey"), ""));
            }
            "kubernetes.io/tls" => {
                errors.extend(require("tls.crt"));
                errors.extend(require("tls.key"));
            }
            _ => {}
        }
        errors
    }

    fn validate_update(&self, object: &Object, old: &Object, _: Part<'_>) -> FieldErrors {
        let mut errors: FieldErrors =
            immutable(FieldPath::root("type"), object.get("type"), old.get("type")).into_iter().collect();
        errors.extend(frozen(object, old, &["data"]));
        errors.extend(self.validate(object));
        errors
    }

    fn warnings(&self, object: &Object, _: Option<&Object>) -> Vec<String> {
        if object.str("type") != Some("kubernetes.io/tls") {
            return Vec::new();
        }
        let empty = Object::new();
        let data = object.object("data").unwrap_or(&empty);
        tls_pair::problem(&decoded(data, "tls.crt"), &decoded(data, "tls.key")).into_iter().collect()
    }
}

/// The text under a key; nothing is as good as bytes that are no text.
fn decoded(data: &Object, key: &str) -> String {
    let bytes = STANDARD.decode(data.str(key).unwrap_or_default()).unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}

/// The error that a key is missing or does not hold a JSON object. What it holds is not shown.
fn json_object(data: &Object, key: &str) -> Option<FieldError> {
    let path = FieldPath::root("data");
    let Some(text) = data.str(key) else { return Some(FieldError::required(path.key(key), "")) };
    let parsed = STANDARD.decode(text).map_err(|error| error.to_string()).and_then(|bytes| {
        let value = parse_json(&bytes).map_err(|error| error.to_string())?.value;
        match value {
            Value::Object(_) | Value::Null => Ok(()),
            other => Err(format!(
                "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                other.type_name()
            )),
        }
    });
    parsed.err().map(|detail| FieldError::invalid(path.key(key), "<secret contents redacted>", detail))
}
