//! [`Client`]: the calls of etcd's API that are used here, each bounded in time.

use std::time::Duration;

use bytes::Bytes;

use crate::EtcdError;
use crate::endpoint::{EndpointError, TlsFiles};
use crate::grpc::{PendingReceiving, Receiving, Sending};
use crate::members::{Members, Repeat};
use crate::messages::{
    CompactionRequest, CompactionResponse, LeaseGrantRequest, LeaseGrantResponse, RangeOutline, RangeRequest,
    RangeResponse, StatusRequest, StatusResponse, TxnRequest, TxnResponse, WatchCreateRequest, WatchProgressRequest,
    WatchRequest, WatchResponse, WatchUnion,
};

/// How long a call may take if nothing else is said. etcd itself gives up a write after about as long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// A client of one etcd, however many members it has.
pub struct Client {
    members: Members,
}

impl Client {
    /// A client of the etcd at these URLs. It connects when it is first asked something.
    pub fn new(urls: &[String], files: &TlsFiles) -> Result<Client, EndpointError> {
        Ok(Client { members: Members::new(urls, files)? })
    }

    /// Reads keys. What was acknowledged before is seen, whoever wrote it, unless the request says otherwise.
    pub async fn range(&self, request: &RangeRequest) -> Result<RangeResponse, EtcdError> {
        self.range_within(request, PATIENCE).await
    }

    /// The same, in so much time.
    pub async fn range_within(&self, request: &RangeRequest, timeout: Duration) -> Result<RangeResponse, EtcdError> {
        self.members.call("/etcdserverpb.KV/Range", request, Repeat::Harmless, timeout).await
    }

    /// Reads keys and leaves it to the caller to understand them: of a large page that takes a while.
    pub(crate) async fn range_outline(&self, request: &RangeRequest) -> Result<RangeOutline, EtcdError> {
        self.members.call("/etcdserverpb.KV/Range", request, Repeat::Harmless, PATIENCE).await
    }

    /// Compares, and then writes or reads.
    pub async fn txn(&self, request: &TxnRequest) -> Result<TxnResponse, EtcdError> {
        self.members.call("/etcdserverpb.KV/Txn", request, Repeat::Never, PATIENCE).await
    }

    /// Forgets history before a revision.
    pub async fn compact(&self, revision: i64) -> Result<(), EtcdError> {
        let request = CompactionRequest { revision, physical: false };
        let done: Result<CompactionResponse, _> =
            self.members.call("/etcdserverpb.KV/Compact", &request, Repeat::Harmless, PATIENCE).await;
        done.map(drop)
    }

    /// A lease that ends by itself after so many seconds.
    pub async fn grant(&self, seconds: i64) -> Result<LeaseGrantResponse, EtcdError> {
        let request = LeaseGrantRequest { ttl: seconds, id: 0 };
        self.members.call("/etcdserverpb.Lease/LeaseGrant", &request, Repeat::Harmless, PATIENCE).await
    }

    /// What one of the members says of itself.
    pub async fn status(&self, timeout: Duration) -> Result<StatusResponse, EtcdError> {
        self.members.call("/etcdserverpb.Maintenance/Status", &StatusRequest {}, Repeat::Harmless, timeout).await
    }

    /// Opens a stream of changes with one watch on it.
    pub(crate) async fn watch(&self, create: WatchCreateRequest) -> Result<WatchStream, EtcdError> {
        let first = WatchRequest { request: Some(WatchUnion::Create(create)) };
        let opening = self.members.stream("/etcdserverpb.Watch/Watch", &first);
        let (member, (sending, pending)) =
            tokio::time::timeout(PATIENCE, opening).await.map_err(|_| EtcdError::TimedOut)??;
        Ok(WatchStream { member, sending, receiving: Half::Pending(pending) })
    }
}

/// A stream of changes. To drop it ends it.
pub(crate) struct WatchStream {
    /// Who tells it.
    member: usize,
    sending: Sending,
    receiving: Half,
}

/// etcd says nothing, not even that there is a stream, before it has something to say.
enum Half {
    Pending(PendingReceiving),
    Open(Receiving),
    Lost,
}

impl WatchStream {
    /// Ends the connection to the member that tells it: it may be one on which nothing comes any more.
    pub(crate) fn give_up_member(&self, client: &Client) {
        client.members.give_up(self.member);
    }

    /// Begins one more watch on the stream.
    pub(crate) fn add(&mut self, create: WatchCreateRequest) -> Result<(), EtcdError> {
        self.sending.send(&WatchRequest { request: Some(WatchUnion::Create(create)) })
    }

    /// Asks how far the watches of the stream are.
    pub(crate) fn ask_progress(&mut self) -> Result<(), EtcdError> {
        self.sending.send(&WatchRequest { request: Some(WatchUnion::Progress(WatchProgressRequest {})) })
    }

    /// What comes next. The first call must be waited for to its end; of later ones nothing is lost if the wait is given
    /// up.
    pub(crate) async fn next(&mut self) -> Result<WatchResponse, EtcdError> {
        if let Half::Pending(_) = self.receiving
            && let Half::Pending(pending) = std::mem::replace(&mut self.receiving, Half::Lost)
        {
            self.receiving = Half::Open(pending.open().await?);
        }
        let Half::Open(receiving) = &mut self.receiving else {
            return Err(EtcdError::Unreadable("the stream never began".to_owned()));
        };
        match receiving.next().await? {
            Some(response) => Ok(response),
            None => {
                receiving.end().await?;
                Err(EtcdError::Unreadable("the stream of changes ended".to_owned()))
            }
        }
    }
}

/// The end of the range of all keys that begin with `prefix`.
pub(crate) fn prefix_end(prefix: &[u8]) -> Bytes {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end.into();
        }
    }
    // All keys.
    Bytes::from_static(&[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_prefix_is_behind_all_that_begin_with_it() {
        for (prefix, end) in [(&b"/a/"[..], &b"/a0"[..]), (b"a\xff", b"b"), (b"", b"\0"), (b"\xff\xff", b"\0")] {
            assert_eq!(&prefix_end(prefix)[..], end);
        }
    }
}
