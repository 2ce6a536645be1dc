//! [`Backend`]: where the server's objects are, a folder or an etcd, and what differs with that.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use bytes::Bytes;
use revisor_api::{HealthCheck, StoreSample};
use revisor_catalog::{Catalog, StorageCodec, StorageMediaType, StoredObject};
use revisor_encryption::StoreKeys;
use revisor_etcd::{Codec, Decoded, EtcdOptions, EtcdStore, OpenError, Prober};
use revisor_registry::off_the_workers;
use revisor_store::embedded::{EmbeddedOptions, EmbeddedStore, HistoryLimits, RecordCipher};
use revisor_store::{BoxError, Draft, Identity, Key, ResourceTransformers, Store, StoreError, Stores};

use crate::config_file;
use crate::encryption_config::EncryptionFile;
use crate::etcd_flags::EtcdFlags;
use crate::etcd_overrides::OwnEtcd;
use crate::flags::ServeFlags;
use crate::{machine, spare_memory};

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
        /// The one of most resources.
        main: Cluster,
        /// Those of other resources, and what the keys begin with that each has.
        own: Vec<(Vec<String>, Cluster)>,
    },
}

/// An etcd, and how it is.
pub(crate) struct Cluster {
    store: Arc<EtcdStore>,
    /// Whether it answers as soon as it must for a healthy server, and for one that is ready.
    probers: [Arc<Prober>; 2],
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
        let overrides = flags.etcd.overrides()?;
        if !flags.etcd.is_given() {
            return Ok(Backend::Folder(Arc::new(open_folder(flags, transformers).await?)));
        }
        ensure!(
            flags.store_key_file.is_none(),
            "--store-key-file is for the store in the data folder, not for an etcd"
        );
        let events = catalog.stored_kind("", "events").map(|events| (events.prefix.clone(), flags.event_ttl));
        let leases = (MASTER_LEASES.0.to_owned(), MASTER_LEASES.1);
        let times_to_live: Vec<_> = events.into_iter().chain([leases]).collect();
        let unknown = overrides.unknown(catalog);
        if !unknown.is_empty() {
            tracing::warn!(resources = unknown.join(","), "no resource of these names can have an etcd of its own");
        }
        let (media, prefix) = (flags.etcd.storage_media_type, &flags.etcd.access.etcd_prefix);
        let codec = Arc::new(CatalogCodec::new(catalog, media, transformers, prefix));
        let open = |servers: Vec<String>| {
            let options = flags.etcd.options(servers, flags.history, times_to_live.clone());
            Cluster::open(options, codec.clone(), &flags.etcd)
        };
        let main = open(flags.etcd.access.etcd_servers.clone()).await?;
        let mut own = Vec::new();
        for OwnEtcd { servers, prefixes } in overrides.etcds(catalog) {
            own.push((prefixes, open(servers).await?));
        }
        Ok(Backend::Etcd { main, own })
    }

    /// The stores.
    pub(crate) fn stores(&self) -> Stores {
        match self {
            Backend::Folder(store) => Stores::new(store.clone()),
            Backend::Etcd { main, own } => {
                own.iter().fold(Stores::new(main.store.clone()), |stores, (prefixes, cluster)| {
                    stores.with_part(prefixes.clone(), cluster.store.clone())
                })
            }
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
            Backend::Etcd { main, own } => {
                let mut checks = main.checks("etcd".to_owned(), "etcd-readiness".to_owned());
                for (number, (_, cluster)) in own.iter().enumerate() {
                    let readiness = format!("etcd-override-readiness-{number}");
                    checks.extend(cluster.checks(format!("etcd-override-{number}"), readiness));
                }
                checks
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

impl Cluster {
    /// Opens an etcd. One that does not answer yet is waited for.
    async fn open(options: EtcdOptions, codec: Arc<CatalogCodec>, flags: &EtcdFlags) -> anyhow::Result<Cluster> {
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
        let timeouts = [flags.etcd_healthcheck_timeout, flags.etcd_readycheck_timeout];
        let probers = timeouts.map(|timeout| Arc::new(Prober::start(&store, timeout)));
        Ok(Cluster { store, probers })
    }

    /// What is told of it. All etcds can be left out of a report by one name.
    fn checks(&self, of_health: String, of_readiness: String) -> Vec<HealthCheck> {
        let Cluster { store, probers: [health, readiness] } = self;
        let (store, health, readiness) = (store.clone(), health.clone(), readiness.clone());
        let stands = move || store.failure().map_or(Ok(()), |failure| Err(failure.to_string()));
        vec![
            HealthCheck::new(of_health, move || health.check().and_then(|()| stands())).in_group("etcd"),
            HealthCheck::readiness(of_readiness, move || readiness.check()).in_group("etcd-readiness"),
        ]
    }
}

async fn open_folder(flags: &ServeFlags, transformers: Arc<dyn ResourceTransformers>) -> anyhow::Result<EmbeddedStore> {
    let mut options = EmbeddedOptions::new(flags.data_dir.join("store"));
    options.transformers = transformers;
    if let Some(path) = &flags.store_key_file {
        options.cipher = Some(store_keys(path)?);
    }
    options.history = HistoryLimits {
        age: flags.history,
        events: flags.history_events,
        bytes: flags.history_bytes,
        ..HistoryLimits::default()
    };
    options.at_rest = spare_memory::collect;
    Ok(EmbeddedStore::open(options).await?)
}

/// The keys with which a store is encrypted as a whole.
pub(crate) fn store_keys(path: &Path) -> anyhow::Result<Arc<dyn RecordCipher>> {
    let unusable = || format!("cannot use the keys in {}", path.display());
    let text = config_file::read(path).with_context(unusable)?;
    let keys = std::str::from_utf8(&text).map_err(|_| "it is no text".to_owned()).and_then(StoreKeys::parse);
    Ok(Arc::new(keys.map_err(|problem| anyhow!(problem)).with_context(unusable)?))
}

fn store_check(name: &str, store: Arc<EmbeddedStore>) -> HealthCheck {
    HealthCheck::new(name, move || store.failure().map_or(Ok(()), |failure| Err(failure.to_string())))
}

/// Keeps objects in etcd as the original does, encrypted where that is asked for.
pub(crate) struct CatalogCodec {
    codec: StorageCodec,
    transformers: Arc<dyn ResourceTransformers>,
    /// What stands in place of `/registry` in etcd.
    prefix: String,
}

impl CatalogCodec {
    /// For the built-in kinds of a catalog, below a prefix of etcd.
    pub(crate) fn new(
        catalog: &Catalog,
        media: StorageMediaType,
        transformers: Arc<dyn ResourceTransformers>,
        prefix: &str,
    ) -> CatalogCodec {
        let codec = StorageCodec::new(catalog, media);
        CatalogCodec { codec, transformers, prefix: format!("/{}", prefix.trim_matches('/')) }
    }

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
