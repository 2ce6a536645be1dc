//! What stands on the disk, seen from below the store.

use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::{Change, Draft, Expect, Key};

async fn write(store: &EmbeddedStore, key: usize, change: Change) -> Committed {
    let write = Write { key: Key::new(format!("/k/{key}")), expect: Expect::Anything, change };
    store.write(write).await.expect("the write happens")
}

/// The revisions of the records in the log of a store that is closed.
fn records(options: &EmbeddedOptions) -> Vec<u64> {
    let log =
        Log::open(&options.folder.join("engine"), options.tuning.memtable_bytes, None).expect("the log can be opened");
    let mut revisions = vec![];
    let scanned = log.scan(|revision, _| {
        revisions.push(revision.get());
        Ok(())
    });
    scanned.expect("the log can be read");
    revisions
}

#[tokio::test]
async fn records_that_history_no_longer_needs_leave_the_disk() {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let mut options = EmbeddedOptions::new(folder.path());
    options.history.events = 64;
    options.tuning.memtable_bytes = 64 << 10;
    let store = EmbeddedStore::open(options.clone()).await.expect("the store can be opened");
    for number in 0..600 {
        let change = if number % 10 == 9 { Change::Delete } else { Change::Put(Draft::opaque(vec![b'x'; number])) };
        write(&store, if number % 10 == 9 { (number - 1) % 37 } else { number % 37 }, change).await;
    }
    let newest = store.current_revision().await.expect("an open store answers").map_or(0, Revision::get);
    let oldest = store.oldest_revision("").expect("there were more events than are kept");
    let at_oldest = store.list("", Page { at: Some(oldest), ..Page::default() }).await.expect("the oldest can be read");
    store.close().await;
    let mut want: Vec<u64> = at_oldest.entries.iter().map(|entry| entry.revision().get()).collect();
    want.sort_unstable();
    want.extend(oldest.get() + 1..=newest);
    assert_eq!(records(&options), want);
}

#[tokio::test]
async fn who_is_to_know_when_the_store_is_at_rest_is_told_on_the_thread_that_writes() {
    static RESTED: tokio::sync::Notify = tokio::sync::Notify::const_new();
    let folder = TempDir::new().expect("a temporary folder can be made");
    let mut options = EmbeddedOptions::new(folder.path());
    options.tuning.housekeeping = Duration::from_millis(20);
    options.at_rest = || {
        if std::thread::current().name() == Some("store-sequencer") {
            RESTED.notify_one();
        }
    };
    let store = EmbeddedStore::open(options).await.expect("the store can be opened");
    let rested = || tokio::time::timeout(Duration::from_secs(60), RESTED.notified());
    rested().await.expect("nobody has written yet");
    write(&store, 0, Change::Put(Draft::opaque("x"))).await;
    rested().await.expect("nobody writes any more");
}

#[tokio::test]
async fn what_an_abandoned_sweep_left_is_swept_at_the_next_opening() {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let options = EmbeddedOptions::new(folder.path());
    let store = EmbeddedStore::open(options.clone()).await.expect("the store can be opened");
    for number in 0..40 {
        write(&store, number % 4, Change::Put(Draft::opaque("x"))).await;
    }
    write(&store, 0, Change::Delete).await;
    store.close().await;
    drop(store);
    // A mark that moved while no record was removed, as a crash in the middle of a sweep leaves it.
    {
        let log = Log::open(&folder.path().join("engine"), options.tuning.memtable_bytes, None)
            .expect("the log can be opened");
        let Recovered { mut view, mut mark, .. } =
            recovery::recover(&log, &options.history, options.share_of, &*options.transformers)
                .expect("the log can be read");
        let mut dead = vec![];
        let newest = view.newest().expect("there were writes");
        view.index.forget(newest, |write| recovery::leave(write, &mut mark, &mut dead));
        mark.revision = Some(newest);
        assert_eq!(dead.len(), 38, "three of 41 records are live");
        log.forget(&mark, &dead[..5]).expect("the mark can be written");
    }
    let store = EmbeddedStore::open(options.clone()).await.expect("the store can be opened");
    assert_eq!(store.oldest_revision(""), Revision::new(41));
    assert_eq!(store.list("", Page::default()).await.expect("an open store can be listed").entries.len(), 3);
    store.close().await;
    assert_eq!(records(&options), [38, 39, 40]);
}

