//! Reads: the newest state, and every state that history still has.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Poll;

use proptest::prelude::*;
use revisor_cache::{CacheOptions, Expired, Scope, Snapshot, WatchItem, WatchRequest, WatchStart};
use revisor_store::{Change, Event, Store};
use revisor_version::Revision;

use crate::fixture::{Dice, Fixture, PODS, at, draft, key, look, settle, soon};
use crate::memory_store::{MemoryStore, replay};

type State = BTreeMap<String, Revision>;

fn state(snapshot: &Snapshot) -> State {
    snapshot.range(PODS, None).map(|item| (item.key().to_string(), item.revision())).collect()
}

fn model(log: &[Event], revision: Revision) -> State {
    let pods = log.iter().filter(|event| event.revision <= revision && event.key().as_str().starts_with(PODS));
    replay(pods).into_iter().map(|(key, entry)| (key.to_string(), entry.revision())).collect()
}

/// Writes `count` times to some pods, sometimes elsewhere, sometimes several at once.
fn write_some(fixture: &Fixture, count: u64) {
    let mut dice = Dice::new(count);
    let mut written = 0;
    while written < count {
        match dice.below(6) {
            0 => drop(fixture.put_elsewhere()),
            1 => {
                let pods = (0..5).map(|name| (key(&format!("batch/{name}")), draft("text")));
                fixture.store.write_all(pods);
            }
            2 => {
                let all = fixture.pods.snapshot();
                if let Some(item) = all.range(PODS, None).nth(dice.below(20) as usize) {
                    fixture.store.write_all([(item.key().clone(), Change::Delete)]);
                }
            }
            _ => drop(fixture.put(&format!("{}/{}", dice.below(4), dice.below(12)), "text")),
        }
        written += 1;
    }
}

#[tokio::test]
async fn every_retained_revision_reads_as_it_was() {
    for snapshot_every in [1, 16, 1000] {
        let fixture = Fixture::new(CacheOptions { watcher_queue: 4, snapshot_every, ..CacheOptions::default() }).await;
        write_some(&fixture, 300);
        let log = fixture.store.log();
        let newest = fixture.pods.reached().expect("something was written");
        for oldest in [None, Some(at(100)), Some(at(250)), Some(newest)] {
            if let Some(oldest) = oldest {
                fixture.store.compact(oldest).await.expect("it was written");
            }
            for revision in (1..=newest.get()).map(at) {
                match (fixture.pods.snapshot_at(revision), oldest) {
                    (Err(expired), Some(oldest)) if revision < oldest => {
                        assert_eq!(expired, Expired { asked: revision, oldest });
                    }
                    (Ok(Some(snapshot)), _) if Some(revision) >= oldest => {
                        assert_eq!(snapshot.revision(), Some(revision));
                        assert_eq!(state(&snapshot), model(&log, revision), "at {revision}");
                    }
                    (other, _) => panic!("{other:?} at {revision}, compacted to {oldest:?}"),
                }
            }
        }
    }
}

#[tokio::test]
async fn pages_of_one_list_are_one_snapshot() {
    let fixture = Fixture::new(CacheOptions { watcher_queue: 4, snapshot_every: 64, ..CacheOptions::default() }).await;
    for number in 0..10 {
        fixture.put(&format!("a/{number}"), "1");
    }
    let first = fixture.pods.snapshot();
    let pinned = first.revision().expect("something was written");
    let mut pages: Vec<_> = first.range(PODS, None).take(3).cloned().collect();
    while pages.len() < 10 {
        // Between the pages the objects change, go and come.
        fixture.put("a/1", "2");
        fixture.delete("a/9");
        fixture.put("a/9", "3");
        fixture.put(&format!("a/new-{}", pages.len()), "1");
        let page = fixture.pods.snapshot_at(pinned).expect("it is kept").expect("in memory");
        let last = pages.last().expect("there was a page").key().clone();
        pages.extend(page.range(PODS, Some(last.as_str())).take(3).cloned());
        assert_eq!(page.count(PODS), 10);
    }
    let listed: State = pages.iter().map(|item| (item.key().to_string(), item.revision())).collect();
    assert_eq!(listed, state(&first));
}

