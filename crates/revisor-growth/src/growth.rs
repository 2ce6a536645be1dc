//! [`Growth`]: what a piece of work costs at n and at 4n.

use std::time::Duration;

use crate::clock::cost;

/// Work that takes less than this at 4n says nothing about how it grows.
const TOO_SMALL: Duration = Duration::from_micros(500);

/// Work that takes longer than this at n is not done at 4n, but at a quarter of n.
const TOO_LONG: Duration = Duration::from_secs(2);

/// What seems to grow with a higher power than this is measured again, so often at most.
const SUSPICIOUS: f64 = 1.15;
const CONFIRMATIONS: usize = 4;

/// What a piece of work costs at two sizes, one four times the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// The smaller size.
    pub items: usize,
    /// What it costs.
    pub small: Duration,
    /// What four times as much costs.
    pub large: Duration,
}

impl Growth {
    /// Measures `work`, which is prepared for a size before it is measured. The larger size is about `items`.
    pub fn measure<W: FnMut()>(items: usize, mut prepare: impl FnMut(usize) -> W) -> Growth {
        let items = (items / 4).max(1);
        let small = cost(prepare(items));
        let mut growth = if small > TOO_LONG {
            Growth { items: (items / 4).max(1), small: cost(prepare((items / 4).max(1))), large: small }
        } else {
            Growth { items, small, large: cost(prepare(items * 4)) }
        };
        // What others do on the machine only adds: what looks dear is measured again, and the least counts.
        for _ in 0..CONFIRMATIONS {
            if growth.exponent().is_none_or(|exponent| exponent < SUSPICIOUS) {
                break;
            }
            growth.small = growth.small.min(cost(prepare(growth.items)));
            growth.large = growth.large.min(cost(prepare(growth.items * 4)));
        }
        growth
    }

    /// The power of its size with which the work grows; `None` if there is too little of it to say.
    pub fn exponent(&self) -> Option<f64> {
        let ratio = self.large.as_secs_f64() / self.small.as_secs_f64().max(1e-9);
        (self.large >= TOO_SMALL).then(|| ratio.max(1e-9).ln() / 4_f64.ln())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn growth(small: u64, large: u64) -> Growth {
        Growth { items: 100, small: Duration::from_micros(small), large: Duration::from_micros(large) }
    }

    #[test]
    fn the_exponent_tells_how_work_grows() {
        for (name, measured, want) in [
            ("linear", growth(1_000, 4_000), Some(1.0)),
            ("quadratic", growth(1_000, 16_000), Some(2.0)),
            ("cubic", growth(1_000, 64_000), Some(3.0)),
            ("constant", growth(1_000, 1_000), Some(0.0)),
            ("too little to say", growth(10, 160), None),
        ] {
            let got = measured.exponent();
            assert_eq!(got.map(|exponent| (exponent * 10.0).round() / 10.0), want, "{name}");
        }
    }
}
