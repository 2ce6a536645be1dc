//! [`Sequencer`]: the one thread that writes. It puts writes in order, gives them revisions, makes them durable in
//! batches, and only then lets anybody see them (S1, S2, S3).
//!
//! While one batch syncs, the next gathers in the queue: the more writers, the more of them share a sync.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Instant, SystemTime};

use revisor_version::Revision;
use tokio::sync::{OwnedSemaphorePermit, oneshot, watch};

use super::folder::{Folder, Head};
use super::log::Log;
use super::mark::Mark;
use super::past;
use super::record::{self, Record};
use super::recovery::leave;
use super::sweeper::{Stop, Sweeper};
use super::usage;
use super::{Clock, HistoryLimits, Shared, Tuning};
use crate::{Change, Committed, Draft, Entry, Event, Expect, Key, Registration, StoreError, WatchGuard, Write};

/// What the sequencer is asked to do, in order.
pub(super) enum Command {
    /// Perform a write.
    Write(PendingWrite),
    /// Replay history after a revision to a sink, and then tell it what happens.
    Watch { registration: Arc<Registration>, after: Option<Revision>, answer: Answer<WatchGuard> },
    /// Forget history before a revision.
    Compact { revision: Revision, answer: Answer<()> },
    /// Look at what has changed elsewhere.
    Wake,
}

/// Where the result of a command goes. Nobody may be there any more, which changes nothing.
pub(super) type Answer<T> = oneshot::Sender<Result<T, StoreError>>;

/// A write that waits, and the room in the queue that it takes.
pub(super) struct PendingWrite {
    pub(super) write: Write,
    /// What the record is to hold of the object, if there is one.
    pub(super) sealed: Option<Draft>,
    pub(super) answer: Answer<Committed>,
    pub(super) _room: OwnedSemaphorePermit,
}

/// The thread's state.
pub(super) struct Sequencer {
    pub(super) shared: Arc<Shared>,
    pub(super) commands: Receiver<Command>,
    pub(super) log: Arc<Log>,
    pub(super) folder: Arc<Folder>,
    pub(super) sweeper: Sweeper,
    pub(super) progress: watch::Sender<Option<Revision>>,
    pub(super) mark: Mark,
    pub(super) limits: HistoryLimits,
    pub(super) clock: Clock,
    pub(super) tuning: Tuning,
    /// What is to be done on this thread when it is at rest.
    pub(super) at_rest: fn(),
    /// Times of commits never run backwards, whatever the clock does.
    pub(super) last_time: SystemTime,
}

/// The writes of one commit, decided but not yet durable.
#[derive(Default)]
struct Batch {
    records: Vec<(Revision, Vec<u8>)>,
    events: Vec<Event>,
    /// What the batch makes of the keys that it touches.
    overlay: HashMap<Key, Option<Arc<Entry>>>,
    answers: Vec<(Answer<Committed>, Result<Committed, StoreError>)>,
}

