//! [`Registry`]: the resources of the catalog, each with its part of the cache.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use revisor_cache::{Cache, ResourceCache};
use revisor_catalog::{Catalog, Resource};
use revisor_object::TokenSealer;

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

/// Serves every resource of the catalog from the cache and writes to the store below it.
pub struct Registry {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) cache: Arc<Cache>,
    pub(crate) environment: Environment,
    pub(crate) sealer: TokenSealer,
    pub(crate) patience: Duration,
    pub(crate) admission: Vec<Box<dyn Admission>>,
    pub(crate) allocation: Allocation,
    caches: HashMap<String, Arc<ResourceCache>>,
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
            catalog: options.catalog,
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

    /// The resources that are served.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// The cache that reads are served from.
    pub fn cache(&self) -> &Arc<Cache> {
        &self.cache
    }

    /// The part of the cache that holds a resource.
    ///
    /// # Panics
    /// If the resource is not of this registry's catalog, or nothing is stored of it.
    pub fn cache_of(&self, resource: &Resource) -> &Arc<ResourceCache> {
        self.caches.get(&resource.prefix).expect("every stored resource of the catalog was added at the start")
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").field("resources", &self.caches.len()).finish_non_exhaustive()
    }
}
