//! Which folders are opened, which are refused, and what the refusal says.

use std::fs;

use revisor_store::embedded::{EmbeddedOptions, EmbeddedStore, OpenError, copy_store};
use revisor_store::{Change, Draft, Expect, Key, Store, Write};

use crate::fixture::Folder;

async fn refusal(folder: &Folder) -> OpenError {
    EmbeddedStore::open(folder.options()).await.expect_err("the folder is refused")
}

fn write() -> Write {
    Write { key: Key::new("/k"), expect: Expect::Anything, change: Change::Put(Draft::opaque("x")) }
}

#[tokio::test]
async fn a_folder_has_one_owner() {
    let folder = Folder::new();
    let first = folder.open().await;
    let error = refusal(&folder).await;
    assert!(matches!(error, OpenError::InUse { .. }), "{error:?}");
    assert!(error.to_string().contains(&folder.path().display().to_string()), "{error}");
    first.write(write()).await.expect("the owner is not disturbed");
    first.close().await;
    // Closed is enough: the value may live on.
    let second = folder.open().await;
    second.write(write()).await.expect("the new owner can write");
    drop(second);
    folder.open().await;
}

#[tokio::test]
async fn a_folder_that_is_no_store_of_this_program_is_refused() {
    for (name, file, text, wants) in [
        ("a newer format", "FORMAT", Some("revisor-store 4\n"), "format 4"),
        ("a store that is encrypted", "FORMAT", Some("revisor-store 3\n"), "no key is given"),
        ("a format of nobody", "FORMAT", Some("revisor-store one\n"), "no known format"),
        ("an older format", "FORMAT", Some("revisor-store 0\n"), "no known format"),
        ("garbage for a format", "FORMAT", Some("\u{1}\u{2}"), "no known format"),
        ("no format", "FORMAT", None, "is missing"),
        ("no head", "HEAD", None, "is missing"),
        ("a head that was edited", "HEAD", Some("revisor-head 1 5 00000000\n"), "checksum"),
        ("an empty head", "HEAD", Some(""), "checksum"),
    ] {
        let folder = Folder::new();
        let store = folder.open().await;
        store.write(write()).await.expect("the write happens");
        store.close().await;
        let path = folder.path().join(file);
        let before = fs::read(&path).expect("the file is there");
        match text {
            Some(text) => fs::write(&path, text).expect("the file can be written"),
            None => fs::remove_file(&path).expect("the file can be removed"),
        }
        let error = refusal(&folder).await;
        assert!(error.to_string().contains(wants), "{name}: {error}");
        assert!(error.to_string().contains(&path.display().to_string()), "{name}: {error}");
        fs::write(&path, before).expect("the file can be written");
        assert!(folder.open().await.get("/k").await.expect("an open store answers").is_some(), "{name}");
    }
}

#[tokio::test]
async fn a_folder_with_other_things_in_it_is_left_alone() {
    let folder = Folder::new();
    fs::write(folder.path().join("thesis.txt"), "years of work").expect("the file can be written");
    let error = refusal(&folder).await;
    assert!(matches!(error, OpenError::NotAStore { .. }) && error.to_string().contains("thesis.txt"), "{error}");
    assert!(!folder.path().join("engine").exists());
}

#[tokio::test]
async fn an_unfinished_store_is_made_anew() {
    let folder = Folder::new();
    folder.open().await.close().await;
    // What a crash leaves while the engine makes its files: HEAD says that it was at it.
    let body = "creating";
    let head = format!("revisor-head 1 {body} {:08x}\n", crc32fast::hash(body.as_bytes()));
    fs::write(folder.path().join("HEAD"), head).expect("the file can be written");
    fs::remove_file(folder.path().join("engine/version")).expect("the engine has a version file");
    let store = folder.open().await;
    assert_eq!(store.write(write()).await.expect("the write happens").revision.get(), 1);
}

#[tokio::test]
async fn writes_that_the_head_knows_of_cannot_go_missing() {
    let folder = Folder::new();
    let store = folder.open().await;
    for _ in 0..5 {
        store.write(write()).await.expect("the write happens");
    }
    store.close().await;
    let fresh = Folder::new();
    fresh.open().await.close().await;
    let engine = folder.path().join("engine");
    fs::remove_dir_all(&engine).expect("the engine's folder can be removed");
    let error = refusal(&folder).await;
    assert!(error.to_string().contains("engine"), "{error}");
    // An engine that is in order, but empty, is no better.
    fs::rename(fresh.path().join("engine"), &engine).expect("the folder can be moved");
    let error = refusal(&folder).await;
    assert!(error.to_string().contains("end at revision 0, but 5 was durable"), "{error}");
}

/// Who only wants to look opens a copy: the original is not touched, and not taken from whoever has it open.
#[tokio::test]
async fn a_copy_can_be_opened_in_the_place_of_the_original() {
    let (folder, target) = (Folder::new(), Folder::new());
    let copy = target.path().join("copy");
    let error = copy_store(folder.path(), &copy).expect_err("there is no store yet");
    assert!(matches!(error, OpenError::NotAStore { .. }), "{error:?}");
    assert!(!folder.path().join("LOCK").exists(), "nothing was made");
    let store = folder.open().await;
    store.write(write()).await.expect("the write happens");
    let error = copy_store(folder.path(), &copy).expect_err("somebody has it open");
    assert!(matches!(error, OpenError::InUse { .. }), "{error:?}");
    store.close().await;
    copy_store(folder.path(), &copy).expect("nobody has it open");
    let opened = EmbeddedStore::open(EmbeddedOptions::new(&copy)).await.expect("it is a store");
    let original = folder.open().await;
    for store in [&opened, &original] {
        assert!(store.get("/k").await.expect("an open store answers").is_some());
    }
}
