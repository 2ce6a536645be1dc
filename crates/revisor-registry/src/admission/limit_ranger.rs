//! LimitRanger: the limit ranges of a namespace fill in what containers ask for, and bound it.

use std::collections::BTreeMap;
use std::sync::Arc;

use revisor_object::{Object, Quantity, Value};

use super::pod_fields::{objects, objects_mut, spec, text};
use super::{Admission, Attributes, Operation};
use crate::{Registry, RegistryError};

const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// The largest value that can still be counted in thousandths.
const MAX_IN_MILLIS: i64 = i64::MAX / 1000;

pub(crate) type Amounts = BTreeMap<String, Quantity>;

pub(crate) struct LimitRanger;

impl Admission for LimitRanger {
    fn name(&self) -> &'static str {
        "LimitRanger"
    }

    fn handles(&self, operation: Operation) -> bool {
        matches!(operation, Operation::Create | Operation::Update)
    }

    fn admit(&self, registry: &Registry, attributes: &Attributes<'_>, pod: &mut Object) -> Result<(), RegistryError> {
        if concerns(attributes) == Some("Pod") {
            let mut has_filled_in = false;
            for range in ranges(registry, attributes) {
                has_filled_in |= fill_in(&range, pod);
            }
            // What containers ask for makes defaults of the pod, which the original finds when it reads what it stored.
            if has_filled_in {
                attributes.resource.default(pod);
            }
        }
        Ok(())
    }

    fn validate(&self, registry: &Registry, attributes: &Attributes<'_>, object: &Object) -> Result<(), RegistryError> {
        let Some(kind) = concerns(attributes) else { return Ok(()) };
        for range in ranges(registry, attributes) {
            let problems = match kind {
                "Pod" => pod_problems(&range, object),
                _ => claim_problems(&range, object),
            };
            if !problems.is_empty() {
                return Err(attributes.forbidden(aggregate(problems)));
            }
        }
        Ok(())
    }
}

/// The kind of object that the write is about, where limit ranges have a say in it.
fn concerns(attributes: &Attributes<'_>) -> Option<&'static str> {
    if attributes.old.and_then(|old| old.at(&["metadata", "deletionTimestamp"])).is_some() {
        return None;
    }
    let is_pod = attributes.resource.group.is_empty() && attributes.resource.plural == "pods";
    match attributes.operation {
        Operation::Update if is_pod && attributes.subresource == Some("resize") => Some("Pod"),
        Operation::Create if attributes.is_about("", "pods") => Some("Pod"),
        _ if attributes.is_about("", "persistentvolumeclaims") => Some("PersistentVolumeClaim"),
        _ => None,
    }
}

fn ranges(registry: &Registry, attributes: &Attributes<'_>) -> Vec<Arc<Object>> {
    registry.all_read_once("", "v1", "limitranges", attributes.namespace)
}

fn limits_of<'a>(range: &'a Object, kind: &str) -> impl Iterator<Item = &'a Object> {
    let limits = range.object("spec").into_iter().flat_map(|spec| objects(spec, "limits"));
    limits.filter(move |limit| text(limit, "type") == kind)
}

