//! What can be known to fail before anything is evaluated: durations, timestamps, patterns and formats that are written
//! out, and lists and maps whose parts differ in type.

use revisor_object::Duration;

use crate::ast::{Call, Expr, ExprId, ExprKind, Literal};
use crate::environment::{Program, Reference};
use crate::eval::functions::TIMESTAMP_SECONDS;
use crate::eval::pattern;
use crate::libraries::Libraries;
use crate::source::Issue;
use crate::types::{Shape, Type};

/// What is wrong with the literals of a program.
pub(crate) fn check(libraries: &Libraries, program: &Program) -> Vec<Issue> {
    let mut checks = Checks { libraries, program, issues: Vec::new() };
    checks.walk(program.root(), false);
    checks.issues
}

struct Checks<'a> {
    libraries: &'a Libraries,
    program: &'a Program,
    issues: Vec<Issue>,
}

impl Checks<'_> {
    fn report(&mut self, id: ExprId, message: String) {
        self.issues.push(Issue { location: self.program.location(id), message });
    }

    fn kind(&self, expr: &Expr) -> &Type {
        self.program.type_of(expr.id).unwrap_or(&Type::Dyn)
    }

    /// Checks an expression and what is in it. What is handed to `format` may be of many types.
    fn walk(&mut self, expr: &Expr, mut formatted: bool) {
        match &expr.kind {
            ExprKind::Call(call) if self.libraries.literal_checks => self.readable(call),
            ExprKind::List(_) | ExprKind::Map(_) if !formatted => self.homogeneous(expr),
            _ => {}
        }
        if let ExprKind::Call(call) = &expr.kind
            && self.libraries.format_checks
        {
            formatted |= call.function == "format";
            self.format(expr, call);
        }
        let mut children = Vec::new();
        expr.for_each_child(|child| children.push(child));
        for child in children {
            self.walk(child, formatted);
        }
    }

    /// Whether what a function will read from its first argument can be read.
    fn readable(&mut self, call: &Call) {
        let Some(Expr { id, kind: ExprKind::Literal(literal) }) = call.args.first() else { return };
        let readable = match (call.function.as_str(), literal) {
            ("duration", Literal::String(text)) => text.parse::<Duration>().is_ok(),
            // The checker lets it pass, but nothing makes a duration of a number.
            ("duration", Literal::Int(_)) => false,
            ("timestamp", Literal::String(text)) => is_timestamp(text),
            ("timestamp", Literal::Int(seconds)) => TIMESTAMP_SECONDS.contains(seconds),
            ("matches", Literal::String(text)) => is_pattern(text),
            _ => return,
        };
        if !readable {
            self.report(*id, format!("invalid {} argument", call.function));
        }
    }

    /// Whether the parts of a list or a map have one type, also where the checker let different ones pass as dynamic.
    fn homogeneous(&mut self, expr: &Expr) {
        let unwrapped = |kind: &Type, optional: bool| match kind.optional_value() {
            Some(value) if optional => value.clone(),
            _ => kind.clone(),
        };
        match &expr.kind {
            ExprKind::List(elements) => {
                let mut common: Option<Type> = None;
                for element in elements {
                    let kind = unwrapped(self.kind(&element.value), element.optional);
                    match &common {
                        None => common = Some(kind),
                        Some(common) if common.is_equivalent(&kind) => {}
                        Some(common) => {
                            let (common, id) = (common.clone(), element.value.id);
                            return self.differs(id, &common, &kind);
                        }
                    }
                }
            }
            ExprKind::Map(entries) => {
                let mut common: Option<(Type, Type)> = None;
                for entry in entries {
                    let key = self.kind(&entry.key).clone();
                    let value = unwrapped(self.kind(&entry.value), entry.optional);
                    let Some((keys, values)) = common.clone() else {
                        common = Some((key, value));
                        continue;
                    };
                    if !keys.is_equivalent(&key) {
                        self.differs(entry.key.id, &keys, &key);
                    }
                    if !values.is_equivalent(&value) {
                        self.differs(entry.value.id, &values, &value);
                    }
                }
            }
            _ => {}
        }
    }

    fn differs(&mut self, id: ExprId, expected: &Type, found: &Type) {
        let message = format!("expected type '{}' but found '{}'", expected.in_messages(), found.in_messages());
        self.report(id, message);
    }

    /// Whether a format that is written out fits the list that is written out for it.
    fn format(&mut self, expr: &Expr, call: &Call) {
        let Some(Expr { kind: ExprKind::Literal(Literal::String(format)), .. }) = &call.target else { return };
        let [Expr { kind: ExprKind::List(args), .. }] = call.args.as_slice() else { return };
        let is_meant = |reference: &Reference| match reference {
            Reference::Overloads(overloads) => overloads.contains(&"string_format"),
            Reference::Name(_) => false,
        };
        if call.function != "format" || !self.program.reference(expr.id).is_some_and(is_meant) {
            return;
        }
        let args: Vec<&Expr> = args.iter().map(|element| &element.value).collect();
        match self.clauses(format.as_bytes(), &args) {
            Err((id, message)) => self.report(id.unwrap_or(expr.id), message),
            Ok(used) if args.len() > used => {
                let given = args.len();
                let message = format!("too many arguments supplied to string.format (expected {used}, got {given})");
                self.report(expr.id, message);
            }
            Ok(_) => {}
        }
    }

    /// How many arguments a format uses, or what is wrong and with which argument.
    fn clauses(&self, format: &[u8], args: &[&Expr]) -> Result<usize, (Option<ExprId>, String)> {
        let (mut at, mut used) = (0, 0);
        while at < format.len() {
            if format[at] != b'%' {
                at += 1;
                continue;
            }
            match format.get(at + 1) {
                Some(b'%') => {
                    at += 2;
                    continue;
                }
                None => return Err((None, "unexpected end of string".to_string())),
                Some(_) => {}
            }
            let Some(arg) = args.get(used) else { return Err((None, format!("index {used} out of range"))) };
            let (length, clause) = clause(&format[at + 1..])
                .map_err(|message| (None, format!("could not parse formatting clause: {message}")))?;
            self.fits_clause(clause, arg)
                .map_err(|(id, message)| (Some(id), format!("error during formatting: {message}")))?;
            at += 1 + length;
            used += 1;
        }
        Ok(used)
    }

    fn fits_clause(&self, clause: u8, arg: &Expr) -> Result<(), (ExprId, String)> {
        let kind = self.kind(arg);
        let (fits, message) = match clause {
            b's' => return self.fits_string(arg),
            b'd' => (matches!(kind, Type::Int | Type::Uint), "decimal clause can only be used on integers"),
            b'f' => (matches!(kind, Type::Double | Type::String), "fixed-point clause can only be used on doubles"),
            b'e' => (matches!(kind, Type::Double | Type::String), "scientific clause can only be used on doubles"),
            b'b' => (
                matches!(kind, Type::Int | Type::Uint | Type::Bool),
                "only integers and bools can be formatted as binary",
            ),
            b'o' => (matches!(kind, Type::Int | Type::Uint), "octal clause can only be used on integers"),
            _ => (
                matches!(kind, Type::Int | Type::Uint | Type::String | Type::Bytes),
                "only integers, byte buffers, and strings can be formatted as hex",
            ),
        };
        if fits || *kind == Type::Dyn {
            return Ok(());
        }
        Err((arg.id, format!("{message}, was given {}", kind.runtime_name())))
    }

    fn fits_string(&self, arg: &Expr) -> Result<(), (ExprId, String)> {
        let kind = self.kind(arg);
        let fits = match kind {
            Type::Any | Type::Error | Type::Object(_) | Type::Param(_) => false,
            Type::Compound(_) => !matches!(kind.shape(), Some(Shape::Opaque(_))),
            _ => true,
        };
        if !fits {
            let message = "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, \
                           durations, and timestamps";
            return Err((arg.id, format!("{message}, was given {}", kind.runtime_name())));
        }
        match &arg.kind {
            ExprKind::List(elements) => elements.iter().try_for_each(|element| self.fits_string(&element.value)),
            ExprKind::Map(entries) => entries.iter().try_for_each(|entry| {
                self.fits_string(&entry.key)?;
                self.fits_string(&entry.value)
            }),
            _ => Ok(()),
        }
    }
}

