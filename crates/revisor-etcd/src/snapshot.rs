//! [`Snapshot`]: what a file holds that `etcdctl snapshot save` made.
//!
//! Such a file is etcd's database, a bbolt file (`bolt`), with the SHA-256 of it at its end. The bucket `key` has a value
//! for every revision that is not compacted, oldest first; the state is what the last of them say (`state`). Nothing is
//! written, nothing is mapped into memory, and whatever does not fit is an error that says where.

mod bolt;
mod bytes_at;
mod state;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use revisor_version::Revision;
use sha2::{Digest, Sha256};

use crate::keyspace::revision_of;
use crate::messages::KeyValue;
use bolt::Bolt;
use bytes_at::BytesAt;
use state::State;

/// How long the hash at the end is.
const HASH: u64 = 32;

/// A database has whole pages, whose size is a multiple of this; so its length tells whether a hash follows (upstream:
/// `hasChecksum`).
const SECTOR: u64 = 512;

/// How much is hashed at once.
const CHUNK: u64 = 1 << 20;

/// Why a snapshot cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// The operating system refused.
    #[error("cannot read it: {0}")]
    Io(Arc<str>),
    /// There is no hash at its end.
    #[error("it has no hash at its end: it was not made by `etcdctl snapshot save`, or is cut short")]
    NoHash,
    /// The hash is that of something else.
    #[error("its hash does not fit: it is not what was saved")]
    WrongHash,
    /// It is no database of etcd.
    #[error("it is no database of etcd: {0}")]
    Foreign(String),
    /// It is one, and something in it is not as it was written.
    #[error("it is damaged: {0}")]
    Damaged(String),
}

impl SnapshotError {
    fn damaged(what: impl Into<String>) -> SnapshotError {
        SnapshotError::Damaged(what.into())
    }
}

/// Whether the hash at the end of a snapshot has to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HashCheck {
    /// It must be there and fit.
    Demanded,
    /// It is not looked at: for the file of a member, which has none.
    Skipped,
}

/// The newest state that a snapshot holds.
#[derive(Debug)]
pub struct Snapshot {
    bytes: BytesAt,
    state: State,
}

impl Snapshot {
    /// Reads the file at `path`. Blocks.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn open(path: &Path, check: HashCheck) -> Result<Snapshot, SnapshotError> {
        let failed = |error: std::io::Error| SnapshotError::Io(error.to_string().into());
        let file = File::open(path).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(SnapshotError::Io("it is no file".into()));
        }
        Snapshot::read(BytesAt::file(file).map_err(failed)?, check)
    }

    /// Reads a file that is in memory.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn of_bytes(bytes: Bytes, check: HashCheck) -> Result<Snapshot, SnapshotError> {
        Snapshot::read(BytesAt::memory(bytes), check)
    }

    fn read(mut bytes: BytesAt, check: HashCheck) -> Result<Snapshot, SnapshotError> {
        let has_hash = bytes.len() % SECTOR == HASH;
        match check {
            HashCheck::Demanded if !has_hash => return Err(SnapshotError::NoHash),
            HashCheck::Demanded => check_hash(&bytes)?,
            HashCheck::Skipped => {}
        }
        if has_hash {
            bytes.cut(bytes.len() - HASH);
        }
        let bolt = Bolt::open(&bytes)?;
        let state = State::read(&bolt)?;
        Ok(Snapshot { bytes, state })
    }

    /// The revision of the state; `None` if nothing was ever written.
    pub fn revision(&self) -> Option<Revision> {
        revision_of(self.state.revision)
    }

    /// Up to `limit` keys from `from` to before `end`, in order.
    ///
    /// # Errors
    /// If the file is not what it was when it was opened.
    pub(crate) fn range(&self, from: &[u8], end: &[u8], limit: usize) -> Result<Vec<KeyValue>, SnapshotError> {
        self.state.range(&self.bytes, from, end, limit)
    }

    /// How many keys there are from `from` to before `end`.
    pub(crate) fn count(&self, from: &[u8], end: &[u8]) -> usize {
        self.state.count(from, end)
    }
}

/// Reads a snapshot whatever its hash says, and all of its values; answers how many there are. For tests of the format
/// only.
#[doc(hidden)]
pub fn read_whole(bytes: &[u8]) -> Result<usize, SnapshotError> {
    let snapshot = Snapshot::of_bytes(Bytes::copy_from_slice(bytes), HashCheck::Skipped)?;
    Ok(snapshot.range(b"", b"", usize::MAX)?.len())
}

fn check_hash(bytes: &BytesAt) -> Result<(), SnapshotError> {
    let end = bytes.len() - HASH;
    let mut hasher = Sha256::new();
    let mut at = 0;
    while at < end {
        let length = CHUNK.min(end - at);
        hasher.update(bytes.get(at, length)?);
        at += length;
    }
    if hasher.finalize()[..] == bytes.get(end, HASH)?[..] { Ok(()) } else { Err(SnapshotError::WrongHash) }
}

#[cfg(test)]
mod tests;
