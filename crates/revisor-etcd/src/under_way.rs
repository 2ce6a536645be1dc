//! [`UnderWay`]: the writes of this server that etcd has not answered yet.
//!
//! A write goes on when nobody waits for it any more. Who wants to know what became of one waits here for all to the same
//! key, and then reads what is there.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use revisor_store::Key;
use tokio::sync::watch;

#[derive(Default)]
pub(crate) struct UnderWay {
    writes: Mutex<HashMap<Key, Vec<watch::Receiver<()>>>>,
    emptied: tokio::sync::Notify,
}

/// A write that is under way, until this is dropped.
pub(crate) struct Ticket {
    key: Key,
    under_way: Arc<UnderWay>,
    done: Option<watch::Sender<()>>,
}

impl UnderWay {
    pub(crate) fn begin(self: &Arc<UnderWay>, key: &Key) -> Ticket {
        let (done, waiting) = watch::channel(());
        self.writes().entry(key.clone()).or_default().push(waiting);
        Ticket { key: key.clone(), under_way: self.clone(), done: Some(done) }
    }

    /// Waits until every write to `key` that is under way now is over.
    pub(crate) async fn settled(&self, key: &Key) {
        let waiting = self.writes().get(key).cloned().unwrap_or_default();
        for mut one in waiting {
            // It ends with an error, when its sender is gone.
            while one.changed().await.is_ok() {}
        }
    }

    /// Waits until nothing is under way.
    pub(crate) async fn all_settled(&self) {
        loop {
            let emptied = self.emptied.notified();
            if self.writes().is_empty() {
                return;
            }
            emptied.await;
        }
    }

    fn writes(&self) -> MutexGuard<'_, HashMap<Key, Vec<watch::Receiver<()>>>> {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.done = None;
        let mut writes = self.under_way.writes();
        if let Some(waiting) = writes.get_mut(&self.key) {
            waiting.retain(|one| one.has_changed().is_ok());
            if waiting.is_empty() {
                writes.remove(&self.key);
            }
        }
        if writes.is_empty() {
            self.under_way.emptied.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_waits_for_a_key_waits_for_all_of_its_writes_and_no_others() {
        let under_way = Arc::new(UnderWay::default());
        let (key, other) = (Key::new("/a"), Key::new("/b"));
        let (first, second, elsewhere) = (under_way.begin(&key), under_way.begin(&key), under_way.begin(&other));
        let waiting = tokio::spawn({
            let (under_way, key) = (under_way.clone(), key.clone());
            async move { under_way.settled(&key).await }
        });
        drop(first);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(second);
        waiting.await.expect("does not panic");
        let all = tokio::spawn({
            let under_way = under_way.clone();
            async move { under_way.all_settled().await }
        });
        drop(elsewhere);
        all.await.expect("does not panic");
    }
}
