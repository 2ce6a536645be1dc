//! Objects in Kubernetes' protobuf: four bytes of magic, an envelope that names the type, and the object in the wire
//! format, read by the numbers of the table.
//!
//! Only reading, for bodies that typed clients send; answers are JSON, which those clients accept too.

use compact_str::CompactString;
use revisor_object::{Object, Value, parse_json};
use time::{Duration, OffsetDateTime};

use crate::timestamp::{Precision, format_timestamp};
use crate::{Alternative, Field, Shape, StructId, Types};

/// What every encoded object begins with.
const MAGIC: &[u8; 4] = b"k8s\0";

/// How deep messages may nest.
const MAX_DEPTH: usize = 100;

/// Why bytes are not an object in protobuf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProtobufError {
    /// They do not begin as Kubernetes' encoding does.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    NoMagic,
    /// They end before they should.
    #[error("proto: unexpected end of data")]
    Truncated,
    /// A value is not of the wire type of its field, or not of any.
    #[error("proto: wrong wire type for a field")]
    WireType,
    /// A text is not UTF-8.
    #[error("proto: a string is not valid UTF-8")]
    NotUtf8,
    /// A time is out of range, or a part that is JSON is none.
    #[error("proto: a value is out of range")]
    Value,
    /// Messages nest too deeply.
    #[error("proto: exceeded max depth")]
    TooDeep,
}

/// An object with the type that its envelope names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Envelope<'a> {
    /// The version; empty if it is not named.
    pub api_version: String,
    /// The kind; empty if it is not named.
    pub kind: String,
    /// The object.
    pub raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Reads the envelope.
    pub fn read(bytes: &'a [u8]) -> Result<Envelope<'a>, ProtobufError> {
        let mut wire = Wire(bytes.strip_prefix(MAGIC).ok_or(ProtobufError::NoMagic)?);
        let mut envelope = Envelope::default();
        while let Some((number, content)) = wire.field()? {
            match (number, content) {
                (1, Content::Bytes(bytes)) => {
                    let mut names = Wire(bytes);
                    while let Some((number, content)) = names.field()? {
                        match number {
                            1 => envelope.api_version = content.text()?.to_owned(),
                            2 => envelope.kind = content.text()?.to_owned(),
                            _ => {}
                        }
                    }
                }
                (2, Content::Bytes(bytes)) => envelope.raw = bytes,
                _ => {}
            }
        }
        Ok(envelope)
    }
}

impl Types {
    /// Reads an object of type `id`. Like every value from outside it must still be made to
    /// [conform](Types::conform).
    pub fn read_protobuf(&self, id: StructId, bytes: &[u8]) -> Result<Value, ProtobufError> {
        self.read_message(id, bytes, 0)
    }

    fn read_message(&self, id: StructId, bytes: &[u8], depth: usize) -> Result<Value, ProtobufError> {
        if depth == MAX_DEPTH {
            return Err(ProtobufError::TooDeep);
        }
        let fields = &self.get(id).fields;
        let mut slots: Vec<Slot> = fields.iter().map(|_| Slot::Empty).collect();
        self.fill_slots(fields, &mut slots, &mut Vec::new(), bytes, depth)?;
        let filled = fields.iter().zip(slots).filter_map(|(field, slot)| {
            let value = match slot {
                Slot::Empty => return None,
                Slot::One(value) => value,
                Slot::Many(items) => Value::Array(items),
                Slot::Pairs(pairs) => Value::Object(Object::from_members(pairs)),
            };
            Some((CompactString::from(&*field.name), value))
        });
        Ok(Value::Object(Object::from_members(filled.collect())))
    }

