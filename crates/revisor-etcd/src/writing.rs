//! [`Writing`]: puts the state of a store into an etcd that no server uses yet.
//!
//! Each object is a write of its own, as those of servers are: what several keys share a revision of could not be told
//! apart by it. Many are under way at once, and one whose answer was lost is tried again.

use std::time::Duration;

use bytes::Bytes;
use revisor_store::Key;
use revisor_version::Revision;

use crate::client::PATIENCE;
use crate::keyspace::{Keyspace, number_of, revision_of};
use crate::messages::{
    Compare, CompareResult, CompareTarget, Compared, DeleteRangeRequest, PutRequest, RangeRequest, Request, RequestOp,
    Response, TxnRequest, TxnResponse,
};
use crate::store::OpenError;
use crate::{Client, EtcdError, EtcdOptions};

/// How many keys are removed at once: etcd takes 128 in a transaction.
const PAGE: i64 = 100;

/// How often a write is tried whose outcome is not known, and how long is waited in between.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);

/// How many objects hang on one lease at most (upstream: `defaultLeaseMaxObjectCount`).
const MOST_ON_LEASE: usize = 1000;

/// The key that is written to, outside of those of servers, where only the revision matters.
const PADDING: &[u8] = b"revisor/padding";

/// Why something could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WritingError {
    /// etcd did not do it.
    #[error(transparent)]
    Etcd(#[from] EtcdError),
    /// Somebody else wrote there meanwhile.
    #[error("{0} is there already: somebody writes to the same keys")]
    Taken(Key),
}

/// What an etcd holds before anything is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// How many keys are below the prefix.
    pub keys: u64,
    /// The newest revision.
    pub revision: u64,
}

/// An etcd that is being filled.
pub struct Writing {
    client: Client,
    keys: Keyspace,
}

/// The lease on which the objects hang that are written next.
#[derive(Debug, Default)]
pub struct SharedLease {
    id: i64,
    users: usize,
}

impl Writing {
    /// Nothing is asked of etcd yet.
    ///
    /// # Errors
    /// If the options make no sense.
    pub fn new(options: &EtcdOptions) -> Result<Writing, OpenError> {
        let client = Client::new(&options.servers, &options.tls)?;
        Ok(Writing { client, keys: Keyspace::new(&options.root, &options.prefix) })
    }

    /// What is there.
    ///
    /// # Errors
    /// If etcd does not answer.
    pub async fn found(&self) -> Result<Found, WritingError> {
        let (key, range_end) = self.keys.all();
        let request = RangeRequest { key, range_end, count_only: true, ..RangeRequest::default() };
        let answer = self.client.range(&request).await?;
        let revision = answer.header.unwrap_or_default().revision;
        Ok(Found {
            keys: u64::try_from(answer.count).unwrap_or_default(),
            revision: u64::try_from(revision).unwrap_or_default(),
        })
    }

    /// Removes everything below the prefix, and tells how many keys go with each step.
    ///
    /// # Errors
    /// If etcd does not answer.
    pub async fn clear(&self, mut removed: impl FnMut(u64)) -> Result<(), WritingError> {
        loop {
            let (key, range_end) = self.keys.all();
            let request = RangeRequest { key, range_end, limit: PAGE, keys_only: true, ..RangeRequest::default() };
            let answer = self.client.range(&request).await?;
            let count = answer.kvs.len() as u64;
            if count == 0 {
                return Ok(());
            }
            self.delete(answer.kvs.into_iter().map(|kv| kv.key)).await?;
            removed(count);
        }
    }

    /// A lease for one more object that ends after so long. Objects share it.
    ///
    /// # Errors
    /// If etcd does not grant one.
    pub async fn lease(&self, shared: &mut SharedLease, time: Duration) -> Result<i64, WritingError> {
        if shared.id == 0 || shared.users >= MOST_ON_LEASE {
            let granted = self.client.grant(i64::try_from(time.as_secs()).unwrap_or(i64::MAX).max(1)).await?;
            if !granted.error.is_empty() || granted.id == 0 {
                return Err(EtcdError::Unreadable(format!("no lease was granted: {}", granted.error)).into());
            }
            *shared = SharedLease { id: granted.id, users: 0 };
        }
        shared.users += 1;
        Ok(shared.id)
    }

