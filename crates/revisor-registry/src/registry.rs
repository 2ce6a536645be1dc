//! [`Registry`]: the resources of the catalog, each with its part of the cache.

use std::collections::HashMap;
use std::sync::{Arc, RwLock, Weak};
use std::time::Duration;

use revisor_auth::{AuthorizationModes, Authorizer};
use revisor_cache::{Cache, ResourceCache};
use revisor_catalog::{Catalog, Resource};
use revisor_object::TokenSealer;
use revisor_webhook::{Limits, WebhookClient};
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::admission::{Admission, chain};
use crate::allocation::{Allocation, ServiceNetwork};
use crate::conversions::Conversions;
use crate::definitions::Progress;
use crate::role_book::RoleBook;
use crate::service_addresses::ServiceAddresses;
use crate::uncalled_admission::UncalledAdmission;
use crate::version_reports::stored_version;
use crate::version_usage::VersionUsage;
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
    /// Who may do what.
    pub authorization: AuthorizationModes,
}

/// What the keys of a resource begin with that has no objects and never will.
const NOTHING: &str = "/registry/-/";

/// Serves every resource of the catalog from the cache and writes to the store below it.
pub struct Registry {
    /// The registry itself, for what goes on when a request does not.
    pub(crate) itself: Weak<Registry>,
    /// Where that goes on.
    pub(crate) runtime: Handle,
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
    pub(crate) authorizer: Authorizer,
    caches: HashMap<String, Arc<ResourceCache>>,
    /// Those of custom resources.
    custom_caches: RwLock<HashMap<String, Arc<ResourceCache>>>,
    /// What is left of a resource that is gone, for requests that still hold it.
    nothing: Arc<ResourceCache>,
    /// What is stored to be asked about writes, and is not.
    pub(crate) uncalled: UncalledAdmission,
    /// How far definitions and conversions have taken effect.
    pub(crate) definitions: Progress,
    /// What is known of conversions between two requests.
    pub(crate) conversions: Conversions,
    /// Who asks for which versions of custom resources.
    pub(crate) usage: VersionUsage,
    /// Converts custom objects whose definitions say so.
    pub(crate) webhooks: WebhookClient,
}

impl Registry {
    /// Starts to follow every resource of the catalog, and makes the objects that every server has.
    ///
    /// # Panics
    /// If there is no tokio runtime on which definitions can be followed.
    pub async fn start(cache: Arc<Cache>, options: RegistryOptions) -> Result<Arc<Registry>, RegistryError> {
        let mut caches = HashMap::new();
        // Conversions are kept also while they are not served.
        let resources = options.catalog.resources().chain([options.catalog.conversions()]);
        for resource in resources.filter(|resource| resource.is_stored()) {
            // Versions of one resource share what is stored.
            if !caches.contains_key(&resource.prefix) {
                let added = cache.add(&resource.prefix, resource.namespaced).await?;
                caches.insert(resource.prefix.clone(), added);
            }
        }
        let nothing = cache.add(NOTHING, false).await?;
        let roles = RoleBook::new(&options.catalog, &caches);
        let uncalled = UncalledAdmission::new(&options.catalog, &caches);
        let registry = Arc::new_cyclic(|registry| Registry {
            itself: registry.clone(),
            runtime: Handle::current(),
            webhooks: WebhookClient::new(Arc::new(ServiceAddresses(registry.clone())), Limits::default()),
            served: watch::Sender::new(options.catalog.clone()),
            catalog: options.catalog,
            nothing,
            uncalled,
            custom_caches: RwLock::default(),
            definitions: Progress::default(),
            conversions: Conversions::default(),
            usage: VersionUsage::new(options.environment.now()),
            cache,
            environment: options.environment,
            sealer: options.sealer,
            patience: options.patience,
            admission: chain(),
            allocation: Allocation::new(options.services),
            authorizer: Authorizer::new(options.authorization, Arc::new(roles)),
            caches,
        });
        registry.bootstrap().await?;
        registry.log_uncalled_admission();
        registry.follow_definitions().await;
        registry.reconcile_registrations().await?;
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

    /// Decides who may do what, by the roles that are stored.
    pub fn authorizer(&self) -> &Authorizer {
        &self.authorizer
    }

    /// The cache that reads are served from.
    pub fn cache(&self) -> &Arc<Cache> {
        &self.cache
    }

    /// The resource as its definition has it now. Who holds one for long may hold one of the past, and what is written
    /// by that would be stored as it was then.
    pub(crate) fn newest(&self, resource: &Arc<Resource>) -> Arc<Resource> {
        if resource.custom().is_none() {
            return resource.clone();
        }
        let served = self.served.borrow();
        served.resource(&resource.group, &resource.version, &resource.plural).unwrap_or(resource).clone()
    }

    /// Begins to follow a custom resource, and to count its objects by the version in which they are stored.
    pub(crate) async fn add_custom_cache(&self, prefix: &str, namespaced: bool) -> Result<(), RegistryError> {
        let added = self.cache.add_tallied(prefix, namespaced, stored_version).await?;
        self.usage.begin(prefix);
        self.custom_caches.write().expect("no holder of the caches panics").insert(prefix.to_owned(), added);
        Ok(())
    }

    /// Follows a custom resource no longer. Those who watch it come to their end.
    pub(crate) fn remove_custom_cache(&self, prefix: &str) {
        self.custom_caches.write().expect("no holder of the caches panics").remove(prefix);
        self.usage.end(prefix);
        self.cache.remove(prefix);
    }

    /// The part of the cache that holds the custom resource with these keys, if it is followed.
    pub(crate) fn custom_cache(&self, prefix: &str) -> Option<Arc<ResourceCache>> {
        self.custom_caches.read().expect("no holder of the caches panics").get(prefix).cloned()
    }

    /// Serves these as all versions of a custom resource.
    pub(crate) fn serve_custom(&self, group: &str, plural: &str, resources: Vec<Arc<Resource>>) {
        self.served.send_modify(|served| *served = Arc::new(served.with_custom(group, plural, resources)));
    }

    /// Remembers all versions of a definition that serves none of them; none if it serves some, or is gone.
    pub(crate) fn hide_custom(&self, group: &str, plural: &str, versions: &[&str]) {
        self.served.send_if_modified(|served| {
            let is_news = !versions.is_empty() || served.hides(group, plural);
            if is_news {
                *served = Arc::new(served.with_hidden(group, plural, versions));
            }
            is_news
        });
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
