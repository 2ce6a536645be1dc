//! The status of a pod: what `/status` keeps as it was, and what may be wrong with it.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

use revisor_object::names::{dns1123_label, dns1123_subdomain, qualified_name};
use revisor_object::{
    BadValue, FieldError, FieldErrors, FieldPath, Object, Seen, Value, ip_warnings, legacy_ip_problems, parse_ip_sloppy,
};

use super::{container_status, objects, spec_of, update};
use crate::checks::{immutable, problems};
use crate::kinds::amounts::amount;
use crate::kinds::pod_spec::PodPolicy;
use crate::kinds::{addresses, pod_spec};
use crate::{Feature, Features};

pub(super) const STATUS: FieldPath<'static> = FieldPath::root("status");

/// The one address of old and the list of today say the same: the one counts where they differ.
pub(super) fn match_addresses(status: &mut Object) {
    let first = objects(status, "podIPs").next().map(|ip| ip.str("ip").unwrap_or_default().to_owned());
    let one = status.str("podIP").unwrap_or_default().to_owned();
    match first {
        Some(first) if one.is_empty() => {
            status.insert("podIP", first);
        }
        Some(first) if first == one => {}
        _ if one.is_empty() => {}
        _ => {
            let ip = Object::from_iter([("ip", Value::from(one))]);
            status.insert("podIPs", vec![Value::from(ip)]);
        }
    }
}

/// Puts back what a write to the status may not change of it.
pub(super) fn prepare(pod: &mut Object, old: &Object) {
    let empty = Object::new();
    let before = old.object("status").unwrap_or(&empty);
    let status = pod.object_mut("status");
    for name in ["qosClass", "observedGeneration"] {
        if !status.contains(name) {
            status.set(name, before.get(name).cloned());
        }
    }
    keep_observed_generations(status, before);
}

/// A condition that does not say which generation it is about is still about the one that it was about.
fn keep_observed_generations(status: &mut Object, before: &Object) {
    let mut known: HashMap<&str, VecDeque<&Value>> = HashMap::new();
    for condition in objects(before, "conditions") {
        if let Some(kind) = condition.str("type") {
            known.entry(kind).or_default().push_back(condition.get("observedGeneration").unwrap_or(&Value::Null));
        }
    }
    for condition in status.array_mut("conditions").into_iter().flatten().filter_map(Value::as_object_mut) {
        let kind = condition.str("type").unwrap_or_default();
        // There may be several conditions of one type; each stands for one of before.
        let Some(generation) = known.get_mut(kind).and_then(VecDeque::pop_front) else { continue };
        if !condition.contains("observedGeneration") && !generation.is_null() {
            condition.insert("observedGeneration", generation.clone());
        }
    }
}

/// What is wrong with the status of a pod in place of the old one.
pub(super) fn validate(pod: &Object, old: &Object, policy: PodPolicy) -> FieldErrors {
    let features = policy.features;
    let empty = Object::new();
    let status = pod.object("status").unwrap_or(&empty);
    let before = old.object("status").unwrap_or(&empty);
    let spec = spec_of(pod);
    let mut errors = update::validate_annotations(pod, old, policy);
    errors.extend(validate_conditions(status));
    errors.extend(validate_nomination(status, before, spec, features));
    let generation = status.get("observedGeneration").and_then(Value::as_i64).unwrap_or_default();
    if generation < 0 {
        let detail = "must be a non-negative integer";
        errors.push(FieldError::invalid(STATUS.child("observedGeneration"), generation, detail));
    }
    errors.extend(immutable(STATUS.child("qosClass"), status.get("qosClass"), before.get("qosClass")));
    errors.extend(container_status::validate_transitions(status, before, spec, features));
    errors.extend(validate_claims(status, spec));
    errors.extend(validate_extended_claim(status, spec));
    errors.extend(validate_node_claims(status, spec));
    errors.extend(validate_addresses("podIPs", status, before, features));
    errors.extend(validate_host_addresses(status, before, features));
    errors.extend(container_status::validate(status, spec));
    if features.has(Feature::ImageVolumeWithDigest) {
        errors.extend(container_status::validate_image_volumes(status));
    }
    errors
}

/// What is unwise about how the addresses of a pod are written.
pub(super) fn warnings(pod: &Object) -> Vec<String> {
    let Some(status) = pod.object("status") else { return Vec::new() };
    let lists = ["podIPs", "hostIPs"].into_iter();
    let ips = lists.flat_map(|list| objects(status, list).enumerate().map(move |(at, ip)| (list, at, ip)));
    ips.flat_map(|(list, at, ip)| {
        let path = STATUS.child(list);
        let path = path.index(at);
        ip_warnings(path.child("ip"), ip.str("ip").unwrap_or_default())
    })
    .collect()
}

