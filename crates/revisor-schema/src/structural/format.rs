//! [`Format`]: what a text must look like, by the name of a format.
//!
//! A name that is not known here, or not yet in the release that the server behaves as, asks for nothing.

mod email;

use core::net::IpAddr;

use revisor_object::{Duration, Url, parse_cidr_sloppy, parse_ip_sloppy};
use time::{Date, Month};

use super::JsonType;
use super::pattern::Pattern;

/// The release from which on names of objects have formats.
const NAMES_SINCE: u32 = 34;

/// The characters of a label in a host name: letters and symbols of all scripts, digits, dashes.
const LABEL: &str = r"^[0-9\p{S}\p{L}-]*$";
/// Those of the last label.
const LAST_LABEL: &str = r"^\p{L}*$";
const RGB_COLOR: &str = concat!(
    r"^rgb\(\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])",
    r"\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*\)$"
);

/// A format of texts.
#[derive(Debug, Clone)]
pub(crate) enum Format {
    BsonObjectId,
    Uri,
    Email,
    Hostname { label: Pattern, last_label: Pattern },
    Ipv4,
    Ipv6,
    Cidr,
    Mac,
    Uuid,
    Uuid3,
    Uuid4,
    Uuid5,
    Isbn,
    Isbn10,
    Isbn13,
    CreditCard,
    Ssn,
    HexColor,
    RgbColor(Pattern),
    Byte,
    Password,
    Date,
    Duration,
    DateTime,
    ShortName,
    LongName,
}

/// Whether a schema of this type may ask for this format in the release with this minor version. What else it says as
/// its format is without meaning.
pub fn is_known_format(kind: Option<JsonType>, is_int_or_string: bool, format: &str, minor: u32) -> bool {
    match kind {
        _ if is_int_or_string => Format::named(format, minor).is_some(),
        None | Some(JsonType::String) => Format::named(format, minor).is_some(),
        Some(JsonType::Integer) => matches!(format, "int32" | "int64"),
        Some(JsonType::Number) => matches!(format, "float" | "double"),
        Some(_) => false,
    }
}

impl Format {
    /// The format with this name, in which dashes do not count.
    pub(crate) fn named(name: &str, minor: u32) -> Option<Format> {
        let pattern = |text: &str| Pattern::compile(text).ok();
        Some(match &*name.replace('-', "") {
            "bsonobjectid" => Format::BsonObjectId,
            "uri" => Format::Uri,
            "email" => Format::Email,
            "hostname" => Format::Hostname { label: pattern(LABEL)?, last_label: pattern(LAST_LABEL)? },
            "ipv4" => Format::Ipv4,
            "ipv6" => Format::Ipv6,
            "cidr" => Format::Cidr,
            "mac" => Format::Mac,
            "uuid" => Format::Uuid,
            "uuid3" => Format::Uuid3,
            "uuid4" => Format::Uuid4,
            "uuid5" => Format::Uuid5,
            "isbn" => Format::Isbn,
            "isbn10" => Format::Isbn10,
            "isbn13" => Format::Isbn13,
            "creditcard" => Format::CreditCard,
            "ssn" => Format::Ssn,
            "hexcolor" => Format::HexColor,
            "rgbcolor" => Format::RgbColor(pattern(RGB_COLOR)?),
            "byte" => Format::Byte,
            "password" => Format::Password,
            "date" => Format::Date,
            "duration" => Format::Duration,
            "datetime" => Format::DateTime,
            "k8sshortname" if minor >= NAMES_SINCE => Format::ShortName,
            "k8slongname" if minor >= NAMES_SINCE => Format::LongName,
            _ => return None,
        })
    }

