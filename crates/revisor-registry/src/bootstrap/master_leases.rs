//! [`MasterLeases`]: the addresses of the servers that run, where there are several. Each keeps a key of its own that goes
//! by itself unless it is written again, in the form and at the place of the original (upstream: `storageLeases`).

use std::net::IpAddr;
use std::sync::Arc;

use revisor_cache::{Cache, ResourceCache};
use revisor_object::{Object, Value};
use revisor_store::{Change, Draft, Expect, Key, StoreError, Write};

use crate::{Decoded, Registry, RegistryError};

const FOLDER: &str = "/registry/masterleases/";

pub(crate) struct MasterLeases {
    cache: Arc<ResourceCache>,
}

impl MasterLeases {
    /// Follows the addresses in a store. That they go by themselves is for the store to see to.
    pub(crate) async fn follow(cache: &Arc<Cache>) -> Result<MasterLeases, StoreError> {
        Ok(MasterLeases { cache: cache.add(FOLDER, false).await? })
    }

    /// Says that a server is there, and answers where all are that say so.
    pub(super) async fn renew(&self, registry: &Registry, address: IpAddr) -> Result<Vec<IpAddr>, RegistryError> {
        let key = format!("{FOLDER}{address}");
        let known = self.cache.get(&key).and_then(|item| Decoded::stored(item.bytes()).ok());
        let generation = known.as_ref().and_then(|known| known.at(&["metadata", "generation"])).and_then(Value::as_i64);
        let change = Change::Put(said(address, generation.unwrap_or_default().saturating_add(1)));
        registry.cache.write(Write { key: Key::new(key), expect: Expect::Anything, change }).await?;
        self.all().await
    }

    /// Says that a server is there no more, and answers where the others are.
    pub(super) async fn give_up(&self, registry: &Registry, address: IpAddr) -> Result<Vec<IpAddr>, RegistryError> {
        let key = Key::new(format!("{FOLDER}{address}"));
        let write = Write { key, expect: Expect::Anything, change: Change::Delete };
        match registry.cache.write(write).await {
            // Its time was over.
            Ok(_) | Err(StoreError::Conflict { .. }) => self.all().await,
            Err(error) => Err(error.into()),
        }
    }

    async fn all(&self) -> Result<Vec<IpAddr>, RegistryError> {
        self.cache.freshen().await?;
        let snapshot = self.cache.snapshot();
        let keys = snapshot.range(FOLDER, None).map(|item| item.key().as_str());
        let mut all: Vec<IpAddr> = keys.filter_map(|key| key.strip_prefix(FOLDER)?.parse().ok()).collect();
        all.sort();
        Ok(all)
    }
}

/// What stands at the key of a server.
fn said(address: IpAddr, generation: i64) -> Draft {
    let mut said = Object::new();
    said.insert("kind", "Endpoints");
    said.insert("apiVersion", "v1");
    // Another number each time: what stays the same would not be written by the original either.
    said.object_mut("metadata").insert("generation", generation);
    let mut subset = Object::new();
    let address: Object = [("ip", Value::from(address.to_string()))].into_iter().collect();
    subset.insert("addresses", vec![Value::from(address)]);
    said.insert("subsets", vec![Value::from(subset)]);
    Draft::opaque(Value::Object(said).to_json())
}
