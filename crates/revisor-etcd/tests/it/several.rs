//! Several stores on one etcd.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use revisor_etcd::EtcdStore;
use revisor_store::{Change, Draft, Event, Expect, Key, News, Page, Sink, Store, StoreError, Write};
use revisor_version::Revision;

use crate::etcd::Etcd;

/// Remembers what it hears.
#[derive(Default)]
pub(crate) struct Heard(pub(crate) Mutex<Vec<String>>);

impl Sink for Heard {
    fn deliver(&self, news: News<'_>) {
        let tell = |event: &Event| format!("{} {}", event.revision, event.key());
        let told: Vec<String> = match news {
            News::Events(events) => events.iter().map(tell).collect(),
            News::Replaced { entries, revision } => vec![format!("{} objects at {revision}", entries.len())],
            News::Compacted(_) | News::Ended(_) => return,
        };
        self.0.lock().expect("not poisoned").extend(told);
    }
}

impl Heard {
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().expect("not poisoned").clone()
    }
}

pub(crate) fn put(key: &str, expect: Expect, text: &str) -> Write {
    Write { key: Key::new(key), expect, change: Change::Put(Draft::opaque(text.to_owned())) }
}

/// Waits until a store has told all that etcd holds.
pub(crate) async fn freshen(store: &EtcdStore) -> Option<Revision> {
    let newest = store.current_revision().await.expect("etcd answers");
    let mut progress = store.progress();
    let reached = progress.wait_for(|reached| *reached >= newest);
    tokio::time::timeout(Duration::from_secs(30), reached).await.expect("it comes in time").expect("the store is open");
    newest
}

#[tokio::test]
async fn what_one_writes_the_other_reads_watches_and_cannot_overwrite_unseen() {
    let etcd = Etcd::start();
    let (one, two) = (etcd.store().await, etcd.store().await);
    let heard = Arc::new(Heard::default());
    let _guard = two.watch("/k/", None, heard.clone()).await.expect("history is whole");
    let made = one.write(put("/k/a", Expect::Absent, "1")).await.expect("is free");
    freshen(&two).await;
    assert_eq!(two.list("/", Page::default()).await.expect("is open").entries, [made.new.clone().expect("was put")]);
    let changed = two.write(put("/k/a", Expect::At(made.revision), "2")).await.expect("nobody was faster");
    let refused = one.write(put("/k/a", Expect::At(made.revision), "3")).await;
    assert!(matches!(refused, Err(StoreError::Conflict { current, .. }) if current == changed.new));
    freshen(&two).await;
    assert_eq!(heard.all(), [format!("{} /k/a", made.revision), format!("{} /k/a", changed.revision)]);
}

#[tokio::test]
async fn a_revision_that_changed_nothing_here_is_reached_all_the_same() {
    let etcd = Etcd::start();
    let one = etcd.store().await;
    let other = revisor_etcd::EtcdOptions { prefix: "/elsewhere".to_owned(), ..etcd.options() };
    let two = EtcdStore::open(other, Arc::new(crate::framing::Framing)).await.expect("can be opened");
    let elsewhere = two.write(put("/k", Expect::Absent, "x")).await.expect("is free").revision;
    assert_eq!(freshen(&one).await, Some(elsewhere));
    assert_eq!(one.list("/", Page::default()).await.expect("is open").entries, []);
}

#[tokio::test]
async fn of_all_who_write_at_once_through_two_stores_each_write_counts() {
    let etcd = Etcd::start();
    let stores = [etcd.store().await, etcd.store().await];
    stores[0].write(put("/n", Expect::Absent, "0")).await.expect("is free");
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..8 {
        let store = stores[writer % 2].clone();
        writers.spawn(async move {
            for _ in 0..10 {
                let mut current = store.get("/n").await.expect("etcd answers").expect("is there");
                loop {
                    let count: u64 = String::from_utf8_lossy(current.bytes()).parse().expect("is a number");
                    let write = put("/n", Expect::At(current.revision()), &(count + 1).to_string());
                    match store.write(write).await {
                        Ok(_) => break,
                        Err(StoreError::Conflict { current: Some(newer), .. }) => current = newer,
                        Err(other) => panic!("{other}"),
                    }
                }
            }
        });
    }
    while let Some(done) = writers.join_next().await {
        done.expect("no writer panics");
    }
    for store in stores {
        let entry = store.get("/n").await.expect("etcd answers").expect("is there");
        assert_eq!(&entry.bytes()[..], b"80");
    }
}

#[tokio::test]
async fn objects_that_last_for_a_time_share_a_lease_and_go_for_everybody() {
    let etcd = Etcd::start();
    let times_to_live = vec![("/short/".to_owned(), Duration::from_secs(1))];
    let short = revisor_etcd::EtcdOptions { times_to_live, ..etcd.options() };
    let one = EtcdStore::open(short, Arc::new(crate::framing::Framing)).await.expect("can be opened");
    let two = etcd.store().await;
    for key in ["/short/a", "/short/b", "/long/a"] {
        one.write(put(key, Expect::Absent, "x")).await.expect("is free");
    }
    let last = freshen(&two).await;
    let mut progress = two.progress();
    // Two deletions, which nobody asked for.
    let gone = progress.wait_for(|reached| *reached >= last.map(|last| last.next().next()));
    tokio::time::timeout(Duration::from_secs(60), gone).await.expect("they go").expect("is open");
    let left = two.list("/", Page::default()).await.expect("is open").entries;
    assert_eq!(left.iter().map(|entry| entry.key().as_str()).collect::<Vec<_>>(), ["/long/a"]);
}

#[tokio::test]
async fn who_compacts_is_one_of_them() {
    let etcd = Etcd::start();
    let rest = Some(Duration::from_millis(300));
    let options = revisor_etcd::EtcdOptions { compaction: rest, ..etcd.options() };
    let one = EtcdStore::open(options.clone(), Arc::new(crate::framing::Framing)).await.expect("can be opened");
    let two = EtcdStore::open(options, Arc::new(crate::framing::Framing)).await.expect("can be opened");
    let first = one.write(put("/k", Expect::Absent, "1")).await.expect("is free").revision;
    two.write(put("/k", Expect::At(first), "2")).await.expect("nobody was faster");
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    while !(one.oldest_revision("") > Some(first) && two.oldest_revision("") > Some(first)) {
        assert!(tokio::time::Instant::now() < deadline, "nobody compacts");
        // Something must happen for there to be something to forget.
        one.write(put("/tick", Expect::Anything, "x")).await.expect("takes anything");
    }
    let result = two.list("/", Page { at: Some(first), ..Page::default() }).await;
    assert!(matches!(result, Err(StoreError::Compacted { .. })), "{result:?}");
}
