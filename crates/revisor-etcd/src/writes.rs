//! Writes: one transaction each, answered when the stream of changes has brought it back.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use revisor_store::{Change, Committed, Draft, Entry, Event, Expect, Key, StoreError, Write};
use revisor_version::Revision;

use crate::EtcdError;
use crate::keyspace::{number_of, revision_of};
use crate::messages::{
    Compare, CompareResult, CompareTarget, Compared, DeleteRangeRequest, PutRequest, RangeRequest, Request, RequestOp,
    Response, TxnRequest,
};
use crate::shared::Shared;

/// How long a write that etcd has taken is waited for until it comes back. It comes with etcd's own latency, unless the
/// stream of changes is broken; then its writer is answered all the same, and reads wait for the stream.
const RETURN: Duration = Duration::from_secs(10);

/// What etcd takes at most if nobody told it otherwise.
const USUAL_LIMIT: usize = 1_572_864;

impl Shared {
    /// Performs a write.
    pub(crate) async fn perform(self: &Arc<Shared>, write: Write) -> Result<Committed, StoreError> {
        let Write { key, expect, change } = write;
        if is_impossible(expect, &change) {
            // It cannot happen. Who asks for it wants to know what is there after all that was written before.
            self.under_way.settled(&key).await;
            return Err(StoreError::Conflict { current: self.read(&key).await?, key });
        }
        let written = self.transact(&key, expect, &change).await;
        if let Ok(written) = &written {
            // It comes by itself, so nobody need be asked how far etcd is. A stream that is broken is not waited for without
            // end.
            let _ = tokio::time::timeout(RETURN, self.reach(Some(written.revision))).await;
        }
        // Of several who write to one key at once, the first to end takes away what the last one left: what comes back
        // is then decoded.
        self.drafts().remove(&key);
        let written = written?;
        let known = self.mirror().event_at(written.revision, &key).cloned();
        Ok(known.unwrap_or_else(|| written.event(&key, &change)))
    }

    /// What a key holds now, as etcd says.
    pub(crate) async fn read(&self, key: &Key) -> Result<Option<Arc<Entry>>, StoreError> {
        let request = RangeRequest { key: self.keys.to_etcd(key.as_str()), ..RangeRequest::default() };
        let response = self.client.range(&request).await?;
        Ok(response.kvs.first().and_then(|kv| self.shared_entry(kv)))
    }

    async fn transact(&self, key: &Key, expect: Expect, change: &Change) -> Result<Written, StoreError> {
        let place = self.keys.to_etcd(key.as_str());
        let (old, known) = {
            let mirror = self.mirror();
            (mirror.get(key.as_str()).cloned(), mirror.revision())
        };
        let request = match change {
            Change::Put(draft) | Change::Mark(draft) => {
                let value = self.encode(key, draft)?;
                let lease = self.lease_for(key).await?;
                Request::Put(PutRequest { key: place.clone(), value, lease })
            }
            Change::Delete => Request::Delete(DeleteRangeRequest { key: place.clone() }),
        };
        let size = match &request {
            Request::Put(put) => put.value.len(),
            _ => 0,
        };
        let compare = match expect {
            Expect::Absent => Some(compare(&place, CompareTarget::Mod, CompareResult::Equal, Compared::ModRevision(0))),
            Expect::At(revision) => {
                let at = Compared::ModRevision(number_of(revision));
                Some(compare(&place, CompareTarget::Mod, CompareResult::Equal, at))
            }
            Expect::Anything if change.needs_entry() => {
                Some(compare(&place, CompareTarget::Version, CompareResult::Greater, Compared::Version(0)))
            }
            Expect::Anything => None,
        };
        let look = Request::Range(RangeRequest { key: place, ..RangeRequest::default() });
        let transaction = TxnRequest {
            compare: compare.into_iter().collect(),
            success: vec![RequestOp { request: Some(request) }],
            failure: vec![RequestOp { request: Some(look) }],
        };
        let response = match self.client.txn(&transaction).await {
            Ok(response) => response,
            Err(error) => return Err(self.refusal(error, size).await),
        };
        if !response.succeeded {
            let found = response.responses.into_iter().find_map(|op| match op.response {
                Some(Response::Range(range)) => range.kvs.into_iter().next(),
                _ => None,
            });
            let current = found.and_then(|kv| self.shared_entry(&kv));
            return Err(StoreError::Conflict { key: key.clone(), current });
        }
        let revision = response.header.and_then(|header| revision_of(header.revision));
        let revision = revision.ok_or_else(|| EtcdError::Unreadable("a write has no revision".to_owned()))?;
        if Some(revision) <= known {
            self.refuse_what_is_known(Some(revision));
        }
        Ok(Written { revision, old })
    }

    /// What is stored of an object. It is remembered until it comes back by the stream of changes.
    fn encode(&self, key: &Key, draft: &Draft) -> Result<Bytes, StoreError> {
        let value = self.codec.encode(key, draft).map_err(|problem| StoreError::Backend(Arc::from(problem)))?;
        self.drafts().insert(key.clone(), (value.clone(), draft.clone()));
        Ok(value)
    }

    async fn refusal(&self, error: EtcdError, size: usize) -> StoreError {
        if error.is_no_space() {
            let status = self.client.status(Duration::from_secs(1)).await.unwrap_or_default();
            let [used, quota] = [status.db_size, status.db_size_quota].map(|size| u64::try_from(size).unwrap_or(0));
            return StoreError::NoSpace { used, quota };
        }
        if error.is_too_large() {
            return StoreError::TooLarge { what: "object", size, limit: USUAL_LIMIT };
        }
        error.into()
    }
}

/// Whether a write asks for something to be there and not to be there.
pub(crate) fn is_impossible(expect: Expect, change: &Change) -> bool {
    expect == Expect::Absent && change.needs_entry()
}

/// A write that etcd has taken.
struct Written {
    revision: Revision,
    old: Option<Arc<Entry>>,
}

impl Written {
    /// The event that it will come back as.
    fn event(self, key: &Key, change: &Change) -> Event {
        let new = change.draft().map(|draft| Arc::new(Entry::new(key.clone(), self.revision, draft)));
        Event { revision: self.revision, time: SystemTime::UNIX_EPOCH, old: self.old, new }
    }
}

fn compare(key: &Bytes, target: CompareTarget, result: CompareResult, compared: Compared) -> Compare {
    Compare { result: result as i32, target: target as i32, key: key.clone(), compared: Some(compared) }
}
