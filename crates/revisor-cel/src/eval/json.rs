//! How the values of an object are seen: [`Seen`], with the schema that says what they are, or without one.
//!
//! A schema turns texts with certain formats into timestamps, durations and bytes, and integers where numbers are
//! wanted into doubles. What it does not name cannot be reached.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use revisor_object::{Duration, Object, Value};
use revisor_schema::{Additional, JsonType, ListType, Precision, Structural, format_timestamp};
use time::{Date, Month, OffsetDateTime, Time};

use super::error::EvalError;
use super::functions::{parse_timestamp, quoted};
use super::list::{List, Order};
use super::map::Map;
use super::value::{CelValue, Text};

/// What is known of a value of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Seen<'a> {
    /// Nothing: it is what it looks like.
    Dynamic,
    /// What its schema says.
    Schema(&'a Structural),
    /// What its schema says, and that it is an object of the API.
    Resource(&'a Structural),
    /// That it is the metadata of an object of the API.
    Metadata,
    /// That it is text.
    Text,
}

impl<'a> CelValue<'a> {
    /// A value of an object, without a schema.
    pub fn dynamic(value: &'a Value) -> CelValue<'a> {
        match value {
            Value::Null | Value::Nothing => CelValue::Null,
            Value::Bool(truth) => CelValue::Bool(*truth),
            Value::Int(number) => CelValue::Int(*number),
            Value::Float(number) => CelValue::Double(*number),
            Value::String(text) => CelValue::String(Text::Borrowed(text)),
            Value::Array(elements) => CelValue::List(List::json(elements, Seen::Dynamic, Order::Plain)),
            Value::Object(object) => CelValue::object(object),
            Value::Raw(raw) => CelValue::dynamic(raw.value()),
        }
    }

    /// An object, without a schema.
    pub fn object(object: &'a Object) -> CelValue<'a> {
        CelValue::Map(Map::json(object, Seen::Dynamic))
    }

    /// A value of a custom resource, as its schema sees it. Fails if the value is not what the schema says, which
    /// validation reports in other words.
    pub fn with_schema(value: &'a Value, schema: &'a Structural) -> Result<CelValue<'a>, EvalError> {
        Seen::Schema(schema).read(value)
    }

    /// A whole custom resource, as its schema sees it: `apiVersion`, `kind`, `metadata.name` and
    /// `metadata.generateName` are there, whatever the schema says.
    pub fn resource(value: &'a Value, schema: &'a Structural) -> Result<CelValue<'a>, EvalError> {
        Seen::Resource(schema).read(value)
    }

    /// The value as objects hold it: what is borrowed from one is copied as it stands there, times and durations become
    /// texts. Fails for what objects cannot hold.
    pub fn to_json(&self) -> Result<Value, EvalError> {
        Ok(match self {
            CelValue::Null => Value::Null,
            CelValue::Bool(truth) => Value::Bool(*truth),
            CelValue::Int(number) => Value::Int(*number),
            CelValue::Uint(number) => i64::try_from(*number).map_or(Value::Float(*number as f64), Value::Int),
            CelValue::Double(number) if number.is_finite() => Value::Float(*number),
            CelValue::String(text) => Value::from(&**text),
            CelValue::Bytes(bytes) => Value::from(STANDARD.encode(&**bytes)),
            CelValue::Duration(duration) => Value::from(duration.to_string()),
            CelValue::Timestamp(time) => Value::from(format_timestamp(*time, Precision::Seconds)),
            CelValue::Preserved(value) => (*value).clone(),
            CelValue::Optional(Some(value)) => value.to_json()?,
            CelValue::List(list) => {
                Value::Array(list.iter().map(|item| item?.to_json()).collect::<Result<_, EvalError>>()?)
            }
            CelValue::Map(map) => match map.as_json() {
                Some((object, _)) => Value::Object(object.clone()),
                None => {
                    let mut object = Object::new();
                    for key in map.keys() {
                        let Some(name) = key.as_str() else { return Err(no_json(self)) };
                        if let Some(value) = map.get(&key)? {
                            object.insert(name, value.to_json()?);
                        }
                    }
                    Value::Object(object)
                }
            },
            CelValue::Structure(structure) => {
                let mut object = Object::new();
                for (name, value) in &structure.fields {
                    object.insert(name, value.to_json()?);
                }
                Value::Object(object)
            }
            CelValue::Double(_) | CelValue::Type(_) | CelValue::Optional(None) | CelValue::Opaque(_) => {
                return Err(no_json(self));
            }
        })
    }
}

fn no_json(value: &CelValue<'_>) -> EvalError {
    EvalError::failed(format!("{} cannot stand in an object", value.type_name()))
}

impl<'a> Seen<'a> {
    pub(crate) fn is_dynamic(self) -> bool {
        matches!(self, Seen::Dynamic)
    }

    /// Whether the value has fields, whose names are escaped, and not keys.
    pub(crate) fn has_fields(self) -> bool {
        match self {
            Seen::Dynamic | Seen::Text => false,
            Seen::Resource(_) | Seen::Metadata => true,
            Seen::Schema(schema) => !schema.properties.is_empty(),
        }
    }

    /// What is known of a member; `None` if there is none for expressions.
    pub(crate) fn member(self, name: &str) -> Option<Seen<'a>> {
        match self {
            Seen::Dynamic => Some(Seen::Dynamic),
            Seen::Text => None,
            Seen::Metadata => matches!(name, "name" | "generateName").then_some(Seen::Text),
            Seen::Resource(schema) if !describes_resource(schema) => match name {
                "apiVersion" | "kind" => Some(Seen::Text),
                "metadata" => Some(Seen::Metadata),
                name => schema.property(name).map(Seen::Schema),
            },
            Seen::Resource(schema) => schema.property(name).map(Seen::Schema),
            Seen::Schema(schema) if !schema.properties.is_empty() => schema.property(name).map(Seen::Schema),
            Seen::Schema(schema) => match &schema.additional {
                Some(Additional::Schema(member)) => Some(Seen::Schema(member)),
                _ => None,
            },
        }
    }

    /// The value that this is.
    pub(crate) fn read(self, value: &'a Value) -> Result<CelValue<'a>, EvalError> {
        let schema = match self {
            Seen::Dynamic => return Ok(CelValue::dynamic(value)),
            Seen::Text => return text(value, ""),
            Seen::Metadata => return object(value, self),
            Seen::Resource(schema) | Seen::Schema(schema) => schema,
        };
        if value.is_null() {
            return match schema.nullable {
                true => Ok(CelValue::Null),
                false => Err(EvalError::failed("invalid data, got null for schema with nullable=false")),
            };
        }
        if schema.is_int_or_string {
            return match value {
                Value::String(_) | Value::Int(_) => Ok(CelValue::dynamic(value)),
                _ => {
                    Err(EvalError::failed("invalid data, expected XIntOrString value to be either a string or integer"))
                }
            };
        }
        match schema.kind {
            Some(JsonType::Object) if schema.is_embedded_resource => object(value, Seen::Resource(schema)),
            Some(JsonType::Object) => object(value, self),
            Some(JsonType::Array) => list(value, schema),
            Some(JsonType::String) => text(value, schema.checks.as_ref().map_or("", |checks| &checks.format)),
            Some(JsonType::Number) => match value {
                Value::Int(number) => Ok(CelValue::Double(*number as f64)),
                Value::Float(number) => Ok(CelValue::Double(*number)),
                _ => Err(unexpected("float", value)),
            },
            Some(JsonType::Integer) => match value {
                Value::Int(number) => Ok(CelValue::Int(*number)),
                _ => Err(unexpected("int", value)),
            },
            Some(JsonType::Boolean) => match value {
                Value::Bool(truth) => Ok(CelValue::Bool(*truth)),
                _ => Err(unexpected("bool", value)),
            },
            None if schema.preserves_unknown_fields => Ok(CelValue::Preserved(value)),
            None => Err(EvalError::failed(
                "invalid type, expected object, array, number, integer, boolean or string, or no type with \
                 x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true, got ",
            )),
        }
    }
}

/// Whether a schema says of itself what every object of the API has.
fn describes_resource(schema: &Structural) -> bool {
    let is = |name: &str, kind| schema.property(name).is_some_and(|property| property.kind == Some(kind));
    is("kind", JsonType::String)
        && is("apiVersion", JsonType::String)
        && is("metadata", JsonType::Object)
        && schema.property("metadata").is_some_and(|metadata| !metadata.properties.is_empty())
}

fn object<'a>(value: &'a Value, seen: Seen<'a>) -> Result<CelValue<'a>, EvalError> {
    match value {
        Value::Object(object) => Ok(CelValue::Map(Map::json(object, seen))),
        _ => Err(EvalError::failed("invalid data, expected a map for the provided schema with type=object")),
    }
}

fn list<'a>(value: &'a Value, schema: &'a Structural) -> Result<CelValue<'a>, EvalError> {
    let Value::Array(elements) = value else {
        return Err(EvalError::failed("invalid data, expected an array for the provided schema with type=array"));
    };
    let Some(items) = &schema.items else {
        return Err(EvalError::failed("invalid array type, expected Items with a non-empty Schema"));
    };
    let order = match schema.list_type {
        Some(ListType::Set) => Order::Set,
        Some(ListType::Map) => Order::Map(&schema.list_map_keys),
        Some(ListType::Atomic) | None => Order::Atomic,
    };
    Ok(CelValue::List(List::json(elements, Seen::Schema(items), order)))
}

fn text<'a>(value: &'a Value, format: &str) -> Result<CelValue<'a>, EvalError> {
    let Value::String(text) = value else { return Err(unexpected("string", value)) };
    let invalid = |what: &str, why: String| EvalError::failed(format!("Invalid {what} {text}: {why}"));
    match format {
        "duration" => {
            let duration = parse_duration(text).map(CelValue::Duration);
            duration.ok_or_else(|| invalid("duration", format!("unable to parse {text} as duration")))
        }
        "date" => {
            let date = parse_date(text).map(CelValue::Timestamp);
            date.ok_or_else(|| invalid("date formatted string", layout_problem(text, &LAYOUT[..5])))
        }
        "date-time" => {
            let time = parse_date_time(text).map(CelValue::Timestamp);
            time.ok_or_else(|| invalid("date-time formatted string", layout_problem(text, &LAYOUT)))
        }
        "byte" => URL_SAFE.decode(text.as_bytes()).map(|bytes| CelValue::Bytes(bytes.into())).map_err(|_| {
            let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            let at = text.bytes().position(|byte| !known(byte)).unwrap_or(text.len());
            invalid("byte formatted string", format!("illegal base64 data at input byte {at}"))
        }),
        _ => Ok(CelValue::String(Text::Borrowed(text))),
    }
}

