//! What is wrong with a text that is no JSON, in the words that clients of Kubernetes know (those of Go's scanner).
//!
//! Only looked for when a text could not be read, so that reading itself need not know these words.

/// What is expected next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    Value,
    /// A value or the end of an array that has none yet.
    ValueOrEnd,
    /// A key or the end of an object that has none yet.
    KeyOrEnd,
    Key,
    Colon,
    /// A comma or the end of what is open; at the outside nothing but blanks.
    After,
}

/// What is wrong with a text; `None` if it is JSON.
pub fn json_syntax_problem(text: &[u8]) -> Option<String> {
    let mut open: Vec<u8> = Vec::new();
    let mut expected = Expected::Value;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        if matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
            at += 1;
            continue;
        }
        let invalid = |context: &str| Some(format!("invalid character {} {context}", quoted(byte)));
        match expected {
            Expected::Value | Expected::ValueOrEnd => match byte {
                b']' if expected == Expected::ValueOrEnd => {
                    open.pop();
                    expected = Expected::After;
                    at += 1;
                }
                b'{' | b'[' => {
                    open.push(byte);
                    expected = if byte == b'{' { Expected::KeyOrEnd } else { Expected::ValueOrEnd };
                    at += 1;
                }
                _ => {
                    at = match scalar(text, at) {
                        Ok(end) => end,
                        Err(problem) => return Some(problem),
                    };
                    expected = Expected::After;
                }
            },
            Expected::KeyOrEnd if byte == b'}' => {
                open.pop();
                expected = Expected::After;
                at += 1;
            }
            Expected::KeyOrEnd | Expected::Key => {
                if byte != b'"' {
                    return invalid("looking for beginning of object key string");
                }
                at = match string(text, at + 1) {
                    Ok(end) => end,
                    Err(problem) => return Some(problem),
                };
                expected = Expected::Colon;
            }
            Expected::Colon if byte == b':' => {
                expected = Expected::Value;
                at += 1;
            }
            Expected::Colon => return invalid("after object key"),
            Expected::After => {
                expected = match (open.last(), byte) {
                    (Some(b'{'), b',') => Expected::Key,
                    (Some(b'['), b',') => Expected::Value,
                    (Some(b'{'), b'}') | (Some(b'['), b']') => {
                        open.pop();
                        Expected::After
                    }
                    (Some(b'{'), _) => return invalid("after object key:value pair"),
                    (Some(_), _) => return invalid("after array element"),
                    (None, _) => return invalid("after top-level value"),
                };
                at += 1;
            }
        }
    }
    let is_whole = open.is_empty() && expected == Expected::After;
    (!is_whole).then(end_of_input)
}

fn end_of_input() -> String {
    "unexpected end of JSON input".to_owned()
}

/// A byte as Go shows it: as the character with its number.
fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => "'\\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        b'\\' => "'\\\\'".to_owned(),
        0x07 => "'\\a'".to_owned(),
        0x08 => "'\\b'".to_owned(),
        0x0c => "'\\f'".to_owned(),
        b'\n' => "'\\n'".to_owned(),
        b'\r' => "'\\r'".to_owned(),
        b'\t' => "'\\t'".to_owned(),
        0x0b => "'\\v'".to_owned(),
        0x20..=0x7e | 0xa1..=0xac | 0xae..=0xff => format!("'{}'", char::from(byte)),
        0x80..=0xa0 | 0xad => format!("'\\u{byte:04x}'"),
        _ => format!("'\\x{byte:02x}'"),
    }
}

fn invalid_at(text: &[u8], at: usize, context: &str) -> String {
    text.get(at).map_or_else(end_of_input, |byte| format!("invalid character {} {context}", quoted(*byte)))
}

/// Where a text, a number or a word ends that begins here.
fn scalar(text: &[u8], at: usize) -> Result<usize, String> {
    match text[at] {
        b'"' => string(text, at + 1),
        b'-' | b'0'..=b'9' => number(text, at),
        b't' => word(text, at, "true"),
        b'f' => word(text, at, "false"),
        b'n' => word(text, at, "null"),
        _ => Err(invalid_at(text, at, "looking for beginning of value")),
    }
}

