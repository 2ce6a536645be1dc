//! [`Dealer`]: which queues a flow may use. Two flows rarely share all of theirs, so one that floods its own leaves
//! others a queue.

use sha2::{Digest, Sha256};

/// The largest hand that fits into the bits of a hash.
pub(crate) const MAX_HAND: usize = 15;

/// How many bits of a hash may be used, so that the last card is dealt evenly.
const MAX_HASH_BITS: f64 = 60.0;

/// Deals hands of queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dealer {
    deck: usize,
    hand: usize,
}

impl Dealer {
    /// One for so many queues, of which a flow uses so many; `None` where that cannot be dealt.
    pub fn new(deck: usize, hand: usize) -> Option<Dealer> {
        let is_possible = (1..=deck).contains(&hand) && deck <= 1 << 26 && hand <= MAX_HAND;
        let fits = || ((deck as f64).log2() * hand as f64).ceil() <= MAX_HASH_BITS;
        (is_possible && fits()).then_some(Dealer { deck, hand })
    }

    /// The queues of the flow with this hash, and how many they are.
    pub fn deal(&self, mut hash: u64) -> ([usize; MAX_HAND], usize) {
        let mut cards = [0; MAX_HAND];
        for (at, card) in cards.iter_mut().take(self.hand).enumerate() {
            let left = (self.deck - at) as u64;
            *card = (hash % left) as usize;
            hash /= left;
        }
        let remainders = cards;
        for (at, card) in cards.iter_mut().take(self.hand).enumerate() {
            // Counted among the cards that were left when it was dealt.
            for earlier in remainders[..at].iter().rev() {
                if *card >= *earlier {
                    *card += 1;
                }
            }
        }
        (cards, self.hand)
    }
}

/// The hash of a flow: the first bytes of the SHA-256 of its schema and what tells it from others of that schema.
pub fn flow_hash(schema: &str, distinguisher: &str) -> u64 {
    let mut hash = Sha256::new();
    hash.update(schema.as_bytes());
    hash.update([0]);
    hash.update(distinguisher.as_bytes());
    let sum: [u8; 32] = hash.finalize().into();
    u64::from_le_bytes([sum[0], sum[1], sum[2], sum[3], sum[4], sum[5], sum[6], sum[7]])
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn hands_that_can_be_dealt() {
        for (deck, hand, want) in [
            (128, 6, true),
            (64, 6, true),
            (1, 1, true),
            (0, 0, false),
            (4, 5, false),
            (1 << 27, 1, false),
            (64, 11, false),
        ] {
            assert_eq!(Dealer::new(deck, hand).is_some(), want, "{hand} of {deck}");
        }
    }

    #[test]
    fn a_hand_has_distinct_cards_and_all_hands_come() {
        let dealer = Dealer::new(5, 2).expect("can be dealt");
        let mut hands = HashSet::new();
        for hash in 0..20 {
            let (cards, size) = dealer.deal(hash);
            assert_eq!(size, 2);
            assert!(cards[0] < 5 && cards[1] < 5 && cards[0] != cards[1], "{cards:?}");
            hands.insert((cards[0], cards[1]));
        }
        assert_eq!(hands.len(), 20, "each hash deals another hand");
    }

    #[test]
    fn flows_are_told_apart_by_schema_and_distinguisher() {
        assert_ne!(flow_hash("a", "bc"), flow_hash("ab", "c"));
        assert_eq!(flow_hash("a", "b"), flow_hash("a", "b"));
    }
}