/// What a date and a time are made of, as messages have it, and the largest number that each can be.
const LAYOUT: [(&str, u32, &str); 11] = [
    ("2006", 9999, "year"),
    ("-", 0, ""),
    ("01", 12, "month"),
    ("-", 0, ""),
    ("02", 31, "day"),
    ("T", 0, ""),
    ("15", 23, "hour"),
    (":", 0, ""),
    ("04", 59, "minute"),
    (":", 0, ""),
    ("05", 59, "second"),
];

/// What keeps a text from being a time, and where.
fn layout_problem(text: &str, layout: &[(&str, u32, &str)]) -> String {
    let whole: String = layout.iter().map(|(part, ..)| *part).collect();
    let shown = quoted(text);
    let mut rest = text;
    for (part, most, name) in layout {
        let length = part.len();
        let number = rest.get(..length).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let fits = if *most == 0 { rest.starts_with(part) } else { number.is_some() };
        if !fits {
            let (rest, part) = (quoted(rest), quoted(part));
            return format!("parsing time {shown} as {}: cannot parse {rest} as {part}", quoted(&whole));
        }
        let number = number.and_then(|digits| digits.parse::<u32>().ok()).unwrap_or(0);
        if number > *most || (number == 0 && matches!(*name, "month" | "day")) {
            return format!("parsing time {shown}: {name} out of range");
        }
        rest = &rest[length..];
    }
    if rest.is_empty() {
        return format!("parsing time {shown}: day out of range");
    }
    format!("parsing time {shown}: extra text: {}", quoted(rest))
}

