//! Reading messages, as generously as the original: unknown fields are passed over, a message that comes in parts is one,
//! lists grow, of anything else the last one counts, and numbers of lists come packed or one by one.

use compact_str::CompactString;
use revisor_object::{Object, RawJson, Value, parse_json, text_of_bytes};
use smallvec::{SmallVec, smallvec};
use time::{Duration, OffsetDateTime};

use super::envelope::check;
use super::layout::{Content, Layout};
use super::wire::{BYTES, FIXED64, Tag, VARINT, Wire};
use super::{MAX_DEPTH, ProtobufError};
use crate::conform::encode_base64;
use crate::fields::Fields;
use crate::timestamp::{Precision, format_timestamp};
use crate::{Alternative, Shape, StructId, Types};

/// The parts of a message, in their order. Nearly all have one.
type Parts<'a> = SmallVec<[&'a [u8]; 1]>;

impl Types {
    /// Reads an object of type `id`. Like every value from outside it must still be made to
    /// [conform](Types::conform).
    pub fn read_protobuf(&self, id: StructId, bytes: &[u8]) -> Result<Value, ProtobufError> {
        if self.layout(id).members.is_empty() && !self.get(id).fields.is_empty() {
            return Err(ProtobufError::NoMessage(self.get(id).short_name().to_owned()));
        }
        self.read_message(id, &[bytes], 0)
    }

    fn read_message(&self, id: StructId, parts: &[&[u8]], depth: usize) -> Result<Value, ProtobufError> {
        if depth == MAX_DEPTH {
            return Err(ProtobufError::TooDeep);
        }
        let of = self.get(id);
        let mut reader = MessageReader {
            types: self,
            name: of.short_name(),
            fields: &of.fields,
            slots: of.fields.iter().map(|_| Slot::Empty).collect(),
            depth,
        };
        for part in parts {
            if let Err(error) = reader.read(self.layout(id), part) {
                return Err(reader.first_fault(error));
            }
        }
        reader.finish()
    }

    /// A value of a list or a map, which is never in parts, or one that is put together of its parts.
    fn read_parts(&self, shape: &Shape, parts: &[&[u8]], depth: usize) -> Result<Value, ProtobufError> {
        let last = parts.last().copied().unwrap_or_default();
        Ok(match shape {
            Shape::String => Value::from(&*text_of_bytes(last)),
            Shape::Bytes => Value::from(encode_base64(last)),
            Shape::Time => read_time(last, Precision::Seconds)?,
            Shape::MicroTime => read_time(last, Precision::Microseconds)?,
            Shape::Quantity => read_quantity(last)?,
            Shape::Duration => read_duration(last)?,
            Shape::Any => read_embedded_json(last)?,
            Shape::Raw => read_raw_json(parts)?,
            Shape::IntOrString => read_int_or_string(parts)?,
            Shape::Struct(id) => self.read_message(*id, parts, depth + 1)?,
            Shape::Either(alternative, id) => self.read_either(*alternative, *id, parts, depth + 1)?,
            // A list inside a map is a message with the elements in its first field.
            Shape::List(element) => {
                let mut items = Vec::new();
                for part in parts {
                    each_field(part, "List", |tag, wire| match tag.number {
                        1 => self.read_elements(element, "Items", tag, wire, depth + 1, &mut items),
                        _ => wire.skip(tag),
                    })?;
                }
                Value::Array(items)
            }
            // No API type has lists of maps or maps of maps, and numbers are not read so.
            Shape::Map(_) | Shape::Bool | Shape::Int32 | Shape::Int64 | Shape::Double => Value::Null,
        })
    }

    /// The elements of a list that are behind one tag: one, or several numbers.
    fn read_elements(
        &self,
        element: &Shape,
        name: &str,
        tag: Tag,
        wire: &mut Wire<'_>,
        depth: usize,
        items: &mut Vec<Value>,
    ) -> Result<(), ProtobufError> {
        match wire_type_of(element) {
            BYTES => {
                require(tag, BYTES, name)?;
                items.push(self.read_parts(element, &[wire.bytes()?], depth)?);
            }
            single if tag.wire_type == BYTES => {
                let mut packed = Wire(wire.bytes()?);
                while !packed.0.is_empty() {
                    items.push(read_number(element, single, &mut packed)?);
                }
            }
            single => {
                require(tag, single, name)?;
                items.push(read_number(element, single, wire)?);
            }
        }
        Ok(())
    }

