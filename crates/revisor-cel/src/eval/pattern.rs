//! Patterns. They are written as RE2 has them, and searched for by a machine that takes no longer than the text and the
//! pattern are long, whatever they are.
//!
//! What the two notations see differently is rewritten: classes such as `\d` mean ASCII, and inside brackets only
//! `[:name:]` is special.

use regex::{Regex, RegexBuilder};

use super::error::EvalError;

/// How much memory a pattern may take. Larger ones are refused, as those with huge repetitions are in RE2.
const LARGEST: usize = 10 << 20;

/// Makes a pattern ready to be searched for.
pub(crate) fn compile(text: &str) -> Result<Regex, EvalError> {
    let invalid = || EvalError::failed(format!("error parsing regexp: {}", problem(text)));
    let translated = translate(text).filter(|_| repetitions_are_sane(text)).ok_or_else(invalid)?;
    RegexBuilder::new(&translated).size_limit(LARGEST).nest_limit(1000).build().map_err(|_| invalid())
}

/// What is wrong with a pattern, in the words of the original.
fn problem(text: &str) -> String {
    use regex_syntax::ast::{ErrorKind, parse::ParserBuilder};
    let Err(error) = ParserBuilder::new().nest_limit(1000).build().parse(text) else {
        return format!("invalid or unsupported Perl syntax: `{text}`");
    };
    let from = error.span().start.offset.min(text.len());
    let to = error.span().end.offset.min(text.len());
    let there = text.get(from..to).unwrap_or(text);
    match error.kind() {
        ErrorKind::GroupUnclosed => format!("missing closing ): `{text}`"),
        ErrorKind::GroupUnopened => format!("unexpected ): `{text}`"),
        ErrorKind::ClassUnclosed => format!("missing closing ]: `{}`", text.get(from..).unwrap_or(text)),
        ErrorKind::ClassRangeInvalid => format!("invalid character class range: `{there}`"),
        ErrorKind::RepetitionMissing => format!("missing argument to repetition operator: `{there}`"),
        ErrorKind::RepetitionCountInvalid => format!("invalid repeat count: `{there}`"),
        ErrorKind::EscapeUnexpectedEof => "trailing backslash at end of expression: ``".to_owned(),
        ErrorKind::EscapeUnrecognized | ErrorKind::UnsupportedBackreference => {
            format!("invalid escape sequence: `{there}`")
        }
        _ => format!("invalid or unsupported Perl syntax: `{there}`"),
    }
}

/// How often something may be repeated by a number.
const MOST_REPETITIONS: u32 = 1000;

/// Whether no number of repetitions is too large.
fn repetitions_are_sane(text: &str) -> bool {
    text.split('{').skip(1).all(|rest| {
        let inside = rest.split('}').next().unwrap_or_default();
        !is_count(rest)
            || inside
                .split(',')
                .all(|count| count.is_empty() || count.parse().is_ok_and(|count: u32| count <= MOST_REPETITIONS))
    })
}

/// The pattern in the other notation; `None` if it is none.
fn translate(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(char) = rest.chars().next() {
        rest = &rest[char.len_utf8()..];
        match char {
            '\\' => rest = escape(rest, &mut out)?,
            '[' => rest = class(rest, &mut out)?,
            '{' if !is_count(rest) => out.push_str("\\{"),
            '}' if !closes_count(&out) => out.push_str("\\}"),
            char => out.push(char),
        }
    }
    Some(out)
}

/// Whether what follows a brace is a number of repetitions.
fn is_count(rest: &str) -> bool {
    let Some((inside, _)) = rest.split_once('}') else { return false };
    let (from, to) = inside.split_once(',').unwrap_or((inside, "0"));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !from.is_empty() && digits(from) && digits(to)
}

fn closes_count(out: &str) -> bool {
    out.rfind('{').is_some_and(|at| {
        let inside = &out[at + 1..];
        !out[..at].ends_with('\\') && inside.bytes().all(|byte| byte.is_ascii_digit() || byte == b',')
    })
}

const CLASSES: [(char, &str); 6] = [
    ('d', "[0-9]"),
    ('D', "[^0-9]"),
    ('w', "[0-9A-Za-z_]"),
    ('W', "[^0-9A-Za-z_]"),
    ('s', r"[\t\n\x0C\r ]"),
    ('S', r"[^\t\n\x0C\r ]"),
];