fn validate_conditions(status: &Object) -> FieldErrors {
    let path = STATUS.child("conditions");
    let mut errors = FieldErrors::new();
    for (at, condition) in objects(status, "conditions").enumerate() {
        let generation = condition.get("observedGeneration").and_then(Value::as_i64).unwrap_or_default();
        if generation < 0 {
            let detail = "must be a non-negative integer";
            errors.push(FieldError::invalid(path.index(at).child("observedGeneration"), generation, detail));
        }
        let kind = condition.str("type").unwrap_or_default();
        if !matches!(kind, "PodScheduled" | "Ready" | "Initialized") {
            // The capital letter is the original's.
            errors.extend(problems(path.index(at).child("Type"), kind, qualified_name(kind)));
        }
    }
    errors
}

fn validate_nomination(status: &Object, before: &Object, spec: &Object, features: Features) -> FieldErrors {
    let name = status.str("nominatedNodeName").unwrap_or_default();
    if name.is_empty() || before.str("nominatedNodeName") == Some(name) {
        return FieldErrors::new();
    }
    let path = STATUS.child("nominatedNodeName");
    let mut errors = problems(path, name, dns1123_subdomain(name));
    let is_bound = !spec.str("nodeName").unwrap_or_default().is_empty();
    if is_bound && features.has(Feature::ClearingNominatedNodeNameAfterBinding) {
        errors.push(FieldError::forbidden(path, "may not be set on pods that are already bound to a node"));
    }
    errors
}

fn validate_claims(status: &Object, spec: &Object) -> FieldErrors {
    let path = STATUS.child("resourceClaimStatuses");
    let mut errors = FieldErrors::new();
    let known: Seen<&str> = objects(spec, "resourceClaims").filter_map(|claim| claim.str("name")).collect();
    let mut seen = Seen::default();
    for (at, claim) in objects(status, "resourceClaimStatuses").enumerate() {
        let name = claim.str("name").unwrap_or_default();
        let at = path.index(at);
        if !known.has(&name) {
            let detail = "must match the name of an entry in `spec.resourceClaims`";
            errors.push(FieldError::invalid(at.child("name"), name, detail));
        }
        if !seen.is_new(name) {
            errors.push(FieldError::duplicate(at.child("name"), name));
        }
        if let Some(claim_name) = claim.str("resourceClaimName") {
            errors.extend(problems(at.child("resourceClaimName"), claim_name, dns1123_subdomain(claim_name)));
        }
    }
    errors
}

fn validate_extended_claim(status: &Object, spec: &Object) -> FieldErrors {
    let Some(claim) = status.object("extendedResourceClaimStatus") else { return FieldErrors::new() };
    let path = STATUS.child("extendedResourceClaimStatus");
    let mappings_path = path.child("requestMappings");
    let mut errors = FieldErrors::new();
    if claim.array("requestMappings").is_empty() {
        errors.push(FieldError::required(mappings_path, "at least one request mapping is required"));
    }
    let containers = ["initContainers", "containers"].into_iter().flat_map(|list| objects(spec, list));
    let containers: HashMap<&str, &Object> = containers.filter_map(|it| Some((it.str("name")?, it))).collect();
    let mut seen: Seen<[&str; 3]> = Seen::default();
    for (at, mapping) in objects(claim, "requestMappings").enumerate() {
        let text = |name| mapping.str(name).unwrap_or_default();
        let key = [text("containerName"), text("resourceName"), text("requestName")];
        let [container_name, resource_name, request_name] = key;
        let at = mappings_path.index(at);
        match containers.get(container_name) {
            None => {
                let detail = "must match the name of an entry in spec.initContainers.name or spec.containers.name";
                errors.push(FieldError::invalid(at.child("containerName"), container_name, detail));
            }
            Some(container) => {
                if !pod_spec::resource_list::requests(container, resource_name) {
                    let detail = "must match the extended resource name of an entry in \
                                  spec.initContainers.resources.requests or spec.containers.resources.requests";
                    errors.push(FieldError::invalid(at.child("resourceName"), resource_name, detail));
                }
            }
        }
        errors.extend(problems(path.child("requestName"), request_name, dns1123_label(request_name)));
        if !seen.is_new(key) {
            for (name, value) in ["containerName", "resourceName", "requestName"].into_iter().zip(key) {
                errors.push(FieldError::duplicate(at.child(name), value));
            }
        }
    }
    match claim.str("resourceClaimName").unwrap_or_default() {
        "" => errors.push(FieldError::required(path.child("resourceClaimName"), "")),
        name => errors.extend(problems(path.child("resourceClaimName"), name, dns1123_subdomain(name))),
    }
    errors
}

