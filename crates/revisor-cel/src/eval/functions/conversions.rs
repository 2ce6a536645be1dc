//! Conversions between types, and how values are written as text.

use std::borrow::Cow;

use super::time::{format_timestamp, parse_timestamp};
use super::{Scope, mismatch};
use crate::eval::error::EvalError;
use crate::eval::opaque::Opaque;
use crate::eval::value::{Blob, CelValue};
use crate::types::Type;

use revisor_object::Duration;
use time::OffsetDateTime;

type Outcome<'a> = Result<CelValue<'a>, EvalError>;

/// The first and the last second that a timestamp can be.
pub(crate) const TIMESTAMP_SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

fn take<'a>(args: &mut [CelValue<'a>]) -> CelValue<'a> {
    args.first_mut().map_or(CelValue::Null, |arg| std::mem::replace(arg, CelValue::Null))
}

fn unreadable<'a>(from: &str, to: &str) -> Outcome<'a> {
    Err(EvalError::failed(format!("type conversion error from '{from}' to '{to}'")))
}

pub(super) fn size<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let size = match args {
        [CelValue::String(text)] => text.chars().count(),
        [CelValue::Bytes(bytes)] => bytes.len(),
        [CelValue::List(list)] => list.len(),
        [CelValue::Map(map)] => map.len(),
        _ => return Err(EvalError::failed("no such overload: size")),
    };
    Ok(CelValue::Int(size as i64))
}

pub(super) fn to_dyn<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    Ok(take(args))
}

pub(super) fn to_type<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    Ok(CelValue::Type(take(args).kind()))
}

pub(super) fn to_bool<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    match args {
        [CelValue::Bool(truth)] => Ok(CelValue::Bool(*truth)),
        [CelValue::String(text)] => match &**text {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(CelValue::Bool(true)),
            "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(CelValue::Bool(false)),
            _ => unreadable("string", "bool"),
        },
        _ => mismatch(),
    }
}

pub(super) fn to_bytes<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    match args {
        [CelValue::Bytes(_)] => Ok(take(args)),
        [CelValue::String(text)] => Ok(CelValue::Bytes(Blob::from(text.as_bytes().to_vec()))),
        _ => mismatch(),
    }
}

pub(super) fn to_double<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    Ok(CelValue::Double(match args {
        [CelValue::Double(number)] => *number,
        [CelValue::Int(number)] => *number as f64,
        [CelValue::Uint(number)] => *number as f64,
        [CelValue::String(text)] => match without_underscores(text).parse::<f64>() {
            // What overflows is no number, unlike what says that it is infinite.
            Ok(number) if number.is_finite() || text.contains(['n', 'N']) => number,
            _ => return unreadable("string", "double"),
        },
        _ => return mismatch(),
    }))
}

/// A number without the underscores that may stand between its digits.
fn without_underscores(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let between = |(at, byte): (usize, &u8)| *byte != b'_' || (at > 0 && digit(at - 1) && digit(at + 1));
    if text.contains('_') && bytes.iter().enumerate().all(between) {
        return Cow::Owned(text.replace('_', ""));
    }
    Cow::Borrowed(text)
}

pub(super) fn to_int<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let overflow = || EvalError::failed("integer overflow");
    Ok(CelValue::Int(match args {
        [CelValue::Int(number)] => *number,
        [CelValue::Uint(number)] => i64::try_from(*number).map_err(|_| overflow())?,
        // Both ends are excluded: the upper one is not an integer of 64 bits, and the lower one goes with it.
        [CelValue::Double(number)] if *number > i64::MIN as f64 && *number < i64::MAX as f64 => *number as i64,
        [CelValue::Double(_)] => return Err(overflow()),
        [CelValue::Duration(duration)] => duration.nanos(),
        [CelValue::Timestamp(time)] => time.unix_timestamp(),
        [CelValue::String(text)] => match text.parse() {
            Ok(number) => number,
            Err(_) => return unreadable("string", "int"),
        },
        _ => return mismatch(),
    }))
}

pub(super) fn to_uint<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let overflow = || EvalError::failed("unsigned integer overflow");
    Ok(CelValue::Uint(match args {
        [CelValue::Uint(number)] => *number,
        [CelValue::Int(number)] => u64::try_from(*number).map_err(|_| overflow())?,
        [CelValue::Double(number)] if *number >= 0.0 && *number < u64::MAX as f64 => *number as u64,
        [CelValue::Double(_)] => return Err(overflow()),
        [CelValue::String(text)] => match text.parse() {
            Ok(number) if !text.starts_with('+') => number,
            _ => return unreadable("string", "uint"),
        },
        _ => return mismatch(),
    }))
}

