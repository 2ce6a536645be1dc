//! [`Feed`]: the state of a resource and then its changes, also when the watch below it fell behind.

use std::sync::Arc;

use revisor_version::Revision;

use crate::{EventKind, Filter, Item, ResourceCache, Scope, WatchItem, WatchRequest, WatchStart, Watcher};

/// What a feed tells.
#[derive(Debug)]
pub enum News {
    /// An object of the state at the start.
    Present(Arc<Item>),
    /// The state is complete. `again` if it is not the first: changes before it were missed, deletions among them.
    Complete {
        /// Whether the feed had to start again.
        again: bool,
    },
    /// An object was made or changed.
    Changed {
        /// As it was.
        old: Option<Arc<Item>>,
        /// As it is.
        new: Arc<Item>,
    },
    /// An object is gone; this is how it last was.
    Gone(Arc<Item>),
}

/// Follows one resource. It ends only with the resource.
pub struct Feed {
    cache: Arc<ResourceCache>,
    filter: Option<Filter>,
    watcher: Watcher,
    was_complete: bool,
    told: Option<Revision>,
}

impl Feed {
    /// Begins with the state of the resource.
    pub fn open(cache: &Arc<ResourceCache>, filter: Option<Filter>) -> Feed {
        Feed { watcher: watch(cache, &filter), cache: cache.clone(), filter, was_complete: false, told: None }
    }

    /// What is next; nothing after the end. Nothing is lost if the wait for it is given up.
    pub async fn next(&mut self) -> Option<News> {
        loop {
            return Some(match self.watcher.next().await? {
                WatchItem::State(item) => News::Present(item),
                WatchItem::InitialEnd(_) => News::Complete { again: std::mem::replace(&mut self.was_complete, true) },
                WatchItem::Event(kind, delivery) => {
                    self.told = Some(delivery.revision());
                    match (kind, delivery.old(), delivery.new()) {
                        (EventKind::Deleted, Some(old), _) => News::Gone(old.clone()),
                        (_, old, Some(new)) => News::Changed { old: old.cloned(), new: new.clone() },
                        _ => continue,
                    }
                }
                WatchItem::Expired(_) => {
                    self.watcher = watch(&self.cache, &self.filter);
                    continue;
                }
            });
        }
    }

    /// The revision of the change that was told last, deletions among them.
    pub fn told(&self) -> Option<Revision> {
        self.told
    }

    /// Right after [`next`](Feed::next) had to wait: every change up to this revision was told.
    pub fn progress(&self) -> Option<Revision> {
        self.watcher.progress()
    }
}

fn watch(cache: &Arc<ResourceCache>, filter: &Option<Filter>) -> Watcher {
    let request = WatchRequest { scope: Scope::All, filter: filter.clone(), start: WatchStart::State };
    cache.watch(request).expect("a watch that begins with the state asks for no revision that could be gone")
}