/// The length of a clause after its percent sign, and the letter that says what it is.
fn clause(text: &[u8]) -> Result<(usize, u8), String> {
    let mut at = 0;
    if text.first() == Some(&b'.') {
        let digits = text[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        at = 1 + digits;
        if at >= text.len() {
            return Err("error while parsing precision: could not find end of precision specifier".to_string());
        }
        let precision = String::from_utf8_lossy(&text[1..at]);
        let problem = match precision.parse::<i64>() {
            Ok(_) => None,
            Err(_) if precision.is_empty() => Some("invalid syntax"),
            Err(_) => Some("value out of range"),
        };
        if let Some(problem) = problem {
            return Err(format!(
                "error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing \
                 \"{precision}\": {problem}"
            ));
        }
    }
    match text.get(at) {
        Some(letter @ (b's' | b'd' | b'f' | b'e' | b'b' | b'x' | b'X' | b'o')) => Ok((at + 1, *letter)),
        Some(other) => Err(format!("unrecognized formatting clause \"{}\"", char::from(*other))),
        None => Err("unexpected end of string".to_string()),
    }
}

/// Whether this is a time as RFC 3339 writes it, within the years that have four digits.
fn is_timestamp(text: &str) -> bool {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| -> Option<u32> {
        let digits = bytes.get(from..to)?;
        digits
            .iter()
            .all(u8::is_ascii_digit)
            .then(|| digits.iter().fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0')))
    };
    let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if !separators.iter().all(|(at, byte)| bytes.get(*at) == Some(byte)) {
        return false;
    }
    let (Some(year), Some(month), Some(day)) = (number(0, 4), number(5, 7), number(8, 10)) else { return false };
    let (Some(hour), Some(minute), Some(second)) = (number(11, 13), number(14, 16), number(17, 19)) else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    if year == 0 || !(1..=days).contains(&day) || hour > 23 || minute > 59 || second > 59 {
        return false;
    }
    let mut rest = &bytes[19..];
    if let [b'.' | b',', fraction @ ..] = rest {
        let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return false;
        }
        rest = &fraction[digits..];
    }
    match rest {
        b"Z" => true,
        [b'+' | b'-', h1, h2, b':', m1, m2] => {
            let two = |tens: &u8, ones: &u8| {
                (tens.is_ascii_digit() && ones.is_ascii_digit()).then(|| (tens - b'0') * 10 + (ones - b'0'))
            };
            two(h1, h2).is_some_and(|hours| hours <= 24) && two(m1, m2).is_some_and(|minutes| minutes <= 60)
        }
        _ => false,
    }
}

/// Whether this is a regular expression.
fn is_pattern(text: &str) -> bool {
    pattern::compile(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_those_of_the_rfc() {
        for (text, want) in [
            ("2024-02-29T23:59:59Z", true),
            ("2023-02-29T23:59:59Z", false),
            ("2024-01-01T00:00:00.123456789+02:00", true),
            ("2024-01-01T00:00:00.Z", false),
            ("2024-01-01t00:00:00z", false),
            ("2024-01-01", false),
            ("0000-01-01T00:00:00Z", false),
            ("0001-01-01T00:00:00Z", true),
            ("2024-13-01T00:00:00Z", false),
            ("2024-01-01T24:00:00Z", false),
            ("", false),
        ] {
            assert_eq!(is_timestamp(text), want, "{text}");
        }
    }

    #[test]
    fn patterns_are_those_of_re2() {
        for (text, want) in [
            ("^[a-z]+$", true),
            ("(", false),
            ("a{2,3}", true),
            ("a{", true),
            ("[", false),
            ("*", false),
            (r"\d\.", true),
        ] {
            assert_eq!(is_pattern(text), want, "{text}");
        }
    }
}
