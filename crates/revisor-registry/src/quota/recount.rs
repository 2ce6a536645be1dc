//! [`Registry::recount_quota`]: brings the status of a quota in line with what its namespace holds.

use std::collections::BTreeMap;
use std::sync::Arc;

use revisor_cache::Snapshot;
use revisor_catalog::Resource;
use revisor_object::{Object, Quantity, Value, Warnings};
use time::OffsetDateTime;

use super::evaluator::{Evaluator, Usage, number, quantities};
use super::{amounts, shown};
use crate::write::Proposal;
use crate::{Decoded, Place, Registry, RegistryError, WriteOptions};

/// How many objects are measured before others get their turn.
const AT_ONCE: usize = 64;

/// What became of a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recount {
    /// When something ceases to count by itself, and another count is due.
    pub due: Option<OffsetDateTime>,
}

/// A quota and its namespace at one moment.
struct Moment {
    quota: Object,
    /// The charges for objects that the snapshots do not have.
    pending: Vec<Usage>,
    content: Vec<(Evaluator, Arc<Resource>, Snapshot)>,
}

impl Registry {
    /// Counts what the namespace of a quota holds, and writes the limits and the count to its status if they are others.
    /// `None` if there is no such quota. What was charged since the count began stays charged: the difference is written,
    /// not the count. `elsewhere` is how many objects other servers have in the namespace, by how quotas call that; writes
    /// to them are not charged, since they do not come by here. `options` say who writes it.
    pub async fn recount_quota(
        &self,
        resources: &[Arc<Resource>],
        elsewhere: &BTreeMap<String, usize>,
        namespace: &str,
        name: &str,
        options: WriteOptions<'_>,
    ) -> Result<Option<Recount>, RegistryError> {
        let Some(quotas) = self.known("", "v1", "resourcequotas") else { return Ok(None) };
        let Some(moment) = self.moment(quotas, resources, namespace, name).await else { return Ok(None) };
        let hard = quantities(moment.quota.at(&["spec", "hard"]).and_then(Value::as_object));
        let (mut counted, due) = self.count(&moment, &hard, namespace).await;
        let mut recorded = amounts(&moment.quota, "used");
        for (name, count) in elsewhere.iter().filter(|(name, _)| hard.contains_key(*name)) {
            // None of them has what a scope is about.
            let count = if has_scopes(&moment.quota) { 0 } else { *count };
            counted.insert(name.clone(), number(count));
            recorded.remove(name);
        }
        let has_status = |quota: &Object| ["hard", "used"].iter().all(|part| quota.at(&["status", part]).is_some());
        let settled = |quota: &Object| {
            let mut used = amounts(quota, "used");
            for (name, amount) in &counted {
                // What was charged or given back since then is in the newest status alone.
                let since = match (used.get(name), recorded.get(name)) {
                    (Some(newest), Some(recorded)) => newest.sub(recorded),
                    _ => Quantity::ZERO,
                };
                let now = amount.add(&since);
                used.insert(name.clone(), if now.is_negative() { Quantity::ZERO } else { now });
            }
            used.retain(|name, _| hard.contains_key(name));
            used
        };
        let is_settled = |quota: &Object| {
            has_status(quota) && amounts(quota, "hard") == hard && amounts(quota, "used") == settled(quota)
        };
        if !is_settled(&moment.quota) {
            let place = Place { resource: quotas, namespace: Some(namespace), name: Some(name) };
            let options = WriteOptions { subresource: Some("status"), ..options };
            let written = self.change(place, options, |current| {
                let mut object = current.clone();
                let status = object.object_mut("status");
                status.insert("hard", shown(&hard));
                status.insert("used", shown(&settled(current)));
                Ok(Proposal { object, warnings: Warnings::default(), is_conditional: false, managed: None })
            });
            match written.await {
                Ok(_) => {}
                Err(RegistryError::NotFound { .. }) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(Some(Recount { due }))
    }

    /// Takes hold of all that a count needs to see at once. Snapshots cost nothing to take.
    async fn moment(
        &self,
        quotas: &Arc<Resource>,
        resources: &[Arc<Resource>],
        namespace: &str,
        name: &str,
    ) -> Option<Moment> {
        let key = quotas.key(Some(namespace), name);
        let alone = self.quota_ledger.counting().await;
        let quota = Decoded::stored(self.cache_of(quotas).get(&key)?.bytes()).ok()?;
        let hard = quantities(quota.at(&["spec", "hard"]).and_then(Value::as_object));
        // First the charges, then the snapshots: a write that ends in between is in a snapshot.
        let pending = self.quota_ledger.of(&key);
        let counted = resources.iter().filter_map(|resource| {
            let evaluator = Evaluator::of(resource)?;
            let is_counted = hard.keys().any(|name| evaluator.counts(self, name));
            is_counted.then(|| (evaluator, resource.clone(), self.cache_of(resource).snapshot()))
        });
        let content: Vec<_> = counted.collect();
        drop(alone);
        let is_missing = |target: &super::ledger::Target| {
            let resource = content.iter().find(|(_, resource, _)| resource.prefix == target.prefix);
            resource.is_some_and(|(_, _, snapshot)| {
                let stored = snapshot.get(&target.key).map(|item| item.revision().to_string());
                !target.is_written(stored.as_deref())
            })
        };
        let pending = pending.into_iter().filter(|entry| is_missing(&entry.target)).map(|entry| entry.added).collect();
        Some(Moment { quota, pending, content })
    }

    /// What the objects of a namespace come to, for the limits of a quota, and when that will be another by itself.
    async fn count(&self, moment: &Moment, hard: &Usage, namespace: &str) -> (Usage, Option<OffsetDateTime>) {
        let now = self.environment.now();
        let has_scopes = has_scopes(&moment.quota);
        let mut total: BTreeMap<String, Quantity> = Usage::new();
        let mut due: Option<OffsetDateTime> = None;
        let add = |total: &mut Usage, usage: &Usage| {
            for (name, amount) in usage.iter().filter(|(name, _)| hard.contains_key(*name)) {
                let sum = total.get(name).map_or_else(|| amount.clone(), |known| known.add(amount));
                total.insert(name.clone(), sum);
            }
        };
        for (evaluator, resource, snapshot) in &moment.content {
            let names: Vec<&str> =
                hard.keys().map(String::as_str).filter(|name| evaluator.counts(self, name)).collect();
            // What nothing holds is held zero times.
            for name in &names {
                total.entry((*name).to_owned()).or_insert(number(0));
            }
            let collection = resource.collection(Some(namespace));
            if evaluator.only_counts(&names) && !has_scopes {
                add(&mut total, &evaluator.number(snapshot.count(&collection)));
                continue;
            }
            for (at, item) in snapshot.range(&collection, None).enumerate() {
                if at % AT_ONCE == AT_ONCE - 1 {
                    tokio::task::yield_now().await;
                }
                let Ok(object) = Decoded::stored(item.bytes()) else { continue };
                if evaluator.is_in_scope(&moment.quota, &object) {
                    add(&mut total, &evaluator.usage(self, &object, now));
                    let end = evaluator.expiry(&object).filter(|end| *end >= now);
                    due = [due, end].into_iter().flatten().min();
                }
            }
        }
        for usage in &moment.pending {
            add(&mut total, usage);
        }
        (total, due)
    }
}

/// Whether a quota is about a part of the objects only.
fn has_scopes(quota: &Object) -> bool {
    !quota.at(&["spec", "scopes"]).and_then(Value::as_array).unwrap_or_default().is_empty()
        || quota.at(&["spec", "scopeSelector", "matchExpressions"]).is_some()
}
