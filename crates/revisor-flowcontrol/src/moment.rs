//! [`Moment`]: a point in time, as whoever owns the clock counts it.

use std::time::Duration;

/// Nanoseconds since a beginning that whoever owns the clock has chosen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub u64);

impl Moment {
    /// The time that has passed since an earlier moment; none if that is later.
    pub fn since(self, earlier: Moment) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}
