//! How an owner stands at this moment, as the cache has it.

use std::collections::HashMap;
use std::sync::Arc;

use revisor_catalog::{Resource, Verb};
use revisor_registry::Registry;

use crate::metadata::{Duty, Metadata, Owner};

/// The resources by the group and kind of their objects. The version of an owner reference does not matter: it may
/// name any that the object was ever served in.
#[derive(Default)]
pub(super) struct Kinds(HashMap<(String, String), Arc<Resource>>);

impl Kinds {
    pub(super) fn new(resources: &[Arc<Resource>]) -> Kinds {
        let mut kinds = HashMap::new();
        // Only what can be got; other kinds, such as reviews, are never stored.
        for resource in resources.iter().filter(|resource| resource.verbs.contains(&Verb::Get)) {
            let kind = (resource.group.to_string(), resource.kind.to_string());
            kinds.entry(kind).or_insert_with(|| resource.storage().clone());
        }
        Kinds(kinds)
    }

    fn resource(&self, api_version: &str, kind: &str) -> Option<&Arc<Resource>> {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        self.0.get(&(group.to_owned(), kind.to_owned()))
    }
}

/// How an owner stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is there.
    Solid,
    /// It is not there, or another object has its name.
    Dangling,
    /// It is being deleted, after its dependents.
    Waiting,
    /// Nobody knows its kind.
    Unresolved,
    /// An object outside of all namespaces names an owner in a namespace, without saying which.
    Misplaced,
}

/// How the owner of an object in this namespace stands. An owner lives in the namespace of its dependent or in none:
/// one in another namespace is not found.
pub(super) fn standing(registry: &Registry, kinds: &Kinds, owner: &Owner, namespace: Option<&str>) -> Standing {
    let Some(resource) = kinds.resource(&owner.api_version, &owner.kind) else { return Standing::Unresolved };
    let namespace = match (resource.namespaced, namespace) {
        (true, None) => return Standing::Misplaced,
        (true, namespace) => namespace,
        (false, _) => None,
    };
    let found = registry.cache_of(resource).get(&resource.key(namespace, &owner.name));
    match found.and_then(|item| Metadata::read(item.bytes())) {
        Some(metadata) if metadata.uid == owner.uid => match metadata.duty() {
            Duty::Foreground => Standing::Waiting,
            Duty::None | Duty::Orphan => Standing::Solid,
        },
        _ => Standing::Dangling,
    }
}
