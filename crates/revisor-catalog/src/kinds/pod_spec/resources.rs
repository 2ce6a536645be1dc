//! What containers and pods ask for: requests, limits and claims of resources, and what a change of them means.

use std::cell::LazyCell;
use std::collections::{BTreeSet, HashMap, HashSet};

use revisor_object::names::dns1123_label;
use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Quantity, Seen, Value, clip_joined};

use super::members::{entries, objects, part, text};
use super::resource_list::{is_pod_level, of_container, sum_of_containers};
use crate::checks::problems;
use crate::kinds::amounts::{amount, is_whole_pages, of_resource};
use crate::kinds::resource_names::{allows_overcommit, container_resource_name, is_huge_page, resource_name};

const OF_PODS: &[&str] = &["cpu", "hugepages-", "memory"];
const RESIZABLE: &[&str] = &["cpu", "memory"];
const RESIZE_POLICIES: &[&str] = &["NotRequired", "RestartContainer"];

/// Whether an amount of huge pages is not a whole number of pages.
pub(super) fn is_partial_huge_page(name: &str, value: &Value) -> bool {
    name.starts_with("hugepages-") && !is_whole_pages(name, &amount(value))
}

/// What is wrong with the resources of a container.
pub(super) fn validate(
    path: FieldPath<'_>,
    resources: &Object,
    claims: &BTreeSet<&str>,
    partial_huge_pages: bool,
    errors: &mut FieldErrors,
) {
    validate_amounts(path, resources, container_resource_name, partial_huge_pages, errors);
    validate_claims(path.child("claims"), resources, claims, errors);
}

/// What is wrong with what a pod needs beyond its containers: a list of limits.
pub(super) fn validate_overhead(
    path: FieldPath<'_>,
    overhead: &Object,
    partial_huge_pages: bool,
    errors: &mut FieldErrors,
) {
    let limits: Object = [("limits", Value::from(overhead.clone()))].into_iter().collect();
    validate_amounts(path, &limits, container_resource_name, partial_huge_pages, errors);
}

