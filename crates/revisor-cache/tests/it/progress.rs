//! What a watcher says of its progress is true: a client that is told of it can come back from there.

use std::task::Poll;

use revisor_cache::{CacheOptions, EventKind, Scope, WatchItem, WatchStart};

use crate::fixture::{Dice, Fixture, look, settle, soon, text_begins};

#[tokio::test]
async fn a_quiet_watch_keeps_up_with_writes_elsewhere() {
    let fixture = Fixture::new(CacheOptions::default()).await;
    let start = fixture.put("a/x", "1");
    let mut watcher = fixture.watch(Scope::Namespace("b".into()), None, WatchStart::After(start));
    assert!(look(&mut watcher).await.is_pending());
    assert_eq!(watcher.progress(), Some(start));
    let elsewhere = fixture.put_elsewhere();
    assert!(look(&mut watcher).await.is_pending());
    assert_eq!(watcher.progress(), Some(elsewhere), "at once, with no dispatch in between");
    let not_selected = fixture.put("a/x", "2");
    assert_eq!(settle(&mut watcher, not_selected).await, [""; 0]);
}

#[tokio::test]
async fn there_is_no_progress_before_the_initial_state_is_complete() {
    let fixture = Fixture::new(CacheOptions::default()).await;
    for number in 0..2000 {
        fixture.put(&format!("a/{number}"), "blue");
    }
    let last = fixture.put("a/x", "red");
    let mut watcher = fixture.watch(Scope::All, Some(text_begins("red")), WatchStart::State);
    let mut rests = 0;
    let items = soon(async {
        let mut items = Vec::new();
        loop {
            match look(&mut watcher).await {
                Poll::Ready(Some(WatchItem::InitialEnd(revision))) => return (items, revision),
                Poll::Ready(item) => items.push(item),
                Poll::Pending => {
                    assert_eq!(watcher.progress(), None);
                    rests += 1;
                    tokio::task::yield_now().await;
                }
            }
        }
    })
    .await;
    assert_eq!((items.0.len(), items.1), (1, last));
    assert!(rests > 0, "a long search lets others run");
    assert_eq!(settle(&mut watcher, last).await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_event_up_to_the_progress_was_yielded() {
    let fixture = Fixture::new(CacheOptions { watcher_queue: 8, snapshot_every: 32, ..CacheOptions::default() }).await;
    let start = fixture.put_elsewhere();
    let mut watcher = fixture.watch(Scope::Namespace("a".into()), None, WatchStart::After(start));
    let store = fixture.store.clone();
    let writer = std::thread::spawn(move || {
        let mut dice = Dice::new(7);
        let mut last = start;
        for number in 0..4000 {
            let namespace = ["a", "b"][dice.below(2) as usize];
            last = crate::fixture::put(&store, &format!("{namespace}/{}", dice.below(50)), &number.to_string());
        }
        last
    });
    let mut yielded = Vec::new();
    let mut claims = Vec::new();
    let last = soon(async {
        loop {
            // Read before looking: with this revision reached and nothing found, all is over.
            let finished = writer.is_finished();
            match look(&mut watcher).await {
                Poll::Ready(Some(WatchItem::Event(kind, delivery))) => {
                    assert_ne!(kind, EventKind::Deleted);
                    assert!(Some(delivery.revision()) > watcher.progress(), "what was claimed does not come later");
                    yielded.push(delivery.revision());
                }
                Poll::Ready(other) => panic!("not an event: {other:?}"),
                Poll::Pending => {
                    if let Some(claim) = watcher.progress() {
                        claims.push((claim, yielded.len()));
                    }
                    let progress = watcher.progress();
                    if finished && progress == fixture.pods.reached() {
                        return progress;
                    }
                    tokio::task::yield_now().await;
                }
            }
        }
    })
    .await;
    assert_eq!(last, Some(writer.join().expect("the writer does not panic")));
    let log: Vec<_> = fixture
        .store
        .log()
        .iter()
        .filter(|event| event.key().as_str().contains("/a/"))
        .map(|event| event.revision)
        .collect();
    assert_eq!(yielded, log, "each event once and in order");
    assert!(!claims.is_empty());
    for (claim, count) in claims {
        assert_eq!(log.partition_point(|revision| *revision <= claim), count, "events up to {claim}");
    }
}