/// Gives containers what they leave out, and notes on the pod what it was. Tells whether there was anything.
fn fill_in(range: &Object, pod: &mut Object) -> bool {
    let mut defaults = [("limits", Object::new()), ("requests", Object::new())];
    for limit in limits_of(range, "Container") {
        for ((_, amounts), source) in defaults.iter_mut().zip(["default", "defaultRequest"]) {
            let mut more = Vec::new();
            for (name, amount) in limit.object(source).into_iter().flat_map(Object::iter) {
                more.push((name.into(), amount.clone()));
            }
            amounts.insert_all(more);
        }
    }
    if defaults.iter().all(|(_, amounts)| amounts.is_empty()) {
        return false;
    }
    let mut notes = Vec::new();
    let spec = pod.object_mut("spec");
    for (list, title) in [("containers", "container"), ("initContainers", "init container")] {
        for container in objects_mut(spec, list) {
            let name = text(container, "name").to_owned();
            // What was not asked for is told before what was not limited.
            for (kind, amounts) in defaults.iter().rev() {
                let missing: Vec<(&str, &Value)> = {
                    let given = container.object("resources").and_then(|resources| resources.object(kind));
                    amounts.iter().filter(|(name, _)| given.is_none_or(|given| !given.contains(name))).collect()
                };
                if missing.is_empty() {
                    continue;
                }
                let names: Vec<&str> = missing.iter().map(|(name, _)| *name).collect();
                notes.push(format!("{} {} for {title} {name}", names.join(", "), kind.trim_end_matches('s')));
                let missing = missing.into_iter().map(|(name, amount)| (name.into(), amount.clone())).collect();
                container.object_mut("resources").object_mut(kind).insert_all(missing);
            }
        }
    }
    if notes.is_empty() {
        return false;
    }
    let note = format!("LimitRanger plugin set: {}", notes.join("; "));
    pod.object_mut("metadata").object_mut("annotations").insert(ANNOTATION, note);
    true
}

fn pod_problems(range: &Object, pod: &Object) -> Vec<String> {
    let spec = spec(pod);
    let mut problems = Vec::new();
    let limits = range.object("spec").into_iter().flat_map(|spec| objects(spec, "limits"));
    for limit in limits {
        match text(limit, "type") {
            "Container" => {
                for container in ["containers", "initContainers"].iter().flat_map(|list| objects(spec, list)) {
                    let resources = container.object("resources");
                    let of = |list| amounts(resources.and_then(|resources| resources.object(list)));
                    problems.extend(check(limit, "Container", &of("requests"), &of("limits")));
                }
            }
            "Pod" => {
                problems.extend(check(limit, "Pod", &pod_total(spec, "requests"), &pod_total(spec, "limits")));
            }
            _ => {}
        }
    }
    problems
}

fn claim_problems(range: &Object, claim: &Object) -> Vec<String> {
    const KIND: &str = "PersistentVolumeClaim";
    let resources = spec(claim).object("resources");
    let requests = amounts(resources.and_then(|resources| resources.object("requests")));
    let mut problems = Vec::new();
    for limit in limits_of(range, KIND) {
        for (name, least) in amounts(limit.object("min")) {
            problems.extend(too_little(KIND, &name, &least, requests.get(&name), None));
        }
        for (name, most) in amounts(limit.object("max")) {
            let words = format!("maximum {name} usage per {KIND} is {most}");
            problems.extend(match requests.get(&name) {
                None => Some(format!("{words}.  No request is specified")),
                Some(asked) if *asked > most => Some(format!("{words}, but request is {asked}")),
                Some(_) => None,
            });
        }
    }
    problems
}

fn check(limit: &Object, kind: &str, requests: &Amounts, limits: &Amounts) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, least) in amounts(limit.object("min")) {
        problems.extend(too_little(kind, &name, &least, requests.get(&name), limits.get(&name)));
    }
    for (name, most) in amounts(limit.object("max")) {
        let words = format!("maximum {name} usage per {kind} is {most}");
        problems.extend(match (requests.get(&name), limits.get(&name)) {
            (_, None) => Some(format!("{words}.  No limit is specified")),
            (_, Some(limit)) if *limit > most => Some(format!("{words}, but limit is {limit}")),
            (Some(asked), _) if *asked > most => Some(format!("{words}, but request is {asked}")),
            _ => None,
        });
    }
    for (name, most) in amounts(limit.object("maxLimitRequestRatio")) {
        problems.extend(too_far_apart(kind, &name, &most, requests.get(&name), limits.get(&name)));
    }
    problems
}

fn too_little(
    kind: &str,
    name: &str,
    least: &Quantity,
    request: Option<&Quantity>,
    limit: Option<&Quantity>,
) -> Option<String> {
    let words = format!("minimum {name} usage per {kind} is {least}");
    match (request, limit) {
        (None, _) => Some(format!("{words}.  No request is specified")),
        (Some(asked), _) if asked < least => Some(format!("{words}, but request is {asked}")),
        (_, Some(limit)) if limit < least => Some(format!("{words}, but limit is {limit}")),
        _ => None,
    }
}