fn validate_amounts(
    path: FieldPath<'_>,
    resources: &Object,
    check_name: fn(FieldPath<'_>, &str) -> FieldErrors,
    partial_huge_pages: bool,
    errors: &mut FieldErrors,
) {
    let (at_limits, at_requests) = (path.child("limits"), path.child("requests"));
    let mut has_compute = false;
    let mut has_huge_pages = false;
    for (list, name, value) in entries(resources, "limits")
        .map(|(name, value)| ("limits", name, value))
        .chain(entries(resources, "requests").map(|(name, value)| ("requests", name, value)))
    {
        let at_list = if list == "limits" { at_limits } else { at_requests };
        let path = at_list.key(name);
        let amount = amount(value);
        errors.extend(check_name(path, name));
        errors.extend(of_resource(path, name, &amount));
        if list == "requests" {
            validate_against_limit(at_limits, at_requests, name, &amount, part(resources, "limits").get(name), errors);
        }
        if is_huge_page(name) {
            has_huge_pages = true;
            if !partial_huge_pages && is_partial_huge_page(name, value) {
                let detail = format!("{amount} is not positive integer multiple of {name}");
                errors.push(FieldError::invalid(path, amount.to_string(), detail));
            }
        }
        has_compute |= matches!(name, "cpu" | "memory");
    }
    if has_huge_pages && !has_compute {
        errors.push(FieldError::forbidden(path, "HugePages require cpu or memory"));
    }
}

fn validate_against_limit(
    at_limits: FieldPath<'_>,
    at_requests: FieldPath<'_>,
    name: &str,
    request: &Quantity,
    limit: Option<&Value>,
    errors: &mut FieldErrors,
) {
    let Some(limit) = limit.map(amount) else {
        if !allows_overcommit(name) {
            let detail = "Limit must be set for non overcommitable resources";
            errors.push(FieldError::required(at_limits, detail));
        }
        return;
    };
    let relation = if *request != limit && !allows_overcommit(name) {
        "must be equal to"
    } else if *request > limit {
        "must be less than or equal to"
    } else {
        return;
    };
    let detail = format!("{relation} {name} limit of {limit}");
    errors.push(FieldError::invalid(at_requests, request.to_string(), detail));
}

fn pod_resource_name(path: FieldPath<'_>, name: &str) -> FieldErrors {
    let mut errors = resource_name(path, name);
    if errors.is_empty() && !is_pod_level(name) {
        errors.push(FieldError::not_supported(path, name, OF_PODS));
    }
    errors
}

/// Claims of a container must be claims of its pod. A claim may be used whole, or some of its requests.
fn validate_claims(path: FieldPath<'_>, resources: &Object, claims: &BTreeSet<&str>, errors: &mut FieldErrors) {
    // Of a thousand claims none may be known; what is known is put into words once.
    let unknown = LazyCell::new(|| match claims.is_empty() {
        true => "must be one of the names in pod.spec.resourceClaims which is empty".to_owned(),
        false => format!("must be one of the names in pod.spec.resourceClaims: {}", clip_joined(claims, ", ")),
    });
    let mut used: HashSet<(&str, &str)> = HashSet::new();
    let mut used_parts: HashMap<&str, usize> = HashMap::new();
    for (at, claim) in objects(resources, "claims") {
        let path = path.index(at);
        let (name, request) = (text(claim, "name"), text(claim, "request"));
        if name.is_empty() {
            errors.push(FieldError::required(path, ""));
            continue;
        }
        if used.contains(&(name, "")) {
            errors.push(FieldError::duplicate(path, name));
        } else {
            if !request.is_empty() {
                errors.extend(problems(path.child("request"), request, dns1123_label(request)));
                if used.contains(&(name, request)) {
                    errors.push(FieldError::duplicate(path, format!("{name}/{request}")));
                }
            } else {
                let parts = used_parts.get(name).copied().unwrap_or_default();
                errors.push_times(parts, || FieldError::duplicate(path, name));
            }
            *used_parts.entry(name).or_default() += usize::from(used.insert((name, request)));
        }
        if !claims.contains(name) {
            errors.push(FieldError::not_found_because(path, name, unknown.as_str()));
        }
    }
}

/// What is wrong with what a container says about a change of its resources.
pub(super) fn validate_resize_policy(
    path: FieldPath<'_>,
    container: &Object,
    restart_policy: &str,
    errors: &mut FieldErrors,
) {
    let mut seen = Seen::default();
    for (at, policy) in objects(container, "resizePolicy") {
        let (resource, restart) = (text(policy, "resourceName"), text(policy, "restartPolicy"));
        if !seen.is_new(resource) {
            errors.push(FieldError::duplicate(path.index(at), resource));
        }
        errors.extend(crate::checks::required_one_of(path, resource, RESIZABLE));
        errors.extend(crate::checks::required_one_of(path, restart, RESIZE_POLICIES));
        if restart_policy == "Never" && restart != "NotRequired" {
            let detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.push(FieldError::invalid(path, restart, detail));
        }
    }
}

/// What is wrong with the resources of a pod as a whole, by themselves and against those of its containers.
pub(super) fn validate_of_pod(
    path: FieldPath<'_>,
    spec: &Object,
    claims: &BTreeSet<&str>,
    partial_huge_pages: bool,
    errors: &mut FieldErrors,
) {
    let Some(resources) = spec.object("resources") else { return };
    let path = path.child("resources");
    if text(part(spec, "os"), "name") == "windows" {
        errors.push(FieldError::forbidden(path, "may not be set for a windows pod"));
        return;
    }
    if resources.is_sent("claims") {
        let detail = "claims may not be set for Resources at pod-level";
        errors.push(FieldError::forbidden(path.child("claims"), detail));
    }
    validate_amounts(path, resources, pod_resource_name, partial_huge_pages, errors);
    validate_claims(path.child("claims"), resources, claims, errors);
    let (requests, limits) = (part(resources, "requests"), part(resources, "limits"));
    for (list, given) in [("requests", requests), ("limits", limits)] {
        // Of the limits only those on huge pages add up; the others are for each container by itself.
        for (name, sum) in sum_of_containers(spec, list) {
            if list == "limits" && !is_huge_page(name) {
                continue;
            }
            let Some(amount) = given.get(name).map(amount) else { continue };
            if sum > amount {
                let detail = format!("must be greater than or equal to aggregate container {list} of {sum}");
                errors.push(FieldError::invalid(path.child(list).key(name), amount.to_string(), detail));
            }
        }
    }
    let at_containers = path.child("containers");
    for (at, container) in objects(spec, "containers") {
        for (name, value) in of_container(container, "limits") {
            let Some(most) = limits.get(name).map(amount) else { continue };
            let limit = amount(value);
            if limit > most {
                let path = at_containers.index(at);
                let path = path.key(name);
                let detail = format!("must be less than or equal to pod limits of {most}");
                errors.push(FieldError::invalid(path.child("limits"), limit.to_string(), detail));
            }
        }
    }
}
