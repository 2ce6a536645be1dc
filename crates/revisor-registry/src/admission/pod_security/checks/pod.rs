//! [`Pod`]: what the checks look at.

use revisor_object::{Object, Value};

use super::super::super::pod_fields::{objects, text};

const CONTAINER_LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// A pod, or the template of some, under the rules of a release.
pub(super) struct Pod<'a> {
    pub(super) annotations: &'a Object,
    pub(super) spec: &'a Object,
    pub(super) minor: u32,
}

impl<'a> Pod<'a> {
    pub(super) fn containers(&self) -> impl Iterator<Item = &'a Object> {
        let spec = self.spec;
        CONTAINER_LISTS.into_iter().flat_map(move |list| objects(spec, list))
    }

    /// The names of the containers of which something is true.
    pub(super) fn named(&self, is_bad: impl Fn(&Object) -> bool) -> Vec<&'a str> {
        self.containers().filter(|container| is_bad(container)).map(|container| text(container, "name")).collect()
    }

    pub(super) fn context(&self) -> Option<&'a Object> {
        self.spec.object("securityContext")
    }

    pub(super) fn is_windows(&self) -> bool {
        self.spec.object("os").is_some_and(|os| text(os, "name") == "windows")
    }

    /// Whether users inside of the pod are nobody outside of it.
    pub(super) fn has_own_users(&self) -> bool {
        self.spec.get("hostUsers").and_then(Value::as_bool) == Some(false)
    }
}

/// A member of the security context of a container.
pub(super) fn in_context<'a>(container: &'a Object, name: &str) -> Option<&'a Value> {
    container.object("securityContext")?.get(name)
}
