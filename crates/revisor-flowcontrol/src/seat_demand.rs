//! [`SeatDemand`]: how many seats a priority level could have used lately, smoothed over time; what borrowing goes by.

use crate::Moment;

/// How much of the former value stays at each adjustment: half of it is gone after five minutes.
const SMOOTHING: f64 = 0.977;

/// The seats that a level wants, watched between two adjustments.
#[derive(Debug, Clone)]
pub struct SeatDemand {
    seats: f64,
    since: Moment,
    elapsed: f64,
    integral: f64,
    integral_of_squares: f64,
    max: f64,
    /// The average of the last period.
    pub average: f64,
    /// Its standard deviation.
    pub deviation: f64,
    /// The most of it.
    pub high_watermark: usize,
    /// What is left of former peaks.
    pub smoothed: f64,
}

impl SeatDemand {
    /// Nothing is wanted yet.
    pub fn new(now: Moment) -> SeatDemand {
        SeatDemand {
            seats: 0.0,
            since: now,
            elapsed: 0.0,
            integral: 0.0,
            integral_of_squares: 0.0,
            max: 0.0,
            average: 0.0,
            deviation: 0.0,
            high_watermark: 0,
            smoothed: 0.0,
        }
    }

    /// So many seats are wanted from now on.
    pub(crate) fn set(&mut self, seats: usize, now: Moment) {
        self.pass(now);
        self.seats = seats as f64;
        self.max = self.max.max(self.seats);
    }

    /// Ends a period.
    pub fn adjust(&mut self, now: Moment) {
        self.pass(now);
        self.high_watermark = self.max.round() as usize;
        if self.elapsed > 0.0 {
            let average = self.integral / self.elapsed;
            let variance = self.integral_of_squares / self.elapsed - average * average;
            self.average = average;
            self.deviation = variance.max(0.0).sqrt();
            let envelope = self.average + self.deviation;
            self.smoothed = envelope.max(SMOOTHING * self.smoothed + (1.0 - SMOOTHING) * envelope);
        }
        (self.elapsed, self.integral, self.integral_of_squares, self.max) = (0.0, 0.0, 0.0, self.seats);
    }

    fn pass(&mut self, now: Moment) {
        let passed = now.since(self.since).as_secs_f64();
        self.since = self.since.max(now);
        self.elapsed += passed;
        self.integral += self.seats * passed;
        self.integral_of_squares += self.seats * self.seats * passed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_are_remembered_and_fade() {
        let second = 1_000_000_000;
        let mut demand = SeatDemand::new(Moment(0));
        demand.set(10, Moment(5 * second));
        demand.set(0, Moment(10 * second));
        demand.adjust(Moment(10 * second));
        assert_eq!((demand.average, demand.deviation, demand.high_watermark), (5.0, 5.0, 10));
        assert_eq!(demand.smoothed, 10.0);
        demand.adjust(Moment(20 * second));
        assert_eq!((demand.average, demand.high_watermark), (0.0, 0));
        assert!((demand.smoothed - 9.77).abs() < 1e-9, "{}", demand.smoothed);
    }
}