pub(super) fn to_duration<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    match args {
        [CelValue::Duration(duration)] => Ok(CelValue::Duration(*duration)),
        [CelValue::String(text)] => match text.parse::<Duration>() {
            Ok(duration) => Ok(CelValue::Duration(duration)),
            Err(_) => unreadable("string", "google.protobuf.Duration"),
        },
        [CelValue::Int(_)] => unreadable("int", "google.protobuf.Duration"),
        _ => mismatch(),
    }
}

pub(super) fn to_timestamp<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    let overflow = || EvalError::failed("timestamp overflow");
    match args {
        [CelValue::Timestamp(time)] => Ok(CelValue::Timestamp(*time)),
        [CelValue::Int(seconds)] if TIMESTAMP_SECONDS.contains(seconds) => {
            OffsetDateTime::from_unix_timestamp(*seconds).map(CelValue::Timestamp).map_err(|_| overflow())
        }
        [CelValue::Int(_)] => Err(overflow()),
        [CelValue::String(text)] => match parse_timestamp(text) {
            Some(time) if TIMESTAMP_SECONDS.contains(&time.unix_timestamp()) => Ok(CelValue::Timestamp(time)),
            Some(_) => Err(overflow()),
            None => unreadable("string", "google.protobuf.Timestamp"),
        },
        _ => mismatch(),
    }
}

pub(super) fn to_string<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Outcome<'a> {
    match args {
        [CelValue::String(_)] => Ok(take(args)),
        [value] => match text_of(value) {
            Some(text) => text.map(CelValue::text),
            None => mismatch(),
        },
        _ => mismatch(),
    }
}

/// A value as text, as `string()` gives it; `None` if there is no such conversion.
pub(super) fn text_of(value: &CelValue<'_>) -> Option<Result<String, EvalError>> {
    Some(Ok(match value {
        CelValue::String(text) => text.to_string(),
        CelValue::Bool(truth) => truth.to_string(),
        CelValue::Int(number) => number.to_string(),
        CelValue::Uint(number) => number.to_string(),
        CelValue::Double(number) => double_text(*number),
        CelValue::Duration(duration) => duration_text(*duration),
        CelValue::Timestamp(time) => format_timestamp(*time),
        CelValue::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => return Some(Err(EvalError::failed("invalid UTF-8 in bytes, cannot convert to string"))),
        },
        CelValue::Opaque(Opaque::Ip(ip)) => ip.to_string(),
        CelValue::Opaque(Opaque::Cidr(cidr)) => format!("{}/{}", cidr.addr(), cidr.prefix()),
        _ => return None,
    }))
}

/// A duration in seconds: `1.5s`.
pub(super) fn duration_text(duration: Duration) -> String {
    let nanos = duration.nanos();
    // Whole seconds and the rest are added as the original does, so that the same digits come out.
    let seconds = (nanos / 1_000_000_000) as f64 + (nanos % 1_000_000_000) as f64 / 1e9;
    format!("{seconds}s")
}

/// A number as Go's `%g` writes it: in as few digits as say which one it is, with an exponent if it is large or small.
pub(crate) fn double_text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf".to_owned() } else { "-Inf".to_owned() };
    }
    let scientific = format!("{number:e}");
    let parts = scientific.split_once('e').and_then(|(digits, exponent)| Some((digits, exponent.parse::<i32>().ok()?)));
    match parts {
        Some((digits, exponent)) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
        _ => format!("{number}"),
    }
}

/// A value as messages about it have it.
pub(crate) fn display(value: &CelValue<'_>) -> String {
    match value {
        CelValue::Null => "NULL_VALUE".to_owned(),
        CelValue::Double(number) => double_text(*number),
        CelValue::List(list) => {
            let elements: Vec<String> =
                list.iter().map(|element| element.map_or_else(|error| error.to_string(), |e| display(&e))).collect();
            format!("[{}]", elements.join(", "))
        }
        CelValue::Map(map) => {
            let entry = |key: &CelValue<'_>| {
                let value = map.field(&display(key)).ok().flatten();
                format!("{}: {}", display(key), value.map_or_else(String::new, |value| display(&value)))
            };
            let entries: Vec<String> = map.keys().iter().map(entry).collect();
            format!("{{{}}}", entries.join(", "))
        }
        CelValue::Type(kind) => type_text(kind),
        CelValue::Optional(Some(held)) => format!("optional({})", display(held)),
        CelValue::Optional(None) => "optional.none()".to_owned(),
        value => match text_of(value) {
            Some(Ok(text)) => text,
            _ => value.type_name().to_owned(),
        },
    }
}

pub(super) fn type_text(kind: &Type) -> String {
    kind.runtime_name().to_owned()
}
