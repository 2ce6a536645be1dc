//! Objects are counted by class, exactly, while writers write (and nothing is walked for it).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use revisor_cache::{Cache, CacheOptions, ResourceCache};
use revisor_store::{Change, Store};

use crate::fixture::{Dice, PODS, at, draft, key, put};
use crate::memory_store::MemoryStore;

const WRITERS: u64 = 3;
const OBJECTS: u64 = 30;
const WRITES: u64 = 2000;

/// The class of an object is the last letter of its text.
fn last_letter(bytes: &[u8]) -> Cow<'_, str> {
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    text.strip_suffix(r#""}"#).and_then(|text| text.get(text.len() - 1..)).unwrap_or_default().into()
}

async fn tallied(store: &Arc<MemoryStore>) -> (Arc<Cache>, Arc<ResourceCache>) {
    let cache = Cache::start(store.clone(), CacheOptions::default());
    let pods = cache.add_tallied(PODS, true, last_letter).await.expect("the store answers");
    (cache, pods)
}

fn recount(pods: &ResourceCache) -> Vec<(Box<str>, u64)> {
    let mut counts: BTreeMap<Box<str>, u64> = BTreeMap::new();
    for item in pods.snapshot().range(PODS, None) {
        *counts.entry(last_letter(item.bytes()).into()).or_default() += 1;
    }
    counts.into_iter().collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn counts_are_exact_while_writers_write() {
    let store = MemoryStore::new();
    for writer in 0..WRITERS {
        for number in 0..OBJECTS {
            put(&store, &format!("{writer}/{number}"), "a");
        }
    }
    let (_cache, pods) = tallied(&store).await;
    assert_eq!(pods.counts(), [("a".into(), WRITERS * OBJECTS)], "what was there before");
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let store = store.clone();
            std::thread::spawn(move || {
                let mut dice = Dice::new(writer + 1);
                for _ in 0..WRITES {
                    let class = ["a", "b", "c"][dice.below(3) as usize];
                    put(&store, &format!("{writer}/{}", dice.below(OBJECTS)), class);
                }
            })
        })
        .collect();
    while !writers.iter().all(std::thread::JoinHandle::is_finished) {
        // Objects change their class only, so at every moment there are as many.
        let all: u64 = pods.counts().iter().map(|(_, count)| count).sum();
        assert_eq!(all, WRITERS * OBJECTS);
        tokio::task::yield_now().await;
    }
    writers.into_iter().for_each(|writer| writer.join().expect("it does not panic"));
    assert_eq!(pods.counts(), recount(&pods));
    let gone = (0..OBJECTS).map(|number| (key(&format!("0/{number}")), Change::Delete));
    store.write_all(gone.collect::<Vec<_>>());
    assert_eq!(pods.counts(), recount(&pods));
    assert_eq!(pods.counts().iter().map(|(_, count)| count).sum::<u64>(), (WRITERS - 1) * OBJECTS);
}

#[tokio::test]
async fn counts_are_the_same_after_a_restart() {
    for compacted in [None, Some(at(3)), Some(at(6))] {
        let store = MemoryStore::new();
        for (pod, class) in [("a/x", "a"), ("a/y", "a"), ("a/x", "b"), ("a/z", "b"), ("a/y", "c"), ("a/w", "a")] {
            store.write_all([(key(pod), draft(class))]);
        }
        if let Some(revision) = compacted {
            store.compact(revision).await.expect("it was written");
        }
        let (cache, pods) = tallied(&store).await;
        assert_eq!(pods.counts(), [("a".into(), 1), ("b".into(), 2), ("c".into(), 1)], "{compacted:?}");
        store.write_all([(key("a/w"), Change::Delete)]);
        assert_eq!(pods.counts(), [("b".into(), 2), ("c".into(), 1)], "{compacted:?}");
        let again = cache.add(PODS, true).await.expect("the store answers");
        assert_eq!(again.counts(), pods.counts(), "it is the same resource");
    }
}

#[tokio::test]
async fn what_nobody_wants_counted_is_not() {
    let store = MemoryStore::new();
    put(&store, "a/x", "a");
    let cache = Cache::start(store, CacheOptions::default());
    let pods = cache.add(PODS, true).await.expect("the store answers");
    assert_eq!((pods.counts(), pods.len()), (Vec::new(), 1));
}