    /// Stores an object where nothing is. With a lease other than 0 it goes when that ends.
    ///
    /// # Errors
    /// If etcd does not take it, or something is there.
    pub async fn create(&self, key: &Key, value: Bytes, lease: i64) -> Result<(), WritingError> {
        let at = self.keys.to_etcd(key.as_str());
        let is_absent = Compare {
            result: CompareResult::Equal as i32,
            target: CompareTarget::Version as i32,
            key: at.clone(),
            compared: Some(Compared::Version(0)),
        };
        let request = TxnRequest {
            compare: vec![is_absent],
            success: vec![operation(Request::Put(PutRequest { key: at.clone(), value: value.clone(), lease }))],
            failure: vec![operation(Request::Range(RangeRequest { key: at, ..RangeRequest::default() }))],
        };
        let answer = self.perform(&request).await?;
        // Of two attempts the first may have done it.
        if answer.succeeded || read(&answer).is_some_and(|there| there == value) {
            return Ok(());
        }
        Err(WritingError::Taken(key.clone()))
    }

    /// Writes to no purpose but that etcd's revision goes on by one.
    ///
    /// # Errors
    /// If etcd does not answer.
    pub async fn pad(&self) -> Result<(), WritingError> {
        let put = PutRequest { key: Bytes::from_static(PADDING), value: Bytes::new(), lease: 0 };
        let request = TxnRequest { success: vec![operation(Request::Put(put))], ..TxnRequest::default() };
        self.perform(&request).await.map(drop).map_err(WritingError::from)
    }

    /// Ends the padding, and forgets all history: what was before it is of no use to anybody. Answers the revision at which
    /// history begins.
    ///
    /// # Errors
    /// If etcd does not answer.
    pub async fn settle(&self) -> Result<Option<Revision>, WritingError> {
        self.delete([Bytes::from_static(PADDING)]).await?;
        let revision = revision_of(i64::try_from(self.found().await?.revision).unwrap_or(i64::MAX));
        if let Some(revision) = revision {
            match self.client.compact(number_of(revision)).await {
                Err(error) if !error.is_compacted() => return Err(error.into()),
                _ => {}
            }
        }
        Ok(revision)
    }

    async fn delete(&self, keys: impl IntoIterator<Item = Bytes>) -> Result<(), WritingError> {
        let delete = |key| operation(Request::Delete(DeleteRangeRequest { key }));
        let request = TxnRequest { success: keys.into_iter().map(delete).collect(), ..TxnRequest::default() };
        self.perform(&request).await.map(drop).map_err(WritingError::from)
    }

    /// Tries again what nobody knows the outcome of: everything here may be done twice.
    async fn perform(&self, request: &TxnRequest) -> Result<TxnResponse, EtcdError> {
        let mut attempt = 1;
        loop {
            match self.client.txn(request).await {
                Err(error) if attempt < ATTEMPTS && (error.may_pass() || matches!(error, EtcdError::TimedOut)) => {
                    tokio::time::sleep((PAUSE * 2_u32.pow(attempt)).min(PATIENCE)).await;
                    attempt += 1;
                }
                done => return done,
            }
        }
    }
}

impl std::fmt::Debug for Writing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writing").field("keys", &self.keys).finish_non_exhaustive()
    }
}

fn operation(request: Request) -> RequestOp {
    RequestOp { request: Some(request) }
}

/// What a transaction that did not happen found instead.
fn read(answer: &TxnResponse) -> Option<Bytes> {
    match answer.responses.first()?.response.as_ref()? {
        Response::Range(range) => range.kvs.first().map(|kv| kv.value.clone()),
        _ => None,
    }
}
