//! Reading everything that etcd holds: when a store is opened, and when it has to begin anew.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use prost::Message;
use revisor_store::Entry;
use revisor_version::Revision;
use tokio::task::JoinHandle;

use crate::EtcdError;
use crate::keyspace::revision_of;
use crate::messages::{KeyValue, RangeOutline, RangeRequest};
use crate::page_size::PageSize;
use crate::shared::Shared;

/// How many keys are understood at once, so that all cores have some to the end, and in how many places that is done at a
/// time: so much may be read and not understood yet.
const PIECE: usize = 1024;
const PLACES: usize = 32;

/// All that etcd held at one revision.
struct Loaded {
    entries: Vec<Arc<Entry>>,
    revision: Option<Revision>,
    /// Which etcd that was.
    cluster: u64,
}

impl Shared {
    /// Reads everything anew and tells sinks so.
    pub(crate) async fn load(self: &Arc<Shared>) -> Result<(), EtcdError> {
        let Loaded { entries, revision, cluster } = self.read_all().await?;
        let oldest = self.find_oldest().await?;
        *self.cluster() = cluster;
        let mut mirror = self.mirror();
        mirror.replace(entries, revision);
        mirror.forget_before(oldest);
        // An etcd that is empty is at its first revision, and whoever knew more has to hear that it is gone.
        self.sinks.replaced(revision.unwrap_or(Revision::FIRST), |prefix| mirror.entries(prefix));
        drop(mirror);
        self.wanted.send_replace(None);
        self.tell_progress(revision);
        self.is_another.send_replace(false);
        Ok(())
    }

    async fn read_all(self: &Arc<Shared>) -> Result<Loaded, EtcdError> {
        let (key, range_end) = self.keys.all();
        let mut size = PageSize::default();
        let mut request = RangeRequest { key, range_end, ..RangeRequest::default() };
        let mut cluster = 0;
        let mut entries = Vec::new();
        let mut understanding = VecDeque::new();
        loop {
            request.limit = size.limit();
            let RangeOutline { header, kvs, more } = match self.client.range_outline(&request).await {
                Err(error) if error.is_too_large() && size.shrink() => continue,
                answer => answer?,
            };
            let header = header.unwrap_or_default();
            if request.revision == 0 {
                request.revision = header.revision;
                cluster = header.cluster_id;
            }
            size.fit(kvs.iter().map(Bytes::len));
            if let Some(last) = kvs.last() {
                request.key = [&key_value(last)?.key[..], b"\0"].concat().into();
            }
            // One page is read while those before are understood.
            for piece in kvs.chunks(PIECE) {
                if understanding.len() == PLACES
                    && let Some(first) = understanding.pop_front()
                {
                    entries.extend(understood(first).await?);
                }
                let (shared, piece) = (self.clone(), piece.to_vec());
                understanding.push_back(tokio::task::spawn_blocking(move || shared.understand(&piece)));
            }
            if !more {
                break;
            }
        }
        for piece in understanding {
            entries.extend(understood(piece).await?);
        }
        Ok(Loaded { entries, revision: revision_of(request.revision), cluster })
    }

    fn understand(&self, kvs: &[Bytes]) -> Result<Vec<Arc<Entry>>, EtcdError> {
        kvs.iter().filter_map(|kv| key_value(kv).map(|kv| self.entry_of(&kv)).transpose()).collect()
    }
}

fn key_value(encoded: &Bytes) -> Result<KeyValue, EtcdError> {
    KeyValue::decode(encoded.clone()).map_err(|error| EtcdError::Unreadable(error.to_string()))
}

async fn understood<T>(piece: JoinHandle<Result<T, EtcdError>>) -> Result<T, EtcdError> {
    piece.await.map_err(|error| EtcdError::Unreadable(error.to_string()))?
}
