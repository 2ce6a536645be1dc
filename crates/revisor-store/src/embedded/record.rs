//! [`Record`]: one write as it is kept on disk.
//!
//! ```text
//! magic and format  4  "RVR1"
//! kind              1  0 deletion, 1 put, 2 put of bytes that show their revision
//! place in batch    2  how many writes stand before this one in its batch
//! time              8  milliseconds since 1970
//! splice offset     4  zero unless kind is 2
//! key length        4
//! key               …
//! object            …  without its revision, and encrypted if that was asked for; the offset is that in the plain one
//! checksum          4  CRC-32 of the revision and of everything above
//! ```
//!
//! Numbers are little-endian. The revision is the record's key in the engine, eight bytes big-endian so that records
//! are in order, and it is part of the checksum so that a record cannot turn up in another one's place.

use std::time::{Duration, SystemTime};

use revisor_version::Revision;

use crate::{Draft, Key};

/// What every record begins with; the digit is its format.
pub(super) const MAGIC: [u8; 4] = *b"RVR1";
const HEADER: usize = 23;
const CHECKSUM: usize = 4;

const DELETION: u8 = 0;
const PUT: u8 = 1;
const PUT_SHOWING_REVISION: u8 = 2;

/// One write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    /// How many writes stand before this one in the batch that it was committed with. All writes before the batch
    /// were durable when this record was made, which is how a lost one can be noticed.
    pub(super) place: u16,
    /// When the batch was committed; whole milliseconds.
    pub(super) time: SystemTime,
    /// The key that was written.
    pub(super) key: Key,
    /// What was put there, as its transformer made it; nothing for a deletion.
    pub(super) draft: Option<Draft>,
}

impl Record {
    /// The bytes of this record at `revision`.
    pub(super) fn encode(&self, revision: Revision) -> Vec<u8> {
        let (kind, splice_at, object) = match &self.draft {
            None => (DELETION, 0, &[][..]),
            Some(draft) => match draft.splice_at() {
                None => (PUT, 0, &draft.bytes()[..]),
                Some(at) => (PUT_SHOWING_REVISION, at, &draft.bytes()[..]),
            },
        };
        let key = self.key.as_str().as_bytes();
        let key_length = u32::try_from(key.len()).expect("the length of keys is bounded");
        let mut bytes = Vec::with_capacity(HEADER + key.len() + object.len() + CHECKSUM);
        bytes.extend_from_slice(&MAGIC);
        bytes.push(kind);
        bytes.extend_from_slice(&self.place.to_le_bytes());
        bytes.extend_from_slice(&milliseconds(self.time).to_le_bytes());
        bytes.extend_from_slice(&splice_at.to_le_bytes());
        bytes.extend_from_slice(&key_length.to_le_bytes());
        bytes.extend_from_slice(key);
        bytes.extend_from_slice(object);
        let sum = checksum(revision.get(), &bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// The record of `revision` that `bytes` hold, or how they are wrong.
    pub(super) fn decode(revision: Revision, bytes: &[u8]) -> Result<Record, &'static str> {
        let (body, sum) = bytes.split_last_chunk::<CHECKSUM>().ok_or("it is too short")?;
        if checksum(revision.get(), body) != u32::from_le_bytes(*sum) {
            return Err("its checksum does not fit");
        }
        Record::read(body)
    }

    /// What the bytes before the checksum say.
    fn read(body: &[u8]) -> Result<Record, &'static str> {
        let mut rest = body;
        if take(&mut rest)? != MAGIC {
            return Err("its format is unknown");
        }
        let [kind] = take(&mut rest)?;
        let place = u16::from_le_bytes(take(&mut rest)?);
        let time = u64::from_le_bytes(take(&mut rest)?);
        let splice_at = u32::from_le_bytes(take(&mut rest)?);
        let key_length = u32::from_le_bytes(take(&mut rest)?) as usize;
        let (key, object) = rest.split_at_checked(key_length).ok_or("its key is longer than it is")?;
        let key = Key::new(std::str::from_utf8(key).map_err(|_| "its key is not text")?);
        let draft = match kind {
            DELETION => None,
            PUT => Some(Draft::opaque(object.to_vec())),
            PUT_SHOWING_REVISION if splice_at as usize <= object.len() => {
                Some(Draft::showing_revision_at(object.to_vec(), splice_at))
            }
            _ => return Err("its kind is unknown"),
        };
        let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(time)).ok_or("its time is out of range")?;
        Ok(Record { place, time, key, draft })
    }
}

/// Reads what `body` says, as if its checksum were good, and writes that again with one. For the fuzz target, which would
/// never get past the checksum by chance.
pub(super) fn reread(revision: Revision, body: &[u8]) -> Option<Vec<u8>> {
    Record::read(body).ok().map(|record| record.encode(revision))
}

/// `time` as a record keeps it, so that an event reads the same before and after the store was opened again.
pub(super) fn whole_milliseconds(time: SystemTime) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(milliseconds(time))
}

fn milliseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // The bound keeps the sum with the epoch representable; it is some 140 million years away.
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX).min(1 << 62)
}

/// How many writes stand before a record in its batch, if these are the whole bytes of the record of `revision`.
pub(super) fn place(revision: u64, bytes: &[u8]) -> Option<u16> {
    Record::decode(Revision::new(revision)?, bytes).ok().map(|record| record.place)
}

/// The place that the bytes of a record say that it has.
pub(super) fn told_place(bytes: &[u8]) -> u16 {
    let told = bytes.get(MAGIC.len() + 1..).and_then(|rest| rest.first_chunk());
    told.map_or(0, |place| u16::from_le_bytes(*place))
}

/// What stands at the end of a record of `revision`, and of what is no record at zero.
pub(super) fn checksum(revision: u64, body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&revision.to_be_bytes());
    hasher.update(body);
    hasher.finalize()
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], &'static str> {
    let (taken, after) = rest.split_first_chunk::<N>().ok_or("it is too short")?;
    *rest = after;
    Ok(*taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records() -> [(&'static str, Record); 3] {
        let time = SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_123);
        let record = |place, draft| Record { place, time, key: Key::new("/registry/pods/a/b"), draft };
        [
            ("deletion", record(0, None)),
            ("opaque", record(7, Some(Draft::opaque(&b"bytes"[..])))),
            ("showing", record(1023, Some(Draft::showing_revision_at(&b"{\"a\":1}"[..], 1)))),
        ]
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        for (name, record) in records() {
            let revision = Revision::new(77).expect("not zero");
            assert_eq!(Record::decode(revision, &record.encode(revision)).as_ref(), Ok(&record), "{name}");
        }
    }

    #[test]
    fn no_changed_byte_and_no_other_length_goes_unnoticed() {
        for (name, record) in records() {
            let revision = Revision::new(77).expect("not zero");
            let bytes = record.encode(revision);
            assert!(Record::decode(revision.next(), &bytes).is_err(), "{name} in another place");
            for at in 0..bytes.len() {
                let mut changed = bytes.clone();
                changed[at] ^= 0x10;
                assert!(Record::decode(revision, &changed).is_err(), "{name} changed at {at}");
                assert!(Record::decode(revision, &bytes[..at]).is_err(), "{name} cut at {at}");
            }
        }
    }
}
