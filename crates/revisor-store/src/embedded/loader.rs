//! [`Loader`]: makes the store of a new folder out of objects that have revisions already, because they come from
//! elsewhere.
//!
//! What it leaves is the folder of a store that has forgotten all history before its newest revision. So whoever knows an
//! older resource version is told that it is too old, and lists again; and nobody is ever told a smaller one.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::SystemTime;

use revisor_version::Revision;

use super::folder::{Folder, Head};
use super::log::Log;
use super::mark::Mark;
use super::record::{self, Record};
use super::{EmbeddedOptions, OpenError, check_size, sealing};
use crate::{Draft, Key, ResourceTransformers, StoreError};

/// How many bytes are written at once.
const BATCH: usize = 4 << 20;

/// Why objects could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The folder could not be made a store.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// There is a store already.
    #[error("there is a store in {} already", .0.display())]
    NotEmpty(std::path::PathBuf),
    /// An object cannot be stored.
    #[error("cannot store {key}")]
    Object {
        /// Which.
        key: Key,
        /// Why.
        #[source]
        cause: StoreError,
    },
    /// The disk did not take it.
    #[error("cannot write: {0}")]
    Write(Arc<str>),
}

/// A store that is being made.
pub struct Loader {
    folder: Folder,
    log: Log,
    transformers: Arc<dyn ResourceTransformers>,
    time: SystemTime,
    mark: Mark,
    newest: Revision,
    taken: HashSet<Revision>,
    batch: Vec<(Revision, Vec<u8>)>,
    batch_bytes: usize,
}

impl Loader {
    /// Makes the folder that the options name, whose newest revision will be `newest` or later.
    ///
    /// # Errors
    /// If it cannot be made, or holds something.
    pub fn create(options: &EmbeddedOptions, newest: Revision) -> Result<Loader, LoadError> {
        let folder = Folder::lock(&options.folder)?;
        if folder.prepare(options.cipher.is_some())? != Head::Creating {
            return Err(LoadError::NotEmpty(options.folder.clone()));
        }
        let log = Log::open(&folder.engine(), options.tuning.memtable_bytes, options.cipher.clone())?;
        Ok(Loader {
            folder,
            log,
            transformers: options.transformers.clone(),
            time: record::whole_milliseconds((options.clock)()),
            mark: Mark::default(),
            newest,
            taken: HashSet::new(),
            batch: Vec::new(),
            batch_bytes: 0,
        })
    }

    /// Stores an object, at a key that holds nothing yet, and answers its revision: the one that is asked for, or, where
    /// another object has that or it is not reached yet, a new one.
    ///
    /// # Errors
    /// If it is too large, cannot be encrypted, or cannot be written.
    pub fn put(&mut self, key: &Key, revision: Revision, draft: &Draft) -> Result<Revision, LoadError> {
        let failed = |cause| LoadError::Object { key: key.clone(), cause };
        check_size(key, Some(draft)).map_err(failed)?;
        let sealed = sealing::seal(&*self.transformers, key, draft).map_err(failed)?;
        let is_free = revision <= self.newest && !self.taken.contains(&revision);
        let revision = if is_free {
            revision
        } else {
            self.newest = self.newest.next();
            self.newest
        };
        self.taken.insert(revision);
        self.mark.base.add(revision);
        // All that stands before it is durable when the store is opened for the first time.
        let record = Record { place: 0, time: self.time, key: key.clone(), draft: Some(sealed) };
        let bytes = record.encode(revision);
        self.batch_bytes += bytes.len();
        self.batch.push((revision, bytes));
        if self.batch_bytes >= BATCH {
            self.flush()?;
        }
        Ok(revision)
    }

    /// Makes everything durable, and the folder a store. Answers its newest revision.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> Result<Revision, LoadError> {
        self.flush()?;
        self.mark.revision = Some(self.newest);
        self.log.forget(&self.mark, &[]).map_err(LoadError::Write)?;
        self.log.sync().map_err(LoadError::Write)?;
        let head = self.folder.write_head(Head::Durable(self.newest.get()));
        head.map_err(|error| LoadError::Write(error.to_string().into()))?;
        Ok(self.newest)
    }

    fn flush(&mut self) -> Result<(), LoadError> {
        self.batch_bytes = 0;
        self.log.append(std::mem::take(&mut self.batch)).map_err(LoadError::Write)
    }
}

impl std::fmt::Debug for Loader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loader")
            .field("newest", &self.newest)
            .field("objects", &self.taken.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::EmbeddedStore;
    use crate::{Change, Expect, Page, Store, Write};

    fn at(number: u64) -> Revision {
        Revision::new(number).expect("not zero")
    }

    fn draft(text: &str) -> Draft {
        Draft::showing_revision_at(format!("{{\"name\":\"{text}\"}}").into_bytes(), 1)
    }

    #[tokio::test]
    async fn what_is_loaded_keeps_its_revisions_and_history_goes_on_from_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = EmbeddedOptions::new(folder.path().join("store"));
        let mut loader = Loader::create(&options, at(70)).expect("the folder is new");
        let mut given = Vec::new();
        // The second has the revision of the first, and the third one that is not reached yet.
        for (name, number) in [("/k/a", 12), ("/k/b", 12), ("/k/c", 99), ("/k/d", 70)] {
            let got = loader.put(&Key::new(name), at(number), &draft(name)).expect("can be stored");
            given.push(got.get());
        }
        assert_eq!(given, [12, 71, 72, 70]);
        assert_eq!(loader.finish().expect("can be finished"), at(72));
        assert!(matches!(Loader::create(&options, at(1)), Err(LoadError::NotEmpty(_))));

        for reopened in 0..2 {
            let store = EmbeddedStore::open(options.clone()).await.expect("it is a store");
            let listing = store.list("/k/", Page::default()).await.expect("can be read");
            let found: Vec<(&str, u64)> =
                listing.entries.iter().map(|entry| (entry.key().as_str(), entry.revision().get())).collect();
            assert_eq!(found[..4], [("/k/a", 12), ("/k/b", 71), ("/k/c", 72), ("/k/d", 70)]);
            assert_eq!(&listing.entries[0].bytes()[..], br#"{"resourceVersion":"12","name":"/k/a"}"#);
            let past = store.events("/k/", Some(at(71)), 10).await;
            assert!(matches!(past, Err(StoreError::Compacted { .. })), "{past:?}");
            let write = Write {
                key: Key::new(format!("/k/e{reopened}")),
                expect: Expect::Absent,
                change: Change::Put(draft("e")),
            };
            assert_eq!(store.write(write).await.expect("it goes on").revision, at(73 + reopened));
            assert!(!store.events("/k/", Some(at(72)), 10).await.expect("is history").events.is_empty());
            store.close().await;
        }
    }

    #[test]
    fn what_cannot_be_stored_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut loader = Loader::create(&EmbeddedOptions::new(folder.path()), at(5)).expect("the folder is new");
        let large = Draft::opaque(vec![b'x'; crate::embedded::MOST_OBJECT_BYTES + 1]);
        let refused = loader.put(&Key::new("/k/large"), at(3), &large).expect_err("is too large");
        assert_eq!(refused.to_string(), "cannot store /k/large");
    }
}
