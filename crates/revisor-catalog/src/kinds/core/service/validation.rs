//! What is wrong with a Service. What is wrong with its addresses is told in `cluster_ips.rs`.

use revisor_object::names::{dns1123_label, dns1123_subdomain, port_name, port_number, qualified_name};
use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, Seen, Value};

use super::cluster_ips::{validate_cluster_ip_changes, validate_cluster_ips, validate_family_changes};
use super::{ServicePort, ServiceSpec, TOPOLOGY_HINTS, TOPOLOGY_MODE};
use crate::checks::{labels, one_of, problems, required_one_of};
use crate::kinds::addresses::{endpoint_ip, legacy_cidr, legacy_ip, not_an_address};
use crate::{Feature, Features};

const SPEC: FieldPath<'static> = FieldPath::root("spec");
const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const AFFINITIES: [&str; 2] = ["ClientIP", "None"];
const TRAFFIC_POLICIES: [&str; 2] = ["Cluster", "Local"];
/// Where traffic goes if it can. All but the first are a feature.
const DISTRIBUTIONS: [&str; 3] = ["PreferClose", "PreferSameZone", "PreferSameNode"];
const IP_MODES: [&str; 2] = ["Proxy", "VIP"];

/// For how long a client may stay with its pod.
const MAX_AFFINITY_SECONDS: i64 = 86400;

/// The older way to say `loadBalancerSourceRanges`.
const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";

const ONLY_LOAD_BALANCERS: &str = "may only be used when `type` is 'LoadBalancer'";

/// What is wrong with a Service, new or in place of the old one.
pub(super) fn validate_service(service: &Object, old: Option<&Object>, features: Features) -> FieldErrors {
    let spec = ServiceSpec::of(service);
    let mut errors = FieldErrors::new();
    let annotations = service.object("metadata").and_then(|metadata| metadata.object("annotations"));
    validate_topology(annotations, &mut errors);
    if spec.ports().len() == 0 && !spec.is_headless() && !spec.is_external_name() {
        errors.push(FieldError::required(SPEC.child("ports"), ""));
    }
    validate_by_type(spec, &mut errors);
    validate_each_port(spec, &mut errors);
    errors.extend(labels(SPEC.child("selector"), spec.get("selector").and_then(Value::as_object)));
    validate_affinity(spec, &mut errors);
    errors.extend(validate_cluster_ips(service, old, features));
    let known: Seen<&str> = old.into_iter().flat_map(|old| texts(ServiceSpec::of(old).array("externalIPs"))).collect();
    for (at, ip) in texts(spec.array("externalIPs")).enumerate() {
        let path = SPEC.child("externalIPs");
        let malformed = legacy_ip(path.index(at), ip, features, |_| known.has(&ip));
        let is_malformed = !malformed.is_empty();
        errors.extend(malformed);
        if !is_malformed {
            errors.extend(endpoint_ip(path.index(at), ip));
        }
    }
    errors.extend(required_one_of(SPEC.child("type"), spec.service_type(), &TYPES));
    validate_ports_together(spec, &mut errors);
    validate_source_ranges(service, old, annotations, features, &mut errors);
    validate_load_balancer(spec, &mut errors);
    validate_traffic(spec, features, &mut errors);
    errors
}

fn validate_topology(annotations: Option<&Object>, errors: &mut FieldErrors) {
    let text = |name| annotations.and_then(|annotations| annotations.str(name));
    if let (Some(mode), Some(hints)) = (text(TOPOLOGY_MODE), text(TOPOLOGY_HINTS))
        && mode != hints
    {
        let metadata = FieldPath::root("metadata");
        let path = metadata.child("annotations");
        let detail = format!("must match annotations[{TOPOLOGY_HINTS}] when both are specified");
        errors.push(FieldError::invalid(path.key(TOPOLOGY_MODE), mode, detail));
    }
}