/// Rewrites what follows a backslash outside brackets; answers what comes after it.
fn escape<'a>(rest: &'a str, out: &mut String) -> Option<&'a str> {
    let char = rest.chars().next()?;
    let after = &rest[char.len_utf8()..];
    match char {
        'Q' => {
            let (literal, after) = after.split_once("\\E").unwrap_or((after, ""));
            out.push_str(&regex::escape(literal));
            return Some(after);
        }
        'b' => out.push_str(r"(?-u:\b)"),
        'B' => out.push_str(r"\B"),
        'C' => return None,
        char => single(char, out)?,
    }
    Some(after)
}

fn single(char: char, out: &mut String) -> Option<()> {
    if let Some((_, class)) = CLASSES.iter().find(|(name, _)| *name == char) {
        out.push_str(class);
    } else if char.is_ascii_punctuation() {
        out.push_str(&regex::escape(char.encode_utf8(&mut [0; 4])));
    } else if char == '0' {
        out.push_str("\\x00");
    } else if matches!(char, '1'..='9' | 'Z' | '<' | '>' | 'u' | 'U' | 'h' | 'H' | 'R' | 'K' | 'X' | 'G') {
        return None;
    } else {
        out.push('\\');
        out.push(char);
    }
    Some(())
}

/// Rewrites what stands between brackets; answers what comes after them.
fn class<'a>(mut rest: &'a str, out: &mut String) -> Option<&'a str> {
    out.push('[');
    if let Some(after) = rest.strip_prefix('^') {
        out.push('^');
        rest = after;
    }
    let mut first = true;
    loop {
        let char = rest.chars().next()?;
        let after = &rest[char.len_utf8()..];
        match char {
            ']' if !first => {
                out.push(']');
                return Some(after);
            }
            '[' if after.starts_with(':') => {
                let end = after.find(":]")? + 2;
                out.push('[');
                out.push_str(&after[..end]);
                rest = &after[end..];
            }
            '\\' => {
                let escaped = after.chars().next()?;
                rest = &after[escaped.len_utf8()..];
                match escaped {
                    'p' | 'P' | 'x' => {
                        out.push('\\');
                        out.push(escaped);
                    }
                    'b' | 'B' | 'A' | 'z' => return None,
                    escaped => single(escaped, out)?,
                }
            }
            '[' | ']' | '&' | '~' => {
                out.push('\\');
                out.push(char);
                rest = after;
            }
            char => {
                out.push(char);
                rest = after;
            }
        }
        first = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_to_re2() {
        for (pattern, text, found) in [
            (r"^\d+$", "12", true),
            (r"^\d+$", "١٢", false),
            (r"^[\w-]+$", "a-b_c", true),
            (r"^[\w-]+$", "ä", false),
            (r"^[[]$", "[", true),
            (r"^[]]$", "]", true),
            (r"^[a&&b]+$", "a&b", true),
            (r"^[[:alpha:]]+$", "abc", true),
            (r"a{,2}", "a{,2}", true),
            (r"a{x}", "a{x}", true),
            (r"^a{2}$", "aa", true),
            (r"\Qa.b\E", "a.b", true),
            (r"\Qa.b\E", "axb", false),
            (r"\bfoo\b", "a foo b", true),
            (r"^[^\s]+$", "a b", false),
            (r"(?i)ABC", "abc", true),
            (r"^\pL+$", "äb", true),
        ] {
            let compiled = compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            assert_eq!(compiled.is_match(text), found, "{pattern} in {text}");
        }
        for pattern in ["(", "[a", r"a\", r"(?=a)", r"\1", r"(a", "a{1,2}{", "*"] {
            let refused = compile(pattern).is_err();
            assert_eq!(refused, pattern != "a{1,2}{", "{pattern}");
        }
    }

    #[test]
    fn no_pattern_takes_long() {
        let compiled = compile("^(a+)+$").expect("is a pattern");
        assert!(!compiled.is_match(&format!("{}b", "a".repeat(100_000))));
        assert!(compile("((((a{1000}){1000}){1000}){1000}){1000}").is_err());
    }
}
