//! What Go's JSON decoder says about a text that is not JSON. Upstream: the scanner of `encoding/json`.

/// How deep Go's decoder goes.
const MAX_DEPTH: usize = 10_000;

/// The words for what is wrong with `text`, if anything is.
pub fn json_problem(text: &[u8]) -> Option<String> {
    let mut scanner = Scanner { within: Vec::new(), step: Step::Value };
    for byte in text {
        if let Err(problem) = scanner.take(*byte) {
            return Some(problem);
        }
    }
    if scanner.step == Step::EndTop {
        return None;
    }
    // As the original finds out that a number is over, or that something is missing.
    match scanner.take(b' ') {
        Err(problem) => Some(problem),
        Ok(()) if scanner.step == Step::EndTop => None,
        Ok(()) => Some("unexpected end of JSON input".to_owned()),
    }
}

/// What is around the next byte.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Array,
    /// An object, behind a key of it.
    Key,
    /// An object, behind a value of it.
    Member,
}

/// What may come next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Value,
    ValueOrEnd,
    Key,
    KeyOrEnd,
    EndValue,
    EndTop,
    Text,
    Escape,
    Hex(u8),
    Minus,
    Zero,
    Integer,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
    Literal(&'static str, usize),
}

struct Scanner {
    within: Vec<Within>,
    step: Step,
}

impl Scanner {
    fn take(&mut self, byte: u8) -> Result<(), String> {
        let is_blank = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.step = match self.step {
            Step::Value | Step::ValueOrEnd | Step::Key | Step::KeyOrEnd | Step::EndTop if is_blank => return Ok(()),
            Step::ValueOrEnd if byte == b']' => return self.end(byte),
            Step::Value | Step::ValueOrEnd => return self.begin(byte),
            Step::KeyOrEnd if byte == b'}' => {
                self.within.pop();
                self.within.push(Within::Member);
                return self.end(byte);
            }
            Step::Key | Step::KeyOrEnd if byte == b'"' => Step::Text,
            Step::Key | Step::KeyOrEnd => return Err(problem(byte, "looking for beginning of object key string")),
            Step::EndValue => return self.end(byte),
            Step::EndTop => return Err(problem(byte, "after top-level value")),
            Step::Text => match byte {
                b'"' => self.after_value(),
                b'\\' => Step::Escape,
                0..0x20 => return Err(problem(byte, "in string literal")),
                _ => Step::Text,
            },
            Step::Escape => match byte {
                b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => Step::Text,
                b'u' => Step::Hex(0),
                _ => return Err(problem(byte, "in string escape code")),
            },
            Step::Hex(count) if byte.is_ascii_hexdigit() => {
                if count == 3 {
                    Step::Text
                } else {
                    Step::Hex(count + 1)
                }
            }
            Step::Hex(_) => return Err(problem(byte, "in \\u hexadecimal character escape")),
            Step::Minus if byte == b'0' => Step::Zero,
            Step::Minus if byte.is_ascii_digit() => Step::Integer,
            Step::Minus => return Err(problem(byte, "in numeric literal")),
            Step::Integer if byte.is_ascii_digit() => Step::Integer,
            Step::Zero | Step::Integer if byte == b'.' => Step::Point,
            Step::Zero | Step::Integer | Step::Fraction if matches!(byte, b'e' | b'E') => Step::Exponent,
            Step::Point if byte.is_ascii_digit() => Step::Fraction,
            Step::Point => return Err(problem(byte, "after decimal point in numeric literal")),
            Step::Fraction if byte.is_ascii_digit() => Step::Fraction,
            Step::Exponent if matches!(byte, b'+' | b'-') => Step::ExponentSign,
            Step::Exponent | Step::ExponentSign | Step::ExponentDigits if byte.is_ascii_digit() => Step::ExponentDigits,
            Step::Exponent | Step::ExponentSign => return Err(problem(byte, "in exponent of numeric literal")),
            Step::Zero | Step::Integer | Step::Fraction | Step::ExponentDigits => {
                self.step = self.after_value();
                return self.take(byte);
            }
            Step::Literal(literal, at) => {
                let wanted = literal.as_bytes()[at];
                if byte != wanted {
                    let place = format!("in literal {literal} (expecting {})", character(wanted));
                    return Err(problem(byte, &place));
                }
                if at + 1 == literal.len() { self.after_value() } else { Step::Literal(literal, at + 1) }
            }
        };
        Ok(())
    }

