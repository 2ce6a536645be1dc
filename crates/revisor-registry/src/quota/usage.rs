//! How much of what an object holds, as quotas count it.

use std::collections::BTreeMap;

use revisor_object::{Notation, Object, Quantity, Value};

use crate::admission::{Attributes, Operation, pod_total};

/// Amounts by the names that quotas have for them.
pub(super) type Usage = BTreeMap<String, Quantity>;

/// Kinds that are no one's to keep: they go by themselves, or are never stored.
const UNCOUNTED: [(&str, &str); 3] = [("", "bindings"), ("", "events"), ("events.k8s.io", "events")];

/// Kinds whose number had a name of its own before all kinds could be counted.
const PLAINLY_NAMED: [&str; 4] = ["configmaps", "replicationcontrollers", "resourcequotas", "secrets"];

/// What every container must say about itself where a quota limits it.
const REQUIRED: [&str; 6] = ["cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"];

const STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";

/// How objects of one resource are counted.
pub(super) struct Measure {
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
    Claim,
    Other,
}

impl Measure {
    /// How the object of a write is counted; `None` if this write changes nothing that quotas count.
    pub(super) fn of(attributes: &Attributes<'_>, object: &Object) -> Option<Measure> {
        let (group, plural) = attributes.resource.name();
        attributes.namespace?;
        if UNCOUNTED.contains(&(group, plural)) {
            return None;
        }
        let kind = match (group, plural) {
            ("", "pods") => Kind::Pod,
            ("", "services") => Kind::Service,
            ("", "persistentvolumeclaims") => Kind::Claim,
            _ => Kind::Other,
        };
        let is_counted = match (kind, attributes.operation, attributes.subresource) {
            (_, Operation::Create, None) => true,
            (Kind::Pod, Operation::Update, Some("resize")) => true,
            (Kind::Pod, Operation::Update, None) => {
                attributes.old.is_some_and(|old| has_deadline(old) != has_deadline(object))
            }
            (Kind::Service | Kind::Claim, Operation::Update, None) => true,
            _ => false,
        };
        let count = if group.is_empty() { format!("count/{plural}") } else { format!("count/{plural}.{group}") };
        let plain = PLAINLY_NAMED.iter().copied().find(|name| group.is_empty() && *name == plural);
        is_counted.then_some(Measure { kind, count, plain })
    }

    /// Whether this is one of the amounts that objects of the resource have.
    pub(super) fn counts(&self, name: &str) -> bool {
        if name == self.count {
            return true;
        }
        match self.kind {
            Kind::Pod => {
                matches!(
                    name,
                    "pods"
                        | "cpu"
                        | "memory"
                        | "ephemeral-storage"
                        | "requests.cpu"
                        | "requests.memory"
                        | "requests.ephemeral-storage"
                        | "limits.cpu"
                        | "limits.memory"
                        | "limits.ephemeral-storage"
                ) || name.starts_with("hugepages-")
                    || name.starts_with("requests.hugepages-")
                    || is_extended_request(name)
            }
            Kind::Service => matches!(name, "services" | "services.nodeports" | "services.loadbalancers"),
            Kind::Claim => {
                let of_class = name.split_once(STORAGE_CLASS).map(|(_, what)| what);
                matches!(of_class.unwrap_or(name), "persistentvolumeclaims" | "requests.storage")
            }
            Kind::Other => self.plain == Some(name),
        }
    }

    /// Whether a quota is about this object: all of its scopes are.
    pub(super) fn is_in_scope(&self, quota: &Object, object: &Object) -> bool {
        let empty = Object::new();
        let spec = quota.object("spec").unwrap_or(&empty);
        let plain = spec.array("scopes").iter().filter_map(Value::as_str);
        let selected = spec.object("scopeSelector").map(|selector| selector.array("matchExpressions"));
        let selected = selected.unwrap_or_default().iter().filter_map(Value::as_object);
        plain
            .map(|scope| (scope, None))
            .chain(selected.map(|it| (it.str("scopeName").unwrap_or_default(), Some(it))))
            .all(|(scope, selector)| match self.kind {
                Kind::Pod => pod_is_in_scope(scope, selector, object),
                Kind::Claim if scope == "VolumeAttributesClass" => {
                    matches(selector, text(object, &["spec", "volumeAttributesClassName"]))
                }
                _ => false,
            })
    }