#[tokio::test]
async fn usage_is_what_a_recount_finds_also_after_a_crash() {
    let recount = async |store: &EmbeddedStore| {
        let listing = store.list("", Page::default()).await.expect("an open store can be listed");
        let page = store.events("", store.oldest_revision(""), usize::MAX).await.expect("history can be read");
        assert_eq!(page.through, listing.revision, "all of it is one page");
        let state = listing.entries.iter().map(|entry| usage::of_entry(entry)).sum();
        let history = page.events.iter().map(|event| usage::of_event(event.old.as_deref())).sum();
        Usage { state, history }
    };
    let folder = TempDir::new().expect("a temporary folder can be made");
    let mut options = EmbeddedOptions::new(folder.path());
    options.history.events = 50;
    let mut store = EmbeddedStore::open(options.clone()).await.expect("the store can be opened");
    for number in 0..200 {
        let text = format!("{{\"a\":\"{}\"}}", "x".repeat(number % 60));
        let change = match number % 7 {
            0 => Change::Delete,
            1 | 2 => Change::Put(Draft::opaque(text)),
            3 => Change::Mark(Draft::opaque(text)),
            _ => Change::Put(Draft::showing_revision_at(text, 1)),
        };
        let write = Write { key: Key::new(format!("/k/{}", number % 5)), expect: Expect::Anything, change };
        // To delete or mark what is not there changes nothing, which must not be counted either.
        let _ = store.write(write).await;
        assert_eq!(store.usage(), recount(&store).await, "after write {number}");
        if number % 50 == 49 {
            let before = store.usage();
            drop(store);
            store = EmbeddedStore::open(options.clone()).await.expect("the store can be opened");
            assert_eq!((store.usage(), recount(&store).await), (before, before), "after opening it again");
        }
    }
    let newest = store.current_revision().await.expect("an open store answers").expect("there were writes");
    store.compact(newest).await.expect("the revision was written");
    assert_eq!((store.usage().history, store.usage()), (0, recount(&store).await));
}

#[tokio::test]
async fn a_state_that_does_not_add_up_is_refused() {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let options = EmbeddedOptions::new(folder.path());
    let store = EmbeddedStore::open(options.clone()).await.expect("the store can be opened");
    for number in 0..5 {
        write(&store, number, Change::Put(Draft::opaque("x"))).await;
    }
    store.compact(Revision::new(3).expect("not zero")).await.expect("the revision was written");
    store.close().await;
    drop(store);
    for (name, gone, wants) in
        [("before the mark", 2, "before revision 3 are missing"), ("after it", 4, "record 4 is missing")]
    {
        let copy = TempDir::new().expect("a temporary folder can be made");
        copy_folder(folder.path(), copy.path());
        {
            let log = Log::open(&copy.path().join("engine"), options.tuning.memtable_bytes, None)
                .expect("the log can be opened");
            let mark = log.mark().expect("the mark can be read");
            log.forget(&mark, &[Revision::new(gone).expect("not zero")]).expect("a record can be removed");
        }
        let error = EmbeddedStore::open(EmbeddedOptions::new(copy.path())).await.expect_err("a record is missing");
        assert!(error.to_string().contains(wants), "{name}: {error}");
    }
}

#[tokio::test]
async fn times_never_run_backwards_and_outlast_a_reopen() {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let mut options = EmbeddedOptions::new(folder.path());
    let mut times = vec![];
    for seconds in [1_000_000_000, 999_999_000] {
        options.clock = Arc::new(move || SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        options.history.age = Duration::MAX;
        let store = EmbeddedStore::open(options.clone()).await.expect("the store can be opened");
        times.push(write(&store, 0, Change::Put(Draft::opaque("x"))).await.time);
        store.close().await;
    }
    assert_eq!(times[0], times[1]);
}

fn copy_folder(from: &std::path::Path, to: &std::path::Path) {
    for item in std::fs::read_dir(from).expect("the folder can be listed") {
        let item = item.expect("the folder can be listed");
        let target = to.join(item.file_name());
        if item.path().is_dir() {
            std::fs::create_dir_all(&target).expect("a folder can be made");
            copy_folder(&item.path(), &target);
        } else {
            std::fs::copy(item.path(), target).expect("a file can be copied");
        }
    }
}

#[tokio::test]
async fn reads_of_the_past_that_nobody_looks_at_hold_up_nobody() {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let store = EmbeddedStore::open(EmbeddedOptions::new(folder.path())).await.expect("the store can be opened");
    for number in 0..3 {
        write(&store, 0, Change::Put(Draft::opaque(number.to_string()))).await;
    }
    let read = || store.events("/k/", Some(Revision::FIRST), 10);
    let mut begun: Vec<_> = (0..2 * READERS).map(|_| read()).collect();
    for reading in &mut begun {
        // Begun, and left alone: a client that does not read does that to its watch.
        let _ = tokio::time::timeout(Duration::ZERO, reading).await;
    }
    assert_eq!(read().await.expect("there is a turn").events.len(), 2);
}
