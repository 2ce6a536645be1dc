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
mod extended_resource_toleration;
mod image_policy_webhook;
mod job_validation;
mod limit_ranger;
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
mod priority;
mod reinvocation;
mod runtime_class;
mod service_account;
mod signers;
mod storage_protection;
mod taint_nodes_by_condition;
mod tolerations;

use std::future::Future;
use std::pin::Pin;

use revisor_object::{Object, Value};

pub(crate) use self::attributes::Attributes;
pub use self::attributes::{AdmissionNotes, Operation};
pub use self::default_toleration_seconds::TolerationSeconds;
pub use self::event_rate_limit::{EventLimit, EventLimitType};
pub use self::image_policy_webhook::ImagePolicyConfig;
pub(crate) use self::limit_ranger::pod_total_of;
pub(crate) use self::operation_options::OperationOptions;
pub use self::operation_options::SentOptions;
pub(crate) use self::options::chain;
pub use self::options::{AdmissionConfig, AdmissionOptions};
pub use self::plugin::AdmissionPlugin;
pub use self::pod_node_selector::validate_node_selector;
pub use self::pod_security::{PodSecurityConfig, PodSecurityLevel};
pub use self::pod_toleration_restriction::TolerationDefaults;
pub(crate) use self::pod_topology_labels::copy_labels;
pub(crate) use self::reinvocation::Reinvocation;
pub use crate::quota::LimitedResource;

use crate::{Registry, RegistryError};

/// What a plugin comes to that has to wait for somebody.
pub(crate) type Waiting<'a> = Pin<Box<dyn Future<Output = Result<(), RegistryError>> + Send + 'a>>;

/// One plugin of the chain (upstream: `admission.Interface`). All but its name and what it handles may be left out.
pub(crate) trait Admission: Send + Sync {
    /// Its name in flags and metrics.
    fn name(&self) -> &'static str;

    /// Whether it has a say in such an operation at all.
    fn handles(&self, operation: Operation) -> bool;

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
    /// The mutating pass, and a second one where somebody was called and something changed after that.
    pub(crate) async fn admit(&self, attributes: &Attributes<'_>, object: &mut Object) -> Result<(), RegistryError> {
        let reinvocation = Reinvocation::default();
        let attributes = Attributes { reinvocation: Some(&reinvocation), ..*attributes };
        loop {
            for plugin in self.admission.iter().filter(|plugin| plugin.handles(attributes.operation)) {
                if let Some(waiting) = plugin.admit_waiting(self, &attributes, object) {
                    waiting.await?;
                } else {
                    plugin.admit(self, &attributes, object)?;
                }
            }
            if !reinvocation.begin_second() {
                return Ok(());
            }
        }
    }

    /// The validating pass.
    pub(crate) async fn validate_admission(
        &self,
        attributes: &Attributes<'_>,
        object: &Object,
    ) -> Result<(), RegistryError> {
        for plugin in self.admission.iter().filter(|plugin| plugin.handles(attributes.operation)) {
            if let Some(waiting) = plugin.validate_waiting(self, attributes, object) {
                waiting.await?;
            } else {
                plugin.validate(self, attributes, object)?;
            }
        }
        Ok(())
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
        let resource = self.catalog.resource(group, version, plural).filter(|resource| resource.is_stored())?;
        let item = self.cache_of(resource).get(&resource.key(namespace, name))?;
        crate::Decoded::stored(item.entry().bytes()).ok()
    }
    /// All objects of a resource as they are stored now, of one namespace or of all. What cannot be read is left out:
    /// a plugin can say nothing about it.
    pub(crate) fn all_stored(&self, group: &str, version: &str, plural: &str, namespace: Option<&str>) -> Vec<Object> {
        let Some(resource) = self.catalog.resource(group, version, plural) else { return Vec::new() };
        let snapshot = self.cache_of(resource).snapshot();
        let items = snapshot.range(&resource.collection(namespace), None);
        items.filter_map(|item| crate::Decoded::stored(item.entry().bytes()).ok()).collect()
    }
}
