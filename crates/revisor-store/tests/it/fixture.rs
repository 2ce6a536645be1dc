//! A folder that goes with the test, and stores in it.

use std::path::Path;
use std::sync::Arc;

use revisor_store::contract::Fixture;
use revisor_store::embedded::{EmbeddedOptions, EmbeddedStore};
use revisor_store::{BoxFuture, Store};
use tempfile::TempDir;

/// A folder of its own for a test.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Folder {
        Folder(TempDir::new().expect("a temporary folder can be made"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn options(&self) -> EmbeddedOptions {
        EmbeddedOptions::new(self.path())
    }

    pub(crate) async fn open(&self) -> EmbeddedStore {
        EmbeddedStore::open(self.options()).await.expect("the store can be opened")
    }
}

impl Fixture for Folder {
    fn open(&self) -> BoxFuture<'_, Arc<dyn Store>> {
        Box::pin(async { Arc::new(Folder::open(self).await) as Arc<dyn Store> })
    }
}