    /// Where a quota limits cpu or memory, every container must say how much it wants.
    pub(super) fn require(&self, watched: &[&str], object: &Object) -> Result<(), String> {
        let empty = Object::new();
        let spec = object.object("spec").unwrap_or(&empty);
        let is_limited_as_a_whole = spec.object("resources").is_some_and(|resources| {
            ["requests", "limits"].iter().any(|list| resources.object(list).is_some_and(|list| !list.is_empty()))
        });
        if self.kind != Kind::Pod || is_limited_as_a_whole {
            return Ok(());
        }
        let mut missing: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for container in ["containers", "initContainers"].iter().flat_map(|list| spec.array(list)) {
            let Some(container) = container.as_object() else { continue };
            let resources = container.object("resources");
            for name in watched.iter().filter(|name| REQUIRED.contains(name)) {
                let (list, resource) = name.split_once('.').unwrap_or(("requests", name));
                let amounts = resources.and_then(|resources| resources.object(list));
                if !amounts.is_some_and(|amounts| amounts.contains(resource)) {
                    missing.entry(name).or_default().push(container.str("name").unwrap_or_default());
                }
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let parts: Vec<String> = missing
            .into_iter()
            .map(|(name, mut containers)| {
                containers.sort_unstable();
                containers.dedup();
                format!("{name} for: {}", containers.join(","))
            })
            .collect();
        Err(format!("must specify {}", parts.join("; ")))
    }

    /// What an object holds.
    pub(super) fn usage(&self, object: &Object) -> Usage {
        let mut usage = Usage::from([(self.count.clone(), one())]);
        match self.kind {
            Kind::Pod => pod_usage(object, &mut usage),
            Kind::Service => service_usage(object, &mut usage),
            Kind::Claim => claim_usage(object, &mut usage),
            Kind::Other => {
                if let Some(plain) = self.plain {
                    usage.insert(plain.to_owned(), one());
                }
            }
        }
        usage
    }
}

fn one() -> Quantity {
    number(1)
}

fn number(count: usize) -> Quantity {
    Quantity::from_units(i64::try_from(count).unwrap_or(i64::MAX), Notation::DecimalSi)
}

fn text<'a>(object: &'a Object, path: &[&str]) -> &'a str {
    object.at(path).and_then(Value::as_str).unwrap_or_default()
}

/// Resources of the vendors of devices can only be limited by what is requested of them.
fn is_extended_request(name: &str) -> bool {
    let is_native = |resource: &str| !resource.contains('/') || resource.contains("kubernetes.io/");
    name.strip_prefix("requests.").is_some_and(|resource| !is_native(resource))
}

fn has_deadline(pod: &Object) -> bool {
    pod.at(&["spec", "activeDeadlineSeconds"]).and_then(Value::as_i64).is_some_and(|seconds| seconds >= 0)
}

fn pod_is_in_scope(scope: &str, selector: Option<&Object>, pod: &Object) -> bool {
    let is_best_effort = || text(pod, &["status", "qosClass"]) == "BestEffort";
    match scope {
        "Terminating" => has_deadline(pod),
        "NotTerminating" => !has_deadline(pod),
        "BestEffort" => is_best_effort(),
        "NotBestEffort" => !is_best_effort(),
        "PriorityClass" => matches(selector, text(pod, &["spec", "priorityClassName"])),
        "CrossNamespacePodAffinity" => reaches_other_namespaces(pod),
        _ => false,
    }
}

/// Whether a selector of a scope selects a value; empty if there is none.
fn matches(selector: Option<&Object>, value: &str) -> bool {
    let is_listed = |selector: &Object| selector.array("values").iter().any(|known| known.as_str() == Some(value));
    match selector.map(|selector| (selector.str("operator").unwrap_or_default(), selector)) {
        None | Some(("Exists", _)) => !value.is_empty(),
        Some(("DoesNotExist", _)) => value.is_empty(),
        Some(("In", selector)) => !value.is_empty() && is_listed(selector),
        Some(("NotIn", selector)) => value.is_empty() || !is_listed(selector),
        Some(_) => false,
    }
}

