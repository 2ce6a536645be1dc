//! Writing messages, from the back to the front: what a message holds is written before its length, so nothing is
//! measured and nothing is moved.

use base64::Engine;
use revisor_object::{Object, Value, bytes_of_text, push_json_value};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::layout::{Content, Layout};
use super::wire::{BYTES, FIXED64, VARINT};
use crate::conform::BASE64;
use crate::{Alternative, Field, Presence, Shape, StructId, Types};

impl Types {
    /// The message of an object that conforms to the type `id`.
    pub fn write_protobuf(&self, id: StructId, object: &Object) -> Vec<u8> {
        let mut out = Backwards::with_capacity(1024);
        Writer { types: self }.structure(id, object, &mut out);
        out.finish()
    }
}

struct Writer<'t> {
    types: &'t Types,
}

impl Writer<'_> {
    fn structure(&self, id: StructId, object: &Object, out: &mut Backwards) {
        self.layout(self.types.layout(id), &self.types.get(id).fields, object, out);
    }

    fn layout(&self, layout: &Layout, fields: &[Field], object: &Object, out: &mut Backwards) {
        for member in layout.members.iter().rev() {
            match &member.content {
                Content::Field(at) => self.field(member.number, &fields[*at], object, out),
                Content::Embedded(layout) => {
                    out.message(member.number, |out| self.layout(layout, fields, object, out));
                }
            }
        }
    }

    fn field(&self, number: u32, field: &Field, object: &Object, out: &mut Backwards) {
        let value = object.get(&field.name).filter(|value| !value.is_null());
        match (&field.shape, value) {
            (Shape::List(element), Some(Value::Array(items))) => {
                for item in items.iter().rev() {
                    self.value(number, element, item, out);
                }
            }
            (Shape::Map(element), Some(Value::Object(entries))) => {
                // Members are sorted by their bytes.
                for (name, value) in entries.iter().rev() {
                    out.message(number, |out| {
                        self.value(2, element, value, out);
                        out.text(1, name);
                    });
                }
            }
            // Empty lists, maps and bytes are never written.
            (Shape::List(_) | Shape::Map(_), _) => {}
            (Shape::Bytes, Some(Value::String(text))) if text.is_empty() && field.presence != Presence::Given => {}
            (Shape::Bytes, None) => {}
            (shape, Some(value)) => self.value(number, shape, value, out),
            // What is no pointer has a value always.
            (shape, None) if matches!(field.presence, Presence::Always | Presence::NonZero) => {
                self.value(number, shape, &Value::Null, out);
            }
            (_, None) => {}
        }
    }

    /// A value with the number of its field before it. `null` is the zero value of its shape.
    fn value(&self, number: u32, shape: &Shape, value: &Value, out: &mut Backwards) {
        match shape {
            Shape::String => out.text(number, value.as_str().unwrap_or_default()),
            Shape::Bool => out.number(number, u64::from(value.as_bool().unwrap_or_default())),
            Shape::Int32 | Shape::Int64 => out.number(number, integer(value) as u64),
            Shape::Double => {
                let float = match value {
                    Value::Float(float) => *float,
                    other => integer(other) as f64,
                };
                out.push(&float.to_bits().to_le_bytes());
                out.tag(number, FIXED64);
            }
            Shape::Bytes => {
                let bytes = BASE64.decode(value.as_str().unwrap_or_default()).unwrap_or_default();
                out.bytes(number, &bytes);
            }
            Shape::Time | Shape::MicroTime => out.message(number, |out| time(shape, value, out)),
            Shape::Duration => {
                let duration: Option<revisor_object::Duration> = value.as_str().and_then(|text| text.parse().ok());
                let nanos = duration.map_or(0, revisor_object::Duration::nanos);
                out.message(number, |out| out.number(1, nanos as u64));
            }
            Shape::Quantity => {
                let text = value.as_str().unwrap_or("0");
                out.message(number, |out| out.text(1, text));
            }
            Shape::IntOrString => out.message(number, |out| {
                out.text(3, value.as_str().unwrap_or_default());
                out.number(2, integer(value) as u64);
                out.number(1, u64::from(value.as_str().is_some()));
            }),
            Shape::Any | Shape::Raw => out.message(number, |out| match value {
                Value::Null => {}
                Value::Raw(raw) => out.text(1, raw.text()),
                value => {
                    let mut text = Vec::new();
                    push_json_value(value, &mut text);
                    out.bytes(1, &text);
                }
            }),
            Shape::Struct(id) => out.message(number, |out| match value {
                Value::Object(object) => self.structure(*id, object, out),
                _ => self.structure(*id, &Object::new(), out),
            }),
            Shape::Either(alternative, id) => out.message(number, |out| self.either(*alternative, *id, value, out)),
            // A list inside a map or a list is a message with the elements in its first field.
            Shape::List(element) => out.message(number, |out| {
                for item in value.as_array().unwrap_or_default().iter().rev() {
                    self.value(1, element, item, out);
                }
            }),
            // No API type has lists of maps or maps of maps.
            Shape::Map(_) => out.message(number, |_| {}),
        }
    }

    /// An object of a type or what may stand in its place is a message with a field for each of them.
    fn either(&self, alternative: Alternative, id: StructId, value: &Value, out: &mut Backwards) {
        let of_type = Shape::Struct(id);
        match (alternative, value) {
            (Alternative::Bool, Value::Object(_)) => {
                self.value(2, &of_type, value, out);
                out.number(1, 1);
            }
            (Alternative::Bool, _) => out.number(1, u64::from(value.as_bool().unwrap_or_default())),
            (_, Value::Object(_)) => self.value(1, &of_type, value, out),
            (_, Value::Array(items)) => {
                let element = if alternative == Alternative::List { &of_type } else { &Shape::String };
                for item in items.iter().rev() {
                    self.value(2, element, item, out);
                }
            }
            _ => {}
        }
    }
}

