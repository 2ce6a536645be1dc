//! [`Log`]: the records on disk, by way of the engine (fjall).
//!
//! One keyspace, `log`, holds a [`Record`] per revision, so every object is written once and in order. The keyspace
//! `meta` holds the [`Mark`]. Nothing else in this crate knows the engine.
//!
//! What the engine itself notices: a block of a table whose checksum does not fit, a table that is missing. What it
//! does not notice: a journal that lost its tail, because it takes that for the mark of a crash, and a manifest that
//! changed; see [`journal`](super::journal), [`manifest`](super::manifest) and [`Folder`](super::folder::Folder).

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use fjall::config::{BlockSizePolicy, CompressionPolicy, FilterPolicy};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use revisor_version::Revision;

use super::OpenError;
use super::envelope::{self, Cipher};
use super::mark::Mark;
use super::record::{Record, told_place};

const MARK: &[u8] = b"mark";
/// From so many buffers that wait to be written on, the engine has its writers sleep for a tenth of a second at a time.
const STALLING_BUFFERS: usize = 4;
/// From so many tables that wait to be merged on, it has them turn in circles.
const STALLING_TABLES: usize = 20;
/// About how many bytes are encrypted anew in one batch.
const RESEALED_AT_ONCE: usize = 4 << 20;

/// The open log.
pub(super) struct Log {
    database: Database,
    records: Keyspace,
    meta: Keyspace,
    /// Writes wait when this many bytes are in memory only.
    most_buffered: u64,
    /// Encrypts all of it, if that was asked for.
    cipher: Cipher,
}

impl Log {
    /// Opens the engine in `folder`, or makes a new one if there is none.
    pub(super) fn open(folder: &Path, memtable_bytes: u64, cipher: Cipher) -> Result<Log, OpenError> {
        guarded(folder, || {
            let database = Database::builder(folder)
                // The newest objects are served from memory; blocks are read at open, by the engine's compaction, and
                // by those who look at the past, one after the other.
                .cache_size(1 << 20)
                .max_cached_files(Some(128))
                .max_journaling_size(128 << 20)
                // One thread writes tables while others merge them. Of two, the engine has one turn in a tight circle for as
                // long as the other merges, because it hands back what it leaves to others; the third takes that.
                .worker_threads(3)
                .manual_journal_persist(true)
                .open()?;
            let options = || {
                KeyspaceCreateOptions::default()
                    .data_block_compression_policy(CompressionPolicy::disabled())
                    .filter_policy(FilterPolicy::disabled())
                    .expect_point_read_hits(true)
                    .manual_journal_persist(true)
            };
            let records = database.keyspace("log", || {
                options().max_memtable_size(memtable_bytes).data_block_size_policy(BlockSizePolicy::all(32 << 10))
            })?;
            let meta = database.keyspace("meta", || options().max_memtable_size(1 << 20))?;
            let most_buffered = memtable_bytes.saturating_mul(4).max(32 << 20);
            Ok(Log { database, records, meta, most_buffered, cipher })
        })
    }

    /// Where history begins.
    pub(super) fn mark(&self) -> Result<Mark, OpenError> {
        let folder = self.meta.path();
        let bytes = guarded(folder, || self.meta.get(MARK))?;
        let Some(bytes) = bytes else { return Ok(Mark::default()) };
        let (bytes, _) = envelope::open(&self.cipher, 0, &bytes)
            .map_err(|what| OpenError::sealed(format!("the mark of its history: {what}")))?;
        Mark::decode(&bytes).map_err(|what| OpenError::damaged(folder, what))
    }

