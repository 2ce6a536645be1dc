//! Watchers come while writers write and the dispatcher works: each sees every event once and in order (W1).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use revisor_cache::{CacheOptions, Scope, Trigger, WatchItem, WatchRequest, WatchStart};
use revisor_store::{Change, Entry, Event};
use revisor_version::Revision;

use crate::fixture::{Dice, Fixture, PODS, draft, key, look, soon, text_begins};
use crate::memory_store::replay;

const WRITERS: u64 = 2;
const WRITES: u64 = 2500;
const WATCHERS: u64 = 120;

/// What pods say. It changes, so that they come into selections and leave them.
const TEXTS: [&str; 3] = ["red", "green", "blue"];

/// What one watcher saw.
struct Seen {
    scope: Scope,
    /// The revision of its initial state or that it began after.
    start: Revision,
    /// The initial state, if it asked for one.
    state: Option<Vec<Revision>>,
    events: Vec<Revision>,
}

fn in_scope(scope: &Scope, event: &Event) -> bool {
    match scope {
        Scope::All => event.key().as_str().starts_with(PODS),
        Scope::Namespace(namespace) => event.key().as_str().starts_with(&format!("{PODS}{namespace}/")),
        Scope::Object(key) => event.key() == key,
        Scope::Triggered(trigger) => {
            let mut sides = [&event.old, &event.new].into_iter().flatten();
            event.key().as_str().starts_with(PODS) && sides.any(|entry| says(entry, &trigger.value))
        }
    }
}

fn says(entry: &Entry, text: &str) -> bool {
    said(entry.bytes()) == text
}

/// The text of a pod.
fn said(object: &[u8]) -> &str {
    let object = std::str::from_utf8(object).expect("it was written as text");
    TEXTS.into_iter().find(|text| object.contains(&format!(r#""text":"{text}""#))).unwrap_or_default()
}

/// Watches from some random point on until the last write, which is to the pod `end/end`.
async fn follow(fixture: Arc<Fixture>, seed: u64) -> Seen {
    let mut dice = Dice::new(seed);
    let text = TEXTS[dice.below(3) as usize];
    let scope = match dice.below(5) {
        0 => Scope::Object(key("1/1")),
        1 => Scope::Namespace("2".to_owned()),
        2 => Scope::Triggered(Trigger { name: "text", value: text.into(), read: Arc::new(|item| said(item.bytes())) }),
        _ => Scope::All,
    };
    let filter = matches!(scope, Scope::Triggered(_)).then(|| text_begins(text));
    for _ in 0..dice.below(200) {
        tokio::task::yield_now().await;
    }
    let newest = fixture.pods.reached().expect("something was written");
    let start = match dice.below(3) {
        0 => WatchStart::State,
        1 => WatchStart::After(newest),
        _ => WatchStart::After(Revision::new(1 + dice.below(newest.get() + 20)).expect("not zero")),
    };
    let request = WatchRequest { scope: scope.clone(), filter, start };
    let mut watcher = fixture.pods.watch(request).expect("nothing was compacted");
    let mut state = Vec::new();
    let mut events = Vec::new();
    let mut start = match start {
        WatchStart::State => None,
        WatchStart::After(revision) => Some(revision),
    };
    let has_state = start.is_none();
    loop {
        if dice.below(50) == 0 {
            // Slow now and then, so that queues overrun.
            for _ in 0..dice.below(20) {
                tokio::task::yield_now().await;
            }
        }
        let is_pending = match look(&mut watcher).await {
            Poll::Ready(Some(WatchItem::State(item))) => {
                state.push(item.revision());
                false
            }
            Poll::Ready(Some(WatchItem::InitialEnd(revision))) => {
                assert!(start.replace(revision).is_none(), "the initial state ends once");
                false
            }
            Poll::Ready(Some(WatchItem::Event(_, delivery))) => {
                events.push(delivery.revision());
                false
            }
            Poll::Ready(other) => panic!("the watch ended: {other:?}"),
            Poll::Pending => true,
        };
        let is_over = is_pending
            && fixture.pods.get(key("end/end").as_str()).is_some_and(|end| watcher.progress() >= Some(end.revision()));
        if is_over {
            let start = start.expect("progress comes after the start");
            return Seen { scope, start, state: has_state.then_some(state), events };
        }
        if is_pending {
            tokio::task::yield_now().await;
        }
    }
}

fn write(fixture: &Fixture, seed: u64, running: &AtomicUsize) {
    let mut dice = Dice::new(seed);
    for _ in 0..WRITES {
        let batch = (0..1 + dice.below(3)).map(|_| {
            let pod = format!("{}/{}", dice.below(4), dice.below(9));
            (key(&pod), draft(TEXTS[dice.below(3) as usize]))
        });
        fixture.store.write_all(batch.collect::<Vec<_>>());
        if dice.below(10) == 0 {
            fixture.put_elsewhere();
        }
        if dice.below(20) == 0 {
            let only_mine = format!("{seed}/mine");
            fixture.put(&only_mine, "text");
            fixture.store.write_all([(key(&only_mine), Change::Delete)]);
        }
    }
    if running.fetch_sub(1, Ordering::SeqCst) == 1 {
        fixture.put("end/end", "text");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn each_watcher_sees_every_event_after_its_start_once_and_in_order() {
    let fixture =
        Arc::new(Fixture::new(CacheOptions { watcher_queue: 16, snapshot_every: 64, ..CacheOptions::default() }).await);
    fixture.put("1/1", "text");
    let running = Arc::new(AtomicUsize::new(WRITERS as usize));
    let writers: Vec<_> = (0..WRITERS)
        .map(|seed| {
            let (fixture, running) = (fixture.clone(), running.clone());
            std::thread::spawn(move || write(&fixture, seed + 1, &running))
        })
        .collect();
    let watchers: Vec<_> = (0..WATCHERS).map(|seed| tokio::spawn(follow(fixture.clone(), seed + 100))).collect();
    let mut all_seen = Vec::new();
    for watcher in watchers {
        all_seen.push(soon(watcher).await.expect("it does not panic"));
    }
    for writer in writers {
        writer.join().expect("it does not panic");
    }
    let log = fixture.store.log();
    for seen in all_seen {
        let own = |event: &&Event| in_scope(&seen.scope, event);
        let want: Vec<_> =
            log.iter().filter(own).map(|event| event.revision).filter(|revision| *revision > seen.start).collect();
        assert_eq!(seen.events, want, "{:?} after {}", seen.scope, seen.start);
        if let Some(state) = seen.state {
            let past = replay(log.iter().filter(own).filter(|event| event.revision <= seen.start));
            let is_selected = |entry: &Entry| match &seen.scope {
                Scope::Triggered(trigger) => says(entry, &trigger.value),
                _ => true,
            };
            let selected = past.values().filter(|entry| is_selected(entry));
            let want: Vec<_> = selected.map(|entry| entry.revision()).collect();
            assert_eq!(state, want, "{:?} at {}", seen.scope, seen.start);
        }
    }
    assert_eq!(fixture.pods.watcher_count(), 0);
}
