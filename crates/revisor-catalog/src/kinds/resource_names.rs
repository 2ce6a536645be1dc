//! The names of resources that can be asked for, limited and counted: `cpu`, `requests.storage`, `example.com/gpu`.

use revisor_object::names::qualified_name;
use revisor_object::{FieldError, FieldErrors, FieldPath};

use crate::checks::problems;

const HUGE_PAGES: &str = "hugepages-";
const REQUESTS_HUGE_PAGES: &str = "requests.hugepages-";
const REQUESTS: &str = "requests.";
const NATIVE_NAMESPACE: &str = "kubernetes.io/";

/// Those that a quota can limit.
const QUOTA: &[&str] = &[
    "configmaps",
    "cpu",
    "ephemeral-storage",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "memory",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
];

/// Those of which there are only whole ones.
const INTEGER: &[&str] = &[
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
];

const CONTAINER: &[&str] = &["cpu", "ephemeral-storage", "memory"];

/// Whether a resource is huge pages of some size.
pub(crate) fn is_huge_page(name: &str) -> bool {
    name.starts_with(HUGE_PAGES)
}

fn is_quota_huge_page(name: &str) -> bool {
    is_huge_page(name) || name.starts_with(REQUESTS_HUGE_PAGES)
}

/// Whether a resource is one that Kubernetes itself defines. Names without a prefix all are.
pub(crate) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains(NATIVE_NAMESPACE)
}

/// Whether a resource is one that somebody else defines, and that a quota could still name.
pub(crate) fn is_extended(name: &str) -> bool {
    !is_native(name) && !name.starts_with(REQUESTS) && qualified_name(&format!("{REQUESTS}{name}")).is_empty()
}

/// Whether there are only whole units of a resource.
pub(crate) fn is_integer(name: &str) -> bool {
    INTEGER.contains(&name) || is_extended(name)
}

/// Whether more of a resource may be promised than there is.
pub(crate) fn allows_overcommit(name: &str) -> bool {
    is_native(name) && !is_huge_page(name)
}

/// Whether a quota knows how to count a resource by itself.
pub(crate) fn is_quota_resource(name: &str) -> bool {
    QUOTA.contains(&name) || is_quota_huge_page(name)
}

fn is_standard(name: &str) -> bool {
    is_quota_resource(name) || name == "storage"
}

/// The name of any resource.
pub(crate) fn resource_name(path: FieldPath<'_>, name: &str) -> FieldErrors {
    let mut errors = problems(path, name, qualified_name(name));
    if errors.is_empty() && !name.contains('/') && !is_standard(name) {
        errors.push(FieldError::invalid(path, name, "must be a standard resource type or fully qualified"));
    }
    errors
}

/// The name of a resource that containers can have.
pub(crate) fn container_resource_name(path: FieldPath<'_>, name: &str) -> FieldErrors {
    let mut errors = resource_name(path, name);
    if !name.contains('/') {
        if !CONTAINER.contains(&name) && !is_huge_page(name) {
            errors.push(FieldError::invalid(path, name, "must be a standard resource for containers"));
        }
    } else if !is_native(name) && !is_extended(name) {
        errors.push(FieldError::invalid(path, name, "doesn't follow extended resource name standard"));
    }
    errors
}

/// The name of a resource that quotas can limit.
pub(crate) fn quota_resource_name(path: FieldPath<'_>, name: &str) -> FieldErrors {
    let mut errors = resource_name(path, name);
    if !name.contains('/') && !is_quota_resource(name) {
        errors.push(FieldError::invalid(path, name, "must be a standard resource for quota"));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        let path = FieldPath::root("x");
        for (name, any, container, quota) in [
            ("cpu", 0, 0, 0),
            ("storage", 0, 1, 1),
            ("pods", 0, 1, 0),
            ("hugepages-2Mi", 0, 0, 0),
            ("requests.hugepages-2Mi", 0, 1, 0),
            ("gpu", 1, 2, 2),
            ("example.com/gpu", 0, 0, 0),
            ("requests.example.com/gpu", 0, 1, 0),
            ("kubernetes.io/odd", 0, 0, 0),
            ("a b", 1, 2, 2),
        ] {
            assert_eq!(resource_name(path, name).len(), any, "{name}");
            assert_eq!(container_resource_name(path, name).len(), container, "{name} of a container");
            assert_eq!(quota_resource_name(path, name).len(), quota, "{name} of a quota");
        }
        assert!(is_integer("example.com/gpu") && is_integer("pods") && !is_integer("cpu"));
    }
}
