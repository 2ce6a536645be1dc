//! Resource quotas: what a namespace may hold. A write that makes a namespace hold more is charged to its quotas before
//! it is stored, and given back if it is not stored after all: also if its client goes in the middle of it.
//!
//! A charge is a compare-and-set on the status of the quota, checked against its newest state: of two writers that both
//! want the last place, one gets it. What a quota already counts is said by its status, and a quota whose status is empty
//! is not enforced. `recount` says what the status should be; when it is asked for that is the matter of a controller.
//!
//! As in the original a charge is a request that the server makes to itself, so webhooks and policies may refuse it, and
//! with it the write. To give it back is none: nobody can keep a quota from losing what it was charged for nothing.

mod evaluator;
mod ledger;
mod pods;
mod recount;
mod resource_claims;
mod services;
mod volume_claims;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use revisor_catalog::Resource;
use revisor_object::{Object, Quantity, Value};
use revisor_store::{Committed, StoreError, Write};

pub use self::evaluator::Evaluator;
use self::evaluator::{Usage, quantities};
use self::ledger::Pending;
pub(crate) use self::ledger::{Charging, Ledger};
pub use self::recount::Recount;
use crate::admission::{Attributes, Operation};
use crate::lasting::Lasting;
use crate::{Place, Registry, RegistryError, WithinWrite, WriteOptions};

/// Quotas that were charged for a write. They are kept if it is done ([`Registry::write_charged`]); to drop them before
/// that gives them back.
#[derive(Default)]
pub(crate) struct Charges {
    registry: Weak<Registry>,
    namespace: Option<String>,
    quotas: Vec<Charge>,
}

/// What one quota was charged. It counts as being under way until it is dropped.
struct Charge {
    quota: String,
    added: Usage,
    _pending: Pending,
}

impl Charges {
    /// The write was done.
    fn keep(mut self) {
        self.quotas.clear();
    }

    /// The write was not done.
    async fn refund(mut self) {
        let quotas = std::mem::take(&mut self.quotas);
        if let Some(registry) = self.registry.upgrade() {
            registry.refund_quotas(self.namespace.as_deref(), quotas).await;
        }
    }
}

impl Drop for Charges {
    fn drop(&mut self) {
        let quotas = std::mem::take(&mut self.quotas);
        if let Some(registry) = self.registry.upgrade().filter(|_| !quotas.is_empty()) {
            let (namespace, runtime) = (self.namespace.take(), registry.runtime.clone());
            drop(runtime.spawn(async move { registry.refund_quotas(namespace.as_deref(), quotas).await }));
        }
    }
}

/// What nobody has without a quota for it, as the configuration of the plugin says.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LimitedResource {
    /// The group of the resource.
    pub group: String,
    /// The resource.
    pub plural: String,
    /// Parts of the names of the amounts that are limited.
    pub match_contains: Vec<String>,
    /// Scopes that are limited, each with `scopeName`, `operator` and `values`.
    pub match_scopes: Vec<Object>,
}

/// How long a write waits for those who are asked about its charges (upstream: `quotaEvaluator.Evaluate`).
const PATIENCE: Duration = Duration::from_secs(10);

/// How often somebody is asked about a charge who refuses it (upstream: `quotaEvaluator.checkQuotas`).
const ATTEMPTS: u32 = 4;

/// What a write would add to one quota.
struct Claim {
    quota: String,
    added: Usage,
}

