//! Bytes in texts that are not of UTF-8.
//!
//! Protobuf and CBOR let clients send any bytes where a text belongs. The original keeps them, gives them back to those
//! who read these formats, and shows them in JSON as replacement characters. Here texts are texts, so such a byte is
//! spelled by two of the characters that Unicode leaves to programs for their own use: one of U+FDD8 to U+FDDF for its
//! upper half, which is never less than eight, and one of U+FDE0 to U+FDEF for its lower. A client may send these
//! characters too; where that looks like a spelled byte, its own bytes are spelled, so that a text stands for one
//! sequence of bytes only.

use std::borrow::Cow;

use compact_str::CompactString;

use crate::{Object, Value};

/// How many bytes a spelled byte takes.
pub(crate) const SPELLED_LENGTH: usize = 6;

/// What the two characters of a spelled byte begin with.
const LEAD: [u8; 2] = [0xef, 0xb7];

/// The byte that is spelled at the beginning of `text`.
#[inline]
pub(crate) fn spelled_byte(text: &[u8]) -> Option<u8> {
    match text {
        [0xef, 0xb7, upper @ 0x98..=0x9f, 0xef, 0xb7, lower @ 0xa0..=0xaf, ..] => {
            Some((upper & 0xf) << 4 | (lower & 0xf))
        }
        _ => None,
    }
}

/// The bytes that are spelled at the beginning of `text`, one behind the other.
pub(crate) fn spelled_run(text: &[u8]) -> Vec<u8> {
    text.chunks(SPELLED_LENGTH).map_while(spelled_byte).collect()
}

fn spell(byte: u8, out: &mut String) {
    for unit in [0xfdd0 | u32::from(byte >> 4), 0xfde0 | u32::from(byte & 0xf)] {
        out.extend(char::from_u32(unit));
    }
}

/// Whether a text has spelled bytes.
#[inline]
pub fn has_stray_bytes(text: &str) -> bool {
    !text.is_ascii() && first_spelled(text).is_some()
}

fn first_spelled(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    (0..bytes.len()).find(|at| bytes[*at] == LEAD[0] && spelled_byte(&bytes[*at..]).is_some())
}

/// The text of any bytes.
pub fn text_of_bytes(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !has_stray_bytes(text) => Cow::Borrowed(text),
        _ => Cow::Owned(spelled(bytes)),
    }
}

fn spelled(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 32);
    for chunk in bytes.utf8_chunks() {
        let mut rest = chunk.valid();
        while let Some(at) = first_spelled(rest) {
            text.push_str(&rest[..at]);
            rest[at..at + SPELLED_LENGTH].bytes().for_each(|byte| spell(byte, &mut text));
            rest = &rest[at + SPELLED_LENGTH..];
        }
        text.push_str(rest);
        chunk.invalid().iter().for_each(|byte| spell(*byte, &mut text));
    }
    text
}

/// The bytes that a text stands for.
#[inline]
pub fn bytes_of_text(text: &str) -> Cow<'_, [u8]> {
    if has_stray_bytes(text) { Cow::Owned(unspelled(text)) } else { Cow::Borrowed(text.as_bytes()) }
}

fn unspelled(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(first) = bytes.get(at) {
        match spelled_byte(&bytes[at..]) {
            Some(byte) => {
                out.push(byte);
                at += SPELLED_LENGTH;
            }
            None => {
                out.push(*first);
                at += 1;
            }
        }
    }
    out
}

/// A text as those see it who read JSON: each byte that is not of UTF-8 is a replacement character.
pub fn shown_text(text: &str) -> Cow<'_, str> {
    if !has_stray_bytes(text) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for chunk in unspelled(text).utf8_chunks() {
        shown.push_str(chunk.valid());
        shown.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    Cow::Owned(shown)
}

impl Value {
    /// Spells what a client sent as text and looks like a spelled byte. `source` is the text that this was read from:
    /// nearly always a look at it is enough.
    pub fn guard_noncharacters(&mut self, source: &[u8]) {
        if may_have_noncharacters(source) {
            self.each_text(&|text| match text_of_bytes(text.as_bytes()) {
                Cow::Owned(spelled) => Some(spelled),
                Cow::Borrowed(_) => None,
            });
        }
    }

    /// Puts replacement characters in the place of bytes that are not of UTF-8, as those do who write JSON and read it
    /// again.
    pub fn replace_stray_bytes(&mut self) {
        // Most objects are of ASCII alone, which is seen in much less time.
        if self.is_ascii() {
            return;
        }
        self.each_text(&|text| match shown_text(text) {
            Cow::Owned(shown) => Some(text_of_bytes(shown.as_bytes()).into_owned()),
            Cow::Borrowed(_) => None,
        });
    }

    /// Whether all texts are of ASCII, but for those of what is kept as its text.
    fn is_ascii(&self) -> bool {
        match self {
            Value::String(text) => is_ascii(text),
            Value::Array(items) => items.iter().all(Value::is_ascii),
            Value::Object(object) => object.iter().all(|(name, value)| is_ascii(name) && value.is_ascii()),
            Value::Null | Value::Nothing | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Raw(_) => true,
        }
    }

