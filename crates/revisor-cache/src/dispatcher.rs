//! The dispatcher: one task that carries events from the windows to the watchers.
//!
//! It is woken by the store's writer thread through the [`Inbox`], which knows at most one letter per resource. What
//! it does for one resource is in [`ResourceCache::dispatch`]; here is only whose turn it is.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::Waker;

use tokio::sync::Notify;

use crate::ResourceCache;
use crate::delivery::Change;

/// The resources that have something to dispatch.
#[derive(Default)]
pub(crate) struct Inbox {
    mail: Mutex<Mail>,
    arrived: Notify,
}

#[derive(Default)]
struct Mail {
    // Weak, because the inbox belongs to the resources too. Bounded by their number: each is in here once.
    dirty: VecDeque<Weak<ResourceCache>>,
    closed: bool,
}

/// Buffers that one step leaves to the next.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) changes: Vec<Arc<Change>>,
    pub(crate) wakers: Vec<Waker>,
}

impl Inbox {
    /// Puts a resource at the end of the line.
    pub(crate) fn post(&self, resource: Weak<ResourceCache>) {
        self.lock().dirty.push_back(resource);
        self.arrived.notify_one();
    }

    /// Ends the dispatcher once nobody is in the line.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Mail> {
        self.mail.lock().expect("no holder of the inbox panics")
    }

    /// The next in line; nothing when the inbox is closed.
    async fn next(&self) -> Option<Weak<ResourceCache>> {
        loop {
            {
                let mut mail = self.lock();
                if let Some(resource) = mail.dirty.pop_front() {
                    return Some(resource);
                }
                if mail.closed {
                    return None;
                }
            }
            // What is posted between the look and this line leaves a permit behind.
            self.arrived.notified().await;
        }
    }
}

/// Serves the resources of `inbox` in turn until it is closed.
pub(crate) async fn run(inbox: Arc<Inbox>) {
    let mut scratch = Scratch::default();
    while let Some(resource) = inbox.next().await {
        let more = resource.upgrade().is_some_and(|resource| resource.dispatch(&mut scratch));
        for waker in scratch.wakers.drain(..) {
            waker.wake();
        }
        if more {
            // Those who were woken get their turn, so that they take their events before the next are pushed.
            tokio::task::yield_now().await;
        } else {
            tokio::task::coop::consume_budget().await;
        }
    }
}
