//! APIServices of custom resources: one for each group and version that definitions bring, so that those who ask which
//! groups there are, and in which order, find them among the others.

use std::collections::BTreeSet;
use std::sync::Arc;

use revisor_catalog::{Resource, custom_registration, is_custom_registration};
use revisor_object::{Object, Value};

use crate::{Decoded, DeleteOptions, Place, Registry, RegistryError};

impl Registry {
    /// Registers the versions of a group that definitions bring now, and takes back what was registered for others.
    pub(super) async fn register_custom(&self, group: &str) {
        let Some(services) = self.catalog.resource("apiregistration.k8s.io", "v1", "apiservices") else { return };
        let served: BTreeSet<String> = self
            .catalog()
            .versions_of(group)
            .filter(|known| self.catalog.group_version(group, &known.version).is_none())
            .map(|known| known.version.to_string())
            .collect();
        for version in &served {
            let (name, registration) = (format!("{version}.{group}"), custom_registration(group, version));
            let made = self.ensure_named("apiregistration.k8s.io", "apiservices", &name, registration).await;
            tell(group, made.map(drop));
        }
        for (name, version) in self.registered(services, group) {
            if !served.contains(&version) {
                let place = Place { resource: services, namespace: None, name: Some(&name) };
                let deleted = self.delete(place, &DeleteOptions::default()).await;
                tell(group, deleted.map(drop));
            }
        }
    }

    /// The names and versions of what was registered for definitions of a group.
    fn registered(&self, services: &Arc<Resource>, group: &str) -> Vec<(String, String)> {
        let suffix = format!(".{group}");
        let snapshot = self.cache_of(services).snapshot();
        let of_group = snapshot.range(&services.prefix, None).filter(|item| item.key().as_str().ends_with(&suffix));
        let read = |service: Object| {
            let text = |path: &[&str]| service.at(path).and_then(Value::as_str).unwrap_or_default().to_owned();
            let is_own = is_custom_registration(&service) && text(&["spec", "group"]) == group;
            is_own.then(|| (text(&["metadata", "name"]), text(&["spec", "version"])))
        };
        of_group.filter_map(|item| read(Decoded::stored(item.bytes()).ok()?)).collect()
    }
}

fn tell(group: &str, done: Result<(), RegistryError>) {
    match done {
        // Another server on the same store may have been faster.
        Ok(()) | Err(RegistryError::NotFound { .. }) => {}
        Err(error) if error.is_stop() => {}
        Err(error) => tracing::warn!(group, %error, "the registered versions of a group are not those that are served"),
    }
}
