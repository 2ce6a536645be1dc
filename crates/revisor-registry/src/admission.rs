//! The admission chain: what the server itself adds to objects and refuses about them, beyond the rules of their kind,
//! because it depends on other objects or on who asks.
//!
//! There are two passes, in the order of upstream's plugins. The mutating one ([`Registry::admit`]) sees the object with
//! its defaults, before its strategy prepares and validates it (invariant R1); the validating one
//! ([`Registry::validate_admission`]) sees it as it would be stored. What most plugins do is a computation over the
//! caches, and costs a call. A plugin that has to wait for somebody says so for the write at hand, and only then there
//! is a future to be made.

mod always_admit_and_deny;
mod always_pull_images;
mod anti_affinity_topology;
mod attributes;
mod certificate_approval;
mod certificate_signing;
mod certificate_subject_restriction;
mod claim_resize;
mod cluster_trust_bundle_attest;
mod default_ingress_class;
mod default_storage_class;
mod default_toleration_seconds;
mod deny_service_external_ips;
mod device_admin_access;
mod event_rate_limit;
mod expression_authorizer;
mod extended_resource_toleration;
mod image_policy_webhook;
mod job_validation;
mod limit_ranger;
mod manifests;
mod metrics;
mod namespace_lifecycle;
mod namespaces_on_demand;
mod node_declared_features;
mod node_restriction;
mod operation_options;
mod options;
mod owner_references;
mod plugin;
mod pod_fields;
mod pod_group;
mod pod_node_selector;
mod pod_resize;
mod pod_security;
mod pod_toleration_restriction;
mod pod_topology_labels;
mod policy;
mod priority;
mod reinvocation;
mod resource_claim_status;
mod runtime_class;
mod service_account;
mod signers;
mod storage_protection;
mod taint_nodes_by_condition;
mod tolerations;
mod versions;
mod webhooks;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

pub use revisor_admission::Operation;
use revisor_admission::{MatchResources, Unmatched};
use revisor_cache::Item;
use revisor_catalog::Resource;
use revisor_object::names::path_segment_name;
use revisor_object::{BadValue, Object, Value};
use sonic_rs::JsonValueTrait as _;

pub use self::attributes::{AdmissionNotes, AuditAnnotation};
pub(crate) use self::attributes::{Attributes, kind_of, resource_of};
pub use self::default_toleration_seconds::TolerationSeconds;
pub use self::event_rate_limit::{EventLimit, EventLimitType};
pub(crate) use self::expression_authorizer::ExpressionAuthorizer;
pub use self::image_policy_webhook::ImagePolicyConfig;
pub(crate) use self::limit_ranger::pod_total_of;
pub use self::manifests::{ManifestDocument, ManifestError, StaticManifests};
pub use self::metrics::{AdmissionFamily, AdmissionSample};
pub(crate) use self::metrics::{AdmissionMetrics, Conditioned, Phase, SecuredWrite, WebhookCall};
pub(crate) use self::operation_options::OperationOptions;
pub use self::operation_options::SentOptions;
pub(crate) use self::options::chain;
pub use self::options::{AdmissionConfig, AdmissionOptions};
pub use self::plugin::AdmissionPlugin;
pub use self::pod_node_selector::validate_node_selector;
pub use self::pod_security::{PodSecurityConfig, PodSecurityLevel};
pub use self::pod_toleration_restriction::TolerationDefaults;
pub(crate) use self::reinvocation::Reinvocation;
pub(crate) use self::webhooks::Webhooks;
pub use crate::quota::LimitedResource;

use crate::{Registry, RegistryError, WriteOptions};

/// Whether an object can be asked for by this name at all. The original's plugins ask through a client, and pass on what
/// that says.
///
/// # Errors
/// Why it cannot.
pub(crate) fn requestable(name: &str) -> Result<(), String> {
    let problems = path_segment_name(name);
    if problems.is_empty() {
        return Ok(());
    }
    Err(format!("invalid resource name {}: [{}]", BadValue::from(name), problems.join(" ")))
}

/// What a plugin comes to that has to wait for somebody.
pub(crate) type Waiting<'a> = Pin<Box<dyn Future<Output = Result<(), RegistryError>> + Send + 'a>>;

/// One plugin of the chain (upstream: `admission.Interface`). All but its name and what it handles may be left out.
pub(crate) trait Admission: Send + Sync {
    /// Its name in flags and metrics.
    fn name(&self) -> &'static str;

    /// Whether it has a say in such an operation at all.
    fn handles(&self, operation: Operation) -> bool;

    /// Whether it looks at what is deleted, which has to be read for it as a whole.
    fn looks_at_deleted(&self, registry: &Registry) -> bool {
        let _ = registry;
        self.handles(Operation::Delete)
    }

    /// Completes the object, or refuses it. Of a deletion there is no object, and this one is empty.
    fn admit(
        &self,
        registry: &Registry,
        attributes: &Attributes<'_>,
        object: &mut Object,
    ) -> Result<(), RegistryError> {
        let _ = (registry, attributes, object);
        Ok(())
    }

