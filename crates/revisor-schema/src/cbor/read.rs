//! Reading. What JSON cannot say is refused; what it can is brought to the value that the JSON would have been.

use std::collections::HashSet;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use compact_str::CompactString;
use revisor_object::{MAX_DEPTH, Object, Value};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::CborError;
use crate::conform::encode_base64;
use crate::{Shape, StructId, Types};

const UNSIGNED: u8 = 0;
const NEGATIVE: u8 = 1;
const BYTES: u8 = 2;
const TEXT: u8 = 3;
const ARRAY: u8 = 4;
const MAP: u8 = 5;
const TAG: u8 = 6;

impl Types {
    /// Reads an object of type `id`, or a custom object, of whose type nothing is known here. Like every value from outside
    /// it must still be made to [conform](Types::conform).
    pub fn read_cbor(&self, id: Option<StructId>, bytes: &[u8]) -> Result<Value, CborError> {
        let mut reader = Reader { types: self, is_custom: id.is_none(), bytes, at: 0 };
        let value = reader.value(id.map(Shape::Struct).as_ref(), "", None, 0)?;
        match bytes.len() - reader.at {
            0 => Ok(value),
            more => Err(CborError::More(more, reader.at)),
        }
    }
}

struct Reader<'t, 'a> {
    types: &'t Types,
    is_custom: bool,
    bytes: &'a [u8],
    at: usize,
}

/// How the byte strings in an item become texts.
#[derive(Debug, Clone, Copy)]
enum Expected {
    Base64Url,
    Base64,
    Base16,
}

/// What begins an item.
struct Head {
    major: u8,
    /// Without it there is no end but a break.
    number: Option<u64>,
    info: u8,
}

