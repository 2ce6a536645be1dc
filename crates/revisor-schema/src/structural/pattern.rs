//! [`Pattern`]: a regular expression in the syntax of Go, matched in linear time.
//!
//! The engine speaks a dialect of its own, so a pattern is first read as Go reads it and written again in that dialect;
//! see [`translate`](translation::translate).

pub(crate) mod difference;
mod translation;
pub(crate) mod walk;

use std::sync::Arc;

use regex_automata::meta::{Config, Regex};
use regex_automata::util::syntax;
use regex_syntax::hir::{Hir, HirKind};

use translation::translate;

/// A compiled pattern. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Pattern(Arc<Regex>);

/// Why a text is no pattern, in the words of the original.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {0}")]
pub struct PatternError(pub(super) String);

/// How much memory one pattern may take up, compiled.
pub const MAX_PATTERN_BYTES: usize = 8 << 20;

/// How often something may be repeated.
const MAX_REPEATS: u32 = 1000;

/// How much the matcher may remember of the states that it went through. It stays linear without.
const CACHE_BYTES: usize = 512 << 10;

impl Pattern {
    /// Whether a text is a pattern, and if not, why. This takes a fraction of what it takes to compile it.
    pub fn check(text: &str) -> Result<(), PatternError> {
        let translated = translate(text)?;
        let read = syntax::parse_with(&translated, &dialect()).map_err(|_| unknown_class(text))?;
        count_repeats(&read).map(drop)
    }

    /// Compiles a pattern.
    pub fn compile(text: &str) -> Result<Pattern, PatternError> {
        Pattern::compile_within(text, MAX_PATTERN_BYTES)
    }

    /// As [`compile`](Pattern::compile), with another limit on its memory.
    pub(super) fn compile_within(text: &str, bytes: usize) -> Result<Pattern, PatternError> {
        let translated = translate(text)?;
        let too_large = || PatternError("expression too large".to_owned());
        let config = Config::new()
            .nfa_size_limit(Some(bytes))
            .onepass_size_limit(Some(bytes.min(CACHE_BYTES)))
            .hybrid_cache_capacity(CACHE_BYTES);
        let built = Regex::builder().configure(config).syntax(dialect()).build(&translated);
        built.map(|regex| Pattern(Arc::new(regex))).map_err(|error| match error.size_limit() {
            Some(_) => too_large(),
            None => unknown_class(text),
        })
    }

    /// Whether the pattern occurs in `text`.
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// How much memory it takes up.
    pub(super) fn bytes(&self) -> usize {
        self.0.memory_usage()
    }
}

/// How the engine reads patterns.
fn dialect() -> syntax::Config {
    // Go knows positions between characters only; so does an engine that is told that its input is UTF-8.
    syntax::Config::new().utf8(false).nest_limit(4 * translation::MAX_NESTING)
}

/// How often what is repeated most is repeated, repetitions within each other together. Go allows no more than this.
fn count_repeats(hir: &Hir) -> Result<u32, PatternError> {
    Ok(match hir.kind() {
        HirKind::Repetition(repetition) => {
            let times = count_repeats(&repetition.sub)?.saturating_mul(repetition.max.unwrap_or(repetition.min).max(1));
            if times > MAX_REPEATS {
                let (min, max) = (repetition.min, repetition.max);
                let most = max.filter(|max| *max != min).map(|max| max.to_string()).unwrap_or_default();
                let comma = if max == Some(min) { "" } else { "," };
                return Err(PatternError(format!("invalid repeat count: `{{{min}{comma}{most}}}`")));
            }
            times
        }
        HirKind::Capture(capture) => count_repeats(&capture.sub)?,
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            let mut most = 1;
            for part in parts {
                most = count_repeats(part)?.max(most);
            }
            most
        }
        _ => 1,
    })
}

