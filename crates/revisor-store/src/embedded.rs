//! [`EmbeddedStore`]: a store in one folder of one machine.
//!
//! On disk it is a log: one record per write, in order (`record`, `log`). In memory are the newest state, so that no
//! read of it goes to disk (`view`), and an index of history (`index`), by which reads of the past find their records
//! (`past`). One thread puts writes in order (`sequencer`), another removes what history no longer needs (`sweeper`).

mod copy;
mod cradle;
mod envelope;
mod folder;
mod gaps;
mod index;
mod journal;
mod keys;
mod loader;
mod log;
mod manifest;
mod mark;
mod open_error;
mod options;
mod past;
mod quota;
mod record;
mod recovery;
mod sealing;
mod sequencer;
mod sweeper;
mod times;
mod usage;
mod versions;
mod view;

#[cfg(test)]
mod tests;

use std::ops::Deref;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::{self, JoinHandle};
use std::time::SystemTime;

use revisor_version::Revision;
use tokio::sync::{Semaphore, oneshot, watch};

pub use copy::copy_store;
pub use envelope::{KeyName, RecordCipher};
pub use loader::{LoadError, Loader};
pub use open_error::OpenError;
pub use options::{Clock, EmbeddedOptions, HistoryLimits, ShareOf, Tuning, resource_of};
pub use usage::Usage;

use crate::{
    BoxFuture, Committed, Draft, Entry, EventPage, Key, Listing, Page, Progress, Registration, ResourceTransformers,
    Sink, Sinks, Store, StoreError, WatchGuard, Write,
};
use folder::{Folder, Head};
use log::Log;
use quota::Quota;
use recovery::Recovered;
use sequencer::{Command, PendingWrite, Sequencer};
use sweeper::Sweeper;
use view::View;

/// Reads a stored record whose checksum is taken for granted, and writes it again; `None` if it is no record. For
/// tests of the format only.
#[doc(hidden)]
pub fn reread_record(revision: Revision, body: &[u8]) -> Option<Vec<u8>> {
    record::reread(revision, body)
}

/// The longest key that is taken.
pub const MOST_KEY_BYTES: usize = 4 << 10;
/// The largest object that is taken.
pub const MOST_OBJECT_BYTES: usize = 8 << 20;

/// The unit in which the room of the write queue is counted, and what a write takes at least.
const QUEUE_UNIT: usize = 1 << 10;
const LEAST_UNITS: usize = 16;
/// How many other commands may wait beside the writes.
const OTHER_COMMANDS: usize = 1024;
/// A new watcher hears of the past in portions of this size.
const REPLAY: usize = 1024;
/// How many reads of the past may go to the disk at once; the others wait for them.
const READERS: usize = 4;

/// A [`Store`] in one folder. To drop it without [`close`](Store::close) is to let it crash in good order: nothing
/// that was acknowledged is lost.
pub struct EmbeddedStore {
    shared: Arc<Shared>,
    room: Arc<Semaphore>,
    readers: Arc<Semaphore>,
    /// There until the store is dropped.
    commands: Option<SyncSender<Command>>,
    thread: Option<JoinHandle<()>>,
    progress: Progress,
    stopped: watch::Receiver<bool>,
}

/// What the store and its threads have in common.
struct Shared {
    view: RwLock<View>,
    /// There until the store is closed. Who reads holds the lock, so that a store that says it is closed has let go
    /// of its files.
    log: RwLock<Option<Arc<Log>>>,
    sinks: Arc<Sinks>,
    health: Arc<Health>,
    quota: Quota,
    transformers: Arc<dyn ResourceTransformers>,
    closing: AtomicBool,
    closed: AtomicBool,
}

/// A log that stays open while this is there.
struct OpenLog<'a>(RwLockReadGuard<'a, Option<Arc<Log>>>);

impl Deref for OpenLog<'_> {
    type Target = Log;

    fn deref(&self) -> &Log {
        self.0.as_ref().expect("it was there when the lock was taken, and nobody takes it away meanwhile")
    }
}

/// Whether the disk can be trusted.
#[derive(Default)]
struct Health {
    failure: OnceLock<Arc<str>>,
}

impl Health {
    fn failure(&self) -> Option<StoreError> {
        self.failure.get().cloned().map(StoreError::ReadOnly)
    }

    /// Refuses writes from now on. The first cause is the one to tell.
    fn fail(&self, cause: Arc<str>) -> StoreError {
        tracing::error!(%cause, "the store is read-only from now on");
        StoreError::ReadOnly(self.failure.get_or_init(|| cause).clone())
    }
}

