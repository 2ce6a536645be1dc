//! The wire format of protobuf: numbers, and the fields of a message one after the other.

use super::ProtobufError;

/// The wire types.
pub(super) const VARINT: u8 = 0;
pub(super) const FIXED64: u8 = 1;
pub(super) const BYTES: u8 = 2;
const START_GROUP: u8 = 3;
pub(super) const END_GROUP: u8 = 4;
const FIXED32: u8 = 5;

/// Appends a number in as many bytes as it needs.
pub fn push_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Bytes in the wire format, from the front.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wire<'a>(pub(super) &'a [u8]);

/// What stands before a value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tag {
    pub(super) number: i32,
    pub(super) wire_type: u8,
    pub(super) whole: u64,
}

impl<'a> Wire<'a> {
    /// The next tag; `None` at the end.
    pub(super) fn tag(&mut self) -> Result<Option<Tag>, ProtobufError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let whole = self.varint()?;
        // Cut off as the original cuts it off.
        Ok(Some(Tag { number: (whole >> 3) as i32, wire_type: (whole & 7) as u8, whole }))
    }

    pub(super) fn varint(&mut self) -> Result<u64, ProtobufError> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first().ok_or(ProtobufError::Truncated)?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if *byte < 0x80 {
                return Ok(number);
            }
        }
        Err(ProtobufError::Overflow)
    }

    /// Bytes behind their length.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], ProtobufError> {
        let length = self.length()?;
        self.take(length)
    }

    fn length(&mut self) -> Result<usize, ProtobufError> {
        let length = self.varint()?;
        // The original adds where it is, which is behind a tag and the nine bytes of such a length.
        if length > i64::MAX as u64 - 10 {
            return Err(ProtobufError::NegativeLength);
        }
        usize::try_from(length).map_err(|_| ProtobufError::NegativeLength)
    }

    /// The entry of a map: what is left from its beginning on, and how long it is. It is passed.
    pub(super) fn entry(&mut self) -> Result<(Wire<'a>, usize), ProtobufError> {
        let length = self.length()?;
        let entry = *self;
        self.take(length)?;
        Ok((entry, length))
    }

    pub(super) fn fixed64(&mut self) -> Result<u64, ProtobufError> {
        let bytes = self.take(8)?;
        Ok(bytes.try_into().map(u64::from_le_bytes).unwrap_or_default())
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], ProtobufError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(ProtobufError::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    /// Passes over the value behind a tag that nobody knows, with everything in it if it is a group.
    pub(super) fn skip(&mut self, tag: Tag) -> Result<(), ProtobufError> {
        let mut depth = 0usize;
        let mut wire_type = tag.wire_type;
        loop {
            match wire_type {
                VARINT => drop(self.varint()?),
                FIXED64 => drop(self.take(8)?),
                BYTES => drop(self.bytes()?),
                START_GROUP => depth += 1,
                END_GROUP if depth == 0 => return Err(ProtobufError::UnexpectedEndOfGroup),
                END_GROUP => depth -= 1,
                FIXED32 => drop(self.take(4)?),
                other => return Err(ProtobufError::NoWireType(other)),
            }
            if depth == 0 {
                return Ok(());
            }
            wire_type = (self.varint()? & 7) as u8;
        }
    }
}