fn validate_by_type(spec: ServiceSpec<'_>, errors: &mut FieldErrors) {
    let of_type = spec.service_type();
    if spec.has_node_ports() && spec.is_headless() {
        let ips = SPEC.child("clusterIPs");
        let detail = format!("may not be set to 'None' for {of_type} services");
        errors.push(FieldError::invalid(ips.index(0), "None", detail));
    }
    if !spec.is_external_name() {
        return;
    }
    for name in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        let is_set = spec.get(name).is_some_and(|value| value.as_array().is_none_or(|items| !items.is_empty()));
        if is_set {
            errors.push(FieldError::forbidden(SPEC.child(name), "may not be set for ExternalName services"));
        }
    }
    // A dot in the end says that the name is complete.
    let name = spec.text("externalName");
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.is_empty() {
        errors.push(FieldError::required(SPEC.child("externalName"), ""));
    } else {
        errors.extend(problems(SPEC.child("externalName"), name, dns1123_subdomain(name)));
    }
}

fn validate_each_port(spec: ServiceSpec<'_>, errors: &mut FieldErrors) {
    let path = SPEC.child("ports");
    let must_have_name = spec.ports().len() > 1;
    let mut names = Seen::default();
    for (at, port) in spec.ports().enumerate() {
        let path = path.index(at);
        let name = port.name();
        if !name.is_empty() {
            errors.extend(problems(path.child("name"), name, dns1123_label(name)));
            if !names.is_new(name) {
                errors.push(FieldError::duplicate(path.child("name"), name));
            }
        } else if must_have_name {
            errors.push(FieldError::required(path.child("name"), ""));
        }
        validate_port(path, port, errors);
    }
}

fn validate_port(path: FieldPath<'_>, port: ServicePort<'_>, errors: &mut FieldErrors) {
    let number = |name, number: i64| {
        let path = path.child(name);
        let errors = port_number(number).into_iter().map(|problem| FieldError::invalid(path, number, problem));
        errors.collect::<FieldErrors>()
    };
    errors.extend(number("port", port.number()));
    errors.extend(required_one_of(path.child("protocol"), port.protocol(), &PROTOCOLS));
    errors.extend(match port.target() {
        Some(Value::String(name)) => problems(path.child("targetPort"), name, port_name(name)),
        target => number("targetPort", target.and_then(Value::as_i64).unwrap_or_default()),
    });
    if let Some(protocol) = port.app_protocol() {
        errors.extend(problems(path.child("appProtocol"), protocol, qualified_name(protocol)));
    }
}

fn validate_affinity(spec: ServiceSpec<'_>, errors: &mut FieldErrors) {
    let affinity = spec.text("sessionAffinity");
    errors.extend(required_one_of(SPEC.child("sessionAffinity"), affinity, &AFFINITIES));
    let path = SPEC.child("sessionAffinityConfig");
    let config = spec.get("sessionAffinityConfig").and_then(Value::as_object);
    match (affinity, config) {
        ("ClientIP", config) => {
            let client_path = path.child("clientIP");
            let client = config.and_then(|config| config.object("clientIP"));
            let seconds = client.and_then(|client| client.get("timeoutSeconds")).and_then(Value::as_i64);
            let missing = "when session affinity type is ClientIP";
            match seconds {
                _ if config.is_none() => errors.push(FieldError::required(path, missing)),
                _ if client.is_none() => errors.push(FieldError::required(client_path, missing)),
                None => errors.push(FieldError::required(client_path.child("timeoutSeconds"), missing)),
                Some(seconds) if !(1..=MAX_AFFINITY_SECONDS).contains(&seconds) => {
                    let detail = format!("must be greater than 0 and less than {MAX_AFFINITY_SECONDS}");
                    errors.push(FieldError::invalid(client_path.child("timeoutSeconds"), seconds, detail));
                }
                Some(_) => {}
            }
        }
        ("None", Some(_)) => {
            errors.push(FieldError::forbidden(path, "must not be set when session affinity is None"));
        }
        _ => {}
    }
}

