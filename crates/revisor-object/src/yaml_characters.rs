//! The characters that YAML may be written in, as the original's reader takes them. Upstream: `readerc.go` of go-yaml.

use std::borrow::Cow;

/// The text of YAML in UTF-8 or, behind a byte order mark, in UTF-16.
///
/// # Errors
/// Why it is none.
pub(crate) fn yaml_text(bytes: &[u8]) -> Result<Cow<'_, str>, &'static str> {
    let text = match bytes {
        [0xff, 0xfe, rest @ ..] => Cow::Owned(utf16(rest, u16::from_le_bytes)?),
        [0xfe, 0xff, rest @ ..] => Cow::Owned(utf16(rest, u16::from_be_bytes)?),
        _ => Cow::Borrowed(utf8(bytes)?),
    };
    if is_plain(text.as_bytes()) || text.strip_prefix(MARK).unwrap_or(&text).chars().all(is_allowed) {
        Ok(text)
    } else {
        Err("control characters are not allowed")
    }
}

/// Whether these bytes, which are of UTF-8, are characters that YAML may be written in.
pub fn is_yaml_text(bytes: &[u8]) -> bool {
    is_plain(bytes) || std::str::from_utf8(bytes).is_ok_and(|text| text.chars().all(is_allowed))
}

/// The byte order mark.
const MARK: char = '\u{feff}';

/// Whether all are visible characters of ASCII or end lines, which is found out in steps of many bytes.
fn is_plain(bytes: &[u8]) -> bool {
    let is_odd = |byte: u8| !matches!(byte, b' '..=b'~' | b'\n');
    bytes.chunks(64).all(|part| !part.iter().fold(false, |found, byte| found | is_odd(*byte)))
        || bytes.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t' | b'\r'))
}

fn is_allowed(letter: char) -> bool {
    matches!(letter, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}' | '\u{10000}'..)
}

fn utf8(bytes: &[u8]) -> Result<&str, &'static str> {
    let error = match std::str::from_utf8(bytes) {
        Ok(text) => return Ok(text),
        Err(error) => error,
    };
    let rest = &bytes[error.valid_up_to()..];
    let width = match rest[0] {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => return Err("invalid leading UTF-8 octet"),
    };
    let Some(octets) = rest.get(..width) else { return Err("incomplete UTF-8 octet sequence") };
    if octets[1..].iter().any(|octet| octet & 0xc0 != 0x80) {
        return Err("invalid trailing UTF-8 octet");
    }
    let first = u32::from(octets[0]) & (0x7f >> width);
    let value = octets[1..].iter().fold(first, |value, octet| value << 6 | u32::from(octet & 0x3f));
    let is_too_long = value < [0x80, 0x800, 0x1_0000][width - 2];
    Err(if is_too_long { "invalid length of a UTF-8 sequence" } else { "invalid Unicode character" })
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, &'static str> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return Err("incomplete UTF-16 character");
    }
    let units = pairs.iter().map(|pair| unit(*pair));
    char::decode_utf16(units).collect::<Result<String, _>>().map_err(|error| match error.unpaired_surrogate() {
        0xdc00.. => "unexpected low surrogate area",
        _ => "expected low surrogate area",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_taken_or_refused_as_the_original_does() {
        for (bytes, want) in [
            (&b"a: b\n\t\r"[..], Ok("a: b\n\t\r")),
            ("é\u{85}\u{fffd}😀".as_bytes(), Ok("é\u{85}\u{fffd}😀")),
            (b"\xff\xfea\0:\0", Ok("a:")),
            (b"\xfe\xff\0a\0:", Ok("a:")),
            (b"a\xff", Err("invalid leading UTF-8 octet")),
            (b"a\x80", Err("invalid leading UTF-8 octet")),
            (b"\xe2\x82", Err("incomplete UTF-8 octet sequence")),
            (b"\xc3(", Err("invalid trailing UTF-8 octet")),
            (b"\xc0\x80", Err("invalid length of a UTF-8 sequence")),
            (b"\xed\xa0\x80", Err("invalid Unicode character")),
            (b"\xf4\x90\x80\x80", Err("invalid Unicode character")),
            (b"\x7f", Err("control characters are not allowed")),
            (b"\x01", Err("control characters are not allowed")),
            ("\u{ffff}".as_bytes(), Err("control characters are not allowed")),
            (b"\xff\xfea", Err("incomplete UTF-16 character")),
            (b"\xff\xfe\0\xd8a\0", Err("expected low surrogate area")),
        ] {
            assert_eq!(yaml_text(bytes).as_deref(), want.as_ref().map(|text| *text), "{bytes:?}");
        }
    }
}
