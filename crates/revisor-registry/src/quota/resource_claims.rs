//! What resource claims hold: devices, counted by their class, and where a class stands for an extended resource, by
//! that resource too, unless the pod that the claim was made for counts it already.

use std::collections::BTreeMap;

use revisor_catalog::Feature;
use revisor_object::{Notation, Object, Quantity, Value};
use time::OffsetDateTime;

use super::evaluator::{Evaluator, Usage, text};
use super::pods::{IMPLICIT_REQUESTS, is_extended_request};
use crate::Registry;

const DEVICES: &str = ".deviceclass.resource.k8s.io/devices";

/// How many devices a claim can get at most, which is what "all" may come to.
const ALL_DEVICES: i64 = 32;

const EXTENDED_CLAIM: &str = "resource.kubernetes.io/extended-resource-claim";

pub(super) fn counts(registry: &Registry, name: &str) -> bool {
    if name.ends_with(DEVICES) {
        return true;
    }
    if !has_extended_resources(registry) {
        return false;
    }
    if let Some(class) = name.strip_prefix(IMPLICIT_REQUESTS)
        && extended_resource(registry, class).is_some()
    {
        return true;
    }
    is_extended_request(name)
        && name.strip_prefix("requests.").is_some_and(|resource| has_device_class(registry, resource))
}

/// What a claim asks for in the worst case, by class (upstream: `claimEvaluator.Usage`).
pub(super) fn add_usage(registry: &Registry, claim: &Object, now: OffsetDateTime, usage: &mut Usage) {
    let mut devices: BTreeMap<String, i64> = BTreeMap::new();
    let requests = claim.at(&["spec", "devices", "requests"]).and_then(Value::as_array).unwrap_or_default();
    for request in requests.iter().filter_map(Value::as_object) {
        let alternatives = request.array("firstAvailable");
        if !alternatives.is_empty() {
            // One of them is taken; which is not known, so each class counts with the most that it may have to give.
            let mut most: BTreeMap<&str, i64> = BTreeMap::new();
            for alternative in alternatives.iter().filter_map(Value::as_object) {
                let known = most.entry(alternative.str("deviceClassName").unwrap_or_default()).or_default();
                *known = (*known).max(device_count(alternative));
            }
            for (class, count) in most.into_iter().filter(|(_, count)| *count > 0) {
                add_devices(&mut devices, class, count);
            }
        } else if let Some(exactly) = request.object("exactly") {
            add_devices(&mut devices, exactly.str("deviceClassName").unwrap_or_default(), device_count(exactly));
        }
    }
    for (class, count) in &devices {
        usage.insert(format!("{class}{DEVICES}"), Quantity::from_units(*count, Notation::DecimalSi));
    }
    if has_extended_resources(registry) {
        add_extended(registry, claim, &devices, now, usage);
    }
}

fn add_devices(devices: &mut BTreeMap<String, i64>, class: &str, count: i64) {
    let known = devices.entry(class.to_owned()).or_default();
    *known = known.saturating_add(count);
}

fn device_count(request: &Object) -> i64 {
    match request.str("allocationMode") {
        Some("ExactCount") => request.get("count").and_then(Value::as_i64).unwrap_or_default(),
        Some("All") => ALL_DEVICES,
        // A mode of another release. What it comes to is not known here.
        _ => 0,
    }
}

fn has_extended_resources(registry: &Registry) -> bool {
    registry.catalog.features().has(Feature::DRAExtendedResource)
}

fn add_extended(
    registry: &Registry,
    claim: &Object,
    devices: &BTreeMap<String, i64>,
    now: OffsetDateTime,
    usage: &mut Usage,
) {
    let mut extended = Usage::new();
    for (class, count) in devices.iter().filter(|(class, _)| !class.is_empty()) {
        let count = Quantity::from_units(*count, Notation::DecimalSi);
        extended.insert(format!("{IMPLICIT_REQUESTS}{class}"), count.clone());
        if let Some(resource) = extended_resource(registry, class) {
            extended.insert(format!("requests.{resource}"), count);
        }
    }
    if extended.is_empty() {
        return;
    }
    let counted = usage_of_pod(registry, claim, now).unwrap_or_default();
    for (name, amount) in extended {
        let rest = counted.get(&name).map_or_else(|| amount.clone(), |counted| amount.sub(counted));
        if !rest.is_negative() && !rest.is_zero() {
            usage.insert(name, rest);
        }
    }
}

/// What the pod counts for which a claim was made out of its extended resources (upstream: `getVerifiedPodUsage`).
fn usage_of_pod(registry: &Registry, claim: &Object, now: OffsetDateTime) -> Option<Usage> {
    let namespace = text(claim, &["metadata", "namespace"]);
    let (pod_name, pod_uid) = pod_owner(claim)?;
    let pod = registry.stored("", "v1", "pods", Some(namespace), pod_name)?;
    if text(&pod, &["metadata", "uid"]) != pod_uid {
        return None;
    }
    let named = pod.at(&["status", "extendedResourceClaimStatus"]).and_then(Value::as_object);
    let name = text(claim, &["metadata", "name"]);
    match named {
        Some(status) if status.str("resourceClaimName").unwrap_or_default() != name => return None,
        Some(_) => {}
        // The pod does not say which claim is its own, so only the first one that it owns is.
        None => {
            let resource = registry.known("resource.k8s.io", "v1", "resourceclaims")?;
            let mine = (text(claim, &["metadata", "creationTimestamp"]), name);
            let all = registry.all_stored("resource.k8s.io", "v1", "resourceclaims", Some(namespace));
            let is_earlier = |other: &Object| {
                pod_owner(other).is_some_and(|(_, uid)| uid == pod_uid)
                    && (text(other, &["metadata", "creationTimestamp"]), text(other, &["metadata", "name"])) < mine
            };
            if resource.is_stored() && all.iter().any(is_earlier) {
                return None;
            }
        }
    }
    let pods = registry.known("", "v1", "pods")?;
    Some(Evaluator::of(pods)?.usage(registry, &pod, now))
}

/// The name and identity of the pod that controls a claim for its extended resources.
fn pod_owner(claim: &Object) -> Option<(&str, &str)> {
    if text(claim, &["metadata", "annotations", EXTENDED_CLAIM]) != "true" {
        return None;
    }
    let owners = claim.object("metadata")?.array("ownerReferences").iter().filter_map(Value::as_object);
    let controls = |owner: &&Object| owner.get("controller").and_then(Value::as_bool) == Some(true);
    let owner = owners.into_iter().find(controls)?;
    let is_pod = owner.str("kind") == Some("Pod") && owner.str("apiVersion") == Some("v1");
    is_pod.then(|| (owner.str("name").unwrap_or_default(), owner.str("uid").unwrap_or_default()))
}

/// The extended resource that a class of devices stands for.
fn extended_resource(registry: &Registry, class: &str) -> Option<String> {
    let class = registry.read_once("resource.k8s.io", "v1", "deviceclasses", None, class)?;
    Some(text(&class, &["spec", "extendedResourceName"]).to_owned()).filter(|name| !name.is_empty())
}

/// Whether a class of devices stands for a resource, by what it says or by its own name.
fn has_device_class(registry: &Registry, resource: &str) -> bool {
    if let Some(class) = resource.strip_prefix("deviceclass.resource.kubernetes.io/") {
        return registry.read_once("resource.k8s.io", "v1", "deviceclasses", None, class).is_some();
    }
    let classes = registry.all_read_once("resource.k8s.io", "v1", "deviceclasses", None);
    classes.iter().any(|class| text(class, &["spec", "extendedResourceName"]) == resource)
}