/// What the claims for resources that nodes could allocate themselves come to.
fn validate_node_claims(status: &Object, spec: &Object) -> FieldErrors {
    let list = "nodeAllocatableResourceClaimStatuses";
    let path = STATUS.child(list);
    let mut errors = FieldErrors::new();
    // Claims are named by the spec, or made from a template and named by the status.
    let known = objects(spec, "resourceClaims").chain(objects(status, "resourceClaimStatuses"));
    let known: Seen<&str> = known.filter_map(|claim| claim.str("resourceClaimName")).collect();
    for (at, claim) in objects(status, list).enumerate() {
        let path = path.index(at);
        let name = claim.str("resourceClaimName").unwrap_or_default();
        if name.is_empty() {
            errors.push(FieldError::required(path.child("resourceClaimName"), "must not be empty"));
        }
        if !known.has(&name) {
            let detail = "no mapping found in pod reference";
            errors.push(FieldError::invalid(path.child("resourceClaimName"), name, detail));
        }
        if claim.array("containers").is_empty() {
            errors.push(FieldError::required(path.child("containers"), "must not be empty"));
        }
        let resources = claim.object("resources");
        let path = path.child("resources");
        if resources.is_none_or(Object::is_empty) {
            errors.push(FieldError::required(path, "must not be empty"));
        }
        for (name, value) in resources.into_iter().flat_map(Object::iter) {
            if name.contains('/') && !name.contains("kubernetes.io/") {
                errors.push(FieldError::invalid(path.key(name), name, "must be a node allocatable resource name"));
            }
            let amount = amount(value);
            if amount.is_negative() {
                errors.push(FieldError::invalid(path.key(name), amount.to_string(), "must be non-negative"));
            }
        }
    }
    errors
}

/// New addresses must be well formed, and there may be one of each family.
fn validate_addresses(list: &str, status: &Object, before: &Object, features: Features) -> FieldErrors {
    let path = STATUS.child(list);
    let text = |ip: &Object| ip.str("ip").unwrap_or_default().to_owned();
    let known: Vec<String> = objects(before, list).map(text).collect();
    let ips: Vec<String> = objects(status, list).map(text).collect();
    let mut errors = FieldErrors::new();
    for (at, ip) in ips.iter().enumerate() {
        if !known.contains(ip) {
            let found = legacy_ip_problems(ip, addresses::strictness(features));
            errors.extend(problems(path.index(at), ip, found));
        }
    }
    if ips.len() > 1 {
        let parsed: Vec<Option<IpAddr>> = ips.iter().map(|ip| parse_ip_sloppy(ip)).collect();
        let bad = parsed.iter().zip(&ips).enumerate().find(|(_, (parsed, _))| parsed.is_none());
        if let Some((at, (_, ip))) = bad {
            let detail = format!("failed to check for dual stack with error:invalid IP[{at}]: {ip}");
            errors.push(FieldError::internal(path, detail));
        }
        let has = |is_of_family: fn(&IpAddr) -> bool| parsed.iter().flatten().any(is_of_family);
        let is_dual = bad.is_none() && has(IpAddr::is_ipv4) && has(IpAddr::is_ipv6);
        if !is_dual || ips.len() > 2 {
            let shown = BadValue::of(&Value::from(status.array(list).to_vec()));
            errors.push(FieldError::invalid(path, shown, "may specify no more than one IP for each IP family"));
        }
    }
    errors
}

fn validate_host_addresses(status: &Object, before: &Object, features: Features) -> FieldErrors {
    let Some(first) = objects(status, "hostIPs").next() else { return FieldErrors::new() };
    let first = first.str("ip").unwrap_or_default();
    let mut errors = FieldErrors::new();
    if first != status.str("hostIP").unwrap_or_default() {
        let path = STATUS.child("hostIPs");
        let path = path.index(0);
        errors.push(FieldError::invalid(path.child("ip"), first, "must be equal to `hostIP`"));
    }
    errors.extend(validate_addresses("hostIPs", status, before, features));
    errors
}
