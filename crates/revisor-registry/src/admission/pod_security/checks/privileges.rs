//! What containers may do beyond the usual.

use std::collections::BTreeSet;

use revisor_object::{Object, Value};

use super::Violation;
use super::pod::{Pod, in_context};
use super::wording::{containers, quoted};

const SAFE_CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// The capabilities of a list that are not among the allowed ones.
fn added<'a>(container: &'a Object, allowed: &[&str]) -> Vec<&'a str> {
    let capabilities = in_context(container, "capabilities").and_then(Value::as_object);
    let added = capabilities.map(|capabilities| capabilities.array("add")).unwrap_or_default();
    added.iter().filter_map(Value::as_str).filter(|name| !allowed.contains(name)).collect()
}

pub(super) fn forbidden_additions(pod: &Pod<'_>, allowed: &[&str]) -> Option<String> {
    let names = pod.named(|container| !added(container, allowed).is_empty());
    let all: BTreeSet<&str> = pod.containers().flat_map(|container| added(container, allowed)).collect();
    (!names.is_empty())
        .then(|| format!("{} must not include {} in securityContext.capabilities.add", containers(&names), quoted(all)))
}

pub(super) fn capabilities(pod: &Pod<'_>) -> Option<Violation> {
    Violation::found("non-default capabilities", forbidden_additions(pod, &SAFE_CAPABILITIES)?)
}

pub(super) fn privileged(pod: &Pod<'_>) -> Option<Violation> {
    let names = pod.named(|container| in_context(container, "privileged") == Some(&Value::Bool(true)));
    if names.is_empty() {
        return None;
    }
    Violation::found("privileged", format!("{} must not set securityContext.privileged=true", containers(&names)))
}

pub(super) fn proc_mount(pod: &Pod<'_>) -> Option<Violation> {
    fn other(container: &Object) -> Option<&str> {
        in_context(container, "procMount").and_then(Value::as_str).filter(|kind| *kind != "Default")
    }
    let names = pod.named(|container| other(container).is_some());
    if names.is_empty() {
        return None;
    }
    let all: BTreeSet<&str> = pod.containers().filter_map(other).collect();
    Violation::found(
        "procMount",
        format!("{} must not set securityContext.procMount to {}", containers(&names), quoted(all)),
    )
}

pub(super) fn relaxed_proc_mount(pod: &Pod<'_>) -> Option<Violation> {
    if pod.minor >= 35 && pod.has_own_users() { None } else { proc_mount(pod) }
}
