//! [`Progress`]: how far a reflector is, told to all who wait for it.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::ResourceVersion;

/// How far a reflector is.
#[derive(Debug, Clone)]
pub(crate) struct Progress {
    /// The store has everything up to here; `None` before the first list.
    pub(crate) version: Option<ResourceVersion>,
    /// How many of the lists that were asked for are there (see [`Wishes`]).
    pub(crate) granted: u64,
    /// When the server last said anything.
    pub(crate) heard: Instant,
}

/// Lists that users of the store ask for. They are numbered: a list that begins when wish n is known grants it and all
/// before it.
#[derive(Debug, Default)]
pub(crate) struct Wishes {
    made: AtomicU64,
    bell: Notify,
}

impl Wishes {
    /// Asks for a list; answers the number of the wish.
    pub(crate) fn make(&self) -> u64 {
        let number = self.made.fetch_add(1, Ordering::SeqCst) + 1;
        self.bell.notify_one();
        number
    }

    /// How many there are so far.
    pub(crate) fn made(&self) -> u64 {
        self.made.load(Ordering::SeqCst)
    }

    /// Waits until there are more than were granted.
    pub(crate) async fn beyond(&self, granted: u64) {
        while self.made() <= granted {
            self.bell.notified().await;
        }
    }
}
