//! Which families of addresses a Service has: what it asks for, what it had, and what there is.

use std::net::IpAddr;

use revisor_catalog::{Features, ServiceSpec, validate_cluster_ips};
use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, Value, parse_ip_sloppy};

const SPEC: FieldPath<'static> = FieldPath::root("spec");
const SINGLE: &str = "SingleStack";
const PREFER: &str = "PreferDualStack";
const REQUIRE: &str = "RequireDualStack";

/// A family of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    pub(crate) fn of(ip: IpAddr) -> Family {
        if ip.is_ipv6() { Family::V6 } else { Family::V4 }
    }

    pub(crate) fn parse(name: &str) -> Option<Family> {
        [Family::V4, Family::V6].into_iter().find(|family| family.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        }
    }

    fn other(self) -> Family {
        match self {
            Family::V4 => Family::V6,
            Family::V6 => Family::V4,
        }
    }
}

/// The families that a Service names. Those that there are not were refused before.
pub(super) fn families_of(service: &Object) -> Vec<Family> {
    texts(ServiceSpec::of(service).ip_families()).filter_map(Family::parse).collect()
}

/// Fills in `ipFamilyPolicy` and `ipFamilies`, or says why they cannot be what they are. `configured` are the families
/// that there are ranges for, the usual one first.
pub(super) fn initialize_families(
    service: &mut Object,
    old: Option<&Object>,
    configured: &[Family],
    features: Features,
) -> Result<(), FieldErrors> {
    if ServiceSpec::of(service).is_external_name() || is_left_as_it_was(service, old) {
        return Ok(());
    }
    initialize_policy(service, old);
    // What is malformed would only lead to odd answers below.
    let malformed = validate_cluster_ips(service, old, features);
    if !malformed.is_empty() {
        return Err(malformed);
    }
    let mut errors = FieldErrors::new();
    if let Some(old) = old {
        shrink(service, old, &mut errors);
    }
    check_single(service, &mut errors);
    infer_from_addresses(service, configured, &mut errors);
    if !errors.is_empty() {
        return Err(errors);
    }
    let usual = configured.first().copied().unwrap_or(Family::V4);
    let spec = ServiceSpec::of(service);
    let policy = spec.ip_family_policy().unwrap_or_default().to_owned();
    if spec.cluster_ip() == "None" && spec.is_without_selector() {
        // Whoever makes endpoints for it by hand may do so for both families, whatever there are ranges for.
        let mut families = families_of(service);
        if families.is_empty() {
            families.push(usual);
        }
        if families.len() < 2 && policy != SINGLE {
            families.push(families[0].other());
        }
        set_families(service, &families);
        return Ok(());
    }
    if policy == REQUIRE && configured.len() < 2 {
        let detail = "this cluster is not configured for dual-stack services";
        errors.push(FieldError::invalid(SPEC.child("ipFamilyPolicy"), policy.as_str(), detail));
    }
    let path = SPEC.child("ipFamilies");
    for (at, name) in texts(spec.ip_families()).enumerate() {
        if !configured.iter().any(|family| family.name() == name) {
            errors.push(FieldError::invalid(path.index(at), name, "not configured on this cluster"));
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut families = families_of(service);
    if families.is_empty() {
        families.push(usual);
    }
    if policy != SINGLE && families.len() == 1 && configured.len() == 2 {
        families.push(families[0].other());
    }
    set_families(service, &families);
    Ok(())
}

/// A Service that prefers two families and was not touched here stays with what it has, even if there are other ranges
/// by now.
pub(super) fn is_left_as_it_was(service: &Object, old: Option<&Object>) -> bool {
    let Some(old) = old else { return false };
    let (new, was) = (ServiceSpec::of(service), ServiceSpec::of(old));
    new.ip_family_policy() == Some(PREFER)
        && matches!(was.ip_family_policy(), None | Some(PREFER))
        && new.service_type() == was.service_type()
        && matches!(new.service_type(), "ClusterIP" | "NodePort" | "LoadBalancer")
        && new.cluster_ips() == was.cluster_ips()
        && new.ip_families() == was.ip_families()
}

/// A policy that is not given is the one from before. It is never widened or narrowed without being told.
fn initialize_policy(service: &mut Object, old: Option<&Object>) {
    let spec = ServiceSpec::of(service);
    if spec.ip_family_policy().is_some() {
        return;
    }
    let before = old.and_then(|old| ServiceSpec::of(old).ip_family_policy());
    let policy = match before {
        Some(policy) => policy,
        None if spec.cluster_ip() == "None" && spec.is_without_selector() => REQUIRE,
        None => SINGLE,
    };
    service.object_mut("spec").insert("ipFamilyPolicy", policy);
}

/// To ask for one family is enough to lose the second. To leave it out is not.
fn shrink(service: &mut Object, old: &Object, errors: &mut FieldErrors) {
    let (new, was) = (ServiceSpec::of(service), ServiceSpec::of(old));
    let policy = new.ip_family_policy().unwrap_or_default();
    if policy == SINGLE {
        let loses = |now: &[Value], before: &[Value]| now == before && now.len() > 1;
        let loses_ip = loses(new.cluster_ips(), was.cluster_ips());
        let loses_family = loses(new.ip_families(), was.ip_families());
        let spec = service.object_mut("spec");
        for (name, is_lost) in [("clusterIPs", loses_ip), ("ipFamilies", loses_family)] {
            if let Some(list) = spec.array_mut(name).filter(|_| is_lost) {
                list.truncate(1);
            }
        }
        return;
    }
    let path = SPEC.child("ipFamilyPolicy");
    let is_reduced = |now: &[Value], before: &[Value]| !now.is_empty() && now.len() < before.len();
    if is_reduced(new.cluster_ips(), was.cluster_ips()) {
        let detail = "must be 'SingleStack' to release the secondary cluster IP";
        errors.push(FieldError::invalid(path, policy, detail));
    }
    if is_reduced(new.ip_families(), was.ip_families()) {
        let detail = "must be 'SingleStack' to release the secondary IP family";
        errors.push(FieldError::invalid(path, policy, detail));
    }
}

fn check_single(service: &Object, errors: &mut FieldErrors) {
    let spec = ServiceSpec::of(service);
    if spec.ip_family_policy() != Some(SINGLE) {
        return;
    }
    for (list, what) in [(spec.cluster_ips(), "cluster IPs"), (spec.ip_families(), "IP families")] {
        if list.len() == 2 {
            let detail = format!("must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified");
            errors.push(FieldError::invalid(SPEC.child("ipFamilyPolicy"), SINGLE, detail));
        }
    }
}

/// Addresses tell their families, where those are not named.
fn infer_from_addresses(service: &mut Object, configured: &[Family], errors: &mut FieldErrors) {
    let spec = ServiceSpec::of(service);
    let path = SPEC.child("clusterIPs");
    let mut families: Vec<Value> = spec.ip_families().to_vec();
    for (at, ip) in texts(spec.cluster_ips()).enumerate().take_while(|(_, ip)| *ip != "None") {
        if at < families.len() {
            continue;
        }
        let family = parse_ip_sloppy(ip).map_or(Family::V4, Family::of);
        if configured.contains(&family) {
            families.push(Value::from(family.name()));
        } else {
            let detail = format!("{} is not configured on this cluster", family.name());
            errors.push(FieldError::invalid(path.index(at), BadValue::of(&spec.cluster_ips()), detail));
        }
    }
    if !families.is_empty() {
        service.object_mut("spec").insert("ipFamilies", families);
    }
}

fn set_families(service: &mut Object, families: &[Family]) {
    let names: Vec<Value> = families.iter().map(|family| Value::from(family.name())).collect();
    service.object_mut("spec").insert("ipFamilies", names);
}

fn texts(values: &[Value]) -> impl Iterator<Item = &str> {
    values.iter().map(|value| value.as_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use revisor_catalog::Catalog;
    use revisor_object::parse_json;

    const FOUR: &[Family] = &[Family::V4];
    const BOTH: &[Family] = &[Family::V4, Family::V6];

    fn service(spec: &str) -> Object {
        let value = parse_json(format!(r#"{{"spec":{spec}}}"#).as_bytes()).expect("is JSON").value;
        value.as_object().expect("is an object").clone()
    }

    /// The policy and families, or the fields that are at fault.
    fn initialized(spec: &str, old: Option<&str>, configured: &[Family]) -> String {
        let mut object = service(spec);
        match initialize_families(&mut object, old.map(service).as_ref(), configured, Catalog::default().features()) {
            Ok(()) => {
                let spec = ServiceSpec::of(&object);
                let families: Vec<&str> = texts(spec.ip_families()).collect();
                format!("{} {}", spec.ip_family_policy().unwrap_or("-"), families.join("+"))
            }
            Err(errors) => errors.into_iter().map(|error| error.field).collect::<Vec<_>>().join(" "),
        }
    }

    #[test]
    fn new_services_get_what_there_is_of_what_they_want() {
        for (spec, configured, want) in [
            (r#"{"type":"ClusterIP"}"#, FOUR, "SingleStack IPv4"),
            (r#"{"type":"ClusterIP"}"#, BOTH, "SingleStack IPv4"),
            (r#"{"type":"ExternalName"}"#, FOUR, "- "),
            (r#"{"ipFamilyPolicy":"PreferDualStack"}"#, FOUR, "PreferDualStack IPv4"),
            (r#"{"ipFamilyPolicy":"PreferDualStack"}"#, BOTH, "PreferDualStack IPv4+IPv6"),
            (r#"{"ipFamilyPolicy":"PreferDualStack","ipFamilies":["IPv6"]}"#, BOTH, "PreferDualStack IPv6+IPv4"),
            (r#"{"ipFamilyPolicy":"RequireDualStack"}"#, FOUR, "spec.ipFamilyPolicy"),
            (r#"{"ipFamilyPolicy":"RequireDualStack"}"#, BOTH, "RequireDualStack IPv4+IPv6"),
            (r#"{"ipFamilies":["IPv6"]}"#, FOUR, "spec.ipFamilies[0]"),
            (r#"{"ipFamilies":["IPv4","IPv6"]}"#, BOTH, "spec.ipFamilyPolicy"),
            (r#"{"clusterIP":"fd00::1","clusterIPs":["fd00::1"]}"#, FOUR, "spec.clusterIPs[0]"),
            (r#"{"clusterIP":"fd00::1","clusterIPs":["fd00::1"]}"#, BOTH, "SingleStack IPv6"),
            (r#"{"clusterIP":"None","clusterIPs":["None"]}"#, FOUR, "RequireDualStack IPv4+IPv6"),
            (r#"{"clusterIP":"None","clusterIPs":["None"],"selector":{"a":"b"}}"#, FOUR, "SingleStack IPv4"),
            (r#"{"clusterIP":"x","clusterIPs":["x"]}"#, FOUR, "spec.clusterIPs[0]"),
        ] {
            assert_eq!(initialized(spec, None, configured), want, "{spec}");
        }
    }

    #[test]
    fn updates_keep_the_policy_and_lose_a_family_only_when_told() {
        let ips = r#""type":"ClusterIP","clusterIP":"10.0.0.1","clusterIPs":["10.0.0.1","fd00::1"]"#;
        let dual = format!(r#"{{{ips},"ipFamilyPolicy":"PreferDualStack","ipFamilies":["IPv4","IPv6"]}}"#);
        for (name, spec, want) in [
            ("as it was", dual.clone(), "PreferDualStack IPv4+IPv6"),
            ("no policy", format!(r#"{{{ips},"ipFamilies":["IPv4","IPv6"]}}"#), "PreferDualStack IPv4+IPv6"),
            ("narrowed", dual.replace("PreferDualStack", "SingleStack"), "SingleStack IPv4"),
            ("without the family", dual.replace(r#","IPv6"]"#, "]"), "spec.ipFamilyPolicy"),
            ("without the address", dual.replace(r#","fd00::1"]"#, "]"), "spec.ipFamilyPolicy"),
        ] {
            assert_eq!(initialized(&spec, Some(&dual), BOTH), want, "{name}");
        }
    }
}