fn too_far_apart(
    kind: &str,
    name: &str,
    most: &Quantity,
    request: Option<&Quantity>,
    limit: Option<&Quantity>,
) -> Option<String> {
    let words = format!("{name} max limit to request ratio per {kind} is {most}");
    let Some(request) = request.filter(|request| !request.is_zero()) else {
        return Some(format!("{words}, but no request is specified or request is 0"));
    };
    let Some(limit) = limit.filter(|limit| !limit.is_zero()) else {
        return Some(format!("{words}, but no limit is specified or limit is 0"));
    };
    let ratio = if [request, limit, most].iter().all(|amount| amount.value() <= MAX_IN_MILLIS) {
        limit.milli_value() as f64 / request.milli_value() as f64
    } else {
        limit.value() as f64 / request.value() as f64
    };
    let is_too_far = if most.value() <= MAX_IN_MILLIS {
        ratio * 1000.0 > most.milli_value() as f64
    } else {
        ratio > most.value() as f64
    };
    is_too_far.then(|| format!("{words}, but provided ratio is {ratio:.6}"))
}

fn amounts(list: Option<&Object>) -> Amounts {
    let parse = |value: &Value| value.as_str().and_then(|text| Quantity::parse(text).ok());
    let list = list.into_iter().flat_map(Object::iter);
    list.filter_map(|(name, value)| Some((name.to_owned(), parse(value)?))).collect()
}

/// What a pod needs as a whole: containers run side by side, init containers one after the other, sidecars from their
/// start to the end. What is said for the pod as a whole counts instead.
pub(crate) fn pod_total_of(spec: &Object, list: &str, of: impl Fn(&Object) -> Amounts) -> Amounts {
    let mut total = Amounts::new();
    objects(spec, "containers").for_each(|container| add(&mut total, of(container)));
    let (mut sidecars, mut most) = (Amounts::new(), Amounts::new());
    for container in objects(spec, "initContainers") {
        let mut now = of(container);
        let is_sidecar = text(container, "restartPolicy") == "Always";
        if is_sidecar {
            add(&mut total, now.clone());
            add(&mut sidecars, now.clone());
        }
        // What this container does not ask for is needed no more than before.
        for (name, amount) in &mut now {
            if let Some(beside) = sidecars.get(name) {
                *amount = if is_sidecar { beside.clone() } else { beside.add(amount) };
            }
        }
        raise(&mut most, now);
    }
    raise(&mut total, most);
    let whole = amounts(spec.object("resources").and_then(|resources| resources.object(list)));
    let is_said_for_the_whole = |name: &str| matches!(name, "cpu" | "memory") || name.starts_with("hugepages-");
    total.extend(whole.into_iter().filter(|(name, _)| is_said_for_the_whole(name)));
    total
}

/// What a pod asks for as a whole, with what it costs to run it (upstream: `PodRequests`).
pub(super) fn pod_requests(spec: &Object) -> Amounts {
    let mut total = pod_total(spec, "requests");
    add(&mut total, amounts(spec.object("overhead")));
    total
}

/// The same by what its containers ask for.
fn pod_total(spec: &Object, list: &str) -> Amounts {
    let of = |container: &Object| amounts(container.object("resources").and_then(|resources| resources.object(list)));
    pod_total_of(spec, list, of)
}

fn add(total: &mut Amounts, more: Amounts) {
    for (name, amount) in more {
        let sum = total.get(&name).map(|known| known.add(&amount)).unwrap_or(amount);
        total.insert(name, sum);
    }
}

fn raise(total: &mut Amounts, other: Amounts) {
    for (name, amount) in other {
        if total.get(&name).is_none_or(|known| *known < amount) {
            total.insert(name, amount);
        }
    }
}

/// Several problems in one sentence, each only once.
fn aggregate(mut problems: Vec<String>) -> String {
    let mut seen = std::collections::HashSet::new();
    problems.retain(|problem| seen.insert(problem.clone()));
    match problems.as_slice() {
        [only] => only.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}
