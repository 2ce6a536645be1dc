//! [`BadValue`]: a value as it is quoted in an error message.
//!
//! The texts are those of Kubernetes, which prints values with the rules of Go: strings as Go quotes them, numbers as
//! Go prints them, everything else as Go encodes JSON. Also the home of [`Quoted`], as names are quoted by the same
//! rule.

use std::fmt::{self, Write as _};

use serde::Serialize;

use crate::clip::{MAX_TEXT_BYTES, clip_shown, shown_bytes};
use crate::go_json::compact_json;
use crate::{Object, Value, bytes_of_text, shown_text};

/// The value that an error is about.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum BadValue {
    /// Not shown: too long, secret or without meaning.
    #[default]
    Omitted,
    /// Shown by the rules of its type.
    Json(serde_json::Value),
    /// Shown as it stands: a value that was already turned into text.
    Text(String),
}

impl BadValue {
    /// Says that nothing is there, whatever the type of what might be (in Go an untyped `nil`).
    pub fn nothing() -> BadValue {
        BadValue::Text("null".to_owned())
    }

    /// Quotes anything that has a form in JSON.
    pub fn of(value: &impl Serialize) -> BadValue {
        // Only a map whose keys are not strings has no form in JSON. Then there is nothing to show.
        serde_json::to_value(value).map_or(BadValue::Omitted, BadValue::Json)
    }

    /// Quotes a value whose members were sent a moment ago: those with nothing in them are lists with nothing in them.
    /// Who knows their types writes them as these say.
    pub fn as_sent(value: &Value) -> BadValue {
        BadValue::Json(sent_form(value))
    }

    /// Quotes a member as it was sent, or says that there is none.
    pub fn of_sent(object: &Object, name: &str) -> BadValue {
        let member = object.iter_as_sent().find(|(member, _)| *member == name);
        BadValue::as_sent(member.map_or(&Value::Null, |(_, value)| value))
    }

    /// The value as far as it may be shown. Errors do that themselves; a value that many of them share is clipped once.
    pub fn clipped(self) -> BadValue {
        let fits = match &self {
            BadValue::Omitted => true,
            BadValue::Text(text) => text.len() <= MAX_TEXT_BYTES,
            shown @ BadValue::Json(_) => shown_bytes(shown) <= MAX_TEXT_BYTES,
        };
        if fits { self } else { BadValue::Text(clip_shown(self)) }
    }
}

fn sent_form(value: &Value) -> serde_json::Value {
    match value {
        Value::Nothing => serde_json::Value::Array(Vec::new()),
        Value::Array(items) => items.iter().map(sent_form).collect(),
        Value::Object(object) => sent_members(object),
        plain => serde_json::to_value(plain).unwrap_or_default(),
    }
}

pub(crate) fn sent_members(object: &Object) -> serde_json::Value {
    let members = object.iter_as_sent().map(|(name, value)| (shown_text(name).into_owned(), sent_form(value)));
    serde_json::Value::Object(members.collect())
}

impl From<serde_json::Value> for BadValue {
    fn from(value: serde_json::Value) -> BadValue {
        BadValue::Json(value)
    }
}

impl From<&str> for BadValue {
    fn from(text: &str) -> BadValue {
        BadValue::Json(text.into())
    }
}

impl From<String> for BadValue {
    fn from(text: String) -> BadValue {
        BadValue::Json(text.into())
    }
}

impl From<bool> for BadValue {
    fn from(truth: bool) -> BadValue {
        BadValue::Json(truth.into())
    }
}

impl From<i64> for BadValue {
    fn from(number: i64) -> BadValue {
        BadValue::Json(number.into())
    }
}

impl From<f64> for BadValue {
    /// Infinities and NaN have no form in JSON and are shown as `null`.
    fn from(number: f64) -> BadValue {
        BadValue::Json(number.into())
    }
}

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadValue::Omitted => Ok(()),
            BadValue::Text(text) => f.write_str(text),
            BadValue::Json(serde_json::Value::String(text)) => Quoted(text).fmt(f),
            BadValue::Json(serde_json::Value::Number(number)) => match number.as_f64() {
                Some(float) if number.is_f64() => print_float(f, float),
                _ => write!(f, "{number}"),
            },
            BadValue::Json(value) => encode(f, value),
        }
    }
}

