//! Writing messages, from the back to the front: what a message holds is written before its length, so nothing is
//! measured and nothing is moved.

use std::borrow::Cow;

use base64::Engine;
use revisor_object::{Object, bytes_of_text, parse_json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::layout::{Content, Layout};
use super::outline::Outline;
use super::source::{Source, Tree};
use super::wire::{BYTES, FIXED64, VARINT};
use crate::conform::BASE64;
use crate::fields::Fields;
use crate::timestamp::canonical_seconds;
use crate::{Alternative, Field, Presence, Shape, StructId, Types};

impl Types {
    /// The message of an object that conforms to the type `id`.
    pub fn write_protobuf(&self, id: StructId, object: &Object) -> Vec<u8> {
        Writer { types: self, source: Tree::new() }.message(USUAL_MESSAGE, |writer, out| {
            let of = self.get(id);
            writer.structure(&of.fields, self.layout(id), |values| of.fields.gather(object, values), out);
        })
    }

    /// The message of an object of the type `id` that lies there as JSON, most often as it is stored; nothing if it is no
    /// JSON of an object.
    pub fn protobuf_of_json(&self, id: StructId, json: &[u8]) -> Option<Vec<u8>> {
        self.protobuf_of_canonical(id, json).or_else(|| {
            let mut value = parse_json(json).ok()?.value;
            self.keep_raw(id, &mut value, json);
            value.as_object().map(|object| self.write_protobuf(id, object))
        })
    }

    /// The same, if it is canonical.
    pub(super) fn protobuf_of_canonical(&self, id: StructId, json: &[u8]) -> Option<Vec<u8>> {
        let (outline, root) = Outline::of(self, id, std::str::from_utf8(json).ok()?)?;
        let writer = Writer { types: self, source: outline };
        // A message has no names, and so is shorter than its JSON as a rule.
        Some(writer.message(json.len(), |writer, out| writer.structure_of(id, Some(root), out)))
    }
}

/// The room that a message gets of which nothing is known yet.
const USUAL_MESSAGE: usize = 1024;

/// Writes values of a source. `None` is the zero value of whatever it stands for.
struct Writer<'t, S> {
    types: &'t Types,
    source: S,
}