    /// An entry of a map, of this length.
    fn read_pair(
        &self,
        element: &Shape,
        (entry, length): (Wire<'_>, usize),
        depth: usize,
    ) -> Result<(CompactString, Value), ProtobufError> {
        let (mut name, mut value) = (CompactString::default(), None);
        let mut wire = entry;
        let passed = |wire: &Wire<'_>| entry.0.len() - wire.0.len();
        // The generated code looks at the end of an entry before its fields only: what is in them may reach beyond it. It
        // passes over every tag of an entry that it does not know, also those that no message can have.
        while passed(&wire) < length {
            let Some(tag) = wire.tag()? else { break };
            match tag.number {
                // The generated code does not look at the wire types of entries.
                1 => name = text_of_bytes(wire.bytes()?).into(),
                2 => {
                    value = Some(match wire_type_of(element) {
                        BYTES => self.read_parts(element, &[wire.bytes()?], depth)?,
                        number => read_number(element, number, &mut wire)?,
                    });
                }
                _ => {
                    wire.skip(tag)?;
                    if passed(&wire) > length {
                        return Err(ProtobufError::Truncated);
                    }
                }
            }
        }
        let value = match value {
            Some(value) => value,
            None if wire_type_of(element) == BYTES => self.read_parts(element, &[&[]], depth)?,
            None => read_number(element, VARINT, &mut Wire(&[0]))?,
        };
        Ok((name, value))
    }

    /// An object of a type or what may stand in its place is a message with a field for each of them.
    fn read_either(
        &self,
        alternative: Alternative,
        id: StructId,
        parts: &[&[u8]],
        depth: usize,
    ) -> Result<Value, ProtobufError> {
        let object_at = if alternative == Alternative::Bool { 2 } else { 1 };
        let mut object: Parts<'_> = Parts::new();
        let (mut items, mut truth) = (Vec::new(), false);
        for part in parts {
            let mut wire = Wire(part);
            while let Some(tag) = wire.tag()? {
                check(tag, "JSONSchemaProps")?;
                match (tag.number, alternative) {
                    (at, _) if at == object_at => {
                        require(tag, BYTES, "Schema")?;
                        object.push(wire.bytes()?);
                    }
                    (1, _) => {
                        require(tag, VARINT, "Allows")?;
                        truth = wire.varint()? != 0;
                    }
                    (2, _) => {
                        require(tag, BYTES, "JSONSchemas")?;
                        let bytes = wire.bytes()?;
                        items.push(match alternative {
                            Alternative::List => self.read_message(id, &[bytes], depth)?,
                            _ => Value::from(&*text_of_bytes(bytes)),
                        });
                    }
                    _ => wire.skip(tag)?,
                }
            }
        }
        Ok(match alternative {
            _ if !items.is_empty() => Value::Array(items),
            _ if !object.is_empty() => self.read_message(id, &object, depth)?,
            Alternative::Bool => Value::Bool(truth),
            _ => Value::Null,
        })
    }
}

/// A message while it is read.
struct MessageReader<'t, 'a> {
    types: &'t Types,
    name: &'t str,
    fields: &'t Fields,
    /// What was read of each field.
    slots: Vec<Slot<'a>>,
    depth: usize,
}

/// What was read of a field so far.
enum Slot<'a> {
    Empty,
    One(Value),
    Parts(Parts<'a>),
    Many(Vec<Value>),
    Pairs(Vec<(CompactString, Value)>),
}

impl<'a> MessageReader<'_, 'a> {
    /// Reads the fields of a message, or of one that is embedded in it.
    fn read(&mut self, layout: &Layout, bytes: &'a [u8]) -> Result<(), ProtobufError> {
        let mut wire = Wire(bytes);
        while let Some(tag) = wire.tag()? {
            check(tag, self.name)?;
            match layout.member(tag.number) {
                None => wire.skip(tag)?,
                Some(Content::Embedded(layout)) => {
                    require(tag, BYTES, self.name)?;
                    let bytes = wire.bytes()?;
                    self.read(layout, bytes)?;
                }
                Some(Content::Field(at)) => self.read_field(*at, tag, &mut wire)?,
            }
        }
        Ok(())
    }

