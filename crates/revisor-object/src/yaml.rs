//! YAML text to [`Value`], as Kubernetes reads it: the scalars of YAML 1.1 (`on` is true, `0o17` and `017` are 15),
//! keys of any scalar type turned into strings, merge keys, and only the first document of a stream.
//!
//! Aliases are copied where they stand, with a bound on how much they may add, so that a small text cannot become a
//! large value.

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use compact_str::{CompactString, ToCompactString};
use saphyr_parser::{Event, Parser, ScalarStyle, StrInput, Tag};

use crate::json::{MAX_DEPTH, MAX_DUPLICATES};
use crate::yaml_characters::yaml_text;
use crate::{BadValue, Object, Parsed, Value, clip, shown_text, text_of_bytes};

/// How many values the aliases of one text may add.
const MAX_ALIASED: usize = 100_000;

/// Why a text is not YAML that the server takes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum YamlError {
    /// The bytes are no text that YAML may be written in.
    #[error("yaml: {0}")]
    Characters(&'static str),
    /// A key is null.
    #[error("unsupported map key of type: %!s(<nil>), key: <nil>, value: {0}")]
    NullKey(String),
    /// The text is not YAML. Of the first line its number is not told.
    #[error("yaml: {}{problem}", if *line > 1 { format!("line {line}: ") } else { String::new() })]
    Syntax {
        /// The line, counted from one.
        line: usize,
        /// What is wrong there.
        problem: String,
    },
    /// Mappings and sequences nest too deeply.
    #[error("yaml: exceeded max depth of {MAX_DEPTH}")]
    TooDeep,
    /// Aliases blow the document up.
    #[error("yaml: document contains excessive aliasing")]
    ExcessiveAliasing,
}

/// Reads the first document of `text`. An empty stream is `null`.
pub fn parse_yaml(text: &[u8]) -> Result<Parsed, YamlError> {
    read(text, Builder::default())
}

/// As [`parse_yaml`], of a file that somebody wrote with whatever they have: `y` and `n` are texts, as they are to all
/// that write YAML today. To the original they are booleans, so a field that is called so has another name there.
pub fn parse_yaml_file(text: &[u8]) -> Result<Parsed, YamlError> {
    read(text, Builder { letters_are_texts: true, ..Builder::default() })
}

fn read(text: &[u8], mut builder: Builder) -> Result<Parsed, YamlError> {
    let text = &*yaml_text(text).map_err(YamlError::Characters)?;
    for event in Parser::new(StrInput::new(text)) {
        let (event, span) = event.map_err(|error| syntax(error.marker().line(), problem_of(error.info())))?;
        if builder.take(event, span.start.line())? {
            break;
        }
    }
    Ok(Parsed { value: builder.root.unwrap_or_default(), duplicates: builder.duplicates })
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    anchors: HashMap<usize, (Value, usize)>,
    aliased: usize,
    duplicates: Vec<String>,
    root: Option<Value>,
    letters_are_texts: bool,
}

/// A mapping or sequence whose end has not come yet.
struct Open {
    anchor: usize,
    node: Node,
}

enum Node {
    Sequence(Vec<Value>),
    Mapping { members: Vec<(CompactString, Value)>, key: Option<Key>, merged: Vec<Object> },
}

enum Key {
    Name(CompactString),
    Merge,
    Null,
}

