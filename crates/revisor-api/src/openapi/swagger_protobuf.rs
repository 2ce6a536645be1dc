//! Swagger 2 in protobuf, as kubectl asks for it: it checks files with lists against that.
//!
//! The messages are those of the public description of this encoding (`openapi.v2.Document` of gnostic); a field is a
//! number and a way to write it. What has no field of its own, extensions, is written as text that reads as YAML.

use http::HeaderMap;
use http::header::ACCEPT;
use serde_json::Value;

/// What the answer is called.
pub(super) const MEDIA_TYPE: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// What clients ask for. The sign in it is not allowed there, which is why the answer is called otherwise.
const ASKED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// How the document can be written.
pub(super) const WRITTEN: &[&str] = &["application/json", MEDIA_TYPE];

/// How the document is to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SwaggerEncoding {
    pub(super) is_protobuf: bool,
}

/// The first of what the client accepts that is on offer.
pub(super) fn negotiate(headers: &HeaderMap) -> Option<SwaggerEncoding> {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if accept.is_empty() {
        return Some(SwaggerEncoding { is_protobuf: false });
    }
    accept.split(',').find_map(|clause| match clause.split(';').next().unwrap_or_default().trim() {
        "application/json" | "application/*" | "*/*" => Some(SwaggerEncoding { is_protobuf: false }),
        ASKED | MEDIA_TYPE => Some(SwaggerEncoding { is_protobuf: true }),
        _ => None,
    })
}

/// Writes a document.
pub(super) fn encode(document: &Value) -> Vec<u8> {
    let mut message = Message::default();
    message.text(1, &document["swagger"]);
    let mut info = Message::default();
    info.text(1, &document["info"]["title"]);
    info.text(2, &document["info"]["version"]);
    message.message(2, &info);
    message.message(8, &named(2, &document["paths"], path_item));
    message.message(9, &named(1, &document["definitions"], schema));
    message.message(10, &named(1, &document["parameters"], parameter));
    for requirement in items(&document["security"]) {
        let scopes = |scopes: &Value| {
            let mut message = Message::default();
            message.texts(1, scopes);
            message
        };
        message.message(12, &named(1, requirement, scopes));
    }
    message.message(13, &named(1, &document["securityDefinitions"], security_definition));
    message.0
}

/// A message under way.
#[derive(Debug, Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn message(&mut self, field: u32, message: &Message) {
        self.bytes(field, &message.0);
    }

    fn text(&mut self, field: u32, value: &Value) {
        if let Some(text) = value.as_str().filter(|text| !text.is_empty()) {
            self.bytes(field, text.as_bytes());
        }
    }

    fn texts(&mut self, field: u32, values: &Value) {
        for value in items(values) {
            self.text(field, value);
        }
    }

    fn flag(&mut self, field: u32, value: &Value) {
        if value == true {
            self.varint(u64::from(field) << 3);
            self.varint(1);
        }
    }

    fn integer(&mut self, field: u32, value: &Value) {
        if let Some(number) = value.as_i64().filter(|number| *number != 0) {
            self.varint(u64::from(field) << 3);
            self.varint(number as u64);
        }
    }

    fn double(&mut self, field: u32, value: &Value) {
        if let Some(number) = value.as_f64().filter(|number| *number != 0.0) {
            self.varint(u64::from(field) << 3 | 1);
            self.0.extend_from_slice(&number.to_le_bytes());
        }
    }

    /// Extensions: everything whose name says so.
    fn extensions(&mut self, field: u32, of: &Value) {
        for (name, value) in of.as_object().into_iter().flatten().filter(|(name, _)| name.starts_with("x-")) {
            self.message(field, &entry(name, &any(value)));
        }
    }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Any value: JSON reads as YAML.
fn any(value: &Value) -> Message {
    let mut message = Message::default();
    message.bytes(2, format!("{value}\n").as_bytes());
    message
}

fn entry(name: &str, value: &Message) -> Message {
    let mut message = Message::default();
    message.bytes(1, name.as_bytes());
    message.message(2, value);
    message
}

/// A message whose field has an entry for each member.
fn named(field: u32, members: &Value, write: impl Fn(&Value) -> Message) -> Message {
    let mut message = Message::default();
    for (name, value) in members.as_object().into_iter().flatten() {
        message.message(field, &entry(name, &write(value)));
    }
    message
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
    message.texts(19, &of["required"]);
    for value in items(&of["enum"]) {
        message.message(20, &any(value));
    }
    match &of["additionalProperties"] {
        Value::Bool(is_allowed) => {
            let mut item = Message::default();
            // An alternative is written also if it says no.
            item.varint(2 << 3);
            item.varint(u64::from(*is_allowed));
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
    message.extensions(31, of);
    message
}

#[cfg(test)]
mod tests;