    /// Shows every record to `visit`, in order of revisions.
    pub(super) fn scan(
        &self,
        mut visit: impl FnMut(Revision, Record) -> Result<(), OpenError>,
    ) -> Result<(), OpenError> {
        let folder = self.records.path();
        let mut items = guarded(folder, || Ok(self.records.iter()))?;
        let about = self.records.approximate_len();
        let mut reported = Instant::now();
        for count in 0usize.. {
            let Some((key, value)) = guarded(folder, || items.next().map(fjall::Guard::into_inner).transpose())? else {
                break;
            };
            let revision = <[u8; 8]>::try_from(&key[..]).ok().and_then(|key| Revision::new(u64::from_be_bytes(key)));
            let revision =
                revision.ok_or_else(|| OpenError::damaged(folder, "it holds a record without a revision"))?;
            let (value, _) = envelope::open(&self.cipher, revision.get(), &value)
                .map_err(|what| OpenError::sealed(format!("record {revision}: {what}")))?;
            let record = Record::decode(revision, &value)
                .map_err(|what| OpenError::damaged(folder, format!("record {revision}: {what}")))?;
            visit(revision, record)?;
            if count % 1024 == 0 && reported.elapsed() >= Duration::from_secs(1) {
                tracing::info!("opened {count} of about {about} records");
                reported = Instant::now();
            }
        }
        Ok(())
    }

    /// Encrypts what is plain, or encrypted with another key than new records are. Answers how much that was.
    pub(super) fn reseal(&self, mark: &Mark) -> Result<usize, OpenError> {
        if self.cipher.is_none() {
            return Ok(0);
        }
        let folder = self.records.path();
        let failed = |what: Arc<str>| OpenError::io("write", folder)(std::io::Error::other(what.to_string()));
        let mut items = guarded(folder, || Ok(self.records.iter()))?;
        let (mut stale, mut bytes, mut count) = (Vec::new(), 0, 0);
        while let Some((key, value)) = guarded(folder, || items.next().map(fjall::Guard::into_inner).transpose())? {
            let revision = <[u8; 8]>::try_from(&key[..]).ok().and_then(|key| Revision::new(u64::from_be_bytes(key)));
            let Some(revision) = revision else { continue };
            let (plain, is_stale) = envelope::open(&self.cipher, revision.get(), &value).map_err(OpenError::sealed)?;
            if !is_stale {
                continue;
            }
            bytes += plain.len();
            count += 1;
            stale.push((revision, plain.into_owned()));
            if bytes >= RESEALED_AT_ONCE {
                bytes = 0;
                self.append(std::mem::take(&mut stale)).map_err(failed)?;
            }
        }
        if count > 0 {
            self.append(stale).map_err(failed)?;
            self.forget(mark, &[]).map_err(failed)?;
            self.sync().map_err(failed)?;
            // What was there before is still in old tables.
            guarded(folder, || self.records.major_compact())?;
        }
        Ok(count)
    }

    /// How many bytes the engine's files take.
    pub(super) fn disk_bytes(&self) -> u64 {
        // Where it cannot be told, nothing is told.
        self.database.disk_space().unwrap_or(0)
    }

    /// Where the records are, for those who report on them.
    pub(super) fn records_folder(&self) -> &Path {
        self.records.path()
    }

    /// Makes `records` durable, all or none. After a failure the log takes no more.
    pub(super) fn append(&self, records: Vec<(Revision, Vec<u8>)>) -> Result<(), Arc<str>> {
        let seal = |(revision, bytes): (Revision, Vec<u8>)| {
            let place = told_place(&bytes);
            envelope::seal(&self.cipher, revision.get(), place, bytes).map(|bytes| (revision, bytes))
        };
        let sealed: Result<Vec<_>, _> = records.into_iter().map(seal).collect();
        let sealed = sealed.map_err(|error| Arc::from(error.to_string()))?;
        self.attempt(|| {
            self.wait_for_room()?;
            // Enough to survive a crash of the machine: the journal's length is data in the sense of fdatasync.
            let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
            for (revision, bytes) in sealed {
                batch.insert(&self.records, revision.get().to_be_bytes(), bytes);
            }
            batch.commit()
        })
    }

    /// The record of `revision`, if it is there.
    pub(super) fn read(&self, revision: Revision) -> Result<Option<Record>, Arc<str>> {
        let mut found = None;
        self.attempt(|| {
            found = self.records.get(revision.get().to_be_bytes())?;
            Ok(())
        })?;
        let decode = |bytes: fjall::Slice| {
            let (bytes, _) = envelope::open(&self.cipher, revision.get(), &bytes)?;
            Record::decode(revision, &bytes).map_err(str::to_owned)
        };
        found.map(decode).transpose().map_err(|what| format!("record {revision}: {what}").into())
    }

