//! [`Chunks`]: bytes as they came in, one piece behind the other. What is read of them is a part of a piece wherever it does
//! not go beyond one, so that a page of megabytes is neither copied together nor copied out.

use std::collections::VecDeque;

use bytes::{Buf, Bytes, BytesMut};

/// Pieces of a stream of bytes, in order.
#[derive(Default)]
pub(crate) struct Chunks {
    /// None of them is empty.
    pieces: VecDeque<Bytes>,
    length: usize,
}

impl Chunks {
    /// Adds what came in next.
    pub(crate) fn push(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.length += piece.len();
            self.pieces.push_back(piece);
        }
    }

    /// The first bytes, if there are so many. They stay where they are.
    pub(crate) fn peek<const N: usize>(&self) -> Option<[u8; N]> {
        let mut first = [0; N];
        let mut bytes = self.pieces.iter().flatten();
        first.iter_mut().try_for_each(|byte| bytes.next().map(|next| *byte = *next))?;
        Some(first)
    }
}

impl Buf for Chunks {
    fn remaining(&self) -> usize {
        self.length
    }

    fn chunk(&self) -> &[u8] {
        self.pieces.front().map_or(&[], |piece| piece)
    }

    fn advance(&mut self, mut count: usize) {
        assert!(count <= self.length, "{count} of {} bytes are passed", self.length);
        self.length -= count;
        while let Some(first) = self.pieces.front_mut() {
            if count < first.len() {
                first.advance(count);
                return;
            }
            count -= first.len();
            self.pieces.pop_front();
        }
    }

    fn copy_to_bytes(&mut self, count: usize) -> Bytes {
        match self.pieces.front_mut() {
            Some(first) if count < first.len() => {
                self.length -= count;
                first.split_to(count)
            }
            Some(first) if count == first.len() => {
                self.length -= count;
                self.pieces.pop_front().unwrap_or_default()
            }
            _ => {
                assert!(count <= self.length, "{count} of {} bytes are wanted", self.length);
                let mut copied = BytesMut::with_capacity(count);
                bytes::BufMut::put(&mut copied, self.take(count));
                copied.freeze()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks(pieces: &[&'static str]) -> Chunks {
        let mut chunks = Chunks::default();
        pieces.iter().for_each(|piece| chunks.push(Bytes::from_static(piece.as_bytes())));
        chunks
    }

    #[test]
    fn what_is_read_does_not_depend_on_where_pieces_end() {
        for pieces in [&["abcdefgh"][..], &["a", "", "bcd", "efgh"], &["abc", "defgh"], &["abcd", "efg", "h"]] {
            let mut read = chunks(pieces);
            assert_eq!((read.peek(), read.peek()), (Some(*b"abc"), None::<[u8; 9]>), "{pieces:?}");
            assert_eq!(read.copy_to_bytes(2), "ab", "{pieces:?}");
            read.advance(2);
            assert_eq!((read.copy_to_bytes(0), read.copy_to_bytes(3)), ("".into(), "efg".into()), "{pieces:?}");
            assert_eq!((read.remaining(), read.copy_to_bytes(1), read.remaining()), (1, "h".into(), 0), "{pieces:?}");
            assert!(read.pieces.is_empty(), "{pieces:?}");
        }
    }

    #[test]
    fn what_is_within_a_piece_is_not_copied() {
        let piece = Bytes::from("within".to_owned());
        let mut read = Chunks::default();
        read.push(piece.clone());
        assert_eq!(read.copy_to_bytes(4).as_ptr(), piece.as_ptr());
        assert_eq!(read.copy_to_bytes(2).as_ptr(), piece[4..].as_ptr());
    }
}
