//! [`Choices`]: decisions that bytes make, as far as they reach, and after that numbers that follow from them.
//!
//! A fuzzer that changes a byte changes one decision and leaves those before it as they were, so that coverage can guide
//! it. A number alone makes endless decisions, the same ones every time.

use crate::mutator::split_mix;

/// A repeatable source of decisions.
#[derive(Debug, Clone)]
pub struct Choices<'d> {
    data: &'d [u8],
    state: u64,
}

impl<'d> Choices<'d> {
    /// Decisions made by these bytes.
    pub fn of_bytes(data: &'d [u8]) -> Choices<'d> {
        let state = data.iter().fold(0, |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
        Choices { data, state }
    }

    /// Decisions made by a number.
    pub fn seeded(number: u64) -> Choices<'static> {
        Choices { data: &[], state: number }
    }

    /// A number below the bound, which is not zero.
    pub fn below(&mut self, bound: usize) -> usize {
        match self.data {
            [byte, rest @ ..] if bound <= 256 => {
                self.data = rest;
                usize::from(*byte) % bound
            }
            [high, low, rest @ ..] => {
                self.data = rest;
                (usize::from(*high) << 8 | usize::from(*low)) % bound
            }
            _ => usize::try_from(split_mix(&mut self.state) % bound as u64).unwrap_or(0),
        }
    }

    /// What happens once in so many times.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of several, of which there is at least one.
    pub fn of<'a, T>(&mut self, several: &'a [T]) -> &'a T {
        &several[self.below(several.len())]
    }
}
