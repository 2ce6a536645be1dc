//! History is kept as long as the limits say, and queues take what they have room for.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, SystemTime};

use revisor_store::embedded::{EmbeddedOptions, EmbeddedStore, MOST_KEY_BYTES, MOST_OBJECT_BYTES};
use revisor_store::{Change, Draft, Expect, Key, News, Page, Sink, Store, StoreError, Write};
use revisor_version::Revision;
use tokio::sync::watch;

use crate::fixture::Folder;

/// A sink that tells how far history was forgotten.
struct Forgotten(watch::Sender<Option<Revision>>);

impl Sink for Forgotten {
    fn deliver(&self, news: News<'_>) {
        if let News::Compacted(oldest) = news {
            self.0.send_replace(Some(oldest));
        }
    }
}

/// Waits for the store to forget up to `oldest` by itself.
async fn until_forgotten(forgotten: &mut watch::Receiver<Option<Revision>>, oldest: u64) {
    let waiting = forgotten.wait_for(|now| *now >= Revision::new(oldest));
    let waited = tokio::time::timeout(Duration::from_secs(30), waiting).await;
    assert!(waited.is_ok(), "history up to {oldest} was not forgotten");
}

fn put(key: &str, bytes: usize) -> Write {
    let change = Change::Put(Draft::opaque(vec![b'x'; bytes]));
    Write { key: Key::new(key), expect: Expect::Anything, change }
}

async fn open(options: EmbeddedOptions) -> EmbeddedStore {
    EmbeddedStore::open(options).await.expect("the store can be opened")
}

#[tokio::test]
async fn old_history_is_forgotten_although_nobody_writes() {
    let folder = Folder::new();
    let seconds = Arc::new(AtomicU64::new(1_000_000));
    let mut options = folder.options();
    options.history.age = Duration::from_secs(60);
    options.tuning.housekeeping = Duration::from_millis(5);
    let clock = seconds.clone();
    options.clock = Arc::new(move || SystemTime::UNIX_EPOCH + Duration::from_secs(clock.load(Ordering::Relaxed)));
    let store = open(options.clone()).await;
    let (sender, mut forgotten) = watch::channel(None);
    let _guard = store.watch("/none/", None, Arc::new(Forgotten(sender))).await.expect("history is whole");
    for number in 0..3 {
        store.write(put(&format!("/k/{number}"), 10)).await.expect("the write happens");
        seconds.fetch_add(20, Ordering::Relaxed);
    }
    // 60 seconds after the first write, 40 after the second.
    until_forgotten(&mut forgotten, 1).await;
    assert_eq!(store.oldest_revision(""), Some(Revision::FIRST));
    store.close().await;

    // Time goes on while the store is closed.
    seconds.fetch_add(20, Ordering::Relaxed);
    let store = open(options).await;
    let (sender, mut forgotten) = watch::channel(None);
    let _guard =
        store.watch("/none/", Revision::new(3), Arc::new(Forgotten(sender))).await.expect("three were written");
    if store.oldest_revision("") < Revision::new(2) {
        until_forgotten(&mut forgotten, 2).await;
    }
    assert_eq!(store.oldest_revision(""), Revision::new(2));
    seconds.fetch_add(1000, Ordering::Relaxed);
    until_forgotten(&mut forgotten, 3).await;
    assert_eq!(store.list("/", Page::default()).await.expect("an open store can be listed").entries.len(), 3);
}

#[tokio::test]
async fn history_is_bounded_in_events_and_in_bytes() {
    for (name, events, bytes, most) in [("events", 10, usize::MAX, 10), ("bytes", usize::MAX, 20_000, 20)] {
        let folder = Folder::new();
        let mut options = folder.options();
        options.history.events = events;
        options.history.bytes = bytes;
        for _ in 0..2 {
            let store = open(options.clone()).await;
            for _ in 0..50 {
                let newest = store.write(put("/k", 1000)).await.expect("the write happens").revision;
                let oldest = store.oldest_revision("").map_or(0, Revision::get);
                assert!(newest.get() - oldest <= most, "{name}: {oldest} to {newest}");
            }
            assert!(store.oldest_revision("").is_some(), "{name}");
            store.close().await;
        }
    }
}

