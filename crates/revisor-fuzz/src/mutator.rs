//! Inputs made from seeds: the engine of the bounded run in `cargo test`.
//!
//! It knows nothing of coverage. It exists so that every test run tries some thousands of damaged inputs, the same ones
//! each time, without a second toolchain.

/// The longest input that is made.
const MAX_INPUT: usize = 4096;

/// Bytes that steer parsers of text: separators, quotes, escapes, signs, bytes that are not UTF-8.
const TELLING: &[u8] = b"\0\t\n\r \"'#%&()*+,-./0189:;<=>?[\\]^_`aezAEZ{|}~\x7f\x80\xc3\xef\xff";

/// An endless, repeatable source of inputs.
#[derive(Debug)]
pub struct Mutator<'a> {
    seeds: &'a [Vec<u8>],
    state: u64,
}

impl<'a> Mutator<'a> {
    /// A source that starts from these seeds. Equal seeds and numbers give equal inputs.
    pub fn new(seeds: &'a [Vec<u8>], number: u64) -> Self {
        Self { seeds, state: number }
    }

    /// The next input: a seed, damaged one to eight times.
    pub fn next_input(&mut self) -> Vec<u8> {
        let mut input = self.seed().to_vec();
        for _ in 0..=self.below(8) {
            self.damage(&mut input);
            input.truncate(MAX_INPUT);
        }
        input
    }

    fn seed(&mut self) -> &'a [u8] {
        match self.seeds.len() {
            0 => &[],
            count => {
                let index = self.below(count);
                &self.seeds[index]
            }
        }
    }

    fn damage(&mut self, input: &mut Vec<u8>) {
        let start = self.below(input.len() + 1);
        let end = start + self.below((input.len() - start).min(32) + 1);
        match self.below(7) {
            0 => drop(input.drain(start..end)),
            1 => input.truncate(start),
            2 => {
                let copy = input[start..end].to_vec();
                let at = self.below(input.len() + 1);
                input.splice(at..at, copy);
            }
            3 => {
                let other = self.seed();
                let cut = self.below(other.len() + 1);
                input.splice(start.., other[cut..].iter().copied());
            }
            4 => {
                // Repetition is what finds recursion and quadratic loops.
                let piece = input[start..end].to_vec();
                let times = self.below(64);
                input.splice(start..start, piece.repeat(times));
            }
            5 => {
                let byte = TELLING[self.below(TELLING.len())];
                input.insert(start, byte);
            }
            _ => {
                let bit = 1 << self.below(8);
                if let Some(byte) = input.get_mut(start) {
                    *byte ^= bit;
                }
            }
        }
    }

    /// A number below the bound, which is not zero.
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(split_mix(&mut self.state) % bound as u64).unwrap_or(0)
    }
}

/// The next number of SplitMix64: short, and good enough to choose bytes with.
pub(crate) fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn inputs_repeat_and_differ_and_are_bounded() {
        let seeds = [b"a=b,c in (d)".to_vec(), b"x".repeat(MAX_INPUT)];
        let inputs = |number| {
            let mut mutator = Mutator::new(&seeds, number);
            (0..500).map(|_| mutator.next_input()).collect::<Vec<_>>()
        };
        let first = inputs(1);
        assert_eq!(first, inputs(1), "the same number gives the same inputs");
        assert_ne!(first, inputs(2), "another number gives others");
        assert!(first.iter().all(|input| input.len() <= MAX_INPUT));
        assert!(first.iter().collect::<HashSet<_>>().len() > 400, "hardly any input comes twice");
    }

    #[test]
    fn no_seeds_still_give_inputs() {
        let mut mutator = Mutator::new(&[], 1);
        assert!((0..100).any(|_| !mutator.next_input().is_empty()));
    }
}