#[tokio::test]
async fn the_newest_state_is_at_the_stores_progress() {
    let fixture = Fixture::new(CacheOptions::default()).await;
    assert_eq!(fixture.pods.snapshot().revision(), None);
    let written = fixture.put("a/x", "1");
    assert_eq!(fixture.pods.snapshot().revision(), Some(written));
    let elsewhere = fixture.put_elsewhere();
    let snapshot = fixture.pods.snapshot();
    assert_eq!(snapshot.revision(), Some(elsewhere));
    assert_eq!((snapshot.count(PODS), fixture.pods.len()), (1, 1));
    assert_eq!(snapshot.get(key("a/x").as_str()).map(|item| item.revision()), Some(written));
    assert_eq!(fixture.pods.get(key("a/x").as_str()).map(|item| item.revision()), Some(written));
    assert!(fixture.pods.get(key("a/y").as_str()).is_none());
}

#[derive(Debug, Clone)]
enum Step {
    Put(u8),
    Delete(u8),
    Elsewhere,
    /// Lists, and watches from there to the end.
    Follow,
    /// Forgets all but the last so many revisions.
    Compact(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..12u8).prop_map(Step::Put),
        3 => (0..12u8).prop_map(Step::Delete),
        1 => Just(Step::Elsewhere),
        2 => Just(Step::Follow),
        1 => (0..20u8).prop_map(Step::Compact),
    ]
}

async fn list_then_watch(steps: Vec<Step>) {
    let store = MemoryStore::new();
    let options = CacheOptions { watcher_queue: 3, snapshot_every: 4, ..CacheOptions::default() };
    let fixture = Fixture::over(store, options).await;
    let mut followers = Vec::new();
    for step in steps {
        let pod = |name: u8| key(&format!("{}/{name}", name % 3));
        match step {
            Step::Put(name) => drop(fixture.store.write_all([(pod(name), draft("text"))])),
            Step::Delete(name) if fixture.pods.get(pod(name).as_str()).is_some() => {
                fixture.store.write_all([(pod(name), Change::Delete)]);
            }
            Step::Delete(_) => {}
            Step::Elsewhere => drop(fixture.put_elsewhere()),
            Step::Follow => {
                let snapshot = fixture.pods.snapshot();
                if let Some(revision) = snapshot.revision() {
                    let start = WatchStart::After(revision);
                    let watcher = fixture.pods.watch(WatchRequest { scope: Scope::All, filter: None, start });
                    followers.push((state(&snapshot), watcher.expect("the newest revision is kept")));
                }
            }
            Step::Compact(back) => {
                let number = fixture.pods.reached().map_or(0, Revision::get).saturating_sub(u64::from(back));
                if let Some(revision) = Revision::new(number) {
                    fixture.store.compact(revision).await.expect("it was written");
                }
            }
        }
    }
    let Some(last) = fixture.pods.reached() else { return };
    let want = state(&fixture.pods.snapshot());
    for (mut listed, mut watcher) in followers {
        let mut expired = false;
        while let Some(item) = soon(async {
            loop {
                match look(&mut watcher).await {
                    Poll::Ready(item) => return item,
                    Poll::Pending if watcher.progress() >= Some(last) => return None,
                    Poll::Pending => tokio::task::yield_now().await,
                }
            }
        })
        .await
        {
            match item {
                WatchItem::Event(_, delivery) => {
                    match delivery.new() {
                        Some(item) => listed.insert(item.key().to_string(), item.revision()),
                        None => delivery.old().and_then(|item| listed.remove(item.key().as_str())),
                    };
                }
                WatchItem::Expired(_) => expired = true,
                other => panic!("neither an event nor the end: {other:?}"),
            }
        }
        assert!(expired || listed == want, "{listed:?} is not {want:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_list_and_what_is_watched_after_it_make_the_final_list(steps in prop::collection::vec(step(), 0..120)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(list_then_watch(steps));
    }
}

#[tokio::test]
async fn two_resources_of_one_cache_do_not_mix() {
    let fixture = Fixture::new(CacheOptions::default()).await;
    let nodes = fixture.cache.add("/registry/nodes/", false).await.expect("the store answers");
    let written = fixture.put_elsewhere();
    fixture.put("a/x", "1");
    assert_eq!((nodes.len(), fixture.pods.len()), (1, 1));
    assert_eq!(nodes.snapshot().count("/registry/nodes/"), 1);
    let request = WatchRequest { scope: Scope::All, filter: None, start: WatchStart::After(written) };
    let mut watcher = nodes.watch(request).expect("it is kept");
    assert_eq!(settle(&mut watcher, at(2)).await, [""; 0]);
    let same = fixture.cache.add("/registry/nodes/", false).await.expect("the store answers");
    assert!(Arc::ptr_eq(&same, &nodes), "a resource is added once");
}
