//! [`Graph`]: who names whom as an owner.
//!
//! Objects without owners have no node. Most objects have none, and all that must be known about an owner is who
//! names it; whether it is there, the cache knows. An object also has a node while it is being deleted and waits for
//! its dependents.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Bound;
use std::sync::Arc;

use revisor_store::Key;

use super::home::Home;
use crate::metadata::{Duty, Metadata};
use crate::uid::Uid;

/// The objects that have owners or wait for dependents, by identity.
#[derive(Default)]
pub(super) struct Graph {
    nodes: HashMap<Uid, Node>,
    /// Pairs of an owner and one who names it. One ordered set costs less than a set per owner, and one of a hundred
    /// thousand dependents is removed as fast as the only one.
    dependents: BTreeSet<(Uid, Uid)>,
    /// Objects with an owner of a kind that nobody knows. It may become known.
    unresolved: HashSet<Uid>,
}

struct Node {
    home: Arc<Home>,
    /// Shared with whoever knows of the object.
    key: Key,
    owners: Box<[Link]>,
    duty: Duty,
}

/// An owner that an object names.
#[derive(PartialEq, Eq)]
struct Link {
    uid: Uid,
    blocks: bool,
}

/// Where an object of the graph is found.
pub(super) struct Target {
    pub(super) home: Arc<Home>,
    pub(super) key: Key,
}

impl Graph {
    /// Takes in an object as it is now. Answers who has to be looked at because of what has changed.
    pub(super) fn observe(&mut self, home: &Arc<Home>, key: &Key, metadata: &Metadata) -> Vec<Uid> {
        let uid = &metadata.uid;
        let owners = links(metadata);
        let duty = metadata.duty();
        let is_needed = !owners.is_empty() || duty != Duty::None;
        if !is_needed && !self.nodes.contains_key(uid) {
            return Vec::new();
        }
        let node = is_needed.then(|| Node { home: home.clone(), key: key.clone(), owners, duty });
        let old = self.nodes.remove(uid);
        let old_owners = old.as_ref().map(|old| &*old.owners).unwrap_or_default();
        let owners = node.as_ref().map(|node| &*node.owners).unwrap_or_default();
        let mut affected = Vec::new();
        for link in old_owners {
            let still = owners.iter().find(|owner| owner.uid == link.uid);
            if still.is_none() {
                self.dependents.remove(&(link.uid.clone(), uid.clone()));
            }
            if link.blocks && still.is_none_or(|still| !still.blocks) && self.is_waiting(&link.uid) {
                affected.push(link.uid.clone());
            }
        }
        for link in owners {
            self.dependents.insert((link.uid.clone(), uid.clone()));
        }
        if duty != Duty::None && old.is_none_or(|old| old.duty != duty) {
            if duty == Duty::Foreground {
                affected.extend(self.dependents_of(uid).cloned());
            }
            affected.push(uid.clone());
        }
        match node {
            Some(node) => {
                self.nodes.insert(uid.clone(), node);
            }
            None => {
                self.unresolved.remove(uid);
            }
        }
        affected
    }

    /// Takes out an object that is gone. Answers who has to be looked at because of that: those who named it as their
    /// owner, and owners that waited for it.
    pub(super) fn remove(&mut self, key: &Key, uid: &Uid) -> Vec<Uid> {
        let mut affected: Vec<Uid> = self.dependents_of(uid).cloned().collect();
        if self.nodes.get(uid).is_some_and(|node| node.key != *key) {
            // Another object has the same identity. Two objects never should, but files can be copied.
            return affected;
        }
        self.unresolved.remove(uid);
        for link in self.nodes.remove(uid).map(|node| node.owners).unwrap_or_default() {
            if self.is_waiting(&link.uid) {
                affected.push(link.uid.clone());
            }
            self.dependents.remove(&(link.uid, uid.clone()));
        }
        affected
    }

    /// Where an object is.
    pub(super) fn target(&self, uid: &Uid) -> Option<Target> {
        self.nodes.get(uid).map(|node| Target { home: node.home.clone(), key: node.key.clone() })
    }

    /// Those who name an object as their owner.
    pub(super) fn dependents_of(&self, owner: &Uid) -> impl Iterator<Item = &Uid> {
        let start = Bound::Included((owner.clone(), Uid::FIRST));
        self.dependents.range((start, Bound::Unbounded)).take_while(move |(of, _)| of == owner).map(|(_, uid)| uid)
    }

    /// Those whose deletion an object waits for when it is deleted in the foreground.
    pub(super) fn blocking_dependents_of(&self, owner: &Uid) -> Vec<Uid> {
        let blocks = |uid: &&Uid| {
            let links = self.nodes.get(*uid).map(|node| &*node.owners).unwrap_or_default();
            links.iter().any(|link| link.uid == *owner && link.blocks)
        };
        self.dependents_of(owner).filter(blocks).cloned().collect()
    }

    /// Whether an object is being deleted in the foreground.
    pub(super) fn is_waiting(&self, uid: &Uid) -> bool {
        self.nodes.get(uid).is_some_and(|node| node.duty == Duty::Foreground)
    }

    /// Remembers an object whose owner's kind is not known.
    pub(super) fn set_unresolved(&mut self, uid: &Uid) {
        if self.nodes.contains_key(uid) {
            self.unresolved.insert(uid.clone());
        }
    }

    /// All objects with an owner whose kind was not known.
    pub(super) fn take_unresolved(&mut self) -> Vec<Uid> {
        self.unresolved.drain().collect()
    }

    /// The objects of one resource.
    pub(super) fn objects_of(&self, home: &Home) -> impl Iterator<Item = (Key, Uid)> {
        let of = self.nodes.iter().filter(|(_, node)| node.home.prefix() == home.prefix());
        of.map(|(uid, node)| (node.key.clone(), uid.clone()))
    }

    /// All objects.
    pub(super) fn all(&self) -> Vec<Uid> {
        self.nodes.keys().cloned().collect()
    }
}

/// The owners that an object names, each once.
fn links(metadata: &Metadata) -> Box<[Link]> {
    let mut links: Vec<Link> = Vec::with_capacity(metadata.owners.len());
    for owner in &metadata.owners {
        match links.iter_mut().find(|link| link.uid == owner.uid) {
            Some(link) => link.blocks |= owner.blocks,
            None => links.push(Link { uid: owner.uid.clone(), blocks: owner.blocks }),
        }
    }
    links.into()
}

#[cfg(test)]
mod tests;
