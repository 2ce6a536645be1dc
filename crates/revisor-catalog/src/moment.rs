//! [`Moment`]: a point in time, and how long ago it was in words for people.
//!
//! A moment can also be left open: what is told of it is then marked in the text, and [`crate::TimedText`] fills it in.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

const SECOND: i64 = 1_000_000;

/// What stands before and after the microseconds of a time in a text whose moment is open. They are for private use,
/// so that texts of people rarely have them.
pub(crate) const MARKS: [char; 2] = ['\u{e000}', '\u{e001}'];

/// A point in time, exact to the microsecond. The clock is read by the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Point);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Point {
    /// Microseconds since 1970.
    Known(i64),
    /// Later than all times that are known, and not yet known itself.
    Open,
}

impl Moment {
    /// The moment that is not yet known.
    pub(crate) const OPEN: Moment = Moment(Point::Open);

    /// The moment so many microseconds after 1970 began.
    pub(crate) const fn from_micros(micros: i64) -> Moment {
        Moment(Point::Known(micros))
    }

    /// Reads a time in the form in which objects are stored: `2026-11-15T20:05:00Z`, with or without a fraction.
    pub fn parse(text: &str) -> Option<Moment> {
        let digits = |from: usize, to: usize| -> Option<i64> {
            let part = text.get(from..to)?;
            part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())?
        };
        let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
        if separators.iter().any(|(at, byte)| text.as_bytes().get(*at) != Some(byte)) {
            return None;
        }
        let days = days_since_1970(digits(0, 4)?, digits(5, 7)?, digits(8, 10)?);
        let seconds = ((days * 24 + digits(11, 13)?) * 60 + digits(14, 16)?) * 60 + digits(17, 19)?;
        let fraction = text.get(19..)?.strip_suffix('Z')?;
        let micros = match fraction.strip_prefix('.') {
            None if fraction.is_empty() => 0,
            None => return None,
            Some(decimals) if decimals.bytes().all(|byte| byte.is_ascii_digit()) => {
                format!("{decimals:0<6}").get(..6)?.parse().ok()?
            }
            Some(_) => return None,
        };
        Some(Moment::from_micros(seconds * SECOND + micros))
    }

    /// The whole seconds since 1970; `None` if this moment is open.
    pub(crate) fn seconds(self) -> Option<i64> {
        match self.0 {
            Point::Known(micros) => Some(micros.div_euclid(SECOND)),
            Point::Open => None,
        }
    }

    /// How long ago `earlier` was, which must be a time that is known.
    pub fn since(self, earlier: Moment) -> String {
        match (self.0, earlier.0) {
            (Point::Known(now), Point::Known(earlier)) => Span(now.saturating_sub(earlier)).to_string(),
            (Point::Open, Point::Known(earlier)) => format!("{}{earlier}{}", MARKS[0], MARKS[1]),
            (_, Point::Open) => "<unknown>".to_owned(),
        }
    }

    /// How long ago a time was, in microseconds since 1970; `None` if this moment is open.
    pub(crate) fn span_since(self, earlier: i64) -> Option<Span> {
        match self.0 {
            Point::Known(now) => Some(Span(now.saturating_sub(earlier))),
            Point::Open => None,
        }
    }
}

impl From<SystemTime> for Moment {
    fn from(time: SystemTime) -> Moment {
        let micros = match time.duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_micros()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_micros()).map_or(i64::MIN, |micros| -micros),
        };
        Moment::from_micros(micros)
    }
}

/// The length of so many seconds in words.
pub(crate) fn human_seconds(seconds: i64) -> String {
    Span(seconds.saturating_mul(SECOND)).to_string()
}

/// A length of time in microseconds, shown in two or three digits, as `kubectl get` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span(i64);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0 / SECOND;
        // Clocks differ a little between machines; a second ahead still means now.
        if seconds < -1 {
            return f.write_str("<invalid>");
        }
        let seconds = seconds.max(0);
        let (minutes, hours) = (seconds / 60, seconds / 3600);
        let (days, years) = (hours / 24, hours / 24 / 365);
        match () {
            () if seconds < 2 * 60 => write!(f, "{seconds}s"),
            () if minutes < 10 => pair(f, (minutes, 'm'), (seconds % 60, 's')),
            () if minutes < 3 * 60 => write!(f, "{minutes}m"),
            () if hours < 8 => pair(f, (hours, 'h'), (minutes % 60, 'm')),
            () if hours < 48 => write!(f, "{hours}h"),
            () if hours < 8 * 24 => pair(f, (days, 'd'), (hours % 24, 'h')),
            () if days < 2 * 365 => write!(f, "{days}d"),
            () if days < 8 * 365 => pair(f, (years, 'y'), (days % 365, 'd')),
            () => write!(f, "{years}y"),
        }
    }
}

fn pair(f: &mut fmt::Formatter<'_>, (large, unit): (i64, char), (small, small_unit): (i64, char)) -> fmt::Result {
    if small == 0 { write!(f, "{large}{unit}") } else { write!(f, "{large}{unit}{small}{small_unit}") }
}

/// Days from 1970 to a day of the Gregorian calendar. Years are counted from March, so that leap days come last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_are_stored() {
        for (text, want) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2026-11-15T20:05:00Z", Some(1_794_773_100 * SECOND)),
            ("2024-02-29T23:59:59.25Z", Some(1_709_251_199 * SECOND + 250_000)),
            ("2026-11-15T20:05:00.123456Z", Some(1_794_773_100 * SECOND + 123_456)),
            ("2026-11-15T20:05:00", None),
            ("2026-11-15 20:05:00Z", None),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(Moment::parse(text), want.map(Moment::from_micros), "{text}");
        }
    }

    #[test]
    fn spans_are_told_in_two_or_three_digits() {
        let (minute, hour, day) = (60, 3600, 24 * 3600);
        for (seconds, want) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (2 * minute, "2m"),
            (2 * minute + 1, "2m1s"),
            (10 * minute + 59, "10m"),
            (3 * hour - 1, "179m"),
            (3 * hour, "3h"),
            (7 * hour + 59 * minute, "7h59m"),
            (8 * hour + 59 * minute, "8h"),
            (2 * day, "2d"),
            (2 * day + hour, "2d1h"),
            (8 * day + hour, "8d"),
            (2 * 365 * day - 1, "729d"),
            (2 * 365 * day, "2y"),
            (3 * 365 * day + 5 * day, "3y5d"),
            (8 * 365 * day + 5 * day, "8y"),
        ] {
            assert_eq!(human_seconds(seconds), want, "{seconds} s");
        }
    }
}
