//! [`Registry`]: the resources of the catalog, each with its part of the cache.

use std::collections::HashMap;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use revisor_cache::{Cache, ResourceCache};
use revisor_catalog::{Catalog, Resource};
use revisor_object::TokenSealer;
use tokio::sync::watch;

use crate::admission::{Admission, chain};
use crate::allocation::{Allocation, ServiceNetwork};
use crate::{Environment, RegistryError};

/// What a registry is made of.
#[derive(Debug)]
pub struct RegistryOptions {
    /// The resources.
    pub catalog: Arc<Catalog>,
    /// Clock and randomness.
    pub environment: Environment,
    /// Seals continue tokens. All servers on one store must have the same.
    pub sealer: TokenSealer,
    /// How long a read waits for a version that has not been reached.
    pub patience: Duration,
    /// From where services get their addresses and ports.
    pub services: ServiceNetwork,
}

/// What the keys of a resource begin with that has no objects and never will.
const NOTHING: &str = "/registry/-/";

/// Serves every resource of the catalog from the cache and writes to the store below it.
pub struct Registry {
    /// The built-in resources: those that the server's own rules ask for.
    pub(crate) catalog: Arc<Catalog>,
    /// All resources that are served, as they come and go.
    served: watch::Sender<Arc<Catalog>>,
    pub(crate) cache: Arc<Cache>,
    pub(crate) environment: Environment,
    pub(crate) sealer: TokenSealer,
    pub(crate) patience: Duration,
    pub(crate) admission: Vec<Box<dyn Admission>>,
    pub(crate) allocation: Allocation,
    caches: HashMap<String, Arc<ResourceCache>>,
    /// Those of custom resources.
    custom_caches: RwLock<HashMap<String, Arc<ResourceCache>>>,
    /// What is left of a resource that is gone, for requests that still hold it.
    nothing: Arc<ResourceCache>,
}

impl Registry {
    /// Starts to follow every resource of the catalog, and makes the objects that every server has.
    pub async fn start(cache: Arc<Cache>, options: RegistryOptions) -> Result<Registry, RegistryError> {
        let mut caches = HashMap::new();
        for resource in options.catalog.resources().filter(|resource| resource.is_stored()) {
            // Versions of one resource share what is stored.
            if !caches.contains_key(&resource.prefix) {
                let added = cache.add(&resource.prefix, resource.namespaced).await?;
                caches.insert(resource.prefix.clone(), added);
            }
        }
        let registry = Registry {
            served: watch::Sender::new(options.catalog.clone()),
            catalog: options.catalog,
            nothing: cache.add(NOTHING, false).await?,
            custom_caches: RwLock::default(),
            cache,
            environment: options.environment,
            sealer: options.sealer,
            patience: options.patience,
            admission: chain(),
            allocation: Allocation::new(options.services),
            caches,
        };
        registry.bootstrap().await?;
        Ok(registry)
    }

    /// The resources that every server has.
    pub fn built_in(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// The resources that are served now.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.served.borrow().clone()
    }

    /// The resources that are served, for those who want to know when they change.
    pub fn served(&self) -> watch::Receiver<Arc<Catalog>> {
        self.served.subscribe()
    }

    /// The cache that reads are served from.
    pub fn cache(&self) -> &Arc<Cache> {
        &self.cache
    }

    /// The part of the cache that holds a resource: an empty one if nothing is stored of it, or no longer.
    pub fn cache_of(&self, resource: &Resource) -> Arc<ResourceCache> {
        if let Some(cache) = self.caches.get(&resource.prefix) {
            return cache.clone();
        }
        let custom = self.custom_caches.read().expect("no holder of the caches panics");
        custom.get(&resource.prefix).unwrap_or(&self.nothing).clone()
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").field("resources", &self.caches.len()).finish_non_exhaustive()
    }
}