    fn each_text(&mut self, change: &impl Fn(&str) -> Option<String>) {
        match self {
            Value::String(text) => {
                if let Some(changed) = change(text) {
                    *text = changed.into();
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| item.each_text(change)),
            Value::Object(object) => {
                if object.iter().any(|(name, _)| change(name).is_some()) {
                    let renamed = |name: CompactString| change(&name).map_or(name, CompactString::from);
                    let members = std::mem::take(object).into_iter();
                    *object = Object::from_members(members.map(|(name, value)| (renamed(name), value)).collect());
                }
                object.iter_mut().for_each(|(_, value)| value.each_text(change));
            }
            Value::Null | Value::Nothing | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Raw(_) => {}
        }
    }
}

/// Whether a text is of ASCII. Most are short, and two words that may overlap have all of them.
fn is_ascii(text: &str) -> bool {
    const HIGHEST: u64 = 0x80 * (u64::MAX / 0xff);
    let bytes = text.as_bytes();
    match (bytes.first_chunk(), bytes.last_chunk()) {
        (Some(first), Some(last)) if bytes.len() <= 16 => {
            (u64::from_le_bytes(*first) | u64::from_le_bytes(*last)) & HIGHEST == 0
        }
        _ => bytes.is_ascii(),
    }
}

/// Whether a text of JSON or YAML may have characters of those that spell bytes, as they are or escaped.
fn may_have_noncharacters(source: &[u8]) -> bool {
    // Most texts have nothing that could begin them, which is found out in steps of many bytes.
    let is_there = source.iter().fold(false, |found, byte| found | (*byte == LEAD[0]));
    let pairs = source.iter().zip(source.get(1..).unwrap_or_default());
    if !is_there && !pairs.fold(false, |found, (byte, next)| found | ((*byte == b'\\') & (*next | 0x20 == b'u'))) {
        return false;
    }
    let is_escape = |rest: &[u8]| matches!(rest, [b'\\', b'u' | b'U', rest @ ..] if is_noncharacter(rest));
    let is_start = |(at, byte): (usize, &u8)| match byte {
        0xef => source[at..].starts_with(&LEAD),
        b'\\' => is_escape(&source[at..]),
        _ => false,
    };
    source.iter().enumerate().any(is_start)
}

/// Whether hexadecimal digits begin with `fdd`, with zeros before it or not.
fn is_noncharacter(digits: &[u8]) -> bool {
    let start = digits.strip_prefix(b"0000").unwrap_or(digits);
    start.get(..3).is_some_and(|start| start.eq_ignore_ascii_case(b"fdd"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parse_json, parse_yaml};
    use proptest::prelude::*;

    #[test]
    fn bytes_that_are_no_text_are_kept_and_shown_as_replacement_characters() {
        for (bytes, shown) in [
            (&b"plain"[..], "plain"),
            ("é€😀\u{fdd0}\u{fdef}".as_bytes(), "é€😀\u{fdd0}\u{fdef}"),
            (b"a\xff\xfeb", "a\u{fffd}\u{fffd}b"),
            (b"\xe2\x82", "\u{fffd}\u{fffd}"),
            (b"\xed\xa0\x80", "\u{fffd}\u{fffd}\u{fffd}"),
            ("\u{fdd8}\u{fde0}".as_bytes(), "\u{fdd8}\u{fde0}"),
            ("\u{fffd}".as_bytes(), "\u{fffd}"),
        ] {
            let text = text_of_bytes(bytes);
            assert_eq!(bytes_of_text(&text), bytes, "{shown}");
            assert_eq!(shown_text(&text), shown);
        }
        assert!(matches!(text_of_bytes("é".as_bytes()), Cow::Borrowed(_)), "nothing to do");
        assert!(matches!(bytes_of_text("é"), Cow::Borrowed(_)), "nothing to do");
    }

    #[test]
    fn what_a_client_sends_as_text_is_never_taken_for_a_spelled_byte() {
        let pair = "\u{fdd8}\u{fde0}";
        for source in [format!(r#"{{"a{pair}":["{pair}"]}}"#), r#"{"a\ufdd8\uFDE0":["\ufDd8\ufde0"]}"#.to_owned()] {
            for mut value in
                [parse_json(source.as_bytes()).expect("JSON").value, parse_yaml(source.as_bytes()).expect("YAML").value]
            {
                value.guard_noncharacters(source.as_bytes());
                assert_eq!(value.to_json(), format!(r#"{{"a{pair}":["{pair}"]}}"#));
                let guarded = value.clone();
                value.replace_stray_bytes();
                assert_eq!(value, guarded, "there is no stray byte in it");
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_have_a_text_of_their_own(bytes in any::<Vec<u8>>(), odd in "[\u{fdd6}-\u{fde2}]{0,6}") {
            let all = [&bytes, odd.as_bytes(), &bytes[..]].concat();
            prop_assert_eq!(bytes_of_text(&text_of_bytes(&all)).into_owned(), all);
        }
    }
}
