//! [`Envelope`]: what is around every object, and names its type.

use revisor_object::text_of_bytes;

use super::wire::{BYTES, END_GROUP, Tag, Wire, push_varint};
use super::{MAGIC, ProtobufError};

/// What is behind the object: that it has no encoding of its own and no media type.
pub const ENVELOPE_END: [u8; 4] = [0x1a, 0, 0x22, 0];

/// What is before an object of so many bytes.
pub fn envelope_start(api_version: &str, kind: &str, length: usize) -> Vec<u8> {
    let mut names = Vec::with_capacity(api_version.len() + kind.len() + 4);
    for (tag, name) in [(0x0a, api_version), (0x12, kind)] {
        names.push(tag);
        push_varint(name.len() as u64, &mut names);
        names.extend_from_slice(name.as_bytes());
    }
    let mut start = Vec::with_capacity(names.len() + 16);
    start.extend_from_slice(MAGIC);
    start.push(0x0a);
    push_varint(names.len() as u64, &mut start);
    start.extend_from_slice(&names);
    start.push(0x12);
    push_varint(length as u64, &mut start);
    start
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
    /// Reads the envelope. Of an object that is there twice the last counts; what the envelope says of its encoding and
    /// its media type is ignored.
    pub fn read(bytes: &'a [u8]) -> Result<Envelope<'a>, ProtobufError> {
        if bytes.is_empty() {
            return Err(ProtobufError::NoData);
        }
        let bytes = bytes.strip_prefix(MAGIC).ok_or(ProtobufError::NoMagic)?;
        if bytes.is_empty() {
            return Err(ProtobufError::NoBody);
        }
        let mut envelope = Envelope::default();
        each_text(bytes, "Unknown", &["TypeMeta", "Raw", "ContentEncoding", "ContentType"], &mut |number, content| {
            match number {
                1 => each_text(content, "TypeMeta", &["APIVersion", "Kind"], &mut |number, name| {
                    let name = text_of_bytes(name).into_owned();
                    match number {
                        1 => envelope.api_version = name,
                        _ => envelope.kind = name,
                    }
                    Ok(())
                })?,
                2 => envelope.raw = content,
                _ => {}
            }
            Ok(())
        })?;
        Ok(envelope)
    }
}

/// Reads a message whose first fields, with these names, are all texts or messages.
fn each_text<'a>(
    bytes: &'a [u8],
    message: &str,
    names: &[&str],
    take: &mut dyn FnMut(i32, &'a [u8]) -> Result<(), ProtobufError>,
) -> Result<(), ProtobufError> {
    let mut wire = Wire(bytes);
    while let Some(tag) = wire.tag()? {
        check(tag, message)?;
        match usize::try_from(tag.number - 1).ok().and_then(|at| names.get(at)) {
            Some(_) if tag.wire_type == BYTES => take(tag.number, wire.bytes()?)?,
            Some(name) => {
                return Err(ProtobufError::WrongWireType { found: tag.wire_type, field: (*name).to_owned() });
            }
            None => wire.skip(tag)?,
        }
    }
    Ok(())
}

/// Refuses a tag that no message can have.
pub(super) fn check(tag: Tag, message: &str) -> Result<(), ProtobufError> {
    if tag.wire_type == END_GROUP {
        return Err(ProtobufError::EndOfNoGroup(message.to_owned()));
    }
    if tag.number <= 0 {
        return Err(ProtobufError::IllegalTag { message: message.to_owned(), number: tag.number, tag: tag.whole });
    }
    Ok(())
}
