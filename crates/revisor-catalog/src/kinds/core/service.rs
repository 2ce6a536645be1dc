//! Services: one address for many pods. Their fields hang together: the type decides which of the others make sense.
//!
//! Addresses and node ports are given out by the registry, before a Service is prepared and validated here.

mod cluster_ips;
mod spec;
mod validation;

use revisor_object::names::NameRule;
use revisor_object::{FieldErrors, FieldPath, Object, Seen, Value, cidr_warnings, ip_warnings};

pub use self::cluster_ips::validate_cluster_ips;
pub use self::spec::{ServicePort, ServiceSpec};
use self::validation::{validate_changes, validate_service, validate_status};
use crate::checks::problems;
use crate::strategy::spec_or_status;
use crate::{Circumstances, Feature, Features, Part, Places, Strategy};

/// For how long a client stays with its pod, if the Service does not say.
const AFFINITY_SECONDS: i32 = 10800;

/// The older name of [`TOPOLOGY_MODE`].
const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";

pub(crate) struct Services {
    pub(crate) features: Features,
}

impl Strategy for Services {
    fn default(&self, object: &mut Object) {
        let spec = object.object_mut("spec");
        default_affinity(spec);
        for port in spec.array_mut("ports").into_iter().flatten().filter_map(Value::as_object_mut) {
            let is_unset = |target: &Value| *target == Value::Int(0) || target.as_str() == Some("");
            if port.get("targetPort").is_none_or(is_unset) {
                port.insert("targetPort", port.get("port").cloned().unwrap_or(Value::Int(0)));
            }
        }
        let view = ServiceSpec::of(object);
        let is_accessible = view.is_externally_accessible();
        let is_internal = matches!(view.service_type(), "ClusterIP" | "NodePort" | "LoadBalancer");
        let is_load_balancer = view.is_load_balancer();
        let spec = object.object_mut("spec");
        if is_accessible && !spec.contains("externalTrafficPolicy") {
            spec.insert("externalTrafficPolicy", "Cluster");
        }
        if is_internal && !spec.contains("internalTrafficPolicy") {
            spec.insert("internalTrafficPolicy", "Cluster");
        }
        if is_load_balancer {
            if !spec.contains("allocateLoadBalancerNodePorts") {
                spec.insert("allocateLoadBalancerNodePorts", true);
            }
            default_ip_modes(object);
        }
    }

    fn untouched(&self, part: Part<'_>) -> Places {
        spec_or_status(part)
    }

    fn settle(&self, object: &mut Object, old: Option<&Object>, _: Circumstances<'_>) {
        if let Some(old) = old {
            drop_what_the_type_left_behind(object, old);
        }
        forget_needless_policy(object);
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        let mut errors = self.validate_name(object);
        errors.extend(validate_service(object, None, self.features));
        errors
    }

    fn validate_update(&self, object: &Object, old: &Object, part: Part<'_>) -> FieldErrors {
        match part {
            Part::Whole => {
                let mut errors = validate_changes(object, old);
                errors.extend(validate_service(object, Some(old), self.features));
                errors
            }
            Part::Subresource(_) => validate_status(object, old, self.features),
        }
    }

    fn warnings(&self, object: &Object, _: Option<&Object>) -> Vec<String> {
        warnings(object)
    }

    fn subresource_warnings(&self, object: &Object, _: &Object) -> Vec<String> {
        let ingress = object.at(&["status", "loadBalancer", "ingress"]).and_then(Value::as_array).unwrap_or_default();
        let ips = ingress.iter().map(|entry| entry.as_object().and_then(|entry| entry.str("ip")).unwrap_or_default());
        ips.enumerate()
            .filter(|(_, ip)| !ip.is_empty())
            .flat_map(|(at, ip)| ip_warnings(format_args!("status.loadBalancer.ingress[{at}]"), ip))
            .collect()
    }
}

impl Services {
    fn validate_name(&self, object: &Object) -> FieldErrors {
        let relaxed = self.features.has(Feature::RelaxedServiceNameValidation);
        let rule = if relaxed { NameRule::Dns1123Label } else { NameRule::Dns1035Label };
        let path = FieldPath::root("metadata");
        let text = |name| object.at(&["metadata", name]).and_then(Value::as_str).unwrap_or_default();
        let mut errors = FieldErrors::new();
        let prefix = text("generateName");
        if !prefix.is_empty() {
            errors.extend(problems(path.child("generateName"), prefix, rule.check_prefix(prefix)));
        }
        let name = text("name");
        if !name.is_empty() {
            errors.extend(problems(path.child("name"), name, rule.check(name)));
        }
        errors
    }
}

fn default_affinity(spec: &mut Object) {
    match spec.str("sessionAffinity") {
        Some("None") => {
            spec.remove("sessionAffinityConfig");
        }
        Some("ClientIP") if spec.at(&["sessionAffinityConfig", "clientIP", "timeoutSeconds"]).is_none() => {
            let mut config = Object::new();
            config.object_mut("clientIP").insert("timeoutSeconds", AFFINITY_SECONDS);
            spec.insert("sessionAffinityConfig", config);
        }
        _ => {}
    }
}

/// Addresses of a load balancer are reached directly if nothing else is said.
fn default_ip_modes(object: &mut Object) {
    let status = object.get_mut("status").and_then(Value::as_object_mut);
    let balancer = status.and_then(|status| status.get_mut("loadBalancer")).and_then(Value::as_object_mut);
    let ingress = balancer.and_then(|balancer| balancer.array_mut("ingress"));
    for entry in ingress.into_iter().flatten().filter_map(Value::as_object_mut) {
        if entry.contains("ip") && !entry.contains("ipMode") {
            entry.insert("ipMode", "VIP");
        }
    }
}

