//! JSON as the original's encoder writes it: no blanks, numbers in Go's notation, and the characters that could end a
//! script in a page of HTML escaped.
//!
//! [`Value::to_json`] writes the same values for everybody else.

use std::borrow::Cow;
use std::io::Write as _;

use crate::stray_bytes::{SPELLED_LENGTH, spelled_byte, spelled_run};
use crate::{Object, Value};

/// What has to be escaped in a text, or may be the start of it: 0xe2 begins the two separators of lines that Go escapes,
/// 0xef what spells a byte that is not of UTF-8.
const SPECIAL: [bool; 256] = {
    let mut special = [false; 256];
    let mut at = 0;
    while at < 0x20 {
        special[at] = true;
        at += 1;
    }
    special[b'"' as usize] = true;
    special[b'\\' as usize] = true;
    special[b'<' as usize] = true;
    special[b'>' as usize] = true;
    special[b'&' as usize] = true;
    special[0xe2] = true;
    special[0xef] = true;
    special
};

/// Appends a text with its quotes.
pub fn push_json_text(text: &str, out: &mut Vec<u8>) {
    push_text::<false>(text, out);
}

/// Appends the name of a member that is known to have nothing to escape, with its quotes and its colon.
pub fn push_plain_name(name: &str, out: &mut Vec<u8>) {
    debug_assert_eq!(plain_length(name.as_bytes()), name.len(), "{name} has something to escape");
    out.reserve(name.len() + 3);
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

/// The same for those who read it again: bytes that are not of UTF-8 stay spelled. Answers whether there are any.
pub fn push_kept_text(text: &str, out: &mut Vec<u8>) -> bool {
    push_text::<true>(text, out)
}

fn push_text<const KEEPS: bool>(text: &str, out: &mut Vec<u8>) -> bool {
    let bytes = text.as_bytes();
    // Most texts have nothing to escape.
    let plain = plain_length(bytes);
    if plain < bytes.len() {
        return push_escaped::<KEEPS>(bytes, plain, out);
    }
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    out.extend_from_slice(bytes);
    out.push(b'"');
    false
}

/// Appends a text with something in it that has to be escaped, or may be the start of it, behind so many bytes.
fn push_escaped<const KEEPS: bool>(bytes: &[u8], plain: usize, out: &mut Vec<u8>) -> bool {
    let mut has_kept = false;
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    let mut done = 0;
    let rest = bytes.iter().enumerate().skip(plain);
    for (at, byte) in rest.filter(|(_, byte)| SPECIAL[usize::from(**byte)]) {
        if at < done {
            continue;
        }
        let short = match byte {
            b'"' => b'"',
            b'\\' => b'\\',
            0x08 => b'b',
            0x0c => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            _ => 0,
        };
        if short != 0 {
            out.extend_from_slice(&bytes[done..at]);
            out.extend_from_slice(&[b'\\', short]);
            done = at + 1;
        } else if let Some((escape, length)) = html_escape(&bytes[at..]) {
            out.extend_from_slice(&bytes[done..at]);
            out.extend_from_slice(&escape);
            done = at + length;
        } else if *byte == 0xef && spelled_byte(&bytes[at..]).is_some() {
            if KEEPS {
                has_kept = true;
                continue;
            }
            out.extend_from_slice(&bytes[done..at]);
            done = at + push_shown_bytes(&bytes[at..], out);
        } else if *byte < 0x20 {
            out.extend_from_slice(&bytes[done..at]);
            // Writing to memory does not fail.
            let _ = write!(out, "\\u{byte:04x}");
            done = at + 1;
        }
    }
    out.extend_from_slice(&bytes[done..]);
    out.push(b'"');
    has_kept
}

/// Appends what is shown of the bytes that are spelled at the start of a text, of which there is one at least. Answers how
/// much of the text they take.
fn push_shown_bytes(text: &[u8], out: &mut Vec<u8>) -> usize {
    let bytes = spelled_run(text);
    for chunk in bytes.utf8_chunks() {
        out.extend_from_slice(chunk.valid().as_bytes());
        chunk.invalid().iter().for_each(|_| out.extend_from_slice(b"\\ufffd"));
    }
    bytes.len() * SPELLED_LENGTH
}

/// How many bytes at the start, in whole chunks or all of them, are known not to be [`SPECIAL`].
fn plain_length(bytes: &[u8]) -> usize {
    let (chunks, rest) = bytes.as_chunks::<CHUNK>();
    if let Some(at) = chunks.iter().position(has_special) {
        return at * CHUNK;
    }
    if rest.is_empty() {
        return bytes.len();
    }
    // The last chunk may overlap with the one before it, so that no byte is left to be looked at alone.
    let last = bytes.last_chunk::<CHUNK>().copied().unwrap_or_else(|| short_chunk(bytes));
    if has_special(&last) { bytes.len() - rest.len() } else { bytes.len() }
}

/// So many bytes are compared at once.
const CHUNK: usize = 16;

/// Fewer bytes than a chunk in one, some of them more than once: most names are that short.
fn short_chunk(bytes: &[u8]) -> [u8; CHUNK] {
    let mut chunk = [b' '; CHUNK];
    if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        chunk[..8].copy_from_slice(first);
        chunk[8..].copy_from_slice(last);
    } else if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        chunk[..4].copy_from_slice(first);
        chunk[4..8].copy_from_slice(last);
    } else {
        chunk.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
    }
    chunk
}

