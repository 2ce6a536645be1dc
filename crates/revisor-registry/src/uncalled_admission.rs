//! [`UncalledAdmission`]: admission policies that are stored and that nobody calls.
//!
//! Whoever made them relies on them. As long as this server cannot call them, it says so with every write, and in its
//! log.

use std::collections::HashMap;
use std::sync::Arc;

use revisor_cache::ResourceCache;
use revisor_catalog::{Catalog, Resource};

use crate::Registry;

const GROUP: &str = "admissionregistration.k8s.io";

/// What would be called. A policy has an effect only where something binds it.
const PLURALS: [&str; 2] = ["mutatingadmissionpolicybindings", "validatingadmissionpolicybindings"];

/// The caches of what would be called.
pub(crate) struct UncalledAdmission {
    caches: Vec<Arc<ResourceCache>>,
}

impl UncalledAdmission {
    pub(crate) fn new(catalog: &Catalog, caches: &HashMap<String, Arc<ResourceCache>>) -> UncalledAdmission {
        let mut found: HashMap<&str, &Arc<ResourceCache>> = HashMap::new();
        for resource in catalog.resources().filter(|resource| is_one(resource)) {
            found.extend(caches.get(&resource.prefix).map(|cache| (&*resource.prefix, cache)));
        }
        UncalledAdmission { caches: found.into_values().cloned().collect() }
    }

    /// How many there are. Asked with every write, so it is only a look at the size of each cache.
    fn count(&self) -> usize {
        self.caches.iter().map(|cache| cache.len()).sum()
    }
}

impl Registry {
    /// What whoever writes must know about policies that were not called.
    pub fn uncalled_admission(&self) -> Option<String> {
        let count = Some(self.uncalled.count()).filter(|count| *count > 0)?;
        let (noun, verb) = if count == 1 { ("configuration", "was") } else { ("configurations", "were") };
        Some(format!("this server does not call admission policies: {count} {noun} {verb} not consulted"))
    }

    /// Says so in the log, at the start.
    pub(crate) fn log_uncalled_admission(&self) {
        if let Some(warning) = self.uncalled_admission() {
            tracing::warn!("{warning}");
        }
    }

    /// Says in the log that a new object is one that nobody calls, if it is.
    pub(crate) fn log_if_uncalled(&self, resource: &Resource, name: &str) {
        if is_one(resource) {
            let kind = &*resource.kind;
            tracing::warn!(kind, name, "this server does not call admission policies");
        }
    }
}

fn is_one(resource: &Resource) -> bool {
    resource.group == GROUP && PLURALS.contains(&&*resource.plural)
}
