//! [`Home`]: who keeps the objects of a resource, this server or another one.

use std::sync::Arc;

use revisor_catalog::Resource;
use tokio::sync::Notify;

use crate::elsewhere::{ResourceElsewhere, Roster};
use crate::metadata::{place, place_after};

/// Who keeps the objects of a resource.
pub(super) enum Home {
    /// This server.
    Here(Arc<Resource>),
    /// Another one.
    Elsewhere(Neighbour),
}

/// A resource that another server keeps.
pub(super) struct Neighbour {
    pub(super) resource: Arc<ResourceElsewhere>,
    prefix: String,
    /// The objects that it was last known to have.
    pub(super) roster: Roster,
    /// Tells that it is not there any more.
    pub(super) end: Notify,
}

impl Neighbour {
    pub(super) fn new(resource: Arc<ResourceElsewhere>) -> Neighbour {
        Neighbour { prefix: resource.prefix(), resource, roster: Roster::default(), end: Notify::new() }
    }
}

impl Home {
    /// What the keys of its objects begin with.
    pub(super) fn prefix(&self) -> &str {
        match self {
            Home::Here(resource) => &resource.prefix,
            Home::Elsewhere(neighbour) => &neighbour.prefix,
        }
    }

    pub(super) fn namespaced(&self) -> bool {
        match self {
            Home::Here(resource) => resource.namespaced,
            Home::Elsewhere(neighbour) => neighbour.resource.namespaced,
        }
    }

    /// The namespace, if there are any, and the name that a key stands for.
    pub(super) fn place<'k>(&self, key: &'k str) -> (Option<&'k str>, &'k str) {
        match self {
            Home::Here(resource) => place(resource, key),
            Home::Elsewhere(neighbour) => place_after(&neighbour.prefix, neighbour.resource.namespaced, key),
        }
    }

    /// The key of an object.
    pub(super) fn key(&self, namespace: Option<&str>, name: &str) -> String {
        match (self, namespace) {
            (Home::Here(resource), namespace) => resource.key(namespace, name),
            (Home::Elsewhere(neighbour), Some(namespace)) => format!("{}{namespace}/{name}", neighbour.prefix),
            (Home::Elsewhere(neighbour), None) => format!("{}{name}", neighbour.prefix),
        }
    }
}
