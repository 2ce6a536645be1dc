//! Waiting for the store to get somewhere.

use std::time::Duration;

use revisor_cache::{Cache, CacheOptions, NotReached};
use revisor_store::{Change, Draft, Expect, Key, Stores, Write};

use crate::fixture::{Fixture, PODS, at, key, put, soon};
use crate::memory_store::MemoryStore;

#[tokio::test]
async fn what_was_reached_needs_no_waiting() {
    let fixture = Fixture::new(CacheOptions::default()).await;
    let first = fixture.put("a/x", "1");
    let second = fixture.put_elsewhere();
    for revision in [first, second] {
        assert_eq!(fixture.pods.wait_for(revision, Duration::ZERO).await, Ok(()));
    }
    assert_eq!(fixture.pods.reached(), Some(second));
}

#[tokio::test]
async fn who_waits_is_told_when_it_is_reached() {
    let fixture = Fixture::new(CacheOptions::default()).await;
    let cache = fixture.pods.clone();
    let waiting = tokio::spawn(async move { cache.wait_for(at(3), Duration::from_secs(60)).await });
    for _ in 0..3 {
        tokio::task::yield_now().await;
        fixture.put("a/x", "1");
    }
    assert_eq!(soon(waiting).await.expect("it does not panic"), Ok(()));
    assert!(fixture.pods.get(key("a/x").as_str()).is_some());
}

#[tokio::test]
async fn who_waits_in_vain_is_told_how_far_it_got() {
    let fixture = Fixture::new(CacheOptions::default()).await;
    let patience = Duration::from_millis(1);
    let want = NotReached { asked: at(9), current: None };
    assert_eq!(fixture.pods.wait_for(at(9), patience).await, Err(want));
    let current = Some(fixture.put("a/x", "1"));
    assert_eq!(fixture.pods.wait_for(at(9), patience).await, Err(NotReached { asked: at(9), current }));
}

#[tokio::test]
async fn freshening_answers_the_revision_that_reads_then_have() {
    let fixture = Fixture::new(CacheOptions::default()).await;
    assert_eq!(fixture.pods.freshen().await.expect("the store answers"), None);
    fixture.put("a/x", "1");
    let newest = fixture.put_elsewhere();
    assert_eq!(fixture.pods.freshen().await.expect("the store answers"), Some(newest));
    assert_eq!(fixture.pods.snapshot().revision(), Some(newest));
}

#[tokio::test]
async fn a_resource_in_a_store_of_its_own_waits_for_that_one_only() {
    let (rest, own) = (MemoryStore::new(), MemoryStore::new());
    let stores = Stores::new(rest.clone()).with_part(vec![PODS.to_owned()], own.clone());
    let cache = Cache::start(stores, CacheOptions::default());
    let pods = cache.add(PODS, true).await.expect("the store answers");
    let nodes = cache.add("/registry/nodes/", false).await.expect("the store answers");
    for _ in 0..3 {
        rest.write_all([(Key::new("/registry/nodes/n"), Change::Put(Draft::opaque(&b"node"[..])))]);
    }
    let first = put(&own, "a/x", "1");
    assert_eq!((pods.reached(), nodes.reached()), (Some(first), Some(at(3))));
    assert_eq!(pods.freshen().await.expect("the store answers"), Some(first));
    cache.freshen().await.expect("both answer");
    let in_vain = NotReached { asked: at(3), current: Some(first) };
    assert_eq!(pods.wait_for(at(3), Duration::from_millis(1)).await, Err(in_vain), "the others are further");
    assert_eq!(nodes.wait_for(at(3), Duration::ZERO).await, Ok(()));
    let write = Write { key: key("a/x"), expect: Expect::At(first), change: Change::Delete };
    let deleted = cache.write(write).await.expect("is there");
    assert_eq!((deleted.revision, pods.get(key("a/x").as_str()).is_none()), (at(2), true));
}
