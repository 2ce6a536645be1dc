//! [`Backoff`]: how long to wait before a server is asked again.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// The first wait, and the longest.
const LEAST: Duration = Duration::from_millis(200);
const MOST: Duration = Duration::from_secs(30);

/// Waits that double from failure to failure. A part of each is random, so that clients that lost one server together do
/// not come back together.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
    dice: RandomState,
}

impl Backoff {
    /// All is well again.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// The wait after another failure.
    pub(crate) fn next(&mut self) -> Duration {
        let longest = LEAST.saturating_mul(1 << self.failures.min(16)).min(MOST);
        self.failures = self.failures.saturating_add(1);
        let share = self.dice.hash_one(self.failures) % 1000;
        longest / 2 + longest.mul_f64(0.5 * share as f64 / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_a_bound_and_begin_anew() {
        let mut backoff = Backoff::default();
        assert!(backoff.next() <= LEAST);
        for _ in 0..100 {
            assert!(backoff.next() <= MOST);
        }
        assert!(backoff.next() >= MOST / 2);
        backoff.reset();
        assert!(backoff.next() <= LEAST);
    }
}
