//! [`CelValue`]: what expressions are about while they are evaluated.
//!
//! Values that come with an object are borrowed from it, with the schema that says how to see them (`json.rs`); what an
//! expression makes is owned and shared. So a rule that looks at a large object costs what it looks at.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use revisor_object::{Duration, Value};
use time::OffsetDateTime;

use super::list::List;
use super::map::Map;
use super::opaque::Opaque;
use crate::types::{OPTIONAL, Type};

/// A value of an expression.
#[derive(Debug, Clone)]
pub enum CelValue<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A signed number.
    Int(i64),
    /// An unsigned number.
    Uint(u64),
    /// A floating point number.
    Double(f64),
    /// Text.
    String(Text<'a>),
    /// Bytes.
    Bytes(Blob<'a>),
    /// A list.
    List(List<'a>),
    /// A map, or an object with fields.
    Map(Map<'a>),
    /// A point in time, with the offset from UTC that it was written with.
    Timestamp(OffsetDateTime),
    /// A length of time.
    Duration(Duration),
    /// A type.
    Type(Type),
    /// A value that may be absent.
    Optional(Option<Arc<CelValue<'a>>>),
    /// A value that only functions of a library can look into.
    Opaque(Opaque<'a>),
    /// An object that is written out: `Name{field: value}`.
    Structure(Arc<Structure<'a>>),
    /// Something that the schema keeps without saying what it is; it can only be compared.
    Preserved(&'a Value),
}

/// An object that an expression writes out.
#[derive(Debug)]
pub struct Structure<'a> {
    /// The name of its type.
    pub name: Arc<str>,
    /// The fields that it has, each once.
    pub fields: Vec<(Arc<str>, CelValue<'a>)>,
}

impl<'a> Structure<'a> {
    /// A field, if it is there.
    pub fn field(&self, name: &str) -> Option<&CelValue<'a>> {
        self.fields.iter().find(|(field, _)| **field == *name).map(|(_, value)| value)
    }
}

/// Text, borrowed from an object or an expression, or made by an expression.
#[derive(Clone)]
pub enum Text<'a> {
    /// From elsewhere.
    Borrowed(&'a str),
    /// Made.
    Owned(Arc<str>),
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Text::Borrowed(text) => text,
            Text::Owned(text) => text,
        }
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Text<'a> {
        Text::Borrowed(text)
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Text::Owned(text.into())
    }
}

/// Bytes, borrowed from an expression or made by one.
#[derive(Clone)]
pub enum Blob<'a> {
    /// From elsewhere.
    Borrowed(&'a [u8]),
    /// Made.
    Owned(Arc<[u8]>),
}

impl Deref for Blob<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Blob::Borrowed(bytes) => bytes,
            Blob::Owned(bytes) => bytes,
        }
    }
}

impl fmt::Debug for Blob<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl From<Vec<u8>> for Blob<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Blob::Owned(bytes.into())
    }
}

impl<'a> CelValue<'a> {
    /// Text that an expression made.
    pub fn text(text: impl Into<String>) -> CelValue<'a> {
        CelValue::String(text.into().into())
    }

    /// A list that an expression made.
    pub fn list(elements: Vec<CelValue<'a>>) -> CelValue<'a> {
        CelValue::List(List::made(elements))
    }

    /// An optional with a value.
    pub fn some(value: CelValue<'a>) -> CelValue<'a> {
        CelValue::Optional(Some(Arc::new(value)))
    }

    /// An optional without one.
    pub const fn none() -> CelValue<'a> {
        CelValue::Optional(None)
    }

    /// The truth, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            CelValue::Bool(truth) => Some(*truth),
            _ => None,
        }
    }

    /// The text, if it is text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            CelValue::String(text) => Some(text),
            _ => None,
        }
    }

    /// The type, without what it is made of.
    pub fn kind(&self) -> Type {
        match self {
            CelValue::Null => Type::Null,
            CelValue::Bool(_) => Type::Bool,
            CelValue::Int(_) => Type::Int,
            CelValue::Uint(_) => Type::Uint,
            CelValue::Double(_) => Type::Double,
            CelValue::String(_) => Type::String,
            CelValue::Bytes(_) => Type::Bytes,
            CelValue::List(_) => Type::list(Type::Dyn),
            CelValue::Map(_) => Type::map(Type::Dyn, Type::Dyn),
            CelValue::Timestamp(_) => Type::Timestamp,
            CelValue::Duration(_) => Type::Duration,
            CelValue::Type(_) => Type::type_of(Type::Dyn),
            CelValue::Optional(_) => Type::opaque(OPTIONAL, vec![]),
            CelValue::Opaque(opaque) => opaque.kind(),
            CelValue::Structure(structure) => Type::Object(structure.name.clone()),
            CelValue::Preserved(_) => Type::object("unknown"),
        }
    }

    /// The name of the type, as messages have it.
    pub fn type_name(&self) -> &str {
        match self {
            CelValue::Null => "null_type",
            CelValue::Bool(_) => "bool",
            CelValue::Int(_) => "int",
            CelValue::Uint(_) => "uint",
            CelValue::Double(_) => "double",
            CelValue::String(_) => "string",
            CelValue::Bytes(_) => "bytes",
            CelValue::List(_) => "list",
            CelValue::Map(_) => "map",
            CelValue::Timestamp(_) => "google.protobuf.Timestamp",
            CelValue::Duration(_) => "google.protobuf.Duration",
            CelValue::Type(_) => "type",
            CelValue::Optional(_) => OPTIONAL,
            CelValue::Opaque(opaque) => opaque.type_name(),
            CelValue::Structure(structure) => &structure.name,
            CelValue::Preserved(_) => "unknown",
        }
    }

    /// How large the value counts when costs are reckoned.
    pub(crate) fn cost_size(&self) -> u64 {
        let size = match self {
            CelValue::String(text) => text.chars().count(),
            CelValue::Bytes(bytes) => bytes.len(),
            CelValue::List(list) => list.len(),
            CelValue::Map(map) => map.len(),
            CelValue::Opaque(opaque) => opaque.cost_size(),
            CelValue::Optional(Some(value)) => return value.cost_size(),
            _ => 1,
        };
        size as u64
    }
}

impl From<bool> for CelValue<'_> {
    fn from(truth: bool) -> Self {
        CelValue::Bool(truth)
    }
}

impl From<i64> for CelValue<'_> {
    fn from(number: i64) -> Self {
        CelValue::Int(number)
    }
}