    /// Reads the fields of a message, or of the message embedded in it under the numbers of `within`.
    fn fill_slots(
        &self,
        fields: &[Field],
        slots: &mut [Slot],
        within: &mut Vec<u32>,
        bytes: &[u8],
        depth: usize,
    ) -> Result<(), ProtobufError> {
        let mut wire = Wire(bytes);
        while let Some((number, content)) = wire.field()? {
            let is_behind = |field: &Field, depth: usize| {
                let path = field.number.as_ref().map_or(&[][..], |number| &number.0);
                path.len() >= depth && path.starts_with(within) && path[within.len()] == number
            };
            let here = within.len() + 1;
            let is_wanted = |field: &Field| is_behind(field, here) && is_last(field, here);
            let Some(at) = fields.iter().position(is_wanted) else {
                // What a newer client knows and this table does not is passed over, as everywhere in protobuf.
                if fields.iter().any(|field| is_behind(field, here + 1)) {
                    within.push(number);
                    self.fill_slots(fields, slots, within, content.bytes()?, depth)?;
                    within.pop();
                }
                continue;
            };
            let slot = &mut slots[at];
            match &fields[at].shape {
                Shape::List(element) => {
                    let value = self.read_value(element, content, depth)?;
                    match slot {
                        Slot::Many(items) => items.push(value),
                        _ => *slot = Slot::Many(vec![value]),
                    }
                }
                Shape::Map(element) => {
                    let pair = self.read_pair(element, content, depth)?;
                    match slot {
                        Slot::Pairs(pairs) => pairs.push(pair),
                        _ => *slot = Slot::Pairs(vec![pair]),
                    }
                }
                shape => *slot = Slot::One(self.read_value(shape, content, depth)?),
            }
        }
        Ok(())
    }

    fn read_pair(
        &self,
        element: &Shape,
        content: Content<'_>,
        depth: usize,
    ) -> Result<(CompactString, Value), ProtobufError> {
        let mut pair = Wire(content.bytes()?);
        let (mut name, mut value) = (CompactString::default(), Value::Null);
        while let Some((number, content)) = pair.field()? {
            match number {
                1 => name = content.text()?.into(),
                2 => value = self.read_value(element, content, depth)?,
                _ => {}
            }
        }
        Ok((name, value))
    }

    fn read_value(&self, shape: &Shape, content: Content<'_>, depth: usize) -> Result<Value, ProtobufError> {
        Ok(match shape {
            Shape::String => Value::from(content.text()?),
            Shape::Bool => Value::Bool(content.number()? != 0),
            Shape::Int32 => Value::from(content.number()? as i32),
            Shape::Int64 => Value::from(content.number()? as i64),
            Shape::Bytes => Value::from(crate::conform::encode_base64(content.bytes()?)),
            Shape::Time => read_time(content.bytes()?, Precision::Seconds)?,
            Shape::MicroTime => read_time(content.bytes()?, Precision::Microseconds)?,
            Shape::Any => read_embedded_json(content.bytes()?)?,
            Shape::Struct(id) => self.read_message(*id, content.bytes()?, depth + 1)?,
            Shape::Double => Value::Float(f64::from_bits(content.number()?)),
            Shape::Quantity => read_quantity(content.bytes()?)?,
            Shape::Duration => read_duration(content.bytes()?)?,
            Shape::IntOrString => read_int_or_string(content.bytes()?)?,
            Shape::Either(alternative, id) => self.read_either(*alternative, *id, content.bytes()?, depth + 1)?,
            // A list inside a map is a message with the elements in its first field.
            Shape::List(element) => {
                let mut wire = Wire(content.bytes()?);
                let mut items = Vec::new();
                while let Some((number, content)) = wire.field()? {
                    if number == 1 {
                        items.push(self.read_value(element, content, depth)?);
                    }
                }
                Value::Array(items)
            }
            // No API type has lists of maps or maps of maps.
            Shape::Map(_) => return Err(ProtobufError::WireType),
        })
    }

    /// An object of a type or what may stand in its place is a message with a field for each of them.
    fn read_either(
        &self,
        alternative: Alternative,
        id: StructId,
        bytes: &[u8],
        depth: usize,
    ) -> Result<Value, ProtobufError> {
        let object_at = if alternative == Alternative::Bool { 2 } else { 1 };
        let mut wire = Wire(bytes);
        let (mut object, mut items, mut truth) = (None, Vec::new(), false);
        while let Some((number, content)) = wire.field()? {
            match (number, alternative) {
                (at, _) if at == object_at => object = Some(self.read_message(id, content.bytes()?, depth)?),
                (1, _) => truth = content.number()? != 0,
                (2, Alternative::List) => items.push(self.read_message(id, content.bytes()?, depth)?),
                (2, _) => items.push(Value::from(content.text()?)),
                _ => {}
            }
        }
        Ok(match (object, alternative) {
            _ if !items.is_empty() => Value::Array(items),
            (Some(object), _) => object,
            (None, Alternative::Bool) => Value::Bool(truth),
            (None, _) => Value::Null,
        })
    }
}

/// Whether a field stands in so many messages.
fn is_last(field: &Field, depth: usize) -> bool {
    field.number.as_ref().is_some_and(|number| number.0.len() == depth)
}

