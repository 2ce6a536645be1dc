//! The dispatcher: one task that carries events from the windows to the watchers.
//!
//! It is woken by the store's writer thread through the [`Inbox`], which knows at most one letter per resource. What
//! it does for one resource is in [`ResourceCache::dispatch`]; here is only whose turn it is.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::Waker;

use tokio::sync::Notify;
use tokio::time::Instant;

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
    /// How many are in the line later, and not in `dirty` until then.
    resting: usize,
    closed: bool,
}

/// When a resource is dispatched again.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// When there is news, about which it puts itself into the line.
    Over,
    /// It has put itself into the line, because there is more.
    More,
    /// It has news, but rests until then.
    NotBefore(Instant),
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

    /// Puts a resource at the end of the line, but not before `due`.
    fn post_at(self: &Arc<Self>, due: Instant, resource: Weak<ResourceCache>) {
        self.lock().resting += 1;
        let inbox = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep_until(due).await;
            inbox.lock().resting -= 1;
            inbox.post(resource);
        });
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
                if mail.closed && mail.resting == 0 {
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
        let turn = resource.upgrade().map_or(Turn::Over, |resource| resource.dispatch(&mut scratch));
        for waker in scratch.wakers.drain(..) {
            waker.wake();
        }
        match turn {
            // Those who were woken get their turn, so that they take their events before the next are pushed.
            Turn::More => tokio::task::yield_now().await,
            Turn::Over => tokio::task::coop::consume_budget().await,
            Turn::NotBefore(due) => inbox.post_at(due, resource),
        }
    }
}
