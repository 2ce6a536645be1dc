//! Storage that is in use must not go: volumes, claims and classes of attributes get a finalizer when they are made,
//! which a controller removes once nobody uses them.

use revisor_catalog::Feature;
use revisor_object::Object;

use super::{Admission, Attributes, Operation};
use crate::{Registry, RegistryError};

pub(super) struct StorageProtection;

impl Admission for StorageProtection {
    fn name(&self) -> &'static str {
        "StorageObjectInUseProtection"
    }

    fn handles(&self, operation: Operation) -> bool {
        operation == Operation::Create
    }

    fn admit(
        &self,
        registry: &Registry,
        attributes: &Attributes<'_>,
        object: &mut Object,
    ) -> Result<(), RegistryError> {
        if attributes.operation != Operation::Create || attributes.subresource.is_some() {
            return Ok(());
        }
        let finalizer = match attributes.resource.name() {
            ("", "persistentvolumes") => "kubernetes.io/pv-protection",
            ("", "persistentvolumeclaims") => "kubernetes.io/pvc-protection",
            ("storage.k8s.io", "volumeattributesclasses")
                if registry.catalog.features().has(Feature::VolumeAttributesClass) =>
            {
                "kubernetes.io/vac-protection"
            }
            _ => return Ok(()),
        };
        super::add_finalizer(object, finalizer);
        Ok(())
    }
}
