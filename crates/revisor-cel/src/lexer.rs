//! From characters to tokens: always the longest that fits. What fits nothing is skipped and reported.
//!
//! Spaces and comments stay in the list, for messages quote the text between two tokens.

use crate::source::{Issue, Source};
use crate::token::{Kind, Token};

/// The tokens of an expression, with one of kind [`Kind::End`] at the end.
pub(crate) fn tokens(source: &Source, issues: &mut Vec<Issue>) -> Vec<Token> {
    let chars = source.chars();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        match longest(&chars[at..]) {
            Ok((kind, length)) => {
                tokens.push(Token { kind, start: at as u32, end: (at + length) as u32 });
                at += length;
            }
            Err(read) => {
                // The character at which the hope was lost is part of the report, and skipped.
                let end = (at + read + 1).min(chars.len());
                let text = source.text(at as u32, end as u32);
                let location = source.location(at as u32);
                issues.push(Issue { location, message: format!("Syntax error: token recognition error at: '{text}'") });
                at = end;
            }
        }
    }
    let end = chars.len() as u32;
    tokens.push(Token { kind: Kind::End, start: end, end });
    tokens
}

/// The longest token at the start of `chars`, or how many characters looked like the start of one.
fn longest(chars: &[char]) -> Result<(Kind, usize), usize> {
    let second = chars.get(1).copied();
    let either =
        |next: char, double: Kind, single: Kind| Ok(if second == Some(next) { (double, 2) } else { (single, 1) });
    let only = |next: char, double: Kind| if second == Some(next) { Ok((double, 2)) } else { Err(1) };
    match chars[0] {
        '=' => only('=', Kind::Equals),
        '&' => only('&', Kind::And),
        '|' => only('|', Kind::Or),
        '!' => either('=', Kind::NotEquals, Kind::Exclamation),
        '<' => either('=', Kind::LessEquals, Kind::Less),
        '>' => either('=', Kind::GreaterEquals, Kind::Greater),
        '[' => Ok((Kind::LeftBracket, 1)),
        ']' => Ok((Kind::RightBracket, 1)),
        '{' => Ok((Kind::LeftBrace, 1)),
        '}' => Ok((Kind::RightBrace, 1)),
        '(' => Ok((Kind::LeftParen, 1)),
        ')' => Ok((Kind::RightParen, 1)),
        ',' => Ok((Kind::Comma, 1)),
        '-' => Ok((Kind::Minus, 1)),
        '?' => Ok((Kind::Question, 1)),
        ':' => Ok((Kind::Colon, 1)),
        '+' => Ok((Kind::Plus, 1)),
        '*' => Ok((Kind::Star, 1)),
        '%' => Ok((Kind::Percent, 1)),
        '/' if second == Some('/') => Ok((Kind::Comment, run(chars, |char| char != '\n'))),
        '/' => Ok((Kind::Slash, 1)),
        '.' | '0'..='9' => Ok(number(chars)),
        '"' | '\'' => quoted(chars, false).map(|length| (Kind::String, length)),
        '`' => escaped_identifier(chars),
        char if is_space(char) => Ok((Kind::Space, run(chars, is_space))),
        char if is_name_start(char) => Ok(word(chars)),
        _ => Err(0),
    }
}

fn is_space(char: char) -> bool {
    matches!(char, '\t' | ' ' | '\r' | '\n' | '\u{c}')
}

fn is_name_start(char: char) -> bool {
    char.is_ascii_alphabetic() || char == '_'
}

fn is_name(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '_'
}

/// How many characters at the start are of one sort.
fn run(chars: &[char], sort: impl Fn(char) -> bool) -> usize {
    chars.iter().take_while(|char| sort(**char)).count()
}

fn is_digit(char: char) -> bool {
    char.is_ascii_digit()
}

/// A number, or a dot that begins none.
fn number(chars: &[char]) -> (Kind, usize) {
    let mut whole = run(chars, is_digit);
    let mut kind = Kind::Int;
    if chars[0] == '0' && chars.get(1) == Some(&'x') {
        let hex = run(&chars[2..], |char| char.is_ascii_hexdigit());
        if hex > 0 {
            whole = 2 + hex;
        }
    }
    if whole > 0 && matches!(chars.get(whole), Some('u' | 'U')) {
        return (Kind::Uint, whole + 1);
    }
    if whole > 1 && chars[1] == 'x' {
        return (Kind::Int, whole);
    }
    let mut length = whole;
    if chars.get(length) == Some(&'.') {
        let fraction = run(&chars[length + 1..], is_digit);
        if fraction > 0 {
            length += 1 + fraction;
            kind = Kind::Float;
        }
    }
    if length == 0 {
        return (Kind::Dot, 1);
    }
    if matches!(chars.get(length), Some('e' | 'E')) {
        let sign = usize::from(matches!(chars.get(length + 1), Some('+' | '-')));
        let exponent = run(chars.get(length + 1 + sign..).unwrap_or_default(), is_digit);
        if exponent > 0 {
            return (Kind::Float, length + 1 + sign + exponent);
        }
    }
    (kind, length)
}

/// A name, a word with a meaning of its own, or a string with letters before it.
fn word(chars: &[char]) -> (Kind, usize) {
    let bytes = usize::from(matches!(chars[0], 'b' | 'B'));
    let raw = usize::from(matches!(chars.get(bytes), Some('r' | 'R')));
    if matches!(chars.get(bytes + raw), Some('"' | '\''))
        && let Ok(length) = quoted(&chars[bytes + raw..], raw > 0)
    {
        return (if bytes > 0 { Kind::Bytes } else { Kind::String }, bytes + raw + length);
    }
    let length = run(chars, is_name);
    let kind = match chars[..length].iter().collect::<String>().as_str() {
        "in" => Kind::In,
        "true" => Kind::True,
        "false" => Kind::False,
        "null" => Kind::Null,
        _ => Kind::Identifier,
    };
    (kind, length)
}