/// The units of a duration in words. The last name of each is enough of a beginning: `weeks` is `week`.
const UNITS: [(&[&str], i64); 8] = [
    (&["ns", "nano"], 1),
    (&["us", "µs", "micro"], 1_000),
    (&["ms", "milli"], 1_000_000),
    (&["s", "sec"], 1_000_000_000),
    (&["m", "min"], 60_000_000_000),
    (&["h", "hr", "hour"], 3_600_000_000_000),
    (&["d", "day"], 86_400_000_000_000),
    (&["w", "wk", "week"], 604_800_000_000_000),
];

/// A duration as schemas read it: what Go's durations look like, and beside them words such as `2 days`.
fn parse_duration(text: &str) -> Option<Duration> {
    if let Ok(duration) = text.parse::<Duration>() {
        return Some(duration);
    }
    let (mut nanos, mut found) = (0_i64, false);
    let mut rest = text;
    while let Some(start) = rest.find(|char: char| char.is_ascii_digit()) {
        let digits = &rest[start..];
        let end = digits.find(|char: char| !char.is_ascii_digit()).unwrap_or(digits.len());
        let words = digits[end..].trim_start_matches([' ', '\t', '\n', '\r', '\x0c']);
        let length = words.find(|char: char| !char.is_ascii_alphabetic() && char != 'µ').unwrap_or(words.len());
        let unit = words[..length].to_lowercase();
        rest = &words[length..];
        if unit.is_empty() {
            continue;
        }
        let count: i64 = digits[..end].parse().ok()?;
        for (names, size) in UNITS {
            let begins = names.last().is_some_and(|last| unit.starts_with(last));
            if begins || names.contains(&unit.as_str()) {
                found = true;
                nanos = nanos.wrapping_add(count.wrapping_mul(size));
            }
        }
    }
    found.then_some(Duration::from_nanos(nanos))
}

pub(crate) fn parse_date(text: &str) -> Option<OffsetDateTime> {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let number = |from: usize, to: usize| -> Option<i32> {
        let digits = text.get(from..to)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let month = Month::try_from(u8::try_from(number(5, 7)?).ok()?).ok()?;
    let date = Date::from_calendar_date(number(0, 4)?, month, u8::try_from(number(8, 10)?).ok()?).ok()?;
    Some(date.with_time(Time::MIDNIGHT).assume_utc())
}

/// A timestamp as schemas read it: RFC 3339, in UTC if it does not say where, and the beginning of time if empty.
pub(crate) fn parse_date_time(text: &str) -> Option<OffsetDateTime> {
    if text.is_empty() {
        return Some(OffsetDateTime::UNIX_EPOCH);
    }
    parse_timestamp(text).or_else(|| parse_timestamp(&format!("{text}Z")))
}

fn unexpected(expected: &str, value: &Value) -> EvalError {
    let found = value.go_type();
    EvalError::failed(format!("invalid data, expected {expected}, got {found}"))
}
