//! What reaches from a pod to its host: namespaces, volumes, ports and kernel parameters.

use std::collections::BTreeSet;

use revisor_object::{Object, Value};

use super::super::super::pod_fields::{objects, text};
use super::Violation;
use super::pod::Pod;
use super::wording::{containers, plural, quoted, setters};

pub(super) fn host_namespaces(pod: &Pod<'_>) -> Option<Violation> {
    let used: Vec<String> = ["hostNetwork", "hostPID", "hostIPC"]
        .iter()
        .filter(|name| pod.spec.get(name).and_then(Value::as_bool) == Some(true))
        .map(|name| format!("{name}=true"))
        .collect();
    if used.is_empty() { None } else { Violation::found("host namespaces", used.join(", ")) }
}

pub(super) fn host_path_volumes(pod: &Pod<'_>) -> Option<Violation> {
    let bad = objects(pod.spec, "volumes").filter(|volume| volume.contains("hostPath"));
    let names: Vec<&str> = bad.map(|volume| text(volume, "name")).collect();
    if names.is_empty() {
        return None;
    }
    let detail = format!("{} {}", plural("volume", "volumes", names.len()), quoted(names.iter().copied()));
    Violation::found("hostPath volumes", detail)
}

pub(super) fn host_ports(pod: &Pod<'_>) -> Option<Violation> {
    let ports = |container: &Object| -> Vec<i64> {
        let ports = objects(container, "ports").filter_map(|port| port.get("hostPort").and_then(Value::as_i64));
        ports.filter(|port| *port != 0).collect()
    };
    let names = pod.named(|container| !ports(container).is_empty());
    if names.is_empty() {
        return None;
    }
    let all: BTreeSet<String> = pod.containers().flat_map(ports).map(|port| port.to_string()).collect();
    let list: Vec<&str> = all.iter().map(String::as_str).collect();
    let detail = format!(
        "{} {} {} {}",
        containers(&names),
        plural("uses", "use", names.len()),
        plural("hostPort", "hostPorts", all.len()),
        list.join(", ")
    );
    Violation::found("hostPort", detail)
}

pub(super) fn probe_hosts(pod: &Pod<'_>) -> Option<Violation> {
    fn hosts(container: &Object) -> Vec<&str> {
        let probes = ["livenessProbe", "readinessProbe", "startupProbe"].map(|name| container.object(name));
        let lifecycle = container.object("lifecycle");
        let hooks = ["postStart", "preStop"].map(|name| lifecycle.and_then(|lifecycle| lifecycle.object(name)));
        let handlers = probes.into_iter().chain(hooks).flatten();
        let actions = handlers.flat_map(|handler| ["httpGet", "tcpSocket"].map(|name| handler.object(name)));
        actions.flatten().map(|action| text(action, "host")).filter(|host| !host.is_empty()).collect()
    }
    let mut names = pod.named(|container| !hosts(container).is_empty());
    if names.is_empty() {
        return None;
    }
    names.sort_unstable();
    let all: BTreeSet<&str> = pod.containers().flat_map(hosts).collect();
    let detail = format!(
        "{} {} {} {}",
        containers(&names),
        plural("uses", "use", names.len()),
        plural("probe or lifecycle host", "probe or lifecycle hosts", all.len()),
        quoted(all)
    );
    Violation::found("probe or lifecycle host", detail)
}

/// Kernel parameters that are safe, with the release since which they are held to be.
const SAFE_SYSCTLS: [(&str, u32); 12] = [
    ("kernel.shm_rmid_forced", 0),
    ("net.ipv4.ip_local_port_range", 0),
    ("net.ipv4.tcp_syncookies", 0),
    ("net.ipv4.ping_group_range", 0),
    ("net.ipv4.ip_unprivileged_port_start", 0),
    ("net.ipv4.ip_local_reserved_ports", 27),
    ("net.ipv4.tcp_keepalive_time", 29),
    ("net.ipv4.tcp_fin_timeout", 29),
    ("net.ipv4.tcp_keepalive_intvl", 29),
    ("net.ipv4.tcp_keepalive_probes", 29),
    ("net.ipv4.tcp_rmem", 32),
    ("net.ipv4.tcp_wmem", 32),
];

pub(super) fn sysctls(pod: &Pod<'_>) -> Option<Violation> {
    let is_safe = |name: &str| SAFE_SYSCTLS.iter().any(|(safe, since)| *safe == name && *since <= pod.minor);
    let all = pod.context().into_iter().flat_map(|context| objects(context, "sysctls"));
    let bad: Vec<&str> = all.map(|sysctl| text(sysctl, "name")).filter(|name| !is_safe(name)).collect();
    if bad.is_empty() { None } else { Violation::found("forbidden sysctls", bad.join(", ")) }
}

pub(super) fn windows_host_process(pod: &Pod<'_>) -> Option<Violation> {
    let is_bad = |context: Option<&Object>| {
        let options = context.and_then(|context| context.object("windowsOptions"));
        options.and_then(|options| options.get("hostProcess")).and_then(Value::as_bool) == Some(true)
    };
    let names = pod.named(|container| is_bad(container.object("securityContext")));
    let who = setters(is_bad(pod.context()), &names)?;
    Violation::found("hostProcess", format!("{who} must not set securityContext.windowsOptions.hostProcess=true"))
}
