//! A cache is derived state: one that is built anew knows as much as one that was there all the time (C1).

use revisor_cache::{CacheOptions, Expired, Scope, WatchRequest, WatchStart};
use revisor_store::Store;

use crate::fixture::{Fixture, PODS, at, key, put, settle};
use crate::memory_store::MemoryStore;

#[tokio::test]
async fn the_window_reaches_back_as_far_as_the_store() {
    for (name, compacted, window) in [("all of history", None, 100), ("some of it", Some(at(40)), 60)] {
        let before = Fixture::new(CacheOptions::default()).await;
        for number in 0..100 {
            before.put(&format!("a/{}", number % 7), "text");
        }
        if let Some(revision) = compacted {
            before.store.compact(revision).await.expect("it was written");
        }
        let after = Fixture::over(before.store.clone(), CacheOptions::default()).await;
        assert_eq!(after.pods.window_len(), window, "{name}");
        assert_eq!(after.pods.len(), 7, "{name}");
        for revision in (40..=100).map(at) {
            let [was, is] = [&before, &after].map(|fixture| {
                let snapshot = fixture.pods.snapshot_at(revision).expect("it is kept");
                let state: Vec<_> =
                    snapshot.range(PODS, None).map(|item| (item.key().clone(), item.revision())).collect();
                state
            });
            assert_eq!(was, is, "{name}: state at {revision}");
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
    store.compact(at(10)).await.expect("it was written");
    store.compact_after_next_list(at(30));
    let fixture = Fixture::over(store, CacheOptions::default()).await;
    assert_eq!((fixture.pods.len(), fixture.pods.window_len()), (7, 20));
    assert_eq!(fixture.pods.snapshot_at(at(29)).err(), Some(Expired { asked: at(29), oldest: at(30) }));
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