/// Whether one of the bytes is [`SPECIAL`]. Written so that the compiler makes vectors of it.
fn has_special(chunk: &[u8; CHUNK]) -> bool {
    let found = chunk.iter().fold(0, |found, &byte| {
        found
            | u8::from(byte < 0x20)
            | u8::from(byte == b'"')
            | u8::from(byte == b'\\')
            // `<` and `>` differ in one bit.
            | u8::from((byte | 2) == b'>')
            | u8::from(byte == b'&')
            | u8::from(byte == 0xe2)
            | u8::from(byte == 0xef)
    });
    found != 0
}

/// The escape of a character that pages of HTML could take for their own, and how many bytes it stands for.
fn html_escape(rest: &[u8]) -> Option<([u8; 6], usize)> {
    match rest {
        [b'<', ..] => Some((*b"\\u003c", 1)),
        [b'>', ..] => Some((*b"\\u003e", 1)),
        [b'&', ..] => Some((*b"\\u0026", 1)),
        [0xe2, 0x80, 0xa8, ..] => Some((*b"\\u2028", 3)),
        [0xe2, 0x80, 0xa9, ..] => Some((*b"\\u2029", 3)),
        _ => None,
    }
}

/// Appends any value, the members of objects in the order of their names.
pub fn push_json_value(value: &Value, out: &mut Vec<u8>) {
    push_value::<false>(value, out);
}

/// The same for those who read it again: bytes that are not of UTF-8 stay spelled. Answers whether there are any.
pub fn push_kept_value(value: &Value, out: &mut Vec<u8>) -> bool {
    push_value::<true>(value, out)
}

fn push_value<const KEEPS: bool>(value: &Value, out: &mut Vec<u8>) -> bool {
    let mut has_kept = false;
    match value {
        Value::Null | Value::Nothing => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Int(number) => push_integer(*number, out),
        Value::Float(number) => push_float(*number, out),
        Value::String(text) => has_kept = push_text::<KEEPS>(text, out),
        Value::Array(items) => {
            out.push(b'[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                has_kept |= push_value::<KEEPS>(item, out);
            }
            out.push(b']');
        }
        // Sets of fields are made of objects with nothing in them.
        Value::Object(object) if object.is_empty() => out.extend_from_slice(b"{}"),
        Value::Object(object) => has_kept = push_object::<KEEPS>(object, out),
        Value::Raw(raw) if raw.problem().is_some() => out.extend_from_slice(b"null"),
        Value::Raw(raw) if raw.is_own() => out.extend_from_slice(raw.text().as_bytes()),
        Value::Raw(raw) => out.extend_from_slice(&compact_json(raw.text().as_bytes())),
    }
    has_kept
}

/// The digits of a number, from the last to the first: the formatting of the standard library takes several times as long.
fn push_integer(number: i64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let (mut start, mut rest) = (digits.len(), number.unsigned_abs());
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[start..]);
}

