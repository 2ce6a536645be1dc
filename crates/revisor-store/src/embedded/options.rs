//! [`EmbeddedOptions`]: what an embedded store is told when it is opened.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::envelope::RecordCipher;
use crate::{Identity, ResourceTransformers};

/// Tells the time. Comes from outside so that a test of retention owns it.
pub type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// Says in whose share of history the writes of a key are: by a part of the key from its beginning.
///
/// The store remembers on disk where the history of a share begins, so the answer for a key may never change.
pub type ShareOf = fn(&str) -> &str;

/// How to open an [`EmbeddedStore`](super::EmbeddedStore).
#[derive(Clone)]
pub struct EmbeddedOptions {
    /// The folder that holds the store, and nothing else. Created if it is not there.
    pub folder: PathBuf,
    /// How much history to keep.
    pub history: HistoryLimits,
    /// Whose share of history a write takes.
    pub share_of: ShareOf,
    /// The clock that writes are stamped with.
    pub clock: Clock,
    /// How objects are encrypted on disk. In memory they are plain.
    pub transformers: Arc<dyn ResourceTransformers>,
    /// What encrypts the store as a whole, if it is to be.
    pub cipher: Option<Arc<dyn RecordCipher>>,
    /// Sizes that trade memory for speed.
    pub tuning: Tuning,
    /// Called on the thread that writes whenever nothing was asked of the store for as long as between two rounds of
    /// housekeeping: here an allocator may be told to give back what this thread has freed.
    pub at_rest: fn(),
}

impl EmbeddedOptions {
    /// The store in `folder`, with the defaults for everything else.
    pub fn new(folder: impl Into<PathBuf>) -> EmbeddedOptions {
        EmbeddedOptions {
            folder: folder.into(),
            history: HistoryLimits::default(),
            share_of: resource_of,
            clock: Arc::new(SystemTime::now),
            transformers: Arc::new(Identity),
            cipher: None,
            tuning: Tuning::default(),
            at_rest: || {},
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

/// How much history a store keeps, on disk; in memory there are three words for each event. History ends at the first
/// limit that it meets; the newest state is always kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryLimits {
    /// Events older than this are forgotten.
    pub age: Duration,
    /// At most so many events are kept.
    pub events: usize,
    /// At most so many bytes of objects that were replaced or deleted, and that only history keeps.
    pub bytes: usize,
    /// Where `events` or `bytes` make history shorter, events younger than this go only when no older ones are left
    /// to those who have more than their share.
    pub floor: Duration,
}

impl Default for HistoryLimits {
    fn default() -> HistoryLimits {
        HistoryLimits {
            age: Duration::from_secs(5 * 60),
            events: 2_000_000,
            bytes: 1 << 30,
            floor: Duration::from_secs(60),
        }
    }
}

/// The part of a key that names its resource, as Kubernetes lays keys out: `/registry/pods/`, with the group if the
/// key has one (`/registry/example.com/widgets/`). Services and their endpoints are the two built-in resources that
/// have a folder in common.
pub fn resource_of(key: &str) -> &str {
    let parts = match key.strip_prefix("/registry/").map(|rest| rest.split('/').next().unwrap_or(rest)) {
        Some(first) if first.contains('.') || first == "services" => 4,
        Some(_) => 3,
        None => 2,
    };
    let slashes = key.bytes().enumerate().filter(|(_, byte)| *byte == b'/').take(parts);
    &key[..slashes.last().map_or(0, |(at, _)| at + 1)]
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
            memtable_bytes: 4 << 20,
            queue_bytes: 64 << 20,
            batch_writes: 1024,
            batch_bytes: 4 << 20,
            housekeeping: Duration::from_secs(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_tells_its_resource() {
        for (key, resource) in [
            ("/registry/pods/default/web", "/registry/pods/"),
            ("/registry/namespaces/default", "/registry/namespaces/"),
            ("/registry/namespaces/", "/registry/namespaces/"),
            ("/registry/services/specs/default/web", "/registry/services/specs/"),
            ("/registry/services/endpoints/default/web", "/registry/services/endpoints/"),
            ("/registry/example.com/widgets/default/a.b", "/registry/example.com/widgets/"),
            ("/registry/example.com/gadgets/a", "/registry/example.com/gadgets/"),
            ("/k/1", "/k/"),
            ("/k", "/"),
            ("k", ""),
            ("", ""),
        ] {
            assert_eq!(resource_of(key), resource, "{key}");
        }
    }
}
