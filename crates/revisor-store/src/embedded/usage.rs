//! [`Usage`]: how many bytes a store holds, counted along with every entry (`view`) and event (`index`) that comes and goes.

use crate::{Draft, Entry, Key};

/// What an entry takes beside its key and its content: places in the indexes in memory, the frame of its record on
/// disk.
const PER_ENTRY: u64 = 256;
/// What an event takes beside the content that it replaced: its words in the index, the frame of a record on disk.
const PER_EVENT: u64 = 128;

/// How many bytes a store holds: what it has in memory and on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// The newest state.
    pub state: u64,
    /// What was replaced or deleted and is kept for those who read or watch from the past.
    pub history: u64,
}

impl Usage {
    /// Both together.
    pub fn total(self) -> u64 {
        self.state + self.history
    }
}

/// What `entry` takes as a part of the state.
pub(super) fn of_entry(entry: &Entry) -> u64 {
    sum(entry.key(), entry.content_len())
}

/// What `draft` will take as the entry of `key`.
pub(super) fn of_draft(key: &Key, draft: &Draft) -> u64 {
    sum(key, draft.bytes().len())
}

/// What a write takes as a part of history that replaced or deleted `old`.
pub(super) fn of_event(old: Option<&Entry>) -> u64 {
    PER_EVENT + old.map_or(0, |old| old.key().as_str().len() as u64 + old.content_len() as u64)
}

fn sum(key: &Key, content: usize) -> u64 {
    PER_ENTRY + key.as_str().len() as u64 + content as u64
}
