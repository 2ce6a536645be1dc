//! The compactor: history of etcd is forgotten at a pace, by one of the servers for all of them.
//!
//! All of them, and the original's, agree by one key: whoever finds its version as it was a while ago notes where etcd
//! was then, and compacts to there; the others find that somebody was faster. So history is kept for one to two rests,
//! and compacted once for each, however many servers there are (upstream: `compact` in `storage/etcd3`).

use std::sync::Weak;
use std::time::Duration;

use crate::EtcdError;
use crate::keyspace::revision_of;
use crate::messages::{
    Compare, CompareResult, CompareTarget, Compared, PutRequest, RangeRequest, Request, RequestOp, Response, TxnRequest,
};
use crate::shared::Shared;

/// Where it is noted. Not below any prefix, because etcd has one history.
pub(crate) const COMPACT_KEY: &str = "compact_rev_key";

/// Compacts every `rest` until the store is gone.
pub(crate) async fn run(shared: Weak<Shared>, rest: Duration) {
    let mut known = Known::default();
    loop {
        tokio::time::sleep(rest).await;
        let Some(shared) = shared.upgrade() else { return };
        match compact(&shared, known).await {
            Ok(next) => known = next,
            Err(error) => tracing::warn!(%error, "etcd could not be compacted"),
        }
    }
}

/// What was known of the key, and of etcd, at the last look.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    version: i64,
    revision: i64,
}

async fn compact(shared: &Shared, known: Known) -> Result<Known, EtcdError> {
    let noted = PutRequest { key: COMPACT_KEY.into(), value: known.revision.to_string().into(), lease: 0 };
    let look = RangeRequest { key: COMPACT_KEY.into(), ..RangeRequest::default() };
    let transaction = TxnRequest {
        compare: vec![Compare {
            result: CompareResult::Equal as i32,
            target: CompareTarget::Version as i32,
            key: COMPACT_KEY.into(),
            compared: Some(Compared::Version(known.version)),
        }],
        success: vec![RequestOp { request: Some(Request::Put(noted)) }],
        failure: vec![RequestOp { request: Some(Request::Range(look)) }],
    };
    let response = shared.client.txn(&transaction).await?;
    let revision = response.header.unwrap_or_default().revision;
    if !response.succeeded {
        let version = response.responses.into_iter().find_map(|op| match op.response {
            Some(Response::Range(range)) => range.kvs.first().map(|kv| kv.version),
            _ => None,
        });
        return Ok(Known { version: version.unwrap_or_default(), revision });
    }
    // The first who comes only notes that somebody is there.
    if known.revision > 0 {
        match shared.client.compact(known.revision).await {
            Ok(()) => shared.note_oldest(revision_of(known.revision)),
            Err(error) if error.is_compacted() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Known { version: known.version + 1, revision })
}
