//! JSON values as YAML, laid out as the original lays them out: members sorted, blocks indented by two, long texts
//! folded, and everything quoted that a reader of YAML 1.1 would take for something else than a text.

use std::cmp::Ordering;

use revisor_object::{Object, Value};

/// Beyond this column a text goes on in the next line, where it has a space.
const WIDTH: usize = 80;

/// Names longer than this have a line of their own.
const MAX_SIMPLE_NAME: usize = 128;

/// A value as a YAML document.
pub(crate) fn document(value: &Value) -> String {
    let mut writer = Writer::default();
    writer.node(value, 0, Place::Root);
    writer.end_line();
    writer.out
}

/// A value as an element of a sequence that is not indented.
pub(crate) fn element(value: &Value) -> String {
    let mut writer = Writer::default();
    writer.element(value, 0);
    writer.end_line();
    writer.out
}

/// Where a node stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    /// Behind the dash of an element.
    Element,
    /// Behind the colon of a member.
    Member,
}

#[derive(Default)]
struct Writer {
    out: String,
    /// Characters in the current line.
    column: usize,
}

impl Writer {
    fn push(&mut self, character: char) {
        self.out.push(character);
        self.column = if character == '\n' { 0 } else { self.column + 1 };
    }

    fn push_str(&mut self, text: &str) {
        text.chars().for_each(|character| self.push(character));
    }

    fn new_line(&mut self, indent: usize) {
        self.push('\n');
        (0..indent).for_each(|_| self.push(' '));
    }

    fn end_line(&mut self) {
        if self.column > 0 {
            self.push('\n');
        }
    }

    /// Begins a line at this indent; the first node of a block stands in the line of its dash.
    fn begin(&mut self, indent: usize) {
        if self.column > indent || (self.column == 0 && indent > 0) {
            self.end_line();
            (0..indent).for_each(|_| self.push(' '));
        }
    }

    fn node(&mut self, value: &Value, indent: usize, place: Place) {
        match value {
            Value::Object(object) if !object.is_empty() => {
                let indent = if place == Place::Root { indent } else { indent + 2 };
                if place == Place::Member {
                    self.new_line(indent);
                }
                self.mapping(object, indent);
            }
            Value::Array(items) if !items.is_empty() => {
                // A sequence in a mapping is not indented further.
                let indent = if place == Place::Element { indent + 2 } else { indent };
                if place == Place::Member {
                    self.new_line(indent);
                }
                for item in items {
                    self.element(item, indent);
                }
            }
            Value::Object(_) => self.behind(place, "{}"),
            Value::Array(_) => self.behind(place, "[]"),
            Value::Null => self.behind(place, "null"),
            Value::Bool(truth) => self.behind(place, if *truth { "true" } else { "false" }),
            Value::Int(number) => self.behind(place, &number.to_string()),
            Value::Float(number) => self.behind(place, &float(*number)),
            Value::String(text) => {
                if place == Place::Member {
                    self.push(' ');
                }
                // What does not fit the line is indented below its place.
                self.text(text, indent + 2, false);
            }
        }
    }

    fn behind(&mut self, place: Place, text: &str) {
        if place == Place::Member {
            self.push(' ');
        }
        self.push_str(text);
    }

    fn element(&mut self, value: &Value, indent: usize) {
        self.begin(indent);
        self.push_str("- ");
        self.node(value, indent, Place::Element);
    }

    fn mapping(&mut self, object: &Object, indent: usize) {
        for (name, value) in sorted(object.iter().collect()) {
            self.begin(indent);
            if name.len() <= MAX_SIMPLE_NAME && !name.contains(is_break) {
                self.text(name, indent + 2, true);
                self.push(':');
                self.node(value, indent, Place::Member);
                continue;
            }
            self.push_str("? ");
            self.text(name, indent + 2, false);
            self.begin(indent);
            self.push(':');
            // A block begins in the line of the colon, as it does behind a dash.
            self.push(' ');
            self.node(value, indent, Place::Element);
        }
    }

    fn text(&mut self, text: &str, indent: usize, is_name: bool) {
        match style(text, is_name) {
            Style::Plain => self.folded(text, indent, is_name, false),
            Style::SingleQuoted => {
                self.push('\'');
                self.folded(text, indent, is_name, true);
                self.push('\'');
            }
            Style::DoubleQuoted => self.double_quoted(text, indent, is_name),
            Style::Literal => self.literal(text, indent),
        }
    }