    /// The first byte of a value.
    fn begin(&mut self, byte: u8) -> Result<(), String> {
        self.step = match byte {
            b'{' | b'[' => {
                if self.within.len() >= MAX_DEPTH {
                    return Err("exceeded max depth".to_owned());
                }
                self.within.push(if byte == b'{' { Within::Key } else { Within::Array });
                if byte == b'{' { Step::KeyOrEnd } else { Step::ValueOrEnd }
            }
            b'"' => Step::Text,
            b'-' => Step::Minus,
            b'0' => Step::Zero,
            b'1'..=b'9' => Step::Integer,
            b't' => Step::Literal("true", 1),
            b'f' => Step::Literal("false", 1),
            b'n' => Step::Literal("null", 1),
            _ => return Err(problem(byte, "looking for beginning of value")),
        };
        Ok(())
    }

    /// What may follow a value, or a key.
    fn after_value(&self) -> Step {
        if self.within.is_empty() { Step::EndTop } else { Step::EndValue }
    }

    /// A byte behind a value or a key.
    fn end(&mut self, byte: u8) -> Result<(), String> {
        if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
            return Ok(());
        }
        let Some(within) = self.within.last_mut() else { return Err(problem(byte, "after top-level value")) };
        self.step = match (*within, byte) {
            (Within::Key, b':') => {
                *within = Within::Member;
                Step::Value
            }
            (Within::Key, _) => return Err(problem(byte, "after object key")),
            (Within::Member, b',') => {
                *within = Within::Key;
                Step::Key
            }
            (Within::Array, b',') => Step::Value,
            (Within::Member, b'}') | (Within::Array, b']') => {
                self.within.pop();
                self.after_value()
            }
            (Within::Member, _) => return Err(problem(byte, "after object key:value pair")),
            (Within::Array, _) => return Err(problem(byte, "after array element")),
        };
        Ok(())
    }
}

fn problem(byte: u8, place: &str) -> String {
    format!("invalid character {} {place}", character(byte))
}

/// A byte in single quotes, as the character with its number.
fn character(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        b'\\' => r"'\\'".to_owned(),
        0x07 => r"'\a'".to_owned(),
        0x08 => r"'\b'".to_owned(),
        0x0b => r"'\v'".to_owned(),
        0x0c => r"'\f'".to_owned(),
        b'\n' => r"'\n'".to_owned(),
        b'\r' => r"'\r'".to_owned(),
        b'\t' => r"'\t'".to_owned(),
        0..0x20 | 0x7f => format!("'\\x{byte:02x}'"),
        0x80..=0xa0 | 0xad => format!("'\\u{byte:04x}'"),
        _ => format!("'{}'", char::from(byte)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_told_as_go_tells_them() {
        for (text, want) in [
            (&b"{}"[..], None),
            (b" [1, -2.5e+3, \"a\\u00e9\\n\", null, true, {\"a\" : [] , \"b\":{}}] \n", None),
            (b"0", None),
            (b"{\"a\":", Some("unexpected end of JSON input")),
            (b"{", Some("unexpected end of JSON input")),
            (b"\"a", Some("unexpected end of JSON input")),
            (b"", Some("unexpected end of JSON input")),
            (b"{} x", Some("invalid character 'x' after top-level value")),
            (b"01", Some("invalid character '1' after top-level value")),
            (b"{\"a\" 1}", Some("invalid character '1' after object key")),
            (b"{\"a\":1 \"b\"}", Some("invalid character '\"' after object key:value pair")),
            (b"{\"a\":1,}", Some("invalid character '}' looking for beginning of object key string")),
            (b"[1 2]", Some("invalid character '2' after array element")),
            (b"[1,]", Some("invalid character ']' looking for beginning of value")),
            (b"{1:2}", Some("invalid character '1' looking for beginning of object key string")),
            (b"{'a':1}", Some(r"invalid character '\'' looking for beginning of object key string")),
            (b"{\"a\":\n?}", Some("invalid character '?' looking for beginning of value")),
            (b"nul", Some("invalid character ' ' in literal null (expecting 'l')")),
            (b"nope", Some("invalid character 'o' in literal null (expecting 'u')")),
            (b"-x", Some("invalid character 'x' in numeric literal")),
            (b"1.x", Some("invalid character 'x' after decimal point in numeric literal")),
            (b"1ex", Some("invalid character 'x' in exponent of numeric literal")),
            (b"\"\\x\"", Some("invalid character 'x' in string escape code")),
            (b"\"\\u00x\"", Some("invalid character 'x' in \\u hexadecimal character escape")),
            (b"\"\n\"", Some("invalid character '\\n' in string literal")),
            (b"\xff\xfe", Some("invalid character 'ÿ' looking for beginning of value")),
            (b"\0", Some(r"invalid character '\x00' looking for beginning of value")),
        ] {
            assert_eq!(json_problem(text).as_deref(), want, "{}", String::from_utf8_lossy(text));
        }
        assert_eq!(json_problem(&[b'['; 20_000]).as_deref(), Some("exceeded max depth"));
    }
}
