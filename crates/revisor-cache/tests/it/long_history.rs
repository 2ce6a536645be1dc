//! A long history lies on disk: every state can be read, and every revision watched from, with a little memory.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use revisor_cache::{Cache, CacheOptions, ResourceCache, Scope, WatchItem, WatchRequest, WatchStart};
use revisor_store::embedded::{EmbeddedOptions, EmbeddedStore};
use revisor_store::{Change, Draft, Event, Expect, Key, Store, Write};
use revisor_version::Revision;

use crate::fixture::soon;

const PREFIX: &str = "/registry/configmaps/";
const UPDATES: usize = 20_000;
const OBJECTS: usize = 10;
const WINDOW: usize = 256 << 10;

/// What each key holds, by its revision.
type State = BTreeMap<Key, Revision>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_updates_of_few_objects_can_all_be_read_and_watched_from() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let mut options = EmbeddedOptions::new(folder.path());
    options.history.age = Duration::from_secs(24 * 60 * 60);
    // As a server does at rest, and often enough for tables to be read from.
    options.tuning.memtable_bytes = 1 << 20;
    let store = Arc::new(EmbeddedStore::open(options.clone()).await.expect("the store opens"));
    let (cache, objects) = open(&store).await;
    let events = write(&store).await;
    check(&store, &cache, &objects, &events).await;
    drop((cache, objects));
    store.close().await;

    let store = Arc::new(EmbeddedStore::open(options).await.expect("the store opens again"));
    let (cache, objects) = open(&store).await;
    assert_eq!(objects.window_len(), 0);
    check(&store, &cache, &objects, &events).await;
}

async fn open(store: &Arc<EmbeddedStore>) -> (Arc<Cache>, Arc<ResourceCache>) {
    let cache = Cache::start(store.clone(), CacheOptions { window_bytes: WINDOW, ..CacheOptions::default() });
    let objects = cache.add(PREFIX, true).await.expect("the store can be read");
    (cache, objects)
}

/// Writes, many at a time, and now and then deletes. Answers what happened.
async fn write(store: &Arc<EmbeddedStore>) -> Vec<Event> {
    let mut events = vec![];
    for round in 0..UPDATES / 500 {
        let mut writes = tokio::task::JoinSet::new();
        for number in 0..500 {
            let key = Key::new(format!("{PREFIX}default/{}", (number * 7 + round) % OBJECTS));
            let change = if number % 50 == 49 {
                Change::Delete
            } else {
                Change::Put(Draft::opaque(format!("{round} {number} {}", "x".repeat(number))))
            };
            let store = store.clone();
            writes.spawn(async move { store.write(Write { key, expect: Expect::Anything, change }).await });
        }
        while let Some(written) = writes.join_next().await {
            // Another one may have deleted it first.
            events.extend(written.expect("no writer panics").ok());
        }
    }
    events.sort_by_key(|event| event.revision);
    events
}

/// Holds all of history against what happened.
async fn check(store: &EmbeddedStore, cache: &Cache, objects: &Arc<ResourceCache>, events: &[Event]) {
    assert!(cache.window_bytes() <= WINDOW, "{} bytes are held", cache.window_bytes());
    assert!(objects.window_len() < 300, "{} events are held", objects.window_len());
    assert_eq!(store.history_events(), events.len() as u64);
    let newest = events.last().expect("there were writes").revision;

    let mut state = State::new();
    for event in events {
        match &event.new {
            Some(entry) => drop(state.insert(entry.key().clone(), entry.revision())),
            None => drop(state.remove(event.key())),
        }
        if event.revision.get() % 37 == 0 || event.revision.get() + 10 > newest.get() {
            assert_eq!(read(objects, event.revision).await, state, "the state at {}", event.revision);
        }
    }
    for from in [1, 2, 777, 5_000, 12_345, newest.get() - 200, newest.get()] {
        let from = Revision::new(from).expect("not zero");
        let request = WatchRequest { scope: Scope::All, filter: None, start: WatchStart::After(from) };
        let mut watcher = objects.watch(request).expect("history reaches back");
        for want in &events[events.partition_point(|event| event.revision <= from)..] {
            let Some(WatchItem::Event(_, delivery)) = soon(watcher.next()).await else { panic!("an event comes") };
            let sides = [delivery.old(), delivery.new()].map(|side| side.map(|item| item.entry().clone()));
            assert_eq!((delivery.revision(), sides), (want.revision, [want.old.clone(), want.new.clone()]), "{from}");
        }
    }
    assert!(cache.window_bytes() <= WINDOW, "{} bytes are held", cache.window_bytes());
}

async fn read(objects: &ResourceCache, at: Revision) -> State {
    let items = match objects.snapshot_at(at).expect("history reaches back") {
        Some(snapshot) => snapshot.range(PREFIX, None).cloned().collect(),
        None => objects.page_at(at, PREFIX, None, None).await.expect("the store has it").items,
    };
    items.iter().map(|item| (item.key().clone(), item.revision())).collect()
}