fn word(text: &[u8], at: usize, wanted: &str) -> Result<usize, String> {
    for (offset, letter) in wanted.bytes().enumerate().skip(1) {
        if text.get(at + offset) != Some(&letter) {
            let context = format!("in literal {wanted} (expecting '{}')", char::from(letter));
            return Err(invalid_at(text, at + offset, &context));
        }
    }
    Ok(at + wanted.len())
}

/// Where a string ends whose first character would stand here.
fn string(text: &[u8], mut at: usize) -> Result<usize, String> {
    loop {
        match text.get(at) {
            None => return Err(end_of_input()),
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => match text.get(at + 1) {
                Some(b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"') => at += 2,
                Some(b'u') => {
                    for offset in 2..6 {
                        if !text.get(at + offset).is_some_and(u8::is_ascii_hexdigit) {
                            return Err(invalid_at(text, at + offset, "in \\u hexadecimal character escape"));
                        }
                    }
                    at += 6;
                }
                _ => return Err(invalid_at(text, at + 1, "in string escape code")),
            },
            Some(0..0x20) => return Err(invalid_at(text, at, "in string literal")),
            Some(_) => at += 1,
        }
    }
}

fn number(text: &[u8], mut at: usize) -> Result<usize, String> {
    let is_digit = |at: usize| text.get(at).is_some_and(u8::is_ascii_digit);
    let digits = |mut at: usize| {
        while is_digit(at) {
            at += 1;
        }
        at
    };
    if text[at] == b'-' {
        at += 1;
        if !is_digit(at) {
            return Err(invalid_at(text, at, "in numeric literal"));
        }
    }
    at = if text[at] == b'0' { at + 1 } else { digits(at) };
    if text.get(at) == Some(&b'.') {
        if !is_digit(at + 1) {
            return Err(invalid_at(text, at + 1, "after decimal point in numeric literal"));
        }
        at = digits(at + 1);
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        at += 1;
        if matches!(text.get(at), Some(b'+' | b'-')) {
            at += 1;
        }
        if !is_digit(at) {
            return Err(invalid_at(text, at, "in exponent of numeric literal"));
        }
        at = digits(at);
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_told_in_the_words_of_go() {
        for (text, want) in [
            ("", "unexpected end of JSON input"),
            ("{\"a\":1", "unexpected end of JSON input"),
            ("\"a", "unexpected end of JSON input"),
            ("tru", "unexpected end of JSON input"),
            ("x", "invalid character 'x' looking for beginning of value"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("{,}", "invalid character ',' looking for beginning of object key string"),
            ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\":1 \"b\"}", "invalid character '\"' after object key:value pair"),
            ("[1 2]", "invalid character '2' after array element"),
            ("{} x", "invalid character 'x' after top-level value"),
            ("\"a\tb\"", "invalid character '\\t' in string literal"),
            ("\"\u{1}\"", "invalid character '\\x01' in string literal"),
            ("\"\\x\"", "invalid character 'x' in string escape code"),
            ("\"\\u12g4\"", "invalid character 'g' in \\u hexadecimal character escape"),
            ("-x", "invalid character 'x' in numeric literal"),
            ("1.x", "invalid character 'x' after decimal point in numeric literal"),
            ("1ex", "invalid character 'x' in exponent of numeric literal"),
            ("01", "invalid character '1' after top-level value"),
            ("nul1", "invalid character '1' in literal null (expecting 'l')"),
            ("ä", "invalid character 'Ã' looking for beginning of value"),
        ] {
            assert_eq!(json_syntax_problem(text.as_bytes()).as_deref(), Some(want), "{text}");
        }
        for text in ["{}", " [1, -0.5e+3, \"\\u00e9\", true, false, null, {\"a\": [], \"b\": {}}] ", "0"] {
            assert_eq!(json_syntax_problem(text.as_bytes()), None, "{text}");
        }
    }
}
