//! JSON text to [`Value`], with what Kubernetes wants to know about it: numbers as it tells them apart, members that
//! occur twice, and a limit on nesting.

use std::fmt;

use compact_str::CompactString;
use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};

use crate::json_plain::{read_own, read_plain};
use crate::{Object, Value, clip, json_problem, shown_text, text_of_bytes};

/// How deep objects and arrays may nest. Everything that walks a value may recurse this deep, so it also bounds the
/// stack that a request can use.
pub const MAX_DEPTH: usize = 512;

/// How deep the fast parser goes. What is deeper is rare, and left to another one.
const FAST_DEPTH: usize = 250;

/// Why a text is not JSON that the server takes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// The text is not JSON.
    #[error("{0}")]
    Syntax(String),
    /// Objects and arrays nest too deeply.
    #[error("exceeded max depth of {MAX_DEPTH}")]
    TooDeep,
}

/// How many duplicates are told of.
pub(crate) const MAX_DUPLICATES: usize = 100;

/// A value and what was odd about its text.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Parsed {
    /// The value.
    pub value: Value,
    /// Paths of members that occur more than once (`spec.replicas`), in the order of the text. The last one counts.
    /// Kubernetes tells of a hundred at most.
    pub duplicates: Vec<String>,
}

/// Reads one JSON value that takes up all of `text`. As in Go, bytes of strings that are not of UTF-8 stand for replacement
/// characters.
pub fn parse_json(text: &[u8]) -> Result<Parsed, JsonError> {
    let Ok(text) = std::str::from_utf8(text) else {
        return match json_problem(text) {
            Some(problem) => Err(JsonError::Syntax(problem)),
            None => parse_json(shown_text(&text_of_bytes(text)).as_bytes()),
        };
    };
    match read_plain(text, |token| read_thoroughly(token).ok().map(|parsed| parsed.value)) {
        Some(value) => Ok(Parsed { value, duplicates: Vec::new() }),
        None => read_thoroughly(text),
    }
}

/// Reads an object that this program stored. Its sets of managed fields are kept as their texts until somebody looks into
/// them, unless something in the object is spelled otherwise than it is shown, which a blank before it tells.
pub fn parse_stored(text: &[u8]) -> Result<Value, JsonError> {
    if text.first() == Some(&b'{')
        && let Ok(text) = std::str::from_utf8(text)
        && let Some(value) = read_own(text, |token| read_thoroughly(token).ok().map(|parsed| parsed.value))
    {
        return Ok(value);
    }
    parse_json(text).map(|parsed| parsed.value)
}

/// Reads any text, and finds out what is odd about it.
pub(crate) fn read_thoroughly(text: &str) -> Result<Parsed, JsonError> {
    let parsed = parse_text(text);
    // Rare enough to look for it only where a text was refused.
    if matches!(parsed, Err(JsonError::Syntax(_)))
        && let Some(mended) = mend_surrogates(text)
    {
        return parse_text(&mended);
    }
    parsed
}

fn parse_text(text: &str) -> Result<Parsed, JsonError> {
    let mut state = State::default();
    let value = read(text, &mut state)?;
    if !state.saw_duplicate {
        return Ok(Parsed { value, duplicates: Vec::new() });
    }
    // Paths are only followed when there is something to report: duplicates are rare and paths cost time.
    let mut state = State { path: Some(Vec::new()), ..State::default() };
    let value = read(text, &mut state)?;
    Ok(Parsed { value, duplicates: state.duplicates })
}

fn read(text: &str, state: &mut State) -> Result<Value, JsonError> {
    let mut deserializer = sonic_rs::Deserializer::from_str(text);
    let value = ValueSeed { state, depth: 0 }.deserialize(&mut deserializer);
    let value = value.and_then(|value| deserializer.end().map(|()| value));
    if state.too_deep {
        return read_deep(text, state);
    }
    value.map_err(|error| syntax(text, &error.to_string()))
}

