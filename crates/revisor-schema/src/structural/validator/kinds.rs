//! [`Kinds`]: which JSON types a schema accepts, and how it says that a value is of none of them.

use revisor_object::Value;

use super::super::value_ref::ValueRef;
use super::super::{JsonType, Structural};
use super::numbers::is_json_integer;

/// The types that a schema accepts. None at all accepts everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kinds {
    Any,
    One(JsonType),
    IntegerOrString,
}

/// A value is not of its type: what was wanted, and what it is.
pub(super) struct WrongKind<'c> {
    pub(super) wanted: &'c str,
    pub(super) found: &'static str,
}

impl Kinds {
    pub(super) fn of(schema: &Structural) -> Kinds {
        if schema.is_int_or_string { Kinds::IntegerOrString } else { Kinds::named(schema.kind) }
    }

    /// Those of the type that a schema names.
    pub(super) fn named(kind: Option<JsonType>) -> Kinds {
        kind.map_or(Kinds::Any, Kinds::One)
    }

    fn contains(self, kind: JsonType) -> bool {
        match self {
            Kinds::Any => false,
            Kinds::One(one) => one == kind,
            Kinds::IntegerOrString => matches!(kind, JsonType::Integer | JsonType::String),
        }
    }

    fn names(self) -> &'static str {
        match self {
            Kinds::Any => "",
            Kinds::One(kind) => kind.as_str(),
            Kinds::IntegerOrString => "integer,string",
        }
    }

    /// Whether types or a format are checked at all.
    pub(super) fn says_something(self, format: Option<&str>) -> bool {
        self != Kinds::Any || format.is_some()
    }

    /// Checks the type of a value, null among them. A schema with a format names it in place of its type, and lets lists
    /// pass for texts.
    pub(super) fn check<'c>(
        self,
        nullable: bool,
        format: Option<&'c str>,
        value: ValueRef<'_>,
    ) -> Result<(), WrongKind<'c>> {
        let (kind, data_format) = match value {
            ValueRef::Array(_) | ValueRef::Scalar(Value::Array(_)) => (JsonType::Array, ""),
            ValueRef::Object(_) | ValueRef::Scalar(Value::Object(_)) => (JsonType::Object, ""),
            ValueRef::Scalar(Value::Null | Value::Nothing) if self == Kinds::Any || nullable => return Ok(()),
            ValueRef::Scalar(Value::Null | Value::Nothing) => {
                return Err(WrongKind { wanted: self.names(), found: "null" });
            }
            ValueRef::Scalar(Value::Bool(_)) => (JsonType::Boolean, ""),
            ValueRef::Scalar(Value::Int(_)) => (JsonType::Integer, "int64"),
            ValueRef::Scalar(Value::Float(_)) => (JsonType::Number, "float64"),
            ValueRef::Scalar(Value::String(_)) => (JsonType::String, ""),
            ValueRef::Scalar(Value::Raw(raw)) => return self.check(nullable, format, ValueRef::from(raw.value())),
        };
        let accepts = self.contains(kind)
            || match value {
                ValueRef::Scalar(Value::Float(number)) => self.contains(JsonType::Integer) && is_json_integer(*number),
                ValueRef::Scalar(Value::Int(_)) => self.contains(JsonType::Number),
                _ => false,
            };
        if accepts {
            return Ok(());
        }
        if let Some(format) = format {
            let is_text = matches!(kind, JsonType::String | JsonType::Array);
            if !is_text {
                return Err(WrongKind { wanted: format, found: data_format });
            }
            if !self.contains(JsonType::Number) && !self.contains(JsonType::Integer) {
                return Ok(());
            }
        }
        if self == Kinds::Any {
            return Ok(());
        }
        Err(WrongKind { wanted: self.names(), found: kind.as_str() })
    }
}
