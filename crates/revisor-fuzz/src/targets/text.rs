//! JSON, YAML and protobuf, in which objects arrive.

use revisor_object::{parse_json, parse_yaml};

use super::resources::some_resources;

/// What was read and written again reads as the same value, and names no member twice.
pub(super) fn json(data: &[u8]) {
    let Ok(first) = parse_json(data) else { return };
    let text = first.value.to_json();
    match parse_json(text.as_bytes()) {
        Ok(second) => {
            assert_eq!(first.value, second.value, "{text}");
            assert!(second.duplicates.is_empty(), "{text}");
        }
        Err(error) => panic!("{error}: {text}"),
    }
}

/// What was read from YAML can be written as JSON.
pub(super) fn yaml(data: &[u8]) {
    let Ok(first) = parse_yaml(data) else { return };
    let text = first.value.to_json();
    if let Err(error) = parse_json(text.as_bytes()) {
        panic!("{error}: {text}");
    }
}

/// What was read from protobuf and fits its type can be written, and then reads as JSON.
pub(super) fn protobuf(data: &[u8]) {
    for resource in some_resources(data) {
        let Ok(mut value) = resource.read_protobuf(data) else { continue };
        if resource.conform(&mut value).is_err() {
            continue;
        }
        let text = value.to_json();
        if let Err(error) = parse_json(text.as_bytes()) {
            panic!("{error}: {text}");
        }
    }
}
