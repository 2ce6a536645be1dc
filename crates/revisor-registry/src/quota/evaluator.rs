//! [`Evaluator`]: how much of what the objects of one resource hold, as quotas count it. Kinds that hold more than
//! their own place have a file of their own beside this one.

use std::collections::BTreeMap;

use revisor_catalog::Resource;
use revisor_object::{Notation, Object, Quantity, Value};
use time::OffsetDateTime;

use super::{pods, resource_claims, services, volume_claims};
use crate::Registry;
use crate::admission::{Attributes, Operation};

/// Amounts by the names that quotas have for them.
pub(crate) type Usage = BTreeMap<String, Quantity>;

/// Kinds that are no one's to keep: they go by themselves, or are never stored.
const UNCOUNTED: [(&str, &str); 10] = [
    ("", "bindings"),
    ("", "componentstatuses"),
    ("", "events"),
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
    ("events.k8s.io", "events"),
];

/// Kinds whose number had a name of its own before all kinds could be counted.
const PLAINLY_NAMED: [&str; 4] = ["configmaps", "replicationcontrollers", "resourcequotas", "secrets"];

/// How objects of one resource are counted.
#[derive(Debug)]
pub struct Evaluator {
    kind: Kind,
    /// `count/deployments.apps`
    count: String,
    /// `secrets`: the name under which some resources of the core group are counted too.
    plain: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Pod,
    Service,
    VolumeClaim,
    ResourceClaim,
    Other,
}

impl Evaluator {
    /// How objects of a resource are counted; `None` if no quota counts them.
    pub fn of(resource: &Resource) -> Option<Evaluator> {
        let (group, plural) = resource.name();
        if !resource.namespaced || UNCOUNTED.contains(&(group, plural)) {
            return None;
        }
        let kind = match (group, plural) {
            ("", "pods") => Kind::Pod,
            ("", "services") => Kind::Service,
            ("", "persistentvolumeclaims") => Kind::VolumeClaim,
            ("resource.k8s.io", "resourceclaims") => Kind::ResourceClaim,
            _ => Kind::Other,
        };
        let count = if group.is_empty() { format!("count/{plural}") } else { format!("count/{plural}.{group}") };
        let plain = PLAINLY_NAMED.iter().copied().find(|name| group.is_empty() && *name == plural);
        Some(Evaluator { kind, count, plain })
    }

    /// How the object of a write is counted; `None` if this write changes nothing that quotas count.
    pub(super) fn of_write(attributes: &Attributes<'_>, object: &Object) -> Option<Evaluator> {
        attributes.namespace?;
        let evaluator = Evaluator::of(attributes.resource)?;
        let is_counted = match (evaluator.kind, attributes.operation, attributes.subresource) {
            (_, Operation::Create, None) => true,
            (Kind::Pod, Operation::Update, Some("resize")) => true,
            (Kind::Pod, Operation::Update, None) => {
                attributes.old.is_some_and(|old| pods::has_deadline(old) != pods::has_deadline(object))
            }
            (Kind::Service | Kind::VolumeClaim | Kind::ResourceClaim, Operation::Update, None) => true,
            // What was made larger for it counts, and that is said by the status.
            (Kind::VolumeClaim, Operation::Update, Some("status")) => true,
            _ => false,
        };
        is_counted.then_some(evaluator)
    }

    /// Whether this is one of the amounts that objects of the resource have.
    pub fn counts(&self, registry: &Registry, name: &str) -> bool {
        name == self.count
            || match self.kind {
                Kind::Pod => pods::counts(name),
                Kind::Service => matches!(name, "services" | "services.nodeports" | "services.loadbalancers"),
                Kind::VolumeClaim => volume_claims::counts(name),
                Kind::ResourceClaim => resource_claims::counts(registry, name),
                Kind::Other => self.plain == Some(name),
            }
    }

    /// Whether all that is asked of the objects is how many there are.
    pub(super) fn only_counts(&self, names: &[&str]) -> bool {
        self.kind == Kind::Other || names.iter().all(|name| *name == self.count)
    }

    /// What a number of objects holds of which nothing else is asked.
    pub(super) fn number(&self, objects: usize) -> Usage {
        let plain = self.plain.map(str::to_owned);
        [Some(self.count.clone()), plain].into_iter().flatten().map(|name| (name, number(objects))).collect()
    }

    /// Whether a quota is about this object: all of its scopes are.
    pub(super) fn is_in_scope(&self, quota: &Object, object: &Object) -> bool {
        scopes(quota).all(|(scope, selector)| self.matches_scope(scope, selector, object))
    }