/// A string from its first quotation mark, or how far it was one.
fn quoted(chars: &[char], raw: bool) -> Result<usize, usize> {
    let quote = chars[0];
    if chars.starts_with(&[quote; 3]) {
        // Without an end of its own, the first two marks are an empty string.
        return Ok(triple(chars, quote, raw).unwrap_or(2));
    }
    let mut at = 1;
    loop {
        match chars.get(at) {
            None | Some('\n' | '\r') => return Err(at),
            Some(char) if *char == quote => return Ok(at + 1),
            Some('\\') if !raw => at = escape(chars, at)?,
            Some(_) => at += 1,
        }
    }
}

fn triple(chars: &[char], quote: char, raw: bool) -> Option<usize> {
    let mut at = 3;
    loop {
        if chars.get(at..)?.starts_with(&[quote; 3]) {
            return Some(at + 3);
        }
        match chars.get(at)? {
            '\\' if !raw => at = escape(chars, at).ok()?,
            _ => at += 1,
        }
    }
}

/// Where the escape sequence at `at` ends, or where it was lost.
fn escape(chars: &[char], at: usize) -> Result<usize, usize> {
    let (digits, radix) = match chars.get(at + 1) {
        Some('a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '"' | '\'' | '\\' | '?' | '`') => (0, 10),
        Some('0'..='3') => (2, 8),
        Some('x' | 'X') => (2, 16),
        Some('u') => (4, 16),
        Some('U') => (8, 16),
        _ => return Err(at + 1),
    };
    let mut at = at + 2;
    for _ in 0..digits {
        if !chars.get(at).is_some_and(|char| char.is_digit(radix)) {
            return Err(at);
        }
        at += 1;
    }
    Ok(at)
}

fn escaped_identifier(chars: &[char]) -> Result<(Kind, usize), usize> {
    let inner = run(&chars[1..], |char| is_name(char) || matches!(char, '.' | '-' | '/' | ' '));
    match chars.get(1 + inner) {
        Some('`') if inner > 0 => Ok((Kind::EscapedIdentifier, inner + 2)),
        _ => Err(1 + inner),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &[(Kind, &str)], lost: &[&str]) {
        let source = Source::new(text);
        let mut issues = Vec::new();
        let tokens = tokens(&source, &mut issues);
        let got: Vec<(Kind, String)> = tokens
            .iter()
            .filter(|token| !matches!(token.kind, Kind::Space | Kind::End))
            .map(|token| (token.kind, source.text(token.start, token.end)))
            .collect();
        let want: Vec<(Kind, String)> = want.iter().map(|(kind, text)| (*kind, text.to_string())).collect();
        assert_eq!(got, want, "{text}");
        let want: Vec<String> =
            lost.iter().map(|text| format!("Syntax error: token recognition error at: '{text}'")).collect();
        assert_eq!(issues.into_iter().map(|issue| issue.message).collect::<Vec<_>>(), want, "{text}");
    }

    #[test]
    fn the_longest_token_is_taken() {
        use Kind::*;
        check(
            "a<=b<c",
            &[(Identifier, "a"), (LessEquals, "<="), (Identifier, "b"), (Less, "<"), (Identifier, "c")],
            &[],
        );
        check("in inner", &[(In, "in"), (Identifier, "inner")], &[]);
        check(
            "1 2.5 .5 3e4 0x1F 0x 7u 0xau",
            &[
                (Int, "1"),
                (Float, "2.5"),
                (Float, ".5"),
                (Float, "3e4"),
                (Int, "0x1F"),
                (Int, "0"),
                (Identifier, "x"),
                (Uint, "7u"),
                (Uint, "0xau"),
            ],
            &[],
        );
        check(
            "1.a 1e+ 1.5e",
            &[
                (Int, "1"),
                (Dot, "."),
                (Identifier, "a"),
                (Int, "1"),
                (Identifier, "e"),
                (Plus, "+"),
                (Float, "1.5"),
                (Identifier, "e"),
            ],
            &[],
        );
        check("a // rest\nb", &[(Identifier, "a"), (Comment, "// rest"), (Identifier, "b")], &[]);
        check("a.`b-c/d`", &[(Identifier, "a"), (Dot, "."), (EscapedIdentifier, "`b-c/d`")], &[]);
    }

    #[test]
    fn strings_may_be_raw_bytes_and_of_many_lines() {
        use Kind::*;
        check(
            r#"'a\'b' "c" r'\d' b"x" bR'\' '''a'b
'''"#,
            &[
                (String, r"'a\'b'"),
                (String, "\"c\""),
                (String, r"r'\d'"),
                (Bytes, "b\"x\""),
                (Bytes, r"bR'\'"),
                (String, "'''a'b\n'''"),
            ],
            &[],
        );
        check("'' ''''''", &[(String, "''"), (String, "''''''")], &[]);
    }

    #[test]
    fn what_fits_nothing_is_reported_up_to_where_it_was_lost() {
        use Kind::*;
        check("a @ b", &[(Identifier, "a"), (Identifier, "b")], &["@"]);
        check("1 = 2", &[(Int, "1"), (Int, "2")], &["= "]);
        check("'abc", &[], &["'abc"]);
        check("'''abc", &[(String, "''")], &["'abc"]);
        check("b'x", &[(Identifier, "b")], &["'x"]);
        check(r"'\z' ", &[], &[r"'\z", "' "]);
        check("a &", &[(Identifier, "a")], &["&"]);
        check("``", &[], &["``"]);
    }
}
