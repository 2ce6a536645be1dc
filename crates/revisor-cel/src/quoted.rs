//! What a quoted literal says: quotation marks off, escape sequences replaced.

/// The value of a string literal as it stands in the source, prefix and marks included.
pub(crate) fn string(literal: &str) -> Result<String, &'static str> {
    let mut text = String::with_capacity(literal.len());
    unescape(literal, |piece| {
        match piece {
            Piece::Char(char) => text.push(char),
            Piece::Code(code) => text.push(char::from_u32(code).ok_or("invalid unicode code point")?),
            Piece::Unicode(code) => text.push(char::from_u32(code).ok_or("invalid unicode code point")?),
        }
        Ok(())
    })?;
    Ok(text)
}

/// The value of a bytes literal, without the `b` before it.
pub(crate) fn bytes(literal: &str) -> Result<Vec<u8>, &'static str> {
    let mut bytes = Vec::with_capacity(literal.len());
    unescape(literal, |piece| {
        match piece {
            Piece::Char(char) => bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
            Piece::Code(code) => bytes.push(code as u8),
            Piece::Unicode(_) => return Err("unable to unescape string"),
        }
        Ok(())
    })?;
    Ok(bytes)
}

enum Piece {
    /// A character as it is.
    Char(char),
    /// `\x41` or `\101`: a character in a string, a byte in bytes.
    Code(u32),
    /// `\u0041`: a character, which bytes do not have.
    Unicode(u32),
}

fn unescape(literal: &str, mut each: impl FnMut(Piece) -> Result<(), &'static str>) -> Result<(), &'static str> {
    const BAD: &str = "unable to unescape string";
    let literal = literal.replace("\r\n", "\n").replace('\r', "\n");
    let (raw, quoted) = match literal.strip_prefix(['r', 'R']) {
        Some(rest) => (true, rest),
        None => (false, literal.as_str()),
    };
    let marks = if quoted.len() >= 6 && (quoted.starts_with("'''") || quoted.starts_with("\"\"\"")) { 3 } else { 1 };
    let inner = quoted.get(marks..quoted.len().saturating_sub(marks)).ok_or(BAD)?;
    let mut chars = inner.chars();
    while let Some(char) = chars.next() {
        if raw || char != '\\' {
            each(Piece::Char(char))?;
            continue;
        }
        let escape = chars.next().ok_or("unable to unescape string, found '\\' as last character")?;
        let mut number = |digits: u32, radix: u32, first: u32| -> Result<u32, &'static str> {
            (0..digits).try_fold(first, |value, _| {
                let digit = chars.next().and_then(|char| char.to_digit(radix)).ok_or(BAD)?;
                Ok(value.wrapping_mul(radix).wrapping_add(digit))
            })
        };
        each(match escape {
            'a' => Piece::Char('\u{7}'),
            'b' => Piece::Char('\u{8}'),
            'f' => Piece::Char('\u{c}'),
            'n' => Piece::Char('\n'),
            'r' => Piece::Char('\r'),
            't' => Piece::Char('\t'),
            'v' => Piece::Char('\u{b}'),
            '\\' | '\'' | '"' | '`' | '?' => Piece::Char(escape),
            'x' | 'X' => Piece::Code(number(2, 16, 0)?),
            'u' => Piece::Unicode(number(4, 16, 0)?),
            'U' => Piece::Unicode(number(8, 16, 0)?),
            '0'..='3' => Piece::Code(number(2, 8, escape as u32 - '0' as u32)?),
            _ => return Err(BAD),
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_unquoted_and_unescaped() {
        for (literal, want) in [
            ("''", Ok("")),
            ("'a'", Ok("a")),
            (r#""a\n\t\"\?""#, Ok("a\n\t\"?")),
            (r"'\x41\101\u00e9\U0001F600'", Ok("AAé😀")),
            (r"r'\x41'", Ok(r"\x41")),
            ("'''a'b'''", Ok("a'b")),
            ("'''a\r\nb\r'''", Ok("a\nb\n")),
            (r"'\ud800'", Err("invalid unicode code point")),
            (r"'\UFFFFFFFF'", Err("invalid unicode code point")),
        ] {
            assert_eq!(string(literal), want.map(str::to_string), "{literal}");
        }
    }

    #[test]
    fn bytes_take_codes_as_bytes_and_no_unicode_escapes() {
        for (literal, want) in [
            (r"'\xff\377a'", Ok(vec![255, 255, b'a'])),
            ("'é'", Ok("é".as_bytes().to_vec())),
            (r"'\u00e9'", Err("unable to unescape string")),
        ] {
            assert_eq!(bytes(literal), want, "{literal}");
        }
    }
}
