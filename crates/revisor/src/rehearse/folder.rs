//! [`FolderSource`]: the objects in the data folder of a server that is not running.

use std::path::Path;
use std::sync::Arc;

use revisor_object::{Object, Value, parse_json};
use revisor_registry::{Rehearsal, SeenRequests, Stored};
use revisor_store::ResourceTransformers;

use super::{CONVERSIONS, DEFINITIONS, Seen, Source};
use crate::folder_copy::FolderCopy;

/// The store of a data folder, opened from a copy.
pub(super) struct FolderSource(FolderCopy);

impl FolderSource {
    /// Copies and opens what is in the folder, which stays as it is; by `keys` if objects are encrypted, and by
    /// `store_keys` if the store is.
    pub(super) async fn open(
        folder: &Path,
        keys: Arc<dyn ResourceTransformers>,
        store_keys: Option<&Path>,
    ) -> anyhow::Result<FolderSource> {
        Ok(FolderSource(FolderCopy::open(folder, keys, store_keys, "ask it with --server").await?))
    }

    async fn parsed(&self, prefix: &str) -> anyhow::Result<Vec<Object>> {
        let mut found = Vec::new();
        self.0
            .each(prefix, &mut |entry| {
                if let Ok(Value::Object(object)) = parse_json(entry.bytes()).map(|parsed| parsed.value) {
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
        self.0.each("/registry/", &mut |entry| look(Seen::Stored(entry.key().as_str(), entry.bytes()))).await
    }

    async fn requests(&self) -> anyhow::Result<Vec<SeenRequests>> {
        let mut seen = Vec::new();
        self.0
            .each(SeenRequests::RECORDS, &mut |entry| {
                seen.extend(SeenRequests::recorded(entry.key().as_str(), entry.bytes()));
            })
            .await?;
        Ok(seen)
    }
}
