//! [`WebhookBook`]: the webhooks of all stored configurations of one kind, in the order in which they are called.
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
type Webhooks = Arc<[Arc<Webhook>]>;

/// The webhooks of one configuration, kept beside it in the cache.
struct Parsed(Vec<Arc<Webhook>>);

pub(super) struct WebhookBook {
    followed: Option<Followed>,
}

struct Followed {
    resource: Arc<Resource>,
    cache: Arc<ResourceCache>,
    /// The last change that is in the list; zero for none.
    seen: AtomicU64,
    /// Nothing if there are none, so that most requests do not have to look further.
    webhooks: RwLock<Option<Webhooks>>,
    /// Held by the one who brings the list up to date.
    turn: Mutex<()>,
}

impl WebhookBook {
    /// A book of what these caches hold of a resource. Of what the server does not know there is nothing.
    pub(super) fn new(catalog: &Catalog, caches: &HashMap<String, Arc<ResourceCache>>, plural: &str) -> WebhookBook {
        let follow = || {
            let resource = catalog.resource(GROUP, "v1", plural)?.storage().clone();
            let cache = caches.get(&resource.prefix)?.clone();
            let (seen, webhooks, turn) = (AtomicU64::new(0), RwLock::default(), Mutex::default());
            Some(Followed { resource, cache, seen, webhooks, turn })
        };
        WebhookBook { followed: follow() }
    }

    /// All webhooks; `None` if there are none.
    pub(super) fn read(&self, environment: &AdmissionEnvironment) -> Option<Webhooks> {
        let followed = self.followed.as_ref()?;
        if followed.is_behind() {
            followed.catch_up(environment);
        }
        followed.webhooks.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Followed {
    fn is_behind(&self) -> bool {
        self.cache.delivered() > Revision::new(self.seen.load(Ordering::Acquire))
    }

    fn catch_up(&self, environment: &AdmissionEnvironment) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        while self.is_behind() {
            let snapshot = self.cache.snapshot();
            let mut all = Vec::new();
            for item in snapshot.range(&self.resource.prefix, None) {
                // What cannot be read has no webhooks. What has not changed was read before.
                let parsed = item.keep_read(|bytes| {
                    Parsed(Decoded::stored(bytes).map(|it| Webhook::read_all(environment, &it)).unwrap_or_default())
                });
                all.extend(parsed.0.iter().cloned());
            }
            let webhooks = (!all.is_empty()).then(|| all.into());
            *self.webhooks.write().unwrap_or_else(PoisonError::into_inner) = webhooks;
            self.seen.store(snapshot.revision().map_or(0, Revision::get), Ordering::Release);
        }
    }
}
