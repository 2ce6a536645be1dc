//! [`Registry`]: the resources of the catalog, each with its part of the cache.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, RwLock, Weak};
use std::time::Duration;

use revisor_admission::AdmissionEnvironment;
use revisor_auth::{AuthorizationModes, Authorizer, NodeFeatures};
use revisor_cache::{Cache, ResourceCache, Snapshot};
use revisor_catalog::{Catalog, Feature, Resource, WriteUnderWay, WritesUnderWay};
use revisor_object::TokenSealer;
use revisor_webhook::{Limits, WebhookClient};
use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::actor::Actor;
use crate::admission::{Admission, AdmissionMetrics, AdmissionOptions, AdmissionPlugin, Webhooks, chain};
use crate::allocation::{Allocation, ServiceNetwork, SharedPorts};
use crate::bootstrap::{Made, MasterLeases};
use crate::conversions::Conversions;
use crate::definitions::Progress;
use crate::flow_book::FlowBook;
use crate::node_book::StoredNodes;
use crate::policy_book::PolicyBook;
use crate::policy_tally::{PolicySample, PolicyTally};
use crate::quota::{Ledger, LimitedResource};
use crate::role_book::RoleBook;
use crate::service_addresses::ServiceAddresses;
use crate::version_reports::stored_version;
use crate::version_usage::{RECORDS, VersionUsage};
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
    /// What tells this server from others on the same store. It is the same after a restart.
    pub server: String,
    /// Which plugins are asked about writes.
    pub admission: AdmissionOptions,
    /// Whether the group `versioning.revisor.dev` is served while there are definitions.
    pub shows_versioning: bool,
}

/// What the keys of a resource begin with that has no objects and never will.
const NOTHING: &str = "/registry/-/";

/// Serves every resource of the catalog from the cache and writes to the store below it.
pub struct Registry {
    /// The registry itself, for what goes on when a request does not.
    pub(crate) itself: Weak<Registry>,
    /// Where that goes on.
    pub(crate) runtime: Handle,
    /// In whose name the server itself writes.
    pub(crate) own: Actor,
    /// The built-in resources: those that the server's own rules ask for.
    pub(crate) catalog: Arc<Catalog>,
    /// All resources that are served, as they come and go.
    served: watch::Sender<Arc<Catalog>>,
    pub(crate) cache: Arc<Cache>,
    pub(crate) environment: Environment,
    pub(crate) sealer: TokenSealer,
    pub(crate) patience: Duration,
    /// Whether the group of the server's own is served while there are definitions.
    pub(crate) shows_versioning: bool,
    pub(crate) admission: Vec<Box<dyn Admission>>,
    pub(crate) admission_metrics: AdmissionMetrics,
    /// The webhooks that are asked about writes.
    pub(crate) admission_webhooks: Webhooks,
    /// What the stored expressions of webhooks and policies may speak of.
    pub(crate) expressions: AdmissionEnvironment,
    pub(crate) allocation: Allocation,
    /// The node ports that several servers give out; `None` if this one is alone.
    pub(crate) shared_ports: Option<SharedPorts>,
    /// Where the servers are that share the store; `None` if this one is alone.
    pub(crate) master_leases: Option<MasterLeases>,
    /// What nobody has without a quota for it; `None` if writes are not charged to quotas at all.
    pub(crate) quotas: Option<Vec<LimitedResource>>,
    /// What quotas were charged for writes that are under way.
    pub(crate) quota_ledger: Ledger,
    pub(crate) authorizer: Authorizer,
    caches: HashMap<String, Arc<ResourceCache>>,
    /// Those of custom resources.
    custom_caches: RwLock<HashMap<String, CustomCache>>,
    /// What is left of a resource that is gone, for requests that still hold it.
    nothing: Arc<ResourceCache>,
    /// How requests are told apart and limited.
    flows: FlowBook,
    /// The policies that are asked about writes.
    pub(crate) policies: PolicyBook,
    pub(crate) policy_tally: PolicyTally,
    /// How far definitions and conversions have taken effect.
    pub(crate) definitions: Progress,
    /// What is known of conversions between two requests.
    pub(crate) conversions: Conversions,
    /// Who asks for which versions of custom resources.
    pub(crate) usage: VersionUsage,
    /// Asks webhooks: about writes, and to convert custom objects whose definitions say so.
    pub(crate) webhooks: WebhookClient,
}