impl Registry {
    /// Charges a write to the quotas of its namespace, or refuses it. A dry run only asks.
    pub(crate) async fn charge_quotas(
        &self,
        attributes: &Attributes<'_>,
        object: &Object,
        dry_run: bool,
    ) -> Result<Charges, RegistryError> {
        let Some(limited) = &self.quotas else { return Ok(Charges::default()) };
        let Some(evaluator) = Evaluator::of_write(attributes, object) else { return Ok(Charges::default()) };
        let Some(quotas) = self.known("", "v1", "resourcequotas") else { return Ok(Charges::default()) };
        let stored = self.all_read_once("", "v1", "resourcequotas", attributes.namespace);
        let claims = stored.iter().map(|quota| self.claim(attributes, &evaluator, quota, object));
        let claims: Vec<Claim> = claims.filter_map(Result::transpose).collect::<Result<_, _>>()?;
        if !limited.is_empty() {
            self.require_quota(attributes, &evaluator, limited, &stored, object)?;
        }
        // All are asked before any is charged, so that a refusal seldom leaves something to give back.
        for claim in &claims {
            let newest = stored.iter().find(|quota| name_of(quota) == claim.quota);
            newest
                .map_or(Ok(()), |quota| raised(quota, &claim.added).map(drop))
                .map_err(|why| attributes.forbidden(why))?;
        }
        let Some(registry) = self.itself.upgrade().filter(|_| !dry_run && !claims.is_empty()) else {
            return Ok(Charges::default());
        };
        let namespace = attributes.namespace.map(str::to_owned);
        let target = ledger::Target::new(attributes);
        let (resource, name) = (attributes.resource.clone(), attributes.name.to_owned());
        let refuse = move |why| RegistryError::Forbidden {
            resource: resource.clone(),
            name: name.clone(),
            why,
            terminating_namespace: None,
        };
        // Whether a charge was made is known at its end. If nobody waits for that, it is given back with the answer.
        let charged = Lasting::new(&self.runtime, registry.charge(quotas.clone(), namespace, target, claims, refuse));
        let charged = tokio::time::timeout(PATIENCE, charged).await;
        charged.map_err(|_| RegistryError::Internal("resource quota evaluation timed out".to_owned()))?
    }

    async fn charge(
        self: Arc<Self>,
        quotas: Arc<Resource>,
        namespace: Option<String>,
        target: ledger::Target,
        claims: Vec<Claim>,
        refuse: impl Fn(String) -> RegistryError + Send + Sync,
    ) -> Result<Charges, RegistryError> {
        let mut charges = Charges { registry: Arc::downgrade(&self), namespace, quotas: Vec::new() };
        for Claim { quota: name, added } in claims {
            let namespace = charges.namespace.as_deref();
            let charging = Charging::new(&self.quota_ledger, quotas.key(namespace, &name), &target, &added);
            let place = Place { resource: &quotas, namespace, name: Some(&name) };
            let charged = self.charge_one(place, &charging, &added, &refuse).await;
            // From when it is stored until it is known what becomes of the write, a count of what is stored lacks this.
            // A webhook may have turned it into something that is there already: then there is nothing to give back.
            if let Some(pending) = charging.into_pending() {
                charges.quotas.push(Charge { quota: name, added, _pending: pending });
            }
            if let Err(error) = charged {
                charges.refund().await;
                return Err(error);
            }
        }
        Ok(charges)
    }

