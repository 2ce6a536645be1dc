//! APIServices as those see them who pass requests on: what is stored, and how it is told whether they are available.

use std::sync::Arc;

use revisor_cache::ResourceCache;
use revisor_catalog::Resource;
use revisor_object::Object;

use crate::overwrite::set_condition;
use crate::{Decoded, Place, Registry, RegistryError};

impl Registry {
    /// The resource of APIServices and the part of the cache that holds them.
    pub fn api_services(&self) -> Option<(Arc<Resource>, Arc<ResourceCache>)> {
        let resource = self.catalog.resource("apiregistration.k8s.io", "v1", "apiservices")?.storage().clone();
        let cache = self.cache_of(&resource);
        Some((resource, cache))
    }

    /// All APIServices that are stored.
    pub fn stored_api_services(&self) -> Vec<Object> {
        let Some((resource, cache)) = self.api_services() else { return Vec::new() };
        let snapshot = cache.snapshot();
        snapshot.range(&resource.prefix, None).filter_map(|item| Decoded::stored(item.bytes()).ok()).collect()
    }

    /// Says in the status of an APIService whether it is available: `status`, `reason` and `message` of that condition.
    /// What is said already is not written.
    pub async fn tell_availability(
        &self,
        name: &str,
        [status, reason, message]: [&str; 3],
    ) -> Result<(), RegistryError> {
        let Some((resource, _)) = self.api_services() else { return Ok(()) };
        let now = self.environment.timestamp();
        let condition = [("type", "Available"), ("status", status), ("reason", reason), ("message", message)];
        let place = Place { resource: &resource, namespace: None, name: Some(name) };
        let told = self.tell_as_server(place, self.own.options(), |service| {
            set_condition(service, condition, &now);
            Ok(())
        });
        told.await
    }
}
