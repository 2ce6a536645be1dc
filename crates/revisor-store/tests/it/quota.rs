//! A store that holds as much as it may: what grows it is refused, everything else goes on, and nothing is lost.

use revisor_store::embedded::EmbeddedStore;
use revisor_store::{Change, Draft, Expect, Key, Page, Store, StoreError, Write};
use revisor_version::Revision;

use crate::fixture::Folder;

const QUOTA: u64 = 256 << 10;

fn text(bytes: usize) -> Draft {
    Draft::opaque(vec![b'x'; bytes])
}

async fn write(store: &EmbeddedStore, key: &str, change: Change) -> Result<Revision, StoreError> {
    let write = Write { key: Key::new(key), expect: Expect::Anything, change };
    let written = store.write(write).await.map(|event| event.revision);
    assert!(store.usage().total() <= QUOTA, "{:?} after a write to {key}", store.usage());
    written
}

/// Puts objects of 2,000 bytes until the store takes no more, and returns how many it took.
async fn fill(store: &EmbeddedStore) -> usize {
    for number in 0.. {
        match write(store, &format!("/k/{number:04}"), Change::Put(text(2000))).await {
            Ok(_) => {}
            Err(StoreError::NoSpace { used, quota }) => {
                assert_eq!((used, quota), (store.usage().state, QUOTA));
                return number;
            }
            Err(other) => panic!("{other}"),
        }
    }
    unreachable!("the numbers never end")
}

async fn open(folder: &Folder) -> EmbeddedStore {
    let store = folder.open().await;
    store.limit_to(Some(QUOTA));
    store
}

#[tokio::test]
async fn a_full_store_refuses_what_grows_it_and_lets_everything_else_pass() {
    let folder = Folder::new();
    let store = open(&folder).await;
    assert!(!store.is_full());
    let count = fill(&store).await;
    assert!(count > 90, "only {count} objects fit");
    assert!(store.is_full());
    let newest = store.current_revision().await.expect("an open store answers");

    for (name, key, change, is_taken) in [
        ("a small new object", "/new", Change::Put(text(2000)), false),
        ("an update that grows much", "/k/0000", Change::Put(text(9000)), false),
        ("an update of the same size", "/k/0000", Change::Put(text(2000)), true),
        ("an update that shrinks", "/k/0001", Change::Put(text(1900)), true),
        ("an update that grows a little", "/k/0002", Change::Put(text(2300)), true),
        ("a mark, however large", "/k/0003", Change::Mark(text(9000)), true),
        ("a deletion", "/k/0003", Change::Delete, true),
    ] {
        let written = write(&store, key, change).await;
        assert_eq!(written.is_ok(), is_taken, "{name}: {written:?}");
    }
    assert!(store.current_revision().await.expect("an open store answers") > newest, "a refusal takes no revision");

    // Deletions go on until there is room, and then the alarm is over.
    for number in 10..40 {
        write(&store, &format!("/k/{number:04}"), Change::Delete).await.expect("a deletion passes");
    }
    assert!(!store.is_full());
    write(&store, "/new", Change::Put(text(2000))).await.expect("there is room again");
}

#[tokio::test]
async fn history_gives_way_before_a_write_is_refused() {
    let folder = Folder::new();
    let store = open(&folder).await;
    // Twice the quota goes through one object; all but the last is history.
    for _ in 0..256 {
        write(&store, "/busy", Change::Put(text(2000))).await.expect("history gives way");
    }
    assert!(store.usage().history > QUOTA / 2, "{:?}", store.usage());
    let count = fill(&store).await;
    assert!(count > 90, "only {count} objects fit beside history");
    assert!(store.usage().history > 0, "a share of history is kept");
    // It can be read and watched from where it says that it begins.
    let oldest = store.oldest_revision("").expect("history gave way");
    let page = Page { at: Some(oldest), ..Page::default() };
    store.list("/", page).await.expect("the oldest revision can be read");
}

#[tokio::test]
async fn what_was_accepted_is_loaded_again_whatever_the_quota_says() {
    let folder = Folder::new();
    let store = open(&folder).await;
    let count = fill(&store).await;
    let (usage, newest) = (store.usage(), store.current_revision().await.expect("an open store answers"));
    // Dropped, not closed: to the next one this is a crash.
    drop(store);

    for quota in [QUOTA, QUOTA / 4, 1] {
        let store = folder.open().await;
        store.limit_to(Some(quota));
        assert!(store.is_full() || quota == QUOTA, "{quota}");
        assert_eq!(store.usage().state, usage.state);
        let listing = store.list("/", Page::default()).await.expect("an open store can be listed");
        assert_eq!((listing.entries.len(), listing.revision), (count, newest), "{quota}");
        let write = Write { key: Key::new("/new"), expect: Expect::Absent, change: Change::Put(text(2000)) };
        let refused = store.write(write).await;
        assert!(matches!(refused, Err(StoreError::NoSpace { .. })), "{quota}: {refused:?}");
        assert!(store.is_full(), "{quota}");
    }

    let store = folder.open().await;
    store.limit_to(None);
    assert!(!store.is_full() && store.quota().is_none());
    let write = Write { key: Key::new("/new"), expect: Expect::Absent, change: Change::Put(text(2000)) };
    store.write(write).await.expect("without a quota there is room");
}

#[tokio::test]
async fn the_writes_of_one_batch_share_what_is_left() {
    let folder = Folder::new();
    let store = std::sync::Arc::new(open(&folder).await);
    let mut writers = tokio::task::JoinSet::new();
    for number in 0..300 {
        let store = store.clone();
        writers.spawn(async move {
            let change = Change::Put(text(2000));
            store.write(Write { key: Key::new(format!("/w/{number}")), expect: Expect::Absent, change }).await
        });
    }
    let mut taken = 0;
    while let Some(result) = writers.join_next().await {
        match result.expect("no writer panics") {
            Ok(_) => taken += 1,
            Err(StoreError::NoSpace { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert!((90..128).contains(&taken), "{taken} were taken");
    assert!(store.usage().total() <= QUOTA, "{:?}", store.usage());
}