impl Shared {
    // A panic while the lock was held leaves a view that is whole: each step on it is one assignment to a map.
    fn view(&self) -> RwLockReadGuard<'_, View> {
        self.view.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn view_mut(&self) -> RwLockWriteGuard<'_, View> {
        self.view.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The log, for as long as somebody reads from it.
    fn log(&self) -> Result<impl Deref<Target = Log>, StoreError> {
        let log = self.log.read().unwrap_or_else(PoisonError::into_inner);
        if log.is_some() { Ok(OpenLog(log)) } else { Err(StoreError::Closed) }
    }

    fn check_open(&self) -> Result<(), StoreError> {
        if self.closed.load(Ordering::Acquire) { Err(StoreError::Closed) } else { Ok(()) }
    }
}

impl EmbeddedStore {
    /// Opens the store in a folder, or makes a new one there. Reads and checks everything that is in it.
    ///
    /// ```
    /// use revisor_store::embedded::{EmbeddedOptions, EmbeddedStore};
    /// use revisor_store::{Change, Draft, Expect, Key, Store, Write};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// # let folder = tempfile::tempdir().unwrap();
    /// let store = EmbeddedStore::open(EmbeddedOptions::new(folder.path())).await.unwrap();
    /// let change = Change::Put(Draft::opaque("hello"));
    /// let write = Write { key: Key::new("/registry/greetings/a"), expect: Expect::Absent, change };
    /// let committed = store.write(write).await.unwrap();
    /// assert_eq!(committed.revision.get(), 1);
    /// store.close().await;
    /// # });
    /// ```
    pub async fn open(options: EmbeddedOptions) -> Result<EmbeddedStore, OpenError> {
        let folder = options.folder.clone();
        match tokio::task::spawn_blocking(move || EmbeddedStore::open_blocking(options)).await {
            Ok(result) => result,
            Err(error) if error.is_panic() => Err(OpenError::damaged(folder, log::panic_text(&*error.into_panic()))),
            Err(error) => Err(OpenError::io("open", folder)(std::io::Error::other(error))),
        }
    }

