//! Reading a regular expression as Go does, and writing it in the dialect of the engine.
//!
//! They differ in what a class such as `\d` holds (ASCII in Go), in what stands for itself in brackets and braces, and
//! in escapes that only one of them has. Groups capture nothing here: only whether there is a match is ever asked.

use std::fmt::Write as _;
use std::iter::Peekable;
use std::str::CharIndices;

use super::PatternError;

/// How deep groups may nest.
pub(super) const MAX_NESTING: u32 = 1000;

/// How often something may be repeated.
const MAX_REPEAT: u32 = 1000;

/// The classes with names in brackets.
const CLASSES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
    "xdigit",
];

/// The pattern in the dialect of the engine.
pub(super) fn translate(pattern: &str) -> Result<String, PatternError> {
    let mut reader =
        Reader { pattern, rest: pattern.char_indices().peekable(), out: String::new(), item_end: 0, depth: 0 };
    reader.expression()?;
    Ok(reader.out)
}

/// What stands in front of a repetition operator.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// Nothing that can be repeated.
    Nothing,
    /// Something that can.
    Item,
    /// A repetition that begins at this byte.
    Repetition(usize),
}

/// What an opening parenthesis stands for.
enum Opened {
    Group,
    Flags,
}

struct Reader<'p> {
    pattern: &'p str,
    rest: Peekable<CharIndices<'p>>,
    out: String,
    /// Where in the output the last thing ends that can be repeated.
    item_end: usize,
    depth: u32,
}

impl<'p> Reader<'p> {
    fn position(&mut self) -> usize {
        self.rest.peek().map_or(self.pattern.len(), |(at, _)| *at)
    }