/// The same for what nests deeper than the fast parser goes.
fn read_deep(text: &str, state: &mut State) -> Result<Value, JsonError> {
    *state = State { limit: MAX_DEPTH, path: state.path.take().map(|_| Vec::new()), ..State::default() };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    deserializer.disable_recursion_limit();
    let value = ValueSeed { state, depth: 0 }.deserialize(&mut deserializer);
    let value = value.and_then(|value| deserializer.end().map(|()| value));
    if state.too_deep {
        return Err(JsonError::TooDeep);
    }
    value.map_err(|error| syntax(text, &error.to_string()))
}

/// A text with halves of surrogate pairs, which as in Go stand for replacement characters; `None` if it has none.
fn mend_surrogates(text: &str) -> Option<String> {
    let unit = |rest: &str| rest.strip_prefix("\\u").and_then(|rest| u16::from_str_radix(rest.get(..4)?, 16).ok());
    let mut mended = String::new();
    let (mut kept, mut at) = (0, 0);
    while let Some(found) = text[at..].find('\\') {
        at += found;
        match (unit(&text[at..]), text.get(at + 6..).and_then(unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => at += 12,
            (Some(0xd800..=0xdfff), _) => {
                mended.push_str(&text[kept..at]);
                mended.push_str("\\ufffd");
                at += 6;
                kept = at;
            }
            (Some(_), _) => at += 6,
            // The character behind it is escaped, and may be another such sign.
            (None, _) => at += 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
        }
    }
    (kept > 0).then(|| mended + &text[kept..])
}

/// What is wrong with a text that the parser refused, in the words that clients know, or else in the parser's.
fn syntax(text: &str, message: &str) -> JsonError {
    JsonError::Syntax(json_problem(text.as_bytes()).unwrap_or_else(|| one_line(message)))
}

/// The parser's message without the excerpt of the input that it appends on further lines.
fn one_line(message: &str) -> String {
    message.lines().next().unwrap_or("malformed JSON").trim_end().to_owned()
}

struct State {
    /// How deep it may go.
    limit: usize,
    saw_duplicate: bool,
    too_deep: bool,
    /// Names from the root to here, where paths are wanted.
    path: Option<Vec<String>>,
    duplicates: Vec<String>,
}

impl Default for State {
    fn default() -> State {
        State { limit: FAST_DEPTH, saw_duplicate: false, too_deep: false, path: None, duplicates: Vec::new() }
    }
}

struct ValueSeed<'s> {
    state: &'s mut State,
    depth: usize,
}

