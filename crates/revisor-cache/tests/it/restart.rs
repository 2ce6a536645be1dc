//! A cache is derived state: one that is built anew knows as much as one that was there all the time (C1).

use std::sync::Arc;

use revisor_cache::{CacheOptions, Expired, Item, Scope, WatchRequest, WatchStart};
use revisor_store::{Key, Store};
use revisor_version::Revision;

use crate::fixture::{Fixture, PODS, at, key, put, settle};
use crate::memory_store::MemoryStore;

/// The objects of a past state, from memory or from the store.
async fn state(fixture: &Fixture, revision: Revision) -> Vec<(Key, Revision)> {
    let items: Vec<Arc<Item>> = match fixture.pods.snapshot_at(revision).expect("history reaches back") {
        Some(snapshot) => snapshot.range(PODS, None).cloned().collect(),
        None => fixture.pods.page_at(revision, PODS, None, None).await.expect("the store has it").items,
    };
    items.iter().map(|item| (item.key().clone(), item.revision())).collect()
}

#[tokio::test]
async fn a_new_cache_reaches_back_as_far_as_the_store() {
    for (name, compacted) in [("all of history", None), ("some of it", Some(at(40)))] {
        let before = Fixture::new(CacheOptions::default()).await;
        for number in 0..100 {
            before.put(&format!("a/{}", number % 7), "text");
        }
        if let Some(revision) = compacted {
            before.store.compact(revision).await.expect("it was written");
        }
        let after = Fixture::over(before.store.clone(), CacheOptions::default()).await;
        assert_eq!((after.pods.len(), after.pods.window_len()), (7, 0), "{name}: it begins with the newest state");
        for revision in (40..=100).map(at) {
            assert_eq!(state(&before, revision).await, state(&after, revision).await, "{name}: at {revision}");
            let one = key("a/3");
            let [was, is] = [before.pods.get_at(one.as_str(), revision), after.pods.get_at(one.as_str(), revision)];
            let [was, is] = [was.await, is.await].map(|found| found.expect("history reaches back"));
            assert_eq!(was.map(|item| item.revision()), is.map(|item| item.revision()), "{name}: one at {revision}");
        }
        let mut watcher = after.watch(Scope::All, None, WatchStart::After(at(40)));
        assert_eq!(settle(&mut watcher, at(100)).await.len(), 60, "{name}");
        let start = WatchStart::After(at(39));
        let expired = after.pods.watch(WatchRequest { scope: Scope::All, filter: None, start }).err();
        assert_eq!(expired, compacted.map(|oldest| Expired { asked: at(39), oldest }), "{name}");
    }
}

#[tokio::test]
async fn a_store_that_compacts_between_list_and_watch_is_listed_again() {
    let store = MemoryStore::new();
    for number in 0..50 {
        put(&store, &format!("a/{}", number % 7), "text");
    }
    store.write_and_compact_after_next_list(key("a/1"), at(51));
    let fixture = Fixture::over(store, CacheOptions::default()).await;
    assert_eq!(fixture.pods.get(key("a/1").as_str()).map(|item| item.revision()), Some(at(51)));
    assert_eq!(fixture.pods.snapshot_at(at(50)).err(), Some(Expired { asked: at(50), oldest: at(51) }));
}

#[tokio::test]
async fn a_resource_that_was_removed_can_be_added_again() {
    let fixture = Fixture::new(CacheOptions::default()).await;
    fixture.put("a/x", "1");
    fixture.cache.remove(PODS);
    fixture.put("a/y", "1");
    assert!(fixture.pods.get(key("a/y").as_str()).is_none(), "nobody feeds it any more");
    let again = fixture.cache.add(PODS, true).await.expect("the store answers");
    assert_eq!(again.len(), 2);
}
