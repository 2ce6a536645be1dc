//! [`Backend`]: where the server's objects are, a folder or an etcd, and what differs with that.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use revisor_api::{HealthCheck, StoreSample};
use revisor_catalog::{Catalog, StorageCodec, StoredObject};
use revisor_etcd::{Codec, Decoded, EtcdStore, OpenError, Prober};
use revisor_registry::off_the_workers;
use revisor_store::embedded::{EmbeddedOptions, EmbeddedStore, HistoryLimits};
use revisor_store::{BoxError, Draft, Identity, Key, ResourceTransformers, Store, StoreError};

use crate::encryption_config::EncryptionFile;
use crate::flags::ServeFlags;
use crate::machine;

/// For how long a server is believed to be there that said so below this key (upstream: `DefaultEndpointReconcilerTTL`).
const MASTER_LEASES: (&str, Duration) = ("/registry/masterleases/", Duration::from_secs(15));

/// How long an etcd that does not answer is left alone at the start.
const PAUSE: Duration = Duration::from_millis(500);

/// Where objects are.
pub(crate) enum Backend {
    /// In the data folder.
    Folder(Arc<EmbeddedStore>),
    /// In an etcd, which others may use too.
    Etcd {
        /// The store on it.
        store: Arc<EtcdStore>,
        /// Whether it answers as soon as it must for a healthy server, and for one that is ready.
        probers: [Arc<Prober>; 2],
    },
}

impl Backend {
    /// Opens what the flags name. An etcd that does not answer yet is waited for.
    pub(crate) async fn open(
        flags: &ServeFlags,
        catalog: &Catalog,
        encryption: Option<&EncryptionFile>,
    ) -> anyhow::Result<Backend> {
        let transformers: Arc<dyn ResourceTransformers> = match encryption {
            Some(file) => file.encryption.clone(),
            None => Arc::new(Identity),
        };
        if !flags.etcd.is_given() {
            return Ok(Backend::Folder(Arc::new(open_folder(flags, transformers).await?)));
        }
        let events = catalog.stored_kind("", "events").map(|events| (events.prefix.clone(), flags.event_ttl));
        let leases = (MASTER_LEASES.0.to_owned(), MASTER_LEASES.1);
        let options = flags.etcd.options(flags.history, events.into_iter().chain([leases]).collect())?;
        let codec = Arc::new(CatalogCodec {
            codec: StorageCodec::new(catalog, flags.etcd.storage_media_type),
            transformers,
            prefix: format!("/{}", flags.etcd.etcd_prefix.trim_matches('/')),
        });
        let store = loop {
            match EtcdStore::open(options.clone(), codec.clone()).await {
                Ok(store) => break Arc::new(store),
                Err(OpenError::Etcd(error)) => {
                    tracing::warn!(%error, "waiting for etcd");
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(error.into()),
            }
        };
        let timeouts = [flags.etcd.etcd_healthcheck_timeout, flags.etcd.etcd_readycheck_timeout];
        let probers = timeouts.map(|timeout| Arc::new(Prober::start(&store, timeout)));
        Ok(Backend::Etcd { store, probers })
    }

    /// The store.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        match self {
            Backend::Folder(store) => store.clone(),
            Backend::Etcd { store, .. } => store.clone(),
        }
    }

    /// The store in the data folder, if that is where objects are.
    pub(crate) fn folder(&self) -> Option<Arc<EmbeddedStore>> {
        match self {
            Backend::Folder(store) => Some(store.clone()),
            Backend::Etcd { .. } => None,
        }
    }

    /// Whether others may write to it.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Backend::Etcd { .. })
    }

    /// What is told of it to those who ask whether the server is well, by the names of the original.
    pub(crate) fn checks(&self) -> Vec<HealthCheck> {
        match self {
            Backend::Folder(store) => {
                vec![store_check("etcd", store.clone()), store_check("etcd-readiness", store.clone()).of_readiness()]
            }
            Backend::Etcd { store, probers: [health, readiness] } => {
                let (store, health, readiness) = (store.clone(), health.clone(), readiness.clone());
                let stands = move || store.failure().map_or(Ok(()), |failure| Err(failure.to_string()));
                vec![
                    HealthCheck::new("etcd", move || health.check().and_then(|()| stands())),
                    HealthCheck::readiness("etcd-readiness", move || readiness.check()),
                ]
            }
        }
    }

    /// Tells that a folder is full. It still serves reads and deletions, which only come to a server that is ready.
    pub(crate) fn alarm(&self) -> Option<HealthCheck> {
        let store = self.folder()?;
        Some(HealthCheck::alarm("store-quota", move || {
            let (used, quota) = (store.usage().state, store.quota().unwrap_or(u64::MAX));
            if store.is_full() { Err(StoreError::NoSpace { used, quota }.to_string()) } else { Ok(()) }
        }))
    }

    /// What metrics tell of a folder; an etcd tells its own.
    pub(crate) fn sampler(&self) -> Option<impl Fn() -> StoreSample + Send + Sync + 'static> {
        let Backend::Folder(store) = self else { return None };
        let store = store.clone();
        Some(move || {
            let usage = store.usage();
            StoreSample {
                state: usage.state,
                history: usage.history,
                disk: store.disk_bytes(),
                quota: store.quota(),
                is_full: store.is_full(),
            }
        })
    }

    /// Bounds a folder as `--quota-backend-bytes` says, in etcd's way. An etcd has its own bound.
    pub(crate) fn limit(&self, flags: &ServeFlags) {
        let Backend::Folder(store) = self else { return };
        let quota = match flags.quota_backend_bytes {
            0 => Some(machine::default_quota(&flags.data_dir)),
            given => u64::try_from(given).ok(),
        };
        tracing::info!(quota, used = store.usage().total(), "bounding the store");
        store.limit_to(quota);
    }
}

