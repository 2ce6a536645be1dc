//! [`Keystream`]: the keystream of XSalsa20, four blocks at a time.
//!
//! Blocks do not depend on each other, so each step is done for four of them at once in the registers that every
//! processor has for that. Published crates compute one block after the other, which takes more than twice as long and
//! was most of what a secret box cost.

use wide::u32x4;

const KEY: usize = 32;
const NONCE: usize = 24;
/// How many words a block has, and how many blocks are computed at a time.
const WORDS: usize = 16;
const LANES: usize = 4;
/// How many bytes are made at a time.
pub(crate) const CHUNK: usize = LANES * WORDS * 4;

/// "expand 32-byte k".
const CONSTANTS: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

/// Makes the bytes that a message is combined with.
pub(crate) struct Keystream {
    /// The block before the rounds; the number in it is that of the next one.
    start: [u32; WORDS],
    next: u64,
}

impl Keystream {
    /// The stream of a key and a nonce: Salsa20 by a key that both make (HSalsa20), with the end of the nonce.
    pub(crate) fn new(key: &[u8; KEY], nonce: &[u8; NONCE]) -> Keystream {
        let [a, b, c, d, e, f] = words(nonce);
        let mixed = rounds(block(&words(key), [a, b, c, d]).map(u32x4::splat));
        // What everybody knows is left out, or the key could be told from the rest.
        let subkey = [0, 5, 10, 15, 6, 7, 8, 9].map(|word: usize| mixed[word].to_array()[0]);
        Keystream { start: block(&subkey, [e, f, 0, 0]), next: 0 }
    }

    /// The next bytes.
    pub(crate) fn next(&mut self) -> [u8; CHUNK] {
        let mut start = self.start.map(u32x4::splat);
        let numbers: [u64; LANES] = std::array::from_fn(|lane| self.next.wrapping_add(lane as u64));
        start[8] = numbers.map(|number| number as u32).into();
        start[9] = numbers.map(|number| (number >> 32) as u32).into();
        self.next = self.next.wrapping_add(LANES as u64);
        let end = rounds(start);
        let mut bytes = [0; CHUNK];
        let (blocks, _) = bytes.as_chunks_mut::<{ WORDS * 4 }>();
        for (at, (end, start)) in end.into_iter().zip(start).enumerate() {
            for (block, word) in blocks.iter_mut().zip((end + start).to_array()) {
                block[4 * at..][..4].copy_from_slice(&word.to_le_bytes());
            }
        }
        bytes
    }
}

/// The block of a key and what is known to everybody.
fn block(key: &[u32; KEY / 4], known: [u32; 4]) -> [u32; WORDS] {
    let ([c0, c1, c2, c3], [k0, k1, k2, k3, k4, k5, k6, k7], [i0, i1, i2, i3]) = (CONSTANTS, *key, known);
    [c0, k0, k1, k2, k3, c1, i0, i1, i2, i3, c2, k4, k5, k6, k7, c3]
}

/// Twenty rounds: those of the columns and those of the rows take turns.
fn rounds(mut block: [u32x4; WORDS]) -> [u32x4; WORDS] {
    for _ in 0..10 {
        quarter_round(&mut block, [0, 4, 8, 12]);
        quarter_round(&mut block, [5, 9, 13, 1]);
        quarter_round(&mut block, [10, 14, 2, 6]);
        quarter_round(&mut block, [15, 3, 7, 11]);
        quarter_round(&mut block, [0, 1, 2, 3]);
        quarter_round(&mut block, [5, 6, 7, 4]);
        quarter_round(&mut block, [10, 11, 8, 9]);
        quarter_round(&mut block, [15, 12, 13, 14]);
    }
    block
}

#[inline(always)]
fn quarter_round(block: &mut [u32x4; WORDS], [a, b, c, d]: [usize; 4]) {
    block[b] ^= rotated::<7>(block[a] + block[d]);
    block[c] ^= rotated::<9>(block[b] + block[a]);
    block[d] ^= rotated::<13>(block[c] + block[b]);
    block[a] ^= rotated::<18>(block[d] + block[c]);
}

#[inline(always)]
fn rotated<const BITS: u32>(words: u32x4) -> u32x4 {
    (words << BITS) | (words >> (u32::BITS - BITS))
}

fn words<const BYTES: usize, const WORDS: usize>(bytes: &[u8; BYTES]) -> [u32; WORDS] {
    let (words, _) = bytes.as_chunks::<4>();
    std::array::from_fn(|at| u32::from_le_bytes(words[at]))
}
