//! [`EmbeddedOptions`]: what an embedded store is told when it is opened.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Tells the time. Comes from outside so that a test of retention owns it.
pub type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// How to open an [`EmbeddedStore`](super::EmbeddedStore).
#[derive(Clone)]
pub struct EmbeddedOptions {
    /// The folder that holds the store, and nothing else. Created if it is not there.
    pub folder: PathBuf,
    /// How much history to keep.
    pub history: HistoryLimits,
    /// The clock that writes are stamped with.
    pub clock: Clock,
    /// Sizes that trade memory for speed.
    pub tuning: Tuning,
}

impl EmbeddedOptions {
    /// The store in `folder`, with the defaults for everything else.
    pub fn new(folder: impl Into<PathBuf>) -> EmbeddedOptions {
        EmbeddedOptions {
            folder: folder.into(),
            history: HistoryLimits::default(),
            clock: Arc::new(SystemTime::now),
            tuning: Tuning::default(),
        }
    }
}

impl fmt::Debug for EmbeddedOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedOptions")
            .field("folder", &self.folder)
            .field("history", &self.history)
            .field("tuning", &self.tuning)
            .finish_non_exhaustive()
    }
}

/// How much history a store keeps. History ends at the first limit that it meets; the newest state is always kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryLimits {
    /// Events older than this are forgotten.
    pub age: Duration,
    /// At most so many events are kept.
    pub events: usize,
    /// At most so many bytes of objects that were replaced or deleted, and that only history keeps alive.
    pub bytes: usize,
}

impl Default for HistoryLimits {
    fn default() -> HistoryLimits {
        HistoryLimits { age: Duration::from_secs(5 * 60), events: 100_000, bytes: 64 << 20 }
    }
}

/// Sizes of queues and buffers. The defaults suit a server; tests make them small to reach the edges quickly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuning {
    /// The engine writes a table when so many bytes were written to memory. Fixed when the store is created.
    pub memtable_bytes: u64,
    /// At most so many bytes of writes wait for the sequencer; a write counts for 16 KiB at least.
    pub queue_bytes: usize,
    /// At most so many writes share one sync.
    pub batch_writes: u16,
    /// A batch takes no further write when it has so many bytes.
    pub batch_bytes: usize,
    /// How often to look for history that has become too old.
    pub housekeeping: Duration,
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning {
            memtable_bytes: 8 << 20,
            queue_bytes: 64 << 20,
            batch_writes: 1024,
            batch_bytes: 4 << 20,
            housekeeping: Duration::from_secs(1),
        }
    }
}