impl<S: Source> Writer<'_, S> {
    /// A message of about so many bytes.
    fn message(&self, bytes: usize, write: impl FnOnce(&Self, &mut Backwards)) -> Vec<u8> {
        let mut out = Backwards::with_capacity(bytes);
        write(self, &mut out);
        out.finish()
    }

    fn structure_of(&self, id: StructId, node: Option<S::Node>, out: &mut Backwards) {
        let fields = &self.types.get(id).fields;
        let gather = |values: &mut [Option<S::Node>]| {
            if let Some(node) = node {
                self.source.gather(node, fields, values);
            }
        };
        self.structure(fields, self.types.layout(id), gather, out);
    }

    fn structure(
        &self,
        fields: &Fields,
        layout: &Layout,
        gather: impl FnOnce(&mut [Option<S::Node>]),
        out: &mut Backwards,
    ) {
        fields.with_room(|values| {
            gather(values);
            self.layout(layout, fields, values, out);
        });
    }

    fn layout(&self, layout: &Layout, fields: &[Field], values: &[Option<S::Node>], out: &mut Backwards) {
        for member in layout.members.iter().rev() {
            match &member.content {
                Content::Field(at) => self.field(member.number, &fields[*at], values[*at], out),
                Content::Embedded(layout) => {
                    out.message(member.number, |out| self.layout(layout, fields, values, out));
                }
            }
        }
    }

    fn field(&self, number: u32, field: &Field, value: Option<S::Node>, out: &mut Backwards) {
        let value = value.filter(|value| !self.source.is_null(*value));
        match (&field.shape, value) {
            // Empty lists, maps and bytes are never written.
            (Shape::List(element), value) => {
                for item in value.and_then(|list| self.source.items(list)).into_iter().flatten() {
                    self.item(number, element, item, out);
                }
            }
            (Shape::Map(element), value) => {
                for (name, value) in value.and_then(|map| self.source.members(map)).into_iter().flatten() {
                    out.message(number, |out| {
                        self.item(2, element, value, out);
                        out.text(1, name);
                    });
                }
            }
            (Shape::Bytes, Some(value))
                if field.presence != Presence::Given && self.source.text(value).is_some_and(|it| it.is_empty()) => {}
            (Shape::Bytes, None) => {}
            (shape, Some(value)) => self.value(number, shape, Some(value), out),
            // What is no pointer has a value always.
            (shape, None) if matches!(field.presence, Presence::Always | Presence::NonZero) => {
                self.value(number, shape, None, out);
            }
            (_, None) => {}
        }
    }

    fn item(&self, number: u32, shape: &Shape, item: S::Node, out: &mut Backwards) {
        self.value(number, shape, Some(item).filter(|item| !self.source.is_null(*item)), out);
    }

    /// A value with the number of its field before it.
    fn value(&self, number: u32, shape: &Shape, value: Option<S::Node>, out: &mut Backwards) {
        let source = &self.source;
        let text = || value.and_then(|value| source.text(value));
        let integer = || value.map_or(0, |value| source.integer(value));
        match shape {
            Shape::String => out.text(number, &text().unwrap_or_default()),
            Shape::Bool => out.number(number, u64::from(value.is_some_and(|value| source.truth(value)))),
            Shape::Int32 | Shape::Int64 => out.number(number, integer() as u64),
            Shape::Double => {
                let float = value.map_or(0.0, |value| source.float(value));
                out.push(&float.to_bits().to_le_bytes());
                out.tag(number, FIXED64);
            }
            Shape::Bytes => {
                let bytes = BASE64.decode(&*text().unwrap_or_default()).unwrap_or_default();
                out.bytes(number, &bytes);
            }
            Shape::Time | Shape::MicroTime => {
                out.message(number, |out| time(shape, &text().unwrap_or_default(), out));
            }
            Shape::Duration => {
                let duration: Option<revisor_object::Duration> = text().and_then(|text| text.parse().ok());
                let nanos = duration.map_or(0, revisor_object::Duration::nanos);
                out.message(number, |out| out.number(1, nanos as u64));
            }
            Shape::Quantity => {
                let text = text().unwrap_or(Cow::Borrowed("0"));
                out.message(number, |out| out.text(1, &text));
            }
            Shape::IntOrString => out.message(number, |out| {
                let text = text();
                out.text(3, text.as_deref().unwrap_or_default());
                out.number(2, integer() as u64);
                out.number(1, u64::from(text.is_some()));
            }),
            Shape::Any | Shape::Raw => out.message(number, |out| {
                if let Some(value) = value {
                    out.bytes(1, &source.json(value));
                }
            }),
            Shape::Struct(id) => out.message(number, |out| self.structure_of(*id, value, out)),
            Shape::Either(alternative, id) => out.message(number, |out| self.either(*alternative, *id, value, out)),
            // A list inside a map or a list is a message with the elements in its first field.
            Shape::List(element) => out.message(number, |out| {
                for item in value.and_then(|list| source.items(list)).into_iter().flatten() {
                    self.item(1, element, item, out);
                }
            }),
            // No API type has lists of maps or maps of maps.
            Shape::Map(_) => out.message(number, |_| {}),
        }
    }

    /// An object of a type or what may stand in its place is a message with a field for each of them.
    fn either(&self, alternative: Alternative, id: StructId, value: Option<S::Node>, out: &mut Backwards) {
        let of_type = Shape::Struct(id);
        let is_object = value.is_some_and(|value| self.source.is_object(value));
        match alternative {
            Alternative::Bool if is_object => {
                self.value(2, &of_type, value, out);
                out.number(1, 1);
            }
            Alternative::Bool => out.number(1, u64::from(value.is_some_and(|value| self.source.truth(value)))),
            _ if is_object => self.value(1, &of_type, value, out),
            _ => {
                let element = if alternative == Alternative::List { &of_type } else { &Shape::String };
                for item in value.and_then(|list| self.source.items(list)).into_iter().flatten() {
                    self.item(2, element, item, out);
                }
            }
        }
    }
}

/// A time is seconds and nanoseconds since 1970, both always written; no time at all is neither.
fn time(shape: &Shape, text: &str, out: &mut Backwards) {
    let (seconds, nanos) = match canonical_seconds(text) {
        Some(seconds) => (seconds, 0),
        None => {
            let Ok(time) = OffsetDateTime::parse(text, &Rfc3339) else { return };
            (time.unix_timestamp(), if *shape == Shape::MicroTime { time.microsecond() * 1000 } else { 0 })
        }
    };
    out.number(2, u64::from(nanos));
    out.number(1, seconds as u64);
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

    /// What was written, without the room that was not needed: messages are kept.
    fn finish(self) -> Vec<u8> {
        self.buffer[self.at..].to_vec()
    }
}
