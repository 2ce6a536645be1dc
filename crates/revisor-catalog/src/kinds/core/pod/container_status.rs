//! The statuses of a pod's containers: which changes make no sense, and what they may say of users and resources.

use std::collections::HashMap;

use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Seen, Value};

use super::objects;
use super::status::STATUS;
use crate::checks::in_range;
use crate::kinds::pod_spec;
use crate::kinds::pod_spec::resource_list::is_sidecar;
use crate::kinds::pod_spec::restart_rules::RestartRules;
use crate::{Feature, Features};

/// The three lists of container statuses, each with the list of containers that it is about.
pub(super) const STATUS_LISTS: [(&str, &str); 3] = [
    ("containerStatuses", "containers"),
    ("initContainerStatuses", "initContainers"),
    ("ephemeralContainerStatuses", "ephemeralContainers"),
];

/// A reference to an image may be this long.
const MAX_IMAGE_REFERENCE: usize = 256;

/// A message about the health of a resource may be this long.
const MAX_HEALTH_MESSAGE: usize = 1024;

/// What is wrong with what the statuses say.
pub(super) fn validate(status: &Object, spec: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for (list, containers) in STATUS_LISTS {
        errors.extend(validate_users(list, status, spec));
        errors.extend(validate_allocated(list, containers, status, spec));
    }
    errors
}

/// What is wrong with what the statuses say of volumes that are images.
pub(super) fn validate_image_volumes(status: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for (list, _) in STATUS_LISTS {
        let path = STATUS.child(list);
        for (at, container) in objects(status, list).enumerate() {
            for (of, mount) in objects(container, "volumeMounts").enumerate() {
                let Some(image) = mount.object("volumeStatus").and_then(|status| status.object("image")) else {
                    continue;
                };
                let field = format!("{}.volumeMounts[{of}].volumeStatus.imageVolumeStatus.imageRef", path.index(at));
                let reference = image.str("imageRef").unwrap_or_default();
                if reference.is_empty() {
                    errors.push(FieldError::required(field, "imageRef must not be empty"));
                } else if reference.len() > MAX_IMAGE_REFERENCE {
                    errors.push(FieldError::too_long(field, MAX_IMAGE_REFERENCE));
                }
            }
        }
    }
    errors
}

/// A container that ended stays so, unless it is to be started again.
pub(super) fn validate_transitions(status: &Object, before: &Object, spec: &Object, features: Features) -> FieldErrors {
    let lists = STATUS_LISTS.into_iter();
    lists
        .flat_map(|(list, containers)| validate_transitions_of(list, containers, status, before, spec, features))
        .collect()
}

fn validate_transitions_of(
    list: &str,
    containers: &str,
    status: &Object,
    before: &Object,
    spec: &Object,
    features: Features,
) -> FieldErrors {
    let rules = RestartRules::new(Some(spec), features);
    let is_ephemeral = containers == "ephemeralContainers";
    let restarts_all = |container: &Object| {
        objects(container, "restartPolicyRules").any(|rule| rule.str("action") == Some("RestartAllContainers"))
    };
    let any_restarts_all =
        ["initContainers", "containers"].iter().flat_map(|list| objects(spec, list)).any(restarts_all);
    if any_restarts_all && rules.of_containers && rules.of_all && !is_ephemeral {
        return FieldErrors::new();
    }
    let terminated = |status: &Object| status.object("state").and_then(|state| state.object("terminated")).cloned();
    let running = objects(status, list).filter(|new| terminated(new).is_none());
    let running: Seen<&str> = running.map(|new| new.str("name").unwrap_or_default()).collect();
    let containers = first_by_name(spec, containers);
    let mut errors = FieldErrors::new();
    for (at, old) in objects(before, list).enumerate() {
        let Some(end) = terminated(old) else { continue };
        let name = old.str("name").unwrap_or_default();
        if !running.has(&name) {
            continue;
        }
        let exit_code = end.get("exitCode").and_then(Value::as_i64).unwrap_or_default();
        let container = containers.get(&Some(name)).copied();
        let is_allowed = !is_ephemeral
            && if rules.of_containers {
                container.is_some_and(|container| restarts(container, spec, exit_code, features))
            } else {
                by_policy(spec.str("restartPolicy").unwrap_or_default(), exit_code) == Some(true)
                    || list == "initContainerStatuses" && container.is_some_and(is_sidecar)
            };
        if !is_allowed {
            let detail = "may not be transitioned to non-terminated state";
            let path = STATUS.child(list);
            errors.push(FieldError::forbidden(path.index(at).child("state"), detail));
        }
    }
    errors
}

/// Whether a container is started again after it ended with this code.
fn restarts(container: &Object, spec: &Object, exit_code: i64, features: Features) -> bool {
    if let Some(policy) = container.str("restartPolicy") {
        let matching = objects(container, "restartPolicyRules").find(|rule| {
            rule.object("exitCodes").is_some_and(|codes| {
                let is_listed = codes.array("values").iter().any(|code| code.as_i64() == Some(exit_code));
                match codes.str("operator") {
                    Some("In") => is_listed,
                    Some("NotIn") => !is_listed,
                    _ => false,
                }
            })
        });
        let restarts_all = features.has(Feature::RestartAllContainersOnContainerExits);
        match matching.and_then(|rule| rule.str("action")) {
            Some("Restart") => return true,
            Some("RestartAllContainers") if restarts_all => return true,
            _ => {}
        }
        if let Some(answer) = by_policy(policy, exit_code) {
            return answer;
        }
    }
    by_policy(spec.str("restartPolicy").unwrap_or_default(), exit_code).unwrap_or(true)
}