fn push_object<const KEEPS: bool>(object: &Object, out: &mut Vec<u8>) -> bool {
    let mut has_kept = false;
    out.push(b'{');
    for (at, (name, member)) in object.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        has_kept |= push_text::<KEEPS>(name, out);
        out.push(b':');
        has_kept |= push_value::<KEEPS>(member, out);
    }
    out.push(b'}');
    has_kept
}

/// A number without a fraction is written as an integer, and read as one again.
fn push_float(number: f64, out: &mut Vec<u8>) {
    let size = number.abs();
    // Writing to memory does not fail.
    let _ = if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{number:e}");
        match text.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => write!(out, "{digits}e+{exponent}"),
            _ => write!(out, "{text}"),
        }
    } else {
        write!(out, "{number}")
    };
}

/// A text that is JSON as Go's encoder passes it on: without blanks, and with its escapes for HTML; names, numbers and
/// everything else are spelled as they were. Upstream: `compact` of `encoding/json`. Bytes that are not of UTF-8 are shown
/// as replacement characters.
pub fn compact_json(text: &[u8]) -> Cow<'_, [u8]> {
    let Some(first) = first_difference(text) else { return Cow::Borrowed(text) };
    let mut out = Vec::with_capacity(text.len() + 32);
    out.extend_from_slice(&text[..first]);
    let mut is_in_string = is_in_string(&text[..first]);
    let mut at = first;
    while let Some(byte) = text.get(at) {
        if let Some((escape, length)) = html_escape(&text[at..]) {
            out.extend_from_slice(&escape);
            at += length;
            continue;
        }
        if spelled_byte(&text[at..]).is_some() {
            at += push_shown_bytes(&text[at..], &mut out);
            continue;
        }
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' if !is_in_string => {}
            b'\\' => {
                let end = text.len().min(at + 2);
                out.extend_from_slice(&text[at..end]);
                at = end;
                continue;
            }
            b'"' => {
                is_in_string = !is_in_string;
                out.push(b'"');
            }
            other => out.push(*other),
        }
        at += 1;
    }
    Cow::Owned(out)
}

/// Where a text begins to differ from its compact form.
fn first_difference(text: &[u8]) -> Option<usize> {
    let mut is_in_string = false;
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' if !is_in_string => return Some(at),
            b'<' | b'>' | b'&' => return Some(at),
            0xe2 if html_escape(&text[at..]).is_some() => return Some(at),
            0xef if spelled_byte(&text[at..]).is_some() => return Some(at),
            b'\\' => at += 1,
            b'"' => is_in_string = !is_in_string,
            _ => {}
        }
        at += 1;
    }
    None
}

/// Whether a text ends within a string.
fn is_in_string(text: &[u8]) -> bool {
    let mut is_in_string = false;
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'\\' => at += 1,
            b'"' => is_in_string = !is_in_string,
            _ => {}
        }
        at += 1;
    }
    is_in_string
}