    /// Does so where it has to wait for somebody, in place of [`admit`](Admission::admit). `None` if there is nothing
    /// to wait for, so that nothing is made for writes that do not concern it.
    fn admit_waiting<'a>(
        &'a self,
        registry: &'a Registry,
        attributes: &'a Attributes<'_>,
        object: &'a mut Object,
    ) -> Option<Waiting<'a>> {
        let _ = (registry, attributes, object);
        None
    }

    /// Refuses the object as it would be stored.
    fn validate(&self, registry: &Registry, attributes: &Attributes<'_>, object: &Object) -> Result<(), RegistryError> {
        let _ = (registry, attributes, object);
        Ok(())
    }

    /// Does so where it has to wait for somebody, in place of [`validate`](Admission::validate).
    fn validate_waiting<'a>(
        &'a self,
        registry: &'a Registry,
        attributes: &'a Attributes<'_>,
        object: &'a Object,
    ) -> Option<Waiting<'a>> {
        let _ = (registry, attributes, object);
        None
    }
}

/// Adds a finalizer to an object that does not have it.
fn add_finalizer(object: &mut Object, finalizer: &str) {
    let metadata = object.object_mut("metadata");
    let mut finalizers = metadata.array("finalizers").to_vec();
    if !finalizers.contains(&Value::from(finalizer)) {
        finalizers.push(Value::from(finalizer));
        metadata.insert("finalizers", finalizers);
    }
}

/// The class that a claim asks for: in the annotation that is older than the field, or in the field.
fn claim_class(claim: &Object) -> Option<&str> {
    claim
        .at(&["metadata", "annotations", "volume.beta.kubernetes.io/storage-class"])
        .or_else(|| claim.at(&["spec", "storageClassName"]))
        .and_then(Value::as_str)
}

impl Registry {
    /// The mutating pass, and a second one where somebody was called and something changed after that. Answers whether
    /// the object was changed by others than the server.
    pub(crate) async fn admit(&self, attributes: &Attributes<'_>, object: &mut Object) -> Result<bool, RegistryError> {
        let reinvocation = Reinvocation::default();
        let attributes = Attributes { reinvocation: Some(&reinvocation), ..*attributes };
        let begun = Instant::now();
        let mut admitted = self.admit_once(&attributes, object).await;
        if admitted.is_ok() && reinvocation.begin_second() {
            admitted = self.admit_once(&attributes, object).await;
        }
        self.admission_metrics.stepped(Phase::Admit, attributes.operation, admitted.is_err(), begun.elapsed());
        admitted.map(|()| reinvocation.has_changed())
    }

    async fn admit_once(&self, attributes: &Attributes<'_>, object: &mut Object) -> Result<(), RegistryError> {
        let operation = attributes.operation;
        let mut before = Instant::now();
        for (at, plugin) in self.admission.iter().enumerate().filter(|(_, plugin)| plugin.handles(operation)) {
            let admitted = if let Some(waiting) = plugin.admit_waiting(self, attributes, object) {
                waiting.await
            } else {
                plugin.admit(self, attributes, object)
            };
            let after = Instant::now();
            self.admission_metrics.controlled(at, Phase::Admit, operation, admitted.is_err(), after - before);
            before = after;
            admitted?;
        }
        Ok(())
    }

    /// The validating pass.
    pub(crate) async fn validate_admission(
        &self,
        attributes: &Attributes<'_>,
        object: &Object,
    ) -> Result<(), RegistryError> {
        let operation = attributes.operation;
        let begun = Instant::now();
        let (mut before, mut validated) = (begun, Ok(()));
        for (at, plugin) in self.admission.iter().enumerate().filter(|(_, plugin)| plugin.handles(operation)) {
            validated = if let Some(waiting) = plugin.validate_waiting(self, attributes, object) {
                waiting.await
            } else {
                plugin.validate(self, attributes, object)
            };
            let after = Instant::now();
            self.admission_metrics.controlled(at, Phase::Validate, operation, validated.is_err(), after - before);
            before = after;
            if validated.is_err() {
                break;
            }
        }
        self.admission_metrics.stepped(Phase::Validate, operation, validated.is_err(), before - begun);
        validated
    }

    /// Whether anybody in the chain looks at what is deleted.
    pub(crate) fn looks_at_deleted(&self) -> bool {
        self.admission.iter().any(|plugin| plugin.looks_at_deleted(self))
    }

    /// Whether a webhook may have to be asked about a request that the server makes to itself: then it may take as long as
    /// that does. A look at the rules of those that are known.
    pub(crate) fn may_be_asked(
        &self,
        resource: &Arc<Resource>,
        subresource: Option<&str>,
        operation: Operation,
    ) -> bool {
        let options = WriteOptions { subresource, ..self.own.options() };
        let attributes = Attributes { operation, ..options.attributes(resource, None, "", None) };
        self.admission_webhooks.may_name(self, &attributes)
    }

