//! [`Growth`]: what a piece of work costs at n and at 4n.
//!
//! The processor's time of work that is linear grows faster than its input where this outgrows a cache of the
//! processor. So what looks steep is held against work on the same objects that is known to be linear, reading and
//! writing them: only what grows faster than that counts.

use std::time::Duration;

use revisor_object::{Object, Value, parse_json};

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
    /// The power with which reading and writing the same objects grows, if that was measured.
    pub reading: Option<f64>,
}

impl Growth {
    /// Measures `work`, which is prepared for a size before it is measured. The larger size is about `items`.
    pub fn measure<W: FnMut()>(items: usize, mut prepare: impl FnMut(usize) -> W) -> Growth {
        let items = (items / 4).max(1);
        let small = cost(prepare(items));
        let mut growth = if small > TOO_LONG {
            let items = (items / 4).max(1);
            Growth { items, small: cost(prepare(items)), large: small, reading: None }
        } else {
            Growth { items, small, large: cost(prepare(items * 4)), reading: None }
        };
        // What others do on the machine only adds: what looks dear is measured again, and the least counts.
        for _ in 0..CONFIRMATIONS {
            if !growth.is_suspicious() {
                break;
            }
            growth.small = growth.small.min(cost(prepare(growth.items)));
            growth.large = growth.large.min(cost(prepare(growth.items * 4)));
        }
        growth
    }

    /// Measures how reading and writing the objects grows that the work is about, if the work looks steep.
    pub fn hold_against_reading(&mut self, make: impl Fn(usize) -> Object) {
        if self.is_suspicious() {
            let small = cost(reading(make(self.items)));
            let large = cost(reading(make(self.items * 4)));
            self.reading = Some(power(small, large));
        }
    }

    fn is_suspicious(&self) -> bool {
        self.exponent().is_some_and(|exponent| exponent >= SUSPICIOUS)
    }

    /// The power of its size with which the work grows, beyond that with which reading grows if that is more than
    /// linear; `None` if there is too little of it to say.
    pub fn exponent(&self) -> Option<f64> {
        let beyond_linear = self.reading.map_or(0.0, |reading| (reading - 1.0).max(0.0));
        (self.large >= TOO_SMALL).then(|| power(self.small, self.large) - beyond_linear)
    }
}

/// The power with which what costs so much at n and at 4n grows.
fn power(small: Duration, large: Duration) -> f64 {
    let ratio = large.as_secs_f64() / small.as_secs_f64().max(1e-9);
    ratio.max(1e-9).ln() / 4_f64.ln()
}

/// Reads an object, copies it and writes the copy: as every write does, and linear.
fn reading(object: Object) -> impl FnMut() {
    let text = Value::Object(object).to_json();
    move || {
        let read = parse_json(text.as_bytes()).map(|parsed| parsed.value).unwrap_or_default();
        std::hint::black_box(read.clone().to_json());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn growth(small: u64, large: u64) -> Growth {
        let (small, large) = (Duration::from_micros(small), Duration::from_micros(large));
        Growth { items: 100, small, large, reading: None }
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

    #[test]
    fn only_what_grows_faster_than_reading_counts() {
        for (name, reading, want) in
            [("caches were outgrown", 1.3, 1.7), ("they were not", 1.0, 2.0), ("reading is mostly the start", 0.5, 2.0)]
        {
            let held = Growth { reading: Some(reading), ..growth(1_000, 16_000) };
            let got = held.exponent().unwrap_or_default();
            assert!((got - want).abs() < 0.001, "{name}: {got}");
        }
    }
}