fn integer(value: &Value) -> i64 {
    match value {
        Value::Int(number) => *number,
        Value::Float(number) => *number as i64,
        _ => 0,
    }
}

/// A time is seconds and nanoseconds since 1970, both always written; no time at all is neither.
fn time(shape: &Shape, value: &Value, out: &mut Backwards) {
    let Some(time) = value.as_str().and_then(|text| OffsetDateTime::parse(text, &Rfc3339).ok()) else { return };
    let nanos = if *shape == Shape::MicroTime { time.microsecond() * 1000 } else { 0 };
    out.number(2, u64::from(nanos));
    out.number(1, time.unix_timestamp() as u64);
}

/// Bytes that are written from the back to the front.
struct Backwards {
    buffer: Vec<u8>,
    /// Where what is written begins.
    at: usize,
}

impl Backwards {
    fn with_capacity(bytes: usize) -> Backwards {
        Backwards { buffer: vec![0; bytes], at: bytes }
    }

    fn written(&self) -> usize {
        self.buffer.len() - self.at
    }

    #[inline]
    fn push(&mut self, bytes: &[u8]) {
        if self.at < bytes.len() {
            self.grow(bytes.len());
        }
        self.at -= bytes.len();
        self.buffer[self.at..self.at + bytes.len()].copy_from_slice(bytes);
    }

    #[cold]
    fn grow(&mut self, bytes: usize) {
        let room = (self.buffer.len() * 2).max(self.written() + bytes);
        let mut larger = vec![0; room];
        let at = room - self.written();
        larger[at..].copy_from_slice(&self.buffer[self.at..]);
        *self = Backwards { buffer: larger, at };
    }

    fn varint(&mut self, mut number: u64) {
        if number < 0x80 {
            return self.push(&[number as u8]);
        }
        let mut bytes = [0; 10];
        let mut length = 0;
        while number >= 0x80 {
            bytes[length] = number as u8 | 0x80;
            number >>= 7;
            length += 1;
        }
        bytes[length] = number as u8;
        self.push(&bytes[..=length]);
    }

    fn tag(&mut self, number: u32, wire_type: u8) {
        self.varint(u64::from(number) << 3 | u64::from(wire_type));
    }

    fn number(&mut self, field: u32, number: u64) {
        self.varint(number);
        self.tag(field, VARINT);
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.push(bytes);
        self.varint(bytes.len() as u64);
        self.tag(field, BYTES);
    }

    fn text(&mut self, field: u32, text: &str) {
        self.bytes(field, &bytes_of_text(text));
    }

    /// A message, of which `write` writes what is in it.
    fn message(&mut self, field: u32, write: impl FnOnce(&mut Backwards)) {
        let before = self.written();
        write(self);
        self.varint((self.written() - before) as u64);
        self.tag(field, BYTES);
    }

    fn finish(mut self) -> Vec<u8> {
        self.buffer.drain(..self.at);
        self.buffer
    }
}