    /// What is still to be read.
    fn ahead(&mut self) -> &'p str {
        let at = self.position();
        &self.pattern[at..]
    }

    fn advance_to(&mut self, end: usize) {
        while self.rest.next_if(|(at, _)| *at < end).is_some() {}
    }

    fn literal(&mut self, character: char) {
        // Letters and digits mean themselves wherever no backslash stands before them.
        if character.is_ascii_alphanumeric() {
            self.out.push(character);
        } else {
            let _ = write!(self.out, "\\x{{{:x}}}", u32::from(character));
        }
    }

    fn expression(&mut self) -> Result<(), PatternError> {
        let mut before = Before::Nothing;
        while let Some((at, character)) = self.rest.next() {
            before = match character {
                '(' => match self.open(at)? {
                    Opened::Group => Before::Nothing,
                    // Flags are nothing by themselves: a repetition behind them is one of what stands before them.
                    Opened::Flags if before == Before::Nothing => Before::Nothing,
                    Opened::Flags => {
                        before = Before::Item;
                        continue;
                    }
                },
                ')' => {
                    self.depth = self
                        .depth
                        .checked_sub(1)
                        .ok_or_else(|| PatternError(format!("unexpected ): `{}`", self.pattern)))?;
                    self.out.push(')');
                    Before::Item
                }
                '|' => {
                    self.out.push('|');
                    Before::Nothing
                }
                '^' | '$' | '.' => {
                    self.out.push(character);
                    Before::Item
                }
                '[' => {
                    self.class(at)?;
                    Before::Item
                }
                '*' | '+' | '?' => self.repeat(at, at + 1, before)?,
                '{' => match repeat_count(&self.pattern[at..]) {
                    Some((length, from, to)) => {
                        if from > MAX_REPEAT || to.is_some_and(|to| to > MAX_REPEAT || from > to) {
                            let count = &self.pattern[at..at + length];
                            return Err(PatternError(format!("invalid repeat count: `{count}`")));
                        }
                        self.advance_to(at + length);
                        self.repeat(at, at + length, before)?
                    }
                    None => {
                        self.literal('{');
                        Before::Item
                    }
                },
                '\\' => {
                    self.escape(at)?;
                    Before::Item
                }
                other => {
                    self.literal(other);
                    Before::Item
                }
            };
            if !matches!(before, Before::Repetition(_)) {
                self.item_end = self.out.len();
            }
        }
        if self.depth > 0 {
            return Err(PatternError(format!("missing closing ): `{}`", self.pattern)));
        }
        Ok(())
    }

    /// A repetition operator that stands at `at..end`.
    fn repeat(&mut self, at: usize, end: usize, before: Before) -> Result<Before, PatternError> {
        let is_lazy = self.rest.next_if(|(_, next)| *next == '?').is_some();
        // Whether it is lazy makes no difference to whether there is a match.
        let written = match &self.pattern[at..end] {
            "*" => "{0,}",
            "+" => "{1,}",
            "?" => "{0,1}",
            count => count,
        };
        let end = end + usize::from(is_lazy);
        match before {
            Before::Nothing => {
                let operator = &self.pattern[at..end];
                Err(PatternError(format!("missing argument to repetition operator: `{operator}`")))
            }
            Before::Repetition(start) => {
                let operators = &self.pattern[start..end];
                Err(PatternError(format!("invalid nested repetition operator: `{operators}`")))
            }
            Before::Item => {
                // Between the two may stand flags.
                self.out.insert_str(self.item_end, written);
                self.item_end += written.len();
                Ok(Before::Repetition(at))
            }
        }
    }

    /// A group, or flags for the rest of one.
    fn open(&mut self, at: usize) -> Result<Opened, PatternError> {
        if self.rest.next_if(|(_, next)| *next == '?').is_none() {
            self.enter()?;
            self.out.push_str("(?:");
            return Ok(Opened::Group);
        }
        let ahead = self.ahead();
        for named in ["P<", "<"] {
            let Some(name) = ahead.strip_prefix(named) else { continue };
            if named == "<" && name.starts_with(['=', '!']) {
                break;
            }
            let Some(length) = name.find('>') else {
                return Err(PatternError(format!("invalid named capture: `{}`", &self.pattern[at..])));
            };
            let end = at + 2 + named.len() + length + 1;
            let is_word = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if length == 0 || !is_word(&name[..length]) {
                return Err(PatternError(format!("invalid named capture: `{}`", &self.pattern[at..end])));
            }
            self.advance_to(end);
            self.enter()?;
            self.out.push_str("(?:");
            return Ok(Opened::Group);
        }
        self.flags(at)
    }

    fn flags(&mut self, at: usize) -> Result<Opened, PatternError> {
        let start = self.position();
        let (mut is_negated, mut has_flag) = (false, false);
        while let Some((here, character)) = self.rest.next() {
            match character {
                'i' | 'm' | 's' | 'U' => has_flag = true,
                '-' if !is_negated => {
                    is_negated = true;
                    has_flag = false;
                }
                ':' | ')' if !is_negated || has_flag => {
                    let flags = &self.pattern[start..here];
                    if character == ':' {
                        self.enter()?;
                        let _ = write!(self.out, "(?{flags}:");
                        return Ok(Opened::Group);
                    }
                    if !flags.is_empty() {
                        let _ = write!(self.out, "(?{flags})");
                    }
                    return Ok(Opened::Flags);
                }
                other => {
                    let said = &self.pattern[at..here + other.len_utf8()];
                    return Err(PatternError(format!("invalid or unsupported Perl syntax: `{said}`")));
                }
            }
        }
        Err(PatternError(format!("invalid or unsupported Perl syntax: `{}`", &self.pattern[at..])))
    }

    fn enter(&mut self) -> Result<(), PatternError> {
        self.depth += 1;
        if self.depth > MAX_NESTING {
            return Err(PatternError(format!("expression nests too deeply: `{}`", self.pattern)));
        }
        Ok(())
    }

    /// An escape outside of brackets; the backslash stands at `at`.
    fn escape(&mut self, at: usize) -> Result<(), PatternError> {
        let Some((_, character)) = self.rest.peek().copied() else {
            return Err(PatternError("trailing backslash at end of expression: ``".to_owned()));
        };
        match character {
            'Q' => {
                self.rest.next();
                let ahead = self.ahead();
                let start = self.position();
                let (length, skipped) = match ahead.find("\\E") {
                    Some(length) => (length, 2),
                    None => (ahead.len(), 0),
                };
                for literal in ahead[..length].chars() {
                    self.literal(literal);
                }
                self.advance_to(start + length + skipped);
                // Something stands here even if nothing was quoted, so that the engine sees what may be repeated.
                if length == 0 {
                    self.out.push_str("(?:)");
                }
                return Ok(());
            }
            'A' | 'z' => {
                self.rest.next();
                let _ = write!(self.out, "\\{character}");
                return Ok(());
            }
            'b' | 'B' => {
                self.rest.next();
                let _ = write!(self.out, "(?-u:\\{character})");
                return Ok(());
            }
            _ => {}
        }
        if let Some(class) = self.named_class(at)? {
            let _ = write!(self.out, "[{class}]");
            return Ok(());
        }
        let literal = self.escaped_character(at)?;
        self.literal(literal);
        Ok(())
    }

    /// A class such as `\d` or `\p{Lu}` behind a backslash, as it is written between brackets.
    fn named_class(&mut self, at: usize) -> Result<Option<String>, PatternError> {
        let Some((_, character)) = self.rest.peek().copied() else { return Ok(None) };
        let class = match character {
            'd' => "0-9",
            'D' => "[^0-9]",
            'w' => "0-9A-Za-z_",
            'W' => "[^0-9A-Za-z_]",
            's' => r"\t\n\x0c\r\x20",
            'S' => r"[^\t\n\x0c\r\x20]",
            'p' | 'P' => return self.unicode_class(at, character == 'P').map(Some),
            _ => return Ok(None),
        };
        self.rest.next();
        Ok(Some(class.to_owned()))
    }

    fn unicode_class(&mut self, at: usize, mut is_negated: bool) -> Result<String, PatternError> {
        self.rest.next();
        let wrong =
            |end: usize, pattern: &str| PatternError(format!("invalid character class range: `{}`", &pattern[at..end]));
        let Some((start, first)) = self.rest.next() else { return Err(wrong(self.pattern.len(), self.pattern)) };
        let (name, end) = match first {
            '{' => match self.pattern[start..].find('}') {
                Some(length) => (&self.pattern[start + 1..start + length], start + length + 1),
                None => return Err(wrong(self.pattern.len(), self.pattern)),
            },
            one => (&self.pattern[start..start + one.len_utf8()], start + one.len_utf8()),
        };
        self.advance_to(end);
        let name = match name.strip_prefix('^') {
            Some(rest) => {
                is_negated = !is_negated;
                rest
            }
            None => name,
        };
        let class = format!("\\{}{{{name}}}", if is_negated { 'P' } else { 'p' });
        let is_plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_plain || regex_automata::util::syntax::parse(&class).is_err() {
            return Err(wrong(end, self.pattern));
        }
        Ok(class)
    }

    /// The character that an escape stands for; the backslash at `at` was read.
    fn escaped_character(&mut self, at: usize) -> Result<char, PatternError> {
        let Some((here, character)) = self.rest.next() else {
            return Err(PatternError("trailing backslash at end of expression: ``".to_owned()));
        };
        let wrong = |end: usize, pattern: &str| {
            PatternError(format!("invalid escape sequence: `{}`", pattern.get(at..end).unwrap_or(pattern)))
        };
        let end = here + character.len_utf8();
        match character {
            'a' => Ok('\x07'),
            'f' => Ok('\x0c'),
            'n' => Ok('\n'),
            'r' => Ok('\r'),
            't' => Ok('\t'),
            'v' => Ok('\x0b'),
            '0'..='7' => {
                let is_octal = |next: &(usize, char)| matches!(next.1, '0'..='7');
                if character != '0' && !self.rest.peek().is_some_and(is_octal) {
                    return Err(wrong(end, self.pattern));
                }
                let mut code = u32::from(character) - u32::from('0');
                for _ in 0..2 {
                    let Some((_, digit)) = self.rest.next_if(is_octal) else { break };
                    code = code * 8 + (u32::from(digit) - u32::from('0'));
                }
                char::from_u32(code).ok_or_else(|| wrong(end, self.pattern))
            }
            'x' => {
                let digits = &self.pattern[end..];
                let (digits, stop) = match digits.strip_prefix('{') {
                    Some(braced) => match braced.find('}') {
                        Some(length) => (&braced[..length], end + length + 2),
                        None => return Err(wrong(self.pattern.len(), self.pattern)),
                    },
                    None => match digits.get(..2) {
                        Some(two) => (two, end + 2),
                        None => return Err(wrong(self.pattern.len(), self.pattern)),
                    },
                };
                let is_hex = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_hexdigit());
                let code = u32::from_str_radix(digits, 16).ok().filter(|_| is_hex).and_then(char::from_u32);
                self.advance_to(stop);
                code.ok_or_else(|| wrong(stop, self.pattern))
            }
            punctuation if punctuation.is_ascii() && !punctuation.is_ascii_alphanumeric() => Ok(punctuation),
            _ => Err(wrong(end, self.pattern)),
        }
    }

    /// A class in brackets; the opening one stands at `at`.
    fn class(&mut self, at: usize) -> Result<(), PatternError> {
        self.out.push('[');
        if self.rest.next_if(|(_, next)| *next == '^').is_some() {
            self.out.push('^');
        }
        let mut is_first = true;
        loop {
            let Some((here, character)) = self.rest.peek().copied() else {
                return Err(PatternError(format!("missing closing ]: `{}`", &self.pattern[at..])));
            };
            if character == ']' && !is_first {
                self.rest.next();
                break;
            }
            is_first = false;
            if let Some(named) = self.pattern[here..].strip_prefix("[:")
                && let Some(length) = named.find(":]")
            {
                let class = &self.pattern[here..here + length + 4];
                if !CLASSES.contains(&named[..length].trim_start_matches('^')) {
                    return Err(PatternError(format!("invalid character class range: `{class}`")));
                }
                self.out.push_str(class);
                self.advance_to(here + length + 4);
                continue;
            }
            if character == '\\' {
                let mut ahead = self.rest.clone();
                ahead.next();
                std::mem::swap(&mut self.rest, &mut ahead);
                if let Some(class) = self.named_class(here)? {
                    self.out.push_str(&class);
                    continue;
                }
                self.rest = ahead;
            }
            let low = self.class_character(at)?;
            let mut high = low;
            let ahead = self.ahead();
            if ahead.starts_with('-') && ahead.len() > 1 && !ahead.starts_with("-]") {
                self.rest.next();
                high = self.class_character(at)?;
                if high < low {
                    let end = self.position();
                    let range = &self.pattern[here..end];
                    return Err(PatternError(format!("invalid character class range: `{range}`")));
                }
            }
            let _ = write!(self.out, "\\x{{{:x}}}-\\x{{{:x}}}", u32::from(low), u32::from(high));
        }
        self.out.push(']');
        Ok(())
    }

    fn class_character(&mut self, class: usize) -> Result<char, PatternError> {
        match self.rest.next() {
            None => Err(PatternError(format!("missing closing ]: `{}`", &self.pattern[class..]))),
            Some((at, '\\')) => self.escaped_character(at),
            Some((_, character)) => Ok(character),
        }
    }
}

/// Reads `{n}`, `{n,}` or `{n,m}` at the beginning of `text`: its length and its bounds. What is anything else stands for
/// itself.
fn repeat_count(text: &str) -> Option<(usize, u32, Option<u32>)> {
    let inner = text.strip_prefix('{')?;
    let inner = &inner[..inner.find('}')?];
    let number = |digits: &str| -> Option<u32> {
        let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        let is_padded = digits.len() > 1 && digits.starts_with('0');
        // A number that is too large for us is too large for anybody.
        (is_number && !is_padded).then(|| digits.parse().unwrap_or(u32::MAX))
    };
    let (from, to) = match inner.split_once(',') {
        None => (number(inner)?, Some(number(inner)?)),
        Some((from, "")) => (number(from)?, None),
        Some((from, to)) => (number(from)?, Some(number(to)?)),
    };
    Some((inner.len() + 2, from, to))
}
