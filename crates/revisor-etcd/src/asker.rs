//! [`Asker`]: how far etcd is, asked once for all who want to know.
//!
//! An answer counts for those who were there before it was asked for, so that nobody is told of a state that is older
//! than their question. However many ask, there is one call under way and one that gathers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use revisor_version::Revision;
use tokio::sync::oneshot;

use crate::EtcdError;
use crate::keyspace::revision_of;
use crate::messages::RangeRequest;
use crate::shared::Shared;

/// What etcd answered: its newest revision, and that of the cluster which answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) revision: Option<Revision>,
    pub(crate) cluster: u64,
}

#[derive(Default)]
pub(crate) struct Asker {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: Vec<oneshot::Sender<Result<Answer, EtcdError>>>,
    is_asking: bool,
}

impl Asker {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// The newest revision of etcd, as every member would tell it.
    pub(crate) async fn ask(self: &Arc<Shared>) -> Result<Answer, EtcdError> {
        let (sender, answer) = oneshot::channel();
        let begins = {
            let mut state = self.asker.state();
            state.waiting.push(sender);
            !std::mem::replace(&mut state.is_asking, true)
        };
        if begins {
            let shared = self.clone();
            tokio::spawn(async move { shared.answer_all().await });
        }
        answer.await.unwrap_or(Err(EtcdError::TimedOut))
    }

    async fn answer_all(&self) {
        loop {
            let waiting = {
                let mut state = self.asker.state();
                state.waiting.retain(|waiting| !waiting.is_closed());
                if state.waiting.is_empty() {
                    state.is_asking = false;
                    return;
                }
                std::mem::take(&mut state.waiting)
            };
            // A key that nobody has: only the header is wanted. It is not serializable, so that the leader is asked.
            let (key, _) = self.keys.all();
            let request = RangeRequest { key, count_only: true, ..RangeRequest::default() };
            let answer = self.client.range(&request).await.map(|response| {
                let header = response.header.unwrap_or_default();
                Answer { revision: revision_of(header.revision), cluster: header.cluster_id }
            });
            for one in waiting {
                // Who does not wait any more does not want to know.
                let _ = one.send(answer.clone());
            }
        }
    }
}
