//! As whom and with which powers processes run: for a pod and for each container.

use std::collections::HashSet;

use revisor_object::names::{group_id, user_id};
use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, Value};

use super::members::{flag, given_number, is_true, objects, text, texts};
use super::options::Options;
use super::{profiles, windows};
use crate::checks::one_of;

const PROC_MOUNTS: &[&str] = &["Default", "Unmasked"];
const GROUP_CHANGE_POLICIES: &[&str] = &["Always", "OnRootMismatch"];
const GROUPS_POLICIES: &[&str] = &["Merge", "Strict"];
const RELABELLINGS: &[&str] = &["MountOption", "Recursive"];

const MAX_SYSCTL: usize = 253;
const SYSCTL_RULE: &str = "must have at most 253 characters and match regex \
    ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

/// Kernel parameters that belong to a namespace of inter-process communication.
const IPC_SYSCTLS: &[&str] = &[
    "kernel.sem",
    "kernel.shmall",
    "kernel.shmmax",
    "kernel.shmmni",
    "kernel.shm_rmid_forced",
    "kernel.shm",
    "kernel.msgmax",
    "kernel.msgmnb",
    "kernel.msgmni",
    "kernel.msg",
];

/// What is wrong with the security context of a container.
pub(super) fn validate(
    path: FieldPath<'_>,
    context: &Object,
    spec: &Object,
    options: Options,
    errors: &mut FieldErrors,
) {
    let is_privileged = is_true(context, "privileged");
    if is_privileged && !options.allow_privileged {
        errors.push(FieldError::forbidden(path.child("privileged"), "disallowed by cluster policy"));
    }
    validate_ids(path, context, errors);
    if let Some(mount) = context.str("procMount") {
        errors.extend(one_of(path.child("procMount"), mount, PROC_MOUNTS));
        if mount == "Unmasked" && flag(spec, "hostUsers") != Some(false) {
            let detail = "`hostUsers` must be false to use `Unmasked`";
            errors.push(FieldError::invalid(path.child("procMount"), mount, detail));
        }
    }
    if let Some(profile) = context.object("seccompProfile") {
        profiles::validate_seccomp(path.child("seccompProfile"), profile, errors);
    }
    if flag(context, "allowPrivilegeEscalation") == Some(false) {
        let refused = |detail: &str| FieldError::invalid(path, BadValue::of(context), detail);
        if is_privileged {
            errors.push(refused("cannot set `allowPrivilegeEscalation` to false and `privileged` to true"));
        }
        let added = context.object("capabilities").into_iter().flat_map(|powers| texts(powers, "add"));
        let detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
        errors.extend(added.filter(|(_, power)| *power == "CAP_SYS_ADMIN").map(|_| refused(detail)));
    }
    if let Some(options) = context.object("windowsOptions") {
        windows::validate_options(path.child("windowsOptions"), options, errors);
    }
    if let Some(profile) = context.object("appArmorProfile") {
        profiles::validate_app_armor(path.child("appArmorProfile"), profile, errors);
    }
}

fn validate_ids(path: FieldPath<'_>, context: &Object, errors: &mut FieldErrors) {
    for (name, rule) in [("runAsUser", user_id as fn(i64) -> _), ("runAsGroup", group_id)] {
        if let Some(id) = given_number(context, name) {
            errors.extend(rule(id).into_iter().map(|problem| FieldError::invalid(path.child(name), id, problem)));
        }
    }
}

