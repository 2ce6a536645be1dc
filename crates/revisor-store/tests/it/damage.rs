//! Files that are not as they were left: a store opens with everything or not at all.

use std::fs;
use std::path::{Path, PathBuf};

use revisor_store::embedded::{EmbeddedOptions, EmbeddedStore};
use revisor_store::{Change, Draft, Event, Expect, Key, Page, Store, Write};
use revisor_version::Revision;
use tempfile::TempDir;

use crate::dice::Dice;

/// How often each file is damaged in each way.
const TRIES: u64 = 4;

#[tokio::test(flavor = "multi_thread")]
async fn damage_is_noticed_or_does_no_harm() {
    let seed = Dice::any_seed();
    let mut dice = Dice::new(seed);
    let folder = TempDir::new().expect("a temporary folder can be made");
    let whole = folder.path().join("whole");
    let want = make(&whole).await;
    let files = files_under(&whole);
    assert!(
        files.iter().any(|file| file.components().any(|part| part.as_os_str() == "tables")),
        "no tables: {files:?}"
    );
    let mut refused = 0;
    for file in &files {
        let length = whole.join(file).metadata().expect("the file is there").len();
        for number in 0..TRIES {
            let at = dice.below(length.max(1));
            for way in ["flip", "cut", "remove", "blank"] {
                if way == "remove" && number > 0 {
                    continue;
                }
                let copy = folder.path().join("copy");
                copy_folder(&whole, &copy);
                harm(&copy.join(file), way, at);
                let case = format!("{way} {} at {at} of {length} (seed {seed})", file.display());
                refused += u32::from(check(&copy, &want, &case).await);
                fs::remove_dir_all(&copy).expect("the copy can be removed");
            }
        }
    }
    assert!(refused > 20, "hardly anything was noticed: {refused}");
}

/// Damage in the middle of a journal is no torn tail, also when the store was not closed and its HEAD is far behind.
#[tokio::test(flavor = "multi_thread")]
async fn a_crashed_store_does_not_lose_what_follows_the_damage() {
    let folder = TempDir::new().expect("a temporary folder can be made");
    let whole = folder.path().join("whole");
    let store = EmbeddedStore::open(EmbeddedOptions::new(&whole)).await.expect("the store can be opened");
    for number in 0..20 {
        let change = Change::Put(Draft::opaque(format!("{number} {}", "x".repeat(500))));
        let write = Write { key: Key::new(format!("/k/{number}")), expect: Expect::Anything, change };
        store.write(write).await.expect("the write happens");
    }
    let want = contents(&store).await;
    drop(store);
    let journal = PathBuf::from("engine/0.jnl");
    let bytes = fs::read(whole.join(&journal)).expect("the journal can be read");
    let end = bytes.iter().rposition(|byte| *byte != 0).expect("the journal is not empty") + 1;
    // All but the last batch, which cannot be told from one that never was durable.
    for at in (0..end - 700).step_by(211) {
        let copy = folder.path().join("copy");
        copy_folder(&whole, &copy);
        let mut harmed = bytes[..end].to_vec();
        harmed[at] ^= 0x20;
        fs::write(copy.join(&journal), &harmed).expect("the file can be written");
        assert!(check(&copy, &want, &format!("flip at {at}")).await, "damage at {at} went unnoticed");
        // When not even the first batch can be read, only the engine knows what else there is, and it cuts.
        if at > 700 {
            assert_eq!(fs::read(copy.join(&journal)).ok(), Some(harmed), "a refusal leaves the files as they are");
        }
        fs::remove_dir_all(&copy).expect("the copy can be removed");
    }
}

struct Contents {
    entries: Vec<(String, Vec<u8>)>,
    newest: Option<Revision>,
    /// Of each resource, and what happened since.
    histories: Vec<(Option<Revision>, Vec<Event>)>,
}