    fn open_blocking(options: EmbeddedOptions) -> Result<EmbeddedStore, OpenError> {
        let EmbeddedOptions { folder: path, history: limits, share_of, clock, transformers, cipher, tuning, at_rest } =
            options;
        let folder = Folder::lock(&path)?;
        let head = folder.prepare(cipher.is_some())?;
        if head != Head::Creating && !folder.engine().is_dir() {
            return Err(OpenError::damaged(folder.engine(), "the folder is missing"));
        }
        let open = |engine: &Path| Log::open(engine, tuning.memtable_bytes, cipher.clone());
        if head == Head::Creating {
            cradle::make(&folder.engine(), |engine| open(engine).map(drop))?;
        }
        manifest::check(&folder.engine())?;
        let witnessed = journal::mend(&folder.engine())?;
        let log = open(&folder.engine())?;
        let Recovered { view, mark, gaps, dead } = recovery::recover(&log, &limits, share_of, &*transformers)?;
        let newest = view.newest();
        let reached = newest.map_or(0, Revision::get);
        let promised = match head {
            Head::Creating => 0,
            Head::Durable(revision) => revision.max(witnessed),
        };
        if reached < promised {
            let what = format!("its journal or tables end at revision {reached}, but {promised} was durable");
            return Err(OpenError::damaged(folder.engine(), what));
        }
        let resealed = log.reseal(&mark)?;
        if resealed > 0 {
            tracing::info!(records = resealed, "encrypted the store with the first key of its key file");
        }
        folder.write_head(Head::Durable(reached)).map_err(OpenError::io("write", folder.file("HEAD")))?;
        tracing::info!(folder = %path.display(), revision = reached, "opened the store");

        let (log, folder, health) = (Arc::new(log), Arc::new(folder), Arc::<Health>::default());
        let last_time = view.index.newest_time().unwrap_or(SystemTime::UNIX_EPOCH);
        let shared = Arc::new(Shared {
            view: RwLock::new(view),
            log: RwLock::new(Some(log.clone())),
            sinks: Arc::default(),
            health: health.clone(),
            quota: Quota::default(),
            transformers,
            closing: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        });
        let units = (tuning.queue_bytes / QUEUE_UNIT).clamp(LEAST_UNITS, Semaphore::MAX_PERMITS);
        let (commands, receiver) = sync_channel(units / LEAST_UNITS + OTHER_COMMANDS);
        let (progress, progress_receiver) = watch::channel(newest);
        let (stopped, stopped_receiver) = watch::channel(false);
        let spawn = OpenError::io("start a thread for", &path);
        let sweeper = Sweeper::start(log.clone(), folder.clone(), health, mark.clone(), gaps, dead, newest);
        let sweeper = sweeper.map_err(OpenError::io("start a thread for", &path))?;
        let sequencer = Sequencer {
            shared: shared.clone(),
            commands: receiver,
            log,
            folder,
            sweeper,
            progress,
            mark,
            limits,
            clock,
            tuning,
            at_rest,
            last_time,
        };
        let thread = thread::Builder::new().name("store-sequencer".to_owned()).spawn({
            let shared = shared.clone();
            move || {
                if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| sequencer.run())).is_err() {
                    shared.sinks.end(&shared.health.fail("the sequencer panicked".into()));
                } else {
                    shared.closed.store(true, Ordering::Release);
                    shared.log.write().unwrap_or_else(PoisonError::into_inner).take();
                }
                stopped.send_replace(true);
            }
        });
        Ok(EmbeddedStore {
            shared,
            room: Arc::new(Semaphore::new(units)),
            readers: Arc::new(Semaphore::new(READERS)),
            commands: Some(commands),
            thread: Some(thread.map_err(spawn)?),
            progress: progress_receiver,
            stopped: stopped_receiver,
        })
    }

    /// Bounds the bytes of state and history from now on, or lifts the bound. Where the state is larger already, what
    /// makes it larger still is refused until enough was deleted.
    pub fn limit_to(&self, bytes: Option<u64>) {
        self.shared.quota.set(bytes, self.shared.view().usage());
    }

    /// How many bytes state and history may take, if they are bounded.
    pub fn quota(&self) -> Option<u64> {
        self.shared.quota.get()
    }

    /// How many bytes state and history take.
    pub fn usage(&self) -> Usage {
        self.shared.view().usage()
    }

    /// How many events history holds.
    pub fn history_events(&self) -> u64 {
        self.shared.view().index.held().events
    }

    /// Whether writes are refused because the store is full: from the first that is until there is room again.
    pub fn is_full(&self) -> bool {
        self.shared.quota.alarm()
    }

    /// Whether all that is stored could be read by other transformers, as far as these or the present ones encrypt it.
    /// Blocks, and reads what is encrypted from the disk.
    pub fn check_readable(&self, transformers: &dyn ResourceTransformers) -> Result<(), StoreError> {
        let newest = self.shared.view().state();
        let is_plain =
            |transformers: &dyn ResourceTransformers, key: &str| transformers.transformer_for(key).is_identity();
        for entry in newest.entries() {
            let key = entry.key().as_str();
            if !is_plain(&*self.shared.transformers, key) || !is_plain(transformers, key) {
                past::check_readable(&self.shared, transformers, entry)?;
            }
        }
        Ok(())
    }

    /// How many bytes the files of the engine take, with what it has not cleared away yet; none once it is closed.
    pub fn disk_bytes(&self) -> u64 {
        self.shared.log().map_or(0, |log| log.disk_bytes())
    }

    /// Hands a command to the sequencer and waits for what becomes of it.
    async fn ask<T>(
        &self,
        command: Command,
        answer: oneshot::Receiver<Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let commands = self.commands.as_ref().ok_or(StoreError::Closed)?;
        match commands.try_send(command) {
            Ok(()) => answer.await.unwrap_or_else(|_| Err(self.gone())),
            Err(TrySendError::Full(_)) => Err(StoreError::Overloaded),
            Err(TrySendError::Disconnected(_)) => Err(self.gone()),
        }
    }

    /// Why the sequencer no longer answers.
    fn gone(&self) -> StoreError {
        self.shared.health.failure().unwrap_or(StoreError::Closed)
    }

    /// Reads from the disk, on a thread that may wait for it.
    async fn read_past<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Shared) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (readers, shared) = (self.readers.clone(), self.shared.clone());
        // In a task of its own: one who asks may not look for the answer for long, and must not hold the turn meanwhile.
        let reading = tokio::spawn(async move {
            let turn = readers.acquire_owned().await.map_err(|_| StoreError::Closed)?;
            let reading = tokio::task::spawn_blocking(move || {
                let _turn = turn;
                read(&shared)
            });
            reading.await.unwrap_or_else(|failed| Err(StoreError::Backend(Arc::new(failed))))
        });
        reading.await.unwrap_or_else(|failed| Err(StoreError::Backend(Arc::new(failed))))
    }

    async fn perform(&self, write: Write) -> Result<Committed, StoreError> {
        check_size(&write.key, write.change.draft())?;
        if self.shared.closing.load(Ordering::Acquire) {
            return Err(StoreError::Closed);
        }
        if let Some(failure) = self.shared.health.failure() {
            return Err(failure);
        }
        let units = sequencer::size(&write).div_ceil(QUEUE_UNIT).max(LEAST_UNITS);
        let units = u32::try_from(units).expect("the size of a write is bounded");
        let room = self.room.clone().try_acquire_many_owned(units).map_err(|_| StoreError::Overloaded)?;
        let (answer, result) = oneshot::channel();
        // Here and not on the thread that writes, which all writes wait for.
        let sealed = write.change.draft().map(|draft| sealing::seal(&*self.shared.transformers, &write.key, draft));
        let sealed = sealed.transpose()?;
        self.ask(Command::Write(PendingWrite { write, sealed, answer, _room: room }), result).await
    }
}

