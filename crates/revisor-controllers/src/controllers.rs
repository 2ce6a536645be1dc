//! [`Controllers`]: those that run, from their start to their end.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use revisor_catalog::{Resource, Verb};
use revisor_registry::{Actor, Registry};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::cluster_role_aggregation::ClusterRoleAggregation;
use crate::garbage::GarbageCollector;
use crate::in_every_namespace::InEveryNamespace;
use crate::namespace::NamespaceController;
use crate::resource_quota::ResourceQuotaController;
use crate::root_ca::RootCa;
use crate::service_account::DefaultServiceAccount;
use crate::service_account_tokens::{ServiceAccountTokens, TokenMaker};
use crate::storage_version_migrator::StorageVersionMigrator;
use crate::validating_admission_policy_status::ValidatingAdmissionPolicyStatus;
use crate::work_queue::{QueueSample, QueueTally};
use crate::{Clock, Elsewhere, event_expiry};

/// The resources that exist. Whoever adds some sends the longer list; the registry must have them first.
pub type ResourceList = watch::Receiver<Arc<[Arc<Resource>]>>;

/// In whose name controllers write, so that those who look at managed fields see whom they know.
pub(crate) const FIELD_MANAGER: &str = "kube-controller-manager";

/// A controller that can be switched on and off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Controller {
    /// Fills cluster roles that gather the rules of others.
    ClusterRoleAggregation,
    /// Deletes objects whose owners are gone.
    GarbageCollector,
    /// Empties namespaces that are being deleted, and lets them go.
    Namespace,
    /// Counts what the namespaces of quotas hold.
    ResourceQuota,
    /// Keeps the certificates of the server in every namespace.
    RootCaPublisher,
    /// Keeps a service account in every namespace.
    ServiceAccount,
    /// Fills secrets with tokens of service accounts, and deletes them with their accounts.
    ServiceAccountToken,
    /// Stores anew what is stored otherwise than it would be today.
    StorageVersionMigrator,
    /// Says in the status of validating policies what is odd about their expressions.
    ValidatingAdmissionPolicyStatus,
}

impl Controller {
    /// All of them.
    pub const ALL: [Controller; 9] = [
        Controller::ClusterRoleAggregation,
        Controller::GarbageCollector,
        Controller::Namespace,
        Controller::ResourceQuota,
        Controller::RootCaPublisher,
        Controller::ServiceAccount,
        Controller::ServiceAccountToken,
        Controller::StorageVersionMigrator,
        Controller::ValidatingAdmissionPolicyStatus,
    ];

    /// Its name in kube-controller-manager.
    pub fn name(self) -> &'static str {
        match self {
            Controller::ClusterRoleAggregation => "clusterrole-aggregation-controller",
            Controller::GarbageCollector => "garbage-collector-controller",
            Controller::Namespace => "namespace-controller",
            Controller::ResourceQuota => "resourcequota-controller",
            Controller::RootCaPublisher => "root-ca-certificate-publisher-controller",
            Controller::ServiceAccount => "serviceaccount-controller",
            Controller::ServiceAccountToken => "serviceaccount-token-controller",
            Controller::StorageVersionMigrator => "storage-version-migrator-controller",
            Controller::ValidatingAdmissionPolicyStatus => "validatingadmissionpolicy-status-controller",
        }
    }

    /// Its older name, which kube-controller-manager still understands; its name if it has none.
    pub fn alias(self) -> &'static str {
        match self {
            Controller::ClusterRoleAggregation => "clusterrole-aggregation",
            Controller::GarbageCollector => "garbagecollector",
            Controller::Namespace => "namespace",
            Controller::ResourceQuota => "resourcequota",
            Controller::RootCaPublisher => "root-ca-cert-publisher",
            Controller::ServiceAccount => "serviceaccount",
            Controller::ServiceAccountToken => "serviceaccount-token",
            Controller::StorageVersionMigrator => self.name(),
            Controller::ValidatingAdmissionPolicyStatus => "validatingadmissionpolicy-status",
        }
    }
}

impl Controller {
    /// In whose name it writes: the service account that it has in kube-controller-manager.
    pub(crate) fn actor(self) -> Actor {
        Actor::controller(match self {
            Controller::ClusterRoleAggregation => "clusterrole-aggregation-controller",
            Controller::GarbageCollector => "generic-garbage-collector",
            Controller::Namespace => "namespace-controller",
            Controller::ResourceQuota => "resourcequota-controller",
            Controller::RootCaPublisher => "root-ca-cert-publisher",
            Controller::ServiceAccount => "service-account-controller",
            Controller::ServiceAccountToken => "tokens-controller",
            Controller::StorageVersionMigrator => "storage-version-migrator-controller",
            Controller::ValidatingAdmissionPolicyStatus => "validatingadmissionpolicy-status-controller",
        })
    }
}