impl Contents {
    /// Checks that nothing is missing of what is wanted. There may be more history: where the end of a journal is lost
    /// that only said what to forget, it is not forgotten.
    fn check(&self, want: &Contents, case: &str) {
        assert_eq!((&self.entries, self.newest), (&want.entries, want.newest), "{case}");
        for ((oldest, events), (want_oldest, want_events)) in self.histories.iter().zip(&want.histories) {
            assert!(oldest <= want_oldest && events.ends_with(want_events), "{case}: {oldest:?}, not {want_oldest:?}");
        }
    }
}

async fn contents(store: &EmbeddedStore) -> Contents {
    let listing = store.list("", Page::default()).await.expect("an open store can be listed");
    let entries = listing.entries.iter().map(|entry| (entry.key().to_string(), entry.bytes().to_vec())).collect();
    let mut histories = vec![];
    for prefix in ["", "/k/", "/noisy/"] {
        let oldest = store.oldest_revision(prefix);
        let page = store.events(prefix, oldest, usize::MAX).await.expect("history reaches back to where it begins");
        histories.push((oldest, page.events));
    }
    Contents { entries, newest: listing.revision, histories }
}

/// Makes a closed store with tables, a journal and some history, of which one resource has lost more than the other.
async fn make(folder: &Path) -> Contents {
    let mut options = EmbeddedOptions::new(folder);
    options.tuning.memtable_bytes = 16 << 10;
    options.history.events = 30;
    let mut last = None;
    for life in 0..3 {
        let store = EmbeddedStore::open(options.clone()).await.expect("the store can be opened");
        for number in 0..60 {
            let key = Key::new(if number % 3 == 0 { format!("/k/{}", number % 17) } else { "/noisy/1".to_owned() });
            let change = Change::Put(Draft::opaque(format!("{life} {number} {}", "x".repeat(700))));
            let write = Write { key, expect: Expect::Anything, change };
            store.write(write).await.expect("the write happens");
            if number == 20 {
                let newest = store.current_revision().await.expect("an open store answers");
                store.compact(newest.expect("there were writes")).await.expect("the revision was written");
            }
        }
        last = Some(contents(&store).await);
        assert!(store.oldest_revision("/noisy/") > store.oldest_revision("/k/"), "the noisy one has lost its own");
        store.close().await;
    }
    last.expect("it was written to")
}

/// Opens a damaged copy. True if it was refused; false if all is there.
async fn check(folder: &Path, want: &Contents, case: &str) -> bool {
    match EmbeddedStore::open(EmbeddedOptions::new(folder)).await {
        Ok(store) => {
            contents(&store).await.check(want, case);
            false
        }
        Err(error) => {
            assert!(error.to_string().contains(&folder.display().to_string()), "{case}: {error} names no file");
            true
        }
    }
}

fn harm(file: &Path, way: &str, at: u64) {
    let mut bytes = fs::read(file).expect("the file can be read");
    let at = at as usize;
    match way {
        "flip" if !bytes.is_empty() => bytes[at] ^= 0x20,
        "cut" => bytes.truncate(at),
        "blank" => bytes.iter_mut().skip(at).take(64).for_each(|byte| *byte = 0),
        "remove" => return fs::remove_file(file).expect("the file can be removed"),
        _ => {}
    }
    fs::write(file, bytes).expect("the file can be written");
}

/// The files of a folder, relative to it.
fn files_under(folder: &Path) -> Vec<PathBuf> {
    let mut files = vec![];
    for item in fs::read_dir(folder).expect("the folder can be listed") {
        let path = item.expect("the folder can be listed").path();
        let name = PathBuf::from(path.file_name().expect("an item has a name"));
        if path.is_dir() {
            files.extend(files_under(&path).into_iter().map(|file| name.join(file)));
        } else {
            files.push(name);
        }
    }
    files.sort();
    files
}

fn copy_folder(from: &Path, to: &Path) {
    for file in files_under(from) {
        let target = to.join(&file);
        fs::create_dir_all(target.parent().expect("a file is in a folder")).expect("a folder can be made");
        fs::copy(from.join(&file), target).expect("a file can be copied");
    }
}