impl Builder {
    /// Takes one event of the parser; answers whether the document is complete.
    fn take(&mut self, event: Event<'_>, line: usize) -> Result<bool, YamlError> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_letter = self.letters_are_texts && matches!(&*text, "y" | "Y" | "n" | "N");
                let plain = style == ScalarStyle::Plain && !is_letter;
                if plain && text == "<<" && self.expects_key() {
                    self.set_key(Key::Merge);
                    return Ok(false);
                }
                let value = scalar(&text, plain, tag.as_deref()).map_err(|problem| syntax(line, problem))?;
                self.complete(value, anchor, line)?;
            }
            Event::SequenceStart(anchor, _) => {
                self.push(Open { anchor, node: Node::Sequence(Vec::new()) }, line)?;
            }
            Event::MappingStart(anchor, _) => {
                let node = Node::Mapping { members: Vec::new(), key: None, merged: Vec::new() };
                self.push(Open { anchor, node }, line)?;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(Open { anchor, node }) = self.open.pop() else { return Ok(true) };
                let value = match node {
                    Node::Sequence(items) => Value::Array(items),
                    Node::Mapping { members, merged, .. } => self.finish_mapping(members, merged),
                };
                self.complete(value, anchor, line)?;
            }
            Event::Alias(anchor) => {
                let Some((value, size)) = self.anchors.get(&anchor) else {
                    return Err(syntax(line, "an alias refers to a value that contains it"));
                };
                self.aliased += size;
                if self.aliased > MAX_ALIASED {
                    return Err(YamlError::ExcessiveAliasing);
                }
                let value = value.clone();
                self.complete(value, 0, line)?;
            }
            Event::DocumentEnd | Event::StreamEnd => return Ok(true),
            Event::StreamStart | Event::DocumentStart(_) | Event::Nothing => {}
        }
        Ok(false)
    }

    fn push(&mut self, open: Open, line: usize) -> Result<(), YamlError> {
        if self.expects_key() {
            return Err(syntax(line, "invalid map key: only scalars can be keys"));
        }
        if self.open.len() == MAX_DEPTH {
            return Err(YamlError::TooDeep);
        }
        self.open.push(open);
        Ok(())
    }

    fn expects_key(&self) -> bool {
        matches!(self.open.last(), Some(Open { node: Node::Mapping { key: None, .. }, .. }))
    }

    fn set_key(&mut self, name: Key) {
        if let Some(Open { node: Node::Mapping { key, .. }, .. }) = self.open.last_mut() {
            *key = Some(name);
        }
    }

    /// Puts a complete value where the document stands: as a key, a member, an element or the whole.
    fn complete(&mut self, value: Value, anchor: usize, line: usize) -> Result<(), YamlError> {
        if anchor != 0 {
            let size = count(&value);
            self.anchors.insert(anchor, (value.clone(), size));
            // The copy kept for later aliases is memory too.
            self.aliased += size;
            if self.aliased > MAX_ALIASED {
                return Err(YamlError::ExcessiveAliasing);
            }
        }
        if self.expects_key() {
            let name = key_text(&value).ok_or_else(|| syntax(line, "invalid map key: only scalars can be keys"))?;
            self.set_key(if value.is_null() { Key::Null } else { Key::Name(name) });
            return Ok(());
        }
        match self.open.last_mut().map(|open| &mut open.node) {
            None => self.root = Some(value),
            Some(Node::Sequence(items)) => items.push(value),
            Some(Node::Mapping { members, key, merged }) => match key.take() {
                Some(Key::Name(name)) => members.push((name, value)),
                Some(Key::Null) => {
                    let shown = if value.is_null() { "<nil>".to_owned() } else { BadValue::of(&value).to_string() };
                    return Err(YamlError::NullKey(clip(shown)));
                }
                Some(Key::Merge) => {
                    merge_sources(value, merged)
                        .ok_or_else(|| syntax(line, "map merge requires map or sequence of maps as the value"))?;
                }
                None => unreachable!("a value was taken as a key above"),
            },
        }
        Ok(())
    }

    fn finish_mapping(&mut self, members: Vec<(CompactString, Value)>, merged: Vec<Object>) -> Value {
        let (open, duplicates) = (&self.open, &mut self.duplicates);
        let mut object = Object::from_unsorted(members, |name| {
            // Paths are only followed when there is something to report, as there rarely is.
            if duplicates.len() < MAX_DUPLICATES {
                let path = path(open);
                let dot = if path.is_empty() { "" } else { "." };
                duplicates.push(clip(format!("{path}{dot}{name}")));
            }
        });
        for source in merged {
            for (name, value) in source.iter() {
                if !object.contains(name) {
                    object.insert(name, value.clone());
                }
            }
        }
        Value::Object(object)
    }
}

/// The path of the value that was just closed, inside of those that are open.
fn path(open: &[Open]) -> String {
    let mut path = String::new();
    for open in open {
        match &open.node {
            Node::Sequence(items) => path.push_str(&format!("[{}]", items.len())),
            Node::Mapping { key: Some(Key::Name(name)), .. } => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
            }
            Node::Mapping { .. } => {}
        }
    }
    path
}

