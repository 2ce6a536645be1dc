//! [`State`]: what every key holds, found in the history that a database keeps.

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;
use prost::Message;

use super::SnapshotError;
use super::bolt::{Bolt, Item};
use super::bytes_at::BytesAt;
use crate::messages::KeyValue;

/// The bucket with a value for each revision, by the revision.
const KEYS: &[u8] = b"key";

/// The bucket with what etcd notes for itself, and there up to where history was to be compacted.
const META: &[u8] = b"meta";
const SCHEDULED: &[u8] = b"scheduledCompactRev";

/// A revision in sixteen bytes: the transaction, an underscore, the place within it.
const REVISION: usize = 17;

/// What stands behind the revision of a deletion.
const TOMBSTONE: u8 = b't';

/// Where the newest value of each key lies.
#[derive(Debug)]
pub(super) struct State {
    keys: BTreeMap<Bytes, Place>,
    pub(super) revision: i64,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    at: u64,
    length: u32,
}

impl State {
    /// Goes through all of history.
    pub(super) fn read(bolt: &Bolt<'_>) -> Result<State, SnapshotError> {
        let foreign = || SnapshotError::Foreign("it has no bucket of keys".to_owned());
        let root = bolt.bucket(KEYS)?.ok_or_else(foreign)?;
        // An etcd to which nothing was ever written is at 1.
        let mut state = State { keys: BTreeMap::new(), revision: 1 };
        bolt.walk(root, |item| state.take(&item))?;
        // Where what was written last is deleted and compacted, only this tells how far it was (upstream:
        // `(*store).restore`).
        state.revision = state.revision.max(compacted(bolt)?);
        Ok(state)
    }

    fn take(&mut self, item: &Item) -> Result<(), SnapshotError> {
        let wrong = |what: &str| SnapshotError::damaged(format!("the revision {}: {what}", item.key.escape_ascii()));
        let (revision, is_tombstone) = match &item.key[..] {
            key @ [.., TOMBSTONE] if key.len() == REVISION + 1 => (&key[..REVISION], true),
            key if key.len() == REVISION => (key, false),
            _ => return Err(wrong("it is none")),
        };
        let main = revision.first_chunk().map(|main| i64::from_be_bytes(*main)).unwrap_or_default();
        let found = KeyValue::decode(item.value.clone()).map_err(|error| wrong(&error.to_string()))?;
        self.revision = self.revision.max(main);
        if is_tombstone {
            self.keys.remove(&found.key);
            return Ok(());
        }
        if found.mod_revision != main {
            return Err(wrong(&format!("its value is that of {}", found.mod_revision)));
        }
        let length = u32::try_from(item.value.len()).map_err(|_| wrong("its value is too long"))?;
        // A copy, so that the page can go.
        self.keys.insert(Bytes::copy_from_slice(&found.key), Place { at: item.at, length });
        Ok(())
    }

    pub(super) fn count(&self, from: &[u8], end: &[u8]) -> usize {
        self.between(from, end).count()
    }

    pub(super) fn range(
        &self,
        bytes: &BytesAt,
        from: &[u8],
        end: &[u8],
        limit: usize,
    ) -> Result<Vec<KeyValue>, SnapshotError> {
        let read = |(key, place): (&Bytes, &Place)| {
            let value = bytes.get(place.at, u64::from(place.length))?;
            let value = KeyValue::decode(value).ok().filter(|value| value.key == *key);
            value.ok_or_else(|| SnapshotError::damaged("it was changed while it was read"))
        };
        self.between(from, end).take(limit).map(read).collect()
    }

    /// The keys from one to before another, or to the end if that is empty or, as etcd has it, zero.
    fn between(&self, from: &[u8], end: &[u8]) -> impl Iterator<Item = (&Bytes, &Place)> {
        let is_open = matches!(end, [] | [0]);
        let end = end.to_vec();
        let found = self.keys.range::<[u8], _>((Bound::Included(from), Bound::Unbounded));
        found.take_while(move |(key, _)| is_open || key[..] < end[..])
    }
}

/// Up to where history was to be compacted.
fn compacted(bolt: &Bolt<'_>) -> Result<i64, SnapshotError> {
    let Some(root) = bolt.bucket(META)? else { return Ok(0) };
    let mut scheduled = 0;
    bolt.walk(root, |item| {
        if item.key == SCHEDULED
            && let Some(main) = item.value.first_chunk()
        {
            scheduled = i64::from_be_bytes(*main);
        }
        Ok(())
    })?;
    Ok(scheduled)
}
