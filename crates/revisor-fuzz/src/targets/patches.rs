//! Patches: the first line of the input is the object, the rest the patch.

use revisor_merge::{JsonPatch, merge_patch};
use revisor_object::{Value, parse_json};

use super::resources::some_resources;

/// The object and the patch, where the input holds two.
fn split(data: &[u8]) -> Option<(Value, Value)> {
    let at = data.iter().position(|byte| *byte == b'\n')?;
    let read = |text: &[u8]| parse_json(text).ok().map(|parsed| parsed.value);
    Some((read(&data[..at])?, read(&data[at + 1..])?))
}

/// What a patch makes can be read back: it does not nest too deeply, and its names are unique.
fn check_readable(value: &Value) {
    let text = value.to_json();
    match parse_json(text.as_bytes()) {
        Ok(parsed) => assert_eq!(parsed.value, *value, "{text}"),
        Err(error) => panic!("{error}: {text}"),
    }
}

/// A JSON patch applies or is refused, and what it makes can be read back.
pub(super) fn json(data: &[u8]) {
    let Some((mut object, patch)) = split(data) else { return };
    let Ok(patch) = JsonPatch::parse(patch) else { return };
    if patch.apply(&mut object).is_ok() {
        check_readable(&object);
    }
}

/// A merge patch that was applied changes nothing when it is applied again.
pub(super) fn merge(data: &[u8]) {
    let Some((mut object, patch)) = split(data) else { return };
    if merge_patch(&mut object, patch.clone()).is_err() {
        return;
    }
    check_readable(&object);
    let once = object.clone();
    if merge_patch(&mut object, patch).is_ok() {
        assert_eq!(object, once);
    }
}

/// A strategic merge patch applies or is refused, whatever the type, and what it makes can be read back.
pub(super) fn strategic(data: &[u8]) {
    let Some((object, patch)) = split(data) else { return };
    for resource in some_resources(data) {
        let mut object = object.clone();
        if resource.strategic_merge_patch(&mut object, patch.clone()).is_ok() {
            check_readable(&object);
        }
    }
}
