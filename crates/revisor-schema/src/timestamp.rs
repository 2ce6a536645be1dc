//! Points in time as Kubernetes writes them: RFC 3339 in UTC, to the second or to the microsecond.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

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

/// Writes a time in its canonical form.
pub fn format_timestamp(time: OffsetDateTime, precision: Precision) -> String {
    let time = time.to_offset(time::UtcOffset::UTC);
    let (year, month, day) = (time.year(), u8::from(time.month()), time.day());
    let (hour, minute, second) = time.to_hms();
    match precision {
        Precision::Seconds => format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"),
        Precision::Microseconds => {
            let micros = time.microsecond();
            format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