/// What is wrong with the security context of a pod.
pub(super) fn validate_of_pod(path: FieldPath<'_>, spec: &Object, options: Options, errors: &mut FieldErrors) {
    let Some(context) = spec.object("securityContext") else { return };
    let path = path.child("securityContext");
    if let Some(id) = given_number(context, "fsGroup") {
        errors.extend(group_id(id).into_iter().map(|problem| FieldError::invalid(path.child("fsGroup"), id, problem)));
    }
    validate_ids(path, context, errors);
    let at_groups = path.child("supplementalGroups");
    for (at, id) in context.array("supplementalGroups").iter().filter_map(Value::as_i64).enumerate() {
        let found = group_id(id);
        errors.extend(found.into_iter().map(|problem| FieldError::invalid(at_groups.index(at), id, problem)));
    }
    if is_true(spec, "hostPID") && is_true(spec, "shareProcessNamespace") {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.push(FieldError::invalid(path.child("shareProcessNamespace"), true, detail));
    }
    validate_sysctls(path.child("sysctls"), context, spec, options.host_sysctls, errors);
    if let Some(policy) = context.str("fsGroupChangePolicy") {
        errors.extend(one_of(path.child("fsGroupChangePolicy"), policy, GROUP_CHANGE_POLICIES));
    }
    if let Some(profile) = context.object("seccompProfile") {
        profiles::validate_seccomp(path.child("seccompProfile"), profile, errors);
    }
    if let Some(options) = context.object("windowsOptions") {
        windows::validate_options(path.child("windowsOptions"), options, errors);
    }
    if let Some(profile) = context.object("appArmorProfile") {
        profiles::validate_app_armor(path.child("appArmorProfile"), profile, errors);
    }
    if let Some(policy) = context.str("supplementalGroupsPolicy") {
        errors.extend(one_of(path.child("supplementalGroupsPolicy"), policy, GROUPS_POLICIES));
    }
    if let Some(policy) = context.str("seLinuxChangePolicy") {
        let allowed = if options.any_relabelling { RELABELLINGS } else { &["Recursive"] };
        errors.extend(one_of(path.child("seLinuxChangePolicy"), policy, allowed));
    }
}

fn validate_sysctls(
    path: FieldPath<'_>,
    context: &Object,
    spec: &Object,
    may_be_shared: bool,
    errors: &mut FieldErrors,
) {
    let mut names = HashSet::new();
    for (at, sysctl) in objects(context, "sysctls") {
        let path = path.index(at);
        let path = path.child("name");
        let name = text(sysctl, "name");
        let is_new = names.insert(name);
        if name.is_empty() {
            errors.push(FieldError::required(path, ""));
        } else if !is_sysctl(name) {
            errors.push(FieldError::invalid(path, name, SYSCTL_RULE));
        } else if !is_new {
            errors.push(FieldError::duplicate(path, name));
        }
        if !may_be_shared && let Some(namespace) = shared_namespace(spec, name) {
            let detail = format!("may not be specified when '{namespace}' is true");
            errors.push(FieldError::invalid(path, name, detail));
        }
    }
}

/// The member by which a spec shares with the host the namespace that a kernel parameter belongs to, if it does.
pub(super) fn shared_namespace(spec: &Object, sysctl: &str) -> Option<&'static str> {
    // With slashes first, periods and slashes have changed places.
    let swapped: String;
    let name = match sysctl.find(['.', '/']) {
        Some(at) if sysctl[at..].starts_with('/') => {
            let swap = |character| match character {
                '.' => '/',
                '/' => '.',
                other => other,
            };
            swapped = sysctl.chars().map(swap).collect();
            &swapped
        }
        _ => sysctl,
    };
    let name = name.split('*').next().unwrap_or_default();
    if name.starts_with("net.") {
        is_true(spec, "hostNetwork").then_some("hostNetwork")
    } else if name.starts_with("fs.mqueue.") || IPC_SYSCTLS.contains(&name) {
        is_true(spec, "hostIPC").then_some("hostIPC")
    } else {
        None
    }
}

fn is_sysctl(name: &str) -> bool {
    let is_edge = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.len() <= MAX_SYSCTL
        && name.split(['.', '/']).all(|segment| {
            let bytes = segment.as_bytes();
            bytes.first().is_some_and(|byte| is_edge(*byte))
                && bytes.last().is_some_and(|byte| is_edge(*byte))
                && bytes.iter().all(|byte| is_edge(*byte) || matches!(byte, b'-' | b'_'))
        })
}

/// What a spec with user namespaces of its own may not share with the host.
pub(super) fn validate_user_namespace(path: FieldPath<'_>, spec: &Object, options: Options, errors: &mut FieldErrors) {
    if flag(spec, "hostUsers") != Some(false) {
        return;
    }
    let detail = "when `hostUsers` is false";
    if !options.host_network_in_user_namespaces && is_true(spec, "hostNetwork") {
        errors.push(FieldError::forbidden(path.child("hostNetwork"), detail));
    }
    // The capital letters are the original's.
    for (name, shown) in [("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if is_true(spec, name) {
            errors.push(FieldError::forbidden(path.child(shown), detail));
        }
    }
    if options.devices_in_user_namespaces {
        return;
    }
    for (list, at, container) in super::members::all_containers(spec) {
        if !container.array("volumeDevices").is_empty() {
            let path = path.child(list);
            let path = path.index(at);
            errors.push(FieldError::forbidden(path.child("volumeDevices"), detail));
        }
    }
}