impl Sequencer {
    /// Works until the store is closed or dropped.
    pub(super) fn run(mut self) {
        self.keep_house();
        let mut kept_house = Instant::now();
        let mut is_at_rest = false;
        loop {
            match self.commands.recv_timeout(self.tuning.housekeeping) {
                Ok(command) => {
                    is_at_rest = false;
                    self.handle(command);
                }
                Err(RecvTimeoutError::Timeout) if !is_at_rest => {
                    is_at_rest = true;
                    (self.at_rest)();
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.abandon(),
            }
            if self.shared.closing.load(Ordering::Acquire) {
                return self.close();
            }
            if kept_house.elapsed() >= self.tuning.housekeeping {
                self.keep_house();
                kept_house = Instant::now();
            }
        }
    }

    /// Handles a command, and the writes that follow it in the queue if it is one.
    fn handle(&mut self, command: Command) {
        let mut next = Some(command);
        while let Some(command) = next.take() {
            match command {
                Command::Write(write) => {
                    let (writes, follows) = self.gather(write);
                    self.commit(writes);
                    next = follows;
                }
                Command::Watch { registration, after, answer } => {
                    // If nobody takes the guard it is dropped here, and the watch with it.
                    let _ = answer.send(self.watch(registration, after));
                }
                Command::Compact { revision, answer } => {
                    let _ = answer.send(self.compact(revision));
                }
                Command::Wake => {}
            }
        }
    }

    /// Takes the writes that wait, up to a batch, and the command that ended the search if it was another one.
    fn gather(&mut self, first: PendingWrite) -> (Vec<PendingWrite>, Option<Command>) {
        let mut bytes = size(&first.write);
        let mut writes = vec![first];
        while writes.len() < usize::from(self.tuning.batch_writes) && bytes < self.tuning.batch_bytes {
            match self.commands.try_recv() {
                Ok(Command::Write(write)) => {
                    bytes += size(&write.write);
                    writes.push(write);
                }
                Ok(other) => return (writes, Some(other)),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
        }
        (writes, None)
    }

    fn commit(&mut self, writes: Vec<PendingWrite>) {
        if let Some(failure) = self.shared.health.failure() {
            for write in writes {
                let _ = write.answer.send(Err(failure.clone()));
            }
            return;
        }
        let mut batch = self.decide(writes);
        if !batch.records.is_empty()
            && let Err(cause) = self.log.append(std::mem::take(&mut batch.records))
        {
            // Upholds S2: what the disk holds is unknown now, so nobody may build on it. Who lost against a write of
            // this batch must not hear of it either.
            let failure = self.shared.health.fail(cause);
            for (answer, _) in batch.answers {
                let _ = answer.send(Err(failure.clone()));
            }
            return;
        }
        self.publish(&batch.events);
        // Before the answers, so that who writes and then reads finds history within its limits.
        self.keep_within_limits();
        for (answer, result) in batch.answers {
            let _ = answer.send(result);
        }
    }

    /// Checks each write against the newest state and the writes before it, and gives those that hold a revision.
    fn decide(&mut self, writes: Vec<PendingWrite>) -> Batch {
        self.last_time = self.last_time.max(record::whole_milliseconds((self.clock)()));
        let view = self.shared.view();
        let mut next = view.newest().map_or(Revision::FIRST, Revision::next);
        let mut state = view.usage().state;
        let mut batch = Batch::default();
        for PendingWrite { write: Write { key, expect, change }, sealed, answer, _room } in writes {
            let current = batch.overlay.get(&key).cloned().unwrap_or_else(|| view.get(key.as_str()).cloned());
            if !holds(expect, current.as_deref()) || (current.is_none() && change.needs_entry()) {
                batch.answers.push((answer, Err(StoreError::Conflict { key, current })));
                continue;
            }
            let old_bytes = current.as_deref().map(usage::of_entry);
            let new_bytes = change.draft().map_or(0, |draft| usage::of_draft(&key, draft));
            if matches!(change, Change::Put(_))
                && let Err(refusal) = self.shared.quota.admit(state, old_bytes, new_bytes)
            {
                batch.answers.push((answer, Err(refusal)));
                continue;
            }
            state = state + new_bytes - old_bytes.unwrap_or(0);
            let revision = next;
            next = next.next();
            let new = change.draft().map(|draft| Arc::new(Entry::new(key.clone(), revision, draft)));
            let place = u16::try_from(batch.records.len()).expect("a batch has at most so many writes");
            let record = Record { place, time: self.last_time, key: key.clone(), draft: sealed };
            batch.records.push((revision, record.encode(revision)));
            batch.overlay.insert(key, new.clone());
            let event = Event { revision, time: self.last_time, old: current, new };
            batch.events.push(event.clone());
            batch.answers.push((answer, Ok(event)));
        }
        batch
    }

    /// Lets everybody see what is durable now.
    fn publish(&mut self, events: &[Event]) {
        let Some(newest) = events.last().map(|event| event.revision) else { return };
        {
            let mut view = self.shared.view_mut();
            events.iter().for_each(|event| view.apply(event));
        }
        self.shared.sinks.deliver(events);
        self.progress.send_replace(Some(newest));
    }

    /// Between two batches nothing happens, so what is replayed and what is told later meet without a gap (W1).
    fn watch(&self, registration: Arc<Registration>, after: Option<Revision>) -> Result<WatchGuard, StoreError> {
        let newest = self.shared.view().newest();
        let mut position = after;
        loop {
            let page = past::events(&self.shared, registration.prefix(), position, super::REPLAY)?;
            registration.replay(&page.events)?;
            position = page.through;
            if position >= newest {
                return Ok(self.shared.sinks.add(registration));
            }
        }
    }

    fn compact(&mut self, revision: Revision) -> Result<(), StoreError> {
        let newest = self.shared.view().newest();
        if Some(revision) > newest {
            return Err(StoreError::Future { asked: revision, newest });
        }
        self.forget(Some(revision));
        Ok(())
    }

    /// Forgets history before `oldest`, if there is any.
    fn forget(&mut self, oldest: Option<Revision>) {
        let Some(oldest) = oldest.filter(|oldest| Some(*oldest) > self.mark.revision) else { return };
        let mut dead = vec![];
        {
            let mark = &mut self.mark;
            let mut view = self.shared.view_mut();
            view.index.forget(oldest, |write| leave(write, mark, &mut dead));
            (mark.revision, mark.floors) = (Some(oldest), view.index.floors());
        }
        self.shared.sinks.compacted("", oldest);
        self.sweeper.sweep(self.mark.clone(), dead);
    }

    /// Forgets what history has too much of, by its own limits or beside a state that needs the room.
    fn keep_within_limits(&mut self) {
        loop {
            let limits = {
                let view = self.shared.view();
                let usage = view.usage();
                self.shared.quota.clear_alarm(usage);
                let room = usize::try_from(self.shared.quota.history_room(usage.state)).unwrap_or(usize::MAX);
                let limits = HistoryLimits { bytes: self.limits.bytes.min(room), ..self.limits };
                if !view.index.is_beyond(&limits) {
                    return;
                }
                limits
            };
            let mut dead = vec![];
            let trimmed = {
                let mark = &mut self.mark;
                let mut view = self.shared.view_mut();
                let trimmed = view.index.trim(&limits, self.last_time, |write| leave(write, mark, &mut dead));
                mark.floors = view.index.floors();
                trimmed
            };
            let Some((share, oldest)) = trimmed else { return };
            self.shared.sinks.compacted(&share, oldest);
            self.sweeper.sweep(self.mark.clone(), dead);
        }
    }

    /// What must happen also when nobody writes.
    fn keep_house(&mut self) {
        self.keep_within_limits();
        let now = (self.clock)();
        let beyond = self.shared.view().index.beyond_age(&self.limits, now);
        self.forget(beyond);
        self.sweeper.durable(self.shared.view().newest());
        if self.shared.health.failure().is_none()
            && let Err(cause) = self.log.check()
        {
            self.shared.health.fail(cause);
        }
    }

    /// Finishes what waits and leaves a folder that says exactly how far it reaches.
    fn close(mut self) {
        while let Ok(command) = self.commands.try_recv() {
            self.handle(command);
        }
        self.shared.sinks.end(&StoreError::Closed);
        self.sweeper.stop(Stop::Finished);
        if self.shared.health.failure().is_none() {
            let newest = self.shared.view().newest().map_or(0, Revision::get);
            if let Err(cause) = self.log.sync() {
                tracing::error!(%cause, "cannot sync the store while closing it");
            } else if let Err(error) = self.folder.write_head(Head::Durable(newest)) {
                tracing::warn!(%error, "cannot write the HEAD file of the store");
            }
        }
    }

    /// The store was dropped: to whoever opens it next this is no different from a crash.
    fn abandon(self) {
        self.shared.sinks.end(&StoreError::Closed);
        self.sweeper.stop(Stop::Abandoned);
    }
}

fn holds(expect: Expect, current: Option<&Entry>) -> bool {
    match expect {
        Expect::Absent => current.is_none(),
        Expect::At(revision) => current.is_some_and(|entry| entry.revision() == revision),
        Expect::Anything => true,
    }
}

/// How many bytes a write brings.
pub(super) fn size(write: &Write) -> usize {
    write.key.as_str().len() + write.change.draft().map_or(0, |draft| draft.bytes().len())
}
