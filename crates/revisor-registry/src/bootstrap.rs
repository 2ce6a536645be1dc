//! The objects that every server has from its first moment.

use revisor_object::{Object, Value};

use crate::{Decoded, Place, Registry, RegistryError, WriteOptions};

/// The namespaces that always exist.
const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Those of them that may not be deleted.
pub(crate) const IMMORTAL_NAMESPACES: [&str; 3] = ["default", "kube-system", "kube-public"];

impl Registry {
    /// Makes the namespaces that are missing.
    pub(crate) async fn bootstrap(&self) -> Result<(), RegistryError> {
        let Some(namespaces) = self.catalog.resource("", "v1", "namespaces").cloned() else { return Ok(()) };
        self.cache.freshen().await?;
        for name in NAMESPACES {
            if self.cache_of(&namespaces).get(&namespaces.key(None, name)).is_some() {
                continue;
            }
            let metadata: Object = [("name", Value::from(name))].into_iter().collect();
            let object: Object = [("metadata", Value::from(metadata))].into_iter().collect();
            let place = Place { resource: &namespaces, namespace: None, name: None };
            let decoded = Decoded { object, warnings: Vec::new() };
            match self.create(place, decoded, WriteOptions::default()).await {
                // Another server on the same store may have been faster.
                Ok(_) | Err(RegistryError::AlreadyExists { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