    /// A text in one line, or in several that break at single spaces.
    fn folded(&mut self, text: &str, indent: usize, is_name: bool, is_quoted: bool) {
        let mut after_space = false;
        let mut characters = text.chars().enumerate().peekable();
        let last = text.chars().count().saturating_sub(1);
        while let Some((at, character)) = characters.next() {
            if character == ' ' {
                let is_inside = !is_quoted || (at > 0 && at < last);
                let is_single = !after_space && characters.peek().is_none_or(|(_, next)| *next != ' ');
                if !is_name && is_single && is_inside && self.column > WIDTH {
                    self.new_line(indent);
                } else {
                    self.push(' ');
                }
                after_space = true;
                continue;
            }
            if is_quoted && character == '\'' {
                self.push('\'');
            }
            self.push(character);
            after_space = false;
        }
    }

    fn double_quoted(&mut self, text: &str, indent: usize, is_name: bool) {
        self.push('"');
        let mut after_space = false;
        let last = text.chars().count().saturating_sub(1);
        let mut characters = text.chars().enumerate().peekable();
        while let Some((at, character)) = characters.next() {
            if character == ' ' {
                if !is_name && !after_space && self.column > WIDTH && at > 0 && at < last {
                    self.new_line(indent);
                    if characters.peek().is_some_and(|(_, next)| *next == ' ') {
                        self.push('\\');
                    }
                } else {
                    self.push(' ');
                }
                after_space = true;
                continue;
            }
            after_space = false;
            if is_printable(character) && !is_break(character) && !matches!(character, '"' | '\\' | '\u{feff}') {
                self.push(character);
                continue;
            }
            self.push_str(&escape(character));
        }
        self.push('"');
    }

    /// A text as it stands, line by line.
    fn literal(&mut self, text: &str, indent: usize) {
        self.push('|');
        if text.starts_with(|first| first == ' ' || is_break(first)) {
            self.push('2');
        }
        let mut from_end = text.chars().rev();
        match (from_end.next().is_some_and(is_break), from_end.next().is_none_or(is_break)) {
            (false, _) => self.push('-'),
            (true, true) => self.push('+'),
            (true, false) => {}
        }
        self.push('\n');
        let mut at_start = true;
        for character in text.chars() {
            if is_break(character) {
                self.out.push(character);
                self.column = 0;
                at_start = true;
                continue;
            }
            if at_start {
                (0..indent).for_each(|_| self.push(' '));
            }
            self.push(character);
            at_start = false;
        }
    }
}

fn is_break(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t')
}

/// What YAML lets stand outside of double quotes.
fn is_printable(character: char) -> bool {
    matches!(character, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
}

fn escape(character: char) -> String {
    let short = match character {
        '\0' => '0',
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\u{b}' => 'v',
        '\u{c}' => 'f',
        '\r' => 'r',
        '\u{1b}' => 'e',
        '"' => '"',
        '\\' => '\\',
        '\u{85}' => 'N',
        '\u{a0}' => '_',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        _ => {
            return match u32::from(character) {
                code @ ..=0xff => format!("\\x{code:02X}"),
                code @ ..=0xffff => format!("\\u{code:04X}"),
                code => format!("\\U{code:08X}"),
            };
        }
    };
    format!("\\{short}")
}

/// How a text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    Literal,
}

fn style(text: &str, is_name: bool) -> Style {
    if text.is_empty() {
        // Nothing at all would be read as null.
        return Style::DoubleQuoted;
    }
    let found = Findings::of(text);
    if text.contains('\n') && !is_name {
        return if found.spoils_blocks { Style::DoubleQuoted } else { Style::Literal };
    }
    if is_other_than_text(text) || (is_name && found.has_breaks) {
        return Style::DoubleQuoted;
    }
    match (found.spoils_plain, found.spoils_single_quotes) {
        (false, _) => Style::Plain,
        (true, false) => Style::SingleQuoted,
        (true, true) => Style::DoubleQuoted,
    }
}

/// What stands in the way of a style.
struct Findings {
    has_breaks: bool,
    spoils_plain: bool,
    spoils_single_quotes: bool,
    spoils_blocks: bool,
}

