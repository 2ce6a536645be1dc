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
    let invalid = |problem: String| EvalError::failed(format!("error parsing regexp: {problem}"));
    let translated = translate(text).map_err(|why| invalid(why.unwrap_or_else(|| problem(text))))?;
    let builder = RegexBuilder::new(&translated).size_limit(LARGEST).nest_limit(1000).build();
    builder.map_err(|_| invalid(problem(text)))
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
    let next = text.get(from..).and_then(|rest| rest.chars().next()).map(String::from).unwrap_or_default();
    match error.kind() {
        ErrorKind::GroupUnclosed => format!("missing closing ): `{text}`"),
        ErrorKind::GroupUnopened => format!("unexpected ): `{text}`"),
        ErrorKind::ClassUnclosed => format!("missing closing ]: `{}`", text.get(from..).unwrap_or(text)),
        ErrorKind::ClassRangeInvalid => format!("invalid character class range: `{there}`"),
        ErrorKind::RepetitionMissing => format!("missing argument to repetition operator: `{next}`"),
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

/// Why a pattern is none, where it is not what everybody finds wrong with it.
type Problem = Option<String>;

/// The pattern in the other notation.
fn translate(text: &str) -> Result<String, Problem> {
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    // Where the repetition begins that was just read, if one was. One `?` may follow, which makes it lazy.
    let mut repeated: Option<(usize, bool)> = None;
    while let Some(char) = rest.chars().next() {
        let at = text.len() - rest.len();
        rest = &rest[char.len_utf8()..];
        let count = if char == '{' { count(rest)? } else { None };
        if count.is_some() || matches!(char, '*' | '+' | '?') {
            let length = count.map_or(0, |count| count.len() + 1);
            out.push_str(&text[at..=at + length]);
            rest = &rest[length..];
            repeated = match repeated {
                None => Some((at, false)),
                Some((start, false)) if char == '?' => Some((start, true)),
                Some((start, _)) => {
                    let operators = &text[start..text.len() - rest.len()];
                    return Err(Some(format!("invalid nested repetition operator: `{operators}`")));
                }
            };
            continue;
        }
        repeated = None;
        match char {
            '\\' => rest = escape(rest, &mut out)?,
            '[' => rest = class(rest, &mut out)?,
            '(' if !has_known_flags(rest) => {
                let end = rest.find([':', ')']).unwrap_or(rest.len());
                return Err(Some(format!("invalid or unsupported Perl syntax: `({}`", &rest[..end])));
            }
            '{' => out.push_str("\\{"),
            '}' => out.push_str("\\}"),
            char => out.push(char),
        }
    }
    Ok(out)
}

/// Whether what follows a parenthesis sets no flags but those that there are.
fn has_known_flags(rest: &str) -> bool {
    let Some(flags) = rest.strip_prefix('?') else { return true };
    let named = flags.starts_with(['P', '<', '=', '!']);
    named || flags.split([':', ')']).next().is_none_or(|flags| flags.chars().all(|flag| "imsU-".contains(flag)))
}

/// The number of repetitions that follows a brace, if one does: what is between the braces.
fn count(rest: &str) -> Result<Option<&str>, Problem> {
    let Some((inside, _)) = rest.split_once('}') else { return Ok(None) };
    let (from, to) = inside.split_once(',').unwrap_or((inside, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if from.is_empty() || !digits(from) || !digits(to) {
        return Ok(None);
    }
    let sane = |text: &str| text.is_empty() || text.parse().is_ok_and(|count: u32| count <= MOST_REPETITIONS);
    let ordered = to.is_empty() || from.parse::<u32>().ok() <= to.parse::<u32>().ok();
    if !sane(from) || !sane(to) || !ordered {
        return Err(Some(format!("invalid repeat count: `{{{inside}}}`")));
    }
    // The other half of the braces goes with it.
    Ok(rest.get(..=inside.len()).map(|_| inside))
}

const NAMED_CLASSES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
    "xdigit",
];

const CLASSES: [(char, &str); 6] = [
    ('d', "[0-9]"),
    ('D', "[^0-9]"),
    ('w', "[0-9A-Za-z_]"),
    ('W', "[^0-9A-Za-z_]"),
    ('s', r"[\t\n\x0C\r ]"),
    ('S', r"[^\t\n\x0C\r ]"),
];

/// Rewrites what follows a backslash outside brackets; answers what comes after it.
fn escape<'a>(rest: &'a str, out: &mut String) -> Result<&'a str, Problem> {
    let char = rest.chars().next().ok_or(None)?;
    let after = &rest[char.len_utf8()..];
    match char {
        'Q' => {
            let (literal, after) = after.split_once("\\E").unwrap_or((after, ""));
            out.push_str(&regex::escape(literal));
            return Ok(after);
        }
        'p' | 'P' | 'x' => return Ok(braced(char, after, out)),
        '0'..='7' => return octal(rest, out).ok_or(None),
        'b' => out.push_str(r"(?-u:\b)"),
        'B' => out.push_str(r"\B"),
        'C' => return Err(None),
        char => single(char, out).ok_or(None)?,
    }
    Ok(after)
}

