//! What each level of trust forbids, as the releases since 1.0 understood it: the tables of the checks. The checks are
//! in the modules below, by what they are about.

mod host;
mod pod;
mod privileges;
mod profiles;
mod restricted;
#[cfg(test)]
mod tests;
mod wording;

use revisor_object::Object;

use self::host::{host_namespaces, host_path_volumes, host_ports, probe_hosts, sysctls, windows_host_process};
use self::pod::Pod;
use self::privileges::{capabilities, privileged, relaxed_proc_mount};
use self::profiles::{app_armor, se_linux, seccomp};
use self::restricted::RESTRICTED;
use super::super::pod_fields::annotations;
use super::Level;

/// The release whose rules are the newest.
const NEWEST: u32 = 35;

/// Something that a level forbids.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) reason: &'static str,
    pub(super) detail: String,
}

impl Violation {
    /// The finding of a check that found something.
    fn found(reason: &'static str, detail: impl Into<String>) -> Option<Violation> {
        Some(Violation { reason, detail: detail.into() })
    }
}

type Check = fn(&Pod<'_>) -> Option<Violation>;

/// What both levels forbid.
const BASELINE: &[(&str, Check, u32)] = &[
    ("appArmor", app_armor, 0),
    ("capabilities", capabilities, 0),
    ("hostNamespaces", host_namespaces, 0),
    ("hostPath", host_path_volumes, 0),
    ("hostPorts", host_ports, 0),
    ("hostProbes", probe_hosts, 34),
    ("privileged", privileged, 0),
    ("procMount", relaxed_proc_mount, 0),
    ("seLinux", se_linux, 0),
    ("seccomp", seccomp, 0),
    ("sysctls", sysctls, 0),
    ("windows", windows_host_process, 0),
];

/// Everything about a pod, or a pod template, that a level forbids.
pub(super) fn violations(level: Level, minor: Option<u32>, pod: &Object) -> Vec<Violation> {
    if level == Level::Privileged {
        return Vec::new();
    }
    let minor = minor.unwrap_or(NEWEST).min(NEWEST);
    let empty = Object::new();
    let spec = pod.object("spec").unwrap_or(&empty);
    let pod = Pod { annotations: annotations(pod), spec, minor };
    let is_restricted = level == Level::Restricted;
    let active = |since: u32| since <= minor;
    let is_replaced = |id: &str| {
        is_restricted && RESTRICTED.iter().any(|(_, since, replaced)| active(*since) && *replaced == Some(id))
    };
    let baseline =
        BASELINE.iter().filter(|(id, _, since)| active(*since) && !is_replaced(id)).map(|(_, check, _)| check);
    let restricted = RESTRICTED.iter().filter(|(_, since, _)| is_restricted && active(*since)).map(|(check, ..)| check);
    baseline.chain(restricted).filter_map(|check| check(&pod)).collect()
}