/// What the original says of what its parser does not take.
fn problem_of(info: &str) -> &str {
    match info {
        _ if info.starts_with("tabs disallowed within this context") => "found character that cannot start any token",
        "simple key expect ':'" => "could not find expected ':'",
        // What was being parsed is not told.
        _ if info.starts_with("while ") => info.split_once(", ").map_or(info, |(_, problem)| problem),
        _ => info,
    }
}

fn syntax(line: usize, problem: &str) -> YamlError {
    YamlError::Syntax { line, problem: problem.to_owned() }
}

fn merge_sources(value: Value, merged: &mut Vec<Object>) -> Option<()> {
    match value {
        Value::Object(object) => merged.push(object),
        Value::Array(items) => {
            for item in items {
                let Value::Object(object) = item else { return None };
                merged.push(object);
            }
        }
        _ => return None,
    }
    Some(())
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(object) => object.iter().map(|(_, value)| count(value)).sum(),
        _ => 0,
    }
}

pub(crate) fn key_text(value: &Value) -> Option<CompactString> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(truth) => Some(truth.to_compact_string()),
        Value::Int(number) => Some(number.to_compact_string()),
        Value::Float(number) => Some(number.to_compact_string()),
        Value::Null | Value::Nothing => Some("null".into()),
        Value::Array(_) | Value::Object(_) | Value::Raw(_) => None,
    }
}

pub(crate) fn scalar(text: &str, plain: bool, tag: Option<&Tag>) -> Result<Value, &'static str> {
    match tag.filter(|tag| tag.is_yaml_core_schema()).map(|tag| tag.suffix.as_str()) {
        Some("str") => return Ok(Value::from(text)),
        Some("binary") => {
            let bytes = BASE64.decode(text).map_err(|_| "!!binary value contains invalid base64 data")?;
            return Ok(Value::from(&*shown_text(&text_of_bytes(&bytes))));
        }
        Some("int" | "float" | "bool" | "null") => return resolve(text),
        _ => {}
    }
    if plain { resolve(text) } else { Ok(Value::from(text)) }
}

/// What a plain scalar means in YAML 1.1.
fn resolve(text: &str) -> Result<Value, &'static str> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Ok(Value::Bool(true));
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Ok(Value::Bool(false));
        }
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" | "-.inf" | "-.Inf" | "-.INF" | ".nan" | ".NaN"
        | ".NAN" => return Err("infinity and NaN have no JSON form"),
        _ => {}
    }
    let numeric = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.'));
    if numeric {
        if let Some(number) = integer(text) {
            return Ok(number);
        }
        if is_float(text)
            && let Ok(number) = text.replace('_', "").parse::<f64>()
            && number.is_finite()
        {
            return Ok(written_number(number));
        }
    }
    Ok(Value::from(text))
}

