//! Watchers that do not keep up: they cost a bounded queue, hold up nobody, and miss nothing that is still there.

use revisor_cache::{CacheOptions, Expired, Scope, WatchItem, WatchRequest, WatchStart};
use revisor_store::Store;

use crate::fixture::{Fixture, at, key, look, next, settle, soon, text_begins};

fn options() -> CacheOptions {
    CacheOptions { watcher_queue: 4, snapshot_every: 16, ..CacheOptions::default() }
}

#[tokio::test]
async fn a_slow_watcher_catches_up_from_the_window_and_is_live_again() {
    let fixture = Fixture::new(options()).await;
    let start = fixture.put_elsewhere();
    let mut slow = fixture.watch(Scope::All, None, WatchStart::After(start));
    let mut fast = fixture.watch(Scope::All, None, WatchStart::After(start));
    assert!(look(&mut slow).await.is_pending());
    for round in 0..3 {
        let first = fixture.pods.reached().expect("something was written").next();
        let mut last = first;
        // More than the queue holds and more than is taken from the window at once.
        for _ in 0..1500 {
            last = fixture.put("a/x", "text");
        }
        let want: Vec<u64> = (first.get()..=last.get()).collect();
        assert_eq!(settle(&mut fast, last).await.len(), want.len(), "the slow one holds up nobody");
        let mut got = Vec::new();
        while got.last() != Some(&last.get()) {
            let Some(WatchItem::Event(_, delivery)) = soon(slow.next()).await else { panic!("an event comes") };
            got.push(delivery.revision().get());
        }
        assert_eq!(got, want, "round {round}: each event once and in order");
        assert_eq!(settle(&mut slow, last).await, [""; 0]);
        let one_more = fixture.put("a/x", "text");
        assert_eq!(next(&mut slow).await, format!("modified a/x {one_more}"));
        assert_eq!(settle(&mut fast, one_more).await.len(), 1);
    }
}

#[tokio::test]
async fn a_watcher_that_the_window_has_passed_ends_with_expired() {
    let fixture = Fixture::new(options()).await;
    let start = fixture.put_elsewhere();
    let mut slow = fixture.watch(Scope::All, None, WatchStart::After(start));
    let mut fast = fixture.watch(Scope::All, None, WatchStart::After(start));
    assert!(look(&mut slow).await.is_pending());
    assert!(look(&mut fast).await.is_pending());
    let mut last = start;
    for _ in 0..100 {
        last = fixture.put("a/x", "text");
        assert_eq!(settle(&mut fast, last).await.len(), 1);
    }
    fixture.store.compact(at(60)).await.expect("it was written");
    let mut got = Vec::new();
    loop {
        match soon(slow.next()).await {
            Some(WatchItem::Event(_, delivery)) => got.push(delivery.revision().get()),
            Some(WatchItem::Expired(expired)) => {
                assert_eq!(expired, Expired { asked: at(5), oldest: at(60) });
                break;
            }
            other => panic!("neither an event nor the end: {other:?}"),
        }
    }
    assert_eq!(got, [2, 3, 4, 5], "what was queued comes first");
    assert_eq!(next(&mut slow).await, "end");
    assert_eq!(settle(&mut fast, last).await, [""; 0], "who keeps up is not concerned");
    let one_more = fixture.put("a/x", "text");
    assert_eq!(settle(&mut fast, one_more).await.len(), 1);
}

#[tokio::test]
async fn compaction_of_a_quiet_resource_does_not_expire_those_who_have_seen_everything() {
    let fixture = Fixture::new(options()).await;
    let start = fixture.put("a/x", "1");
    let mut live = fixture.watch(Scope::All, None, WatchStart::After(start));
    assert!(look(&mut live).await.is_pending());
    for _ in 0..50 {
        fixture.put_elsewhere();
    }
    fixture.store.compact(at(40)).await.expect("it was written");
    assert_eq!(fixture.pods.window_len(), 0);
    let revision = fixture.put("a/x", "2");
    assert_eq!(settle(&mut live, revision).await, [format!("modified a/x {revision}")]);
    for (after, want) in [(39, Some(Expired { asked: at(39), oldest: at(40) })), (40, None)] {
        let request = WatchRequest { scope: Scope::All, filter: None, start: WatchStart::After(at(after)) };
        assert_eq!(fixture.pods.watch(request).err(), want, "after {after}");
    }
}

