//! Waiting for the store to get somewhere.

use std::time::Duration;

use revisor_cache::{CacheOptions, NotReached};

use crate::fixture::{Fixture, at, key, soon};

#[tokio::test]
async fn what_was_reached_needs_no_waiting() {
    let fixture = Fixture::new(CacheOptions::default()).await;
    let first = fixture.put("a/x", "1");
    let second = fixture.put_elsewhere();
    for revision in [first, second] {
        assert_eq!(fixture.cache.wait_for(revision, Duration::ZERO).await, Ok(()));
    }
    assert_eq!(fixture.cache.revision(), Some(second));
}

#[tokio::test]
async fn who_waits_is_told_when_it_is_reached() {
    let fixture = Fixture::new(CacheOptions::default()).await;
    let cache = fixture.cache.clone();
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
    assert_eq!(fixture.cache.wait_for(at(9), patience).await, Err(want));
    let current = Some(fixture.put("a/x", "1"));
    assert_eq!(fixture.cache.wait_for(at(9), patience).await, Err(NotReached { asked: at(9), current }));
}

#[tokio::test]
async fn freshening_answers_the_revision_that_reads_then_have() {
    let fixture = Fixture::new(CacheOptions::default()).await;
    assert_eq!(fixture.cache.freshen().await.expect("the store answers"), None);
    fixture.put("a/x", "1");
    let newest = fixture.put_elsewhere();
    assert_eq!(fixture.cache.freshen().await.expect("the store answers"), Some(newest));
    assert_eq!(fixture.pods.snapshot().revision(), Some(newest));
}
