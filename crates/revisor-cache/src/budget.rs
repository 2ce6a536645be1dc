//! [`Budget`]: how much memory all windows of a cache may take together, and which of them gives way.
//!
//! What a window no longer has is read from the store, so this is a matter of speed alone. Every resource has its
//! share, which is the whole divided by their number: the one that holds most loses its oldest events first, and
//! never more than what it has beyond its share. So one that is written a lot does not take the memory of others.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, Weak};

use crate::ResourceCache;

/// When the budget is used up, so much of it is made free at once.
const SLACK: usize = 32;

/// What the windows of all resources have in common.
#[derive(Debug)]
pub(crate) struct Budget {
    bytes: usize,
    used: AtomicUsize,
    members: Mutex<Vec<Weak<ResourceCache>>>,
}

impl Budget {
    /// A budget of so many bytes, of which nothing is used.
    pub(crate) fn new(bytes: usize) -> Budget {
        Budget { bytes, used: AtomicUsize::new(0), members: Mutex::default() }
    }

    /// After so many bytes a window keeps a state to begin with, so that it can give way in steps.
    pub(crate) fn step(&self) -> usize {
        self.bytes / 8
    }

    /// How many bytes the windows take.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Counts a resource among those that share.
    pub(crate) fn enter(&self, resource: Weak<ResourceCache>) {
        let mut members = self.members();
        members.retain(|member| member.strong_count() > 0);
        members.push(resource);
    }

    /// Notes that a window takes so many bytes more.
    pub(crate) fn take(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Notes that a window takes so many bytes less.
    pub(crate) fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Makes windows shorter until all fit. Nobody who calls this holds the history of a resource.
    pub(crate) fn settle(&self) {
        while self.used() > self.bytes {
            let members: Vec<_> = self.members().iter().filter_map(Weak::upgrade).collect();
            let sizes = members.iter().map(|member| (member.window_bytes(), member));
            let Some((size, largest)) = sizes.max_by_key(|(size, _)| *size) else { return };
            let fair = self.bytes / members.iter().filter(|member| member.window_bytes() > 0).count().max(1);
            let excess = self.used().saturating_sub(self.bytes - self.bytes / SLACK);
            if largest.shorten(excess.min(size.saturating_sub(fair)).max(1)) == 0 {
                return;
            }
        }
    }

    fn members(&self) -> MutexGuard<'_, Vec<Weak<ResourceCache>>> {
        self.members.lock().expect("no holder of the members panics")
    }
}