#[tokio::test]
async fn events_that_are_gone_before_they_were_dispatched_expire_their_watchers() {
    // On a runtime with one thread the dispatcher does not run until this task waits.
    let fixture = Fixture::new(options()).await;
    let start = fixture.put_elsewhere();
    let mut watcher = fixture.watch(Scope::All, None, WatchStart::After(start));
    assert!(look(&mut watcher).await.is_pending());
    for _ in 0..100 {
        fixture.put("a/x", "text");
    }
    fixture.store.compact(at(60)).await.expect("it was written");
    assert_eq!(next(&mut watcher).await, "expired 1 60");
    let last = fixture.put("a/x", "text");
    let mut other = fixture.watch(Scope::All, None, WatchStart::After(at(101)));
    assert_eq!(settle(&mut other, last).await, [format!("modified a/x {last}")], "the dispatcher goes on");
}

/// Upholds W1 where the window holds next to nothing: what watchers miss they read from the store, whole or in part.
#[tokio::test]
async fn a_watcher_reads_from_the_store_what_the_window_has_lost() {
    let fixture = Fixture::new(CacheOptions { window_bytes: 64 << 10, ..options() }).await;
    let start = fixture.put_elsewhere();
    let mut slow = fixture.watch(Scope::All, None, WatchStart::After(start));
    assert!(look(&mut slow).await.is_pending());
    let mut last = start;
    for number in 0..3000 {
        last = fixture.put(&format!("{}/x", number % 3), if number % 2 == 0 { "even" } else { "odd" });
    }
    assert!(fixture.pods.window_len() < 100 && fixture.cache.window_bytes() <= 64 << 10);
    for (name, scope, filter, from, want) in [
        ("all", Scope::All, None, 1, 3000),
        ("the end of it", Scope::All, None, 2001, 1000),
        ("one namespace", Scope::Namespace("1".to_owned()), None, 1, 1000),
        ("one object", Scope::Object(key("2/x")), None, 301, 900),
        ("no namespace of these", Scope::Namespace("none".to_owned()), None, 1, 0),
        ("what is odd comes and goes", Scope::All, Some(text_begins("odd")), 1, 2998),
    ] {
        let mut watcher = fixture.watch(scope, filter, WatchStart::After(at(from)));
        let got = settle(&mut watcher, last).await;
        assert_eq!(got.len(), want, "{name}");
        let revisions: Vec<u64> = got
            .iter()
            .map(|line| line.rsplit(' ').next().and_then(|word| word.parse().ok()).expect("a number"))
            .collect();
        assert!(revisions.is_sorted_by(|one, next| one < next), "{name}: each once and in order");
    }
    assert_eq!(settle(&mut slow, last).await.len(), 3000, "the slow one has missed nothing");
    let one_more = fixture.put("1/x", "text");
    assert_eq!(next(&mut slow).await, format!("modified 1/x {one_more}"), "and is live again");
}

/// The store may forget what a watcher was about to read.
#[tokio::test]
async fn a_watcher_that_the_store_has_passed_ends_with_expired() {
    let fixture = Fixture::new(CacheOptions { window_bytes: 0, ..options() }).await;
    for _ in 0..2000 {
        fixture.put("a/x", "text");
    }
    let mut slow = fixture.watch(Scope::All, None, WatchStart::After(at(1)));
    assert_eq!(next(&mut slow).await, "modified a/x 2");
    fixture.store.compact(at(1500)).await.expect("it was written");
    let rest = settle(&mut slow, at(2000)).await;
    assert_eq!(rest.len(), 513, "what was read, and the end");
    assert_eq!(rest[511..], ["expired 513 1500", "end"]);
}
