//! What pods hold: themselves while they run, and what they ask for.

use std::collections::BTreeMap;

use revisor_catalog::Feature;
use revisor_object::{Object, Quantity, Value};
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

use super::evaluator::{Usage, one, quantities, selects, text};
use crate::Registry;
use crate::admission::pod_total_of;

/// What every container must say about itself where a quota limits it.
const REQUIRED: [&str; 6] = ["cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"];

/// Classes of devices, requested as if they were extended resources.
pub(super) const IMPLICIT_REQUESTS: &str = "requests.deviceclass.resource.kubernetes.io/";

pub(super) fn counts(name: &str) -> bool {
    let is_plain = |name: &str| matches!(name, "cpu" | "memory" | "ephemeral-storage");
    name == "pods"
        || is_plain(name)
        || name.strip_prefix("requests.").is_some_and(is_plain)
        || name.strip_prefix("limits.").is_some_and(is_plain)
        || name.starts_with("hugepages-")
        || name.starts_with("requests.hugepages-")
        || is_extended_request(name)
}

/// Resources of the vendors of devices can only be limited by what is requested of them.
pub(super) fn is_extended_request(name: &str) -> bool {
    let is_native = |resource: &str| !resource.contains('/') || resource.contains("kubernetes.io/");
    name.starts_with(IMPLICIT_REQUESTS) || name.strip_prefix("requests.").is_some_and(|resource| !is_native(resource))
}

pub(super) fn has_deadline(pod: &Object) -> bool {
    pod.at(&["spec", "activeDeadlineSeconds"]).and_then(Value::as_i64).is_some_and(|seconds| seconds >= 0)
}

pub(super) fn is_in_scope(scope: &str, selector: Option<&Object>, pod: &Object) -> bool {
    match scope {
        "Terminating" => has_deadline(pod),
        "NotTerminating" => !has_deadline(pod),
        "BestEffort" => is_best_effort(pod),
        "NotBestEffort" => !is_best_effort(pod),
        "PriorityClass" => selects(selector, text(pod, &["spec", "priorityClassName"])),
        "CrossNamespacePodAffinity" => reaches_other_namespaces(pod),
        _ => false,
    }
}

/// What can change about a pod that scopes ask for.
pub(super) fn scope_facts(pod: &Object) -> (bool, bool) {
    (has_deadline(pod), is_best_effort(pod))
}

fn is_best_effort(pod: &Object) -> bool {
    text(pod, &["status", "qosClass"]) == "BestEffort"
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

pub(super) fn require(watched: &[&str], pod: &Object) -> Result<(), String> {
    let empty = Object::new();
    let spec = pod.object("spec").unwrap_or(&empty);
    let is_limited_as_a_whole = spec.object("resources").is_some_and(|resources| {
        let lists = ["requests", "limits"].into_iter().filter_map(|list| resources.object(list));
        lists.flat_map(Object::iter).any(|(name, _)| is_said_for_the_whole(name))
    });
    if is_limited_as_a_whole {
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

fn is_said_for_the_whole(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

/// When a pod that is being deleted has had its time and is not counted any longer, whether or not its node says so.
pub(super) fn end_of_grace(pod: &Object) -> Option<OffsetDateTime> {
    let metadata = pod.object("metadata")?;
    let marked = OffsetDateTime::parse(metadata.str("deletionTimestamp")?, &Rfc3339).ok()?;
    let grace = metadata.get("deletionGracePeriodSeconds")?.as_i64()?;
    marked.checked_add(Duration::seconds(grace))
}

/// A pod that has ended holds nothing but its name (upstream: `PodUsageFunc`).
pub(super) fn add_usage(registry: &Registry, pod: &Object, now: OffsetDateTime, usage: &mut Usage) {
    let has_ended = matches!(text(pod, &["status", "phase"]), "Failed" | "Succeeded");
    if has_ended || end_of_grace(pod).is_some_and(|end| now > end) {
        return;
    }
    let empty = Object::new();
    let spec = pod.object("spec").unwrap_or(&empty);
    usage.insert("pods".to_owned(), one());
    for list in ["requests", "limits"] {
        let mut total = pod_total_of(spec, list, |container| effective(registry, pod, container, list));
        for (name, amount) in quantities(spec.object("overhead")) {
            match total.get_mut(&name) {
                // What is not limited is not limited by what it costs to run it either.
                Some(known) if list == "requests" || !known.is_zero() => *known = known.add(&amount),
                None if list == "requests" => {
                    total.insert(name, amount);
                }
                _ => {}
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

/// What a container has to be given: while it is resized the larger of what it asks for and what it has (upstream:
/// `determineEffectiveRequests`, `determineEffectiveLimits`).
fn effective(registry: &Registry, pod: &Object, container: &Object, list: &str) -> Usage {
    let amounts = |resources: Option<&Object>| quantities(resources.and_then(|resources| resources.object(list)));
    let asked = amounts(container.object("resources"));
    let is_init_only = || {
        let inits = pod.at(&["spec", "initContainers"]).and_then(Value::as_array).unwrap_or_default();
        let is_init = inits.iter().filter_map(Value::as_object).any(|init| init.str("name") == container.str("name"));
        is_init && container.str("restartPolicy") != Some("Always")
    };
    let Some(status) = pod.object("status") else { return asked };
    let statuses = ["containerStatuses", "initContainerStatuses"].into_iter().flat_map(|name| status.array(name));
    let mut statuses = statuses.filter_map(Value::as_object);
    let Some(found) = statuses.find(|status| status.str("name") == container.str("name")) else { return asked };
    let Some(actuated) = found
        .object("resources")
        .filter(|_| registry.catalog.features().has(Feature::InPlacePodVerticalScaling) && !is_init_only())
    else {
        return asked;
    };
    let mut most = if is_resize_infeasible(status) { Usage::new() } else { asked };
    raise(&mut most, amounts(Some(actuated)));
    if list == "requests" {
        raise(&mut most, quantities(found.object("allocatedResources")));
    }
    most
}

fn is_resize_infeasible(status: &Object) -> bool {
    let conditions = status.array("conditions").iter().filter_map(Value::as_object);
    let mut pending = conditions.filter(|condition| condition.str("type") == Some("PodResizePending"));
    pending.next().is_some_and(|condition| condition.str("reason") == Some("Infeasible"))
}

fn raise(most: &mut Usage, other: BTreeMap<String, Quantity>) {
    for (name, amount) in other {
        if most.get(&name).is_none_or(|known| *known < amount) {
            most.insert(name, amount);
        }
    }
}