    fn read_field(&mut self, at: usize, tag: Tag, wire: &mut Wire<'a>) -> Result<(), ProtobufError> {
        let field = &self.fields[at];
        let slot = &mut self.slots[at];
        match &field.shape {
            Shape::List(element) => {
                if !matches!(slot, Slot::Many(_)) {
                    *slot = Slot::Many(Vec::new());
                }
                if let Slot::Many(items) = slot {
                    self.types.read_elements(element, &field.name, tag, wire, self.depth, items)?;
                }
            }
            Shape::Map(element) => {
                require(tag, BYTES, &field.name)?;
                let pair = self.types.read_pair(element, wire.entry()?, self.depth)?;
                match slot {
                    Slot::Pairs(pairs) => pairs.push(pair),
                    _ => *slot = Slot::Pairs(vec![pair]),
                }
            }
            shape => {
                let wire_type = wire_type_of(shape);
                require(tag, wire_type, &field.name)?;
                match (wire_type, &mut *slot) {
                    (BYTES, Slot::Parts(parts)) => parts.push(wire.bytes()?),
                    (BYTES, _) => *slot = Slot::Parts(smallvec![wire.bytes()?]),
                    (number, _) => *slot = Slot::One(read_number(shape, number, wire)?),
                }
            }
        }
        Ok(())
    }

    /// What is told of a message in which this is wrong: what was read before it is looked at when all its parts are
    /// there, and yet told of first.
    fn first_fault(self, error: ProtobufError) -> ProtobufError {
        self.finish().err().unwrap_or(error)
    }

    fn finish(mut self) -> Result<Value, ProtobufError> {
        let mut count = 0;
        // In the order of the fields first: of several faults that of the first field is told.
        for (field, slot) in self.fields.iter().zip(&mut self.slots) {
            let value = match std::mem::replace(slot, Slot::Empty) {
                Slot::Empty => continue,
                Slot::One(value) => value,
                Slot::Parts(parts) => self.types.read_parts(&field.shape, &parts, self.depth)?,
                Slot::Many(items) => Value::Array(items),
                Slot::Pairs(pairs) => Value::Object(Object::from_members(pairs)),
            };
            *slot = Slot::One(value);
            count += 1;
        }
        let mut members = Vec::with_capacity(count);
        for at in self.fields.places_by_name() {
            if let Slot::One(value) = std::mem::replace(&mut self.slots[at], Slot::Empty) {
                members.push((CompactString::from(&*self.fields[at].name), value));
            }
        }
        Ok(Value::Object(Object::from_sorted(members)))
    }
}

/// How values of a shape are written.
fn wire_type_of(shape: &Shape) -> u8 {
    match shape {
        Shape::Bool | Shape::Int32 | Shape::Int64 => VARINT,
        Shape::Double => FIXED64,
        _ => BYTES,
    }
}

fn read_number(shape: &Shape, wire_type: u8, wire: &mut Wire<'_>) -> Result<Value, ProtobufError> {
    if wire_type == FIXED64 {
        return Ok(Value::Float(f64::from_bits(wire.fixed64()?)));
    }
    let number = wire.varint()?;
    Ok(match shape {
        Shape::Bool => Value::Bool(number != 0),
        Shape::Int32 => Value::from(number as i32),
        Shape::Double => Value::Float(0.0),
        _ => Value::from(number as i64),
    })
}

/// Refuses a value of another wire type than its field, which is called as Go calls it.
fn require(tag: Tag, wire_type: u8, name: &str) -> Result<(), ProtobufError> {
    if tag.wire_type == wire_type {
        return Ok(());
    }
    Err(ProtobufError::WrongWireType { found: tag.wire_type, field: go_field(name) })
}

/// What names of fields begin with that Go writes in capitals.
const INITIALISMS: &[&str] = &[
    "api", "aws", "ca", "cidr", "csi", "dns", "fc", "fs", "gce", "grpc", "http", "id", "io", "ip", "iscsi", "nfs",
    "os", "qos", "rbd", "tcp", "tls", "tty", "uid", "url",
];