    /// Moves the mark and removes `dead` records, all or nothing. Not made durable on its own: to lose it in a crash
    /// leaves more history than asked for, and the next removal is after it in the journal.
    pub(super) fn forget(&self, mark: &Mark, dead: &[Revision]) -> Result<(), Arc<str>> {
        let mark = envelope::seal(&self.cipher, 0, 0, mark.encode()).map_err(|error| Arc::from(error.to_string()))?;
        self.attempt(|| {
            self.wait_for_room()?;
            let mut batch = self.database.batch().durability(Some(PersistMode::Buffer));
            for revision in dead {
                batch.remove(&self.records, revision.get().to_be_bytes());
            }
            batch.insert(&self.meta, MARK, mark);
            batch.commit()
        })
    }

    /// Makes everything durable.
    pub(super) fn sync(&self) -> Result<(), Arc<str>> {
        self.attempt(|| self.database.persist(PersistMode::SyncAll))
    }

    /// Whether the engine still takes writes: its own threads may have met a failure that no writer has heard of.
    pub(super) fn check(&self) -> Result<(), Arc<str>> {
        self.attempt(|| self.database.persist(PersistMode::Buffer))
    }

    /// Waits while the engine's own threads are behind. The engine would wait as well, but longer than it has to, and
    /// without an end when those threads have died of a full disk; so it is never let come to that.
    fn wait_for_room(&self) -> fjall::Result<()> {
        while self.records.sealed_memtable_count() + 1 >= STALLING_BUFFERS
            || self.records.l0_table_count() + 2 >= STALLING_TABLES
            || self.database.write_buffer_size() > self.most_buffered
        {
            // Says so if the engine has failed.
            self.database.persist(PersistMode::Buffer)?;
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Has the engine do something; a panic in it is a failure like others.
    fn attempt(&self, what: impl FnOnce() -> fjall::Result<()>) -> Result<(), Arc<str>> {
        let cause = match catch_unwind(AssertUnwindSafe(what)) {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(fjall::Error::Io(error))) => error.to_string(),
            Ok(Err(fjall::Error::Poisoned)) => "the engine could not write its files".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(panic) => panic_text(&*panic),
        };
        Err(cause.into())
    }
}

/// Runs a read of the engine in `folder`. What damaged files make it say, or make it panic with, becomes an error
/// that names where they are.
fn guarded<T>(folder: &Path, read: impl FnOnce() -> fjall::Result<T>) -> Result<T, OpenError> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(explain(folder, error)),
        Err(panic) => Err(OpenError::damaged(folder, panic_text(&*panic))),
    }
}

fn explain(folder: &Path, error: fjall::Error) -> OpenError {
    use std::io::ErrorKind;
    let keyspaces = || folder.join("keyspaces");
    let place = |inner: PathBuf| if inner.exists() { inner } else { folder.to_owned() };
    match error {
        fjall::Error::Locked => OpenError::InUse { folder: folder.to_owned() },
        // What the operating system says about files that should be there, or be longer, is damage; the rest is not.
        fjall::Error::Io(error)
            if !matches!(
                error.kind(),
                ErrorKind::NotFound
                    | ErrorKind::UnexpectedEof
                    | ErrorKind::InvalidData
                    | ErrorKind::InvalidInput
                    | ErrorKind::AlreadyExists
            ) =>
        {
            OpenError::Io { doing: "read", path: folder.to_owned(), source: error }
        }
        fjall::Error::Io(error) => OpenError::damaged(folder, error.to_string()),
        fjall::Error::InvalidVersion(_) => {
            OpenError::damaged(place(folder.join("version")), "it names no known format of the engine")
        }
        fjall::Error::JournalRecovery(error) => {
            OpenError::damaged(folder, format!("a journal (*.jnl) in it cannot be read: {error:?}"))
        }
        fjall::Error::Storage(error) => {
            OpenError::damaged(place(keyspaces()), format!("a table in it cannot be read: {error:?}"))
        }
        error => OpenError::damaged(folder, format!("{error:?}")),
    }
}

/// What a panic said.
pub(super) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("the engine panicked").to_owned()
}