async fn open_folder(flags: &ServeFlags, transformers: Arc<dyn ResourceTransformers>) -> anyhow::Result<EmbeddedStore> {
    let mut options = EmbeddedOptions::new(flags.data_dir.join("store"));
    options.transformers = transformers;
    options.history = HistoryLimits {
        age: flags.history,
        events: flags.history_events,
        bytes: flags.history_bytes,
        ..HistoryLimits::default()
    };
    Ok(EmbeddedStore::open(options).await?)
}

fn store_check(name: &str, store: Arc<EmbeddedStore>) -> HealthCheck {
    HealthCheck::new(name, move || store.failure().map_or(Ok(()), |failure| Err(failure.to_string())))
}

/// Keeps objects in etcd as the original does, encrypted where that is asked for.
struct CatalogCodec {
    codec: StorageCodec,
    transformers: Arc<dyn ResourceTransformers>,
    /// What stands in place of `/registry` in etcd.
    prefix: String,
}

impl CatalogCodec {
    /// What an encrypted object is bound to: its key in etcd (upstream: `authenticatedDataString`).
    fn authenticated(&self, key: &Key) -> String {
        let key = key.as_str();
        format!("{}{}", self.prefix, key.strip_prefix("/registry").unwrap_or(key))
    }
}

impl Codec for CatalogCodec {
    fn encode(&self, key: &Key, draft: &Draft) -> Result<Bytes, BoxError> {
        let kept = self.codec.encode(key.as_str(), draft.bytes(), draft.splice_at().is_some())?;
        let transformer = self.transformers.transformer_for(key.as_str());
        if transformer.is_identity() {
            return Ok(kept.into());
        }
        Ok(transformer.transform_to_storage(kept.into(), self.authenticated(key).as_bytes())?)
    }

    fn decode(&self, key: &Key, value: &Bytes) -> Result<Decoded, BoxError> {
        let transformer = self.transformers.transformer_for(key.as_str());
        let read = || transformer.transform_from_storage(value.clone(), self.authenticated(key).as_bytes());
        // A service that holds keys may have to be asked.
        let plain = if transformer.is_identity() { read() } else { off_the_workers(read) }?;
        let StoredObject { bytes, revision_at, is_outdated } = self.codec.decode(key.as_str(), &plain.bytes)?;
        let draft = match revision_at {
            Some(at) => Draft::showing_revision_at(bytes, at),
            None => Draft::opaque(bytes),
        };
        Ok(Decoded { draft, is_outdated: is_outdated || plain.is_stale })
    }
}
