//! Points in time as Kubernetes writes them: RFC 3339 in UTC, to the second or to the microsecond.

use time::format_description::well_known::Rfc3339;
use time::{Date, Month, OffsetDateTime};

/// The first day of 1970, as [`Date::to_julian_day`] counts.
const UNIX_EPOCH_DAY: i32 = 2_440_588;

/// How exactly a point in time is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// `2026-11-15T20:05:00Z`; fractions are dropped.
    Seconds,
    /// `2026-11-15T20:05:00.000000Z`; exactly six decimals are demanded.
    Microseconds,
}

/// Reads a time and writes it in its canonical form; `None` if the text is no such time.
pub fn parse_timestamp(text: &str, precision: Precision) -> Option<String> {
    if precision == Precision::Microseconds {
        let fraction = text.get(19..)?.strip_prefix('.')?;
        if fraction.bytes().take_while(u8::is_ascii_digit).count() != 6 {
            return None;
        }
    }
    let time = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    // The parser tolerates a space and lower case where RFC 3339 does; the original does not.
    if text.as_bytes().get(10) != Some(&b'T') || text.ends_with('z') {
        return None;
    }
    Some(format_timestamp(time, precision))
}

/// Whether a text is surely a time in its canonical form, to the second. Nearly all are; of the last days of a month it is
/// not said without reading them.
pub(crate) fn is_canonical(text: &str) -> bool {
    const LAYOUT: &[u8; 20] = b"dddd-dd-ddTdd:dd:ddZ";
    let Ok(bytes) = <&[u8; 20]>::try_from(text.as_bytes()) else { return false };
    let is_laid_out = LAYOUT.iter().zip(bytes).all(|(layout, byte)| match layout {
        b'd' => byte.is_ascii_digit(),
        other => byte == other,
    });
    let number = |at: usize| (bytes[at] - b'0') * 10 + (bytes[at + 1] - b'0');
    is_laid_out
        && matches!(number(5), 1..=12)
        && matches!(number(8), 1..=28)
        && number(11) < 24
        && number(14) < 60
        && number(17) < 60
}

/// A text as Go's parser of times quotes it: byte by byte where it is not plain.
fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b' '..0x80 => quoted.push(char::from(byte)),
            _ => quoted.push_str(&format!("\\x{byte:02x}")),
        }
    }
    quoted.push('"');
    quoted
}

/// The seconds since 1970 of a time that [is surely canonical](is_canonical).
pub(crate) fn canonical_seconds(text: &str) -> Option<i64> {
    if !is_canonical(text) {
        return None;
    }
    let number = |at: usize, digits: usize| {
        text.bytes().skip(at).take(digits).fold(0, |number, digit| number * 10 + i32::from(digit - b'0'))
    };
    let month = u8::try_from(number(5, 2)).ok().and_then(|month| Month::try_from(month).ok())?;
    let date = Date::from_calendar_date(number(0, 4), month, u8::try_from(number(8, 2)).ok()?).ok()?;
    let days = i64::from(date.to_julian_day() - UNIX_EPOCH_DAY);
    Some(days * 86_400 + i64::from(number(11, 2) * 3600 + number(14, 2) * 60 + number(17, 2)))
}

/// What is wrong with a text that is no time, in the words of Go: the first part that it cannot read, or that is out of
/// range.
pub(crate) fn timestamp_problem(text: &str, precision: Precision) -> String {
    let (layout, fraction) = match precision {
        Precision::Seconds => ("2006-01-02T15:04:05Z07:00", None),
        Precision::Microseconds => ("2006-01-02T15:04:05.000000Z07:00", Some(".000000")),
    };
    let unread = |rest: &str, part: &str| {
        format!("parsing time {} as {}: cannot parse {} as {}", quote(text), quote(layout), quote(rest), quote(part))
    };
    let beyond = |what: &str| format!("parsing time {}: {what} out of range", quote(text));
    let mut rest = text;
    let digits = |rest: &str, count: usize| {
        let is_number = rest.len() >= count && rest.bytes().take(count).all(|byte| byte.is_ascii_digit());
        is_number.then(|| rest[..count].parse::<u32>().unwrap_or_default())
    };
    for (part, count, highest, name) in [
        ("2006", 4, 9999, "year"),
        ("-", 0, 0, ""),
        ("01", 2, 12, "month"),
        ("-", 0, 0, ""),
        ("02", 2, 99, "day"),
        ("T", 0, 0, ""),
        ("15", 2, 23, "hour"),
        (":", 0, 0, ""),
        ("04", 2, 59, "minute"),
        (":", 0, 0, ""),
        ("05", 2, 59, "second"),
    ] {
        if count == 0 {
            match rest.strip_prefix(part) {
                Some(behind) => rest = behind,
                None => return unread(rest, part),
            }
            continue;
        }
        match digits(rest, count) {
            None => return unread(rest, part),
            Some(number) if number > highest || (part == "01" && number == 0) => return beyond(name),
            Some(_) => rest = &rest[count..],
        }
    }
    let decimals = rest.strip_prefix(['.', ',']).map_or(0, |rest| rest.bytes().take_while(u8::is_ascii_digit).count());
    match fraction {
        Some(part) if decimals < 6 => return unread(rest, part),
        Some(_) => rest = &rest[7..],
        None if decimals > 0 => rest = &rest[decimals + 1..],
        None => {}
    }
    let behind = match rest.strip_prefix('Z') {
        Some(behind) => behind,
        None => {
            let sign = rest.starts_with(['+', '-']);
            let hour = rest.get(1..).and_then(|rest| digits(rest, 2));
            let minute = rest.get(3..).and_then(|rest| rest.strip_prefix(':')).and_then(|rest| digits(rest, 2));
            let (true, Some(hour), Some(minute)) = (sign, hour, minute) else { return unread(rest, "Z07:00") };
            if hour > 24 {
                return beyond("time zone offset hour");
            }
            if minute > 60 {
                return beyond("time zone offset minute");
            }
            &rest[6..]
        }
    };
    if behind.is_empty() {
        // All parts are there, so there is no such day in the month.
        return beyond("day");
    }
    format!("parsing time {}: extra text: {}", quote(text), quote(behind))
}

