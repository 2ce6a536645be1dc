//! [`FolderCopy`]: the store of a server that is not running, read from a copy of its folder, which stays as it is.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use revisor_store::embedded::{EmbeddedOptions, EmbeddedStore, OpenError, copy_store};
use revisor_store::{Entry, Key, Listing, Page, ResourceTransformers, Store};

use crate::backend;

/// How many objects are taken from the store at a time.
const PAGE: usize = 500;

/// The store of a data folder, opened from a copy in the folder for temporary files.
pub(crate) struct FolderCopy {
    pub(crate) store: EmbeddedStore,
    /// Goes after the store.
    _copy: PrivateCopy,
}

/// A folder that goes with the value.
struct PrivateCopy(PathBuf);

impl PrivateCopy {
    fn make() -> anyhow::Result<PrivateCopy> {
        let path = std::env::temp_dir().join(format!("revisor-copy-{}", uuid::Uuid::new_v4()));
        // What is made by this program is nobody else's to read: see `withhold_from_others`.
        std::fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(PrivateCopy(path))
    }
}

impl Drop for PrivateCopy {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            crate::complain(&format!("revisor: cannot remove {}: {error}", self.0.display()));
        }
    }
}

impl FolderCopy {
    /// Copies and opens what is in the folder, by `keys` if objects are encrypted, and by the keys in a file if the store
    /// is. What else can be done about a server that has
    /// it open is told with the refusal.
    pub(crate) async fn open(
        folder: &Path,
        keys: Arc<dyn ResourceTransformers>,
        store_keys: Option<&Path>,
        else_do: &str,
    ) -> anyhow::Result<FolderCopy> {
        if !folder.is_dir() {
            bail!("{} is no folder", folder.display());
        }
        let (original, copy) = (folder.join("store"), PrivateCopy::make()?);
        let path = copy.0.join("store");
        let copied = tokio::task::spawn_blocking(move || copy_store(&original, &path).map(|()| path)).await?;
        let path = match copied {
            Err(OpenError::InUse { folder }) => bail!(
                "the store in {} is in use by a server: stop it, take a copy of its folder, or {else_do}",
                folder.display()
            ),
            copied => copied?,
        };
        let mut options = EmbeddedOptions::new(path);
        options.transformers = keys;
        options.cipher = store_keys.map(backend::store_keys).transpose()?;
        let store = EmbeddedStore::open(options).await?;
        Ok(FolderCopy { store, _copy: copy })
    }

    /// Shows everything that is stored under a prefix, a page at a time; answers how much it was.
    pub(crate) async fn each(&self, prefix: &str, look: &mut dyn FnMut(&Entry)) -> anyhow::Result<usize> {
        let (mut after, mut count) = (None, 0);
        loop {
            let Listing { entries, remaining, .. } = page(&self.store, prefix, after).await?;
            entries.iter().for_each(|entry| look(entry));
            count += entries.len();
            match entries.last() {
                Some(last) if remaining > 0 => after = Some(last.key().clone()),
                _ => return Ok(count),
            }
        }
    }
}

/// A page of what is stored under a prefix.
pub(crate) async fn page(store: &EmbeddedStore, prefix: &str, after: Option<Key>) -> anyhow::Result<Listing> {
    let page = Page { after, limit: Some(PAGE), at: None };
    store.list(prefix, page).await.context("cannot read what is stored")
}