impl Findings {
    fn of(text: &str) -> Findings {
        let mut indicates = text.starts_with("---") || text.starts_with("...");
        let (mut special, mut has_breaks, mut space_break, mut break_space) = (false, false, false, false);
        let mut previous: Option<char> = None;
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            let before_blank = characters.peek().is_none_or(|next| is_blank(*next));
            indicates |= match (previous, character) {
                (
                    None,
                    '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`',
                ) => true,
                (None, '?' | '-') | (_, ':') => before_blank,
                (Some(previous), '#') => is_blank(previous) || is_break(previous),
                _ => false,
            };
            special |= !is_printable(character);
            has_breaks |= is_break(character);
            break_space |= character == ' ' && previous.is_some_and(is_break);
            space_break |= is_break(character) && previous == Some(' ');
            previous = Some(character);
        }
        let at_edge = |edge: Option<char>| edge.is_some_and(|edge| edge == ' ' || is_break(edge));
        let has_edge = at_edge(text.chars().next()) || at_edge(text.chars().next_back());
        let spoils_all = space_break || special;
        Findings {
            has_breaks,
            spoils_plain: indicates || has_edge || break_space || has_breaks || spoils_all,
            spoils_single_quotes: break_space || spoils_all,
            spoils_blocks: spoils_all || text.ends_with(' '),
        }
    }
}

/// Whether a reader would take the plain text for a truth, a number, a time or nothing.
fn is_other_than_text(text: &str) -> bool {
    const WORDS: [&str; 38] = [
        "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON", "n", "N", "no", "No", "NO", "false",
        "False", "FALSE", "off", "Off", "OFF", "~", "null", "Null", "NULL", ".nan", ".NaN", ".NAN", ".inf", ".Inf",
        ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF",
    ];
    match text.as_bytes().first() {
        Some(b'.') => WORDS.contains(&text) || is_decimal(text),
        Some(b'+' | b'-' | b'0'..=b'9') => {
            let plain = text.replace('_', "");
            WORDS.contains(&text) || is_time(text) || is_integer(&plain) || is_decimal(&plain) || is_base_60(text)
        }
        _ => WORDS.contains(&text),
    }
}

/// `12`, `-0x1f`, `0b101`, `0o17`, within 64 bits.
fn is_integer(text: &str) -> bool {
    let (is_negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = match (lower.get(..2), lower.len()) {
        (Some("0x"), _) => (16, &lower[2..]),
        (Some("0b"), _) => (2, &lower[2..]),
        (Some("0o"), _) => (8, &lower[2..]),
        (Some(_), 2..) if lower.starts_with('0') => (8, &lower[1..]),
        _ => (10, &*lower),
    };
    let is_number = digits.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    let limit = if is_negative { 1 << 63 } else { u64::MAX };
    // Only numbers without a sign reach beyond 63 bits.
    let limit = if text.starts_with('+') { i64::MAX as u64 } else { limit };
    is_number && u64::from_str_radix(digits, radix).is_ok_and(|number| number <= limit)
}

/// A decimal number as YAML 1.1 has it.
fn is_decimal(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (text, None),
    };
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let has_digits = !whole.is_empty() || !fraction.is_empty();
    has_digits
        && is_digits(whole)
        && is_digits(fraction)
        && exponent.is_none_or(|exponent| !exponent.is_empty() && is_digits(exponent))
        // What is beyond the range of floats stays a text.
        && text.parse::<f64>().is_ok_and(f64::is_finite)
}

/// `12:30:45`: a number to the base of 60, to readers older than this one.
fn is_base_60(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let mut parts = text.split(':');
    let first = parts.next().unwrap_or_default();
    if !first.starts_with(|first: char| first.is_ascii_digit()) || !is_digits(first) {
        return false;
    }
    let rest: Vec<&str> = parts.collect();
    let Some((last, middle)) = rest.split_last() else { return false };
    let is_sixtieth = |part: &str| match part.as_bytes() {
        [one] => one.is_ascii_digit(),
        [ten @ b'0'..=b'5', one] => ten.is_ascii_digit() && one.is_ascii_digit(),
        _ => false,
    };
    let (last, fraction) = last.split_once('.').unwrap_or((last, ""));
    middle.iter().all(|part| is_sixtieth(part)) && is_sixtieth(last) && is_digits(fraction)
}