    /// Whether a quota names a scope, and the object is in what it says about that.
    pub(super) fn names_scope(&self, quota: &Object, name: &str, object: &Object) -> bool {
        scopes(quota).any(|(scope, selector)| scope == name && self.matches_scope(scope, selector, object))
    }

    /// Whether an object is in a scope.
    pub(super) fn matches_scope(&self, scope: &str, selector: Option<&Object>, object: &Object) -> bool {
        match self.kind {
            Kind::Pod => pods::is_in_scope(scope, selector, object),
            Kind::VolumeClaim => volume_claims::is_in_scope(scope, selector, object),
            _ => false,
        }
    }

    /// Where a quota limits cpu or memory, every container must say how much it wants.
    pub(super) fn require(&self, watched: &[&str], object: &Object) -> Result<(), String> {
        match self.kind {
            Kind::Pod => pods::require(watched, object),
            _ => Ok(()),
        }
    }

    /// What an object holds at a time.
    pub(super) fn usage(&self, registry: &Registry, object: &Object, now: OffsetDateTime) -> Usage {
        let mut usage = self.number(1);
        match self.kind {
            Kind::Pod => pods::add_usage(registry, object, now, &mut usage),
            Kind::Service => services::add_usage(object, &mut usage),
            Kind::VolumeClaim => volume_claims::add_usage(registry, object, &mut usage),
            Kind::ResourceClaim => resource_claims::add_usage(registry, object, now, &mut usage),
            Kind::Other => {}
        }
        usage
    }

    /// Whether what is counted of an object may be another after a change to it (upstream: `DefaultUpdateFilter`).
    pub fn is_recounted(&self, registry: &Registry, old: &[u8], new: &[u8]) -> bool {
        if matches!(self.kind, Kind::Other | Kind::ResourceClaim) {
            return false;
        }
        let (Ok(old), Ok(new)) = (crate::Decoded::stored(old), crate::Decoded::stored(new)) else { return true };
        let now = registry.environment.now();
        let changes_scope = match self.kind {
            Kind::Pod => pods::scope_facts(&old) != pods::scope_facts(&new),
            Kind::VolumeClaim => volume_claims::class_names(&old) != volume_claims::class_names(&new),
            _ => false,
        };
        changes_scope
            || self.expiry(&new) != self.expiry(&old)
            || self.usage(registry, &old, now) != self.usage(registry, &new, now)
    }

    /// When an object ceases to hold what it holds, though nobody changes it.
    pub(super) fn expiry(&self, object: &Object) -> Option<OffsetDateTime> {
        if self.kind == Kind::Pod { pods::end_of_grace(object) } else { None }
    }
}

/// The scopes of a quota, and what it says about those that it selects.
fn scopes(quota: &Object) -> impl Iterator<Item = (&str, Option<&Object>)> {
    let spec = quota.object("spec");
    let plain = spec.into_iter().flat_map(|spec| spec.array("scopes")).filter_map(Value::as_str);
    let selected = spec.and_then(|spec| spec.object("scopeSelector")).into_iter();
    let selected = selected.flat_map(|selector| selector.array("matchExpressions")).filter_map(Value::as_object);
    plain.map(|scope| (scope, None)).chain(selected.map(|it| (it.str("scopeName").unwrap_or_default(), Some(it))))
}

pub(super) fn one() -> Quantity {
    number(1)
}

pub(super) fn number(count: usize) -> Quantity {
    Quantity::from_units(i64::try_from(count).unwrap_or(i64::MAX), Notation::DecimalSi)
}

pub(super) fn text<'a>(object: &'a Object, path: &[&str]) -> &'a str {
    object.at(path).and_then(Value::as_str).unwrap_or_default()
}

/// The quantities of a list of resources.
pub(super) fn quantities(list: Option<&Object>) -> Usage {
    let parse = |value: &Value| value.as_str().and_then(|text| Quantity::parse(text).ok());
    let list = list.into_iter().flat_map(Object::iter);
    list.filter_map(|(name, value)| Some((name.to_owned(), parse(value)?))).collect()
}

/// Whether a selector of a scope selects a value; empty if there is none.
pub(super) fn selects(selector: Option<&Object>, value: &str) -> bool {
    let is_listed = |selector: &Object| selector.array("values").iter().any(|known| known.as_str() == Some(value));
    match selector.map(|selector| (selector.str("operator").unwrap_or_default(), selector)) {
        None | Some(("Exists", _)) => !value.is_empty(),
        Some(("DoesNotExist", _)) => value.is_empty(),
        Some(("In", selector)) => !value.is_empty() && is_listed(selector),
        Some(("NotIn", selector)) => value.is_empty() || !is_listed(selector),
        Some(_) => false,
    }
}
