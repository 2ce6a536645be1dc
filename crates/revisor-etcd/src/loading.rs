//! Reading everything that etcd holds: when a store is opened, and when it has to begin anew.

use std::sync::Arc;

use revisor_store::Entry;
use revisor_version::Revision;
use tokio::task::JoinHandle;

use crate::EtcdError;
use crate::keyspace::revision_of;
use crate::messages::{RangeRequest, RangeResponse};
use crate::page_size::PageSize;
use crate::shared::Shared;

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
        let mut decoding: Vec<JoinHandle<Vec<Arc<Entry>>>> = Vec::new();
        loop {
            request.limit = size.limit();
            let RangeResponse { header, kvs, more, .. } = match self.client.range(&request).await {
                Err(error) if error.is_too_large() && size.shrink() => continue,
                answer => answer?,
            };
            let header = header.unwrap_or_default();
            if request.revision == 0 {
                request.revision = header.revision;
                cluster = header.cluster_id;
            }
            size.fit(&kvs);
            if let Some(last) = kvs.last() {
                request.key = [&last.key[..], b"\0"].concat().into();
            }
            // One page is read while those before are understood.
            let shared = self.clone();
            decoding.push(tokio::task::spawn_blocking(move || {
                kvs.iter().filter_map(|kv| shared.entry_of(kv)).collect::<Vec<_>>()
            }));
            if !more {
                break;
            }
        }
        let mut entries = Vec::new();
        for page in decoding {
            entries.extend(page.await.map_err(|error| EtcdError::Unreadable(error.to_string()))?);
        }
        Ok(Loaded { entries, revision: revision_of(request.revision), cluster })
    }
}
