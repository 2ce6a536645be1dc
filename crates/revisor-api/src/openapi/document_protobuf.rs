//! OpenAPI 3 in protobuf, as some clients ask for it.
//!
//! The messages are those of the public description of this encoding (`openapi.v3.Document` of gnostic).

use serde_json::Value;

use super::wire::{Message, any, items, named};
use super::{Encoding, JSON};

/// What the answer is called.
pub(super) const MEDIA_TYPE: &str = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";

/// What clients can ask for. The sign in the last is not allowed there, which is why the answer is called otherwise.
pub(super) const OFFERED: &[(&str, Encoding)] = &[
    (JSON, Encoding::Json),
    (MEDIA_TYPE, Encoding::Protobuf),
    ("application/com.github.proto-openapi.spec.v3@v1.0+protobuf", Encoding::Protobuf),
];

/// Of the alternatives that many fields have, something said here comes first and something said elsewhere second.
const HERE: u32 = 1;
const ELSEWHERE: u32 = 2;

/// Writes a document.
pub(super) fn encode(document: &Value) -> Vec<u8> {
    let mut message = Message::default();
    message.text(1, &document["openapi"]);
    let mut info = Message::default();
    info.text(1, &document["info"]["title"]);
    info.text(6, &document["info"]["version"]);
    message.message(2, &info);
    message.message(4, &named(1, &document["paths"], path_item));
    let mut components = Message::default();
    let of = &document["components"];
    if of["schemas"].is_object() {
        components.message(1, &named(1, &of["schemas"], schema_or_reference));
    }
    if of["securitySchemes"].is_object() {
        components.message(7, &named(1, &of["securitySchemes"], |scheme| here(security_scheme(scheme))));
    }
    message.message(5, &components);
    message.0
}

fn here(content: Message) -> Message {
    let mut message = Message::default();
    message.message(HERE, &content);
    message
}

fn path_item(item: &Value) -> Message {
    let mut message = Message::default();
    for (field, method) in
        [(4, "get"), (5, "put"), (6, "post"), (7, "delete"), (8, "options"), (9, "head"), (10, "patch")]
    {
        if item[method].is_object() {
            message.message(field, &operation(&item[method]));
        }
    }
    for of in items(&item["parameters"]) {
        message.message(13, &here(parameter(of)));
    }
    message
}

fn operation(of: &Value) -> Message {
    let mut message = Message::default();
    message.texts(1, &of["tags"]);
    message.text(3, &of["description"]);
    message.text(5, &of["operationId"]);
    for of in items(&of["parameters"]) {
        message.message(6, &here(parameter(of)));
    }
    if of["requestBody"].is_object() {
        let mut body = Message::default();
        body.message(2, &named(1, &of["requestBody"]["content"], media_type));
        body.flag(3, &of["requestBody"]["required"]);
        message.message(7, &here(body));
    }
    message.message(8, &named(2, &of["responses"], |of| here(response(of))));
    message.extensions(13, of);
    message
}

fn parameter(of: &Value) -> Message {
    let mut message = Message::default();
    message.text(1, &of["name"]);
    message.text(2, &of["in"]);
    message.text(3, &of["description"]);
    message.flag(4, &of["required"]);
    message.message(10, &schema_or_reference(&of["schema"]));
    message
}

fn response(of: &Value) -> Message {
    let mut message = Message::default();
    message.text(1, &of["description"]);
    if of["content"].is_object() {
        message.message(3, &named(1, &of["content"], media_type));
    }
    message
}

fn media_type(of: &Value) -> Message {
    let mut message = Message::default();
    message.message(1, &schema_or_reference(&of["schema"]));
    message
}

fn security_scheme(of: &Value) -> Message {
    let mut message = Message::default();
    for (field, name) in [(1, "type"), (2, "description"), (3, "name"), (4, "in")] {
        message.text(field, &of[name]);
    }
    message
}

fn schema_or_reference(of: &Value) -> Message {
    if !of["$ref"].is_string() {
        return here(schema(of));
    }
    let mut reference = Message::default();
    reference.text(1, &of["$ref"]);
    let mut message = Message::default();
    message.message(ELSEWHERE, &reference);
    message
}

fn schema(of: &Value) -> Message {
    let mut message = Message::default();
    for (field, name) in [(1, "nullable"), (12, "exclusiveMaximum"), (14, "exclusiveMinimum"), (20, "uniqueItems")] {
        message.flag(field, &of[name]);
    }
    if of["externalDocs"].is_object() {
        let mut documents = Message::default();
        documents.text(1, &of["externalDocs"]["description"]);
        documents.text(2, &of["externalDocs"]["url"]);
        message.message(6, &documents);
    }
    if let Some(example) = of.get("example") {
        message.message(7, &any(example));
    }
    for (field, name) in [(9, "title"), (17, "pattern"), (25, "type"), (34, "description"), (35, "format")] {
        message.text(field, &of[name]);
    }
    for (field, name) in [(10, "multipleOf"), (11, "maximum"), (13, "minimum")] {
        message.double(field, &of[name]);
    }
    for (field, name) in [
        (15, "maxLength"),
        (16, "minLength"),
        (18, "maxItems"),
        (19, "minItems"),
        (21, "maxProperties"),
        (22, "minProperties"),
    ] {
        message.integer(field, &of[name]);
    }
    message.texts(23, &of["required"]);
    for value in items(&of["enum"]) {
        message.message(24, &any(value));
    }
    for (field, name) in [(26, "allOf"), (27, "oneOf"), (28, "anyOf")] {
        for alternative in items(&of[name]) {
            message.message(field, &schema_or_reference(alternative));
        }
    }
    if of["not"].is_object() {
        message.message(29, &schema(&of["not"]));
    }
    if of["items"].is_object() {
        message.message(30, &here(schema_or_reference(&of["items"])));
    }
    if of["properties"].is_object() {
        message.message(31, &named(1, &of["properties"], schema_or_reference));
    }
    match &of["additionalProperties"] {
        Value::Bool(is_allowed) => {
            let mut item = Message::default();
            item.chosen_flag(2, *is_allowed);
            message.message(32, &item);
        }
        members @ Value::Object(_) => message.message(32, &here(schema_or_reference(members))),
        _ => {}
    }
    if let Some(default) = of.get("default") {
        message.message(33, &default_value(default));
    }
    message.extensions(36, of);
    message
}

/// A default that is no scalar is known to be there, but not what it is.
fn default_value(of: &Value) -> Message {
    let mut message = Message::default();
    match of {
        Value::Bool(flag) => message.chosen_flag(2, *flag),
        Value::String(text) => message.bytes(3, text.as_bytes()),
        Value::Number(number) => message.chosen_double(1, number.as_f64().unwrap_or_default()),
        _ => {}
    }
    message
}

#[cfg(test)]
mod tests;