/// What was read of a field so far.
enum Slot {
    Empty,
    One(Value),
    Many(Vec<Value>),
    Pairs(Vec<(CompactString, Value)>),
}

/// A time is seconds and nanoseconds since 1970; neither of them is no time at all.
fn read_time(bytes: &[u8], precision: Precision) -> Result<Value, ProtobufError> {
    let (mut seconds, mut nanos) = (0i64, 0i32);
    let mut wire = Wire(bytes);
    while let Some((number, content)) = wire.field()? {
        match number {
            1 => seconds = content.number()? as i64,
            2 => nanos = content.number()? as i32,
            _ => {}
        }
    }
    if (seconds, nanos) == (0, 0) {
        return Ok(Value::Null);
    }
    let time = OffsetDateTime::from_unix_timestamp(seconds).map_err(|_| ProtobufError::Value)?;
    let time = time.checked_add(Duration::nanoseconds(nanos.into())).ok_or(ProtobufError::Value)?;
    Ok(Value::from(format_timestamp(time, precision)))
}

/// A quantity is its text in a message of its own.
fn read_quantity(bytes: &[u8]) -> Result<Value, ProtobufError> {
    let mut wire = Wire(bytes);
    let mut value = Value::from("0");
    while let Some((number, content)) = wire.field()? {
        if number == 1 {
            value = Value::from(content.text()?);
        }
    }
    Ok(value)
}

/// A span of time is its nanoseconds in a message of its own.
fn read_duration(bytes: &[u8]) -> Result<Value, ProtobufError> {
    let mut wire = Wire(bytes);
    let mut nanoseconds = 0;
    while let Some((number, content)) = wire.field()? {
        if number == 1 {
            nanoseconds = content.number()? as i64;
        }
    }
    Ok(Value::from(revisor_object::Duration::from_nanos(nanoseconds).to_string()))
}

/// An integer or a text says which of them it is.
fn read_int_or_string(bytes: &[u8]) -> Result<Value, ProtobufError> {
    let mut wire = Wire(bytes);
    let (mut is_text, mut int, mut text) = (false, 0i32, "");
    while let Some((number, content)) = wire.field()? {
        match number {
            1 => is_text = content.number()? != 0,
            2 => int = content.number()? as i32,
            3 => text = content.text()?,
            _ => {}
        }
    }
    Ok(if is_text { Value::from(text) } else { Value::from(int) })
}

/// A part of any shape is JSON inside a message of its own.
fn read_embedded_json(bytes: &[u8]) -> Result<Value, ProtobufError> {
    let mut wire = Wire(bytes);
    let mut value = Value::Null;
    while let Some((number, content)) = wire.field()? {
        if number == 1 {
            value = parse_json(content.bytes()?).map_err(|_| ProtobufError::Value)?.value;
        }
    }
    Ok(value)
}

/// What a field holds on the wire.
#[derive(Debug, Clone, Copy)]
enum Content<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Content<'a> {
    fn number(self) -> Result<u64, ProtobufError> {
        match self {
            Content::Number(number) => Ok(number),
            Content::Bytes(_) => Err(ProtobufError::WireType),
        }
    }

    fn bytes(self) -> Result<&'a [u8], ProtobufError> {
        match self {
            Content::Bytes(bytes) => Ok(bytes),
            Content::Number(_) => Err(ProtobufError::WireType),
        }
    }

    fn text(self) -> Result<&'a str, ProtobufError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| ProtobufError::NotUtf8)
    }
}

/// Bytes in the wire format, from the front.
struct Wire<'a>(&'a [u8]);