    /// Whether anybody but the server's own plugins has a say in such a request.
    pub(crate) fn may_be_judged(
        &self,
        resource: &Arc<Resource>,
        subresource: Option<&str>,
        operation: Operation,
    ) -> bool {
        self.policies.mutating(&self.expressions).is_some()
            || self.policies.validating(&self.expressions).is_some()
            || self.may_be_asked(resource, subresource, operation)
    }

    /// How often and for how long the parts of the chain were asked.
    pub fn admission_samples(&self) -> Vec<AdmissionSample> {
        self.admission_metrics.samples()
    }

    /// Whether the selectors of a webhook or policy select a write. The objects are the new and the old one.
    pub(crate) fn is_selected(
        &self,
        attributes: &Attributes<'_>,
        resources: &MatchResources,
        objects: [Option<&Object>; 2],
    ) -> Result<bool, RegistryError> {
        let namespace = attributes.request_namespace();
        let labels = || {
            let found = self.read_once("", "v1", "namespaces", None, namespace);
            let labels =
                found.map(|namespace| namespace.at(&["metadata", "labels"]).and_then(Value::as_object).cloned());
            labels.map(|labels| labels.map(Box::new)).ok_or(())
        };
        match resources.selects(&attributes.rule_target(), objects, labels) {
            Ok(is_selected) => Ok(is_selected),
            Err(Unmatched::Selector(why)) => Err(RegistryError::Internal(why)),
            Err(Unmatched::Namespace(())) => Err(RegistryError::NoSuchNamespace(namespace.to_owned())),
        }
    }

    /// An object as the cache has it now, for those whose decisions depend on others. `None` also where nothing is
    /// stored of the resource.
    pub fn stored(
        &self,
        group: &str,
        version: &str,
        plural: &str,
        namespace: Option<&str>,
        name: &str,
    ) -> Option<Object> {
        let resource = self.known(group, version, plural)?;
        let item = self.cache_of(resource).get(&resource.key(namespace, name))?;
        crate::Decoded::stored(item.entry().bytes()).ok()
    }

    /// What tells an object from others that had its name, and when it was marked as deleted, if it was: for those who look
    /// at many and need no more. Read from its bytes without reading the rest.
    pub fn stored_identity<R>(
        &self,
        plural: &str,
        namespace: Option<&str>,
        name: &str,
        look: impl FnOnce(&str, Option<&str>) -> R,
    ) -> Option<R> {
        let resource = self.known("", "v1", plural)?;
        let item = self.cache_of(resource).get(&resource.key(namespace, name))?;
        let bytes = item.entry().bytes();
        let member = |name: &str| sonic_rs::get(&bytes[..], ["metadata", name]).ok();
        let (uid, deleted) = (member("uid")?, member("deletionTimestamp"));
        Some(look(uid.as_str()?, deleted.as_ref().and_then(|deleted| deleted.as_str())))
    }

    /// A built-in resource, also if it is not served: what the server's own rules look at does not depend on that.
    pub(crate) fn known(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        let served = self.catalog.resource(group, version, plural).filter(|resource| resource.is_stored());
        served.or_else(|| self.catalog.stored_kind(group, plural))
    }

    /// The same, read once in the life of the object: for small objects that many writes depend on.
    pub(crate) fn read_once(
        &self,
        group: &str,
        version: &str,
        plural: &str,
        namespace: Option<&str>,
        name: &str,
    ) -> Option<Arc<Object>> {
        let resource = self.known(group, version, plural)?;
        let item = self.cache_of(resource).get(&resource.key(namespace, name))?;
        read_item(&item)
    }

    /// All objects of a resource, of one namespace or of all, each read once in its life. What cannot be read is left
    /// out.
    pub(crate) fn all_read_once(
        &self,
        group: &str,
        version: &str,
        plural: &str,
        namespace: Option<&str>,
    ) -> Vec<Arc<Object>> {
        let Some(resource) = self.known(group, version, plural) else { return Vec::new() };
        let cache = self.cache_of(resource);
        if cache.is_empty() {
            return Vec::new();
        }
        let snapshot = cache.snapshot();
        snapshot.range(&resource.collection(namespace), None).filter_map(|item| read_item(item)).collect()
    }

    /// All objects of a resource as they are stored now, of one namespace or of all. What cannot be read is left out:
    /// a plugin can say nothing about it.
    pub(crate) fn all_stored(&self, group: &str, version: &str, plural: &str, namespace: Option<&str>) -> Vec<Object> {
        let Some(resource) = self.known(group, version, plural) else { return Vec::new() };
        let snapshot = self.cache_of(resource).snapshot();
        let items = snapshot.range(&resource.collection(namespace), None);
        items.filter_map(|item| crate::Decoded::stored(item.entry().bytes()).ok()).collect()
    }
}

/// What an object of the cache says, read once in its life.
pub(crate) fn read_item(item: &Item) -> Option<Arc<Object>> {
    let read = item.keep_read(|bytes| crate::Decoded::stored(bytes).ok().map(Arc::new));
    Option::clone(&read)
}
