//! [`Sweeper`]: removes the records that history no longer needs, and keeps `HEAD` near the newest revision, on a
//! thread of its own so that no writer waits for either.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use revisor_version::Revision;

use super::Health;
use super::folder::{Folder, Head};
use super::gaps::Gaps;
use super::log::Log;
use super::mark::Mark;

/// How many records are removed at once: between two removals the writers get their turn at the journal.
const STEP: usize = 512;
/// When so many records wait to be removed, the writers wait for the sweeper.
const MOST_WAITING: usize = 1 << 18;
/// How often `HEAD` follows the newest revision. It takes two syncs, and only says how much damage would be noticed
/// after a crash; a store that was closed is covered up to its last write.
const HEAD_EVERY: Duration = Duration::from_secs(5);

/// The thread that clears up.
pub(super) struct Sweeper {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    /// What was removed after the mark that is on disk. Locked by the thread alone.
    gaps: Mutex<Gaps>,
    log: Arc<Log>,
    folder: Arc<Folder>,
    health: Arc<Health>,
    work: Mutex<Work>,
    changed: Condvar,
}

struct Work {
    mark: Mark,
    /// Whether the mark on disk is another one.
    mark_moved: bool,
    /// In the order in which they may go, see [`Recovered::dead`](super::recovery::Recovered::dead).
    dead: VecDeque<Revision>,
    newest: Option<Revision>,
    head: Option<Revision>,
    stop: Option<Stop>,
}

/// How to end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// When everything is removed.
    Finished,
    /// At once; what is left is found again when the store is opened.
    Abandoned,
}

impl Sweeper {
    /// Starts the thread with what opening found.
    pub(super) fn start(
        log: Arc<Log>,
        folder: Arc<Folder>,
        health: Arc<Health>,
        mark: Mark,
        gaps: Gaps,
        dead: Vec<Revision>,
        newest: Option<Revision>,
    ) -> std::io::Result<Sweeper> {
        let work = Work { mark, mark_moved: !dead.is_empty(), dead: dead.into(), newest, head: newest, stop: None };
        let (work, gaps) = (Mutex::new(work), Mutex::new(gaps));
        let shared = Arc::new(Shared { gaps, log, folder, health, work, changed: Condvar::new() });
        let thread = thread::Builder::new().name("store-sweeper".to_owned()).spawn({
            let shared = shared.clone();
            move || shared.run()
        })?;
        Ok(Sweeper { shared, thread: Some(thread) })
    }

    /// Has `dead` records removed after the mark was moved.
    pub(super) fn sweep(&self, mark: Mark, dead: Vec<Revision>) {
        let mut work = self.shared.work();
        work.mark = mark;
        work.mark_moved = true;
        work.dead.extend(dead);
        self.shared.changed.notify_all();
        while work.dead.len() > MOST_WAITING && self.shared.health.failure().is_none() {
            work = self.shared.changed.wait(work).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets `HEAD` follow: every write up to `newest` is durable.
    pub(super) fn durable(&self, newest: Option<Revision>) {
        self.shared.work().newest = newest;
        self.shared.changed.notify_all();
    }

    /// Ends the thread and waits for it.
    pub(super) fn stop(mut self, how: Stop) {
        self.join(how);
    }

    fn join(&mut self, how: Stop) {
        let Some(thread) = self.thread.take() else { return };
        self.shared.work().stop = Some(how);
        self.shared.changed.notify_all();
        if thread.join().is_err() {
            self.shared.health.fail("the sweeper panicked".into());
        }
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        self.join(Stop::Abandoned);
    }
}

impl Shared {
    fn run(&self) {
        let mut head_due = Instant::now() + HEAD_EVERY;
        let mut work = self.work();
        loop {
            let broken = self.health.failure().is_some();
            let something = work.mark_moved || !work.dead.is_empty();
            match work.stop {
                Some(Stop::Abandoned) => return,
                Some(Stop::Finished) if broken || !something => return,
                _ => {}
            }
            if something && !broken {
                let count = work.dead.len().min(STEP);
                let dead: Vec<Revision> = work.dead.drain(..count).collect();
                let mark = work.mark.clone();
                work.mark_moved = false;
                drop(work);
                if let Err(cause) = self.remove(mark, &dead) {
                    self.health.fail(cause);
                }
                self.changed.notify_all();
                work = self.work();
            } else if work.newest > work.head && Instant::now() >= head_due {
                let newest = work.newest;
                drop(work);
                if let Err(error) = self.folder.write_head(Head::Durable(newest.map_or(0, Revision::get))) {
                    tracing::warn!(%error, "cannot write the HEAD file of the store");
                }
                head_due = Instant::now() + HEAD_EVERY;
                work = self.work();
                work.head = newest;
            } else if work.newest > work.head {
                let wait = head_due.saturating_duration_since(Instant::now());
                work = self.changed.wait_timeout(work, wait).unwrap_or_else(PoisonError::into_inner).0;
            } else {
                work = self.changed.wait(work).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Moves the mark and removes `dead` records, and with them says which ones are gone that are after the mark.
    fn remove(&self, mut mark: Mark, dead: &[Revision]) -> Result<(), Arc<str>> {
        let mut gaps = self.gaps.lock().unwrap_or_else(PoisonError::into_inner);
        gaps.forget(mark.revision);
        dead.iter().filter(|revision| Some(**revision) > mark.revision).for_each(|revision| gaps.add(*revision));
        mark.gone = gaps.sum();
        self.log.forget(&mark, dead)
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
