//! NamespaceAutoProvision, which makes the namespace that a new object wants to be in, and NamespaceExists, which lets
//! nothing be done in one that is not there.

use revisor_object::{Object, Warnings};

use super::{Admission, Attributes, Operation, Waiting};
use crate::{Decoded, Place, Registry, RegistryError, WriteOptions};

/// Makes namespaces.
pub(super) struct NamespaceAutoProvision;

/// Demands them.
pub(super) struct NamespaceExists;

/// The namespace of a write, if it is not there.
fn missing<'a>(registry: &Registry, attributes: &Attributes<'a>) -> Option<&'a str> {
    let namespace = attributes.namespace.filter(|namespace| !namespace.is_empty())?;
    let namespaces = registry.known("", "v1", "namespaces")?;
    if attributes.resource.name() == ("", "namespaces") {
        return None;
    }
    registry.cache_of(namespaces).get(&namespaces.key(None, namespace)).is_none().then_some(namespace)
}

impl Admission for NamespaceAutoProvision {
    fn name(&self) -> &'static str {
        "NamespaceAutoProvision"
    }

    fn handles(&self, operation: Operation) -> bool {
        operation == Operation::Create
    }

    fn admit_waiting<'a>(
        &'a self,
        registry: &'a Registry,
        attributes: &'a Attributes<'_>,
        _: &'a mut Object,
    ) -> Option<Waiting<'a>> {
        let name = missing(registry, attributes).filter(|_| !attributes.dry_run)?;
        let namespaces = registry.known("", "v1", "namespaces")?;
        Some(Box::pin(async move {
            let mut namespace = Object::new();
            namespace.insert("apiVersion", "v1");
            namespace.insert("kind", "Namespace");
            namespace.object_mut("metadata").insert("name", name);
            let place = Place { resource: namespaces, namespace: None, name: None };
            let decoded = Decoded { object: namespace, warnings: Warnings::default() };
            // The server itself makes it, in a write of its own.
            let options = WriteOptions { deadline: attributes.deadline, ..registry.own.options() };
            match registry.create(place, decoded, options).await {
                Ok(_) | Err(RegistryError::AlreadyExists { .. }) => Ok(()),
                Err(error) => Err(attributes.forbidden(error.to_string())),
            }
        }))
    }
}

impl Admission for NamespaceExists {
    fn name(&self) -> &'static str {
        "NamespaceExists"
    }

    fn handles(&self, operation: Operation) -> bool {
        matches!(operation, Operation::Create | Operation::Update | Operation::Delete)
    }

    fn looks_at_deleted(&self, _: &Registry) -> bool {
        false
    }

    fn validate(&self, registry: &Registry, attributes: &Attributes<'_>, _: &Object) -> Result<(), RegistryError> {
        match missing(registry, attributes) {
            None => Ok(()),
            Some(namespace) => Err(RegistryError::NoSuchNamespace(namespace.to_owned())),
        }
    }
}