/// A date, or a date and a time.
fn is_time(text: &str) -> bool {
    let number = |text: &str, digits: std::ops::RangeInclusive<usize>, values: std::ops::RangeInclusive<u32>| {
        digits.contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_digit())
            && text.parse().is_ok_and(|number| values.contains(&number))
    };
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(at) => (&text[..at], Some((&text[at..=at], &text[at + 1..]))),
        None => (text, None),
    };
    let date: Vec<&str> = date.split('-').collect();
    let [year, month, day] = date[..] else { return false };
    if !number(year, 4..=4, 0..=9999) || !number(month, 1..=2, 1..=12) || !number(day, 1..=2, 1..=31) {
        return false;
    }
    let days = match month.trim_start_matches('0') {
        "2" if year.parse().is_ok_and(|year: u32| {
            year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
        }) =>
        {
            29
        }
        "2" => 28,
        "4" | "6" | "9" | "11" => 30,
        _ => 31,
    };
    if !number(day, 1..=2, 1..=days) {
        return false;
    }
    let Some((separator, time)) = time else { return true };
    let clock = if separator == " " {
        time
    } else {
        let Some(at) = time.find(['Z', '+', '-']) else { return false };
        let zone = &time[at..];
        let is_offset = |zone: &str| match zone.get(1..).and_then(|zone| zone.split_once(':')) {
            Some((hours, minutes)) => number(hours, 2..=2, 0..=24) && number(minutes, 2..=2, 0..=60),
            None => false,
        };
        if zone != "Z" && !is_offset(zone) {
            return false;
        }
        &time[..at]
    };
    let parts: Vec<&str> = clock.split(':').collect();
    let [hour, minute, second] = parts[..] else { return false };
    let (second, fraction) = match second.split_once(['.', ',']) {
        Some((second, fraction)) => (second, Some(fraction)),
        None => (second, None),
    };
    let is_fraction = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    number(hour, 1..=2, 0..=23)
        && number(minute, 1..=2, 0..=59)
        && number(second, 1..=2, 0..=59)
        && fraction.is_none_or(is_fraction)
}

/// The shortest text of a number, with an exponent where that is shorter.
fn float(number: f64) -> String {
    let text = format!("{number:e}");
    let Some((mantissa, exponent)) = text.split_once('e') else { return text };
    let Ok(power) = exponent.parse::<i32>() else { return text };
    if (-4..6).contains(&power) {
        return number.to_string();
    }
    let sign = if power < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", power.unsigned_abs())
}

/// Members in the order of their names. The comparison is the original's, and it goes in circles over names such as
/// `1e3`, `9` and `190`. Merging copes with that; the sorting of the standard library may panic.
fn sorted<'a>(mut members: Vec<(&'a str, &'a Value)>) -> Vec<(&'a str, &'a Value)> {
    if members.len() < 2 {
        return members;
    }
    let right = sorted(members.split_off(members.len() / 2));
    let left = sorted(members);
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let mut right = right.into_iter().peekable();
    for member in left {
        while let Some(earlier) = right.next_if(|(name, _)| compare_names(name, member.0) == Ordering::Less) {
            merged.push(earlier);
        }
        merged.push(member);
    }
    merged.extend(right);
    merged
}

/// The order of names: letters after everything else, numbers by their value.
fn compare_names(one: &str, other: &str) -> Ordering {
    if one.bytes().chain(other.bytes()).all(|byte| byte.is_ascii_alphabetic()) {
        return one.cmp(other);
    }
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let Some(at) = one.iter().zip(&other).position(|(one, other)| one != other) else {
        return one.len().cmp(&other.len());
    };
    let (left, right) = (one[at], other[at]);
    match (left.is_alphabetic(), right.is_alphabetic()) {
        (true, true) => return left.cmp(&right),
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    // A zero inside a number counts as a digit of it.
    let before = one[..at].iter().rev().take_while(|character| character.is_ascii_digit());
    let is_inside = (left == '0' || right == '0') && before.clone().any(|digit| *digit != '0');
    let number = |text: &[char]| {
        let digits = text[at..].iter().map_while(|character| character.to_digit(10));
        digits.fold((i64::from(is_inside), 0), |(value, count): (i64, usize), digit| {
            (value.wrapping_mul(10).wrapping_add(i64::from(digit)), count + 1)
        })
    };
    number(&one).cmp(&number(&other)).then(left.cmp(&right))
}

#[cfg(test)]
mod tests;
