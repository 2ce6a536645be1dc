//! [`Fingerprinter`]: tells pieces of answers apart without keeping them.
//!
//! Pieces are polynomials whose coefficients are their bytes, taken at two secret points of a field of 2^61 - 1 elements.
//! Two pieces of 64 KiB have one fingerprint for fewer than one in 2^95 pairs of points, whoever made them up, because
//! nobody outside knows the points. That is a bound that general hash functions of this speed do not give, and those that
//! do give it take a good part of the time that compressing would.

use uuid::Uuid;

/// 2^61 - 1, a prime.
const FIELD: u64 = (1 << 61) - 1;

/// How many bytes a coefficient has: as many as are sure to be less than the prime.
const BYTES: usize = 7;

/// How many sums are worked on at once: a multiplication takes long to end, but the next may begin at once.
const LANES: usize = 4;

/// What stands for a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Fingerprint {
    length: usize,
    values: [u64; 2],
}

/// Makes fingerprints.
#[derive(Debug)]
pub(super) struct Fingerprinter {
    points: [u64; 2],
}

impl Fingerprinter {
    /// With points that nobody knows.
    pub(super) fn new() -> Fingerprinter {
        let point = || (Uuid::new_v4().as_u64_pair().0 ^ Uuid::new_v4().as_u64_pair().1) % FIELD;
        Fingerprinter { points: [point(), point()] }
    }

    pub(super) fn of(&self, piece: &[u8]) -> Fingerprint {
        Fingerprint { length: piece.len(), values: self.points.map(|point| value_at(point, piece)) }
    }
}

/// The value of the polynomial at a point. Each lane is a polynomial of every fourth coefficient at the fourth power of
/// the point.
fn value_at(point: u64, piece: &[u8]) -> u64 {
    let square = times(point, point);
    let fourth = times(square, square);
    let mut lanes = [0; LANES];
    let mut steps = piece.chunks_exact(LANES * BYTES);
    for step in steps.by_ref() {
        for (lane, coefficient) in lanes.iter_mut().zip(step.chunks_exact(BYTES)) {
            *lane = plus(times(*lane, fourth), read(coefficient));
        }
    }
    let whole = lanes.iter().fold(0, |sum, lane| plus(times(sum, point), *lane));
    steps.remainder().chunks(BYTES).fold(whole, |sum, rest| plus(times(sum, point), read(rest)))
}

fn read(bytes: &[u8]) -> u64 {
    let mut number = [0; 8];
    number[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(number)
}

fn plus(one: u64, other: u64) -> u64 {
    let sum = one + other;
    if sum >= FIELD { sum - FIELD } else { sum }
}

fn times(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    plus((product as u64) & FIELD, (product >> 61) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_that_differ_anywhere_are_told_apart() {
        let fingerprints = Fingerprinter::new();
        let piece: Vec<u8> = (0..1000u32).map(|at| (at * 7 % 251) as u8).collect();
        assert_eq!(fingerprints.of(&piece), fingerprints.of(&piece.clone()));
        for at in 0..piece.len() {
            let mut other = piece.clone();
            other[at] ^= 1;
            assert_ne!(fingerprints.of(&other), fingerprints.of(&piece), "{at}");
        }
        for length in 0..100 {
            assert_ne!(fingerprints.of(&vec![0; length]), fingerprints.of(&vec![0; length + 1]), "{length} zeros");
        }
    }

    #[test]
    fn lanes_make_one_polynomial() {
        let point = 123_456_789_012_345;
        for length in [0, 1, 6, 7, 8, 27, 28, 29, 56, 100] {
            let piece: Vec<u8> = (0..length as u8).collect();
            let plain = piece.chunks(BYTES).fold(0, |sum, rest| plus(times(sum, point), read(rest)));
            assert_eq!(value_at(point, &piece), plain, "{length}");
        }
    }
}
