//! Swagger 2 in protobuf, as kubectl asks for it: it checks files with lists against that.
//!
//! The messages are those of the public description of this encoding (`openapi.v2.Document` of gnostic); a field is a
//! number and a way to write it.

use serde_json::Value;

use super::wire::{Message, any, entry, items, named};
use super::{Encoding, JSON};

/// What the answer is called.
pub(super) const MEDIA_TYPE: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// What clients can ask for. The sign in the last is not allowed there, which is why the answer is called otherwise.
pub(super) const OFFERED: &[(&str, Encoding)] = &[
    (JSON, Encoding::Json),
    (MEDIA_TYPE, Encoding::Protobuf),
    ("application/com.github.proto-openapi.spec.v2@v1.0+protobuf", Encoding::Protobuf),
];

/// Writes a document whose large parts are written already: entries of paths and of definitions.
pub(super) fn encode(head: &Value, paths: &[u8], definitions: &[u8]) -> Vec<u8> {
    let mut message = Message::default();
    message.text(1, &head["swagger"]);
    let mut info = Message::default();
    info.text(1, &head["info"]["title"]);
    info.text(2, &head["info"]["version"]);
    message.message(2, &info);
    message.bytes(8, paths);
    message.bytes(9, definitions);
    message.message(10, &named(1, &head["parameters"], parameter));
    for requirement in items(&head["security"]) {
        let scopes = |scopes: &Value| {
            let mut message = Message::default();
            message.texts(1, scopes);
            message
        };
        message.message(12, &named(1, requirement, scopes));
    }
    message.message(13, &named(1, &head["securityDefinitions"], security_definition));
    message.0
}

/// The entries of these paths.
pub(super) fn path_entries(paths: &Value) -> Vec<u8> {
    named(2, paths, path_item).0
}

/// The entry of a definition.
pub(super) fn definition_entry(name: &str, of: &Value) -> Vec<u8> {
    let mut message = Message::default();
    message.message(1, &entry(name, &schema(of)));
    message.0
}

fn path_item(item: &Value) -> Message {
    let mut message = Message::default();
    for (field, method) in
        [(2, "get"), (3, "put"), (4, "post"), (5, "delete"), (6, "options"), (7, "head"), (8, "patch")]
    {
        if item[method].is_object() {
            message.message(field, &operation(&item[method]));
        }
    }
    for parameter in items(&item["parameters"]) {
        message.message(9, &parameters_item(parameter));
    }
    message
}

fn operation(operation: &Value) -> Message {
    let mut message = Message::default();
    message.texts(1, &operation["tags"]);
    message.text(3, &operation["description"]);
    message.text(5, &operation["operationId"]);
    message.texts(6, &operation["produces"]);
    message.texts(7, &operation["consumes"]);
    for parameter in items(&operation["parameters"]) {
        message.message(8, &parameters_item(parameter));
    }
    message.message(9, &named(1, &operation["responses"], response));
    message.texts(10, &operation["schemes"]);
    message.extensions(13, operation);
    message
}

fn response(response: &Value) -> Message {
    let mut content = Message::default();
    content.text(1, &response["description"]);
    if response["schema"].is_object() {
        let mut of = Message::default();
        of.message(1, &schema(&response["schema"]));
        content.message(2, &of);
    }
    let mut message = Message::default();
    message.message(1, &content);
    message
}

fn parameters_item(item: &Value) -> Message {
    let mut message = Message::default();
    if item["$ref"].is_string() {
        let mut reference = Message::default();
        reference.text(1, &item["$ref"]);
        message.message(2, &reference);
    } else {
        message.message(1, &parameter(item));
    }
    message
}

fn parameter(parameter: &Value) -> Message {
    let mut message = Message::default();
    let mut content = Message::default();
    if parameter["in"] == "body" {
        content.text(1, &parameter["description"]);
        content.text(2, &parameter["name"]);
        content.text(3, &parameter["in"]);
        content.flag(4, &parameter["required"]);
        content.message(5, &schema(&parameter["schema"]));
        message.message(1, &content);
        return message;
    }
    // Parameters of the query and of the path differ in their numbers from one of their fields on.
    let (kind, shift) = if parameter["in"] == "query" { (3, 1) } else { (4, 0) };
    content.flag(1, &parameter["required"]);
    content.text(2, &parameter["in"]);
    content.text(3, &parameter["description"]);
    content.text(4, &parameter["name"]);
    content.text(5 + shift, &parameter["type"]);
    content.flag(19 + shift, &parameter["uniqueItems"]);
    let mut alternative = Message::default();
    alternative.message(kind, &content);
    message.message(2, &alternative);
    message
}

fn security_definition(definition: &Value) -> Message {
    let mut key = Message::default();
    key.text(1, &definition["type"]);
    key.text(2, &definition["name"]);
    key.text(3, &definition["in"]);
    key.text(4, &definition["description"]);
    let mut message = Message::default();
    message.message(2, &key);
    message
}

fn schema(of: &Value) -> Message {
    let mut message = Message::default();
    for (field, name) in [(1, "$ref"), (2, "format"), (3, "title"), (4, "description"), (13, "pattern")] {
        message.text(field, &of[name]);
    }
    for (field, name) in [(6, "multipleOf"), (7, "maximum"), (9, "minimum")] {
        message.double(field, &of[name]);
    }
    for (field, name) in [(8, "exclusiveMaximum"), (10, "exclusiveMinimum"), (16, "uniqueItems")] {
        message.flag(field, &of[name]);
    }
    for (field, name) in [
        (11, "maxLength"),
        (12, "minLength"),
        (14, "maxItems"),
        (15, "minItems"),
        (17, "maxProperties"),
        (18, "minProperties"),
    ] {
        message.integer(field, &of[name]);
    }
    if let Some(default) = of.get("default") {
        message.message(5, &any(default));
    }
    message.texts(19, &of["required"]);
    for value in items(&of["enum"]) {
        message.message(20, &any(value));
    }
    match &of["additionalProperties"] {
        Value::Bool(is_allowed) => {
            let mut item = Message::default();
            item.chosen_flag(2, *is_allowed);
            message.message(21, &item);
        }
        members @ Value::Object(_) => {
            let mut item = Message::default();
            item.message(1, &schema(members));
            message.message(21, &item);
        }
        _ => {}
    }
    if of["type"].is_string() {
        let mut kind = Message::default();
        kind.text(1, &of["type"]);
        message.message(22, &kind);
    }
    if of["items"].is_object() {
        let mut elements = Message::default();
        elements.message(1, &schema(&of["items"]));
        message.message(23, &elements);
    }
    if of["properties"].is_object() {
        message.message(25, &named(1, &of["properties"], schema));
    }
    if of["externalDocs"].is_object() {
        let mut documents = Message::default();
        documents.text(1, &of["externalDocs"]["description"]);
        documents.text(2, &of["externalDocs"]["url"]);
        message.message(29, &documents);
    }
    if let Some(example) = of.get("example") {
        message.message(30, &any(example));
    }
    message.extensions(31, of);
    message
}

#[cfg(test)]
mod tests;