/// Rewrites the number of a character; answers what comes after it. A single digit would be a group to be repeated,
/// which no machine can do that is to be fast.
fn octal<'a>(rest: &'a str, out: &mut String) -> Option<&'a str> {
    let length = rest.bytes().take(3).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
    if length < 2 && !rest.starts_with('0') {
        return None;
    }
    let code = u32::from_str_radix(&rest[..length], 8).ok()?;
    out.push_str(&format!("\\x{{{code:x}}}"));
    Some(&rest[length..])
}

/// Copies an escape that may have its argument in braces; answers what comes after it.
fn braced<'a>(char: char, after: &'a str, out: &mut String) -> &'a str {
    out.push('\\');
    out.push(char);
    match after.starts_with('{').then(|| after.find('}')).flatten() {
        Some(end) => {
            out.push_str(&after[..=end]);
            &after[end + 1..]
        }
        None => after,
    }
}

fn single(char: char, out: &mut String) -> Option<()> {
    if let Some((_, class)) = CLASSES.iter().find(|(name, _)| *name == char) {
        out.push_str(class);
    } else if char.is_ascii_punctuation() {
        out.push_str(&regex::escape(char.encode_utf8(&mut [0; 4])));
    } else if matches!(char, '8' | '9' | 'Z' | '<' | '>' | 'u' | 'U' | 'h' | 'H' | 'R' | 'K' | 'X' | 'G') {
        return None;
    } else {
        out.push('\\');
        out.push(char);
    }
    Some(())
}

/// The name of a class that stands here, and what stands behind it.
fn named_class(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix("[:")?.split_once(":]")
}

/// Rewrites what stands between brackets; answers what comes after them.
fn class<'a>(mut rest: &'a str, out: &mut String) -> Result<&'a str, Problem> {
    out.push('[');
    if let Some(after) = rest.strip_prefix('^') {
        out.push('^');
        rest = after;
    }
    let mut first = true;
    loop {
        let char = rest.chars().next().ok_or(None)?;
        let after = &rest[char.len_utf8()..];
        if let Some((name, behind)) = named_class(rest) {
            let written = &rest[..rest.len() - behind.len()];
            if !NAMED_CLASSES.contains(&name.trim_start_matches('^')) {
                return Err(Some(format!("invalid character class range: `{written}`")));
            }
            out.push_str(written);
            (rest, first) = (behind, false);
            continue;
        }
        match char {
            ']' if !first => {
                out.push(']');
                return Ok(after);
            }
            '\\' => {
                let escaped = after.chars().next().ok_or(None)?;
                rest = &after[escaped.len_utf8()..];
                match escaped {
                    'p' | 'P' | 'x' => rest = braced(escaped, rest, out),
                    '0'..='7' => rest = octal(after, out).ok_or(None)?,
                    'b' | 'B' | 'A' | 'z' => return Err(None),
                    escaped => single(escaped, out).ok_or(None)?,
                }
            }
            '-' if after.starts_with('-') => {
                out.push_str("-\\-");
                rest = &after[1..];
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
            (r"^[[:]+$", "[:", true),
            (r"a{,2}", "a{,2}", true),
            (r"a{x}", "a{x}", true),
            (r"^a{2}$", "aa", true),
            (r"\Qa.b\E", "a.b", true),
            (r"\Qa.b\E", "axb", false),
            (r"\bfoo\b", "a foo b", true),
            (r"^[^\s]+$", "a b", false),
            (r"(?i)ABC", "abc", true),
            (r"^\pL+$", "äb", true),
            (r"^\p{Greek}+$", "αβ", true),
            (r"^[\p{Greek}]+$", "αβ", true),
            (r"\x{1F600}", "😀", true),
            (r"x*?y", "xxy", true),
            (r"^\141$", "a", true),
            (r"^[+--]+$", "+,-", true),
        ] {
            let compiled = compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            assert_eq!(compiled.is_match(text), found, "{pattern} in {text}");
        }
        for (pattern, problem) in [
            ("(", "missing closing ): `(`"),
            ("a)", "unexpected ): `a)`"),
            ("[a", "missing closing ]: `[a`"),
            ("[z-a]", "invalid character class range: `z-a`"),
            ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
            (r"a\", "trailing backslash at end of expression: ``"),
            ("*", "missing argument to repetition operator: `*`"),
            ("a**", "invalid nested repetition operator: `**`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            ("a{2,1}", "invalid repeat count: `{2,1}`"),
            (r"\1", r"invalid escape sequence: `\1`"),
        ] {
            let refused = compile(pattern).expect_err(pattern);
            assert_eq!(refused.to_string(), format!("error parsing regexp: {problem}"), "{pattern}");
        }
        for pattern in ["(?=a)", "(?x)a", "[a--b]", r"\8"] {
            assert!(compile(pattern).is_err(), "{pattern}");
        }
    }

    #[test]
    fn no_pattern_takes_long() {
        let compiled = compile("^(a+)+$").expect("is a pattern");
        assert!(!compiled.is_match(&format!("{}b", "a".repeat(100_000))));
        assert!(compile("((((a{1000}){1000}){1000}){1000}){1000}").is_err());
    }
}
