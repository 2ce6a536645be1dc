//! [`RoleBook`]: the grants of all stored roles and bindings.
//!
//! It has no task of its own. Whoever reads it sees by four numbers whether the caches have changes that it does not
//! have, and brings it up to date first. A cache has a write before its writer is answered, so who wrote a binding can
//! rely on it in their next request.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard};

use revisor_auth::{Binding, GrantBook, Grants, PolicyRule};
use revisor_cache::{Item, ResourceCache};
use revisor_catalog::{Catalog, Resource};
use revisor_version::Revision;

use crate::Decoded;
use crate::selection::place;

/// The group of roles and bindings.
pub(crate) const GROUP: &str = "rbac.authorization.k8s.io";

/// How many changes are read at once.
const STEP: usize = 256;

/// Keeps the grants of the stored roles and bindings.
pub(crate) struct RoleBook {
    followed: Vec<Followed>,
    grants: RwLock<Grants>,
    /// Held by the one who brings the grants up to date. Readers of what is up to date never wait for it.
    turn: Mutex<()>,
}

/// One of the four resources.
struct Followed {
    resource: Arc<Resource>,
    cache: Arc<ResourceCache>,
    /// The last change that is in the grants; zero for none.
    seen: AtomicU64,
}

/// What a change comes to.
enum Entry {
    Role(Vec<PolicyRule>),
    Binding(Binding),
    Nothing,
}

impl RoleBook {
    /// A book of what these caches hold. Of what the catalog does not serve there is nothing.
    pub(crate) fn new(catalog: &Catalog, caches: &HashMap<String, Arc<ResourceCache>>) -> RoleBook {
        let follow = |plural| {
            let resource = catalog.resource(GROUP, "v1", plural)?.storage().clone();
            let cache = caches.get(&resource.prefix)?.clone();
            Some(Followed { resource, cache, seen: AtomicU64::new(0) })
        };
        let plurals = ["clusterroles", "roles", "clusterrolebindings", "rolebindings"];
        RoleBook {
            followed: plurals.into_iter().filter_map(follow).collect(),
            grants: RwLock::default(),
            turn: Mutex::default(),
        }
    }

    fn catch_up(&self) {
        let _turn = self.turn.lock().expect("no holder of the turn panics");
        self.followed.iter().for_each(|followed| followed.catch_up(&self.grants));
    }
}

impl GrantBook for RoleBook {
    fn read(&self) -> RwLockReadGuard<'_, Grants> {
        if self.followed.iter().any(Followed::is_behind) {
            self.catch_up();
        }
        self.grants.read().expect("no holder of the grants panics")
    }
}

impl Followed {
    fn seen(&self) -> Option<Revision> {
        Revision::new(self.seen.load(Ordering::Acquire))
    }

    fn is_behind(&self) -> bool {
        self.cache.delivered() > self.seen()
    }

    /// Brings in all changes. Called by one at a time.
    fn catch_up(&self, grants: &RwLock<Grants>) {
        while self.is_behind() {
            let seen = match self.cache.changes_after(self.seen(), STEP) {
                Some(changes) => {
                    let read = |change: &Arc<revisor_cache::Delivery>| {
                        let entry = change.new().map_or(Entry::Nothing, |item| self.read(item));
                        (change.key().as_str().to_owned(), entry)
                    };
                    // Read before the lock is taken, so that others wait for what only they can see.
                    let entries: Vec<(String, Entry)> = changes.iter().map(read).collect();
                    self.enter(&mut grants.write().expect("no holder of the grants panics"), entries);
                    changes.last().map(|change| change.revision()).or_else(|| self.cache.delivered())
                }
                // It was not asked for long, or never: what there is now is all that matters.
                None => {
                    let snapshot = self.cache.snapshot();
                    let items = snapshot.range(&self.resource.prefix, None);
                    let entries: Vec<_> = items.map(|item| (item.key().as_str().to_owned(), self.read(item))).collect();
                    let mut grants = grants.write().expect("no holder of the grants panics");
                    self.forget(&mut grants);
                    self.enter(&mut grants, entries);
                    snapshot.revision()
                }
            };
            self.seen.store(seen.map_or(0, Revision::get), Ordering::Release);
        }
    }

    fn is_role(&self) -> bool {
        matches!(self.resource.plural.as_str(), "clusterroles" | "roles")
    }

    /// Where an object is.
    fn place<'k>(&self, key: &'k str) -> (Option<&'k str>, &'k str) {
        let (namespace, name) = place(&self.resource, key);
        (Some(namespace).filter(|_| self.resource.namespaced), name)
    }

    /// What an object grants: nothing if it cannot be read.
    fn read(&self, item: &Item) -> Entry {
        let Ok(object) = Decoded::stored(item.bytes()) else { return Entry::Nothing };
        if self.is_role() {
            return Entry::Role(PolicyRule::all_of(&object));
        }
        let (namespace, name) = self.place(item.key().as_str());
        Binding::read(namespace, name, &object).map_or(Entry::Nothing, Entry::Binding)
    }

    fn enter(&self, grants: &mut Grants, entries: Vec<(String, Entry)>) {
        for (key, entry) in entries {
            let (namespace, name) = self.place(&key);
            match entry {
                Entry::Role(rules) => grants.put_role(namespace, name, rules),
                Entry::Binding(binding) => grants.put_binding(binding),
                Entry::Nothing if self.is_role() => grants.remove_role(namespace, name),
                Entry::Nothing => grants.remove_binding(namespace, name),
            }
        }
    }

    fn forget(&self, grants: &mut Grants) {
        match (self.is_role(), self.resource.namespaced) {
            (true, false) => grants.forget_cluster_roles(),
            (true, true) => grants.forget_roles(),
            (false, false) => grants.forget_cluster_bindings(),
            (false, true) => grants.forget_bindings(),
        }
    }
}

impl fmt::Debug for RoleBook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoleBook").finish_non_exhaustive()
    }
}
