//! [`Reading`]: all that a store has in an etcd, at one revision, page by page; from the etcd itself or from a snapshot of
//! it. For those who move state rather than serve it.

use std::sync::Arc;

use bytes::Bytes;
use revisor_store::Key;
use revisor_version::Revision;

use crate::keyspace::{Keyspace, number_of, revision_of};
use crate::messages::{KeyValue, RangeRequest};
use crate::page_size::PageSize;
use crate::snapshot::{Snapshot, SnapshotError};
use crate::store::OpenError;
use crate::{Client, EtcdError, EtcdOptions};

/// Something that is stored.
#[derive(Debug, Clone)]
pub struct Stored {
    /// Where, as the store names it; or, if that is no key of a store, as etcd does.
    pub key: Result<Key, Bytes>,
    /// The write that made it so.
    pub revision: Revision,
    /// What is stored.
    pub value: Bytes,
}

/// Why stored state could not be read.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ReadingError {
    /// etcd did not answer.
    #[error(transparent)]
    Etcd(#[from] EtcdError),
    /// etcd has let go of the state that was being read.
    #[error("etcd has compacted revision {0} while it was read: begin again, when it does not compact so soon")]
    Compacted(Revision),
    /// The file cannot be read.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
}

/// One state of a store, to be read out of an etcd as often as is needed.
pub struct Reading {
    source: Source,
    keys: Keyspace,
    revision: Option<Revision>,
    count: u64,
}

enum Source {
    Live(Client),
    Snapshot(Arc<Snapshot>),
}

/// What begins with some prefix, on its way out of an etcd.
pub struct Pages<'r> {
    reading: &'r Reading,
    /// Where the next page begins; `None` behind the last.
    next: Option<Bytes>,
    end: Bytes,
    size: PageSize,
}

impl Reading {
    /// The newest state of an etcd. Others may go on writing to it.
    ///
    /// # Errors
    /// If the options make no sense, or etcd does not answer.
    pub async fn live(options: &EtcdOptions) -> Result<Reading, OpenError> {
        let client = Client::new(&options.servers, &options.tls)?;
        let keys = Keyspace::new(&options.root, &options.prefix);
        let (key, range_end) = keys.all();
        let request = RangeRequest { key, range_end, count_only: true, ..RangeRequest::default() };
        let answer = client.range(&request).await?;
        let revision = revision_of(answer.header.unwrap_or_default().revision);
        let count = u64::try_from(answer.count).unwrap_or_default();
        Ok(Reading { source: Source::Live(client), keys, revision, count })
    }

    /// What a snapshot holds.
    pub fn snapshot(snapshot: Snapshot, root: &str, prefix: &str) -> Reading {
        let keys = Keyspace::new(root, prefix);
        let (start, end) = keys.all();
        let (revision, count) = (snapshot.revision(), snapshot.count(&start, &end) as u64);
        Reading { source: Source::Snapshot(Arc::new(snapshot)), keys, revision, count }
    }

    /// The revision that is read; `None` if nothing was ever written.
    pub fn revision(&self) -> Option<Revision> {
        self.revision
    }

    /// How many keys there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Begins to read the keys that begin with `prefix`, in order.
    pub fn pages(&self, prefix: &str) -> Pages<'_> {
        let (start, end) = self.keys.range_of(prefix);
        Pages { reading: self, next: Some(start), end, size: PageSize::default() }
    }

    fn stored(&self, kv: KeyValue) -> Option<Stored> {
        let key = self.keys.key_at(&kv.key).ok_or(kv.key);
        // etcd begins to count at 1, and its first write is 2.
        Some(Stored { key, revision: revision_of(kv.mod_revision)?, value: kv.value })
    }
}

impl Pages<'_> {
    /// The next keys, in order; nothing behind the last.
    ///
    /// # Errors
    /// Why they cannot be read.
    pub async fn next(&mut self) -> Result<Option<Vec<Stored>>, ReadingError> {
        let (Some(from), Some(revision)) = (self.next.take(), self.reading.revision) else { return Ok(None) };
        let found = match &self.reading.source {
            Source::Live(client) => {
                let mut request = RangeRequest {
                    key: from,
                    range_end: self.end.clone(),
                    revision: number_of(revision),
                    ..RangeRequest::default()
                };
                loop {
                    request.limit = self.size.limit();
                    match client.range(&request).await {
                        Ok(answer) => break answer.kvs,
                        Err(error) if error.is_too_large() && self.size.shrink() => {}
                        Err(error) if error.is_compacted() => return Err(ReadingError::Compacted(revision)),
                        Err(error) => return Err(error.into()),
                    }
                }
            }
            Source::Snapshot(snapshot) => {
                let (snapshot, end) = (snapshot.clone(), self.end.clone());
                let limit = usize::try_from(self.size.limit()).unwrap_or(usize::MAX);
                let read = tokio::task::spawn_blocking(move || snapshot.range(&from, &end, limit)).await;
                read.map_err(|error| SnapshotError::Io(error.to_string().into()))??
            }
        };
        let Some(last) = found.last() else { return Ok(None) };
        self.size.fit(found.iter().map(|kv| kv.key.len() + kv.value.len()));
        self.next = Some([&last.key[..], b"\0"].concat().into());
        Ok(Some(found.into_iter().filter_map(|kv| self.reading.stored(kv)).collect()))
    }
}

impl std::fmt::Debug for Reading {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reading").field("revision", &self.revision).field("count", &self.count).finish_non_exhaustive()
    }
}
