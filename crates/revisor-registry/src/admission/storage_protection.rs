//! Storage that is in use must not go: volumes, claims and classes of attributes get a finalizer when they are made,
//! which a controller removes once nobody uses them.

use revisor_catalog::Feature;
use revisor_object::Object;

use super::{Admission, Operation, Review};
use crate::{Registry, RegistryError};

pub(super) struct StorageProtection;

impl Admission for StorageProtection {
    fn admit(&self, registry: &Registry, review: &Review<'_>, object: &mut Object) -> Result<(), RegistryError> {
        if review.operation != Operation::Create || review.subresource.is_some() {
            return Ok(());
        }
        let finalizer = match review.resource.name() {
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
