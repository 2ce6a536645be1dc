//! Messages of protobuf: fields, each a number and a way to write it.
//!
//! What has no field of its own, extensions, is written as text that reads as YAML.

use serde_json::Value;

/// A message under way.
#[derive(Debug, Default)]
pub(super) struct Message(pub(super) Vec<u8>);

impl Message {
    pub(super) fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    pub(super) fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn message(&mut self, field: u32, message: &Message) {
        self.bytes(field, &message.0);
    }

    pub(super) fn text(&mut self, field: u32, value: &Value) {
        if let Some(text) = value.as_str().filter(|text| !text.is_empty()) {
            self.bytes(field, text.as_bytes());
        }
    }

    pub(super) fn texts(&mut self, field: u32, values: &Value) {
        for value in items(values) {
            self.text(field, value);
        }
    }

    pub(super) fn flag(&mut self, field: u32, value: &Value) {
        if value == true {
            self.chosen_flag(field, true);
        }
    }

    pub(super) fn integer(&mut self, field: u32, value: &Value) {
        if let Some(number) = value.as_i64().filter(|number| *number != 0) {
            self.varint(u64::from(field) << 3);
            self.varint(number as u64);
        }
    }

    pub(super) fn double(&mut self, field: u32, value: &Value) {
        if let Some(number) = value.as_f64().filter(|number| *number != 0.0) {
            self.chosen_double(field, number);
        }
    }

    /// A flag that is one of several alternatives: it is written also if it says no.
    pub(super) fn chosen_flag(&mut self, field: u32, flag: bool) {
        self.varint(u64::from(field) << 3);
        self.varint(u64::from(flag));
    }

    /// A number that is one of several alternatives: it is written also if it is 0.
    pub(super) fn chosen_double(&mut self, field: u32, number: f64) {
        self.varint(u64::from(field) << 3 | 1);
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// Extensions: everything whose name says so.
    pub(super) fn extensions(&mut self, field: u32, of: &Value) {
        for (name, value) in of.as_object().into_iter().flatten().filter(|(name, _)| name.starts_with("x-")) {
            self.message(field, &entry(name, &any(value)));
        }
    }
}

pub(super) fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Any value: JSON reads as YAML.
pub(super) fn any(value: &Value) -> Message {
    let mut message = Message::default();
    message.bytes(2, format!("{value}\n").as_bytes());
    message
}

pub(super) fn entry(name: &str, value: &Message) -> Message {
    let mut message = Message::default();
    message.bytes(1, name.as_bytes());
    message.message(2, value);
    message
}

/// A message whose field has an entry for each member.
pub(super) fn named(field: u32, members: &Value, write: impl Fn(&Value) -> Message) -> Message {
    let mut message = Message::default();
    for (name, value) in members.as_object().into_iter().flatten() {
        message.message(field, &entry(name, &write(value)));
    }
    message
}

#[cfg(test)]
pub(super) mod reading;
