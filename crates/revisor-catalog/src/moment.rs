//! [`Moment`]: a point in time, and how long ago it was in words for people.

use std::time::{SystemTime, UNIX_EPOCH};

const SECOND: i64 = 1_000_000;

/// A point in time, exact to the microsecond. The clock is read by the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// Microseconds since 1970.
    micros: i64,
}

impl Moment {
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
        Some(Moment { micros: seconds * SECOND + micros })
    }

    /// How long ago `earlier` was.
    pub fn since(self, earlier: Moment) -> String {
        human_duration(self.micros - earlier.micros)
    }
}

impl From<SystemTime> for Moment {
    fn from(time: SystemTime) -> Moment {
        let micros = match time.duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_micros()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_micros()).map_or(i64::MIN, |micros| -micros),
        };
        Moment { micros }
    }
}

/// The length of so many seconds in words.
pub(crate) fn human_seconds(seconds: i64) -> String {
    human_duration(seconds.saturating_mul(SECOND))
}

/// The length of a span in two or three digits, as `kubectl get` shows it.
fn human_duration(micros: i64) -> String {
    let seconds = micros / SECOND;
    // Clocks differ a little between machines; a second ahead still means now.
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    let seconds = seconds.max(0);
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    let pair = |large: i64, unit: char, small: i64, small_unit: char| {
        if small == 0 { format!("{large}{unit}") } else { format!("{large}{unit}{small}{small_unit}") }
    };
    match () {
        () if seconds < 2 * 60 => format!("{seconds}s"),
        () if minutes < 10 => pair(minutes, 'm', seconds % 60, 's'),
        () if minutes < 3 * 60 => format!("{minutes}m"),
        () if hours < 8 => pair(hours, 'h', minutes % 60, 'm'),
        () if hours < 48 => format!("{hours}h"),
        () if hours < 8 * 24 => pair(days, 'd', hours % 24, 'h'),
        () if days < 2 * 365 => format!("{days}d"),
        () if days < 8 * 365 => pair(years, 'y', days % 365, 'd'),
        () => format!("{years}y"),
    }
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
            assert_eq!(Moment::parse(text).map(|moment| moment.micros), want, "{text}");
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