/// What depends on the ports beside a port.
fn validate_ports_together(spec: ServiceSpec<'_>, errors: &mut FieldErrors) {
    let path = SPEC.child("ports");
    if spec.service_type() == "ClusterIP" {
        for (at, _) in spec.ports().enumerate().filter(|(_, port)| port.node_port() != 0) {
            let detail = "may not be used when `type` is 'ClusterIP'";
            errors.push(FieldError::forbidden(path.index(at).child("nodePort"), detail));
        }
    }
    let mut seen = Seen::default();
    for (at, port) in spec.ports().enumerate().filter(|(_, port)| port.node_port() != 0) {
        if !seen.is_new((port.protocol(), port.node_port())) {
            errors.push(FieldError::duplicate(path.index(at).child("nodePort"), port.node_port()));
        }
    }
    let mut seen = Seen::default();
    for (at, port) in spec.ports().enumerate() {
        if !seen.is_new((port.protocol(), port.number())) {
            // The original shows its own idea of a port, with everything left out but what must be unique.
            let shown = format!(
                r#"{{"Name":"","Protocol":"{}","AppProtocol":null,"Port":{},"TargetPort":0,"NodePort":0}}"#,
                port.protocol(),
                port.number()
            );
            errors.push(FieldError::duplicate(path.index(at), BadValue::Text(shown)));
        }
    }
}

/// Ranges may have blanks around them, because the annotation that they come from could.
fn validate_source_ranges(
    service: &Object,
    old: Option<&Object>,
    annotations: Option<&Object>,
    features: Features,
    errors: &mut FieldErrors,
) {
    let spec = ServiceSpec::of(service);
    let ranges = spec.array("loadBalancerSourceRanges");
    if !ranges.is_empty() {
        // The capital letter is the original's.
        let path = SPEC.child("LoadBalancerSourceRanges");
        if !spec.is_load_balancer() {
            errors.push(FieldError::forbidden(path, ONLY_LOAD_BALANCERS));
        }
        let known = old.map(|old| ServiceSpec::of(old).array("loadBalancerSourceRanges")).unwrap_or_default();
        let known: Seen<&str> = texts(known).map(str::trim).collect();
        for (at, range) in texts(ranges).map(str::trim).enumerate() {
            errors.extend(legacy_cidr(path.index(at), range, features, |_| known.has(&range)));
        }
        return;
    }
    let Some(text) = annotations.and_then(|annotations| annotations.str(SOURCE_RANGES)) else { return };
    let metadata = FieldPath::root("metadata");
    let path = metadata.child("annotations");
    if !spec.is_load_balancer() {
        errors.push(FieldError::forbidden(path.key(SOURCE_RANGES), ONLY_LOAD_BALANCERS));
    }
    let before = old.and_then(|old| old.at(&["metadata", "annotations", SOURCE_RANGES])).and_then(Value::as_str);
    if before != Some(text) && !text.trim().is_empty() {
        for range in text.trim().split(',') {
            errors.extend(legacy_cidr(path.key(SOURCE_RANGES), range.trim(), features, |_| false));
        }
    }
}

fn validate_load_balancer(spec: ServiceSpec<'_>, errors: &mut FieldErrors) {
    let allocates = spec.allocates_for_load_balancer();
    if allocates.is_some() && !spec.is_load_balancer() {
        errors.push(FieldError::forbidden(SPEC.child("allocateLoadBalancerNodePorts"), ONLY_LOAD_BALANCERS));
    }
    if allocates.is_none() && spec.is_load_balancer() {
        errors.push(FieldError::required("allocateLoadBalancerNodePorts", ""));
    }
    errors.extend(validate_class(spec));
}

fn validate_class(spec: ServiceSpec<'_>) -> FieldErrors {
    let path = SPEC.child("loadBalancerClass");
    match spec.get("loadBalancerClass").and_then(Value::as_str) {
        None => FieldErrors::new(),
        Some(class) if spec.is_load_balancer() => problems(path, class, qualified_name(class)),
        Some(_) => FieldErrors::from([FieldError::forbidden(path, ONLY_LOAD_BALANCERS)]),
    }
}

