//! [`FlowBook`]: the flow schemas and priority levels that are stored, for whoever tells requests apart by them.
//!
//! It has no task, as [`RoleBook`](crate::role_book::RoleBook) has none: two numbers tell whether the caches have changes
//! that its reader has not seen. There are few of these objects and they depend on each other, so all of them are read
//! anew when one changes, as in the original.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use revisor_cache::ResourceCache;
use revisor_catalog::{Catalog, Resource};
use revisor_flowcontrol::{FlowSchema, PriorityLevel};
use revisor_object::Object;
use revisor_version::Revision;

use crate::Decoded;

/// The group of flow schemas and priority levels.
pub(crate) const GROUP: &str = "flowcontrol.apiserver.k8s.io";

pub(crate) const SCHEMAS: &str = "flowschemas";
pub(crate) const LEVELS: &str = "prioritylevelconfigurations";

/// What the stored objects say of how requests are told apart and limited.
#[derive(Debug, Clone)]
pub struct FlowConfig {
    /// The flow schemas whose level there is, in the order in which they are tried, with those that must be there.
    pub schemas: Vec<FlowSchema>,
    /// The priority levels that can be used, with those that must be there.
    pub levels: Vec<PriorityLevel>,
    seen: [u64; 2],
}

/// Reads what is stored. For one reader.
pub struct FlowBook {
    followed: [Option<Followed>; 2],
    /// What is there also when nobody has stored it.
    mandatory: (Vec<FlowSchema>, Vec<PriorityLevel>),
    /// The last changes that the reader has put into effect.
    seen: [AtomicU64; 2],
}

struct Followed {
    resource: Arc<Resource>,
    cache: Arc<ResourceCache>,
}

impl FlowBook {
    pub(crate) fn new(catalog: &Catalog, caches: &HashMap<String, Arc<ResourceCache>>) -> FlowBook {
        let follow = |plural| {
            let resource = catalog.resource(GROUP, "v1", plural)?.storage().clone();
            Some(Followed { cache: caches.get(&resource.prefix)?.clone(), resource })
        };
        let known = catalog.bootstrap_flow_control();
        let mandatory = |plural: &'static str| known.iter().filter(move |it| it.is_mandatory && it.plural == plural);
        FlowBook {
            followed: [follow(SCHEMAS), follow(LEVELS)],
            mandatory: (
                mandatory(SCHEMAS).filter_map(|it| FlowSchema::read(&it.object)).collect(),
                mandatory(LEVELS).filter_map(|it| PriorityLevel::read(&it.object)).collect(),
            ),
            // Nothing has been put into effect, not even that nothing is stored.
            seen: [AtomicU64::new(u64::MAX), AtomicU64::new(u64::MAX)],
        }
    }

    /// Whether there are changes that were not [put into effect](FlowBook::settle).
    pub fn is_behind(&self) -> bool {
        let is_behind =
            |(followed, seen): (&Option<Followed>, &AtomicU64)| delivered(followed) != seen.load(Ordering::Acquire);
        self.followed.iter().zip(&self.seen).any(is_behind)
    }

    /// All that is stored.
    pub fn read(&self) -> FlowConfig {
        // Before the objects: what changes meanwhile is read once more.
        let seen = [delivered(&self.followed[0]), delivered(&self.followed[1])];
        let (mandatory_schemas, mandatory_levels) = &self.mandatory;
        let mut levels: Vec<PriorityLevel> = objects(&self.followed[1], PriorityLevel::read);
        complete(&mut levels, mandatory_levels, |level| &level.name);
        let mut schemas: Vec<FlowSchema> = objects(&self.followed[0], FlowSchema::read);
        schemas.retain(|schema| levels.iter().any(|level| level.name == schema.level));
        complete(&mut schemas, mandatory_schemas, |schema| &schema.name);
        schemas.sort_by(|one, two| one.order().cmp(&two.order()));
        FlowConfig { schemas, levels, seen }
    }

    /// What was read is in effect.
    pub fn settle(&self, config: &FlowConfig) {
        for (seen, now) in self.seen.iter().zip(config.seen) {
            seen.store(now, Ordering::Release);
        }
    }
}

fn delivered(followed: &Option<Followed>) -> u64 {
    followed.as_ref().and_then(|followed| followed.cache.delivered()).map_or(0, Revision::get)
}

fn objects<T>(followed: &Option<Followed>, read: impl Fn(&Object) -> Option<T>) -> Vec<T> {
    let Some(Followed { resource, cache }) = followed else { return Vec::new() };
    let snapshot = cache.snapshot();
    let items = snapshot.range(&resource.prefix, None);
    items.filter_map(|item| read(&Decoded::stored(item.bytes()).ok()?)).collect()
}

fn complete<T: Clone>(known: &mut Vec<T>, mandatory: &[T], name: impl Fn(&T) -> &str) {
    for wanted in mandatory {
        if !known.iter().any(|known| name(known) == name(wanted)) {
            known.push(wanted.clone());
        }
    }
}

impl std::fmt::Debug for FlowBook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FlowBook").finish_non_exhaustive()
    }
}
