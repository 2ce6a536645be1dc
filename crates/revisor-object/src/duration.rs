//! [`Duration`]: a length of time as fields of objects write it, such as `1m30s`.
//!
//! Reads what Go's `time.ParseDuration` reads and writes what its durations print, because objects come back in that
//! form: `60s` becomes `1m0s`.

use std::fmt;
use std::fmt::Write as _;
use std::str::FromStr;

const SECOND: u64 = 1_000_000_000;

/// The largest magnitude, that of the most negative duration.
const LIMIT: u64 = 1 << 63;

/// A length of time in nanoseconds, which may be negative.
///
/// ```
/// use revisor_object::Duration;
///
/// let duration: Duration = "1.5h".parse().unwrap();
/// assert_eq!(duration.to_string(), "1h30m0s");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(i64);

/// Why a text is not a [`Duration`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// It does not follow the grammar, or is out of range.
    #[error("time: invalid duration {}", Escaped(.0))]
    Invalid(String),
    /// A number has no unit.
    #[error("time: missing unit in duration {}", Escaped(.0))]
    MissingUnit(String),
    /// There is no such unit.
    #[error("time: unknown unit {} in duration {}", Escaped(.unit), Escaped(.text))]
    UnknownUnit {
        /// The unit.
        unit: String,
        /// The whole text.
        text: String,
    },
}

impl Duration {
    /// So many nanoseconds.
    pub const fn from_nanos(nanos: i64) -> Duration {
        Duration(nanos)
    }

    /// Its length in nanoseconds.
    pub const fn nanos(self) -> i64 {
        self.0
    }
}

impl FromStr for Duration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Duration, DurationError> {
        let invalid = || DurationError::Invalid(text.to_owned());
        let negative = text.starts_with('-');
        let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
        if rest == "0" {
            return Ok(Duration(0));
        }
        if rest.is_empty() {
            return Err(invalid());
        }
        let mut total = 0_u64;
        while !rest.is_empty() {
            let (whole, after) = split_digits(rest);
            let (fraction, after) = after.strip_prefix('.').map_or(("", after), split_digits);
            if whole.is_empty() && fraction.is_empty() {
                return Err(invalid());
            }
            let count = if whole.is_empty() { Some(0) } else { whole.parse::<u64>().ok() };
            let count = count.filter(|count| *count <= LIMIT).ok_or_else(invalid)?;

            let (name, after) =
                after.split_at(after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len()));
            if name.is_empty() {
                return Err(DurationError::MissingUnit(text.to_owned()));
            }
            let Some(unit) = unit(name) else {
                return Err(DurationError::UnknownUnit { unit: name.to_owned(), text: text.to_owned() });
            };
            let part = count.checked_mul(unit).filter(|part| *part <= LIMIT).ok_or_else(invalid)?;
            let part = part.saturating_add(fraction_of(fraction, unit));
            total = total.checked_add(part).filter(|total| *total <= LIMIT).ok_or_else(invalid)?;
            rest = after;
        }
        let nanos = if negative { 0_i64.checked_sub_unsigned(total) } else { i64::try_from(total).ok() };
        nanos.map(Duration).ok_or_else(invalid)
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

fn unit(name: &str) -> Option<u64> {
    Some(match name {
        "ns" => 1,
        // Both characters that look like this: the micro sign and the Greek letter.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => SECOND,
        "m" => 60 * SECOND,
        "h" => 3600 * SECOND,
        _ => return None,
    })
}