/// Writes a time in its canonical form. Every write needs a few of them, so their digits are put down one by one: the
/// formatting of the standard library takes ten times as long.
pub fn format_timestamp(time: OffsetDateTime, precision: Precision) -> String {
    let time = time.to_offset(time::UtcOffset::UTC);
    let mut text = String::with_capacity("2026-11-15T20:05:00.000000Z".len());
    let mut push = |before: &str, number: u32, digits: u32| {
        text.push_str(before);
        for power in (0..digits).rev() {
            text.push(char::from(b'0' + (number / 10_u32.pow(power) % 10) as u8));
        }
    };
    push(if time.year() < 0 { "-" } else { "" }, time.year().unsigned_abs(), 4);
    let (hour, minute, second) = time.to_hms();
    for (before, number) in
        [("-", u8::from(time.month())), ("-", time.day()), ("T", hour), (":", minute), (":", second)]
    {
        push(before, number.into(), 2);
    }
    if precision == Precision::Microseconds {
        push(".", time.microsecond(), 6);
    }
    text.push('Z');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_surely_canonical_is_read_and_written_as_it_is() {
        for (text, want) in [
            ("2026-11-15T20:05:00Z", true),
            ("0001-01-01T00:00:00Z", true),
            ("2026-02-28T23:59:59Z", true),
            ("2026-01-29T23:59:59Z", false),
            ("2026-13-15T20:05:00Z", false),
            ("2026-00-15T20:05:00Z", false),
            ("2026-11-00T20:05:00Z", false),
            ("2026-11-15T24:05:00Z", false),
            ("2026-11-15T20:60:00Z", false),
            ("2026-11-15T20:05:60Z", false),
            ("2026-11-15t20:05:00Z", false),
            ("2026-11-15T20:05:00.5Z", false),
            ("", false),
        ] {
            assert_eq!(is_canonical(text), want, "{text}");
            if want {
                assert_eq!(parse_timestamp(text, Precision::Seconds).as_deref(), Some(text));
            }
        }
    }

    #[test]
    fn what_is_no_time_is_said_in_the_words_of_go() {
        use Precision::{Microseconds, Seconds};
        const LAYOUT: &str = r#"as "2006-01-02T15:04:05Z07:00": cannot parse"#;
        for (text, precision, want) in [
            ("x", Seconds, format!(r#"parsing time "x" {LAYOUT} "x" as "2006""#)),
            ("", Seconds, format!(r#"parsing time "" {LAYOUT} "" as "2006""#)),
            ("2020", Seconds, format!(r#"parsing time "2020" {LAYOUT} "" as "-""#)),
            ("2020-13-01T00:00:00Z", Seconds, r#"parsing time "2020-13-01T00:00:00Z": month out of range"#.to_owned()),
            ("2020-02-30T00:00:00Z", Seconds, r#"parsing time "2020-02-30T00:00:00Z": day out of range"#.to_owned()),
            ("2020-01-01T00:00:00", Seconds, format!(r#"parsing time "2020-01-01T00:00:00" {LAYOUT} "" as "Z07:00""#)),
            (
                "2020-01-01 00:00:00Z",
                Seconds,
                format!(r#"parsing time "2020-01-01 00:00:00Z" {LAYOUT} " 00:00:00Z" as "T""#),
            ),
            ("2020-01-01T00:00:00Zx", Seconds, r#"parsing time "2020-01-01T00:00:00Zx": extra text: "x""#.to_owned()),
            (
                "2020-01-01T00:00:00Z",
                Microseconds,
                concat!(
                    r#"parsing time "2020-01-01T00:00:00Z" as "2006-01-02T15:04:05.000000Z07:00": "#,
                    r#"cannot parse "Z" as ".000000""#
                )
                .to_owned(),
            ),
        ] {
            assert_eq!(timestamp_problem(text, precision), want);
        }
    }

    #[test]
    fn times_are_brought_to_their_canonical_form() {
        use Precision::{Microseconds, Seconds};
        for (text, precision, want) in [
            ("2026-11-15T20:05:00Z", Seconds, Some("2026-11-15T20:05:00Z")),
            ("2026-11-15T20:05:00.9Z", Seconds, Some("2026-11-15T20:05:00Z")),
            ("2026-11-15T22:05:00+02:00", Seconds, Some("2026-11-15T20:05:00Z")),
            ("2026-11-15T20:05:00.123456Z", Microseconds, Some("2026-11-15T20:05:00.123456Z")),
            ("2026-11-15T20:05:00Z", Microseconds, None),
            ("2026-11-15T20:05:00.123Z", Microseconds, None),
            ("2026-11-15T20:05:00.1234567Z", Microseconds, None),
            ("2026-11-15 20:05:00Z", Seconds, None),
            ("2026-13-15T20:05:00Z", Seconds, None),
            ("yesterday", Seconds, None),
            ("", Seconds, None),
        ] {
            assert_eq!(parse_timestamp(text, precision).as_deref(), want, "{text}");
        }
    }
}