    /// Whether `text` is of this format.
    pub(crate) fn matches(&self, text: &str) -> bool {
        match self {
            Format::BsonObjectId => text.len() == 24 && all_hex(text),
            Format::Uri => Url::parse_request(text).is_ok(),
            Format::Email => email::is_address(text),
            Format::Hostname { label, last_label } => text.len() <= 255 && is_hostname(text, label, last_label),
            Format::Ipv4 => text.contains('.') && parse_ip_sloppy(text).is_some(),
            Format::Ipv6 => text.contains(':') && text.parse::<IpAddr>().is_ok(),
            Format::Cidr => parse_cidr_sloppy(text).is_some(),
            Format::Mac => is_mac(text),
            Format::Uuid => is_uuid(text, |_| true, |_| true),
            Format::Uuid3 => is_uuid(text, |version| version == '3', |_| true),
            Format::Uuid4 => is_uuid(text, |version| version == '4', is_rfc_variant),
            Format::Uuid5 => is_uuid(text, |version| version == '5', is_rfc_variant),
            Format::Isbn => is_isbn10(text) || is_isbn13(text),
            Format::Isbn10 => is_isbn10(text),
            Format::Isbn13 => is_isbn13(text),
            Format::CreditCard => is_credit_card(text),
            Format::Ssn => is_ssn(text),
            Format::HexColor => {
                let digits = text.strip_prefix('#').unwrap_or(text);
                matches!(digits.len(), 3 | 6) && all_hex(digits)
            }
            Format::RgbColor(pattern) => pattern.is_match(text),
            Format::Byte => is_base64(text),
            Format::Password => true,
            Format::Date => is_date(text),
            Format::Duration => is_duration(text),
            Format::DateTime => is_date_time(text),
            Format::ShortName => text.len() <= 63 && is_name_segment(text),
            Format::LongName => text.len() <= 253 && text.split('.').all(is_name_segment),
        }
    }
}

fn all_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn all_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Labels of at most 63 bytes, the last of them of letters. A single one may have a dash behind its first character only.
fn is_hostname(text: &str, label: &Pattern, last_label: &Pattern) -> bool {
    let is_label = |text: &str| !text.is_empty() && text.len() <= 63 && label.is_match(text);
    match text.rsplit_once('.') {
        None => {
            let dashes = text.matches('-').count();
            is_label(text) && (dashes == 0 || (dashes == 1 && text.chars().nth(1) == Some('-')))
        }
        Some((labels, last)) => {
            let is_inner = |text: &str| is_label(text) && !text.starts_with('-') && !text.ends_with('-');
            labels.split('.').all(is_inner) && last.len() <= 63 && last.chars().count() > 1 && last_label.is_match(last)
        }
    }
}

fn is_name_segment(text: &str) -> bool {
    let is_inner = |byte: u8| byte == b'-' || byte.is_ascii_lowercase() || byte.is_ascii_digit();
    !text.is_empty() && !text.starts_with('-') && !text.ends_with('-') && text.bytes().all(is_inner)
}

/// 6, 8 or 20 bytes: in pairs of digits with `:` or `-` between them, or in fours with dots.
fn is_mac(text: &str) -> bool {
    let groups = |separator: char, digits: usize| -> Option<usize> {
        let mut count = 0;
        for group in text.split(separator) {
            if group.len() != digits || !all_hex(group) {
                return None;
            }
            count += 1;
        }
        Some(count * digits / 2)
    };
    let bytes = match (text.as_bytes().get(2), text.as_bytes().get(4)) {
        (Some(b':'), _) => groups(':', 2),
        (Some(b'-'), _) => groups('-', 2),
        (_, Some(b'.')) => groups('.', 4),
        _ => (all_hex(text) && text.len().is_multiple_of(2)).then_some(text.len() / 2),
    };
    matches!(bytes, Some(6 | 8 | 20))
}

fn is_rfc_variant(digit: char) -> bool {
    matches!(digit, '8' | '9' | 'a' | 'b')
}

/// Groups of 8, 4, 4, 4 and 12 digits; each dash between them may be left out.
fn is_uuid(text: &str, version: fn(char) -> bool, variant: fn(char) -> bool) -> bool {
    let mut rest = text;
    for (at, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if at > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((group, behind)) = rest.split_at_checked(length) else { return false };
        let first = group.chars().next().unwrap_or_default().to_ascii_lowercase();
        if !all_hex(group) || (at == 2 && !version(first)) || (at == 3 && !variant(first)) {
            return false;
        }
        rest = behind;
    }
    rest.is_empty()
}

fn without_spaces_and_dashes(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '-' | ' ' | '\t' | '\n' | '\x0c' | '\r')).collect()
}

fn is_isbn10(text: &str) -> bool {
    let text = without_spaces_and_dashes(text);
    let Some((digits, last)) = text.split_at_checked(9) else { return false };
    if !all_digits(digits) || !(last == "X" || (last.len() == 1 && all_digits(last))) {
        return false;
    }
    let check = if last == "X" { 10 } else { u32::from(last.as_bytes()[0] - b'0') };
    let sum: u32 = digits.bytes().zip(1..).map(|(digit, weight)| weight * u32::from(digit - b'0')).sum();
    (sum + 10 * check).is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let text = without_spaces_and_dashes(text);
    if text.len() != 13 || !all_digits(&text) {
        return false;
    }
    let digits: Vec<u32> = text.bytes().map(|digit| u32::from(digit - b'0')).collect();
    let sum: u32 = digits[..12].iter().zip([1, 3].into_iter().cycle()).map(|(digit, weight)| digit * weight).sum();
    digits[12] == (10 - sum % 10) % 10
}

fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| digits.starts_with(prefix));
    let is_issued = match digits.len() {
        13 => starts(&["4"]),
        14 => starts(&["300", "301", "302", "303", "304", "305", "36", "38"]),
        15 => starts(&["34", "37", "2131", "1800"]),
        16 => starts(&["4", "51", "52", "53", "54", "55", "6011", "65", "35"]),
        _ => false,
    };
    let mut sum = 0;
    for (at, digit) in digits.bytes().rev().enumerate() {
        let digit = u32::from(digit - b'0') * (1 + at as u32 % 2);
        sum += digit / 10 + digit % 10;
    }
    is_issued && sum % 10 == 0
}

fn is_ssn(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 11
        && bytes.iter().enumerate().all(|(at, byte)| match at {
            3 | 6 => matches!(byte, b'-' | b' '),
            _ => byte.is_ascii_digit(),
        })
}

/// Groups of four with padding, at least one.
fn is_base64(text: &str) -> bool {
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    !text.is_empty()
        && text.len().is_multiple_of(4)
        && padding <= 2
        && text.bytes().take(text.len() - padding).all(is_digit)
}

fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return false;
    }
    let number = |digits: &str| digits.parse::<u16>().ok().filter(|_| all_digits(digits));
    let parts = (text.get(..4).and_then(number), text.get(5..7).and_then(number), text.get(8..).and_then(number));
    let (Some(year), Some(month), Some(day)) = parts else { return false };
    let month = u8::try_from(month).ok().and_then(|month| Month::try_from(month).ok());
    let day = u8::try_from(day).ok();
    matches!((month, day), (Some(month), Some(day)) if Date::from_calendar_date(i32::from(year), month, day).is_ok())
}

/// A date, a `T`, and a time with its zone; what follows another `T` does not count.
fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    is_date(date) && is_time(time)
}

fn is_time(text: &str) -> bool {
    let Some((clock, rest)) = text.split_at_checked(8) else { return false };
    let is_clock = clock.bytes().enumerate().all(|(at, byte)| match at {
        2 | 5 => byte == b':',
        _ => byte.is_ascii_digit(),
    });
    if !is_clock || &clock[..2] > "23" || &clock[3..5] > "59" || &clock[6..] > "59" {
        return false;
    }
    if is_zone(rest) {
        return true;
    }
    // Any character but a line break stands before the fraction of a second.
    let mut fraction = rest.chars();
    if matches!(fraction.next(), None | Some('\n')) {
        return false;
    }
    let fraction = fraction.as_str();
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
    digits > 0 && is_zone(&fraction[digits..])
}

fn is_zone(text: &str) -> bool {
    let Some(offset) = text.strip_prefix(['+', '-']) else { return text == "z" };
    let bytes = offset.as_bytes();
    bytes.len() == 5 && bytes[2] == b':' && all_digits(&offset[..2]) && all_digits(&offset[3..])
}

