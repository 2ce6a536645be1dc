//! `format`: texts with clauses such as `%d` in them.

use super::conversions::{text_of, type_text};
use super::{Scope, double_text, mismatch};
use crate::eval::error::EvalError;
use crate::eval::list::List;
use crate::eval::value::CelValue;

type Text = Result<String, EvalError>;

/// How many digits follow the point unless a clause says otherwise.
const PRECISION: usize = 6;

/// The most digits after the point that are given; nothing has more that mean anything.
const LARGEST_PRECISION: usize = 1000;

pub(super) fn format<'a>(scope: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Result<CelValue<'a>, EvalError> {
    let [CelValue::String(format), CelValue::List(list)] = args else { return mismatch() };
    let mut out = String::with_capacity(format.len());
    let mut rest: &str = format;
    let mut used = 0;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let Some(arg) = list.get(used) else {
            return Err(EvalError::failed(format!("index {used} out of range")));
        };
        used += 1;
        if rest.is_empty() {
            return Err(EvalError::failed("unexpected end of string"));
        }
        let (clause, after) = clause(rest)
            .map_err(|problem| EvalError::failed(format!("could not parse formatting clause: {problem}")))?;
        rest = after;
        let text = clause.write(&arg?).map_err(|error| match error {
            EvalError::Failed(problem) => EvalError::failed(format!("error during formatting: {problem}")),
            error => error,
        })?;
        scope.budget.toil(text.len() / 8)?;
        out.push_str(&text);
    }
    out.push_str(rest);
    Ok(CelValue::text(out))
}

struct Clause {
    verb: char,
    precision: usize,
}

fn clause(text: &str) -> Result<(Clause, &str), String> {
    let mut precision = PRECISION;
    let mut rest = text;
    if let Some(after) = text.strip_prefix('.') {
        let Some(end) = after.find(|char: char| !char.is_ascii_digit()) else {
            return Err("error while parsing precision: could not find end of precision specifier".to_owned());
        };
        precision = after[..end].parse().map_err(|_| {
            let digits = quoted(&after[..end]);
            let why = if end == 0 { "invalid syntax" } else { "value out of range" };
            format!(
                "error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing \
                 {digits}: {why}"
            )
        })?;
        rest = &after[end..];
    }
    let Some(verb) = rest.chars().next() else { return Err("unexpected end of string".to_owned()) };
    if !"sdfebxXo".contains(verb) {
        // A clause is one byte, whatever character it is part of.
        let shown = char::from(rest.as_bytes()[0]);
        return Err(format!("unrecognized formatting clause \"{shown}\""));
    }
    Ok((Clause { verb, precision: precision.min(LARGEST_PRECISION) }, &rest[1..]))
}

impl Clause {
    fn write(&self, value: &CelValue<'_>) -> Text {
        let refused = |what: &str| Err(EvalError::failed(format!("{what}, was given {}", value.type_name())));
        match self.verb {
            's' => string(value),
            'd' => decimal(value),
            'f' | 'e' => {
                let number = match value {
                    CelValue::Double(number) => *number,
                    CelValue::String(text) => match &**text {
                        "NaN" => f64::NAN,
                        "Infinity" => f64::INFINITY,
                        "-Infinity" => f64::NEG_INFINITY,
                        _ => return refused(DOUBLES[usize::from(self.verb == 'e')]),
                    },
                    _ => return refused(DOUBLES[usize::from(self.verb == 'e')]),
                };
                Ok(if self.verb == 'f' { fixed(number, self.precision) } else { scientific(number, PRECISION) })
            }
            'b' => match value {
                CelValue::Int(number) if *number < 0 => Ok(format!("-{:b}", number.unsigned_abs())),
                CelValue::Int(number) => Ok(format!("{number:b}")),
                CelValue::Uint(number) => Ok(format!("{number:b}")),
                CelValue::Bool(truth) => Ok(if *truth { "1" } else { "0" }.to_owned()),
                _ => refused("only integers and bools can be formatted as binary"),
            },
            'o' => match value {
                CelValue::Int(number) if *number < 0 => Ok(format!("-{:o}", number.unsigned_abs())),
                CelValue::Int(number) => Ok(format!("{number:o}")),
                CelValue::Uint(number) => Ok(format!("{number:o}")),
                _ => refused("octal clause can only be used on integers"),
            },
            verb => {
                let text = match value {
                    CelValue::Int(number) if *number < 0 => format!("-{:x}", number.unsigned_abs()),
                    CelValue::Int(number) => format!("{number:x}"),
                    CelValue::Uint(number) => format!("{number:x}"),
                    CelValue::String(text) => hex(text.as_bytes()),
                    CelValue::Bytes(bytes) => hex(bytes),
                    _ => return refused("only integers, byte buffers, and strings can be formatted as hex"),
                };
                Ok(if verb == 'X' { text.to_ascii_uppercase() } else { text })
            }
        }
    }
}

