//! Times of single operations, and what they say together.

use std::time::Duration;

/// Every operation's time in microseconds. Exact, because there are few enough of them.
#[derive(Debug, Default, Clone)]
pub(crate) struct Latencies {
    micros: Vec<u32>,
}

impl Latencies {
    pub(crate) fn push(&mut self, time: Duration) {
        self.micros.push(u32::try_from(time.as_micros()).unwrap_or(u32::MAX));
    }

    pub(crate) fn extend(&mut self, other: Self) {
        self.micros.extend(other.micros);
    }

    pub(crate) fn len(&self) -> usize {
        self.micros.len()
    }

    /// The times that half, and ninety-nine of a hundred, operations did not exceed, in microseconds.
    pub(crate) fn median_and_p99(mut self) -> (u32, u32) {
        self.micros.sort_unstable();
        (self.rank(50), self.rank(99))
    }

    /// The smallest time that `percent` of all times do not exceed; the times are sorted.
    fn rank(&self, percent: usize) -> u32 {
        let rank = (self.micros.len() * percent).div_ceil(100);
        self.micros.get(rank.saturating_sub(1)).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_occurred() {
        for (times, want) in [
            (vec![], (0, 0)),
            (vec![7], (7, 7)),
            (vec![3, 1, 2], (2, 3)),
            ((1..=100).rev().collect(), (50, 99)),
            ((1..=1000).collect(), (500, 990)),
        ] {
            let mut latencies = Latencies::default();
            times.iter().for_each(|&micros| latencies.push(Duration::from_micros(micros)));
            assert_eq!(latencies.median_and_p99(), want, "{times:?}");
        }
    }
}
