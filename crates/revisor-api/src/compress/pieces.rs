//! [`CompressedPieces`]: parts of answers that were compressed, for the next who is to get the same bytes.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

use super::fingerprint::{Fingerprint, Fingerprinter};

/// How many compressed bytes are kept at most. JSON of objects shrinks to a tenth, so these stand for some hundred
/// mebibytes of lists.
const ROOM: usize = 32 << 20;

/// A part of an answer, compressed so that it can stand before and behind any other.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    /// Blocks of deflate that end at a byte and refer to nothing before them.
    pub(super) blocks: Bytes,
    /// The checksum of what is in them.
    pub(super) crc: u32,
}

/// Pieces that were compressed lately, found by what is in them.
#[derive(Debug)]
pub struct CompressedPieces {
    fingerprints: Fingerprinter,
    generations: Mutex<Generations>,
}

/// When the young ones take half of the room, they become the old ones, and what was old and not asked for since is
/// gone. That keeps what is in use as well as an order of uses would, and needs none.
#[derive(Debug)]
struct Generations {
    young: HashMap<Fingerprint, Piece>,
    young_bytes: usize,
    old: HashMap<Fingerprint, Piece>,
    room: usize,
}

impl Default for CompressedPieces {
    fn default() -> CompressedPieces {
        CompressedPieces::with_room(ROOM)
    }
}

impl CompressedPieces {
    fn with_room(room: usize) -> CompressedPieces {
        let generations = Generations { young: HashMap::new(), young_bytes: 0, old: HashMap::new(), room };
        CompressedPieces { fingerprints: Fingerprinter::new(), generations: Mutex::new(generations) }
    }

    /// A piece that holds these bytes; `compress` makes it if there is none.
    pub(super) fn of(&self, bytes: &[u8], compress: impl FnOnce() -> Piece) -> Piece {
        let fingerprint = self.fingerprints.of(bytes);
        let generations = || self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = generations().find(fingerprint) {
            return known;
        }
        // Made without the lock: to make it twice is no harm.
        let piece = compress();
        generations().keep(fingerprint, piece.clone());
        piece
    }
}

impl Generations {
    fn find(&mut self, fingerprint: Fingerprint) -> Option<Piece> {
        if let Some(known) = self.young.get(&fingerprint) {
            return Some(known.clone());
        }
        let known = self.old.remove(&fingerprint)?;
        self.keep(fingerprint, known.clone());
        Some(known)
    }

    fn keep(&mut self, fingerprint: Fingerprint, piece: Piece) {
        if self.young_bytes + piece.blocks.len() > self.room / 2 {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        self.young_bytes += piece.blocks.len();
        if let Some(before) = self.young.insert(fingerprint, piece) {
            self.young_bytes -= before.blocks.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn what_is_asked_for_again_is_compressed_once_and_stays() {
        let pieces = CompressedPieces::with_room(100);
        let made = Cell::new(0);
        let of = |text: &'static str| {
            pieces.of(text.as_bytes(), || {
                made.set(made.get() + 1);
                Piece { blocks: Bytes::from_static(&[0; 20]), crc: 0 }
            });
        };
        for text in ["a", "b", "a", "b"] {
            of(text);
        }
        assert_eq!(made.get(), 2);
        for text in ["c", "a", "d", "a", "e", "a", "f", "a"] {
            of(text);
        }
        assert_eq!(made.get(), 6, "what is in use stays");
        of("b");
        assert_eq!(made.get(), 7, "what is not, goes");
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_for() {
        let pieces = CompressedPieces::with_room(100);
        for at in 0..1000u32 {
            pieces.of(&at.to_le_bytes(), || Piece { blocks: Bytes::from_static(&[0; 9]), crc: 0 });
            let generations = pieces.generations.lock().expect("no panic");
            let bytes = |of: &HashMap<Fingerprint, Piece>| of.values().map(|piece| piece.blocks.len()).sum::<usize>();
            assert_eq!(bytes(&generations.young), generations.young_bytes);
            assert!(bytes(&generations.young) + bytes(&generations.old) <= 100);
        }
    }
}