fn integer(text: &str) -> Option<Value> {
    let digits = text.replace('_', "");
    let (negative, digits) = match digits.strip_prefix(['+', '-']) {
        Some(rest) => (digits.starts_with('-'), rest.to_owned()),
        None => (false, digits),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', b'o' | b'O', ..] => (8, &digits[2..]),
        [b'0', b'b' | b'B', ..] => (2, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits.as_str()),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let magnitude = i128::from(u64::from_str_radix(digits, radix).ok()?);
    let number = if negative { -magnitude } else { magnitude };
    Some(i64::try_from(number).map_or(Value::Float(number as f64), Value::Int))
}

/// A number as it is read again once Go has written it as JSON: up to 1e21 without a fraction that is none.
fn written_number(number: f64) -> Value {
    let is_whole = number.fract() == 0.0 && number.abs() < 9_223_372_036_854_775_808.0;
    if is_whole { Value::Int(number as i64) } else { Value::Float(number) }
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_float(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (text, None),
    };
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    digits(whole)
        && digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|exponent| !exponent.is_empty() && digits(exponent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &str) {
        assert_eq!(parse_yaml(text.as_bytes()).expect("is YAML").value.to_json(), want, "{text}");
    }

    #[test]
    fn letters_are_texts_in_files() {
        let text = b"{n: y, no: yes, 'y': n}";
        assert_eq!(parse_yaml_file(text).expect("is YAML").value.to_json(), r#"{"false":true,"n":"y","y":"n"}"#);
        assert_eq!(parse_yaml(text).expect("is YAML").value.to_json(), r#"{"false":true,"y":false}"#);
    }

    #[test]
    fn what_is_no_yaml_is_told_in_the_words_of_the_original() {
        for (text, want) in [
            ("- a\n0x1- b\n", "yaml: line 3: could not find expected ':'"),
            (r#"{"a":"\ud83d\ude00"}"#, "yaml: found invalid Unicode character escape code"),
        ] {
            assert_eq!(parse_yaml(text.as_bytes()).map_err(|error| error.to_string()).err().as_deref(), Some(want));
        }
    }

    #[test]
    fn scalars_are_those_of_yaml_1_1() {
        for (text, want) in [
            ("yes", "true"),
            ("off", "false"),
            ("'yes'", "\"yes\""),
            ("\"1\"", "\"1\""),
            ("~", "null"),
            ("12", "12"),
            ("-7", "-7"),
            ("017", "15"),
            ("0o17", "15"),
            ("0x1F", "31"),
            ("1_000", "1000"),
            ("1.5", "1.5"),
            ("1e3", "1000"),
            ("2.0", "2"),
            ("-0.0", "0"),
            ("1e20", "1e+20"),
            ("1.2.3", "\"1.2.3\""),
            ("2020-01-01", "\"2020-01-01\""),
            ("10.0.0.1", "\"10.0.0.1\""),
            ("089", "89"),
            ("!!str 12", "\"12\""),
            ("-", "[null]"),
            ("a-b", "\"a-b\""),
        ] {
            check(text, want);
        }
    }

    #[test]
    fn documents_become_values() {
        check("a: 1\nb:\n- x\n- {c: d}\n", r#"{"a":1,"b":["x",{"c":"d"}]}"#);
        check("text: |\n  one\n  two\n", r#"{"text":"one\ntwo\n"}"#);
        check("1: a\ntrue: b\nn: c\n", r#"{"1":"a","false":"c","true":"b"}"#);
        check("a: 1\n---\nb: 2\n", r#"{"a":1}"#);
        check("", "null");
        check(r#"{"a": [1, "two", null]}"#, r#"{"a":[1,"two",null]}"#);
    }

    #[test]
    fn aliases_and_merge_keys_are_expanded() {
        check("a: &x {k: 1}\nb: *x\n", r#"{"a":{"k":1},"b":{"k":1}}"#);
        check("a: &x {k: 1, m: 2}\nb:\n  <<: *x\n  k: 3\n", r#"{"a":{"k":1,"m":2},"b":{"k":3,"m":2}}"#);
    }

    #[test]
    fn duplicate_keys_are_reported_and_the_last_one_counts() {
        let parsed = parse_yaml(b"a:\n  b: 1\n  b: 2\na:\n  c: 3\n").expect("is YAML");
        assert_eq!(parsed.value.to_json(), r#"{"a":{"c":3}}"#);
        assert_eq!(parsed.duplicates, ["a.b", "a"]);
    }

    fn nested_mappings(depth: usize) -> String {
        (0..depth).map(|level| format!("{}a:\n", " ".repeat(level))).collect()
    }

    #[test]
    fn alias_bombs_and_deep_nesting_are_refused() {
        let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x]\n");
        for i in 1..12 {
            let refs = vec![format!("*a{}", i - 1); 9].join(",");
            bomb.push_str(&format!("a{i}: &a{i} [{refs}]\n"));
        }
        assert_eq!(parse_yaml(bomb.as_bytes()), Err(YamlError::ExcessiveAliasing));
        assert!(parse_yaml("[".repeat(5000).as_bytes()).is_err());
        assert_eq!(parse_yaml(nested_mappings(MAX_DEPTH + 1).as_bytes()), Err(YamlError::TooDeep));
        assert!(parse_yaml(b"a: &x [*x]").is_err());
    }

    #[test]
    fn what_is_not_yaml_is_refused_with_its_line() {
        for text in ["a: b: c", "a: [1, 2", "? {a: b}\n: c", "a: *nowhere"] {
            assert!(parse_yaml(text.as_bytes()).is_err(), "{text}");
        }
        let Err(YamlError::Syntax { line, .. }) = parse_yaml(b"a: 1\nb: [\n") else { panic!("not refused") };
        assert!(line >= 2);
    }
}
