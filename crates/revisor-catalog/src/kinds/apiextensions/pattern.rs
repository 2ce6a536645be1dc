//! Whether a pattern is a regular expression, and if not, why: in the words in which Go's parser says it.

use regex_syntax::ast::parse::ParserBuilder;
use regex_syntax::ast::{Ast, ErrorKind, RepetitionKind, RepetitionRange};

/// How often something may be repeated, all repetitions around each other together.
const MAX_REPEAT: u32 = 1000;

/// How deep groups may nest.
const MAX_DEPTH: u32 = 1000;

/// Why a text is no regular expression.
pub(super) fn pattern_problem(pattern: &str) -> Option<String> {
    // Repetition operators that follow each other are one error there and fine here.
    if let Some(nested) = nested_repetition(pattern) {
        return Some(format!("error parsing regexp: invalid nested repetition operator: `{nested}`"));
    }
    match ParserBuilder::new().nest_limit(MAX_DEPTH).octal(false).build().parse(pattern) {
        Ok(ast) => too_often(&ast, 1, pattern).map(|part| problem("invalid repeat count", part)),
        Err(error) => {
            let span = error.span();
            let part = pattern.get(span.start.offset..span.end.offset).unwrap_or_default();
            let rest = pattern.get(span.start.offset..).unwrap_or_default();
            Some(match error.kind() {
                // Braces that count nothing stand for themselves.
                ErrorKind::RepetitionCountUnclosed
                | ErrorKind::RepetitionCountDecimalEmpty
                | ErrorKind::DecimalInvalid
                | ErrorKind::DecimalEmpty => return None,
                ErrorKind::GroupUnclosed => problem("missing closing )", pattern),
                ErrorKind::GroupUnopened => problem("unexpected )", pattern),
                ErrorKind::ClassUnclosed => problem("missing closing ]", rest),
                ErrorKind::ClassRangeInvalid => problem("invalid character class range", part),
                ErrorKind::RepetitionMissing => {
                    let operator = rest.get(..1).unwrap_or_default();
                    problem("missing argument to repetition operator", operator)
                }
                ErrorKind::RepetitionCountInvalid => problem("invalid repeat count", part),
                ErrorKind::EscapeUnexpectedEof => problem("trailing backslash at end of expression", ""),
                ErrorKind::UnsupportedLookAround => problem("invalid or unsupported Perl syntax", part),
                ErrorKind::NestLimitExceeded(_) => problem("expression nests too deeply", pattern),
                _ => problem("invalid escape sequence", part),
            })
        }
    }
}

fn problem(what: &str, part: &str) -> String {
    format!("error parsing regexp: {what}: `{part}`")
}

/// Two repetition operators in a row, outside of classes. One question mark behind an operator makes it lazy.
fn nested_repetition(pattern: &str) -> Option<&str> {
    let bytes = pattern.as_bytes();
    let (mut at, mut last) = (0, None);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => {
                at += 2;
                last = None;
            }
            b'[' => {
                // The first bracket of a class that closes it is not the first of its members.
                let from = at + 1 + usize::from(bytes.get(at + 1) == Some(&b'^'));
                at += 2 + usize::from(from > at + 1);
                while at < bytes.len() && bytes[at] != b']' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
                last = None;
            }
            b'*' | b'+' | b'?' => {
                let is_lazy = bytes.get(at + 1) == Some(&b'?');
                let end = at + 1 + usize::from(is_lazy);
                if let Some(start) = last {
                    return pattern.get(start..end);
                }
                // An operator at the very beginning, or behind an opening one, has no argument: another error.
                last = (at > 0 && !matches!(bytes[at - 1], b'(' | b'|')).then_some(at);
                at = end;
            }
            _ => {
                at += 1;
                last = None;
            }
        }
    }
    None
}

/// The repetition that makes the whole too long.
fn too_often<'a>(ast: &Ast, times: u32, pattern: &'a str) -> Option<&'a str> {
    match ast {
        Ast::Repetition(repetition) => {
            let count = match &repetition.op.kind {
                RepetitionKind::Range(
                    RepetitionRange::Exactly(most) | RepetitionRange::AtLeast(most) | RepetitionRange::Bounded(_, most),
                ) => (*most).max(1),
                _ => 1,
            };
            let times = times.saturating_mul(count);
            if times > MAX_REPEAT {
                return pattern.get(repetition.op.span.start.offset..repetition.op.span.end.offset);
            }
            too_often(&repetition.ast, times, pattern)
        }
        Ast::Group(group) => too_often(&group.ast, times, pattern),
        Ast::Alternation(alternation) => alternation.asts.iter().find_map(|ast| too_often(ast, times, pattern)),
        Ast::Concat(concat) => concat.asts.iter().find_map(|ast| too_often(ast, times, pattern)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_told_as_they_are_known() {
        for (pattern, want) in [
            ("", None),
            ("^[a-z]([-a-z0-9]*[a-z0-9])?$", None),
            (r"^\d+(\.\d+){0,2}$", None),
            ("a{", None),
            ("[*+?]+?", None),
            (r"a\**", None),
            ("(a", Some("missing closing ): `(a`")),
            ("a)", Some("unexpected ): `a)`")),
            ("x[a", Some("missing closing ]: `[a`")),
            ("[z-a]", Some("invalid character class range: `z-a`")),
            ("*a", Some("missing argument to repetition operator: `*`")),
            ("a**", Some("invalid nested repetition operator: `**`")),
            ("a{2,1}", Some("invalid repeat count: `{2,1}`")),
            ("a{1001}", Some("invalid repeat count: `{1001}`")),
            ("(a{100}){100}", Some("invalid repeat count: `{100}`")),
            (r"a\", Some("trailing backslash at end of expression: ``")),
            (r"\y", Some(r"invalid escape sequence: `\y`")),
            ("(?=a)", Some("invalid or unsupported Perl syntax: `(?=`")),
        ] {
            let want = want.map(|want| format!("error parsing regexp: {want}"));
            assert_eq!(pattern_problem(pattern), want, "{pattern}");
        }
    }
}
