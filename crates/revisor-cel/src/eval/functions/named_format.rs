//! Formats that texts can be checked against.

use revisor_object::names;

use super::url::check_uri;
use super::{Scope, mismatch};
use crate::eval::error::EvalError;
use crate::eval::json::parse_date;
use crate::eval::opaque::Opaque;
use crate::eval::value::CelValue;

/// A format that texts can be checked against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedFormat {
    /// A label of a DNS name.
    Dns1123Label,
    /// A DNS name.
    Dns1123Subdomain,
    /// A label of a DNS name that begins with a letter.
    Dns1035Label,
    /// A name with a prefix, as keys of labels are.
    QualifiedName,
    /// The beginning of a label of a DNS name.
    Dns1123LabelPrefix,
    /// The beginning of a DNS name.
    Dns1123SubdomainPrefix,
    /// The beginning of a label of a DNS name that begins with a letter.
    Dns1035LabelPrefix,
    /// The value of a label.
    LabelValue,
    /// A URI.
    Uri,
    /// A UUID.
    Uuid,
    /// Bytes in base64.
    Byte,
    /// A date.
    Date,
    /// A date with a time.
    DateTime,
}

const FORMATS: [(&str, NamedFormat, u64); 13] = [
    ("dns1123Label", NamedFormat::Dns1123Label, 30),
    ("dns1123Subdomain", NamedFormat::Dns1123Subdomain, 60),
    ("dns1035Label", NamedFormat::Dns1035Label, 30),
    ("qualifiedName", NamedFormat::QualifiedName, 60),
    ("dns1123LabelPrefix", NamedFormat::Dns1123LabelPrefix, 30),
    ("dns1123SubdomainPrefix", NamedFormat::Dns1123SubdomainPrefix, 60),
    ("dns1035LabelPrefix", NamedFormat::Dns1035LabelPrefix, 30),
    ("labelValue", NamedFormat::LabelValue, 40),
    ("uri", NamedFormat::Uri, 1103),
    ("uuid", NamedFormat::Uuid, 70),
    ("byte", NamedFormat::Byte, 84),
    ("date", NamedFormat::Date, 71),
    ("datetime", NamedFormat::DateTime, 71),
];

impl NamedFormat {
    fn named(name: &str) -> Option<NamedFormat> {
        FORMATS.iter().find(|(known, ..)| *known == name).map(|(_, format, _)| *format)
    }

    /// How long the pattern of the format counts when costs are reckoned.
    pub(crate) fn pattern_size(self) -> u64 {
        FORMATS.iter().find(|(_, format, _)| *format == self).map_or(0, |(.., size)| *size)
    }

    /// What is wrong with a text.
    fn problems(self, text: &str) -> Vec<String> {
        use names::NameRule;
        let unless = |holds: bool, problem: &str| if holds { Vec::new() } else { vec![problem.to_owned()] };
        let of = |problems: names::Problems| problems.into_iter().map(|problem| problem.to_string()).collect();
        match self {
            NamedFormat::Dns1123Label => of(NameRule::Dns1123Label.check(text)),
            NamedFormat::Dns1123Subdomain => of(NameRule::Dns1123Subdomain.check(text)),
            NamedFormat::Dns1035Label => of(NameRule::Dns1035Label.check(text)),
            NamedFormat::Dns1123LabelPrefix => of(NameRule::Dns1123Label.check_prefix(text)),
            NamedFormat::Dns1123SubdomainPrefix => of(NameRule::Dns1123Subdomain.check_prefix(text)),
            NamedFormat::Dns1035LabelPrefix => of(NameRule::Dns1035Label.check_prefix(text)),
            NamedFormat::QualifiedName => of(names::qualified_name(text)),
            NamedFormat::LabelValue => of(names::label_value(text)),
            NamedFormat::Uri => check_uri(text).err().into_iter().collect(),
            NamedFormat::Uuid => unless(is_uuid(text), "does not match the UUID format"),
            NamedFormat::Byte => unless(is_base64(text), "invalid base64"),
            NamedFormat::Date => unless(parse_date(text).is_some(), "invalid date"),
            NamedFormat::DateTime => unless(is_date_time(text), "invalid datetime"),
        }
    }
}

/// Hexadecimal digits in five groups, with or without dashes between them.
fn is_uuid(text: &str) -> bool {
    let mut rest = text;
    for (at, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if at > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        match rest.get(..length) {
            Some(group) if group.bytes().all(|byte| byte.is_ascii_hexdigit()) => rest = &rest[length..],
            _ => return false,
        }
    }
    rest.is_empty()
}

fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let known = digits.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'));
    !text.is_empty() && text.len().is_multiple_of(4) && text.len() - digits.len() <= 2 && known
}

fn is_date_time(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(clock)) = (parts.next(), parts.next()) else { return false };
    if parse_date(date).is_none() {
        return false;
    }
    let bytes = clock.as_bytes();
    let pair = |at: usize, most: u8| match bytes.get(at..at + 2) {
        Some([tens, ones]) => {
            tens.is_ascii_digit() && ones.is_ascii_digit() && (tens - b'0') * 10 + (ones - b'0') <= most
        }
        _ => false,
    };
    if !(pair(0, 23) && pair(3, 59) && pair(6, 59)) || bytes.get(2) != Some(&b':') || bytes.get(5) != Some(&b':') {
        return false;
    }
    let zone = |rest: &[u8]| match rest {
        b"z" => true,
        [b'+' | b'-', a, b, b':', c, d] => [a, b, c, d].iter().all(|digit| digit.is_ascii_digit()),
        _ => false,
    };
    let rest = &bytes[8..];
    // The sign before the fraction can be any.
    let digits = rest.iter().skip(1).take_while(|byte| byte.is_ascii_digit()).count();
    zone(rest) || (digits > 0 && (1..=digits).any(|count| zone(&rest[1 + count..])))
}

pub(super) fn constant<'a>(name: &str) -> Result<CelValue<'a>, EvalError> {
    NamedFormat::named(name)
        .map(|format| CelValue::Opaque(Opaque::Format(format)))
        .ok_or_else(EvalError::no_such_overload)
}

pub(super) fn named<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Result<CelValue<'a>, EvalError> {
    let [CelValue::String(name)] = args else { return mismatch() };
    Ok(match NamedFormat::named(name) {
        Some(format) => CelValue::some(CelValue::Opaque(Opaque::Format(format))),
        None => CelValue::none(),
    })
}

pub(super) fn validate<'a>(_: &mut Scope<'_>, args: &mut [CelValue<'a>]) -> Result<CelValue<'a>, EvalError> {
    let [CelValue::Opaque(Opaque::Format(format)), CelValue::String(text)] = args else { return mismatch() };
    let problems = format.problems(text);
    if problems.is_empty() {
        return Ok(CelValue::none());
    }
    Ok(CelValue::some(CelValue::list(problems.into_iter().map(CelValue::text).collect())))
}
