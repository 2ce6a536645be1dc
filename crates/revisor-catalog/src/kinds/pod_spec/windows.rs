//! Windows: the options that only it has, and what pods that name their system may not have.

use revisor_object::names::dns1123_subdomain;
use revisor_object::{FieldError, FieldErrors, FieldPath, Object};

use super::members::{all_containers, flag, is_true, part, text};
use super::options::Options;
use crate::checks::problems;

const MAX_CREDENTIAL_KIB: usize = 64;
const MAX_DOMAIN: usize = 256;
const MAX_USER: usize = 104;

/// What no user's name contains.
const NOT_IN_USERS: &[char] = &['"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']'];

/// What no NetBIOS domain contains.
const NOT_IN_DOMAINS: &[char] = &['\\', '/', ':', '*', '?', '"', '<', '>', '|'];

/// What pods for Windows may not have: of the pod's security context.
const LINUX_OF_PODS: &[&str] = &[
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
];

/// Of the spec itself.
const LINUX_OF_SPECS: &[&str] = &["hostUsers", "hostPID", "hostIPC", "shareProcessNamespace"];

/// Of the containers' security contexts.
const LINUX_OF_CONTAINERS: &[&str] = &[
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

/// What is wrong with the options of a security context.
pub(super) fn validate_options(path: FieldPath<'_>, options: &Object, errors: &mut FieldErrors) {
    if let Some(name) = options.str("gmsaCredentialSpecName") {
        errors.extend(problems(path.child("gmsaCredentialSpecName"), name, dns1123_subdomain(name)));
    }
    if let Some(spec) = options.str("gmsaCredentialSpec") {
        let detail = if spec.is_empty() {
            Some("gmsaCredentialSpec cannot be an empty string".to_owned())
        } else if spec.len() > MAX_CREDENTIAL_KIB * 1024 {
            Some(format!("gmsaCredentialSpec size must be under {MAX_CREDENTIAL_KIB} KiB"))
        } else {
            None
        };
        let path = path.child("gmsaCredentialSpec");
        errors.extend(detail.map(|detail| FieldError::invalid(path, spec, detail)));
    }
    if let Some(name) = options.str("runAsUserName") {
        errors.extend(problems(path.child("runAsUserName"), name, user_problems(name)));
    }
}

fn user_problems(name: &str) -> Vec<String> {
    let only = |problem: &str| vec![problem.to_owned()];
    if name.is_empty() {
        return only("runAsUserName cannot be an empty string");
    }
    if name.bytes().any(|byte| byte.is_ascii_control()) {
        return only("runAsUserName cannot contain control characters");
    }
    let (domain, user) = match name.split_once('\\') {
        Some((_, rest)) if rest.contains('\\') => {
            return only("runAsUserName cannot contain more than one backslash");
        }
        Some((domain, user)) => (Some(domain), user),
        None => (None, name),
    };
    let mut found = Vec::new();
    if let Some(domain) = domain {
        if domain.len() >= MAX_DOMAIN {
            found.push(format!("runAsUserName's Domain length must be under {MAX_DOMAIN} characters"));
        }
        if !is_net_bios_domain(domain) && !is_dns_domain(domain) {
            found.push("runAsUserName's Domain doesn't match the NetBios nor the DNS format".to_owned());
        }
    }
    if user.is_empty() {
        found.push("runAsUserName's User cannot be empty".to_owned());
    } else if user.len() > MAX_USER {
        found.push(format!("runAsUserName's User length must not be longer than {MAX_USER} characters"));
    }
    if !user.is_empty() && user.bytes().all(|byte| matches!(byte, b'.' | b' ')) {
        found.push("runAsUserName's User cannot contain only periods or spaces".to_owned());
    }
    if user.contains(NOT_IN_USERS) {
        found.push(r#"runAsUserName's User cannot contain the following characters: "/\:;|=,+*?<>@[]"#.to_owned());
    }
    found
}

fn is_net_bios_domain(domain: &str) -> bool {
    (1..=15).contains(&domain.chars().count()) && !domain.starts_with('.') && !domain.contains(NOT_IN_DOMAINS)
}

fn is_dns_domain(domain: &str) -> bool {
    domain.split('.').all(|label| {
        let bytes = label.as_bytes();
        (1..=63).contains(&bytes.len())
            && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    })
}

/// Processes of the host: all containers are, or none; and they are on its network.
pub(super) fn validate_host_processes(path: FieldPath<'_>, spec: &Object, options: Options, errors: &mut FieldErrors) {
    let of = |holder: &Object| flag(part(part(holder, "securityContext"), "windowsOptions"), "hostProcess");
    let of_pod = of(spec);
    let (mut all, mut on_host) = (0, 0);
    for (list, at, container) in all_containers(spec) {
        all += 1;
        let of_container = of(container);
        if let (Some(outer), Some(inner)) = (of_pod, of_container)
            && outer != inner
        {
            let detail = format!("pod hostProcess value must be identical if both are specified, was {outer}");
            let field = format!("{path}.{list}[{at}].securityContext.windowsOptions.hostProcess");
            errors.push(FieldError::invalid(field, inner, detail));
        }
        if of_container.or(of_pod) == Some(true) {
            on_host += 1;
        }
    }
    if on_host == 0 {
        return;
    }
    if on_host != all {
        let detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        errors.push(FieldError::invalid(path, "", detail));
    }
    if !is_true(spec, "hostNetwork") {
        let detail = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.push(FieldError::invalid(path.child("hostNetwork"), false, detail));
    }
    if !options.allow_privileged {
        errors.push(FieldError::forbidden(path, "hostProcess containers are disallowed by cluster policy"));
    }
}

/// What a spec may not have on the system that it names.
pub(super) fn validate_system(path: FieldPath<'_>, spec: &Object, errors: &mut FieldErrors) {
    let Some(os) = spec.object("os") else { return };
    let at_os = path.child("os");
    match text(os, "name") {
        "" => errors.push(FieldError::required(at_os.child("name"), "")),
        "linux" => {
            let detail = "windows options cannot be set for a linux pod";
            forbid(path, spec, &["windowsOptions"], &["windowsOptions"], detail, errors);
        }
        "windows" => {
            let detail = "cannot be set for a windows pod";
            for name in LINUX_OF_SPECS {
                if spec.contains(name) {
                    errors.push(FieldError::forbidden(path.child(name), detail));
                }
            }
            forbid(path, spec, LINUX_OF_PODS, LINUX_OF_CONTAINERS, detail, errors);
        }
        other => errors.push(FieldError::not_supported(at_os, other, &["linux", "windows"])),
    }
}

fn forbid(
    path: FieldPath<'_>,
    spec: &Object,
    of_pod: &[&str],
    of_containers: &[&str],
    detail: &str,
    errors: &mut FieldErrors,
) {
    let at_context = path.child("securityContext");
    for name in of_pod {
        if part(spec, "securityContext").contains(name) {
            errors.push(FieldError::forbidden(at_context.child(name), detail));
        }
    }
    for (list, at, container) in all_containers(spec) {
        for name in of_containers {
            if part(container, "securityContext").contains(name) {
                let field = format!("{path}.{list}[{at}].securityContext.{name}");
                errors.push(FieldError::forbidden(field, detail));
            }
        }
    }
}
