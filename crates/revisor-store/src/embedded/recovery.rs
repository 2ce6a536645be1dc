//! Opening: from the records on disk to the state in memory, checking on the way that none is missing.
//!
//! The log is read once, record by record. What stays in memory is the newest state and the index of history; an
//! object that another one replaces is let go, however long history is.

use std::sync::Arc;

use revisor_version::Revision;

use super::gaps::Gaps;
use super::log::Log;
use super::mark::{Mark, RevisionSum};
use super::record::Record;
use super::versions::Passed;
use super::view::View;
use super::{HistoryLimits, OpenError, ShareOf, sealing};
use crate::{Entry, ResourceTransformers};

/// What opening found.
pub(super) struct Recovered {
    /// The state, and as much of history as the limits on its size allow.
    pub(super) view: View,
    /// Where history begins now.
    pub(super) mark: Mark,
    /// The revisions after the mark on disk that have no record.
    pub(super) gaps: Gaps,
    /// Records that nothing needs any more. To remove any number of them from the front leaves a log that recovers to
    /// the same: what a record replaced comes before the record itself.
    pub(super) dead: Vec<Revision>,
}

/// Reads the whole log.
pub(super) fn recover(
    log: &Log,
    limits: &HistoryLimits,
    share_of: ShareOf,
    transformers: &dyn ResourceTransformers,
) -> Result<Recovered, OpenError> {
    let mark = log.mark()?;
    let view = View::starting_at(mark.revision, &mark.floors, share_of, limits);
    let mut reading = Reading {
        log,
        found: Recovered { view, mark, gaps: Gaps::default(), dead: vec![] },
        base: RevisionSum::default(),
    };
    log.scan(|revision, record| reading.take(revision, record))?;
    reading.finish()?;
    unseal(&mut reading.found.view, transformers)?;
    let Recovered { view, mark, dead, .. } = &mut reading.found;
    if let Some(now) = view.index.newest_time() {
        while view.index.trim(limits, now, |write| leave(write, mark, dead)).is_some() {}
        mark.floors = view.index.floors();
    }
    Ok(reading.found)
}

/// Makes the newest state plain. What was replaced stays as it lies: who reads it later may not have its key any more.
fn unseal(view: &mut View, transformers: &dyn ResourceTransformers) -> Result<(), OpenError> {
    let newest = view.state();
    for entry in newest.entries() {
        let plain = sealing::unseal_entry(transformers, entry).map_err(|cause| OpenError::Encrypted { cause })?;
        if let Some(plain) = plain {
            view.settle(entry.key().clone(), Some(Arc::new(plain)));
        }
    }
    Ok(())
}

struct Reading<'a> {
    log: &'a Log,
    found: Recovered,
    /// The objects that were found with which history begins.
    base: RevisionSum,
}

impl Reading<'_> {
    fn take(&mut self, revision: Revision, record: Record) -> Result<(), OpenError> {
        let Recovered { view, mark, .. } = &self.found;
        let begins = view.index.oldest_of(record.key.as_str());
        if Some(revision) > mark.revision {
            self.reach(revision, true)?;
        }
        if Some(revision) <= begins {
            self.settle(revision, &record);
            return Ok(());
        }
        self.append(revision, record)
    }

    /// Notes that the log goes on, or ends, at `revision`, and what is missing before it.
    fn reach(&mut self, revision: Revision, is_there: bool) -> Result<(), OpenError> {
        let Recovered { view, mark, gaps, .. } = &mut self.found;
        let expected = view.newest().map_or(Revision::FIRST, Revision::next);
        if revision != expected && mark.gone == RevisionSum::default() {
            return Err(self.damaged(format!("record {expected} is missing, the next one is {revision}")));
        }
        let end = revision.get() + u64::from(!is_there);
        (expected.get()..end).filter_map(Revision::new).for_each(|missing| gaps.add(missing));
        view.reach(revision);
        Ok(())
    }

    /// A record from before the history of its share: part of the state where it begins, or left over.
    fn settle(&mut self, revision: Revision, record: &Record) {
        let entry = record.draft.as_ref().map(|draft| Arc::new(Entry::new(record.key.clone(), revision, draft)));
        let is_deletion = entry.is_none();
        if !is_deletion {
            self.base.add(revision);
        }
        if let Some(old) = self.found.view.settle(record.key.clone(), entry) {
            self.base.remove(old.revision());
            self.found.dead.push(old.revision());
        }
        if is_deletion {
            self.found.dead.push(revision);
        }
    }

    /// A record of history.
    fn append(&mut self, revision: Revision, record: Record) -> Result<(), OpenError> {
        let Recovered { view, .. } = &mut self.found;
        let new = record.draft.map(|draft| Arc::new(Entry::new(record.key.clone(), revision, &draft)));
        let is_deletion = new.is_none();
        let old = view.settle(record.key.clone(), new);
        if old.is_none() && is_deletion {
            return Err(self.damaged(format!("record {revision} deletes what was not there")));
        }
        view.index.push(revision, record.time, &record.key, old.as_deref(), is_deletion);
        Ok(())
    }

    /// Checks that all is there.
    fn finish(&mut self) -> Result<(), OpenError> {
        let newest = self.found.mark.newest();
        if let Some(newest) = newest.filter(|newest| Some(*newest) > self.found.view.newest()) {
            // The last writes were deletions, and history begins after them.
            self.reach(newest, false)?;
        }
        let Recovered { mark, gaps, .. } = &self.found;
        if gaps.sum() != mark.gone {
            let (missing, known) = (gaps.sum().count(), mark.gone.count());
            let after = mark.revision.map_or(0, Revision::get);
            return Err(self.damaged(format!(
                "records after revision {after} are missing: {missing} are not there, of which {known} were removed"
            )));
        }
        if self.base != mark.base {
            let at = newest.map_or(0, Revision::get);
            return Err(self.damaged(format!("objects that were written before revision {at} are missing")));
        }
        Ok(())
    }

    fn damaged(&self, what: String) -> OpenError {
        OpenError::damaged(self.log.records_folder(), what)
    }
}

/// Accounts for a write that leaves history: what it replaced is needed no more; for a deletion, neither is the
/// record of the deletion itself.
pub(super) fn leave(write: Passed, mark: &mut Mark, dead: &mut Vec<Revision>) {
    mark.pass(write);
    dead.extend(write.old);
    if write.version.is_deletion() {
        dead.push(write.version.revision());
    }
}