/// What is left to be wrong once a pattern was translated: the names of classes that the engine does not know.
fn unknown_class(text: &str) -> PatternError {
    PatternError(format!("invalid character class range: `{text}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_in_go() {
        for (pattern, text, want) in [
            ("^a+$", "aaa", true),
            ("^a+$", "aab", false),
            ("b", "abc", true),
            // Classes are of ASCII.
            (r"^\d$", "٣", false),
            (r"^\w+$", "é", false),
            (r"^\W$", "é", true),
            (r"^\s$", "\u{a0}", false),
            (r"^\s$", "\u{b}", false),
            (r"^[\s\d]+$", " 1", true),
            (r"^[^\w]$", "é", true),
            (r"^[\W]$", "é", true),
            (r"\bfoo\b", "a foo b", true),
            (r"foo\B", "foox", true),
            (r"^.$", "\n", false),
            (r"(?s)^.$", "\n", true),
            (r"(?i)^ab$", "AB", true),
            (r"(?i:a)b", "Ab", true),
            (r"a\z", "a", true),
            (r"\Aa", "ba", false),
            (r"^\Qa.b*\E$", "a.b*", true),
            (r"^\Qa.b*\E$", "axb", false),
            (r"\Q+", "+", true),
            (r"^\pN\p{Lu}\P{Lu}\p{^Lu}$", "1Abb", true),
            (r"^[\p{Greek}]+$", "αβ", true),
            (r"^\x41\x{42}\103\.\_\<$", "ABC._<", true),
            (r"^[[:alpha:]]+$", "abc", true),
            (r"^[[:^alpha:]]+$", "123", true),
            (r"^[[a]$", "[", true),
            (r"^[a&&b]+$", "&", true),
            (r"^[]a]+$", "]a", true),
            (r"^[^]a]+$", "b", true),
            (r"^[+--]+$", "+,-", true),
            (r"^[a~~-]+$", "~-", true),
            (r"^[\-\]\\]+$", r"-]\", true),
            (r"^a{2,3}$", "aa", true),
            (r"^a{,2}$", "a{,2}", true),
            (r"^a{$", "a{", true),
            (r"^{a}$", "{a}", true),
            (r"^(?P<x>a)(?<y>b)$", "ab", true),
            (r"^(a|)$", "", true),
            (r"(?U)a+", "aa", true),
            (r"^a(?i)*b$", "aaB", true),
            (r"^(?)a$", "a", true),
            (r"^# x$", "# x", true),
            (r"^\t\n\f\r\v\a$", "\t\n\u{c}\r\u{b}\u{7}", true),
        ] {
            assert_eq!(Pattern::compile(pattern).map(|pattern| pattern.is_match(text)), Ok(want), "{pattern} {text:?}");
        }
    }

    #[test]
    fn what_go_refuses_is_refused_in_its_words() {
        for (pattern, want) in [
            ("(", "missing closing ): `(`"),
            ("a)", "unexpected ): `a)`"),
            ("[a", "missing closing ]: `[a`"),
            ("*a", "missing argument to repetition operator: `*`"),
            ("(|*)", "missing argument to repetition operator: `*`"),
            ("a**", "invalid nested repetition operator: `**`"),
            ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            ("a{3,2}", "invalid repeat count: `{3,2}`"),
            ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
            ("(?<!a)", "invalid or unsupported Perl syntax: `(?<`"),
            ("(?x)a", "invalid or unsupported Perl syntax: `(?x`"),
            ("(?P<a-b>x)", "invalid named capture: `(?P<a-b>`"),
            (r"\1", r"invalid escape sequence: `\1`"),
            (r"\y", r"invalid escape sequence: `\y`"),
            (r"a\", "trailing backslash at end of expression: ``"),
            ("[b-a]", "invalid character class range: `b-a`"),
            (r"[a-\d]", r"invalid escape sequence: `\d`"),
            ("[[:nope:]]", "invalid character class range: `[:nope:]`"),
            (r"\p{Nope}", r"invalid character class range: `\p{Nope}`"),
            ("((a{1000}){1000}){1000}", "expression too large"),
        ] {
            let said = Pattern::compile(pattern).expect_err(pattern).to_string();
            assert_eq!(said, format!("error parsing regexp: {want}"), "{pattern}");
            assert!(Pattern::check(pattern).is_err(), "{pattern}");
        }
        for (pattern, want) in
            [("(a{100}){100}", Some("{100}")), ("(a{2,}){501,502}", Some("{501,502}")), ("(a{100}){10}", None)]
        {
            let want = want.map(|part| format!("error parsing regexp: invalid repeat count: `{part}`"));
            assert_eq!(Pattern::check(pattern).err().map(|error| error.to_string()), want, "{pattern}");
        }
        let deep = "(".repeat(1001) + &")".repeat(1001);
        assert!(Pattern::compile(&deep).is_err());
        assert!(Pattern::compile(&("(".repeat(500) + &")".repeat(500))).is_ok());
    }

    #[test]
    fn matching_takes_time_in_proportion_to_the_text() {
        let pattern = Pattern::compile("^(a+)+$").expect("a good pattern");
        assert!(!pattern.is_match(&("a".repeat(100_000) + "b")));
    }
}
