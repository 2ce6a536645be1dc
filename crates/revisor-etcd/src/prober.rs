//! [`Prober`]: whether etcd answers, asked now and then for those who want to know at once.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::messages::RangeRequest;
use crate::store::EtcdStore;

/// How often etcd is asked.
const REST: Duration = Duration::from_secs(1);

/// Knows whether etcd answered when it was asked last. It asks for as long as it is there.
pub struct Prober {
    answer: watch::Receiver<Result<(), String>>,
    task: tokio::task::JoinHandle<()>,
}

impl Prober {
    /// Asks the etcd of `store`, which has `timeout` to answer.
    pub fn start(store: &EtcdStore, timeout: Duration) -> Prober {
        let shared = Arc::downgrade(store.shared());
        let (sender, answer) = watch::channel(Ok(()));
        let task = tokio::spawn(async move {
            loop {
                let Some(shared) = shared.upgrade() else { return };
                let request = RangeRequest { key: shared.keys.to_etcd("/health"), ..RangeRequest::default() };
                let answered = shared.client.range_within(&request, timeout).await;
                let _ = sender.send_replace(answered.map(drop).map_err(|error| error.to_string()));
                drop(shared);
                tokio::time::sleep(REST).await;
            }
        });
        Prober { answer, task }
    }

    /// Why etcd cannot be used, if it cannot.
    pub fn check(&self) -> Result<(), String> {
        self.answer.borrow().clone()
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.task.abort();
    }
}
