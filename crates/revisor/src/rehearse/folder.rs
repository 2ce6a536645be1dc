//! [`FolderSource`]: the objects in the data folder of a server that is not running.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use revisor_encryption::Encryption;
use revisor_object::{Object, Value, parse_json};
use revisor_registry::{Rehearsal, SeenRequests, Stored};
use revisor_store::embedded::{EmbeddedOptions, EmbeddedStore, OpenError, copy_store};
use revisor_store::{Key, Page, Store};

use super::{Seen, Source};

/// How many objects are taken from the store at a time.
const PAGE: usize = 500;

/// Where definitions and Conversions are stored.
const DEFINITIONS: &str = "/registry/apiextensions.k8s.io/customresourcedefinitions/";
const CONVERSIONS: &str = "/registry/versioning.revisor.dev/conversions/";

/// The store of a data folder, opened from a copy.
pub(super) struct FolderSource {
    store: EmbeddedStore,
    /// Goes after the store.
    _copy: PrivateCopy,
}

/// A folder that goes with the value.
struct PrivateCopy(PathBuf);

impl PrivateCopy {
    fn make() -> anyhow::Result<PrivateCopy> {
        let path = std::env::temp_dir().join(format!("revisor-rehearsal-{}", uuid::Uuid::new_v4()));
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

impl FolderSource {
    /// Copies and opens what is in the folder, which stays as it is; by `keys` if it is encrypted.
    pub(super) async fn open(folder: &Path, keys: Option<Arc<Encryption>>) -> anyhow::Result<FolderSource> {
        if !folder.is_dir() {
            bail!("{} is no folder", folder.display());
        }
        let (original, copy) = (folder.join("store"), PrivateCopy::make()?);
        let path = copy.0.join("store");
        let copied = tokio::task::spawn_blocking(move || copy_store(&original, &path).map(|()| path)).await?;
        let path = match copied {
            Err(OpenError::InUse { folder }) => bail!(
                "the store in {} is in use by a server: stop it, take a copy of its folder, or ask it with --server",
                folder.display()
            ),
            copied => copied?,
        };
        let mut options = EmbeddedOptions::new(path);
        if let Some(keys) = keys {
            options.transformers = keys;
        }
        let store = EmbeddedStore::open(options).await?;
        Ok(FolderSource { store, _copy: copy })
    }

    /// Shows everything that is stored under a prefix, a page at a time.
    async fn each(&self, prefix: &str, look: &mut dyn FnMut(&str, &[u8])) -> anyhow::Result<usize> {
        let (mut after, mut count): (Option<Key>, usize) = (None, 0);
        loop {
            let page = Page { after, limit: Some(PAGE), at: None };
            let listing = self.store.list(prefix, page).await.context("cannot read what is stored")?;
            for entry in &listing.entries {
                look(entry.key().as_str(), entry.bytes());
            }
            count += listing.entries.len();
            match listing.entries.last() {
                Some(last) if listing.remaining > 0 => after = Some(last.key().clone()),
                _ => return Ok(count),
            }
        }
    }

    async fn parsed(&self, prefix: &str) -> anyhow::Result<Vec<Object>> {
        let mut found = Vec::new();
        self.each(prefix, &mut |_, stored| {
            if let Ok(Value::Object(object)) = parse_json(stored).map(|parsed| parsed.value) {
                found.push(object);
            }
        })
        .await?;
        Ok(found)
    }
}

impl Source for FolderSource {
    async fn stored(&self) -> anyhow::Result<Stored> {
        Ok(Stored { definitions: self.parsed(DEFINITIONS).await?, conversions: self.parsed(CONVERSIONS).await? })
    }

    async fn objects(&self, _: &Rehearsal, look: &mut dyn FnMut(Seen<'_>)) -> anyhow::Result<usize> {
        self.each("/registry/", &mut |key, stored| look(Seen::Stored(key, stored))).await
    }

    async fn requests(&self) -> anyhow::Result<Vec<SeenRequests>> {
        let mut seen = Vec::new();
        self.each(SeenRequests::RECORDS, &mut |key, stored| seen.extend(SeenRequests::recorded(key, stored))).await?;
        Ok(seen)
    }
}
