//! What each level of trust forbids, as the releases since 1.0 understood it.

mod restricted;

use std::collections::BTreeSet;

use revisor_object::{Object, Value};

use self::restricted::RESTRICTED;
use super::super::pod_fields::{annotations, objects, text};
use super::Level;

/// The release whose rules are the newest.
const NEWEST: u32 = 35;

const CONTAINER_LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Something that a level forbids.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Violation {
    pub(super) reason: &'static str,
    pub(super) detail: String,
}

fn violation(reason: &'static str, detail: impl Into<String>) -> Option<Violation> {
    Some(Violation { reason, detail: detail.into() })
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

struct Pod<'a> {
    annotations: &'a Object,
    spec: &'a Object,
    minor: u32,
}

impl<'a> Pod<'a> {
    fn containers(&self) -> impl Iterator<Item = &'a Object> {
        let spec = self.spec;
        CONTAINER_LISTS.into_iter().flat_map(move |list| objects(spec, list))
    }

    /// The names of the containers of which something is true.
    fn named(&self, is_bad: impl Fn(&Object) -> bool) -> Vec<&'a str> {
        self.containers().filter(|container| is_bad(container)).map(|container| text(container, "name")).collect()
    }

    fn context(&self) -> Option<&'a Object> {
        self.spec.object("securityContext")
    }

    fn is_windows(&self) -> bool {
        self.spec.object("os").is_some_and(|os| text(os, "name") == "windows")
    }

    /// Whether users inside of the pod are nobody outside of it.
    fn has_own_users(&self) -> bool {
        self.spec.get("hostUsers").and_then(Value::as_bool) == Some(false)
    }
}

fn in_context<'a>(container: &'a Object, name: &str) -> Option<&'a Value> {
    container.object("securityContext")?.get(name)
}

fn quoted<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| format!("\"{item}\"")).collect();
    items.join(", ")
}

fn plural<'a>(one: &'a str, many: &'a str, count: usize) -> &'a str {
    if count == 1 { one } else { many }
}

/// `container "a"` or `containers "a", "b"`.
fn containers(names: &[&str]) -> String {
    format!("{} {}", plural("container", "containers", names.len()), quoted(names.iter().copied()))
}

/// Who sets something: the pod, containers, or both.
fn setters(pod: bool, names: &[&str]) -> Option<String> {
    match (pod, names) {
        (false, []) => None,
        (true, []) => Some("pod".to_owned()),
        (false, names) => Some(containers(names)),
        (true, names) => Some(format!("pod and {}", containers(names))),
    }
}

fn app_armor(pod: &Pod<'_>) -> Option<Violation> {
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
    violation(reason, format!("{} must not set AppArmor profile type to {values}", who.join(" and ")))
}

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

fn forbidden_additions(pod: &Pod<'_>, allowed: &[&str]) -> Option<String> {
    let names = pod.named(|container| !added(container, allowed).is_empty());
    let all: BTreeSet<&str> = pod.containers().flat_map(|container| added(container, allowed)).collect();
    (!names.is_empty())
        .then(|| format!("{} must not include {} in securityContext.capabilities.add", containers(&names), quoted(all)))
}

fn capabilities(pod: &Pod<'_>) -> Option<Violation> {
    violation("non-default capabilities", forbidden_additions(pod, &SAFE_CAPABILITIES)?)
}

fn host_namespaces(pod: &Pod<'_>) -> Option<Violation> {
    let used: Vec<String> = ["hostNetwork", "hostPID", "hostIPC"]
        .iter()
        .filter(|name| pod.spec.get(name).and_then(Value::as_bool) == Some(true))
        .map(|name| format!("{name}=true"))
        .collect();
    if used.is_empty() { None } else { violation("host namespaces", used.join(", ")) }
}

fn host_path_volumes(pod: &Pod<'_>) -> Option<Violation> {
    let bad = objects(pod.spec, "volumes").filter(|volume| volume.contains("hostPath"));
    let names: Vec<&str> = bad.map(|volume| text(volume, "name")).collect();
    if names.is_empty() {
        return None;
    }
    let detail = format!("{} {}", plural("volume", "volumes", names.len()), quoted(names.iter().copied()));
    violation("hostPath volumes", detail)
}

fn host_ports(pod: &Pod<'_>) -> Option<Violation> {
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
    violation("hostPort", detail)
}

fn probe_hosts(pod: &Pod<'_>) -> Option<Violation> {
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
    violation("probe or lifecycle host", detail)
}

fn privileged(pod: &Pod<'_>) -> Option<Violation> {
    let names = pod.named(|container| in_context(container, "privileged") == Some(&Value::Bool(true)));
    if names.is_empty() {
        return None;
    }
    violation("privileged", format!("{} must not set securityContext.privileged=true", containers(&names)))
}

fn proc_mount(pod: &Pod<'_>) -> Option<Violation> {
    fn other(container: &Object) -> Option<&str> {
        in_context(container, "procMount").and_then(Value::as_str).filter(|kind| *kind != "Default")
    }
    let names = pod.named(|container| other(container).is_some());
    if names.is_empty() {
        return None;
    }
    let all: BTreeSet<&str> = pod.containers().filter_map(other).collect();
    violation("procMount", format!("{} must not set securityContext.procMount to {}", containers(&names), quoted(all)))
}

fn relaxed_proc_mount(pod: &Pod<'_>) -> Option<Violation> {
    if pod.minor >= 35 && pod.has_own_users() { None } else { proc_mount(pod) }
}