impl Store for EmbeddedStore {
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Arc<Entry>>, StoreError>> {
        Box::pin(async move {
            self.shared.check_open()?;
            Ok(self.shared.view().get(key).cloned())
        })
    }

    fn list<'a>(&'a self, prefix: &'a str, page: Page) -> BoxFuture<'a, Result<Listing, StoreError>> {
        Box::pin(async move {
            self.shared.check_open()?;
            let (newest, past) = {
                let view = self.shared.view();
                let past = page.at.filter(|at| Some(*at) != view.newest());
                if past.is_some() {
                    view.check_reach(prefix, past)?;
                }
                (view.state(), past)
            };
            match past {
                // Of a snapshot, so that a long listing does not hold the writer up.
                None => Ok(newest.list(prefix, &page)),
                Some(at) => {
                    let prefix = prefix.to_owned();
                    self.read_past(move |shared| past::list(shared, &prefix, &page, at)).await
                }
            }
        })
    }

    fn write(&self, write: Write) -> BoxFuture<'_, Result<Committed, StoreError>> {
        Box::pin(self.perform(write))
    }

    fn watch<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<Revision>,
        sink: Arc<dyn Sink>,
    ) -> BoxFuture<'a, Result<WatchGuard, StoreError>> {
        Box::pin(async move {
            let registration = Registration::new(prefix, sink);
            let newest = self.shared.view().newest();
            let mut position = after;
            loop {
                // Most of a long past is told from here, and only what happened meanwhile while writers wait.
                let page = self.events(prefix, position, REPLAY).await?;
                registration.replay(&page.events)?;
                position = page.through;
                if position >= newest {
                    break;
                }
            }
            let (answer, result) = oneshot::channel();
            self.ask(Command::Watch { registration, after: position, answer }, result).await
        })
    }

    fn events<'a>(
        &'a self,
        prefix: &'a str,
        after: Option<Revision>,
        limit: usize,
    ) -> BoxFuture<'a, Result<EventPage, StoreError>> {
        Box::pin(async move {
            self.shared.check_open()?;
            let prefix = prefix.to_owned();
            self.read_past(move |shared| past::events(shared, &prefix, after, limit)).await
        })
    }

    fn is_stale<'a>(&'a self, entry: &'a Entry) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            let (key, revision) = (entry.key().clone(), entry.revision());
            if self.shared.transformers.transformer_for(key.as_str()).is_identity() {
                return Ok(false);
            }
            self.read_past(move |shared| past::is_stale(shared, &key, revision)).await
        })
    }

    fn current_revision(&self) -> BoxFuture<'_, Result<Option<Revision>, StoreError>> {
        Box::pin(async move {
            self.shared.check_open()?;
            Ok(self.shared.view().newest())
        })
    }

    fn oldest_revision(&self, prefix: &str) -> Option<Revision> {
        self.shared.view().index.oldest(prefix)
    }

    fn progress(&self) -> Progress {
        self.progress.clone()
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let (answer, result) = oneshot::channel();
            self.ask(Command::Compact { revision, answer }, result).await
        })
    }

    fn failure(&self) -> Option<StoreError> {
        self.shared.health.failure()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.shared.closing.store(true, Ordering::Release);
            if let Some(commands) = &self.commands {
                // A queue that is full wakes the sequencer too.
                let _ = commands.try_send(Command::Wake);
            }
            // An error says that the thread is gone, which is what is waited for.
            let _ = self.stopped.clone().wait_for(|stopped| *stopped).await;
        })
    }
}

impl Drop for EmbeddedStore {
    fn drop(&mut self) {
        self.commands = None;
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            // A panic of the thread was told to those who waited for it.
            let _ = thread.join();
        }
    }
}

impl std::fmt::Debug for EmbeddedStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EmbeddedStore").field("newest", &self.shared.view().newest()).finish_non_exhaustive()
    }
}

fn check_size(key: &Key, draft: Option<&Draft>) -> Result<(), StoreError> {
    let key = key.as_str().len();
    if key > MOST_KEY_BYTES {
        return Err(StoreError::TooLarge { what: "key", size: key, limit: MOST_KEY_BYTES });
    }
    match draft.map(|draft| draft.bytes().len()) {
        Some(size) if size > MOST_OBJECT_BYTES => {
            Err(StoreError::TooLarge { what: "object", size, limit: MOST_OBJECT_BYTES })
        }
        _ => Ok(()),
    }
}
