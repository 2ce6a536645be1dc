//! A disk that takes no more: the store serves what it has, refuses writes, and has lost nothing when there is room
//! again. The limit on the size of files makes a real disk fail where a full one would.

use std::path::Path;

use revisor_store::embedded::{EmbeddedOptions, EmbeddedStore};
use revisor_store::{Change, Draft, Expect, Key, Page, Store, StoreError, Write};

use crate::child;
use crate::fixture::Folder;
use crate::ledger::{Ledger, replay, tell};

/// What a block of `ulimit -f` is taken for at most; POSIX says half of that.
const LIMIT_BLOCKS: u64 = 1024;

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_makes_the_store_read_only_and_loses_nothing() {
    let folder = Folder::new();
    // Twice, because the first journal of a store is larger than the limit until it is opened again.
    for _ in 0..2 {
        folder.open().await.close().await;
    }
    let setup = format!("trap '' XFSZ; ulimit -f {LIMIT_BLOCKS}");
    let output = child::command_after(&setup, "full", folder.path(), "").output().expect("the child can be started");
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(child::said(&output).last(), Some("done"), "{output}");
    let mut ledger = Ledger::default();
    for line in child::said(&output).filter(|line| *line != "done") {
        ledger.note_line(line);
    }
    assert!(ledger.newest() > 10, "the disk was full from the start: {output}");
    let store = folder.open().await;
    ledger.check(&store).await;
    store.write(large("/again")).await.expect("there is room again");
    assert!(store.failure().is_none());
}

fn large(key: &str) -> Write {
    let change = Change::Put(Draft::opaque("x".repeat(10_000)));
    Write { key: Key::new(key), expect: Expect::Anything, change }
}

/// Writes until the disk refuses, and checks that everything but writing goes on.
pub(crate) async fn child(folder: &Path) {
    let store = EmbeddedStore::open(EmbeddedOptions::new(folder)).await.expect("the store can be opened");
    let mut number = 0;
    let failure = loop {
        let (first, second) = (format!("/k/{number}"), format!("/k/{number}/more"));
        let (first, second) = tokio::join!(store.write(large(&first)), store.write(large(&second)));
        for event in [&first, &second].into_iter().flatten() {
            child::say(&tell(event));
        }
        if let Some(error) = first.err().or(second.err()) {
            break error;
        }
        number += 1;
        assert!(number < 10_000, "the disk never gets full");
    };
    assert!(matches!(failure, StoreError::ReadOnly(_)), "{failure:?}");
    let again = store.write(large("/k")).await;
    assert!(matches!(again, Err(StoreError::ReadOnly(_))), "{again:?}");
    assert!(matches!(store.failure(), Some(StoreError::ReadOnly(_))));
    // Reads and watches go on with what was acknowledged.
    let newest = store.current_revision().await.expect("the store can be read");
    let listing = store.list("/", Page::default()).await.expect("the store can be listed");
    assert_eq!((listing.revision, listing.entries.len() as u64), (newest, newest.map_or(0, |newest| newest.get())));
    assert_eq!(replay(&store, None).await.len(), listing.entries.len());
    store.close().await;
    child::say("done");
}
