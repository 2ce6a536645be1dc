//! [`Mark`]: where history begins, and what must be there all the same.
//!
//! ```text
//! magic and format  4  "RVM2"
//! revision          8  where history begins; zero if with the first write
//! base             16  number and fingerprint of the objects with which it begins
//! gone             16  number and fingerprint of the later revisions that have no record
//! floors            …  for each share whose history begins later: the revision (8), the length of its name (2), the name
//! checksum          4  CRC-32 of everything above
//! ```
//!
//! Numbers are little-endian. The first format ends after the base: no share was shorter than the others.

use std::sync::Arc;

use revisor_version::Revision;

use super::versions::Passed;

const MAGIC: [u8; 4] = *b"RVM2";
const FIRST_MAGIC: [u8; 4] = *b"RVM1";

/// The beginning of history, and a summary of the state at that point.
///
/// After the mark every revision has a record, or is one of those that are gone; so a missing one shows. Of what is
/// older than history only the records of objects remain that it begins with; their number and fingerprint tell
/// whether all are there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Mark {
    /// The oldest revision that can be read anywhere; `None` while all of history is there.
    pub(super) revision: Option<Revision>,
    /// What the objects add up to with which the history of each share begins.
    pub(super) base: RevisionSum,
    /// What the revisions after the mark add up to whose records were removed.
    pub(super) gone: RevisionSum,
    /// The shares whose history begins later than the mark, and where.
    pub(super) floors: Vec<(Arc<str>, Revision)>,
}

/// The number of members of a set of revisions and a fingerprint of them, kept up to date member by member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct RevisionSum {
    count: u64,
    fingerprint: u64,
}

impl Mark {
    /// Accounts for a write that leaves history: what it replaced is no longer among the objects with which history
    /// begins, and what it put there is.
    pub(super) fn pass(&mut self, write: Passed) {
        write.old.into_iter().for_each(|old| self.base.remove(old));
        write.version.object().into_iter().for_each(|new| self.base.add(new));
    }

    /// The newest revision that the mark knows of.
    pub(super) fn newest(&self) -> Option<Revision> {
        self.floors.iter().map(|(_, floor)| *floor).max().max(self.revision)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let sums = [self.base, self.gone].map(|sum| [sum.count, sum.fingerprint]);
        for number in [self.revision.map_or(0, Revision::get)].iter().chain(sums.as_flattened()) {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for (name, floor) in &self.floors {
            bytes.extend_from_slice(&floor.get().to_le_bytes());
            let length = u16::try_from(name.len()).expect("a share is named by a part of a key");
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(name.as_bytes());
        }
        let sum = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Mark, &'static str> {
        let (mut rest, sum) = bytes.split_last_chunk::<4>().ok_or("the mark of its history is too short")?;
        if crc32fast::hash(rest) != u32::from_le_bytes(*sum) {
            return Err("the checksum of the mark of its history does not fit");
        }
        Mark::read(&mut rest).filter(|_| rest.is_empty()).ok_or("the mark of its history is of no known format")
    }

    fn read(rest: &mut &[u8]) -> Option<Mark> {
        let is_first = match take(rest)? {
            MAGIC => false,
            FIRST_MAGIC => true,
            _ => return None,
        };
        let mut mark =
            Mark { revision: Revision::new(number(rest)?), base: RevisionSum::read(rest)?, ..Mark::default() };
        if !is_first {
            mark.gone = RevisionSum::read(rest)?;
            while !rest.is_empty() {
                let floor = Revision::new(number(rest)?)?;
                let length = usize::from(u16::from_le_bytes(take(rest)?));
                let (name, after) = rest.split_at_checked(length)?;
                *rest = after;
                mark.floors.push((std::str::from_utf8(name).ok()?.into(), floor));
            }
        }
        Some(mark)
    }
}

impl RevisionSum {
    /// How many revisions there are.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn add(&mut self, revision: Revision) {
        self.count = self.count.wrapping_add(1);
        self.fingerprint = self.fingerprint.wrapping_add(mix(revision));
    }

    pub(super) fn remove(&mut self, revision: Revision) {
        self.count = self.count.wrapping_sub(1);
        self.fingerprint = self.fingerprint.wrapping_sub(mix(revision));
    }

    fn read(rest: &mut &[u8]) -> Option<RevisionSum> {
        Some(RevisionSum { count: number(rest)?, fingerprint: number(rest)? })
    }
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    take(rest).map(u64::from_le_bytes)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*taken)
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

    fn at(number: u64) -> Revision {
        Revision::new(number).expect("not zero")
    }

    #[test]
    fn a_mark_is_read_as_it_was_written_and_changes_are_noticed() {
        let mut mark = Mark { revision: Some(at(9)), ..Mark::default() };
        mark.base.add(Revision::FIRST);
        mark.gone.add(at(11));
        for floors in [vec![], vec![("/a/".into(), at(12)), ("".into(), at(14)), ("/ä/".into(), at(13))]] {
            mark.floors = floors;
            let bytes = mark.encode();
            assert_eq!(Mark::decode(&bytes), Ok(mark.clone()));
            for at in 0..bytes.len() {
                let mut changed = bytes.clone();
                changed[at] ^= 1;
                assert!(Mark::decode(&changed).is_err(), "changed at {at}");
                assert!(Mark::decode(&bytes[..at]).is_err(), "cut at {at}");
            }
        }
        assert_eq!(mark.newest(), Some(at(14)));
    }

    #[test]
    fn a_mark_of_the_first_format_is_read() {
        let mut mark = Mark { revision: Some(at(9)), ..Mark::default() };
        mark.base.add(Revision::FIRST);
        let mut bytes = FIRST_MAGIC.to_vec();
        for number in [9, 1, mix(Revision::FIRST)] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        let sum = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        assert_eq!(bytes.len(), 32);
        assert_eq!(Mark::decode(&bytes), Ok(mark));
    }

    #[test]
    fn a_sum_depends_on_its_members_and_not_on_their_order() {
        let of = |numbers: &[u64]| {
            let mut sum = RevisionSum::default();
            numbers.iter().for_each(|number| sum.add(at(*number)));
            sum
        };
        assert_eq!(of(&[1, 5, 3]), of(&[3, 1, 5]));
        assert_ne!(of(&[1, 5]), of(&[2, 4]));
        let mut sum = of(&[1, 5, 3]);
        sum.remove(at(5));
        assert_eq!(sum, of(&[1, 3]));
    }
}
