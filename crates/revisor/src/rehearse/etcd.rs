//! [`EtcdState`]: the objects in an etcd, or in a snapshot of one, at one revision.

use revisor_catalog::{Catalog, StorageMediaType};
use revisor_etcd::{Codec, Reading};
use revisor_object::{Object, Value, parse_json};
use revisor_registry::{Rehearsal, SeenRequests, Stored};

use super::{CONVERSIONS, DEFINITIONS, Keys, Seen, Source};
use crate::backend::CatalogCodec;
use crate::etcd_access::{EtcdSource, is_of_servers};

/// An etcd as it is when it is first looked at.
pub(super) struct EtcdState {
    reading: Reading,
    codec: CatalogCodec,
}

impl EtcdState {
    /// Opens what the flags name; by `keys` if it is encrypted. The catalog is that of the release to come: it knows how all
    /// releases store objects.
    pub(super) async fn open(source: &EtcdSource, catalog: &Catalog, keys: Keys) -> anyhow::Result<EtcdState> {
        let codec = source.etcd.codec(catalog, StorageMediaType::Protobuf, keys);
        Ok(EtcdState { reading: source.open().await?, codec })
    }

    /// Shows everything below a prefix; what cannot be decoded is named instead.
    async fn each(&self, prefix: &str, look: &mut dyn FnMut(&str, &[u8])) -> anyhow::Result<usize> {
        let mut count = 0;
        let mut pages = self.reading.pages(prefix);
        while let Some(page) = pages.next().await? {
            for stored in page {
                let Ok(key) = stored.key else { continue };
                if is_of_servers(key.as_str()) {
                    continue;
                }
                match self.codec.decode(&key, &stored.value) {
                    Ok(decoded) => {
                        count += 1;
                        look(key.as_str(), &decoded.draft.at_revision(stored.revision));
                    }
                    Err(problem) => crate::complain(&format!("revisor: note: {key} is left out: {problem}")),
                }
            }
        }
        Ok(count)
    }

    async fn parsed(&self, prefix: &str) -> anyhow::Result<Vec<Object>> {
        let mut found = Vec::new();
        let mut take = |_: &str, stored: &[u8]| {
            if let Ok(Value::Object(object)) = parse_json(stored).map(|parsed| parsed.value) {
                found.push(object);
            }
        };
        self.each(prefix, &mut take).await?;
        Ok(found)
    }
}

impl Source for EtcdState {
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