impl ValueSeed<'_> {
    fn nested(&mut self) -> Result<ValueSeed<'_>, ()> {
        if self.depth == self.state.limit {
            self.state.too_deep = true;
            return Err(());
        }
        Ok(ValueSeed { state: self.state, depth: self.depth + 1 })
    }
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Value, E> {
        Ok(Value::Bool(truth))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Int(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(i64::try_from(number).map_or(Value::Float(number as f64), Value::Int))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Float(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            let seed = self.nested().map_err(|()| de::Error::custom("too deep"))?;
            if let Some(path) = &mut seed.state.path {
                path.push(format!("[{}]", items.len()));
            }
            let item = elements.next_element_seed(seed)?;
            if let Some(path) = &mut self.state.path {
                path.pop();
            }
            match item {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Value, A::Error> {
        let mut members: Vec<(CompactString, Value)> = Vec::new();
        while let Some(name) = map.next_key_seed(NameSeed)? {
            let seed = self.nested().map_err(|()| de::Error::custom("too deep"))?;
            if let Some(path) = &mut seed.state.path {
                path.push(if path.is_empty() { name.to_string() } else { format!(".{name}") });
            }
            let value = map.next_value_seed(seed)?;
            if let Some(path) = &mut self.state.path {
                path.pop();
            }
            members.push((name, value));
        }
        let state = self.state;
        let object = Object::from_unsorted(members, |name| {
            state.saw_duplicate = true;
            if let Some(path) = &state.path {
                let dot = if path.is_empty() { "" } else { "." };
                if state.duplicates.len() < MAX_DUPLICATES {
                    state.duplicates.push(clip(format!("{}{dot}{name}", path.concat())));
                }
            }
        });
        Ok(Value::Object(object))
    }
}

struct NameSeed;

impl<'de> DeserializeSeed<'de> for NameSeed {
    type Value = CompactString;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<CompactString, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for NameSeed {
    type Value = CompactString;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member name")
    }

    fn visit_str<E>(self, text: &str) -> Result<CompactString, E> {
        Ok(text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        parse_json(text.as_bytes()).expect("is JSON").value
    }

    #[test]
    fn halves_of_surrogate_pairs_are_replaced() {
        for (text, want) in [
            (r#""\ud800""#, "\u{fffd}"),
            (r#""a\udc00b""#, "a\u{fffd}b"),
            (r#""\ud83d\ude00\ud83d""#, "\u{1f600}\u{fffd}"),
            (r#""\ud800\u0041""#, "\u{fffd}A"),
            (r#""\\ud800\ud800""#, "\\ud800\u{fffd}"),
        ] {
            assert_eq!(value(text), Value::from(want), "{text}");
        }
        for text in [r#""\ud800"#, r#""\ud8""#, r#""\ud800\x""#] {
            assert!(parse_json(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_are_integers_only_when_written_so_and_in_range() {
        for (text, want) in [
            ("1", Value::Int(1)),
            ("-9223372036854775808", Value::Int(i64::MIN)),
            ("9223372036854775807", Value::Int(i64::MAX)),
            ("9223372036854775808", Value::Float(9223372036854775808.0)),
            ("2.0", Value::Float(2.0)),
            ("1e1", Value::Float(10.0)),
        ] {
            assert_eq!(value(text), want, "{text}");
        }
    }

    #[test]
    fn malformed_text_is_refused() {
        for text in [&b""[..], b"{", b"{\"a\":}", b"[1,]", b"nul", b"{} x", b"'a'", b"{\"a\" 1}", b"\"\"\xff", b"01"] {
            assert!(parse_json(text).is_err(), "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced_in_strings_and_refused_elsewhere() {
        assert_eq!(
            parse_json(b"{\"a\xff\":\"\xe2\x82b\"}").expect("JSON").value.to_json(),
            "{\"a\u{fffd}\":\"\u{fffd}\u{fffd}b\"}"
        );
        assert_eq!(
            parse_json(b"{}\xff"),
            Err(JsonError::Syntax("invalid character 'ÿ' after top-level value".to_owned()))
        );
    }

    #[test]
    fn duplicates_are_reported_by_path_and_the_last_one_counts() {
        let parsed = parse_json(br#"{"a":{"b":1,"b":2},"c":[{"d":1,"d":{"e":1}}],"a":{"x":1}}"#).expect("is JSON");
        assert_eq!(parsed.duplicates, ["a.b", "c[0].d", "a"]);
        assert_eq!(parsed.value.to_json(), r#"{"a":{"x":1},"c":[{"d":{"e":1}}]}"#);
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth: usize| [vec![b'['; depth], vec![b']'; depth]].concat();
        for depth in [FAST_DEPTH, FAST_DEPTH + 1, FAST_DEPTH + 10, MAX_DEPTH] {
            assert!(parse_json(&nested(depth)).is_ok(), "{depth}");
        }
        let twice = format!("{}{{\"a\":1,\"a\":2}}{}", "[".repeat(FAST_DEPTH + 1), "]".repeat(FAST_DEPTH + 1));
        assert_eq!(parse_json(twice.as_bytes()).map(|parsed| parsed.duplicates.len()), Ok(1));
        assert_eq!(parse_json(&nested(MAX_DEPTH + 2)), Err(JsonError::TooDeep));
        assert_eq!(parse_json(&vec![b'['; 3_000_000]), Err(JsonError::TooDeep));
        assert_eq!(parse_json("{\"a\":".repeat(100_000).as_bytes()), Err(JsonError::TooDeep));
    }

    #[test]
    fn text_survives_a_round_trip() {
        let text = r#"{"a":"\"\\\n\u0001é😀","b":[],"c":{},"d":null,"e":[1,-2,3.5,true]}"#;
        assert_eq!(value(&value(text).to_json()), value(text));
    }
}
