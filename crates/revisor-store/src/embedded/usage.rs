//! [`Usage`]: how many bytes a store holds, counted along with every entry and event that comes and goes.

use crate::{Draft, Entry, Event, Key};

/// What an entry takes beside its key and its content: places in the indexes in memory, the frame of its record on
/// disk.
const PER_ENTRY: u64 = 256;
/// What an event takes beside the entry that it replaced.
const PER_EVENT: u64 = 128;

/// How many bytes a store holds: what it has in memory, and what the next start must load.
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

    /// Counts that an entry of `new` bytes stands where one of `old` stood.
    pub(super) fn replace(&mut self, old: u64, new: u64) {
        self.state = self.state + new - old;
    }

    /// Counts an event that history holds from now on.
    pub(super) fn remember(&mut self, event: &Event) {
        self.history += of_event(event);
    }

    /// Counts an event that leaves history.
    pub(super) fn forget(&mut self, event: &Event) {
        self.history -= of_event(event);
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

/// What `event` takes as a part of history.
pub(super) fn of_event(event: &Event) -> u64 {
    PER_EVENT + event.old.as_deref().map_or(0, of_entry)
}

fn sum(key: &Key, content: usize) -> u64 {
    PER_ENTRY + key.as_str().len() as u64 + content as u64
}
