//! Reading what is well-formed. What JSON cannot say is refused; what it can is brought to the value that the JSON would
//! have been.
//!
//! As the original's decoder, this goes on behind what is wrong: the first fault in a map or list is told of, unless a
//! key comes twice or is unknown further on. So whoever reports a fault has passed the item that has it.

mod members;
mod untyped;

use std::collections::HashSet;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use compact_str::CompactString;
use revisor_object::{BadValue, Object, Value, text_of_bytes};

use self::members::Members;
use super::head::{
    ARRAY, BYTES, Cursor, FALSE, Head, MAP, NEGATIVE, NULL, NULL_BYTE, PRIMITIVE, TAG, TEXT, TRUE, UNDEFINED_BYTE,
    UNSIGNED, type_name_of,
};
use super::{CborError, CborMismatch, well_formed};
use crate::conform::{describe_base64, encode_base64, go_name, go_struct_name};
use crate::{Alternative, Field, Presence, Shape, StructId, Types};

/// The tag by which CBOR describes itself.
const ITSELF: u64 = 55_799;

/// What was read, and what is odd about it.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadCbor {
    /// The value. Like every value from outside it must still be made to [conform](Types::conform).
    pub value: Value,
    /// What is said of the first field that its type does not have. Such fields were dropped.
    pub unknown_field: Option<CborError>,
}

/// What an object says that it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClaimedType {
    /// Its kind, or nothing.
    pub kind: String,
    /// Its version, or nothing.
    pub api_version: String,
}

/// What an object says that it is (upstream: `Interpret`).
pub fn read_cbor_type(bytes: &[u8]) -> Result<ClaimedType, CborError> {
    well_formed::check(bytes)?;
    let types = Types::default();
    let mut reader = Reader::new(&types, bytes, false);
    let mut claimed = ClaimedType::default();
    reader.pass_itself()?;
    reader.check_tags()?;
    while reader.cursor.major()? == TAG {
        reader.cursor.head()?;
        reader.pass_itself()?;
    }
    if reader.cursor.major()? != MAP {
        reader.nothing_else("v1.TypeMeta", Some(NO_STRUCT))?;
        return Ok(claimed);
    }
    let members = Members {
        name: "v1.TypeMeta",
        of: |name: &str| matches!(name, "kind" | "apiVersion").then(|| name.to_owned()),
        read: |reader: &mut Reader<'_, '_>, name: &String| {
            let text = reader.value(&Shape::String, None)?;
            let text = text.as_str().unwrap_or_default().to_owned();
            *(if name == "kind" { &mut claimed.kind } else { &mut claimed.api_version }) = text;
            Ok(())
        },
    };
    reader.members(members)?;
    Ok(claimed)
}

/// A map of whatever there is, as configurations that are applied are read; nothing is one without members.
pub fn read_cbor_map(bytes: &[u8]) -> Result<Value, CborError> {
    well_formed::check(bytes)?;
    let (types, shape) = (Types::default(), Shape::Map(Box::new(Shape::Any)));
    Reader::new(&types, bytes, true).value(&shape, Some("map[string]interface {}"))
}

impl Types {
    /// Reads an object of type `id`, or a custom object, of whose type nothing is known here. Fields that the type does
    /// not have are dropped.
    pub fn read_cbor(&self, id: Option<StructId>, bytes: &[u8]) -> Result<Value, CborError> {
        well_formed::check(bytes)?;
        self.read_well_formed(id, bytes, false)
    }

    /// The same, and finds out which field is unknown.
    pub fn read_cbor_strictly(&self, id: Option<StructId>, bytes: &[u8]) -> Result<ReadCbor, CborError> {
        well_formed::check(bytes)?;
        match self.read_well_formed(id, bytes, true) {
            Ok(value) => Ok(ReadCbor { value, unknown_field: None }),
            Err(unknown @ CborError::UnknownField(_)) => {
                let value = self.read_well_formed(id, bytes, false)?;
                Ok(ReadCbor { value, unknown_field: Some(unknown) })
            }
            Err(error) => Err(error),
        }
    }

