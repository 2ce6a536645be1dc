//! How an owner stands at this moment: as the cache has it, or as the server says that keeps it.

use std::collections::HashMap;
use std::sync::Arc;

use revisor_catalog::{Resource, Verb};
use revisor_registry::Registry;

use super::home::Home;
use crate::metadata::{Duty, Metadata, Owner};

/// Who keeps objects, by their group and kind. The version of an owner reference does not matter: it may name any that
/// the object was ever served in.
#[derive(Default)]
pub(super) struct Kinds(HashMap<(String, String), Arc<Home>>);

impl Kinds {
    /// The kinds of this server, and those of others that it does not have itself.
    pub(super) fn new(resources: &[Arc<Resource>], elsewhere: impl Iterator<Item = Arc<Home>>) -> Kinds {
        let mut kinds = HashMap::new();
        // Only what can be got; other kinds, such as reviews, are never stored.
        for resource in resources.iter().filter(|resource| resource.verbs.contains(&Verb::Get)) {
            let kind = (resource.group.to_string(), resource.kind.to_string());
            kinds.entry(kind).or_insert_with(|| Arc::new(Home::Here(resource.storage().clone())));
        }
        for home in elsewhere {
            if let Home::Elsewhere(neighbour) = &*home {
                let kind = (neighbour.resource.group.clone(), neighbour.resource.kind.clone());
                kinds.entry(kind).or_insert(home);
            }
        }
        Kinds(kinds)
    }

    fn home(&self, api_version: &str, kind: &str) -> Option<&Arc<Home>> {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        self.0.get(&(group.to_owned(), kind.to_owned()))
    }
}

/// How an owner stands.
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// Where the standing of an owner is found out.
pub(super) enum Inquiry<'k> {
    /// It is known.
    Known(Standing),
    /// Another server has to be asked for the object of this key.
    Elsewhere(&'k Arc<Home>, String),
}

/// How the owner of an object in this namespace stands. An owner lives in the namespace of its dependent or in none:
/// one in another namespace is not found.
pub(super) fn inquire<'k>(
    registry: &Registry,
    kinds: &'k Kinds,
    owner: &Owner,
    namespace: Option<&str>,
) -> Inquiry<'k> {
    let Some(home) = kinds.home(&owner.api_version, &owner.kind) else { return Inquiry::Known(Standing::Unresolved) };
    let namespace = match (home.namespaced(), namespace) {
        (true, None) => return Inquiry::Known(Standing::Misplaced),
        (true, namespace) => namespace,
        (false, _) => None,
    };
    let key = home.key(namespace, &owner.name);
    match &**home {
        Home::Here(resource) => {
            let found = registry.cache_of(resource).get(&key);
            Inquiry::Known(standing(owner, found.and_then(|item| Metadata::read(item.bytes())).as_ref()))
        }
        Home::Elsewhere(_) => Inquiry::Elsewhere(home, key),
    }
}

/// How an owner stands of which this was found under its name.
pub(super) fn standing(owner: &Owner, found: Option<&Metadata>) -> Standing {
    match found {
        Some(metadata) if metadata.uid == owner.uid => match metadata.duty() {
            Duty::Foreground => Standing::Waiting,
            Duty::None | Duty::Orphan => Standing::Solid,
        },
        _ => Standing::Dangling,
    }
}
