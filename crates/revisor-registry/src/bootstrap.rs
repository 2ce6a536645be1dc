//! The objects that every server has from its first moment.

mod flow_control;
mod kubernetes_service;
mod master_leases;
mod own_config_maps;
mod registrations;
mod roles;

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::{join_all, try_join, try_join5};
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

/// How long the start waits for webhooks that are asked about what is missing. They may need the server themselves.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long it takes at least until what was put off is tried again, and at most.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Whether all is there that should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Made {
    /// All of it.
    All,
    /// Webhooks or policies stand against some of it. It is tried again later: they keep no server from starting.
    PutOff,
}

impl Made {
    pub(crate) fn and(self, other: Made) -> Made {
        if self == Made::All { other } else { self }
    }

    /// What a write came to. Only a store that fails keeps the server from starting.
    pub(crate) fn of<T>(written: Result<T, RegistryError>) -> Result<Made, RegistryError> {
        match written {
            Ok(_) => Ok(Made::All),
            Err(error) if error.is_refusal() => {
                tracing::warn!(error = &error as &dyn std::error::Error, "an object of the server is put off");
                Ok(Made::PutOff)
            }
            Err(error) => Err(error),
        }
    }

    /// What writes came to that are made at once.
    async fn all<T>(
        writes: impl IntoIterator<Item = impl Future<Output = Result<T, RegistryError>>>,
    ) -> Result<Made, RegistryError> {
        let mut made = Made::All;
        for written in join_all(writes).await {
            made = made.and(Made::of(written)?);
        }
        Ok(made)
    }
}

impl Registry {
    /// Makes the objects that are missing, and puts in order what services hold. Where all is there, nothing is written.
    pub(crate) async fn bootstrap(&self) -> Result<Made, RegistryError> {
        self.cache.freshen().await?;
        let options = self.own.options_within(PATIENCE);
        let made = self.make_missing(options).await?;
        // The namespaces are there now.
        let (services, roles) = try_join(self.reconcile_services(options), self.ensure_roles(true, options)).await?;
        Ok(made.and(services).and(roles))
    }

    /// Makes the objects that are missing, all at once: they share one sync of the disk, and what is said of them when
    /// they are there shares another.
    async fn make_missing(&self, options: WriteOptions<'_>) -> Result<Made, RegistryError> {
        let namespaces = NAMESPACES.map(|name| self.ensure_named("", "namespaces", name, Object::new(), options));
        let classes = PRIORITY_CLASSES.map(|(name, value, description)| {
            let members = [("value", Value::from(value)), ("description", Value::from(description))];
            self.ensure_named("scheduling.k8s.io", "priorityclasses", name, members.into_iter().collect(), options)
        });
        let registrations = self.catalog.bootstrap_objects();
        let registrations = registrations.iter().map(|BootstrapObject { group, plural, name, object }| {
            self.ensure_named(group, plural, name, object.clone(), options)
        });
        let ranges = async { Made::of(self.ensure_service_ranges(options).await) };
        let flows = async { Made::of(self.ensure_flow_control(options).await) };
        let (named, registrations, flows, ranges, roles) = try_join5(
            Made::all(namespaces.into_iter().chain(classes)),
            Made::all(registrations),
            flows,
            ranges,
            self.ensure_roles(false, options),
        )
        .await?;
        Ok(named.and(registrations).and(flows).and(ranges).and(roles))
    }

    /// Makes later what is put off, again and again until all of it is there.
    pub(crate) fn bootstrap_later(&self) {
        let again = async |registry: &Registry| {
            let options = registry.own.options();
            let made = registry.make_missing(options).await?.and(registry.ensure_roles(true, options).await?);
            let made = made.and(registry.make_missing_addresses(options).await?);
            Ok(made.and(registry.reconcile_registrations().await?))
        };
        drop(self.runtime.spawn(retry(self.itself.clone(), again)));
    }

    /// Makes an object without a namespace if it is missing; answers whether it was. What the catalog does not serve is
    /// not missed.
    pub(crate) async fn ensure_named(
        &self,
        group: &str,
        plural: &str,
        name: &str,
        mut object: Object,
        options: WriteOptions<'_>,
    ) -> Result<bool, RegistryError> {
        let Some(resource) = self.catalog.resource(group, "v1", plural) else { return Ok(false) };
        if self.cache_of(resource).get(&resource.key(None, name)).is_some() {
            return Ok(false);
        }
        object.object_mut("metadata").insert("name", name);
        self.ensure(resource, None, object, options).await
    }

    /// Makes an object; answers whether it was missing. Another server on the same store may have been faster.
    async fn ensure(
        &self,
        resource: &Arc<Resource>,
        namespace: Option<&str>,
        object: Object,
        options: WriteOptions<'_>,
    ) -> Result<bool, RegistryError> {
        let place = Place { resource, namespace, name: None };
        match self.create(place, Decoded { object, warnings: Warnings::default() }, options).await {
            Ok(_) => Ok(true),
            Err(RegistryError::AlreadyExists { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Tries something again, with longer and longer pauses, until all of it is made or the registry is gone.
pub(crate) async fn retry(registry: Weak<Registry>, make: impl AsyncFn(&Registry) -> Result<Made, RegistryError>) {
    let mut pause = RETRY.0;
    loop {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(RETRY.1);
        let Some(registry) = registry.upgrade() else { return };
        match make(&registry).await {
            Ok(Made::All) => return,
            Ok(Made::PutOff) => {}
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "the objects of the server cannot be made");
            }
        }
    }
}
