//! How much work a request is, by what it asks for and by what is stored.

use revisor_auth::Attributes;
use revisor_catalog::{Feature, Resource};
use revisor_flowcontrol::{ListWork, StoredObjects, WatchKey, WorkEstimate};

use super::{Shared, lock};
use crate::query::Query;

impl Shared {
    /// How much work a request is, at a level that lets one take at most so many seats; and how many watches it is told
    /// to, if it is a write.
    pub(super) fn estimate(
        &self,
        attributes: &Attributes<'_>,
        query: Option<&str>,
        resource: Option<&Resource>,
        max_seats: u64,
    ) -> (WorkEstimate, Option<usize>) {
        let Some(target) = attributes.resource else { return (WorkEstimate::ONE, None) };
        match attributes.verb {
            "list" => (self.estimate_list(&Query::parse(query), resource, target.name, max_seats, false), None),
            "watch" if self.has(Feature::WatchList) => {
                let query = Query::parse(query);
                let version = query.text("resourceVersion");
                let begins_with_state = query.truth("sendInitialEvents") == Some(true) || matches!(version, "" | "0");
                if !begins_with_state {
                    return (WorkEstimate::ONE, None);
                }
                (self.estimate_list(&query, resource, target.name, max_seats, true), None)
            }
            // Tokens are made, and nobody is told.
            "create" if target.resource == "serviceaccounts" && target.subresource == Some("token") => {
                (WorkEstimate::ONE, None)
            }
            "create" | "update" | "patch" | "delete" => {
                let (group, resource) = (target.group, target.resource);
                let key = WatchKey { group, resource, namespace: target.namespace, name: target.name };
                let watches = lock(&self.watches).interested(&key);
                (WorkEstimate::of_write(watches, max_seats), Some(watches))
            }
            _ => (WorkEstimate::ONE, None),
        }
    }

    fn estimate_list(
        &self,
        query: &Query<'_>,
        resource: Option<&Resource>,
        name: Option<&str>,
        max_seats: u64,
        is_watch: bool,
    ) -> WorkEstimate {
        let by_size = self.has(Feature::SizeBasedListCostEstimate);
        let Ok(limit) = query.number("limit") else { return WorkEstimate::of_unreadable_list(by_size, max_seats) };
        let limit = limit.and_then(|limit| u64::try_from(limit).ok()).unwrap_or_default();
        let stored = resource.filter(|resource| resource.is_stored()).map(|resource| {
            let cache = self.registry.cache_of(resource);
            StoredObjects { count: cache.len() as u64, bytes: cache.snapshot().footprint().bytes() }
        });
        let version = query.text("resourceVersion");
        let is_from_cache = is_watch
            || match query.text("resourceVersionMatch") {
                "NotOlderThan" => true,
                "" => query.text("continue").is_empty() && (limit == 0 || matches!(version, "" | "0")),
                _ => false,
            };
        let selects = !query.text("fieldSelector").is_empty() || !query.text("labelSelector").is_empty();
        let list = ListWork { stored, limit, is_from_cache, is_single: name.is_some(), selects, by_size };
        WorkEstimate::of_list(&list, max_seats)
    }
}