impl<'a> Wire<'a> {
    /// The next field; `None` at the end.
    fn field(&mut self) -> Result<Option<(u32, Content<'a>)>, ProtobufError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).map_err(|_| ProtobufError::WireType)?;
        let content = match tag & 7 {
            0 => Content::Number(self.varint()?),
            1 => Content::Number(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| ProtobufError::Truncated)?;
                Content::Bytes(self.take(length)?)
            }
            5 => Content::Number(u32::from_le_bytes(self.array()?).into()),
            _ => return Err(ProtobufError::WireType),
        };
        Ok(Some((number, content)))
    }

    fn varint(&mut self) -> Result<u64, ProtobufError> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(ProtobufError::WireType)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ProtobufError> {
        let (array, rest) = self.0.split_first_chunk().ok_or(ProtobufError::Truncated)?;
        self.0 = rest;
        Ok(*array)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], ProtobufError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(ProtobufError::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "type,field,shape,presence,number,merge
T,meta,M,always,1,
T,data,map:bytes,nonzero,2,
T,parts,list:M,nonzero,3,
T,at,time,given,4,
T,count,int32,nonzero,5,
T,any,any,given,6,
T,seen,microtime,given,7,
T,more,orbool:M,given,10,
T,some,orlist:M,given,11,
T,names,ortexts:M,given,12,
M,name,string,nonzero,1,
M,on,bool,given,2,
";

    fn message(parts: &[(u32, &[u8])]) -> Vec<u8> {
        let field = |(number, bytes): &(u32, &[u8])| [&[(*number as u8) << 3 | 2, bytes.len() as u8], *bytes].concat();
        parts.iter().flat_map(field).collect()
    }

    fn read(bytes: &[u8]) -> Result<String, ProtobufError> {
        let types = Types::parse(TABLE).expect("a good table");
        types.read_protobuf(types.id("T").expect("is there"), bytes).map(|value| value.to_json())
    }

    #[test]
    fn messages_become_values() {
        let named = message(&[(1, b"n")]);
        let on = [&named[..], &[0x10, 1]].concat();
        let pair = message(&[(1, b"k"), (2, b"\xff\x00")]);
        let time = [&[0x08][..], &[0x80, 0xe2, 0xcf, 0xaa, 0x06], &[0x10, 0xe8, 0x07]].concat();
        let bytes = [
            message(&[
                (1, &named),
                (3, &on),
                (3, &[]),
                (2, &pair),
                (4, &time),
                (7, &time),
                (6, &message(&[(1, br#"{"x":1}"#)])),
            ]),
            vec![0x28, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
            // A field that the table does not know.
            message(&[(9, b"?")]),
        ]
        .concat();
        assert_eq!(
            read(&bytes).expect("a message"),
            r#"{"any":{"x":1},"at":"2023-11-14T22:13:20Z","count":-1,"data":{"k":"/wA="},"meta":{"name":"n"},"parts":[{"name":"n","on":true},{}],"seen":"2023-11-14T22:13:20.000001Z"}"#
        );
        assert_eq!(read(&message(&[(4, &[])])), Ok(r#"{"at":null}"#.to_owned()), "no time at all");
    }

    #[test]
    fn one_of_several_shapes_is_read() {
        let named = message(&[(1, b"n")]);
        for (number, content, want) in [
            (10, vec![0x08, 1], r#"{"more":true}"#),
            (10, vec![], r#"{"more":false}"#),
            (10, [&[0x08, 1][..], &message(&[(2, &named)])].concat(), r#"{"more":{"name":"n"}}"#),
            (11, message(&[(1, &named)]), r#"{"some":{"name":"n"}}"#),
            (11, message(&[(2, &named), (2, &[])]), r#"{"some":[{"name":"n"},{}]}"#),
            (12, message(&[(2, b"a"), (2, b"b")]), r#"{"names":["a","b"]}"#),
            (12, vec![], r#"{"names":null}"#),
        ] {
            assert_eq!(read(&message(&[(number, &content)])).as_deref(), Ok(want), "{number}");
        }
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for (bytes, want) in [
            (&b"\x0a\x05ab"[..], ProtobufError::Truncated),
            (b"\x0a", ProtobufError::Truncated),
            (b"\x08\x01", ProtobufError::WireType),
            (b"\x0b", ProtobufError::WireType),
            (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", ProtobufError::WireType),
            (b"\x0a\x03\x0a\x01\xff", ProtobufError::NotUtf8),
            (b"\x32\x03\x0a\x01{", ProtobufError::Value),
        ] {
            assert_eq!(read(bytes), Err(want), "{bytes:?}");
        }
    }

    #[test]
    fn envelopes_name_what_is_in_them() {
        let names = message(&[(1, b"v1"), (2, b"ConfigMap")]);
        let bytes = [&MAGIC[..], &message(&[(1, &names), (2, b"raw"), (4, b"")])].concat();
        let want = Envelope { api_version: "v1".to_owned(), kind: "ConfigMap".to_owned(), raw: b"raw" };
        assert_eq!(Envelope::read(&bytes), Ok(want));
        assert_eq!(Envelope::read(b"{}"), Err(ProtobufError::NoMagic));
    }
}