fn reaches_other_namespaces(pod: &Object) -> bool {
    let Some(affinity) = pod.at(&["spec", "affinity"]).and_then(Value::as_object) else { return false };
    let reaches = |term: &Object| !term.array("namespaces").is_empty() || term.contains("namespaceSelector");
    ["podAffinity", "podAntiAffinity"].iter().filter_map(|kind| affinity.object(kind)).any(|rules| {
        let required = rules.array("requiredDuringSchedulingIgnoredDuringExecution").iter();
        let preferred = rules.array("preferredDuringSchedulingIgnoredDuringExecution").iter();
        let preferred = preferred.filter_map(|term| term.as_object()?.object("podAffinityTerm"));
        required.filter_map(Value::as_object).chain(preferred).any(reaches)
    })
}

/// A pod that has ended holds nothing but its name.
fn pod_usage(pod: &Object, usage: &mut Usage) {
    if matches!(text(pod, &["status", "phase"]), "Failed" | "Succeeded") {
        return;
    }
    let empty = Object::new();
    let spec = pod.object("spec").unwrap_or(&empty);
    usage.insert("pods".to_owned(), one());
    for list in ["requests", "limits"] {
        let mut total = pod_total(spec, list);
        for (name, amount) in spec.object("overhead").into_iter().flat_map(Object::iter) {
            let Some(amount) = amount.as_str().and_then(|text| Quantity::parse(text).ok()) else { continue };
            match total.get_mut(name) {
                Some(known) => *known = known.add(&amount),
                None if list == "requests" => {
                    total.insert(name.to_owned(), amount);
                }
                // What is not limited is not limited by what it costs to run it either.
                None => {}
            }
        }
        for (name, amount) in total {
            let is_plain = matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage");
            let is_huge = name.starts_with("hugepages-");
            if list == "limits" {
                if is_plain {
                    usage.insert(format!("limits.{name}"), amount);
                }
            } else if is_plain || is_huge || is_extended_request(&format!("requests.{name}")) {
                usage.insert(format!("requests.{name}"), amount.clone());
                if is_plain || is_huge {
                    usage.insert(name, amount);
                }
            }
        }
    }
}

fn service_usage(service: &Object, usage: &mut Usage) {
    let empty = Object::new();
    let spec = service.object("spec").unwrap_or(&empty);
    let ports = spec.array("ports");
    let is_balanced = spec.str("type") == Some("LoadBalancer");
    let node_ports = match spec.str("type") {
        Some("NodePort") => ports.len(),
        Some("LoadBalancer") if spec.get("allocateLoadBalancerNodePorts") == Some(&Value::Bool(false)) => {
            let chosen = |port: &&Value| port.as_object().is_some_and(|port| port.contains("nodePort"));
            ports.iter().filter(chosen).count()
        }
        Some("LoadBalancer") => ports.len(),
        _ => 0,
    };
    usage.insert("services".to_owned(), one());
    usage.insert("services.nodeports".to_owned(), number(node_ports));
    usage.insert("services.loadbalancers".to_owned(), number(usize::from(is_balanced)));
}

fn claim_usage(claim: &Object, usage: &mut Usage) {
    let annotated = text(claim, &["metadata", "annotations", "volume.beta.kubernetes.io/storage-class"]);
    let class = if annotated.is_empty() { text(claim, &["spec", "storageClassName"]) } else { annotated };
    let storage = text(claim, &["spec", "resources", "requests", "storage"]);
    let mut count = |name: &str, amount: Quantity| {
        if !class.is_empty() {
            usage.insert(format!("{class}{STORAGE_CLASS}{name}"), amount.clone());
        }
        usage.insert(name.to_owned(), amount);
    };
    count("persistentvolumeclaims", one());
    if let Ok(storage) = Quantity::parse(storage) {
        count("requests.storage", storage);
    }
}
