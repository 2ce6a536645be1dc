//! [`SeatSeconds`]: how much work something is: seats times seconds.
//!
//! Fixed point, as in the original (`request/seat_seconds.go`), because the meters that count it run for as long as the
//! server does and must not lose what is small. Arithmetic wraps: a meter is wound back before it can overflow, and a
//! difference may be negative for a moment.

use std::fmt;
use std::time::Duration;

/// How many units make one second of one seat.
const SCALE: f64 = 1e8;

/// An amount of work, or the reading of a meter of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SeatSeconds(u64);

impl SeatSeconds {
    /// More than any amount.
    pub const MAX: SeatSeconds = SeatSeconds(u64::MAX);
    /// None.
    pub const ZERO: SeatSeconds = SeatSeconds(0);

    /// So many seats for so long.
    pub fn of(seats: f64, duration: Duration) -> SeatSeconds {
        SeatSeconds::of_nanos(seats, duration.as_nanos() as f64)
    }

    /// The same for a time that may be negative.
    pub(crate) fn of_nanos(seats: f64, nanos: f64) -> SeatSeconds {
        SeatSeconds((seats * nanos / (1e9 / SCALE)).round() as i64 as u64)
    }

    /// In seconds of one seat.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / SCALE
    }

    /// How long this lasts if so many seats share it.
    pub(crate) fn duration_per_seat(self, seats: f64) -> Duration {
        Duration::from_nanos((self.0 as f64 / seats * (1e9 / SCALE)) as u64)
    }

    pub(crate) fn plus(self, other: SeatSeconds) -> SeatSeconds {
        SeatSeconds(self.0.wrapping_add(other.0))
    }

    pub(crate) fn minus(self, other: SeatSeconds) -> SeatSeconds {
        SeatSeconds(self.0.wrapping_sub(other.0))
    }

    pub(crate) const fn half(self) -> SeatSeconds {
        SeatSeconds(self.0 / 2)
    }
}

impl fmt::Display for SeatSeconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scale = SCALE as u64;
        write!(f, "{}.{:08}ss", self.0 / scale, self.0 % scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_seats_times_time() {
        let work = SeatSeconds::of(2.0, Duration::from_millis(1500));
        assert_eq!((work.to_string().as_str(), work.as_f64()), ("3.00000000ss", 3.0));
        assert_eq!(work.duration_per_seat(4.0), Duration::from_millis(750));
        let less = work.plus(SeatSeconds::of_nanos(1.0, -1e9));
        assert_eq!(less.to_string(), "2.00000000ss");
        assert_eq!(SeatSeconds::of(0.5, Duration::from_nanos(30)).to_string(), "0.00000002ss");
    }
}