/// What Go calls a field.
fn go_field(name: &str) -> String {
    match name {
        "metadata" => return "ObjectMeta".to_owned(),
        "string" => return "String_".to_owned(),
        _ => {}
    }
    let first = name.find(|letter: char| !letter.is_ascii_lowercase()).unwrap_or(name.len());
    let (word, rest) = name.split_at(first);
    if INITIALISMS.contains(&word) {
        return word.to_ascii_uppercase() + rest;
    }
    let mut letters = name.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

/// Calls `take` with each tag of a message, and what is behind it.
fn each_field<'a>(
    bytes: &'a [u8],
    message: &str,
    mut take: impl FnMut(Tag, &mut Wire<'a>) -> Result<(), ProtobufError>,
) -> Result<(), ProtobufError> {
    let mut wire = Wire(bytes);
    while let Some(tag) = wire.tag()? {
        check(tag, message)?;
        take(tag, &mut wire)?;
    }
    Ok(())
}

/// A time is seconds and nanoseconds since 1970; neither of them is no time at all.
fn read_time(bytes: &[u8], precision: Precision) -> Result<Value, ProtobufError> {
    let (mut seconds, mut nanos) = (0i64, 0i32);
    each_field(bytes, "Timestamp", |tag, wire| {
        match tag.number {
            1 => {
                require(tag, VARINT, "seconds")?;
                seconds = wire.varint()? as i64;
            }
            2 => {
                require(tag, VARINT, "nanos")?;
                nanos = wire.varint()? as i32;
            }
            _ => wire.skip(tag)?,
        }
        Ok(())
    })?;
    if (seconds, nanos) == (0, 0) {
        return Ok(Value::Null);
    }
    let out_of_range = ProtobufError::Value("a time is out of range");
    let Ok(time) = OffsetDateTime::from_unix_timestamp(seconds) else { return Err(out_of_range) };
    let time = time.checked_add(Duration::nanoseconds(nanos.into())).ok_or(out_of_range)?;
    Ok(Value::from(format_timestamp(time, precision)))
}

/// A quantity is its text in a message of its own.
fn read_quantity(bytes: &[u8]) -> Result<Value, ProtobufError> {
    let mut value = Value::from("0");
    each_field(bytes, "Quantity", |tag, wire| {
        if tag.number != 1 {
            return wire.skip(tag);
        }
        require(tag, BYTES, "string")?;
        value = Value::from(&*text_of_bytes(wire.bytes()?));
        Ok(())
    })?;
    Ok(value)
}

/// A span of time is its nanoseconds in a message of its own.
fn read_duration(bytes: &[u8]) -> Result<Value, ProtobufError> {
    let mut nanoseconds = 0;
    each_field(bytes, "Duration", |tag, wire| {
        if tag.number != 1 {
            return wire.skip(tag);
        }
        require(tag, VARINT, "duration")?;
        nanoseconds = wire.varint()? as i64;
        Ok(())
    })?;
    Ok(Value::from(revisor_object::Duration::from_nanos(nanoseconds).to_string()))
}

/// An integer or a text says which of them it is. The original takes what is neither, and fails when it writes it.
fn read_int_or_string(parts: &[&[u8]]) -> Result<Value, ProtobufError> {
    let (mut which, mut int, mut text) = (0, 0i32, String::new());
    for part in parts {
        each_field(part, "IntOrString", |tag, wire| {
            match tag.number {
                1 => {
                    require(tag, VARINT, "type")?;
                    which = wire.varint()? as i64;
                }
                2 => {
                    require(tag, VARINT, "intVal")?;
                    int = wire.varint()? as i32;
                }
                3 => {
                    require(tag, BYTES, "strVal")?;
                    text = text_of_bytes(wire.bytes()?).into_owned();
                }
                _ => wire.skip(tag)?,
            }
            Ok(())
        })?;
    }
    match which {
        0 => Ok(Value::from(int)),
        1 => Ok(Value::from(text)),
        _ => Err(ProtobufError::Value("impossible IntOrString.Type")),
    }
}

/// JSON whose text is kept. Whether it is JSON, the rules of the kind ask.
fn read_raw_json(parts: &[&[u8]]) -> Result<Value, ProtobufError> {
    let mut value = Value::Null;
    for part in parts {
        each_field(part, "RawExtension", |tag, wire| {
            if tag.number != 1 {
                return wire.skip(tag);
            }
            require(tag, BYTES, "raw")?;
            value = Value::Raw(Box::new(RawJson::read(&text_of_bytes(wire.bytes()?))));
            Ok(())
        })?;
    }
    Ok(value)
}

/// A part of any shape is JSON inside a message of its own.
fn read_embedded_json(bytes: &[u8]) -> Result<Value, ProtobufError> {
    let mut value = Value::Null;
    each_field(bytes, "RawExtension", |tag, wire| {
        if tag.number != 1 {
            return wire.skip(tag);
        }
        require(tag, BYTES, "raw")?;
        let raw = wire.bytes()?;
        // Nothing at all is no value.
        value = if raw.is_empty() { Value::Null } else { parse_json(raw).map_err(ProtobufError::Json)?.value };
        Ok(())
    })?;
    Ok(value)
}