/// One who writes more than all of history may hold loses its own past, and nobody else's; also after a reopening.
#[tokio::test]
async fn a_noisy_resource_loses_its_own_history_first() {
    for (name, events, bytes) in [("events", 100, usize::MAX), ("bytes", usize::MAX, 100_000)] {
        let folder = Folder::new();
        let mut options = folder.options();
        options.history.events = events;
        options.history.bytes = bytes;
        let mut store = open(options.clone()).await;
        let (sender, quiet) = watch::channel(None);
        let _quiet = store.watch("/quiet/", None, Arc::new(Forgotten(sender))).await.expect("history is whole");
        let (sender, noisy) = watch::channel(None);
        let _noisy = store.watch("/noisy/", None, Arc::new(Forgotten(sender))).await.expect("history is whole");
        let mut states = vec![];
        for number in 0..4 {
            let revision =
                store.write(put(&format!("/quiet/{}", number % 3), 1000)).await.expect("it happens").revision;
            states.push((revision, store.list("/quiet/", Page::default()).await.expect("it can be listed").entries));
            for key in 0..100 {
                store.write(put(&format!("/noisy/{}", key % 7), 1000)).await.expect("the write happens");
            }
        }
        store.write(Write { change: Change::Delete, ..put("/quiet/2", 0) }).await.expect("the write happens");
        assert_eq!(*quiet.borrow(), None, "{name}: it has lost nothing");
        assert_eq!(*noisy.borrow(), store.oldest_revision("/noisy/"), "{name}: it was told");
        for reopened in [false, true] {
            assert_eq!(store.oldest_revision("/quiet/"), None, "{name}, reopened {reopened}");
            assert!(store.oldest_revision("/noisy/") > Revision::new(300), "{name}, reopened {reopened}");
            for (at, want) in &states {
                let page = Page { at: Some(*at), ..Page::default() };
                let listing = store.list("/quiet/", page.clone()).await.expect("its history is whole");
                assert_eq!(&listing.entries, want, "{name} at {at}, reopened {reopened}");
                let error = store.list("/noisy/", page).await.expect_err("its history is shorter");
                assert!(matches!(error, StoreError::Compacted { .. }), "{name}: {error:?}");
            }
            let page = store.events("/quiet/", None, 100).await.expect("its history is whole");
            assert_eq!(page.events.len(), 5, "{name}, reopened {reopened}");
            store.close().await;
            store = open(options.clone()).await;
        }
        // All that was removed in between is forgotten with the rest, and the next opening misses nothing.
        let newest = store.current_revision().await.expect("an open store answers").expect("there were writes");
        store.compact(newest).await.expect("the revision was written");
        store.close().await;
        let store = open(options).await;
        assert_eq!(store.oldest_revision("/quiet/"), Some(newest), "{name}");
        assert_eq!(store.list("/", Page::default()).await.expect("it can be listed").entries.len(), 9, "{name}");
    }
}

/// The newest write may be a deletion whose record is removed at once: its number is not given again.
#[tokio::test]
async fn a_revision_is_not_given_again_when_its_record_is_gone() {
    let folder = Folder::new();
    let mut options = folder.options();
    options.history.events = 3;
    let store = open(options.clone()).await;
    store.write(put("/quiet/1", 10)).await.expect("the write happens");
    for _ in 0..5 {
        store.write(put("/noisy/1", 10)).await.expect("the write happens");
        store.write(Write { change: Change::Delete, ..put("/noisy/1", 0) }).await.expect("the write happens");
    }
    store.close().await;
    options.history.events = 1;
    for _ in 0..3 {
        let store = open(options.clone()).await;
        assert_eq!(store.current_revision().await.expect("an open store answers"), Revision::new(11));
        assert_eq!(store.oldest_revision("/noisy/"), Revision::new(11));
        store.close().await;
    }
    let store = open(options).await;
    assert_eq!(store.write(put("/noisy/1", 10)).await.expect("the write happens").revision.get(), 12);
}

/// A folder that the program before this one left: its format is another, and its mark a shorter one.
#[tokio::test]
async fn a_folder_of_the_first_format_is_brought_up_to_date() {
    let folder = Folder::new();
    let store = folder.open().await;
    store.write(put("/k", 10)).await.expect("the write happens");
    store.close().await;
    let format = folder.path().join("FORMAT");
    std::fs::write(&format, "revisor-store 1\n").expect("the file can be written");
    let store = folder.open().await;
    assert!(store.get("/k").await.expect("an open store answers").is_some());
    assert_eq!(std::fs::read_to_string(&format).expect("the file is there"), "revisor-store 2\n");
}

#[tokio::test]
async fn what_is_too_large_is_refused() {
    let folder = Folder::new();
    let store = folder.open().await;
    store.write(put(&"k".repeat(MOST_KEY_BYTES), MOST_OBJECT_BYTES)).await.expect("this is just small enough");
    for (what, write) in
        [("key", put(&"k".repeat(MOST_KEY_BYTES + 1), 1)), ("object", put("/k", MOST_OBJECT_BYTES + 1))]
    {
        let result = store.write(write).await;
        assert!(matches!(result, Err(StoreError::TooLarge { what: told, .. }) if told == what), "{what}: {result:?}");
    }
}

#[tokio::test]
async fn a_full_queue_refuses_writes_and_comes_back() {
    /// Holds the sequencer until it is told to go on.
    struct Holds(Mutex<mpsc::Receiver<()>>, watch::Sender<bool>);
    impl Sink for Holds {
        fn deliver(&self, _: News<'_>) {
            self.1.send_replace(true);
            let _ = self.0.lock().expect("not poisoned").recv();
        }
    }
    let folder = Folder::new();
    let mut options = folder.options();
    options.tuning.queue_bytes = 4 * (16 << 10);
    let store = Arc::new(open(options).await);
    let (go_on, held) = mpsc::channel();
    let (holding, mut is_holding) = watch::channel(false);
    let _guard = store.watch("/", None, Arc::new(Holds(Mutex::new(held), holding))).await.expect("history is whole");
    let mut writers = tokio::task::JoinSet::new();
    let mut start = |number| {
        let store = store.clone();
        writers.spawn(async move { store.write(put(&format!("/k/{number}"), 10)).await });
    };
    start(0);
    is_holding.wait_for(|holding| *holding).await.expect("the sink is there");
    // The first is with the sequencer; there is room for four more.
    (1..=6).for_each(&mut start);
    for _ in 0..2 {
        let refused = writers.join_next().await.expect("two are refused").expect("no writer panics");
        assert!(matches!(refused, Err(StoreError::Overloaded)), "{refused:?}");
    }
    drop(go_on);
    while let Some(result) = writers.join_next().await {
        result.expect("no writer panics").expect("the write happens");
    }
    store.write(put("/k/again", 10)).await.expect("there is room again");
    assert_eq!(store.list("/", Page::default()).await.expect("an open store can be listed").entries.len(), 6);
}
