//! The profiles that confine containers: AppArmor, SELinux and seccomp.

use std::collections::BTreeSet;

use revisor_object::Object;

use super::super::super::pod_fields::text;
use super::Violation;
use super::pod::Pod;
use super::wording::{plural, quoted, setters};

pub(super) fn app_armor(pod: &Pod<'_>) -> Option<Violation> {
    let mut values = BTreeSet::new();
    let mut is_bad = |context: Option<&Object>| {
        let kind = context.and_then(|context| context.object("appArmorProfile")).map(|profile| text(profile, "type"));
        let bad = kind.filter(|kind| !matches!(*kind, "RuntimeDefault" | "Localhost"));
        values.extend(bad.map(str::to_owned));
        bad.is_some()
    };
    let by_pod = is_bad(pod.context());
    let mut names = Vec::new();
    for container in pod.containers() {
        if is_bad(container.object("securityContext")) {
            names.push(text(container, "name"));
        }
    }
    let mut values: Vec<String> = values.into_iter().collect();
    let by_annotation: Vec<String> = pod
        .annotations
        .iter()
        .filter(|(key, _)| key.starts_with("container.apparmor.security.beta.kubernetes.io/"))
        .filter_map(|(key, value)| Some((key, value.as_str()?)))
        .filter(|(_, value)| !(matches!(*value, "" | "runtime/default") || value.starts_with("localhost/")))
        .map(|(key, value)| format!("{key}={value:?}"))
        .collect();
    let mut who: Vec<String> = setters(by_pod, &names).into_iter().collect();
    if !by_annotation.is_empty() {
        who.push(plural("annotation", "annotations", by_annotation.len()).to_owned());
        values.extend(by_annotation);
    }
    if who.is_empty() {
        return None;
    }
    let reason = plural("forbidden AppArmor profile", "forbidden AppArmor profiles", values.len());
    let values = quoted(values.iter().map(String::as_str));
    Violation::found(reason, format!("{} must not set AppArmor profile type to {values}", who.join(" and ")))
}

pub(super) fn se_linux(pod: &Pod<'_>) -> Option<Violation> {
    let types: &[&str] = &["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];
    let types = if pod.minor >= 31 { types } else { &types[..4] };
    let (mut bad_types, mut sets_user, mut sets_role) = (BTreeSet::new(), false, false);
    let mut is_bad = |context: Option<&Object>| {
        let Some(options) = context.and_then(|context| context.object("seLinuxOptions")) else { return false };
        let kind = text(options, "type");
        let has_bad_type = !types.contains(&kind);
        if has_bad_type {
            bad_types.insert(kind.to_owned());
        }
        let (user, role) = (!text(options, "user").is_empty(), !text(options, "role").is_empty());
        sets_user |= user;
        sets_role |= role;
        has_bad_type || user || role
    };
    let by_pod = is_bad(pod.context());
    let mut names = Vec::new();
    for container in pod.containers() {
        if is_bad(container.object("securityContext")) {
            names.push(text(container, "name"));
        }
    }
    let who = setters(by_pod, &names)?;
    let mut what = Vec::new();
    if !bad_types.is_empty() {
        let list = quoted(bad_types.iter().map(String::as_str));
        what.push(format!("{} {list}", plural("type", "types", bad_types.len())));
    }
    if sets_user {
        what.push("user may not be set".to_owned());
    }
    if sets_role {
        what.push("role may not be set".to_owned());
    }
    Violation::found(
        "seLinuxOptions",
        format!("{who} set forbidden securityContext.seLinuxOptions: {}", what.join("; ")),
    )
}

pub(super) fn is_good_seccomp(kind: &str) -> bool {
    matches!(kind, "RuntimeDefault" | "Localhost")
}

pub(super) fn seccomp_type(context: Option<&Object>) -> Option<&str> {
    context.and_then(|context| context.object("seccompProfile")).map(|profile| text(profile, "type"))
}

/// Pods and containers that ask for less than the usual profile.
pub(super) fn bad_seccomp(pod: &Pod<'_>) -> Option<Violation> {
    let bad = |context: Option<&Object>| seccomp_type(context).is_some_and(|kind| !is_good_seccomp(kind));
    let names = pod.named(|container| bad(container.object("securityContext")));
    let who = setters(bad(pod.context()), &names)?;
    let contexts = std::iter::once(pod.context()).chain(pod.containers().map(|it| it.object("securityContext")));
    let values: BTreeSet<&str> = contexts.filter_map(seccomp_type).filter(|kind| !is_good_seccomp(kind)).collect();
    Violation::found(
        "seccompProfile",
        format!("{who} must not set securityContext.seccompProfile.type to {}", quoted(values)),
    )
}

pub(super) fn seccomp(pod: &Pod<'_>) -> Option<Violation> {
    if pod.minor >= 19 {
        return bad_seccomp(pod);
    }
    // Before there were fields there were annotations.
    let is_good =
        |value: &str| matches!(value, "runtime/default" | "docker/default") || value.starts_with("localhost/");
    let of_containers =
        pod.containers().map(|it| format!("container.seccomp.security.alpha.kubernetes.io/{}", text(it, "name")));
    let keys = std::iter::once("seccomp.security.alpha.kubernetes.io/pod".to_owned()).chain(of_containers);
    let bad: BTreeSet<String> = keys
        .filter_map(|key| Some((pod.annotations.str(&key)?, key.clone())))
        .filter(|(value, _)| !is_good(value))
        .map(|(value, key)| format!("{key}={value:?}"))
        .collect();
    if bad.is_empty() {
        return None;
    }
    let list: Vec<&str> = bad.iter().map(String::as_str).collect();
    let detail = format!("forbidden {} {}", plural("annotation", "annotations", bad.len()), list.join(", "));
    Violation::found("seccompProfile", detail)
}