fn se_linux(pod: &Pod<'_>) -> Option<Violation> {
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
    violation("seLinuxOptions", format!("{who} set forbidden securityContext.seLinuxOptions: {}", what.join("; ")))
}

fn is_good_seccomp(kind: &str) -> bool {
    matches!(kind, "RuntimeDefault" | "Localhost")
}

fn seccomp_type(context: Option<&Object>) -> Option<&str> {
    context.and_then(|context| context.object("seccompProfile")).map(|profile| text(profile, "type"))
}

/// Pods and containers that ask for less than the usual profile.
fn bad_seccomp(pod: &Pod<'_>) -> Option<Violation> {
    let bad = |context: Option<&Object>| seccomp_type(context).is_some_and(|kind| !is_good_seccomp(kind));
    let names = pod.named(|container| bad(container.object("securityContext")));
    let who = setters(bad(pod.context()), &names)?;
    let contexts = std::iter::once(pod.context()).chain(pod.containers().map(|it| it.object("securityContext")));
    let values: BTreeSet<&str> = contexts.filter_map(seccomp_type).filter(|kind| !is_good_seccomp(kind)).collect();
    violation("seccompProfile", format!("{who} must not set securityContext.seccompProfile.type to {}", quoted(values)))
}

fn seccomp(pod: &Pod<'_>) -> Option<Violation> {
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
    violation("seccompProfile", detail)
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

fn sysctls(pod: &Pod<'_>) -> Option<Violation> {
    let is_safe = |name: &str| SAFE_SYSCTLS.iter().any(|(safe, since)| *safe == name && *since <= pod.minor);
    let all = pod.context().into_iter().flat_map(|context| objects(context, "sysctls"));
    let bad: Vec<&str> = all.map(|sysctl| text(sysctl, "name")).filter(|name| !is_safe(name)).collect();
    if bad.is_empty() { None } else { violation("forbidden sysctls", bad.join(", ")) }
}

fn windows_host_process(pod: &Pod<'_>) -> Option<Violation> {
    let is_bad = |context: Option<&Object>| {
        let options = context.and_then(|context| context.object("windowsOptions"));
        options.and_then(|options| options.get("hostProcess")).and_then(Value::as_bool) == Some(true)
    };
    let names = pod.named(|container| is_bad(container.object("securityContext")));
    let who = setters(is_bad(pod.context()), &names)?;
    violation("hostProcess", format!("{who} must not set securityContext.windowsOptions.hostProcess=true"))
}

#[cfg(test)]
mod tests {
    use revisor_object::parse_json;

    use super::*;

    fn shown(level: Level, minor: Option<u32>, spec: &str) -> Vec<String> {
        let pod = match parse_json(format!("{{\"spec\":{spec}}}").as_bytes()).expect("is JSON").value {
            Value::Object(object) => object,
            other => panic!("no object: {other:?}"),
        };
        let found = violations(level, minor, &pod);
        found.into_iter().map(|Violation { reason, detail }| format!("{reason} ({detail})")).collect()
    }

    #[test]
    fn each_level_forbids_what_it_should() {
        use Level::{Baseline, Restricted};
        let careful = r#"{"containers":[{"name":"c","securityContext":{"allowPrivilegeEscalation":false,
            "capabilities":{"drop":["ALL"]},"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}}}]}"#;
        let plain = r#"{"containers":[{"name":"a"},{"name":"b"}]}"#;
        for (level, minor, spec, want) in [
            (Baseline, None, plain, vec![]),
            (Restricted, None, careful, vec![]),
            (
                Baseline,
                None,
                r#"{"hostNetwork":true,"containers":[{"name":"c","securityContext":{"privileged":true}}]}"#,
                vec![
                    "host namespaces (hostNetwork=true)",
                    r#"privileged (container "c" must not set securityContext.privileged=true)"#,
                ],
            ),
            (
                Restricted,
                None,
                plain,
                vec![
                    r#"allowPrivilegeEscalation != false (containers "a", "b" must set securityContext.allowPrivilegeEscalation=false)"#,
                    r#"unrestricted capabilities (containers "a", "b" must set securityContext.capabilities.drop=["ALL"])"#,
                    r#"runAsNonRoot != true (pod or containers "a", "b" must set securityContext.runAsNonRoot=true)"#,
                    r#"seccompProfile (pod or containers "a", "b" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")"#,
                ],
            ),
            (
                Restricted,
                Some(0),
                plain,
                vec![r#"runAsNonRoot != true (pod or containers "a", "b" must set securityContext.runAsNonRoot=true)"#],
            ),
            (
                Baseline,
                None,
                r#"{"volumes":[{"name":"v","hostPath":{"path":"/"}}],"containers":[{"name":"c","ports":[{"hostPort":80}]}]}"#,
                vec![r#"hostPath volumes (volume "v")"#, r#"hostPort (container "c" uses hostPort 80)"#],
            ),
            (
                Baseline,
                Some(28),
                r#"{"securityContext":{"sysctls":[{"name":"net.ipv4.tcp_rmem"}],"seLinuxOptions":{"type":"x","user":"u"}},"containers":[]}"#,
                vec![
                    r#"seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type "x"; user may not be set)"#,
                    "forbidden sysctls (net.ipv4.tcp_rmem)",
                ],
            ),
        ] {
            assert_eq!(shown(level, minor, spec), want, "{level:?} {minor:?} {spec}");
        }
    }
}