const DOUBLES: [&str; 2] =
    ["fixed-point clause can only be used on doubles", "scientific clause can only be used on doubles"];

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn decimal(value: &CelValue<'_>) -> Text {
    match value {
        CelValue::Int(number) => Ok(number.to_string()),
        CelValue::Uint(number) => Ok(number.to_string()),
        value => {
            let message = format!("decimal clause can only be used on integers, was given {}", value.type_name());
            Err(EvalError::failed(message))
        }
    }
}

/// A number with so many digits after the point, and its thousands set apart.
fn fixed(number: f64, precision: usize) -> String {
    if !number.is_finite() {
        return not_finite(number).to_owned();
    }
    let plain = format!("{:.precision$}", number.abs());
    let (whole, fraction) = plain.split_once('.').map_or((plain.as_str(), None), |(whole, rest)| (whole, Some(rest)));
    let mut out = String::new();
    if number.is_sign_negative() {
        out.push('-');
    }
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

fn not_finite(number: f64) -> &'static str {
    match number {
        number if number.is_nan() => "NaN",
        number if number > 0.0 => "∞",
        _ => "-∞",
    }
}

/// A number as its digits times a power of ten: `1.234500×10⁰³`.
fn scientific(number: f64, precision: usize) -> String {
    if !number.is_finite() {
        return not_finite(number).to_owned();
    }
    let text = format!("{number:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(("", exponent), |exponent| ("⁻", exponent));
    let raised = |digit: char| "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().nth(digit.to_digit(10).unwrap_or(0) as usize).unwrap_or(digit);
    let exponent: String = format!("{exponent:0>2}").chars().map(raised).collect();
    format!("{digits}×10{sign}{exponent}")
}

fn string(value: &CelValue<'_>) -> Text {
    match value {
        CelValue::List(list) => list_text(list),
        CelValue::Map(_) => map_text(value),
        CelValue::Null => Ok("null".to_owned()),
        CelValue::Type(kind) => Ok(type_text(kind)),
        CelValue::Opaque(_) => refused(value),
        value => text_of(value).unwrap_or_else(|| refused(value)),
    }
}

fn refused(value: &CelValue<'_>) -> Text {
    Err(EvalError::failed(format!(
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and \
         timestamps, was given {}",
        value.type_name()
    )))
}

/// A value within a list or a map, as an expression would write it.
fn nested(value: &CelValue<'_>) -> Text {
    Ok(match value {
        CelValue::String(text) => quoted(text),
        CelValue::Bytes(_) => format!("b{}", quoted(&string(value)?)),
        CelValue::Timestamp(_) => format!("timestamp({})", quoted(&string(value)?)),
        CelValue::Duration(_) => format!("duration({})", quoted(&string(value)?)),
        CelValue::Double(number) if number.is_finite() => format!("{number:.PRECISION$}"),
        CelValue::Double(number) => quoted(&double_text(*number)),
        CelValue::List(list) => list_text(list)?,
        CelValue::Map(_) => map_text(value)?,
        CelValue::Int(_) | CelValue::Uint(_) => decimal(value)?,
        CelValue::Bool(_) | CelValue::Null | CelValue::Type(_) => string(value)?,
        value => return Err(EvalError::failed(format!("no formatting function for {}", value.type_name()))),
    })
}

fn list_text(list: &List<'_>) -> Text {
    let elements: Result<Vec<String>, EvalError> = list.iter().map(|element| nested(&element?)).collect();
    Ok(format!("[{}]", elements?.join(", ")))
}

fn map_text(value: &CelValue<'_>) -> Text {
    let CelValue::Map(map) = value else { return refused(value) };
    let mut entries = Vec::with_capacity(map.len());
    for key in map.keys() {
        let name = match &key {
            CelValue::String(_) | CelValue::Bool(_) | CelValue::Int(_) | CelValue::Uint(_) => nested(&key)?,
            key => {
                let message = format!("no formatting function for map key of type {}", key.type_name());
                return Err(EvalError::failed(message));
            }
        };
        let value = map.get(&key)?.unwrap_or(CelValue::Null);
        entries.push((name, nested(&value)?));
    }
    entries.sort();
    let entries: Vec<String> = entries.into_iter().map(|(name, value)| format!("{name}:{value}")).collect();
    Ok(format!("{{{}}}", entries.join(", ")))
}

/// A text between quotes, as Go's `%q` writes it.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            char if char.is_ascii_control() => out.push_str(&format!("\\x{:02x}", u32::from(char))),
            char if char.is_control() || char == '\u{feff}' => out.push_str(&format!("\\u{:04x}", u32::from(char))),
            char => out.push(char),
        }
    }
    out.push('"');
    out
}