    fn read_well_formed(&self, id: Option<StructId>, bytes: &[u8], is_strict: bool) -> Result<Value, CborError> {
        let mut reader = Reader::new(self, bytes, is_strict);
        reader.is_untyped = id.is_none();
        let value = match id {
            Some(id) => reader.value(&Shape::Struct(id), None),
            None => reader.value(&Shape::Any, None),
        };
        let value = value?;
        reader.late.map_or(Ok(value), Err)
    }
}

/// What is added where a list stands for a struct.
const NO_STRUCT: &str = "cannot decode CBOR array to struct without toarray option";

/// How the byte strings in an item become texts.
#[derive(Debug, Clone, Copy)]
enum Expected {
    Base64Url,
    Base64,
    Base16,
}

struct Reader<'t, 'a> {
    types: &'t Types,
    cursor: Cursor<'a>,
    /// Whether a field that is unknown is a fault.
    is_strict: bool,
    /// Whether nothing is known of what is read: it is of a custom object, or any JSON.
    is_untyped: bool,
    /// How byte strings become texts, as the tags around them say.
    expected: Option<Expected>,
    /// What is wrong with JSON that is kept as its text: it is made from CBOR when all else has been read.
    late: Option<CborError>,
}

impl<'t, 'a> Reader<'t, 'a> {
    fn new(types: &'t Types, bytes: &'a [u8], is_strict: bool) -> Reader<'t, 'a> {
        let cursor = Cursor::new(bytes);
        Reader { types, cursor, is_strict, is_untyped: true, expected: None, late: None }
    }

    /// Passes the tags by which CBOR describes itself.
    fn pass_itself(&mut self) -> Result<(), CborError> {
        while self.cursor.major()? == TAG {
            let before = self.cursor;
            if self.cursor.head()?.number != ITSELF {
                self.cursor = before;
                break;
            }
        }
        Ok(())
    }

    /// Refuses tags before what they cannot be said of (upstream: `validBuiltinTag`).
    fn check_tags(&mut self) -> Result<(), CborError> {
        let before = self.cursor;
        while self.cursor.major()? == TAG {
            let tag = self.cursor.head()?.number;
            let first = self.cursor.peek()?;
            let wanted = match (tag, first >> 5) {
                (0, TEXT) | (1, UNSIGNED | NEGATIVE) => continue,
                (0, _) => "text string",
                (1, _) if matches!(first, 0xf9..=0xfb) => continue,
                (1, _) => "integer or floating-point number",
                _ => continue,
            };
            self.cursor.skip()?;
            let found = type_name_of(first);
            return Err(CborError::Other(format!("cbor: tag number {tag} must be followed by {wanted}, got {found}")));
        }
        self.cursor = before;
        Ok(())
    }

    /// A value of a shape; `go` is the original's name for its type, where the shape does not tell.
    fn value(&mut self, shape: &Shape, go: Option<&str>) -> Result<Value, CborError> {
        self.pass_itself()?;
        self.check_tags()?;
        match shape {
            Shape::Any if self.is_untyped => return self.any(),
            Shape::Any => return self.plain(),
            Shape::Raw => return self.raw(),
            Shape::Duration => return self.duration(),
            // They read themselves, from bytes of which no tag around them tells anything.
            Shape::Time | Shape::MicroTime | Shape::Quantity => {
                if self.cursor.peek()? == UNDEFINED_BYTE {
                    return self.cursor.skip().map(|()| Value::Null);
                }
                return self.apart(|reader| reader.value(&Shape::String, None));
            }
            Shape::IntOrString => return self.apart(Reader::int_or_string),
            Shape::Either(alternative, id) => return self.apart(|reader| reader.either(*alternative, *id)),
            _ => {}
        }
        if self.cursor.major()? == TAG {
            let tag = self.cursor.head()?.number;
            return self.tagged(tag, |reader| reader.value(shape, go));
        }
        let first = self.cursor.peek()?;
        match (shape, first >> 5) {
            (Shape::String, TEXT) => self.text().map(Value::from),
            (Shape::String, BYTES) => self.byte_text().map(Value::from),
            (Shape::Bytes, BYTES) => self.byte_string(),
            (Shape::Bytes, ARRAY) => self.bytes_one_by_one(),
            (Shape::Int32 | Shape::Int64 | Shape::Double, UNSIGNED | NEGATIVE) => self.number(shape, go),
            (Shape::Double, _) if matches!(first, 0xf9..=0xfb) => {
                Ok(Value::Float(self.cursor.head()?.float().unwrap_or_default()))
            }
            (Shape::Bool, _) if matches!(first, 0xf4 | 0xf5) => {
                self.cursor.head()?;
                Ok(Value::Bool(first == 0xf5))
            }
            (Shape::List(element), ARRAY) => self.list(element, go),
            (Shape::Map(element), MAP) => self.map(element, go),
            (Shape::Struct(id), MAP) => self.structure(*id),
            (Shape::Struct(id), _) => self.nothing_else(&go_struct_name(&self.types.get(*id).name), Some(NO_STRUCT)),
            _ => {
                let wanted = go.map_or_else(|| go_name(self.types, shape), str::to_owned);
                self.nothing_else(&wanted, None)
            }
        }
    }

