//! What only the restricted level forbids: everything that a careful pod does without.

use std::collections::BTreeSet;

use revisor_object::{Object, Value};

use super::super::super::pod_fields::{objects, text};
use super::pod::{Pod, in_context};
use super::privileges::{forbidden_additions, proc_mount};
use super::profiles::{bad_seccomp, is_good_seccomp, seccomp_type};
use super::wording::{containers, plural, quoted, setters};
use super::{Check, Violation};

/// What only the restricted level forbids, with the release since which it does, and the check of the baseline level
/// that it takes the place of.
pub(super) const RESTRICTED: &[(Check, u32, Option<&str>)] = &[
    (privilege_escalation, 8, None),
    (restricted_capabilities, 22, Some("capabilities")),
    (proc_mount, 35, Some("procMount")),
    (restricted_volumes, 0, Some("hostPath")),
    (run_as_non_root, 0, None),
    (run_as_user, 23, None),
    (restricted_seccomp, 19, Some("seccomp")),
];

fn privilege_escalation(pod: &Pod<'_>) -> Option<Violation> {
    if pod.minor >= 25 && pod.is_windows() {
        return None;
    }
    let names = pod.named(|container| in_context(container, "allowPrivilegeEscalation") != Some(&Value::Bool(false)));
    if names.is_empty() {
        return None;
    }
    let detail = format!("{} must set securityContext.allowPrivilegeEscalation=false", containers(&names));
    Violation::found("allowPrivilegeEscalation != false", detail)
}

/// Volumes that restricted pods may have.
const GOOD_VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

fn restricted_volumes(pod: &Pod<'_>) -> Option<Violation> {
    let bad: Vec<&Object> = objects(pod.spec, "volumes")
        .filter(|volume| !GOOD_VOLUMES.iter().any(|source| volume.contains(source)))
        .collect();
    if bad.is_empty() {
        return None;
    }
    let source = |volume: &&Object| {
        let mut sources = volume.iter().map(|(name, _)| name).filter(|name| *name != "name");
        sources.next().unwrap_or("unknown").to_owned()
    };
    let types: BTreeSet<String> = bad.iter().map(source).collect();
    let names: Vec<&str> = bad.iter().map(|volume| text(volume, "name")).collect();
    let detail = format!(
        "{} {} {} {} {}",
        plural("volume", "volumes", names.len()),
        quoted(names.iter().copied()),
        plural("uses", "use", names.len()),
        plural("restricted volume type", "restricted volume types", types.len()),
        quoted(types.iter().map(String::as_str))
    );
    Violation::found("restricted volume types", detail)
}

fn run_as_non_root(pod: &Pod<'_>) -> Option<Violation> {
    const REASON: &str = "runAsNonRoot != true";
    if pod.minor >= 35 && pod.has_own_users() {
        return None;
    }
    let set = |context: Option<&Object>| context.and_then(|it| it.get("runAsNonRoot")).and_then(Value::as_bool);
    let of_pod = set(pod.context());
    let names = pod.named(|container| set(container.object("securityContext")) == Some(false));
    if let Some(who) = setters(of_pod == Some(false), &names) {
        return Violation::found(REASON, format!("{who} must not set securityContext.runAsNonRoot=false"));
    }
    let names = pod.named(|container| of_pod != Some(true) && set(container.object("securityContext")).is_none());
    if names.is_empty() {
        return None;
    }
    Violation::found(REASON, format!("pod or {} must set securityContext.runAsNonRoot=true", containers(&names)))
}

fn run_as_user(pod: &Pod<'_>) -> Option<Violation> {
    if pod.minor >= 35 && pod.has_own_users() {
        return None;
    }
    let is_root = |context: Option<&Object>| {
        context.and_then(|context| context.get("runAsUser")).and_then(Value::as_i64) == Some(0)
    };
    let names = pod.named(|container| is_root(container.object("securityContext")));
    let who = setters(is_root(pod.context()), &names)?;
    Violation::found("runAsUser=0", format!("{who} must not set runAsUser=0"))
}

fn restricted_capabilities(pod: &Pod<'_>) -> Option<Violation> {
    if pod.minor >= 25 && pod.is_windows() {
        return None;
    }
    let keeps_some = |container: &Object| {
        let capabilities = in_context(container, "capabilities").and_then(Value::as_object);
        !capabilities.is_some_and(|it| it.array("drop").iter().any(|name| name.as_str() == Some("ALL")))
    };
    let names = pod.named(keeps_some);
    let dropped = (!names.is_empty())
        .then(|| format!("{} must set securityContext.capabilities.drop=[\"ALL\"]", containers(&names)));
    let details: Vec<String> = dropped.into_iter().chain(forbidden_additions(pod, &["NET_BIND_SERVICE"])).collect();
    if details.is_empty() { None } else { Violation::found("unrestricted capabilities", details.join("; ")) }
}

fn restricted_seccomp(pod: &Pod<'_>) -> Option<Violation> {
    if pod.minor >= 25 && pod.is_windows() {
        return None;
    }
    if let Some(bad) = bad_seccomp(pod) {
        return Some(bad);
    }
    if seccomp_type(pod.context()).is_some_and(is_good_seccomp) {
        return None;
    }
    let names = pod.named(|container| seccomp_type(container.object("securityContext")).is_none());
    if names.is_empty() {
        return None;
    }
    let who = containers(&names);
    let detail =
        format!("pod or {who} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"");
    Violation::found("seccompProfile", detail)
}
