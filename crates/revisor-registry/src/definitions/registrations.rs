//! APIServices of custom resources: one for each group and version that definitions bring, so that those who ask which
//! groups there are, and in which order, find them among the others.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use revisor_catalog::{Resource, custom_registration, is_custom_registration};
use revisor_object::{Object, Value};

use crate::bootstrap::{Made, retry};
use crate::{Decoded, DeleteOptions, Place, Registry, RegistryError};

/// How long a definition waits for webhooks that are asked about its registration.
const PATIENCE: Duration = Duration::from_secs(2);

impl Registry {
    /// Registers the versions of a group that definitions bring now, and takes back what was registered for others.
    /// Nobody waits for long for webhooks that are asked about that: it is done later, then.
    pub(super) async fn register_custom(&self, group: &str) {
        if self.try_register_custom(group).await == Made::PutOff {
            let (registry, group) = (self.itself.clone(), group.to_owned());
            let make = async move |registry: &Registry| Ok(registry.try_register_custom(&group).await);
            drop(self.runtime.spawn(retry(registry, make)));
        }
    }

    async fn try_register_custom(&self, group: &str) -> Made {
        let Some(services) = self.catalog.resource("apiregistration.k8s.io", "v1", "apiservices") else {
            return Made::All;
        };
        let options = self.own.options_within(PATIENCE);
        let mut all = Made::All;
        let served: BTreeSet<String> = self
            .catalog()
            .versions_of(group)
            .filter(|known| self.catalog.group_version(group, &known.version).is_none())
            .map(|known| known.version.to_string())
            .collect();
        for version in &served {
            let (name, registration) = (format!("{version}.{group}"), custom_registration(group, version));
            let made = self.ensure_named("apiregistration.k8s.io", "apiservices", &name, registration, options).await;
            all = all.and(tell(group, made.map(drop)));
        }
        for (name, version) in self.registered(services, group) {
            if !served.contains(&version) {
                let place = Place { resource: services, namespace: None, name: Some(&name) };
                let deleted = self.delete_for(place, &DeleteOptions::default(), options).await;
                all = all.and(tell(group, deleted.map(drop)));
            }
        }
        all
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

fn tell(group: &str, done: Result<(), RegistryError>) -> Made {
    match done {
        // Another server on the same store may have been faster.
        Ok(()) | Err(RegistryError::NotFound { .. }) => Made::All,
        Err(error) if error.is_stop() => Made::All,
        Err(error) => {
            tracing::warn!(group, %error, "the registered versions of a group are not those that are served");
            if error.is_refusal() { Made::PutOff } else { Made::All }
        }
    }
}
