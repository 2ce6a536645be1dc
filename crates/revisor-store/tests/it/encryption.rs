//! What is asked to be encrypted is never plain in the folder, and always plain to those who read it.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use revisor_store::embedded::{EmbeddedOptions, EmbeddedStore, OpenError};
use revisor_store::{
    Change, Draft, Expect, Identity, Key, Page, Plain, ResourceTransformers, Store, StoreError, TransformError,
    Transformer, Write,
};

use crate::fixture::Folder;

/// A cipher that anybody can break, which is enough to see where bytes go: all keys, the first for writing.
struct Masks(&'static [u8]);

impl Masks {
    fn mask(data: &[u8], authenticated: &[u8], mask: u8) -> impl Iterator<Item = u8> {
        let sum = authenticated.iter().fold(mask, |sum, byte| sum.wrapping_add(*byte));
        data.iter().map(move |byte| byte ^ sum)
    }
}

impl Transformer for Masks {
    fn transform_from_storage(&self, data: Bytes, authenticated: &[u8]) -> Result<Plain, TransformError> {
        let Some((mask, data)) = data.strip_prefix(b"k8s:enc:mask:").and_then(|rest| rest.split_first()) else {
            return Ok(Plain { bytes: data, is_stale: true });
        };
        if !self.0.contains(mask) {
            return Err(TransformError::new("no matching prefix found"));
        }
        let bytes = Masks::mask(data, authenticated, *mask).collect();
        Ok(Plain { bytes, is_stale: self.0.first() != Some(mask) })
    }

    fn transform_to_storage(&self, data: Bytes, authenticated: &[u8]) -> Result<Bytes, TransformError> {
        let mask = *self.0.first().ok_or_else(|| TransformError::new("there is no key"))?;
        let head = b"k8s:enc:mask:".iter().copied().chain([mask]);
        Ok(head.chain(Masks::mask(&data, authenticated, mask)).collect())
    }
}

/// Secrets are masked, nothing else is.
struct Secrets(&'static [u8]);

impl ResourceTransformers for Secrets {
    fn transformer_for(&self, key: &str) -> Arc<dyn Transformer> {
        if key.starts_with("/registry/secrets/") { Arc::new(Masks(self.0)) } else { Arc::new(Identity) }
    }
}

async fn open(folder: &Folder, masks: &'static [u8]) -> Result<EmbeddedStore, OpenError> {
    EmbeddedStore::open(EmbeddedOptions { transformers: Arc::new(Secrets(masks)), ..folder.options() }).await
}

async fn put(store: &EmbeddedStore, key: &str, text: &str) {
    let json = format!(r#"{{"metadata":{{"name":"a","uid":"u"}},"data":"{text}"}}"#);
    let change = Change::Put(Draft::showing_revision_at(json, 24));
    let write = Write { key: Key::new(key), expect: Expect::Anything, change };
    store.write(write).await.expect("is written");
}

fn is_in(folder: &Path, text: &str) -> bool {
    let files = fs::read_dir(folder).expect("can be listed").map(|item| item.expect("can be listed").path());
    files.into_iter().any(|path| {
        if path.is_dir() {
            return is_in(&path, text);
        }
        let bytes = fs::read(&path).expect("can be read");
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    })
}

const SECRET: &str = "/registry/secrets/default/a";

#[tokio::test]
async fn encrypted_objects_are_never_plain_in_the_folder_and_always_to_readers() {
    let folder = Folder::new();
    let store = open(&folder, b"1").await.expect("opens");
    put(&store, SECRET, "hidden-first").await;
    put(&store, SECRET, "hidden-second").await;
    put(&store, "/registry/configmaps/default/a", "shown").await;
    store.close().await;
    assert!(is_in(folder.path(), "shown") && !is_in(folder.path(), "hidden"));

    let store = open(&folder, b"21").await.expect("opens with the old key beside a new one");
    let entry = store.get(SECRET).await.expect("is read").expect("is there");
    let text = std::str::from_utf8(entry.bytes()).expect("is text");
    assert_eq!(text, r#"{"metadata":{"name":"a","resourceVersion":"2","uid":"u"},"data":"hidden-second"}"#);
    let page = Page { at: revisor_version::Revision::new(1), ..Page::default() };
    let past = store.list("/registry/secrets/", page).await.expect("history is read");
    assert!(String::from_utf8_lossy(past.entries[0].bytes()).contains("hidden-first"));
    let events = store.events("/registry/", None, 10).await.expect("history is read").events;
    assert_eq!(events[1].old.as_ref().map(|old| old.bytes().clone()), Some(past.entries[0].bytes().clone()));
}

#[tokio::test]
async fn what_was_encrypted_with_another_key_is_stale_until_it_is_written() {
    let folder = Folder::new();
    let store = open(&folder, b"1").await.expect("opens");
    put(&store, SECRET, "hidden").await;
    put(&store, "/registry/configmaps/default/a", "shown").await;
    let stale = async |store: &EmbeddedStore, key: &str| {
        let entry = store.get(key).await.expect("is read").expect("is there");
        store.is_stale(&entry).await.expect("can be told")
    };
    assert!(!stale(&store, SECRET).await);
    store.close().await;
    let store = open(&folder, b"21").await.expect("opens");
    assert!(stale(&store, SECRET).await && !stale(&store, "/registry/configmaps/default/a").await);
    let entry = store.get(SECRET).await.expect("is read").expect("is there");
    let write = Write { key: Key::new(SECRET), expect: Expect::Anything, change: Change::Put(entry.to_draft()) };
    store.write(write).await.expect("is written");
    assert!(!stale(&store, SECRET).await);
    store.close().await;

    // History still has a record that only the old key reads. That keeps nobody from starting without it.
    let store = open(&folder, b"2").await.expect("opens without the old key");
    assert!(store.get(SECRET).await.expect("is read").is_some());
    let past = store.events("/registry/secrets/", None, 1).await;
    assert!(matches!(past, Err(StoreError::Transform { .. })), "{past:?}");
}

#[tokio::test]
async fn a_store_whose_keys_are_missing_is_not_opened_and_stays_as_it_is() {
    let folder = Folder::new();
    let store = open(&folder, b"1").await.expect("opens");
    put(&store, SECRET, "hidden").await;
    store.close().await;
    let error = open(&folder, b"2").await.expect_err("the key is missing").to_string();
    assert_eq!(
        error,
        "unable to transform key \"/registry/secrets/default/a\": no matching prefix found; start with an encryption \
         configuration that has the key with which it was written"
    );
    let error = EmbeddedStore::open(folder.options()).await.expect_err("there are no keys at all");
    assert!(error.to_string().contains("identity transformer tried to read encrypted data"), "{error}");
    assert!(open(&folder, b"1").await.is_ok());

    let failing = open(&Folder::new(), b"").await.expect("opens");
    let change = Change::Put(Draft::opaque("x"));
    let refused = failing.write(Write { key: Key::new(SECRET), expect: Expect::Absent, change }).await;
    assert!(matches!(refused, Err(StoreError::Transform { .. })), "{refused:?}");
}
