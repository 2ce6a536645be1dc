//! [`StoredNodes`]: what each node has to do with, by the stored pods, volumes, attachments, slices and requests for
//! certificates. As with roles (`role_book.rs`), it has no task of its own: whoever asks brings it up to date first, so
//! that a kubelet may read a secret with the request after the pod was bound.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard};

use revisor_auth::{NodeBook, NodeFeatures, NodeGraph, PolicyRule, VertexKind};
use revisor_cache::{Item, ResourceCache};
use revisor_catalog::{Catalog, Resource};
use revisor_object::Object;
use revisor_version::Revision;

use crate::Decoded;
use crate::selection::place;

/// How many changes are read at once.
const STEP: usize = 256;

/// The resources that lead to nodes.
const FOLLOWED: [(&str, &str, VertexKind); 5] = [
    ("", "pods", VertexKind::Pod),
    ("", "persistentvolumes", VertexKind::PersistentVolume),
    ("storage.k8s.io", "volumeattachments", VertexKind::VolumeAttachment),
    ("resource.k8s.io", "resourceslices", VertexKind::ResourceSlice),
    ("certificates.k8s.io", "podcertificaterequests", VertexKind::PodCertificateRequest),
];

/// Keeps the graph of the stored objects.
pub(crate) struct StoredNodes {
    followed: Vec<Followed>,
    graph: RwLock<NodeGraph>,
    /// Held by the one who brings the graph up to date.
    turn: Mutex<()>,
    rules: Vec<PolicyRule>,
    features: NodeFeatures,
}

struct Followed {
    kind: VertexKind,
    resource: Arc<Resource>,
    cache: Arc<ResourceCache>,
    /// The last change that is in the graph; zero for none.
    seen: AtomicU64,
}

impl StoredNodes {
    /// A graph of what these caches hold. Of what the catalog does not serve there is nothing.
    pub(crate) fn new(
        catalog: &Catalog,
        caches: &HashMap<String, Arc<ResourceCache>>,
        features: NodeFeatures,
    ) -> StoredNodes {
        let follow = |(group, plural, kind): (&str, &str, VertexKind)| {
            let mut served = catalog.resources().filter(|resource| resource.name() == (group, plural));
            let resource = served.next()?.storage().clone();
            let cache = caches.get(&resource.prefix)?.clone();
            Some(Followed { kind, resource, cache, seen: AtomicU64::new(0) })
        };
        let mut roles = catalog.bootstrap_roles().into_iter();
        let role = roles.find(|role| role.plural == "clusterroles" && role.name == "system:node");
        StoredNodes {
            followed: FOLLOWED.into_iter().filter_map(follow).collect(),
            graph: RwLock::default(),
            turn: Mutex::default(),
            rules: role.map(|role| PolicyRule::all_of(&role.object)).unwrap_or_default(),
            features,
        }
    }
}

impl NodeBook for StoredNodes {
    fn read(&self) -> RwLockReadGuard<'_, NodeGraph> {
        if self.followed.iter().any(Followed::is_behind) {
            let _turn = self.turn.lock().expect("no holder of the turn panics");
            self.followed.iter().for_each(|followed| followed.catch_up(&self.graph));
        }
        self.graph.read().expect("no holder of the graph panics")
    }

    fn rules(&self) -> &[PolicyRule] {
        &self.rules
    }

    fn features(&self) -> NodeFeatures {
        self.features
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
    fn catch_up(&self, graph: &RwLock<NodeGraph>) {
        while self.is_behind() {
            let seen = match self.cache.changes_after(self.seen(), STEP) {
                Some(changes) => {
                    let read = |change: &Arc<revisor_cache::Delivery>| {
                        (change.key().as_str().to_owned(), change.new().and_then(|item| read(item)))
                    };
                    // Read before the lock is taken, so that others wait for what only they can see.
                    let entries: Vec<(String, Option<Object>)> = changes.iter().map(read).collect();
                    self.enter(&mut graph.write().expect("no holder of the graph panics"), entries);
                    changes.last().map(|change| change.revision()).or_else(|| self.cache.delivered())
                }
                // It was not asked for long, or never: what there is now is all that matters.
                None => {
                    let snapshot = self.cache.snapshot();
                    let items = snapshot.range(&self.resource.prefix, None);
                    let entries: Vec<_> = items.map(|item| (item.key().as_str().to_owned(), read(item))).collect();
                    let mut graph = graph.write().expect("no holder of the graph panics");
                    graph.forget(self.kind);
                    self.enter(&mut graph, entries);
                    snapshot.revision()
                }
            };
            self.seen.store(seen.map_or(0, Revision::get), Ordering::Release);
        }
    }

    fn enter(&self, graph: &mut NodeGraph, entries: Vec<(String, Option<Object>)>) {
        for (key, object) in entries {
            let (namespace, name) = place(&self.resource, &key);
            let namespace = if self.resource.namespaced { namespace } else { "" };
            match object {
                Some(object) => graph.put(self.kind, namespace, name, &object),
                None => graph.remove(self.kind, namespace, name),
            }
        }
    }
}

fn read(item: &Item) -> Option<Object> {
    Decoded::stored(item.bytes()).ok()
}

impl fmt::Debug for StoredNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredNodes").finish_non_exhaustive()
    }
}
