//! [`ValueRef`]: a value that is only looked at.
//!
//! The server holds whole objects as [`Object`]s and what is in them as [`Value`]s; this is both.

use revisor_object::{BadValue, Object, Value};

/// A value that is only looked at.
#[derive(Debug, Clone, Copy)]
pub enum ValueRef<'v> {
    /// Null, a boolean, a number or a text.
    Scalar(&'v Value),
    /// An array.
    Array(&'v [Value]),
    /// An object.
    Object(&'v Object),
}

impl<'v> ValueRef<'v> {
    /// The object, if it is one.
    pub fn as_object(self) -> Option<&'v Object> {
        match self {
            ValueRef::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The elements, if it is an array.
    pub fn as_array(self) -> Option<&'v [Value]> {
        match self {
            ValueRef::Array(items) => Some(items),
            _ => None,
        }
    }

    pub(super) fn is_null(self) -> bool {
        matches!(self, ValueRef::Scalar(Value::Null))
    }

    /// As errors show it.
    pub(super) fn quote(self) -> BadValue {
        match self {
            ValueRef::Scalar(Value::Float(number)) => BadValue::from(*number),
            ValueRef::Scalar(value) => BadValue::of(value),
            ValueRef::Array(items) => BadValue::of(&items),
            ValueRef::Object(object) => BadValue::of(object),
        }
    }
}

impl PartialEq for ValueRef<'_> {
    fn eq(&self, other: &ValueRef<'_>) -> bool {
        match (self, other) {
            (ValueRef::Scalar(one), ValueRef::Scalar(two)) => one == two,
            (ValueRef::Array(one), ValueRef::Array(two)) => one == two,
            (ValueRef::Object(one), ValueRef::Object(two)) => one == two,
            _ => false,
        }
    }
}

impl<'v> From<&'v Value> for ValueRef<'v> {
    fn from(value: &'v Value) -> ValueRef<'v> {
        match value.plain() {
            Value::Array(items) => ValueRef::Array(items),
            Value::Object(object) => ValueRef::Object(object),
            scalar => ValueRef::Scalar(scalar),
        }
    }
}

impl<'v> From<&'v Object> for ValueRef<'v> {
    fn from(object: &'v Object) -> ValueRef<'v> {
        ValueRef::Object(object)
    }
}
