//! NamespaceLifecycle: nothing is made in a namespace that is not there or is going, and some namespaces never go.

use revisor_object::Object;

use super::{Admission, Attributes, Operation, read_item};
use crate::bootstrap::IMMORTAL_NAMESPACES;
use crate::{Registry, RegistryError};

pub(super) struct NamespaceLifecycle;

impl Admission for NamespaceLifecycle {
    fn name(&self) -> &'static str {
        "NamespaceLifecycle"
    }

    fn handles(&self, operation: Operation) -> bool {
        matches!(operation, Operation::Create | Operation::Update | Operation::Delete)
    }

    fn looks_at_deleted(&self, _: &Registry) -> bool {
        false
    }

    fn admit(&self, registry: &Registry, attributes: &Attributes<'_>, _: &mut Object) -> Result<(), RegistryError> {
        let resource = attributes.resource;
        let is_namespace = resource.group.is_empty() && resource.plural == "namespaces";
        if attributes.operation == Operation::Delete && is_namespace {
            let is_immortal = IMMORTAL_NAMESPACES.contains(&attributes.name);
            return if is_immortal { Err(attributes.forbidden("this namespace may not be deleted")) } else { Ok(()) };
        }
        let Some(namespace) = attributes.namespace.filter(|_| resource.namespaced) else { return Ok(()) };
        // What is already in a namespace that goes has to be let go, and what somebody may do there is no secret of it.
        let is_review = resource.group == "authorization.k8s.io" && resource.plural == "localsubjectaccessreviews";
        if attributes.operation != Operation::Create || is_review {
            return Ok(());
        }
        let Some(namespaces) = registry.known("", "v1", "namespaces") else { return Ok(()) };
        let Some(item) = registry.cache_of(namespaces).get(&namespaces.key(None, namespace)) else {
            return Err(RegistryError::NoSuchNamespace(namespace.to_owned()));
        };
        if read_item(&item).is_some_and(|found| found.at(&["metadata", "deletionTimestamp"]).is_some()) {
            let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
            return Err(RegistryError::Forbidden {
                resource: resource.clone(),
                name: attributes.name.to_owned(),
                why,
                terminating_namespace: Some(namespace.to_owned()),
            });
        }
        Ok(())
    }
}
