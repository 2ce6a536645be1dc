//! The admission chain: what the server itself adds to objects and refuses about them, beyond the rules of their kind,
//! because it depends on other objects or on who asks.
//!
//! A plugin sees the object with its defaults, before its strategy prepares and validates it (invariant R1). It reads
//! other objects from the cache and does no other I/O. Plugins that only refuse are asked once more at the end, when
//! the object is as it will be stored.

mod claim_resize;
mod default_ingress_class;
mod default_storage_class;
mod default_toleration_seconds;
mod device_admin_access;
mod limit_ranger;
mod pod_fields;
mod pod_group;
mod pod_security;
mod pod_topology_labels;
mod priority;
mod runtime_class;
mod service_account;
mod storage_protection;
mod taint_nodes_by_condition;

use std::sync::Arc;

use revisor_catalog::Resource;
use revisor_object::{Object, Value};

pub(crate) use self::limit_ranger::pod_total_of;
pub(crate) use self::pod_topology_labels::copy_labels;
pub(crate) use self::service_account::await_default_account;

use crate::{Registry, RegistryError};

/// What is done to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
}

/// A write that is to be admitted.
pub(crate) struct Review<'a> {
    /// The resource in the version in which it is stored.
    pub(crate) resource: &'a Arc<Resource>,
    /// The resource as the client named it: the object is held to the rules of that version.
    pub(crate) shown: &'a Arc<Resource>,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) name: &'a str,
    pub(crate) subresource: Option<&'a str>,
    pub(crate) operation: Operation,
    pub(crate) old: Option<&'a Object>,
}

impl Review<'_> {
    /// Whether this is about the whole object of a resource.
    pub(crate) fn is_about(&self, group: &str, plural: &str) -> bool {
        self.subresource.is_none() && self.resource.group == group && self.resource.plural == plural
    }

    /// The refusal of this write.
    pub(crate) fn forbidden(&self, why: impl Into<String>) -> RegistryError {
        RegistryError::Forbidden {
            resource: self.resource.clone(),
            name: self.name.to_owned(),
            why: why.into(),
            terminating_namespace: None,
        }
    }
}

/// One plugin of the chain.
pub(crate) trait Admission: Send + Sync {
    /// Completes the object, or refuses it.
    fn admit(&self, registry: &Registry, review: &Review<'_>, object: &mut Object) -> Result<(), RegistryError> {
        let _ = (registry, review, object);
        Ok(())
    }

    /// Refuses the object as it would be stored.
    fn validate(&self, registry: &Registry, review: &Review<'_>, object: &Object) -> Result<(), RegistryError> {
        let _ = (registry, review, object);
        Ok(())
    }

    /// What is unwise but allowed about the object as it would be stored.
    fn warnings(&self, registry: &Registry, review: &Review<'_>, object: &Object) -> Vec<String> {
        let _ = (registry, review, object);
        Vec::new()
    }
}

/// The plugins in the order in which they are asked.
pub(crate) fn chain() -> Vec<Box<dyn Admission>> {
    vec![
        Box::new(limit_ranger::LimitRanger),
        Box::new(service_account::ServiceAccount),
        Box::new(taint_nodes_by_condition::TaintNodesByCondition),
        Box::new(pod_security::PodSecurity),
        Box::new(priority::Priority),
        Box::new(default_toleration_seconds::DefaultTolerationSeconds),
        Box::new(storage_protection::StorageProtection),
        Box::new(pod_group::PodGroup),
        Box::new(default_storage_class::DefaultStorageClass),
        Box::new(claim_resize::ClaimResize),
        Box::new(runtime_class::RuntimeClass),
        Box::new(default_ingress_class::DefaultIngressClass),
        Box::new(pod_topology_labels::PodTopologyLabels),
        Box::new(device_admin_access::DeviceAdminAccess),
    ]
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
    pub(crate) fn admit(&self, review: &Review<'_>, object: &mut Object) -> Result<(), RegistryError> {
        self.admission.iter().try_for_each(|plugin| plugin.admit(self, review, object))
    }

    pub(crate) fn validate_admission(&self, review: &Review<'_>, object: &Object) -> Result<(), RegistryError> {
        self.admission.iter().try_for_each(|plugin| plugin.validate(self, review, object))
    }

    pub(crate) fn admission_warnings(&self, review: &Review<'_>, object: &Object) -> Vec<String> {
        self.admission.iter().flat_map(|plugin| plugin.warnings(self, review, object)).collect()
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