impl<'a> Reader<'_, 'a> {
    fn take(&mut self, length: u64) -> Result<&'a [u8], CborError> {
        let rest = &self.bytes[self.at..];
        let taken = usize::try_from(length).ok().and_then(|length| rest.get(..length)).ok_or(CborError::Truncated)?;
        self.at += taken.len();
        Ok(taken)
    }

    fn head(&mut self) -> Result<Head, CborError> {
        let first = self.take(1)?[0];
        let (major, info) = (first >> 5, first & 0x1f);
        let number = match info {
            0..24 => Some(info.into()),
            24..28 => {
                let bytes = self.take(1 << (info - 24))?;
                Some(bytes.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte)))
            }
            31 => None,
            _ => return Err(CborError::Malformed("invalid additional information")),
        };
        Ok(Head { major, number, info })
    }

    /// Whether the break that ends an item of any length is next; it is passed.
    fn passes_break(&mut self) -> Result<bool, CborError> {
        let is_break = *self.bytes.get(self.at).ok_or(CborError::Truncated)? == 0xff;
        self.at += usize::from(is_break);
        Ok(is_break)
    }

    fn value(
        &mut self,
        shape: Option<&Shape>,
        name: &str,
        expected: Option<Expected>,
        depth: usize,
    ) -> Result<Value, CborError> {
        if depth > MAX_DEPTH {
            return Err(CborError::TooDeep);
        }
        let head = self.head()?;
        match head.major {
            UNSIGNED => {
                let number = head.number.and_then(|number| i64::try_from(number).ok());
                number.map(Value::Int).ok_or(CborError::Number("an integer exceeds 64 bits"))
            }
            NEGATIVE => {
                let number = head.number.and_then(|number| i64::try_from(number).ok());
                number.map(|number| Value::Int(!number)).ok_or(CborError::Number("an integer exceeds 64 bits"))
            }
            BYTES => {
                let bytes = self.string(&head)?;
                Ok(Value::from(match expected {
                    None => lossy(&bytes),
                    Some(Expected::Base64) => encode_base64(&bytes),
                    Some(Expected::Base64Url) => URL_SAFE_NO_PAD.encode(&bytes),
                    Some(Expected::Base16) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
                }))
            }
            TEXT => {
                let bytes = self.string(&head)?;
                if shape == Some(&Shape::Bytes) {
                    return Err(CborError::TextForBytes(name.to_owned()));
                }
                String::from_utf8(bytes).map(Value::from).map_err(|_| CborError::NotUtf8)
            }
            ARRAY => self.array(&head, shape, name, expected, depth),
            MAP => self.map(&head, shape, expected, depth).map(Value::Object),
            TAG => self.tagged(&head, shape, name, expected, depth),
            _ => self.simple(&head),
        }
    }

    /// A byte string or a text, in one piece or in several.
    fn string(&mut self, head: &Head) -> Result<Vec<u8>, CborError> {
        if let Some(length) = head.number {
            return Ok(self.take(length)?.to_vec());
        }
        let mut whole = Vec::new();
        while !self.passes_break()? {
            let piece = self.head()?;
            let (true, Some(length)) = (piece.major == head.major, piece.number) else {
                return Err(CborError::Malformed("wrong element type for an indefinite-length string"));
            };
            let bytes = self.take(length)?;
            if head.major == TEXT && std::str::from_utf8(bytes).is_err() {
                return Err(CborError::NotUtf8);
            }
            whole.extend_from_slice(bytes);
        }
        Ok(whole)
    }

    fn array(
        &mut self,
        head: &Head,
        shape: Option<&Shape>,
        name: &str,
        expected: Option<Expected>,
        depth: usize,
    ) -> Result<Value, CborError> {
        let struct_of;
        let element = match shape {
            Some(Shape::List(element)) => Some(&**element),
            Some(Shape::Either(_, id)) => {
                struct_of = Shape::Struct(*id);
                Some(&struct_of)
            }
            _ => None,
        };
        let mut items = Vec::new();
        // A length is believed only as far as there are bytes for it.
        let mut left = head.number;
        while self.has_next(&mut left)? {
            items.push(self.value(element, name, expected, depth + 1)?);
        }
        Ok(Value::Array(items))
    }

    fn map(
        &mut self,
        head: &Head,
        shape: Option<&Shape>,
        expected: Option<Expected>,
        depth: usize,
    ) -> Result<Object, CborError> {
        let mut members: Vec<(CompactString, Value)> = Vec::new();
        let mut names: HashSet<CompactString> = HashSet::new();
        let mut left = head.number;
        while self.has_next(&mut left)? {
            let key = self.head()?;
            let name: CompactString = match key.major {
                TEXT => String::from_utf8(self.string(&key)?).map_err(|_| CborError::NotUtf8)?.into(),
                BYTES => lossy(&self.string(&key)?).into(),
                _ => return Err(CborError::Malformed("the key of a map is neither a text nor a byte string")),
            };
            if !names.insert(name.clone()) {
                return Err(CborError::Duplicate(name.into(), members.len()));
            }
            let of_member = match shape {
                Some(Shape::Map(element)) => Some(&**element),
                Some(Shape::Struct(id) | Shape::Either(_, id)) => {
                    self.types.get(*id).field(&name).map(|field| &field.shape)
                }
                _ => None,
            };
            let value = self.value(of_member, &name, expected, depth + 1)?;
            members.push((name, value));
        }
        Ok(Object::from_members(members))
    }

    fn has_next(&mut self, left: &mut Option<u64>) -> Result<bool, CborError> {
        match left {
            Some(0) => Ok(false),
            Some(left) => {
                *left -= 1;
                Ok(true)
            }
            None => Ok(!self.passes_break()?),
        }
    }

    fn tagged(
        &mut self,
        head: &Head,
        shape: Option<&Shape>,
        name: &str,
        expected: Option<Expected>,
        depth: usize,
    ) -> Result<Value, CborError> {
        let tag = head.number.ok_or(CborError::Malformed("a tag without a number"))?;
        let depth = depth + 1;
        match tag {
            0 => match self.value(shape, name, None, depth)? {
                Value::String(text) if OffsetDateTime::parse(&text, &Rfc3339).is_ok() => Ok(Value::String(text)),
                _ => Err(CborError::Malformed("what is tagged as a time is none")),
            },
            1 => {
                let time = match self.value(shape, name, None, depth)? {
                    Value::Int(seconds) => OffsetDateTime::from_unix_timestamp(seconds).ok(),
                    Value::Float(seconds) => {
                        OffsetDateTime::from_unix_timestamp_nanos((seconds * 1e9).round() as i128).ok()
                    }
                    _ => None,
                };
                let text = time.and_then(|time| time.format(&Rfc3339).ok());
                text.map(Value::from).ok_or(CborError::Malformed("what is tagged as a time is none"))
            }
            2 | 3 => Err(CborError::Number("data item of cbor type tag is not accepted by protocol: bignum")),
            21 => self.value(shape, name, Some(Expected::Base64Url), depth),
            22 => self.value(shape, name, Some(Expected::Base64), depth),
            23 => self.value(shape, name, Some(Expected::Base16), depth),
            _ => self.value(shape, name, expected, depth),
        }
    }

    /// Truths, nothing, and numbers with a fraction.
    fn simple(&mut self, head: &Head) -> Result<Value, CborError> {
        let bits = head.number.unwrap_or_default();
        let number = match head.info {
            20 => return Ok(Value::Bool(false)),
            21 => return Ok(Value::Bool(true)),
            22 => return Ok(Value::Null),
            25 => half(bits as u16),
            26 => f32::from_bits(bits as u32).into(),
            27 => f64::from_bits(bits),
            31 => return Err(CborError::Malformed("unexpected \"break\" code")),
            _ => return Err(CborError::Malformed("undefined and other simple values stand for nothing in JSON")),
        };
        if !number.is_finite() {
            return Err(CborError::Number("a number is not finite"));
        }
        // Where nothing is known of types, a whole number is an integer.
        let is_whole = self.is_custom && number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0;
        Ok(if is_whole { Value::Int(number as i64) } else { Value::Float(number) })
    }
}

/// A number of half precision.
fn half(bits: u16) -> f64 {
    let exponent = i32::from(bits >> 10 & 0x1f);
    let mantissa = f64::from(bits & 0x3ff);
    let size = match exponent {
        0 => mantissa * 2f64.powi(-24),
        31 if mantissa == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (mantissa + 1024.0) * 2f64.powi(exponent - 25),
    };
    if bits & 0x8000 == 0 { size } else { -size }
}

/// Each byte that is not of UTF-8 becomes a replacement character.
fn lossy(bytes: &[u8]) -> String {
    crate::protobuf::lossy(bytes)
}
