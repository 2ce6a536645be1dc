//! The objects that every server has from its first moment.

mod flow_control;
mod kubernetes_service;
mod master_leases;
mod own_config_maps;
mod registrations;
mod roles;

use std::sync::Arc;

use futures_util::future::{try_join, try_join_all, try_join5};
use revisor_catalog::{BootstrapObject, Resource};
use revisor_object::{Object, Value, Warnings};

pub use self::kubernetes_service::Advertised;
pub(crate) use self::master_leases::MasterLeases;
use crate::{Decoded, Place, Registry, RegistryError, WriteOptions};

/// The namespaces that always exist.
const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Those of them that may not be deleted.
pub(crate) const IMMORTAL_NAMESPACES: [&str; 3] = ["default", "kube-system", "kube-public"];

/// The classes of what a cluster cannot do without.
const PRIORITY_CLASSES: [(&str, i64, &str); 2] = [
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
];

impl Registry {
    /// Makes the objects that are missing, all at once: they share one sync of the disk, and what is said of them when
    /// they are there shares another. Then puts in order what services hold. Where all is there, nothing is written.
    pub(crate) async fn bootstrap(&self) -> Result<(), RegistryError> {
        self.cache.freshen().await?;
        let namespaces = NAMESPACES.map(|name| self.ensure_named("", "namespaces", name, Object::new()));
        let classes = PRIORITY_CLASSES.map(|(name, value, description)| {
            let members = [("value", Value::from(value)), ("description", Value::from(description))];
            self.ensure_named("scheduling.k8s.io", "priorityclasses", name, members.into_iter().collect())
        });
        let registrations = self.catalog.bootstrap_objects();
        let registrations = registrations.iter().map(|BootstrapObject { group, plural, name, object }| {
            self.ensure_named(group, plural, name, object.clone())
        });
        let made = try_join_all(namespaces.into_iter().chain(classes));
        let (ranges, roles) = (self.ensure_service_ranges(), self.ensure_roles(false));
        try_join5(made, try_join_all(registrations), self.ensure_flow_control(), ranges, roles).await?;
        // The namespaces are there now.
        try_join(self.reconcile_services(), self.ensure_roles(true)).await.map(|_| ())
    }

    /// Makes an object without a namespace if it is missing; answers whether it was. What the catalog does not serve is
    /// not missed.
    pub(crate) async fn ensure_named(
        &self,
        group: &str,
        plural: &str,
        name: &str,
        mut object: Object,
    ) -> Result<bool, RegistryError> {
        let Some(resource) = self.catalog.resource(group, "v1", plural) else { return Ok(false) };
        if self.cache_of(resource).get(&resource.key(None, name)).is_some() {
            return Ok(false);
        }
        object.object_mut("metadata").insert("name", name);
        self.ensure(resource, None, object).await
    }

    /// Makes an object; answers whether it was missing. Another server on the same store may have been faster.
    async fn ensure(
        &self,
        resource: &Arc<Resource>,
        namespace: Option<&str>,
        object: Object,
    ) -> Result<bool, RegistryError> {
        let place = Place { resource, namespace, name: None };
        match self.create(place, Decoded { object, warnings: Warnings::default() }, WriteOptions::default()).await {
            Ok(_) => Ok(true),
            Err(RegistryError::AlreadyExists { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
