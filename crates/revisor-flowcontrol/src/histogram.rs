//! [`Histogram`] and [`TimingHistogram`]: plain counters for whoever holds a lock anyway. What they are called, and how
//! they are written down, is none of their business.

use crate::Moment;

/// How often values fell below each of some bounds.
#[derive(Debug, Clone)]
pub struct Histogram {
    bounds: &'static [f64],
    /// One more than there are bounds.
    counts: Box<[u64]>,
    sum: f64,
}

/// What a histogram has counted.
#[derive(Debug, Clone, PartialEq)]
pub struct HistogramReading {
    /// The upper bounds.
    pub bounds: &'static [f64],
    /// How many values were at most as large as each bound.
    pub cumulative: Vec<u64>,
    /// How many values there were.
    pub count: u64,
    /// What they add up to.
    pub sum: f64,
}

impl Histogram {
    pub(crate) fn new(bounds: &'static [f64]) -> Histogram {
        Histogram { bounds, counts: vec![0; bounds.len() + 1].into(), sum: 0.0 }
    }

    /// Counts a value.
    pub fn observe(&mut self, value: f64) {
        self.weigh(value, 1);
    }

    fn weigh(&mut self, value: f64, weight: u64) {
        let at = self.bounds.iter().position(|bound| value <= *bound).unwrap_or(self.bounds.len());
        self.counts[at] += weight;
        self.sum += value * weight as f64;
    }

    /// What was counted; nothing if nothing was.
    pub fn reading(&self) -> Option<HistogramReading> {
        let mut count = 0;
        let cumulative = self.counts.iter().map(|more| {
            count += more;
            count
        });
        let mut cumulative: Vec<u64> = cumulative.collect();
        cumulative.pop();
        (count > 0).then_some(HistogramReading { bounds: self.bounds, cumulative, count, sum: self.sum })
    }
}

/// For how long a ratio had which values, in nanoseconds.
#[derive(Debug, Clone)]
pub struct TimingHistogram {
    histogram: Histogram,
    numerator: f64,
    denominator: f64,
    since: Moment,
}

impl TimingHistogram {
    /// One of a ratio that is this from now on.
    pub fn new(bounds: &'static [f64], numerator: f64, denominator: f64, now: Moment) -> TimingHistogram {
        TimingHistogram { histogram: Histogram::new(bounds), numerator, denominator, since: now }
    }

    /// The numerator has changed.
    pub fn set(&mut self, numerator: f64, now: Moment) {
        self.pass(now);
        self.numerator = numerator;
    }

    /// The numerator has changed by so much.
    pub fn add(&mut self, delta: f64, now: Moment) {
        self.set(self.numerator + delta, now);
    }

    /// The denominator has changed.
    pub fn set_denominator(&mut self, denominator: f64, now: Moment) {
        self.pass(now);
        self.denominator = denominator;
    }

    /// What was counted until now.
    pub fn reading(&mut self, now: Moment) -> Option<HistogramReading> {
        self.pass(now);
        self.histogram.reading()
    }

    fn pass(&mut self, now: Moment) {
        let passed = now.since(self.since).as_nanos() as u64;
        if passed > 0 {
            self.histogram.weigh(self.numerator / self.denominator, passed);
            self.since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_up_to_their_bounds() {
        let mut histogram = Histogram::new(&[1.0, 2.0]);
        assert_eq!(histogram.reading(), None);
        for value in [0.5, 1.0, 1.5, 9.0] {
            histogram.observe(value);
        }
        let reading = histogram.reading().expect("something was counted");
        assert_eq!((reading.cumulative, reading.count, reading.sum), (vec![2, 3], 4, 12.0));
    }

    #[test]
    fn ratios_are_weighed_by_time() {
        let mut timing = TimingHistogram::new(&[0.5], 0.0, 10.0, Moment(100));
        timing.set(10.0, Moment(130));
        timing.set_denominator(40.0, Moment(140));
        let reading = timing.reading(Moment(160)).expect("time has passed");
        assert_eq!((reading.cumulative, reading.count, reading.sum), (vec![50], 60, 10.0 + 5.0));
    }
}
