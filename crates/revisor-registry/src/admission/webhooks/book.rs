//! [`WebhookBook`]: the webhooks of one kind in the order in which they are called: those of manifests, then those of all
//! stored configurations.
//!
//! It has no task of its own, like the book of roles: whoever asks sees by a number whether the cache has changes that
//! it does not have, and brings it up to date first. So a configuration is in force with the next request.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use revisor_admission::AdmissionEnvironment;
use revisor_cache::ResourceCache;
use revisor_catalog::{Catalog, Resource};
use revisor_version::Revision;

use super::Webhook;
use crate::Decoded;

const GROUP: &str = "admissionregistration.k8s.io";

/// The webhooks of all configurations, by the names of these.
pub(super) type Webhooks = Arc<[Arc<Webhook>]>;

/// The webhooks of one configuration, kept beside it in the cache.
struct Parsed(Vec<Arc<Webhook>>);

pub(super) struct WebhookBook {
    followed: Option<Followed>,
    lists: RwLock<Lists>,
    /// What is stored, for the one who brings the lists up to date.
    stored: Mutex<Vec<Arc<Webhook>>>,
}

/// Nothing where there are none, so that most requests do not have to look further.
#[derive(Default)]
struct Lists {
    of_manifests: Option<Webhooks>,
    all: Option<Webhooks>,
}

struct Followed {
    resource: Arc<Resource>,
    cache: Arc<ResourceCache>,
    /// The last change that is in the list; zero for none.
    seen: AtomicU64,
}

impl WebhookBook {
    /// A book of what these caches hold of a resource. Of what the server does not know there is nothing.
    pub(super) fn new(catalog: &Catalog, caches: &HashMap<String, Arc<ResourceCache>>, plural: &str) -> WebhookBook {
        let follow = || {
            let resource = catalog.resource(GROUP, "v1", plural)?.storage().clone();
            let cache = caches.get(&resource.prefix)?.clone();
            Some(Followed { resource, cache, seen: AtomicU64::new(0) })
        };
        WebhookBook { followed: follow(), lists: RwLock::default(), stored: Mutex::default() }
    }

    /// All webhooks; `None` if there are none.
    pub(super) fn read(&self, environment: &AdmissionEnvironment) -> Option<Webhooks> {
        if let Some(followed) = self.followed.as_ref().filter(|followed| followed.is_behind()) {
            self.catch_up(followed, environment);
        }
        self.lists.read().unwrap_or_else(PoisonError::into_inner).all.clone()
    }

    /// Those of manifests; `None` if there are none.
    pub(super) fn read_static(&self) -> Option<Webhooks> {
        self.lists.read().unwrap_or_else(PoisonError::into_inner).of_manifests.clone()
    }

    /// Puts those of manifests in the place of the ones before.
    pub(super) fn take_static(&self, webhooks: Webhooks) {
        let stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        self.put_in_force((!webhooks.is_empty()).then_some(webhooks), &stored);
    }

    fn put_in_force(&self, of_manifests: Option<Webhooks>, stored: &[Arc<Webhook>]) {
        let all: Webhooks = of_manifests.iter().flat_map(|webhooks| webhooks.iter()).chain(stored).cloned().collect();
        let all = (!all.is_empty()).then_some(all);
        *self.lists.write().unwrap_or_else(PoisonError::into_inner) = Lists { of_manifests, all };
    }

    fn catch_up(&self, followed: &Followed, environment: &AdmissionEnvironment) {
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        while followed.is_behind() {
            let snapshot = followed.cache.snapshot();
            let mut all = Vec::new();
            for item in snapshot.range(&followed.resource.prefix, None) {
                // What cannot be read has no webhooks. What has not changed was read before.
                let parsed = item.keep_read(|bytes| {
                    Parsed(Decoded::stored(bytes).map(|it| Webhook::read_all(environment, &it)).unwrap_or_default())
                });
                all.extend(parsed.0.iter().cloned());
            }
            *stored = all;
            self.put_in_force(self.read_static(), &stored);
            followed.seen.store(snapshot.revision().map_or(0, Revision::get), Ordering::Release);
        }
    }
}

impl Followed {
    fn is_behind(&self) -> bool {
        self.cache.delivered() > Revision::new(self.seen.load(Ordering::Acquire))
    }
}
