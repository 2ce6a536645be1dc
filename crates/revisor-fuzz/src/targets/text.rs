//! JSON, YAML and protobuf, in which objects arrive.

use revisor_object::{Object, parse_json, parse_yaml};

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

/// What was read from protobuf and fits its type can be written, as JSON and as protobuf, and then reads as the same.
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
        let (types, id) = resource.typed();
        let nothing = Object::new();
        let written = types.write_protobuf(id, value.as_object().unwrap_or(&nothing));
        let Ok(mut again) = resource.read_protobuf(&written) else { panic!("what was written is not read: {text}") };
        if let Err(error) = resource.conform(&mut again) {
            panic!("what was written does not fit: {error}: {text}");
        }
        assert_eq!(types.write_protobuf(id, again.as_object().unwrap_or(&nothing)), written, "{text}");
    }
}
