//! [`Standing`]: what a connection's requests have shown of its client.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::Notify;

/// What is known of the client of a connection. Handlers say so, and the server goes by it.
#[derive(Debug, Default)]
pub struct Standing {
    is_authenticated: AtomicBool,
    refused: AtomicUsize,
    finish: Notify,
}

impl Standing {
    /// The client has shown who it is, and may have as many requests at once as clients may have.
    pub fn authenticate(&self) {
        // Looked at first, because it is said with every request, and a write would take it from other processors.
        if !self.is_authenticated() {
            self.is_authenticated.store(true, Ordering::Relaxed);
        }
    }

    /// The client should not send further requests on this connection.
    pub fn finish(&self) {
        self.finish.notify_one();
    }

    pub(super) fn is_authenticated(&self) -> bool {
        self.is_authenticated.load(Ordering::Relaxed)
    }

    /// Counts a request that was not even looked at; how many those were.
    pub(super) fn refuse(&self) -> usize {
        self.refused.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Completes when the connection should come to an end.
    pub(super) async fn finishes(&self) {
        self.finish.notified().await;
    }
}