/// A text in double quotes, with the escapes of Go's `%q`.
pub(crate) struct Quoted<'a>(pub(crate) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for chunk in bytes_of_text(self.0).utf8_chunks() {
            quote_characters(f, chunk.valid())?;
            chunk.invalid().iter().try_for_each(|byte| write!(f, "\\x{byte:02x}"))?;
        }
        f.write_char('"')
    }
}

fn quote_characters(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    for character in text.chars() {
        match character {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\x07' => f.write_str("\\a")?,
            '\x08' => f.write_str("\\b")?,
            '\x0c' => f.write_str("\\f")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            '\x0b' => f.write_str("\\v")?,
            _ if is_printable(character) => f.write_char(character)?,
            '\0'..='\x1f' | '\x7f' => write!(f, "\\x{:02x}", u32::from(character))?,
            '\u{80}'..='\u{ffff}' => write!(f, "\\u{:04x}", u32::from(character))?,
            _ => write!(f, "\\U{:08x}", u32::from(character))?,
        }
    }
    Ok(())
}

/// Letters, marks, numbers, punctuation, symbols and the ASCII space.
pub fn is_printable(character: char) -> bool {
    if character.is_ascii() {
        return matches!(character, ' '..='~');
    }
    // The standard library has the table but shows it only through its own escaping. That escapes a combining mark
    // at the beginning of a text, which Go does not; hence the letter before it.
    let mut buffer = [b'a'; 5];
    let end = 1 + character.encode_utf8(&mut buffer[1..]).len();
    std::str::from_utf8(&buffer[..end]).is_ok_and(|text| text.escape_debug().nth(1) == Some(character))
}

/// As Go's `%v`: the shortest digits that read back, with an exponent from a million on.
fn print_float(f: &mut fmt::Formatter<'_>, number: f64) -> fmt::Result {
    let scientific = format!("{number:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return f.write_str(&scientific) };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            write!(f, "{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => write!(f, "{number}"),
    }
}

/// As Go encodes JSON: keys in order, and what HTML reads as markup escaped.
fn encode(f: &mut fmt::Formatter<'_>, value: &serde_json::Value) -> fmt::Result {
    match value {
        serde_json::Value::Null => f.write_str("null"),
        serde_json::Value::Bool(truth) => write!(f, "{truth}"),
        serde_json::Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => encode_float(f, float),
            _ => write!(f, "{number}"),
        },
        serde_json::Value::String(text) => encode_string(f, text),
        serde_json::Value::Array(items) => {
            f.write_char('[')?;
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    f.write_char(',')?;
                }
                encode(f, item)?;
            }
            f.write_char(']')
        }
        serde_json::Value::Object(members) => {
            // The map may keep the order of insertion, depending on how the JSON crate was built.
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(key, _)| *key);
            f.write_char('{')?;
            for (index, (key, member)) in members.into_iter().enumerate() {
                if index > 0 {
                    f.write_char(',')?;
                }
                encode_string(f, key)?;
                f.write_char(':')?;
                encode(f, member)?;
            }
            f.write_char('}')
        }
    }
}

/// A value as Go encodes it in JSON, without anything made of it in between: it may be large.
#[derive(Debug)]
pub struct GoJson<'a>(pub &'a Value);

impl fmt::Display for GoJson<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null | Value::Nothing => f.write_str("null"),
            Value::Bool(truth) => write!(f, "{truth}"),
            Value::Int(number) => write!(f, "{number}"),
            Value::Float(number) => encode_float(f, *number),
            Value::String(text) => encode_string(f, text),
            Value::Array(items) => {
                f.write_char('[')?;
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        f.write_char(',')?;
                    }
                    GoJson(item).fmt(f)?;
                }
                f.write_char(']')
            }
            Value::Raw(raw) => f.write_str(&String::from_utf8_lossy(&compact_json(raw.text().as_bytes()))),
            Value::Object(members) => {
                f.write_char('{')?;
                for (index, (key, member)) in members.iter().enumerate() {
                    if index > 0 {
                        f.write_char(',')?;
                    }
                    encode_string(f, key)?;
                    f.write_char(':')?;
                    GoJson(member).fmt(f)?;
                }
                f.write_char('}')
            }
        }
    }
}