/// A span as Go writes it, or one with a number and a unit in it as people do.
fn is_duration(text: &str) -> bool {
    const UNITS: [&str; 12] = ["ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk", "min"];
    const BEGINNINGS: [&str; 8] = ["nano", "micro", "milli", "sec", "min", "hour", "day", "week"];
    if text.parse::<Duration>().is_ok() {
        return true;
    }
    let mut rest = text;
    let mut has_unit = false;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        let digits = rest[at..].bytes().take_while(u8::is_ascii_digit).count();
        let behind = rest[at + digits..].trim_start_matches([' ', '\t', '\n', '\x0c', '\r']);
        let length = behind.find(|c: char| !c.is_ascii_alphabetic() && c != 'µ').unwrap_or(behind.len());
        if length > 0 {
            if rest[at..at + digits].parse::<i64>().is_err() {
                return false;
            }
            let unit = behind[..length].to_lowercase();
            has_unit |= UNITS.contains(&&*unit) || BEGINNINGS.iter().any(|beginning| unit.starts_with(beginning));
        }
        rest = &behind[length..];
    }
    has_unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_of_their_formats() {
        for (format, good, bad) in [
            ("bsonobjectid", vec!["507f1f77bcf86cd799439011"], vec!["507f", ""]),
            (
                "hostname",
                vec!["example.com", "a-b", "a", "ünïcode.com", "x.london"],
                vec!["my-host", "a_b", "", "-a", "a."],
            ),
            ("ipv4", vec!["1.2.3.4", "01.2.3.4", "::ffff:1.2.3.4"], vec!["1.2.3", "::1", "1.2.3.4.5"]),
            ("ipv6", vec!["::1", "2001:db8::1"], vec!["1.2.3.4", "::g", "fe80::1%eth0"]),
            ("cidr", vec!["10.0.0.0/8", "::/0", "10.1.2.3/8"], vec!["10.0.0.0", "10.0.0.0/33"]),
            (
                "mac",
                vec!["01:02:03:04:05:06", "01-02-03-04-05-06-07-08", "0102.0304.0506", "010203040506"],
                vec!["01:02:03", "0102:0304", "0102030405060", "01020304"],
            ),
            (
                "uuid",
                vec!["a8098c1a-f86e-11da-bd1a-00112444be1e", "A8098C1AF86E11DABD1A00112444BE1E"],
                vec!["a8098c1a"],
            ),
            ("uuid4", vec!["025b0d74-00a2-4048-bf57-227c5111bb34"], vec!["025b0d74-00a2-1048-bf57-227c5111bb34"]),
            ("isbn", vec!["0321751043", "978-0321751041", "3836221195"], vec!["0321751044", "978-0321751042"]),
            ("isbn10", vec!["080442957X"], vec!["978-0321751041"]),
            ("creditcard", vec!["4111-1111-1111-1111", "378282246310005"], vec!["4111-1111-1111-1112", "1"]),
            ("ssn", vec!["111-11-1111", "111 11 1111"], vec!["111111111", "111-11-111"]),
            ("hexcolor", vec!["#FFFFFF", "fff"], vec!["#ff", "#gggggg"]),
            ("rgbcolor", vec!["rgb(100,100,100)", "rgb( 0 , 255, 1 )"], vec!["rgb(256,0,0)", "rgb(1,2)"]),
            ("byte", vec!["YWJj", "YQ=="], vec!["", "YWJ", "YW*j", "Y==="]),
            ("password", vec!["", "anything"], vec![]),
            ("date", vec!["2014-12-15", "2024-02-29"], vec!["2014-2-15", "2023-02-29", "2014-12-15T"]),
            ("duration", vec!["1h30m", "22 ns", "5 days", "3 weeks", "0"], vec!["", "1", "1 yr", "abc"]),
            (
                "date-time",
                vec!["2014-12-15T19:30:20.000Z", "2014-12-15t19:30:20+01:00"],
                vec!["2014-12-15T24:00:00Z", "2014-12-15T19:30:20", "2014-12-15 19:30:20Z"],
            ),
            ("k8s-short-name", vec!["a", "a-1"], vec!["A", "a.b", "-a", ""]),
            ("k8s-long-name", vec!["a.b-c"], vec!["a..b", "a."]),
            (
                "email",
                vec!["a@b", "Some One <a@b.c>", r#""q s"@b.c"#, "a.b@c (note)"],
                vec!["a", "@b", "a@", "a b@c", "a@b, c@d"],
            ),
            (
                "uri",
                vec!["http://a.b/c?d#e", "/path", "urn:x", "*", "http://[::1]:80/", "http://u:p@h"],
                vec!["", "relative", "http://a b/", "http://h:x/", ":x", "/%zz", "/a\u{7f}"],
            ),
        ] {
            let known = Format::named(format, 36).expect(format);
            for text in good {
                assert!(known.matches(text), "{format}: {text:?}");
            }
            for text in bad {
                assert!(!known.matches(text), "{format}: {text:?}");
            }
        }
    }

    #[test]
    fn formats_are_known_by_type_and_release() {
        for (kind, format, minor, want) in [
            (Some(JsonType::String), "date-time", 33, true),
            (Some(JsonType::String), "datetime", 33, true),
            (Some(JsonType::String), "k8s-short-name", 33, false),
            (Some(JsonType::String), "k8s-short-name", 34, true),
            (Some(JsonType::String), "int32", 36, false),
            (Some(JsonType::Integer), "int32", 36, true),
            (Some(JsonType::Number), "double", 36, true),
            (Some(JsonType::Number), "int64", 36, false),
            (Some(JsonType::Object), "date", 36, false),
            (None, "ipv4", 36, true),
        ] {
            assert_eq!(is_known_format(kind, false, format, minor), want, "{format}");
        }
    }
}