/// The objects of a custom resource.
struct CustomCache {
    cache: Arc<ResourceCache>,
    /// The resource in the version in which they are stored, whether clients can use it or not.
    storage: Arc<Resource>,
    /// What may be written by former states of the definition; those that are over are forgotten in time.
    former: Vec<WritesUnderWay>,
}

/// The resource as its definition has it now, while something is written by that.
pub(crate) struct Newest {
    resource: Arc<Resource>,
    _write: Option<WriteUnderWay>,
}

impl Deref for Newest {
    type Target = Arc<Resource>;

    fn deref(&self) -> &Arc<Resource> {
        &self.resource
    }
}

impl Registry {
    /// What calls webhooks, for others who have to.
    pub fn webhook_client(&self) -> &WebhookClient {
        &self.webhooks
    }

    /// Starts to follow every resource of the catalog, and makes the objects that every server has.
    ///
    /// # Panics
    /// If there is no tokio runtime on which definitions can be followed.
    pub async fn start(cache: Arc<Cache>, options: RegistryOptions) -> Result<Arc<Registry>, RegistryError> {
        let mut caches = HashMap::new();
        // What the server's own rules look at is kept also while it is not served, and so are conversions.
        let catalog = &options.catalog;
        let resources = catalog.resources().chain(catalog.stored_kinds()).chain([catalog.conversions()]);
        for resource in resources.filter(|resource| resource.is_stored()) {
            // Versions of one resource share what is stored.
            if !caches.contains_key(&resource.prefix) {
                let added = cache.add(&resource.prefix, resource.namespaced).await?;
                caches.insert(resource.prefix.clone(), added);
            }
        }
        let (mut shared_ports, mut master_leases) = (None, None);
        if options.services.is_shared {
            shared_ports = Some(SharedPorts::follow(&cache, options.services.node_ports.clone()).await?);
            master_leases = Some(MasterLeases::follow(&cache).await?);
        }
        let nothing = cache.add(NOTHING, false).await?;
        let usage = VersionUsage::new(options.server, cache.add(RECORDS, false).await?);
        let roles = RoleBook::new(&options.catalog, &caches);
        let features = options.catalog.features();
        let features = NodeFeatures {
            selectors: features.has(Feature::AuthorizeNodeWithSelectors),
            account_tokens: features.has(Feature::KubeletServiceAccountTokenForCredentialProviders),
            pod_certificates: features.has(Feature::PodCertificateRequest),
        };
        let nodes = StoredNodes::new(&options.catalog, &caches, features);
        let admission_webhooks = Webhooks::new(&options.catalog, &caches, &options.admission.config);
        let admission = chain(&options.admission);
        let manifests = options.admission.manifests.clone();
        let policies = PolicyBook::new(&options.catalog, &caches);
        let flows = FlowBook::new(&options.catalog, &caches);
        let registry = Arc::new_cyclic(|registry| Registry {
            itself: registry.clone(),
            runtime: Handle::current(),
            own: Actor::server(),
            webhooks: WebhookClient::new(Arc::new(ServiceAddresses(registry.clone())), Limits::default()),
            expressions: AdmissionEnvironment::new(options.catalog.rule_environment().clone()),
            served: watch::Sender::new(options.catalog.clone()),
            catalog: options.catalog,
            nothing,
            flows,
            policies,
            policy_tally: PolicyTally::default(),
            custom_caches: RwLock::default(),
            definitions: Progress::default(),
            conversions: Conversions::default(),
            usage,
            cache,
            environment: options.environment,
            sealer: options.sealer,
            patience: options.patience,
            shows_versioning: options.shows_versioning,
            admission_metrics: AdmissionMetrics::new(admission.iter().map(|plugin| plugin.name()).collect()),
            admission_webhooks,
            admission,
            quotas: options
                .admission
                .has(AdmissionPlugin::ResourceQuota)
                .then_some(options.admission.config.limited_resources),
            shared_ports,
            master_leases,
            allocation: Allocation::new(options.services),
            quota_ledger: Ledger::default(),
            authorizer: Authorizer::new(options.authorization, Arc::new(roles)).with_nodes(Arc::new(nodes)),
            caches,
        });
        manifests.iter().for_each(|manifests| registry.take_manifests(manifests));
        registry.compile_all_policies();
        let made = registry.bootstrap().await?;
        registry.follow_definitions().await;
        let registered = registry.reconcile_registrations().await?;
        if made.and(registered) == Made::PutOff {
            registry.bootstrap_later();
        }
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

    /// How requests are told apart and limited, by the flow schemas and priority levels that are stored.
    pub fn flow_book(&self) -> &FlowBook {
        &self.flows
    }

    /// What was counted of the evaluations of validating and of mutating policies.
    pub fn policy_samples(&self) -> [Vec<PolicySample>; 2] {
        self.policy_tally.samples()
    }

    /// The cache that reads are served from.
    pub fn cache(&self) -> &Arc<Cache> {
        &self.cache
    }

    /// The resource as its definition has it now. Who holds one for long may hold one of the past, and what is written
    /// by that would be stored as it was then.
    pub(crate) fn newest(&self, resource: &Arc<Resource>) -> Newest {
        if resource.custom().is_none() {
            return Newest { resource: resource.clone(), _write: None };
        }
        // Held until the write is known of: nobody can begin one unseen by a state that is not served any more.
        let served = self.served.borrow();
        let newest = served.resource(&resource.group, &resource.version, &resource.plural).unwrap_or(resource);
        Newest { resource: newest.clone(), _write: newest.custom().map(|custom| custom.writes().begin()) }
    }

    /// Begins to follow a custom resource, and to count its objects by the version in which they are stored. `definition`
    /// is the identity of what defines it.
    pub(crate) async fn add_custom_cache(
        &self,
        storage: &Arc<Resource>,
        definition: &str,
    ) -> Result<(), RegistryError> {
        let prefix = &storage.prefix;
        let cache = self.cache.add_tallied(prefix, storage.namespaced, stored_version).await?;
        self.usage.begin(prefix, definition, self.environment.now());
        let mut caches = self.custom_caches.write().expect("no holder of the caches panics");
        let mut former = Vec::new();
        if let Some(known) = caches.remove(prefix) {
            former = known.former;
            former.retain(|writes| !writes.are_over());
            former.extend(known.storage.custom().map(|custom| custom.writes().clone()));
        }
        caches.insert(prefix.to_owned(), CustomCache { cache, storage: storage.clone(), former });
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
        let custom = self.custom_caches.read().expect("no holder of the caches panics");
        custom.get(prefix).map(|custom| custom.cache.clone())
    }

    /// The same, and the resource in the version in which its objects are stored.
    pub(crate) fn custom_storage(&self, prefix: &str) -> Option<(Arc<Resource>, Snapshot)> {
        let custom = self.custom_caches.read().expect("no holder of the caches panics");
        custom.get(prefix).map(|custom| (custom.storage.clone(), custom.cache.snapshot()))
    }

    /// Whether somebody still writes by a former state of the definition of a custom resource, and may store an object
    /// in a version that is not stored any more. Such a write ends with the time of its request.
    pub fn has_former_writes(&self, resource: &Resource) -> bool {
        let custom = self.custom_caches.read().expect("no holder of the caches panics");
        custom.get(&resource.prefix).is_some_and(|custom| custom.former.iter().any(|writes| !writes.are_over()))
    }

    /// The resource in the version in which its objects are stored now, whether clients can use that or not.
    pub fn storage_of(&self, resource: &Arc<Resource>) -> Arc<Resource> {
        let custom = self.custom_caches.read().expect("no holder of the caches panics");
        custom.get(&resource.prefix).map_or_else(|| resource.storage().clone(), |custom| custom.storage.clone())
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
        custom.get(&resource.prefix).map_or(&self.nothing, |custom| &custom.cache).clone()
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").field("resources", &self.caches.len()).finish_non_exhaustive()
    }
}