    /// Charges one quota. As in the original, who is refused asks again before they pass that on.
    async fn charge_one(
        &self,
        place: Place<'_>,
        charging: &Charging<'_>,
        added: &Usage,
        refuse: impl Fn(String) -> RegistryError + Send + Sync,
    ) -> Result<(), RegistryError> {
        for attempt in 1.. {
            let is_exceeded = AtomicBool::new(false);
            let within = WithinWrite { charging: Some(charging), ..WithinWrite::default() };
            let options = WriteOptions { within, ..self.own.options() };
            let charged = self.tell_as_server(place, options, |quota| {
                let used = raised(quota, added).map_err(|why| {
                    is_exceeded.store(true, Ordering::Relaxed);
                    refuse(why)
                })?;
                quota.object_mut("status").insert("used", shown(&used));
                Ok(())
            });
            match charged.await {
                Ok(()) => return Ok(()),
                // A quota that was deleted in between limits nothing.
                Err(RegistryError::NotFound { resource, .. }) if resource.name() == place.resource.name() => {
                    return Ok(());
                }
                Err(error) if error.is_refusal() && attempt < ATTEMPTS && !is_exceeded.into_inner() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Performs a write, and lets the charges for it follow what becomes of it. A write that was begun may happen
    /// whether or not it is waited for, so what was charged waits for it in any case.
    pub(crate) async fn write_charged(&self, write: Write, charges: Charges) -> Result<Committed, StoreError> {
        if charges.quotas.is_empty() {
            return self.cache.write(write).await;
        }
        let store = self.cache.store_of(write.key.as_str()).clone();
        let writing = async move {
            let written = store.write(write).await;
            match written {
                Ok(_) => charges.keep(),
                Err(_) => charges.refund().await,
            }
            written
        };
        Lasting::new(&self.runtime, writing).await
    }

    /// Gives back what a write was charged that was not done.
    async fn refund_quotas(&self, namespace: Option<&str>, charged: Vec<Charge>) {
        let Some(quotas) = self.known("", "v1", "resourcequotas") else { return };
        for charge in charged {
            let _charging = self.quota_ledger.charging().await;
            let Charge { quota: name, added, .. } = &charge;
            let refunded = self.overwrite(quotas, namespace, name, false, |_, quota| {
                let mut used = amounts(quota, "used");
                for (resource, amount) in added {
                    if let Some(known) = used.get_mut(resource) {
                        let less = known.sub(amount);
                        *known = if less.is_negative() { Quantity::ZERO } else { less };
                    }
                }
                quota.object_mut("status").insert("used", shown(&used));
                Ok(())
            });
            if let Err(error) = refunded.await {
                // Too much is counted until who keeps the status counts again.
                tracing::warn!(%error, quota = name, "a quota keeps the charge of a write that was not done");
            }
        }
    }
}

fn name_of(quota: &Object) -> &str {
    quota.object("metadata").and_then(|metadata| metadata.str("name")).unwrap_or_default()
}

/// The amounts of one part of a quota's status.
fn amounts(quota: &Object, part: &str) -> Usage {
    quantities(quota.at(&["status", part]).and_then(Value::as_object))
}

fn shown(usage: &Usage) -> Object {
    usage.iter().map(|(name, amount)| (name.as_str(), Value::from(amount.to_string()))).collect()
}

fn listed<'a>(usage: impl IntoIterator<Item = (&'a String, &'a Quantity)>) -> String {
    let parts: Vec<String> = usage.into_iter().map(|(name, amount)| format!("{name}={amount}")).collect();
    parts.join(",")
}

impl Registry {
    /// Refuses what the configuration says that nobody has without a quota for it.
    fn require_quota(
        &self,
        attributes: &Attributes<'_>,
        evaluator: &Evaluator,
        limited: &[LimitedResource],
        quotas: &[Arc<Object>],
        object: &Object,
    ) -> Result<(), RegistryError> {
        let (group, plural) = attributes.resource.name();
        let of_resource = || limited.iter().filter(|it| it.group == group && it.plural == plural);
        if of_resource().next().is_some() {
            let usage = evaluator.usage(self, object, self.environment.now());
            let is_limited =
                |name: &String| of_resource().any(|it| it.match_contains.iter().any(|part| name.contains(part)));
            let is_covered = |name: &String| {
                let matching = quotas.iter().filter(|quota| evaluator.is_in_scope(quota, object));
                matching.into_iter().any(|quota| amounts(quota, "hard").contains_key(name))
            };
            let missing: Vec<&str> =
                usage.keys().filter(|name| is_limited(name) && !is_covered(name)).map(String::as_str).collect();
            if !missing.is_empty() {
                return Err(attributes.forbidden(format!("insufficient quota to consume: {}", missing.join(","))));
            }
        }
        let scopes = limited.iter().flat_map(|it| &it.match_scopes);
        let missing: Vec<String> = scopes
            .filter(|selector| evaluator.matches_scope(scope_name(selector), Some(selector), object))
            .filter(|selector| {
                let name = scope_name(selector);
                !quotas.iter().any(|quota| evaluator.names_scope(quota, name, object))
            })
            .map(shown_scope)
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(RegistryError::Undecided(format!("insufficient quota to match these scopes: [{}]", missing.join(" "))))
    }

    /// What a write adds to a quota; `None` if the quota does not care.
    fn claim(
        &self,
        attributes: &Attributes<'_>,
        evaluator: &Evaluator,
        quota: &Object,
        object: &Object,
    ) -> Result<Option<Claim>, RegistryError> {
        let now = self.environment.now();
        let hard = amounts(quota, "hard");
        let watched: Vec<&str> = hard.keys().map(String::as_str).filter(|name| evaluator.counts(self, name)).collect();
        if watched.is_empty() || !evaluator.is_in_scope(quota, object) {
            return Ok(None);
        }
        let name = name_of(quota);
        if let Err(why) = evaluator.require(&watched, object) {
            return Err(attributes.forbidden(format!("failed quota: {name}: {why}")));
        }
        let used = amounts(quota, "used");
        if watched.iter().any(|resource| !used.contains_key(*resource)) {
            let why = format!("status unknown for quota: {name}, resources: {}", watched.join(","));
            return Err(attributes.forbidden(why));
        }
        let mut added = evaluator.usage(self, object, now);
        if let Some(negative) = negative(&added) {
            return Err(attributes.forbidden(format!("quota usage is negative for resource(s): {negative}")));
        }
        // What the old object held counts already, if it counted at all.
        let old =
            attributes.old.filter(|old| attributes.operation == Operation::Update && evaluator.is_in_scope(quota, old));
        if let Some(old) = old {
            for (resource, amount) in evaluator.usage(self, old, now) {
                if let Some(known) = added.get_mut(&resource) {
                    let more = known.sub(&amount);
                    *known = if more.is_negative() { Quantity::ZERO } else { more };
                }
            }
        }
        added.retain(|resource, amount| hard.contains_key(resource) && !amount.is_zero());
        Ok((!added.is_empty()).then(|| Claim { quota: name.to_owned(), added }))
    }
}

fn scope_name(selector: &Object) -> &str {
    selector.str("scopeName").unwrap_or_default()
}

/// A selector of scopes as Go prints it.
fn shown_scope(selector: &Object) -> String {
    let values: Vec<&str> = selector.array("values").iter().filter_map(Value::as_str).collect();
    format!("{{{} {} [{}]}}", scope_name(selector), selector.str("operator").unwrap_or_default(), values.join(" "))
}

fn negative(usage: &Usage) -> Option<String> {
    let names: Vec<&str> = usage.iter().filter(|(_, amount)| amount.is_negative()).map(|(name, _)| &**name).collect();
    (!names.is_empty()).then(|| names.join(","))
}

/// What a quota counts with so much more, or why that is too much.
fn raised(quota: &Object, added: &Usage) -> Result<Usage, String> {
    let (hard, used) = (amounts(quota, "hard"), amounts(quota, "used"));
    let mut raised = used.clone();
    for (name, amount) in added {
        let sum = used.get(name).map_or_else(|| amount.clone(), |known| known.add(amount));
        raised.insert(name.clone(), sum);
    }
    let is_exceeded =
        |name: &String| matches!((raised.get(name), hard.get(name)), (Some(used), Some(hard)) if used > hard);
    let exceeded: BTreeSet<&String> = added.keys().filter(|name| is_exceeded(name)).collect();
    if exceeded.is_empty() {
        return Ok(raised);
    }
    let part = |usage: &Usage| -> BTreeMap<String, Quantity> {
        usage.iter().filter(|(name, _)| exceeded.contains(name)).map(|(name, it)| (name.clone(), it.clone())).collect()
    };
    Err(format!(
        "exceeded quota: {}, requested: {}, used: {}, limited: {}",
        name_of(quota),
        listed(&part(added)),
        listed(&part(&used)),
        listed(&part(&hard))
    ))
}