fn encode_float(f: &mut fmt::Formatter<'_>, number: f64) -> fmt::Result {
    let magnitude = number.abs();
    if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        let scientific = format!("{number:e}");
        let sign = if magnitude < 1.0 { "e" } else { "e+" };
        return f.write_str(&scientific.replace('e', sign));
    }
    write!(f, "{number}")
}

fn encode_string(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    for chunk in bytes_of_text(text).utf8_chunks() {
        encode_characters(f, chunk.valid())?;
        chunk.invalid().iter().try_for_each(|_| f.write_str("\\ufffd"))?;
    }
    f.write_char('"')
}

fn encode_characters(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    for character in text.chars() {
        match character {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\x08' => f.write_str("\\b")?,
            '\x0c' => f.write_str("\\f")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            '\0'..='\x1f' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => write!(f, "\\u{:04x}", u32::from(character))?,
            _ => f.write_char(character)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_of_bytes;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn shows_values_as_kubernetes_does() {
        for (value, want) in [
            (BadValue::Omitted, ""),
            (BadValue::Text("as it is".to_owned()), "as it is"),
            ("x".into(), r#""x""#),
            ("a \"b\"\\\n\t\x07\x08\x0b\x0c\r".into(), r#""a \"b\"\\\n\t\a\b\v\f\r""#),
            ("\0\x1f\x7f".into(), r#""\x00\x1f\x7f""#),
            ("é日😀\u{301}".into(), "\"é日😀\u{301}\""),
            ("\u{301}".into(), "\"\u{301}\""),
            (
                "\u{a0}\u{ad}\u{200b}\u{2028}\u{feff}\u{e000}\u{e0001}".into(),
                r#""\u00a0\u00ad\u200b\u2028\ufeff\ue000\U000e0001""#,
            ),
            ("'<>&".into(), r#""'<>&""#),
            (text_of_bytes(b"a\xff\xe2\x82").into_owned().into(), r#""a\xff\xe2\x82""#),
            (json!([text_of_bytes(b"a\xff")]).into(), r#"["a\ufffd"]"#),
            (true.into(), "true"),
            (7_i64.into(), "7"),
            (i64::MIN.into(), "-9223372036854775808"),
            (1.5.into(), "1.5"),
            (5.0.into(), "5"),
            (999999.5.into(), "999999.5"),
            (1e6.into(), "1e+06"),
            (1234567.5.into(), "1.2345675e+06"),
            ((-1e100).into(), "-1e+100"),
            (0.0001.into(), "0.0001"),
            (0.00001.into(), "1e-05"),
            (0.0.into(), "0"),
            (BadValue::of(&u64::MAX), "18446744073709551615"),
            (json!(null).into(), "null"),
            (
                json!({"b": 1, "a": [true, null, "<\u{2028}>\x08\x01"]}).into(),
                r#"{"a":[true,null,"\u003c\u2028\u003e\b\u0001"],"b":1}"#,
            ),
            (json!([]).into(), "[]"),
            (json!({}).into(), "{}"),
            (
                json!([1e21, 1e-7, 1e20, 0.000001, -2.5, 3.0, 0.0]).into(),
                "[1e+21,1e-7,100000000000000000000,0.000001,-2.5,3,0]",
            ),
            (BadValue::of(&std::collections::BTreeMap::from([((1, 2), 3)])), ""),
        ] {
            assert_eq!(value.to_string(), want, "{value:?}");
        }
    }

    proptest! {
        #[test]
        fn encoded_values_read_back(text in any::<String>()) {
            let value = json!([text, { text.clone(): null }]);
            let read: serde_json::Value = serde_json::from_str(&BadValue::of(&value).to_string()).expect("is JSON");
            prop_assert_eq!(read, value);
        }

        #[test]
        fn numbers_read_back(number in any::<f64>().prop_filter("finite", |number| number.is_finite())) {
            prop_assert_eq!(BadValue::from(number).to_string().parse(), Ok(number));
            let listed = BadValue::of(&[number]).to_string();
            prop_assert_eq!(listed.trim_matches(['[', ']']).parse(), Ok(number));
        }
    }
}