fn validate_traffic(spec: ServiceSpec<'_>, features: Features, errors: &mut FieldErrors) {
    let path = SPEC.child("externalTrafficPolicy");
    let policy = spec.text("externalTrafficPolicy");
    if spec.is_externally_accessible() {
        errors.extend(required_one_of(path, policy, &TRAFFIC_POLICIES));
    } else if !policy.is_empty() {
        errors.push(FieldError::invalid(path, policy, "may only be set for externally-accessible services"));
    }

    let path = SPEC.child("healthCheckNodePort");
    let number = spec.health_check_node_port();
    if spec.needs_health_check() {
        if number == 0 {
            errors.push(FieldError::required(path, ""));
        } else {
            errors.extend(port_number(number).into_iter().map(|problem| FieldError::invalid(path, number, problem)));
        }
    } else if number != 0 {
        let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        errors.push(FieldError::invalid(path, number, detail));
    }

    let path = SPEC.child("internalTrafficPolicy");
    match spec.get("internalTrafficPolicy").and_then(Value::as_str) {
        Some(policy) => errors.extend(one_of(path, policy, &TRAFFIC_POLICIES)),
        None if matches!(spec.service_type(), "ClusterIP" | "NodePort" | "LoadBalancer") => {
            errors.push(FieldError::required(path, ""));
        }
        None => {}
    }
    if let Some(distribution) = spec.get("trafficDistribution").and_then(Value::as_str) {
        let known = if features.has(Feature::PreferSameTrafficDistribution) { 3 } else { 1 };
        errors.extend(one_of(SPEC.child("trafficDistribution"), distribution, &DISTRIBUTIONS[..known]));
    }
}

/// What may not change about a Service.
pub(super) fn validate_changes(service: &Object, old: &Object) -> FieldErrors {
    let (new, was) = (ServiceSpec::of(service), ServiceSpec::of(old));
    let mut errors = validate_cluster_ip_changes(new, was);
    errors.extend(validate_family_changes(new, was));
    let class = new.get("loadBalancerClass");
    if new.is_load_balancer() && was.is_load_balancer() && class != was.get("loadBalancerClass") {
        let value = class.map_or(BadValue::of(&Value::Null), BadValue::of);
        errors.push(FieldError::invalid(SPEC.child("loadBalancerClass"), value, "may not change once set"));
    }
    // The original looks at the class here and once more with the whole object.
    errors.extend(validate_class(new));
    let both_checked = new.needs_health_check() && was.needs_health_check();
    if both_checked && new.health_check_node_port() != was.health_check_node_port() {
        errors.push(FieldError::forbidden(SPEC.child("healthCheckNodePort"), "field is immutable"));
    }
    errors
}

/// What is wrong with where a load balancer can be reached.
pub(super) fn validate_status(service: &Object, old: &Object, features: Features) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let status = FieldPath::root("status");
    let balancer = status.child("loadBalancer");
    let path = balancer.child("ingress");
    let entries = ingress(service);
    if !ServiceSpec::of(service).is_load_balancer() {
        if !entries.is_empty() {
            errors.push(FieldError::forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'"));
        }
        return errors;
    }
    let known: Seen<&str> = ingress(old).iter().filter_map(|entry| entry.as_object()?.str("ip")).collect();
    for (at, entry) in entries.iter().filter_map(Value::as_object).enumerate() {
        let path = path.index(at);
        let (ip, mode) = (entry.str("ip").unwrap_or_default(), entry.str("ipMode"));
        if !ip.is_empty() {
            errors.extend(legacy_ip(path.child("ip"), ip, features, |_| known.has(&ip)));
        }
        let mode_path = path.child("ipMode");
        match mode {
            None if !ip.is_empty() => {
                errors.push(FieldError::required(mode_path, "must be specified when `ip` is set"));
            }
            None => {}
            Some(_) if ip.is_empty() => {
                errors.push(FieldError::forbidden(mode_path, "may not be specified when `ip` is not set"));
            }
            Some(mode) => errors.extend(one_of(mode_path, mode, &IP_MODES)),
        }
        if let Some(host) = entry.str("hostname") {
            errors.extend(problems(path.child("hostname"), host, dns1123_subdomain(host)));
            errors.extend(not_an_address(path.child("hostname"), host));
        }
    }
    errors
}

fn ingress(service: &Object) -> &[Value] {
    service.at(&["status", "loadBalancer", "ingress"]).and_then(Value::as_array).unwrap_or_default()
}

fn texts(values: &[Value]) -> impl Iterator<Item = &str> {
    values.iter().map(|value| value.as_str().unwrap_or_default())
}
