//! APIServices that an earlier start left behind: other flags or another release may serve other versions.

use std::collections::HashMap;
use std::sync::Arc;

use revisor_catalog::{Resource, is_own_registration};
use revisor_object::{Object, Value};

use super::{Made, PATIENCE};
use crate::{Decoded, DeleteOptions, Place, Preconditions, Registry, RegistryError, WriteOptions};

impl Registry {
    /// Takes back what a server registered by itself and does not serve any more, and brings the rest to what it would
    /// register now. What others registered is theirs. Definitions must have taken effect.
    pub(crate) async fn reconcile_registrations(&self) -> Result<Made, RegistryError> {
        let Some(services) = self.catalog.resource("apiregistration.k8s.io", "v1", "apiservices") else {
            return Ok(Made::All);
        };
        let options = self.own.options_within(PATIENCE);
        let objects = self.catalog.bootstrap_objects();
        let wanted: HashMap<String, Object> = objects.into_iter().map(|it| (it.name, it.object)).collect();
        let snapshot = self.cache_of(services).snapshot();
        let stored = snapshot.range(&services.prefix, None).filter_map(|item| Decoded::stored(item.bytes()).ok());
        let own: Vec<Object> = stored.filter(is_own_registration).collect();
        Made::all(own.iter().map(|service| self.reconcile_registration(services, service, &wanted, options))).await
    }

    async fn reconcile_registration(
        &self,
        services: &Arc<Resource>,
        service: &Object,
        wanted: &HashMap<String, Object>,
        write: WriteOptions<'_>,
    ) -> Result<(), RegistryError> {
        let text = |path: &[&str]| service.at(path).and_then(Value::as_str).unwrap_or_default();
        let name = text(&["metadata", "name"]);
        let done = if let Some(spec) = wanted.get(name).and_then(|wanted| wanted.get("spec")) {
            let place = Place { resource: services, namespace: None, name: Some(name) };
            let replaced = self.change_as_server(place, write, |object| {
                object.insert("spec", spec.clone());
                Ok(())
            });
            replaced.await
        } else if self.catalog().group_version(text(&["spec", "group"]), text(&["spec", "version"])).is_some() {
            Ok(())
        } else {
            let place = Place { resource: services, namespace: None, name: Some(name) };
            let uid = Some(text(&["metadata", "uid"]).to_owned());
            let preconditions = Preconditions { uid, resource_version: None };
            let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
            self.delete_for(place, &options, write).await.map(drop)
        };
        match done {
            // Somebody else was faster.
            Err(RegistryError::NotFound { .. } | RegistryError::Conflict { .. }) => Ok(()),
            done => done,
        }
    }
}