/// Whether a policy restarts what ended with this code; `None` if it is no policy.
fn by_policy(policy: &str, exit_code: i64) -> Option<bool> {
    match policy {
        "Always" => Some(true),
        "OnFailure" => Some(exit_code != 0),
        "Never" => Some(false),
        _ => None,
    }
}

fn validate_users(list: &str, status: &Object, spec: &Object) -> FieldErrors {
    let is_windows = spec.object("os").and_then(|os| os.str("name")) == Some("windows");
    let mut errors = FieldErrors::new();
    for (at, container) in objects(status, list).enumerate() {
        let Some(linux) = container.object("user").and_then(|user| user.object("linux")) else { continue };
        let path = STATUS.child(list);
        let path = path.index(at);
        let path = path.child("user");
        let path = path.child("linux");
        if is_windows {
            errors.push(FieldError::forbidden(path, "cannot be set for a windows pod"));
            continue;
        }
        for name in ["uid", "gid"] {
            let id = linux.get(name).and_then(Value::as_i64).unwrap_or_default();
            errors.extend(in_range(path.child(name), id, 0, i64::from(i32::MAX)));
        }
        let groups = path.child("supplementalGroups");
        for (at, group) in linux.array("supplementalGroups").iter().filter_map(Value::as_i64).enumerate() {
            errors.extend(in_range(groups.index(at), group, 0, i64::from(i32::MAX)));
        }
    }
    errors
}

/// What is said of allocated resources must be about resources that the container asks for.
fn validate_allocated(list: &str, containers: &str, status: &Object, spec: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let known = first_by_name(spec, containers);
    for (at, container_status) in objects(status, list).enumerate() {
        let path = STATUS.child(list);
        let path = path.index(at);
        let path = path.child("allocatedResourcesStatus");
        if containers == "ephemeralContainers" {
            if !container_status.array("allocatedResourcesStatus").is_empty() {
                errors.push(FieldError::forbidden(path, "must not be specified in container status"));
            }
            continue;
        }
        let container = known.get(&container_status.str("name")).copied();
        let claims = container.map(claims_of).unwrap_or_default();
        for (at, allocated) in objects(container_status, "allocatedResourcesStatus").enumerate() {
            let path = path.index(at);
            let name = allocated.str("name").unwrap_or_default();
            if let Some(detail) = container.and_then(|container| unknown_resource(container, &claims, name)) {
                errors.push(FieldError::invalid(path.child("name"), name, detail));
            }
            errors.extend(validate_health(path.child("resources"), allocated));
        }
    }
    errors
}

/// The containers of a list by their names; of those with the same name the first counts.
fn first_by_name<'a>(spec: &'a Object, list: &str) -> HashMap<Option<&'a str>, &'a Object> {
    let mut found = HashMap::new();
    for container in objects(spec, list) {
        found.entry(container.str("name")).or_insert(container);
    }
    found
}

/// What a container claims: a claim, or a request of one behind a slash.
fn claims_of(container: &Object) -> Seen<String> {
    let claims = container.object("resources").map(|resources| resources.array("claims")).unwrap_or_default();
    let claims = claims.iter().filter_map(Value::as_object).map(|claim| {
        match (claim.str("name").unwrap_or_default(), claim.str("request").unwrap_or_default()) {
            (name, "") => name.to_owned(),
            (name, request) => format!("{name}/{request}"),
        }
    });
    claims.collect()
}

/// Why a container does not ask for a resource; `None` if it does.
fn unknown_resource(container: &Object, claims: &Seen<String>, name: &str) -> Option<&'static str> {
    if let Some(claimed) = name.strip_prefix("claim:") {
        (!claims.has(&claimed.to_owned())).then_some(
            "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or \
             'claim:<claimName>' if request is empty",
        )
    } else {
        (!pod_spec::resource_list::requests(container, name))
            .then_some("must match one of the container's resource requests")
    }
}

fn validate_health(path: FieldPath<'_>, allocated: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let mut seen = Seen::default();
    for (at, resource) in objects(allocated, "resources").enumerate() {
        let at = path.index(at);
        let health = resource.str("health").unwrap_or_default();
        let known = ["Healthy", "Unhealthy", "Unknown"];
        if !known.contains(&health) {
            errors.push(FieldError::not_supported(at.child("health"), health, &known));
        }
        match resource.str("message") {
            Some("") => errors.push(FieldError::required(at.child("message"), "must be non-empty if specified")),
            Some(text) if text.len() > MAX_HEALTH_MESSAGE => {
                errors.push(FieldError::too_long(at.child("message"), MAX_HEALTH_MESSAGE));
            }
            _ => {}
        }
        let id = resource.str("resourceID").unwrap_or_default();
        if !seen.is_new(id) {
            errors.push(FieldError::duplicate(at.child("resourceID"), id));
        }
    }
    errors
}
