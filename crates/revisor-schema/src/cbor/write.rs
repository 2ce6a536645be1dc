//! Writing: texts as byte strings, bytes with the tag that asks for base64 in JSON.

use base64::Engine;
use revisor_object::{Object, Value, bytes_of_text};

use crate::conform::BASE64;
use crate::{Shape, StructId, Types};

const UNSIGNED: u8 = 0;
const NEGATIVE: u8 = 1;
const BYTES: u8 = 2;
const ARRAY: u8 = 4;
const MAP: u8 = 5;
/// Tag 22.
const BASE64_IN_JSON: u8 = 0xd6;
/// What begins a list that does not say how long it is. Its end is 0xff.
const ENDLESS_ARRAY: u8 = 0x9f;

impl Types {
    /// An object in CBOR, without the tag by which it describes itself. Which of its texts stand for bytes, only its
    /// type can tell; custom objects have none.
    pub fn write_cbor(&self, id: Option<StructId>, object: &Object) -> Vec<u8> {
        let mut out = Vec::with_capacity(1024);
        Writer { types: self }.object(id.map(Shape::Struct).as_ref(), object, &mut out);
        out
    }
}

/// Appends a text.
pub fn push_cbor_text(text: &str, out: &mut Vec<u8>) {
    let bytes = bytes_of_text(text);
    head(BYTES, bytes.len() as u64, out);
    out.extend_from_slice(&bytes);
}

/// Appends the start of a map of so many members.
pub fn start_cbor_map(members: u64, out: &mut Vec<u8>) {
    head(MAP, members, out);
}

/// Appends the start of a list of any length, which ends with 0xff.
pub fn start_cbor_list(out: &mut Vec<u8>) {
    out.push(ENDLESS_ARRAY);
}

/// How many members a map has that was written here, and what is behind its start.
pub fn split_cbor_map(map: &[u8]) -> (u64, &[u8]) {
    let extra = match map.first().map(|first| first & 0x1f) {
        Some(24) => 1,
        Some(25) => 2,
        Some(26) => 4,
        Some(27) => 8,
        Some(small) => return (small.into(), &map[1..]),
        None => return (0, map),
    };
    let number = map.get(1..=extra).unwrap_or_default();
    let count = number.iter().fold(0u64, |count, byte| count << 8 | u64::from(*byte));
    (count, map.get(1 + extra..).unwrap_or_default())
}

/// Appends what begins an item.
fn head(major: u8, number: u64, out: &mut Vec<u8>) {
    let major = major << 5;
    match number {
        0..24 => out.push(major | number as u8),
        24..0x100 => out.extend_from_slice(&[major | 24, number as u8]),
        0x100..0x1_0000 => {
            out.push(major | 25);
            out.extend_from_slice(&(number as u16).to_be_bytes());
        }
        0x1_0000..0x1_0000_0000 => {
            out.push(major | 26);
            out.extend_from_slice(&(number as u32).to_be_bytes());
        }
        _ => {
            out.push(major | 27);
            out.extend_from_slice(&number.to_be_bytes());
        }
    }
}

struct Writer<'t> {
    types: &'t Types,
}

impl Writer<'_> {
    fn object(&self, shape: Option<&Shape>, object: &Object, out: &mut Vec<u8>) {
        head(MAP, object.len() as u64, out);
        for (name, value) in object.iter() {
            push_cbor_text(name, out);
            let shape = match shape {
                Some(Shape::Map(element)) => Some(&**element),
                Some(Shape::Struct(id) | Shape::Either(_, id)) => {
                    self.types.get(*id).field(name).map(|field| &field.shape)
                }
                _ => None,
            };
            self.value(shape, value, out);
        }
    }

    fn value(&self, shape: Option<&Shape>, value: &Value, out: &mut Vec<u8>) {
        match value {
            Value::Null | Value::Nothing => out.push(0xf6),
            Value::Bool(truth) => out.push(if *truth { 0xf5 } else { 0xf4 }),
            Value::Int(number) if *number < 0 => head(NEGATIVE, !*number as u64, out),
            Value::Int(number) => head(UNSIGNED, *number as u64, out),
            Value::Float(number) => float(*number, out),
            Value::String(text) => match (shape, BASE64.decode(text.as_str())) {
                (Some(Shape::Bytes), Ok(bytes)) => {
                    out.push(BASE64_IN_JSON);
                    head(BYTES, bytes.len() as u64, out);
                    out.extend_from_slice(&bytes);
                }
                _ => push_cbor_text(text, out),
            },
            Value::Array(items) => {
                head(ARRAY, items.len() as u64, out);
                let struct_of;
                let element = match shape {
                    Some(Shape::List(element)) => Some(&**element),
                    Some(Shape::Either(_, id)) => {
                        struct_of = Shape::Struct(*id);
                        Some(&struct_of)
                    }
                    _ => None,
                };
                for item in items {
                    self.value(element, item, out);
                }
            }
            Value::Object(object) => self.object(shape, object, out),
            Value::Raw(raw) => self.value(None, raw.value(), out),
        }
    }
}

/// A number in as few bytes as it can be said exactly.
fn float(number: f64, out: &mut Vec<u8>) {
    let single = number as f32;
    if f64::from(single) != number {
        out.push(0xfb);
        return out.extend_from_slice(&number.to_be_bytes());
    }
    match half(single) {
        Some(half) => {
            out.push(0xf9);
            out.extend_from_slice(&half.to_be_bytes());
        }
        None => {
            out.push(0xfa);
            out.extend_from_slice(&single.to_be_bytes());
        }
    }
}

/// The bits of a number in half precision, if that is exact.
fn half(number: f32) -> Option<u16> {
    let bits = number.to_bits();
    let sign = (bits >> 16 & 0x8000) as u16;
    if number == 0.0 {
        return Some(sign);
    }
    let exponent = (bits >> 23 & 0xff) as i32 - 127;
    let mantissa = bits & 0x7f_ffff;
    // How many of the 24 bits of the mantissa do not fit, and what is before those that do.
    let (lost, whole) = match exponent {
        -14..=15 => (13, (exponent + 15) as u32 * 0x400 + (mantissa >> 13)),
        -24..=-15 => {
            let lost = (-1 - exponent) as u32;
            (lost, (mantissa | 0x80_0000) >> lost)
        }
        _ => return None,
    };
    (mantissa.trailing_zeros() >= lost).then_some(sign | whole as u16)
}
