//! [`Event`]: one write, as those who watch see it.

use std::sync::Arc;
use std::time::SystemTime;

use revisor_version::Revision;

use crate::{Entry, Key};

/// One committed write. At least one of `old` and `new` is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The revision of the write; for a put, also that of `new`.
    pub revision: Revision,
    /// When the write was committed, by the store's clock. For retention only: order is by revision.
    pub time: SystemTime,
    /// What the key held before, if anything.
    pub old: Option<Arc<Entry>>,
    /// What the key holds now; nothing after a deletion.
    pub new: Option<Arc<Entry>>,
}

impl Event {
    /// The key that was written.
    ///
    /// # Panics
    /// If the event has neither side, which no store delivers.
    pub fn key(&self) -> &Key {
        let entry = self.new.as_ref().or(self.old.as_ref());
        entry.expect("an event has an old or a new side").key()
    }
}
