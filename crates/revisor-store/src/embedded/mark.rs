//! [`Mark`]: where history begins, and what the state there must add up to.

use revisor_version::Revision;

use crate::Event;

const MAGIC: [u8; 4] = *b"RVM1";
const LENGTH: usize = 32;

/// The beginning of history, and a summary of the state at that point.
///
/// After the mark every revision has a record, so a missing one shows. At and before it only the records of live
/// objects remain; their number and fingerprint tell whether all are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Mark {
    /// The oldest revision that can be read; `None` while all of history is there.
    pub(super) revision: Option<Revision>,
    /// What the state at the mark adds up to.
    pub(super) sum: StateSum,
}

/// The number of entries of a state and a fingerprint of their revisions, kept up to date event by event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct StateSum {
    entries: u64,
    fingerprint: u64,
}

impl Mark {
    /// Moves the mark over `event`, the next one in order.
    pub(super) fn pass(&mut self, event: &Event) {
        if let Some(old) = &event.old {
            self.sum.remove(old.revision());
        }
        if let Some(new) = &event.new {
            self.sum.add(new.revision());
        }
        self.revision = Some(event.revision);
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(LENGTH);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&self.revision.map_or(0, Revision::get).to_le_bytes());
        bytes.extend_from_slice(&self.sum.entries.to_le_bytes());
        bytes.extend_from_slice(&self.sum.fingerprint.to_le_bytes());
        let sum = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Mark, &'static str> {
        let bytes: &[u8; LENGTH] = bytes.try_into().map_err(|_| "the mark of its history has the wrong length")?;
        let (body, sum) = bytes.split_last_chunk::<4>().expect("the length was checked");
        if crc32fast::hash(body) != u32::from_le_bytes(*sum) || body[..4] != MAGIC {
            return Err("the checksum of the mark of its history does not fit");
        }
        let number = |at: usize| u64::from_le_bytes(*body[at..].first_chunk().expect("three numbers follow the magic"));
        let sum = StateSum { entries: number(12), fingerprint: number(20) };
        Ok(Mark { revision: Revision::new(number(4)), sum })
    }
}

impl StateSum {
    /// Counts the entry that was written at `revision`.
    pub(super) fn add(&mut self, revision: Revision) {
        self.entries = self.entries.wrapping_add(1);
        self.fingerprint = self.fingerprint.wrapping_add(mix(revision));
    }

    fn remove(&mut self, revision: Revision) {
        self.entries = self.entries.wrapping_sub(1);
        self.fingerprint = self.fingerprint.wrapping_sub(mix(revision));
    }
}

/// Spreads a number over all bits (the finaliser of SplitMix64), so that sums of different sets differ.
fn mix(revision: Revision) -> u64 {
    let mut bits = revision.get().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_was_written_and_changes_are_noticed() {
        let mut mark = Mark { revision: Revision::new(9), sum: StateSum::default() };
        mark.sum.add(Revision::FIRST);
        let bytes = mark.encode();
        assert_eq!(Mark::decode(&bytes), Ok(mark));
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(Mark::decode(&changed).is_err(), "changed at {at}");
            assert!(Mark::decode(&bytes[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn a_sum_depends_on_which_entries_there_are_and_not_on_their_order() {
        let of = |numbers: &[u64]| {
            let mut sum = StateSum::default();
            numbers.iter().for_each(|number| sum.add(Revision::new(*number).expect("not zero")));
            sum
        };
        assert_eq!(of(&[1, 5, 3]), of(&[3, 1, 5]));
        assert_ne!(of(&[1, 5]), of(&[2, 4]));
        let mut sum = of(&[1, 5, 3]);
        sum.remove(Revision::new(5).expect("not zero"));
        assert_eq!(sum, of(&[1, 3]));
    }
}
