//! Opening: from the records on disk to the state in memory, checking on the way that none is missing.

use std::sync::Arc;

use revisor_version::Revision;

use super::log::Log;
use super::mark::{Mark, StateSum};
use super::record::Record;
use super::view::View;
use super::{HistoryLimits, OpenError};
use crate::{Entry, Event};

/// What opening found.
pub(super) struct Recovered {
    /// The state and as much of history as the limits on its size allow.
    pub(super) view: View,
    /// Where history begins now.
    pub(super) mark: Mark,
    /// Records that nothing needs any more. To remove any number of them from the front leaves a log that recovers to
    /// the same: what a record replaced comes before the record itself.
    pub(super) dead: Vec<Revision>,
}

/// Reads the whole log.
pub(super) fn recover(log: &Log, limits: &HistoryLimits) -> Result<Recovered, OpenError> {
    let mark = log.mark()?;
    let mut reading = Reading {
        log,
        limits,
        found: Recovered { view: View::starting_at(mark.revision), mark, dead: vec![] },
        settled: mark,
        in_history: false,
    };
    log.scan(|revision, record| reading.take(revision, record))?;
    if !reading.in_history {
        reading.begin_history()?;
    }
    Ok(reading.found)
}

struct Reading<'a> {
    log: &'a Log,
    limits: &'a HistoryLimits,
    found: Recovered,
    /// The mark as it is on disk.
    settled: Mark,
    /// Whether the records up to the mark are done with.
    in_history: bool,
}

impl Reading<'_> {
    fn take(&mut self, revision: Revision, record: Record) -> Result<(), OpenError> {
        if Some(revision) <= self.settled.revision {
            self.settle(revision, &record);
            return Ok(());
        }
        if !self.in_history {
            self.begin_history()?;
        }
        let expected = self.found.view.newest().map_or(Revision::FIRST, Revision::next);
        if revision != expected {
            return Err(self.damaged(format!("record {expected} is missing, the next one is {revision}")));
        }
        self.append(revision, record)
    }

    /// A record at or before the mark: part of the state where history begins, or left over.
    fn settle(&mut self, revision: Revision, record: &Record) {
        let entry = record.draft.as_ref().map(|draft| Arc::new(Entry::new(record.key.clone(), revision, draft)));
        let deletion = entry.is_none();
        if let Some(old) = self.found.view.settle(record.key.clone(), entry) {
            self.found.dead.push(old.revision());
        }
        if deletion {
            self.found.dead.push(revision);
        }
    }

    /// Checks the state where history begins.
    fn begin_history(&mut self) -> Result<(), OpenError> {
        self.in_history = true;
        let mut sum = StateSum::default();
        self.found.view.entries().for_each(|entry| sum.add(entry.revision()));
        if sum != self.settled.sum {
            let at = self.settled.revision.map_or(0, Revision::get);
            return Err(self.damaged(format!("objects that were written before revision {at} are missing")));
        }
        Ok(())
    }

    /// A record after the mark: part of history.
    fn append(&mut self, revision: Revision, record: Record) -> Result<(), OpenError> {
        let old = self.found.view.get(record.key.as_str()).cloned();
        let new = record.draft.map(|draft| Arc::new(Entry::new(record.key, revision, &draft)));
        if old.is_none() && new.is_none() {
            return Err(self.damaged(format!("record {revision} deletes what was not there")));
        }
        self.found.view.apply(Event { revision, time: record.time, old, new });
        let Recovered { view, mark, dead } = &mut self.found;
        if let Some(oldest) = view.window.beyond_size(self.limits) {
            view.forget(oldest, |event| leave(event, mark, dead));
        }
        Ok(())
    }

    fn damaged(&self, what: String) -> OpenError {
        OpenError::damaged(self.log.records_folder(), what)
    }
}

/// Accounts for an event that leaves history: the mark passes it, and what it replaced is needed no more; for a
/// deletion, neither is the record of the deletion itself.
pub(super) fn leave(event: &Event, mark: &mut Mark, dead: &mut Vec<Revision>) {
    mark.pass(event);
    if let Some(old) = &event.old {
        dead.push(old.revision());
    }
    if event.new.is_none() {
        dead.push(event.revision);
    }
}
