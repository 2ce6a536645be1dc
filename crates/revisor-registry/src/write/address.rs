//! Where an object to be written belongs, and which one and which version of it the writer means: what it says of
//! itself must agree with its address and with what is there.

use revisor_catalog::Resource;
use revisor_object::{Object, Value};

use super::Place;
use crate::RegistryError;

/// The namespace of an object is that of its address. It may be left out, but not be another; what has no namespace
/// loses the one that it was sent with (upstream: `EnsureObjectNamespaceMatchesRequestNamespace`).
pub(crate) fn match_namespace(
    resource: &Resource,
    metadata: &mut Object,
    namespace: Option<&str>,
) -> Result<(), RegistryError> {
    if !resource.namespaced {
        metadata.remove("namespace");
        return Ok(());
    }
    let namespace = namespace.unwrap_or_default();
    match metadata.str("namespace").unwrap_or_default() {
        "" => {
            metadata.insert("namespace", namespace);
        }
        same if same == namespace => {}
        _ => {
            let message = "the namespace of the provided object does not match the namespace sent on the request";
            return Err(RegistryError::BadRequest(message.to_owned()));
        }
    }
    Ok(())
}

/// The name of an object is that of its address.
pub(crate) fn check_address(metadata: &Object, name: &str) -> Result<(), RegistryError> {
    match metadata.str("name").unwrap_or_default() {
        same if same == name => Ok(()),
        "" => Err(RegistryError::BadRequest(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        ))),
        other => Err(RegistryError::BadRequest(format!(
            "the name of the object ({other}) does not match the name on the URL ({name})"
        ))),
    }
}

/// Why an object is not the one that the writer means, if it names one and that is another.
pub(crate) fn other_uid(uid: &str, current: &Object) -> Option<String> {
    let current_uid = current.at(&["metadata", "uid"]).and_then(Value::as_str).unwrap_or_default();
    (!uid.is_empty() && uid != current_uid)
        .then(|| format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {current_uid}"))
}

/// How the original says that what is stored is not what was expected. Who does not write it sees the key without what
/// the store puts before it.
pub(crate) fn unlike_stored(place: Place<'_>, dry_run: bool, why: &str) -> String {
    let key = place.resource.storage().key(place.namespace, place.name.unwrap_or_default());
    let key = if dry_run { key.trim_start_matches("/registry") } else { &key };
    format!("StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {why}")
}

/// The version that an object to be written names; `None` if it names none.
pub(crate) fn named_version(metadata: &Object) -> Result<Option<&str>, RegistryError> {
    let version = metadata.str("resourceVersion").unwrap_or_default();
    match version {
        "" | "0" => Ok(None),
        _ if version.bytes().all(|byte| byte.is_ascii_digit()) => Ok(Some(version)),
        // DIFFERENCE: the original answers 500.
        _ => Err(RegistryError::BadRequest(crate::read_plan::invalid_version(version, "invalid syntax"))),
    }
}
