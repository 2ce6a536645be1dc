//! Objects of every kind in every encoding: what JSON says, protobuf and CBOR say too, also where protobuf is made of the
//! text of an object and not of the object.

use revisor_object::{Object, Value};
use revisor_schema::{diagnose_cbor, read_cbor_type};

use super::resources::{all_resources, catalog};
use crate::{Choices, Generator};

/// An object that the input decides on and that fits its type is the same when it was written and read in protobuf and in
/// CBOR; and what was read from protobuf is written as the same bytes.
pub(super) fn round_trip(data: &[u8]) {
    let mut choices = Choices::of_bytes(data);
    let resource = choices.of(&all_resources()).clone();
    let (types, id) = resource.typed();
    let mut value = Value::Object(Generator::new(types, choices).object(id, &resource.kind, &resource.api_version));
    if resource.conform(&mut value).is_err() {
        return;
    }
    let Value::Object(mut object) = value else { return };
    object.remove("kind");
    object.remove("apiVersion");
    forget_types_of_templates(&mut object);

    let read_back = |message: &[u8]| {
        let mut read = match types.read_protobuf(id, message) {
            Ok(read) => read,
            Err(error) => panic!("{}: {error}: {}", resource.kind, Value::Object(object.clone()).to_json()),
        };
        if let Err(error) = resource.conform(&mut read) {
            panic!("{}: what was written does not fit: {error}", resource.kind);
        }
        let Value::Object(read) = read else { panic!("an object is read as one") };
        read
    };
    let message = types.write_protobuf(id, &object);
    let lying = resource.encode_as_it_is(&object);
    assert_eq!(types.protobuf_of_json(id, &lying), Some(message.clone()), "{}: made of its text", resource.kind);
    let read = read_back(&message);
    // From the first reading on: zero has no sign any more then.
    let message = types.write_protobuf(id, &read);
    assert_eq!(types.write_protobuf(id, &read_back(&message)), message, "{}: written again", resource.kind);
    let (want, got) = (told(&Value::Object(object.clone())), told(&Value::Object(read)));
    assert_eq!(got, want, "{} in protobuf", resource.kind);

    let written = types.write_cbor(Some(id), &object);
    let read = types.read_cbor(Some(id), &written).map(with_integers);
    assert_eq!(read, Ok(with_integers(Value::Object(object))), "{} in CBOR", resource.kind);
}

/// A value whose numbers are integers where they have no fraction: what is any JSON is read so.
fn with_integers(value: Value) -> Value {
    match value {
        Value::Raw(raw) => with_integers(raw.into_value()),
        Value::Float(number) if number.fract() == 0.0 && number.abs() < 9e15 => Value::Int(number as i64),
        Value::Array(items) => Value::Array(items.into_iter().map(with_integers).collect()),
        Value::Object(object) => {
            let members = object.iter().map(|(name, value)| (name, with_integers(value.clone())));
            Value::Object(members.collect())
        }
        other => other,
    }
}

/// Protobuf does not have what an object in an object says it is; the original loses it too, and sets it anew.
fn forget_types_of_templates(object: &mut Object) {
    let spec = object.get_mut("spec").and_then(Value::as_object_mut);
    let Some(Value::Array(templates)) = spec.and_then(|spec| spec.get_mut("volumeClaimTemplates")) else { return };
    for template in templates.iter_mut().filter_map(Value::as_object_mut) {
        template.remove("kind");
        template.remove("apiVersion");
    }
}

/// What an object tells: protobuf does not tell what is empty from what is not there, nor how a number is written.
fn told(value: &Value) -> Option<Value> {
    match value {
        Value::Raw(raw) => told(raw.value()),
        Value::Null | Value::Nothing | Value::Bool(false) => None,
        Value::Bool(true) => Some(Value::Bool(true)),
        Value::Int(number) => told(&Value::Float(*number as f64)),
        Value::Float(number) => Some(Value::Float(*number)).filter(|_| *number != 0.0),
        Value::String(text) => Some(Value::String(text.clone())).filter(|_| !matches!(text.as_str(), "" | "0" | "0s")),
        // The place of an element counts, whatever it tells.
        Value::Array(items) if items.is_empty() => None,
        Value::Array(items) => Some(Value::Array(items.iter().map(|item| told(item).unwrap_or_default()).collect())),
        Value::Object(object) => {
            let members: Object =
                object.iter().filter_map(|(name, value)| told(value).map(|value| (name, value))).collect();
            Some(Value::Object(members))
                .filter(|members| members.as_object().is_some_and(|members| !members.is_empty()))
        }
    }
}

/// What was read from CBOR is written and read as the same.
pub(super) fn cbor(data: &[u8]) {
    let catalog = catalog();
    let Some(resource) = catalog.resource("", "v1", "secrets") else { return };
    let (types, id) = resource.typed();
    let (claimed, _) = (read_cbor_type(data), diagnose_cbor(data));
    for id in [None, Some(id)] {
        let strictly = types.read_cbor_strictly(id, data).map(|read| read.value);
        assert_eq!(strictly, types.read_cbor(id, data), "whatever is unknown");
        assert!(claimed.is_ok() || id.is_none() || strictly.is_err(), "what does not tell its type is not of one");
        let Ok(Value::Object(object)) = types.read_cbor(id, data) else { continue };
        let mut fitted = Value::Object(object.clone());
        // Texts for bytes that are no base64 are not of the type.
        if id.is_some() && resource.conform(&mut fitted).is_err() {
            continue;
        }
        let object = if id.is_some() { fitted.as_object().cloned().unwrap_or_default() } else { object };
        let written = types.write_cbor(id, &object);
        match types.read_cbor(id, &written) {
            Ok(read) => assert_eq!(told(&read), told(&Value::Object(object))),
            Err(error) => panic!("{error}: {}", Value::Object(object).to_json()),
        }
    }
}