/// The original stores the internal policy of an ExternalName and hides it whenever it is read.
pub(crate) fn forget_needless_policy(object: &mut Object) {
    let view = ServiceSpec::of(object);
    if view.is_external_name() && matches!(view.text("internalTrafficPolicy"), "Cluster" | "Local") {
        object.object_mut("spec").remove("internalTrafficPolicy");
    }
}

/// Takes out what the new type has no use for, if the client left it as it was: it may be what the server filled in.
/// What the client set itself stays, and is refused by validation.
fn drop_what_the_type_left_behind(object: &mut Object, old: &Object) {
    let (new, was) = (ServiceSpec::of(object), ServiceSpec::of(old));
    let is_same = |name: &str| new.get(name) == was.get(name);
    let mut dropped: Vec<&str> = Vec::new();
    if !was.is_external_name() && new.is_external_name() {
        if is_same("clusterIP") && is_same("clusterIPs") {
            dropped.extend(["clusterIP", "clusterIPs"]);
        }
        dropped.extend(["ipFamilies", "ipFamilyPolicy"].into_iter().filter(|name| is_same(name)));
    }
    let adds_no_port = || {
        let known: Seen<i64> = was.node_ports().collect();
        new.node_ports().all(|number| known.has(&number))
    };
    let drops_ports = was.has_node_ports() && !new.has_node_ports() && adds_no_port();
    if was.needs_health_check() && !new.needs_health_check() && is_same("healthCheckNodePort") {
        dropped.push("healthCheckNodePort");
    }
    if was.is_load_balancer() && !new.is_load_balancer() {
        let both = (new.allocates_for_load_balancer(), was.allocates_for_load_balancer());
        if matches!(both, (Some(new), Some(was)) if new == was) {
            dropped.push("allocateLoadBalancerNodePorts");
        }
        dropped.extend(is_same("loadBalancerClass").then_some("loadBalancerClass"));
    }
    if was.is_externally_accessible() && !new.is_externally_accessible() && is_same("externalTrafficPolicy") {
        dropped.push("externalTrafficPolicy");
    }
    let is_load_balancer = new.is_load_balancer();
    let spec = object.object_mut("spec");
    for name in dropped {
        spec.remove(name);
    }
    if drops_ports {
        for port in spec.array_mut("ports").into_iter().flatten().filter_map(Value::as_object_mut) {
            port.remove("nodePort");
        }
    }
    if !is_load_balancer {
        object.object_mut("status").insert("loadBalancer", Object::new());
    }
}

fn warnings(object: &Object) -> Vec<String> {
    let mut warnings = Vec::new();
    let spec = ServiceSpec::of(object);
    let annotations = object.object("metadata").and_then(|metadata| metadata.object("annotations"));
    if annotations.is_some_and(|annotations| annotations.contains(TOPOLOGY_HINTS)) {
        warnings.push(format!("annotation {TOPOLOGY_HINTS} is deprecated, please use {TOPOLOGY_MODE} instead"));
    }
    let texts = |name: &str| spec.array(name).iter().map(|text| text.as_str().unwrap_or_default()).enumerate();
    if !matches!(spec.cluster_ip(), "" | "None") {
        for (at, ip) in texts("clusterIPs") {
            warnings.extend(ip_warnings(format_args!("spec.clusterIPs[{at}]"), ip));
        }
    }
    let has_external_ips = !spec.array("externalIPs").is_empty();
    let is_headless = spec.service_type() == "ClusterIP" && spec.cluster_ip() == "None";
    let balancer_ip = spec.text("loadBalancerIP");
    let mut warn = |is_unwise: bool, text: &str| warnings.extend(is_unwise.then(|| text.to_owned()));
    if is_headless {
        warn(!balancer_ip.is_empty(), "spec.loadBalancerIP is ignored for headless services");
        warn(has_external_ips, "spec.externalIPs is ignored for headless services");
        warn(spec.text("sessionAffinity") != "None", "spec.SessionAffinity is ignored for headless services");
    }
    for (at, ip) in texts("externalIPs") {
        warnings.extend(ip_warnings(format_args!("spec.externalIPs[{at}]"), ip));
    }
    let mut warn = |is_unwise: bool, text: &str| warnings.extend(is_unwise.then(|| text.to_owned()));
    warn(
        has_external_ips && !is_headless && !spec.is_external_name(),
        "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
    );
    if !balancer_ip.is_empty() {
        warnings.extend(ip_warnings("spec.loadBalancerIP", balancer_ip));
    }
    for (at, range) in texts("loadBalancerSourceRanges") {
        warnings.extend(cidr_warnings(format_args!("spec.loadBalancerSourceRanges[{at}]"), range));
    }
    let mut warn = |is_unwise: bool, text: &str| warnings.extend(is_unwise.then(|| text.to_owned()));
    warn(
        spec.is_external_name() && has_external_ips,
        r#"spec.externalIPs is ignored when spec.type is "ExternalName""#,
    );
    warn(
        !spec.is_external_name() && !spec.text("externalName").is_empty(),
        r#"spec.externalName is ignored when spec.type is not "ExternalName""#,
    );
    warn(
        spec.text("trafficDistribution") == "PreferClose",
        r#"spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone""#,
    );
    warnings
}

#[cfg(test)]
mod tests;