/// JSON of this server with the escapes for HTML. There are no blanks in it, and those characters are in texts alone. Bytes
/// that are not of UTF-8 are shown as replacement characters.
pub fn escape_html(json: &[u8]) -> Cow<'_, [u8]> {
    let special = |at: usize| match json[at] {
        b'<' | b'>' | b'&' | 0xe2 => html_escape(&json[at..]),
        _ => None,
    };
    let is_spelled = |at: usize| json[at] == 0xef && spelled_byte(&json[at..]).is_some();
    let Some(first) = (0..json.len()).find(|at| special(*at).is_some() || is_spelled(*at)) else {
        return Cow::Borrowed(json);
    };
    let mut out = Vec::with_capacity(json.len() + 32);
    out.extend_from_slice(&json[..first]);
    let mut at = first;
    while at < json.len() {
        match special(at) {
            Some((escape, length)) => {
                out.extend_from_slice(&escape);
                at += length;
            }
            None if is_spelled(at) => at += push_shown_bytes(&json[at..], &mut out),
            None => {
                out.push(json[at]);
                at += 1;
            }
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parse_json, text_of_bytes};

    #[test]
    fn texts_are_escaped_as_go_escapes_them() {
        for (text, want) in [
            ("", r#""""#),
            ("plain é 😀 \u{7f}", "\"plain é 😀 \u{7f}\""),
            ("\"\\\u{8}\u{c}\n\r\t\u{0}\u{1f}", r#""\"\\\b\f\n\r\t\u0000\u001f""#),
            ("<a>&\u{2028}\u{2029}\u{2030}", "\"\\u003ca\\u003e\\u0026\\u2028\\u2029\u{2030}\""),
        ] {
            let mut out = Vec::new();
            push_json_text(text, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), want, "{text:?}");
        }
    }

    #[test]
    fn what_has_to_be_escaped_is_found_wherever_it_stands() {
        for odd in (0..=0xff_u8).map(char::from).chain(['\u{2028}', '\u{2030}']) {
            let mut alone = Vec::new();
            push_json_text(&odd.to_string(), &mut alone);
            let escaped = String::from_utf8_lossy(&alone).trim_matches('"').to_owned();
            for (before, after) in (0..36).flat_map(|before| (0..20).map(move |after| (before, after))) {
                let around = |middle: &str| format!("{}{middle}{}", "x".repeat(before), "~".repeat(after));
                let mut out = Vec::new();
                push_json_text(&around(&odd.to_string()), &mut out);
                let want = if odd == '"' { around("\\\"") } else { around(&escaped) };
                assert_eq!(String::from_utf8_lossy(&out), format!("\"{want}\""), "{odd:?} behind {before}");
            }
        }
    }

    #[test]
    fn values_are_written_in_the_notation_of_go() {
        for (text, want) in [
            (
                r#"{ "b" : [1.0, 0.5, 1e21, 1e20, 1e-7, 0.000001], "a" : "<" }"#,
                r#"{"a":"\u003c","b":[1,0.5,1e+21,100000000000000000000,1e-7,0.000001]}"#,
            ),
            ("[null,true,false,{},[],-7]", "[null,true,false,{},[],-7]"),
        ] {
            let mut out = Vec::new();
            push_json_value(&parse_json(text.as_bytes()).expect("JSON").value, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), want, "{text}");
        }
    }

    #[test]
    fn compact_text_keeps_its_order_and_its_numbers() {
        for (text, want) in [
            (r#"{"a":1}"#, r#"{"a":1}"#),
            ("{ \"b\" : 1.0,\n\t\"a\":[ \"< \\\" >\" ] }\r\n", r#"{"b":1.0,"a":["\u003c \" \u003e"]}"#),
            ("[\"\\\\\" , 1e3, \"a b\u{2028}\"]", r#"["\\",1e3,"a b\u2028"]"#),
            ("  7 ", "7"),
        ] {
            assert_eq!(String::from_utf8_lossy(&compact_json(text.as_bytes())), want, "{text}");
        }
        assert!(matches!(compact_json(br#"{"a":"\u003c b"}"#), Cow::Borrowed(_)), "nothing to do");
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_as_go_shows_them_and_kept_for_those_who_read_again() {
        let odd = text_of_bytes(b"<a\xff\xfe\xe2\x82b \xef\xb7\x98\xef\xb7\xa0").into_owned();
        let shown = "\\u003ca\\ufffd\\ufffd\\ufffd\\ufffdb \u{fdd8}\u{fde0}";
        let value = Value::Object([(odd.as_str(), Value::from(odd.as_str()))].into_iter().collect());
        let mut out = Vec::new();
        push_json_value(&value, &mut out);
        assert_eq!(String::from_utf8_lossy(&out), format!("{{\"{shown}\":\"{shown}\"}}"));
        let mut kept = Vec::new();
        assert!(push_kept_value(&value, &mut kept));
        assert_eq!(parse_json(&kept).expect("JSON").value, value);
        assert_eq!(compact_json(&kept), out);
        assert_eq!(escape_html(&kept), out);
        assert!(!push_kept_text("é\u{feff}\u{fdd0}", &mut Vec::new()), "nothing to keep");
    }

    #[test]
    fn html_is_escaped_in_what_is_written_already() {
        assert_eq!(
            escape_html("{\"a\":\"<é>&\u{2029}€\"}".as_bytes()),
            "{\"a\":\"\\u003cé\\u003e\\u0026\\u2029€\"}".as_bytes()
        );
        assert!(matches!(escape_html("{\"a\":\"€\"}".as_bytes()), Cow::Borrowed(_)));
    }
}
