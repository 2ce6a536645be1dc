//! [`RevisionCell`]: a revision that one thread moves forward and others read without a lock.

use std::sync::atomic::{AtomicU64, Ordering};

use revisor_version::Revision;

/// A position in history that only grows. Who reads a revision here also sees all that was done before it was
/// published.
#[derive(Debug, Default)]
pub(crate) struct RevisionCell(AtomicU64);

impl RevisionCell {
    /// A cell that holds `revision`.
    pub(crate) fn new(revision: Option<Revision>) -> RevisionCell {
        RevisionCell(AtomicU64::new(revision.map_or(0, Revision::get)))
    }

    /// What was published last.
    pub(crate) fn read(&self) -> Option<Revision> {
        Revision::new(self.0.load(Ordering::Acquire))
    }

    /// Publishes `revision`, unless something later was published.
    pub(crate) fn publish(&self, revision: Option<Revision>) {
        self.0.fetch_max(revision.map_or(0, Revision::get), Ordering::AcqRel);
    }
}
