//! A cache of pods over a memory store, and short words for what tests do with it.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use revisor_cache::{
    Cache, CacheOptions, EventKind, Filter, ResourceCache, Scope, WatchItem, WatchRequest, WatchStart, Watcher,
};
use revisor_store::{Change, Draft, Key};
use revisor_version::Revision;

use crate::memory_store::MemoryStore;

/// What the keys of pods start with.
pub(crate) const PODS: &str = "/registry/pods/";

pub(crate) struct Fixture {
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) cache: Arc<Cache>,
    pub(crate) pods: Arc<ResourceCache>,
}

impl Fixture {
    pub(crate) async fn new(options: CacheOptions) -> Fixture {
        Fixture::over(MemoryStore::new(), options).await
    }

    pub(crate) async fn over(store: Arc<MemoryStore>, options: CacheOptions) -> Fixture {
        let cache = Cache::start(store.clone(), options);
        let pods = cache.add(PODS, true).await.expect("the store answers");
        Fixture { store, cache, pods }
    }

    /// Writes a pod, named `namespace/name`.
    pub(crate) fn put(&self, pod: &str, text: &str) -> Revision {
        put(&self.store, pod, text)
    }

    /// Deletes a pod.
    pub(crate) fn delete(&self, pod: &str) -> Revision {
        self.store.write_all([(key(pod), Change::Delete)]).expect("something was written")
    }

    /// Writes something that is not a pod.
    pub(crate) fn put_elsewhere(&self) -> Revision {
        let write = (Key::new("/registry/nodes/n"), Change::Put(Draft::opaque(&b"node"[..])));
        self.store.write_all([write]).expect("something was written")
    }

    pub(crate) fn watch(&self, scope: Scope, filter: Option<Filter>, start: WatchStart) -> Watcher {
        self.pods.watch(WatchRequest { scope, filter, start }).expect("history reaches back")
    }
}

/// Writes a pod, named `namespace/name`.
pub(crate) fn put(store: &MemoryStore, pod: &str, text: &str) -> Revision {
    store.write_all([(key(pod), draft(text))]).expect("something was written")
}

pub(crate) fn key(pod: &str) -> Key {
    Key::new(format!("{PODS}{pod}"))
}

/// An object that shows its revision, then a text.
pub(crate) fn draft(text: &str) -> Change {
    Change::Put(Draft::showing_revision_at(format!(r#"{{"text":"{text}"}}"#), 1))
}

pub(crate) fn at(number: u64) -> Revision {
    Revision::new(number).expect("not zero")
}

/// Selects the objects whose text begins so.
pub(crate) fn text_begins(with: &str) -> Filter {
    let wanted = format!(r#""text":"{with}"#);
    Arc::new(move |item| std::str::from_utf8(item.bytes()).is_ok_and(|object| object.contains(&wanted)))
}

/// The outcome of `future`, which must not take long.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("it does not take long")
}

/// The next item in short words.
pub(crate) async fn next(watcher: &mut Watcher) -> String {
    describe(soon(watcher.next()).await)
}

/// The next `count` items in short words.
pub(crate) async fn next_many(watcher: &mut Watcher, count: usize) -> Vec<String> {
    let mut items = Vec::new();
    for _ in 0..count {
        items.push(next(watcher).await);
    }
    items
}

pub(crate) fn describe(item: Option<WatchItem>) -> String {
    match item {
        None => "end".to_owned(),
        Some(WatchItem::State(item)) => format!("state {} {}", pod(item.key()), item.revision()),
        Some(WatchItem::InitialEnd(revision)) => format!("initial end {revision}"),
        Some(WatchItem::Expired(expired)) => format!("expired {} {}", expired.asked, expired.oldest),
        Some(WatchItem::Event(kind, delivery)) => {
            let item = delivery.new().or(delivery.old()).expect("one side is there");
            let kind = match kind {
                EventKind::Added => "added",
                EventKind::Modified => "modified",
                EventKind::Deleted => "deleted",
            };
            format!("{kind} {} {}", pod(item.key()), delivery.revision())
        }
    }
}

fn pod(key: &Key) -> &str {
    key.as_str().strip_prefix(PODS).expect("a pod")
}

/// Looks once without waiting.
pub(crate) async fn look(watcher: &mut Watcher) -> Poll<Option<WatchItem>> {
    poll_fn(|cx| Poll::Ready(watcher.poll_next(cx))).await
}

/// Looks until the watcher has nothing to yield and says that it has yielded all events up to `revision`, or ends.
/// Answers what it yielded.
pub(crate) async fn settle(watcher: &mut Watcher, revision: Revision) -> Vec<String> {
    soon(async {
        let mut items = Vec::new();
        loop {
            match look(watcher).await {
                Poll::Ready(item) => {
                    let is_end = item.is_none();
                    items.push(describe(item));
                    if is_end {
                        return items;
                    }
                }
                Poll::Pending if watcher.progress() >= Some(revision) => return items,
                Poll::Pending => tokio::task::yield_now().await,
            }
        }
    })
    .await
}

/// Numbers that are the same in every run with one seed.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 8) % bound
    }
}