/// The nanoseconds that the digits after a point stand for, cut off as the original cuts them off.
fn fraction_of(digits: &str, unit: u64) -> u64 {
    let (mut number, mut scale) = (0_u64, 1.0_f64);
    for digit in digits.bytes() {
        // Further digits are below any precision.
        let Some(next) = number.checked_mul(10).and_then(|ten| ten.checked_add(u64::from(digit - b'0'))) else { break };
        if next > LIMIT {
            break;
        }
        number = next;
        scale *= 10.0;
    }
    // The rounding of floats is part of what comes back to clients, so it is done in the same order.
    (number as f64 * (unit as f64 / scale)) as u64
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 0 {
            f.write_char('-')?;
        }
        let nanos = self.0.unsigned_abs();
        match nanos {
            0 => f.write_str("0s"),
            1..1_000 => write!(f, "{nanos}ns"),
            1_000..1_000_000 => write_decimal(f, nanos, 3, "µs"),
            1_000_000..SECOND => write_decimal(f, nanos, 6, "ms"),
            SECOND.. => {
                let minutes = nanos / (60 * SECOND);
                if minutes >= 60 {
                    write!(f, "{}h", minutes / 60)?;
                }
                if minutes > 0 {
                    write!(f, "{}m", minutes % 60)?;
                }
                write_decimal(f, nanos % (60 * SECOND), 9, "s")
            }
        }
    }
}

/// Writes `number / 10^places` without trailing zeros.
fn write_decimal(f: &mut fmt::Formatter<'_>, number: u64, places: usize, unit: &str) -> fmt::Result {
    let power = 10_u64.pow(places as u32);
    let fraction = format!("{:0places$}", number % power);
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    write!(f, "{}{point}{fraction}{unit}", number / power)
}

/// A text in quotes, with everything outside of ASCII as the bytes that it is made of.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for byte in self.0.bytes() {
            match byte {
                b'"' | b'\\' => write!(f, "\\{}", char::from(byte))?,
                b' '..=0x7f => f.write_char(char::from(byte))?,
                _ => write!(f, "\\x{byte:02x}")?,
            }
        }
        f.write_char('"')
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_come_back_in_canonical_form() {
        for (text, want) in [
            ("0", "0s"),
            ("-0", "0s"),
            ("0s", "0s"),
            ("60s", "1m0s"),
            ("+5s", "5s"),
            ("-5s", "-5s"),
            ("90m", "1h30m0s"),
            ("1.5h", "1h30m0s"),
            ("36h", "36h0m0s"),
            ("5.s", "5s"),
            (".5s", "500ms"),
            ("1s1s", "2s"),
            ("1h15m30.918273645s", "1h15m30.918273645s"),
            ("1500us", "1.5ms"),
            ("15µs", "15µs"),
            ("15μs", "15µs"),
            ("999ns", "999ns"),
            ("0.3333333333333333333h", "20m0s"),
            ("0.100000000000000000000h", "6m0s"),
            ("0.0000000001s", "0s"),
            ("9223372036854775807ns", "2562047h47m16.854775807s"),
            ("-9223372036854775808ns", "-2562047h47m16.854775808s"),
        ] {
            assert_eq!(text.parse::<Duration>().map(|duration| duration.to_string()), Ok(want.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for (text, want) in [
            ("", r#"time: invalid duration """#),
            ("-", r#"time: invalid duration "-""#),
            ("s", r#"time: invalid duration "s""#),
            (".s", r#"time: invalid duration ".s""#),
            ("3", r#"time: missing unit in duration "3""#),
            ("1h3", r#"time: missing unit in duration "1h3""#),
            ("1.2.3s", r#"time: missing unit in duration "1.2.3s""#),
            ("1d", r#"time: unknown unit "d" in duration "1d""#),
            ("1 s", r#"time: unknown unit " s" in duration "1 s""#),
            ("1é\"\n", r#"time: unknown unit "\xc3\xa9\"\x0a" in duration "1\xc3\xa9\"\x0a""#),
            ("9223372036854775808ns", r#"time: invalid duration "9223372036854775808ns""#),
            ("99999999999999999999ns", r#"time: invalid duration "99999999999999999999ns""#),
            ("3000000h", r#"time: invalid duration "3000000h""#),
        ] {
            assert_eq!(text.parse::<Duration>().map_err(|error| error.to_string()), Err(want.to_owned()), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(nanos in any::<i64>(), shift in 0_u32..63) {
            let duration = Duration::from_nanos(nanos >> shift);
            prop_assert_eq!(duration.to_string().parse(), Ok(duration));
        }
    }
}