impl fmt::Display for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What controllers are made of.
#[derive(Clone)]
pub struct ControllersOptions {
    /// The objects.
    pub registry: Arc<Registry>,
    /// The resources that they are of.
    pub resources: ResourceList,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Which of them run.
    pub enabled: Vec<Controller>,
    /// Where it is counted what they do.
    pub queues: QueueTallies,
    /// The certificates that a client has to trust to reach the server, in PEM. They change when the server's do.
    pub root_ca: watch::Receiver<String>,
    /// Makes the tokens of secrets; `None` where the server has no key of its own, and nobody makes them.
    pub token_maker: Option<TokenMaker>,
    /// How long events are kept; zero for ever.
    pub event_ttl: Duration,
    /// What other servers keep, if there may be any.
    pub elsewhere: Option<Arc<dyn Elsewhere>>,
}

/// The controllers that run. To drop them ends them, in the middle of what they do: every write of theirs stands alone.
pub struct Controllers {
    tasks: JoinSet<()>,
}

/// What became of the keys in the queues of controllers. It outlives them: a server that leads again counts on.
#[derive(Clone)]
pub struct QueueTallies(Arc<[Arc<QueueTally>]>);

impl QueueTallies {
    /// Nothing yet.
    pub fn new(clock: &Arc<dyn Clock>) -> QueueTallies {
        let tally = |controller: Controller| Arc::new(QueueTally::new(controller.name(), clock.clone()));
        QueueTallies(Controller::ALL.map(tally).into())
    }

    fn of(&self, controller: Controller) -> Arc<QueueTally> {
        // They are in the order in which the controllers are defined.
        self.0[controller as usize].clone()
    }

    /// What there is to tell now of the queues of these controllers.
    pub fn samples(&self, of: &[Controller]) -> Vec<QueueSample> {
        of.iter().map(|controller| self.of(*controller).sample()).collect()
    }
}

impl Controllers {
    /// Starts those that are enabled, and the expiry of events.
    ///
    /// # Panics
    /// If there is no tokio runtime to spawn them on.
    pub fn start(options: ControllersOptions) -> Controllers {
        let ControllersOptions {
            registry,
            resources,
            clock,
            enabled,
            queues,
            root_ca,
            token_maker,
            event_ttl,
            elsewhere,
        } = options;
        let mut tasks = JoinSet::new();
        for controller in Controller::ALL.into_iter().filter(|controller| enabled.contains(controller)) {
            let (registry, clock) = (registry.clone(), clock.clone());
            let tally = queues.of(controller);
            match controller {
                Controller::ClusterRoleAggregation => {
                    tasks.spawn(ClusterRoleAggregation::new(registry, clock, tally).run());
                }
                Controller::GarbageCollector => {
                    let collector = GarbageCollector::new(registry, elsewhere.clone(), clock, tally);
                    tasks.spawn(collector.run(resources.clone()));
                }
                Controller::Namespace => {
                    let controller = NamespaceController::new(registry, resources.clone(), clock, tally);
                    tasks.spawn(controller.with_elsewhere(elsewhere.clone()).run());
                }
                Controller::ResourceQuota => {
                    let (resources, elsewhere) = (resources.clone(), elsewhere.clone());
                    tasks.spawn(ResourceQuotaController::new(registry, resources, elsewhere, clock, tally).run());
                }
                Controller::RootCaPublisher => {
                    tasks.spawn(
                        InEveryNamespace::new(registry, clock, controller, tally, RootCa::new(root_ca.clone())).run(),
                    );
                }
                Controller::ServiceAccount => {
                    tasks.spawn(InEveryNamespace::new(registry, clock, controller, tally, DefaultServiceAccount).run());
                }
                Controller::ServiceAccountToken => {
                    if let Some(maker) = &token_maker {
                        let tokens = ServiceAccountTokens::new(registry, clock, tally, maker.clone(), root_ca.clone());
                        tasks.spawn(tokens.run());
                    }
                }
                Controller::StorageVersionMigrator => {
                    tasks.spawn(StorageVersionMigrator::new(registry, clock, tally).run());
                }
                Controller::ValidatingAdmissionPolicyStatus => {
                    tasks.spawn(ValidatingAdmissionPolicyStatus::new(registry, clock, tally).run());
                }
            }
        }
        if !event_ttl.is_zero() {
            tasks.spawn(event_expiry::run(registry, clock, event_ttl));
        }
        Controllers { tasks }
    }

    /// Ends all of them and waits until they have.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
    }
}

impl fmt::Debug for Controllers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controllers").field("tasks", &self.tasks).finish_non_exhaustive()
    }
}

/// The resources with all of these verbs, each as it is stored and once: versions of one kind share what is stored.
pub(crate) fn stored_resources(resources: &[Arc<Resource>], verbs: &[Verb]) -> Vec<Arc<Resource>> {
    let mut prefixes = HashSet::new();
    let able = resources.iter().filter(|resource| verbs.iter().all(|verb| resource.verbs.contains(verb)));
    able.map(Resource::storage).filter(|resource| prefixes.insert(resource.prefix.as_str())).cloned().collect()
}
