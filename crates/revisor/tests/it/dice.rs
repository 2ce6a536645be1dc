//! [`Dice`]: random numbers that a seed gives again.

use std::time::SystemTime;

/// SplitMix64: small, and good enough to choose moments.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// Another seed every time, to be shown when a test fails. `REVISOR_TEST_SEED` gives a failure again.
    pub(crate) fn any_seed() -> u64 {
        let given = std::env::var("REVISOR_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
        given.unwrap_or_else(|| {
            let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            since.as_nanos() as u64
        })
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % bound
    }
}
