//! The objects that every server has from its first moment.

use std::sync::Arc;

use futures_util::future::try_join_all;
use revisor_catalog::Resource;
use revisor_object::{Object, Value};

use crate::{Decoded, Place, Registry, RegistryError, WriteOptions};

/// The namespaces that always exist.
const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Those of them that may not be deleted.
pub(crate) const IMMORTAL_NAMESPACES: [&str; 3] = ["default", "kube-system", "kube-public"];

impl Registry {
    /// Makes the namespaces that are missing, all at once: they share one sync of the disk.
    pub(crate) async fn bootstrap(&self) -> Result<(), RegistryError> {
        let Some(namespaces) = self.catalog.resource("", "v1", "namespaces") else { return Ok(()) };
        self.cache.freshen().await?;
        try_join_all(NAMESPACES.map(|name| self.ensure_namespace(namespaces, name))).await?;
        Ok(())
    }

    async fn ensure_namespace(&self, namespaces: &Arc<Resource>, name: &str) -> Result<(), RegistryError> {
        if self.cache_of(namespaces).get(&namespaces.key(None, name)).is_some() {
            return Ok(());
        }
        let metadata: Object = [("name", Value::from(name))].into_iter().collect();
        let object: Object = [("metadata", Value::from(metadata))].into_iter().collect();
        let place = Place { resource: namespaces, namespace: None, name: None };
        match self.create(place, Decoded { object, warnings: Vec::new() }, WriteOptions::default()).await {
            // Another server on the same store may have been faster.
            Ok(_) | Err(RegistryError::AlreadyExists { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