    /// Reads something that tags around it tell nothing of.
    fn apart<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        let before = (self.is_strict, self.is_untyped, self.expected);
        (self.is_strict, self.expected) = (true, None);
        let read = read(self);
        (self.is_strict, self.is_untyped, self.expected) = before;
        read
    }

    /// Any JSON within an object that has a type.
    fn plain(&mut self) -> Result<Value, CborError> {
        self.apart(|reader| {
            reader.is_untyped = true;
            reader.any()
        })
    }

    /// Nothing is nothing whatever is wanted; all else is not what is wanted.
    fn nothing_else(&mut self, wanted: &str, why_no_list: Option<&str>) -> Result<Value, CborError> {
        let head = self.peek_head()?;
        let mismatch = |why: Option<String>| mismatch(head.type_name(), wanted, why);
        // A text must be one, whatever is wanted.
        if head.major == TEXT {
            self.text()?;
            return Err(mismatch(None));
        }
        self.cursor.skip()?;
        match head.major {
            NEGATIVE if head.number > i64::MAX as u64 => Err(mismatch(Some(overflow(head, "Go's int64")))),
            ARRAY => Err(mismatch(why_no_list.map(str::to_owned))),
            PRIMITIVE if head.float().is_none() && head.info == NULL => Ok(Value::Null),
            PRIMITIVE if head.float().is_none() && !matches!(head.info, FALSE | TRUE) => Err(unrecognized(head)),
            _ => Err(mismatch(None)),
        }
    }

    fn peek_head(&self) -> Result<Head, CborError> {
        let mut cursor = self.cursor;
        cursor.head()
    }

    fn text(&mut self) -> Result<String, CborError> {
        let head = self.cursor.head()?;
        self.cursor.text(head).map(|text| text_of_bytes(text.as_bytes()).into_owned())
    }

    /// A byte string where a text is wanted.
    fn byte_text(&mut self) -> Result<String, CborError> {
        let head = self.cursor.head()?;
        let bytes = self.cursor.string(head)?;
        Ok(match self.expected {
            None => text_of_bytes(&bytes).into_owned(),
            Some(Expected::Base64) => encode_base64(&bytes),
            Some(Expected::Base64Url) => URL_SAFE_NO_PAD.encode(&bytes),
            Some(Expected::Base16) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        })
    }

    /// A byte string where bytes are wanted: base64, unless a tag says that they are what they are.
    fn byte_string(&mut self) -> Result<Value, CborError> {
        let head = self.cursor.head()?;
        let bytes = self.cursor.string(head)?;
        if self.expected.is_some() {
            return Ok(Value::from(encode_base64(&bytes)));
        }
        let text: String =
            text_of_bytes(&bytes).chars().filter(|character| !matches!(character, '\n' | '\r')).collect();
        match crate::conform::BASE64.decode(&text) {
            Ok(bytes) => Ok(Value::from(encode_base64(&bytes))),
            Err(error) => {
                let problem = describe_base64(&error, &text);
                Err(CborError::Other(format!("cbor: failed to decode base64 from byte string: {problem}")))
            }
        }
    }

    fn bytes_one_by_one(&mut self) -> Result<Value, CborError> {
        let mut left = self.cursor.head()?.count();
        let (mut bytes, mut fault) = (Vec::new(), None);
        while self.cursor.has_next(&mut left)? {
            match self.number(&Shape::Int32, Some("uint8")) {
                Ok(Value::Int(byte)) => bytes.push(byte as u8),
                Ok(_) => bytes.push(0),
                Err(error) => _ = fault.get_or_insert(error),
            }
        }
        fault.map_or_else(|| Ok(Value::from(encode_base64(&bytes))), Err)
    }

    fn number(&mut self, shape: &Shape, go: Option<&str>) -> Result<Value, CborError> {
        let (head, default) = (self.peek_head()?, go_name(self.types, shape));
        let wanted = go.unwrap_or(&default);
        if !matches!(head.major, UNSIGNED | NEGATIVE) {
            return self.nothing_else(wanted, None);
        }
        self.cursor.head()?;
        let Ok(size) = i64::try_from(head.number) else {
            return match (shape, head.major) {
                (Shape::Double, UNSIGNED) => Ok(Value::Float(head.number as f64)),
                (_, UNSIGNED) => Err(mismatch(head.type_name(), wanted, Some(overflow(head, wanted)))),
                _ => Err(mismatch(head.type_name(), wanted, Some(overflow(head, "Go's int64")))),
            };
        };
        let number = if head.major == NEGATIVE { !size } else { size };
        let fits = match (wanted, shape) {
            ("uint8", _) if number < 0 => return Err(mismatch(head.type_name(), wanted, None)),
            ("uint8", _) => u8::try_from(number).is_ok(),
            (_, Shape::Int32) => i32::try_from(number).is_ok(),
            _ => true,
        };
        if fits {
            Ok(Value::Int(number))
        } else {
            Err(mismatch(head.type_name(), wanted, Some(overflow(head, wanted))))
        }
    }

    fn list(&mut self, element: &Shape, go: Option<&str>) -> Result<Value, CborError> {
        let go = go.and_then(|go| go.strip_prefix("[]"));
        let mut left = self.cursor.head()?.count();
        let (mut items, mut fault) = (Vec::new(), None);
        while self.cursor.has_next(&mut left)? {
            match self.element(element, go) {
                Ok(item) if fault.is_none() => items.push(item),
                Ok(_) => {}
                Err(error) => _ = fault.get_or_insert(error),
            }
        }
        fault.map_or(Ok(Value::Array(items)), Err)
    }

    /// An element of a list or map. What can be anything nests deepest, and takes the shortest way.
    fn element(&mut self, shape: &Shape, go: Option<&str>) -> Result<Value, CborError> {
        if self.is_untyped && *shape == Shape::Any { self.any() } else { self.value(shape, go) }
    }

    fn map(&mut self, element: &Shape, go: Option<&str>) -> Result<Value, CborError> {
        let go = go.and_then(|go| Some(go.strip_prefix("map[")?.split_once(']')?.1));
        let mut left = self.cursor.head()?.count();
        let mut members: Vec<(CompactString, Value)> = Vec::new();
        let mut names: HashSet<CompactString> = HashSet::new();
        let (mut fault, mut at) = (None, 0);
        while self.cursor.has_next(&mut left)? {
            // Nothing is the name that has no letters.
            let name = match self.value(&Shape::String, None) {
                Ok(name) => CompactString::from(name.as_str().unwrap_or_default()),
                Err(error) => {
                    fault.get_or_insert(error);
                    self.cursor.skip()?;
                    at += 1;
                    continue;
                }
            };
            match self.element(element, go) {
                Ok(_) if !names.insert(name.clone()) => {
                    self.pass_rest(&mut left)?;
                    return Err(CborError::Duplicate(BadValue::from(name.as_str()).to_string(), at));
                }
                Ok(value) => members.push((name, value)),
                Err(error) => _ = fault.get_or_insert(error),
            }
            at += 1;
        }
        fault.map_or_else(|| Ok(Value::Object(Object::from_members(members))), Err)
    }

    /// Passes the members that are left of a map.
    fn pass_rest(&mut self, left: &mut Option<u64>) -> Result<(), CborError> {
        while self.cursor.has_next(left)? {
            self.cursor.skip()?;
            self.cursor.skip()?;
        }
        Ok(())
    }

    fn structure(&mut self, id: StructId) -> Result<Value, CborError> {
        let types = self.types;
        let structure = types.get(id);
        let name = go_struct_name(&structure.name);
        let mut members: Vec<(CompactString, Value)> = Vec::new();
        self.members(Members {
            name: &name,
            of: |name: &str| structure.field(name),
            read: |reader: &mut Reader<'_, '_>, field: &&Field| {
                // A pointer may be undefined, which is nothing.
                if field.presence == Presence::Given && matches!(reader.cursor.peek()?, NULL_BYTE | UNDEFINED_BYTE) {
                    return reader.cursor.skip();
                }
                let value = reader.value(&field.shape, field.go_type.as_deref())?;
                members.push((CompactString::from(&*field.name), value));
                Ok(())
            },
        })?;
        Ok(Value::Object(Object::from_members(members)))
    }

    /// What is behind a tag.
    fn tagged(
        &mut self,
        tag: u64,
        read: impl FnOnce(&mut Self) -> Result<Value, CborError>,
    ) -> Result<Value, CborError> {
        let before = self.expected;
        match tag {
            21 => self.expected = Some(Expected::Base64Url),
            22 => self.expected = Some(Expected::Base64),
            23 => self.expected = Some(Expected::Base16),
            _ => {}
        }
        let value = read(self);
        self.expected = before;
        value
    }

    /// JSON that is kept as its text.
    fn raw(&mut self) -> Result<Value, CborError> {
        match self.plain() {
            Ok(value) => Ok(value),
            Err(error) => {
                self.late.get_or_insert_with(|| {
                    CborError::Other(format!(
                        "failed to transcode RawExtension to JSON: failed to parse RawExtension bytes as CBOR: {error}"
                    ))
                });
                Ok(Value::Null)
            }
        }
    }

    /// A span of time, which is read from JSON.
    fn duration(&mut self) -> Result<Value, CborError> {
        match self.plain() {
            Ok(value @ (Value::String(_) | Value::Null)) => Ok(value),
            Ok(other) => {
                let found = other.type_name();
                Err(CborError::Other(format!("json: cannot unmarshal {found} into Go value of type string")))
            }
            Err(error) => Err(CborError::Other(format!("cbor: cannot transcode from cbor to json: {error}"))),
        }
    }

    /// A text, or else a number.
    fn int_or_string(&mut self) -> Result<Value, CborError> {
        let before = self.cursor;
        self.value(&Shape::String, None).or_else(|_| {
            self.cursor = before;
            self.value(&Shape::Int32, None)
        })
    }

    /// An object of a type or what may stand in its place. Where the original reads neither, it reads nothing.
    fn either(&mut self, alternative: Alternative, id: StructId) -> Result<Value, CborError> {
        let first = self.cursor.peek()?;
        match (alternative, first >> 5) {
            (_, MAP) => self.value(&Shape::Struct(id), None),
            (Alternative::Bool, _) if matches!(first, 0xf4 | 0xf5) => self.value(&Shape::Bool, None),
            (Alternative::Bool, _) => {
                self.cursor.skip()?;
                Err(CborError::Other("boolean or JSON schema expected".to_owned()))
            }
            (Alternative::List, ARRAY) => self.value(&Shape::List(Box::new(Shape::Struct(id))), None),
            (Alternative::Texts, ARRAY) => self.value(&Shape::List(Box::new(Shape::String)), None),
            _ => self.cursor.skip().map(|()| Value::Null),
        }
    }
}

fn mismatch(found: &'static str, wanted: &str, why: Option<String>) -> CborError {
    CborError::Mismatch(Box::new(CborMismatch { found, field: None, wanted: wanted.to_owned(), why }))
}

/// What is said of an integer that is beyond its type.
fn overflow(head: Head, of: &str) -> String {
    let number = i128::from(head.number);
    format!("{} overflows {of}", if head.major == NEGATIVE { -1 - number } else { number })
}

fn unrecognized(head: Head) -> CborError {
    CborError::Unacceptable("primitives", format!("simple value {} is not recognized", head.number))
}
