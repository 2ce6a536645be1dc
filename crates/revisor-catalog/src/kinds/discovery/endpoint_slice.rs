//! EndpointSlices: some of the places that a Service leads to, all of one family.

use revisor_object::names::{
    dns1123_label, dns1123_subdomain, fully_qualified_domain_name, label_value, qualified_name,
};
use revisor_object::{
    FieldError, FieldErrors, FieldPath, Object, Seen, Value, ip_problems, ip_warnings, parse_ip_sloppy,
};

use crate::checks::{immutable, labels, problems, required_one_of};
use crate::kinds::addresses::{endpoint_ip, legacy_ip};
use crate::{Circumstances, Features, Part, Places, Strategy};

const ADDRESS_TYPES: [&str; 3] = ["FQDN", "IPv4", "IPv6"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const MAX_ENDPOINTS: usize = 1000;
const MAX_ADDRESSES: usize = 100;
const MAX_PORTS: usize = 20000;
const MAX_TOPOLOGY_LABELS: usize = 16;
const MAX_HINTS: usize = 8;

/// Who made the object, as far as a label says so.
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";

/// The controllers that write addresses as they should be.
const CONTROLLERS: [&str; 2] = ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"];

/// The key of a topology that once told the node.
const HOST_NAME: &str = "kubernetes.io/hostname";

pub(crate) struct EndpointSlices {
    pub(crate) features: Features,
}

impl Strategy for EndpointSlices {
    fn default(&self, object: &mut Object) {
        // Conditions are always stored as something, so that a change is one.
        for endpoint in object.array_mut("endpoints").into_iter().flatten().filter_map(Value::as_object_mut) {
            endpoint.object_mut("conditions");
        }
    }

    fn tracked(&self) -> Places {
        &[&["addressType"], &["endpoints"], &["ports"], &["metadata", "labels"]]
    }

    fn settle(&self, object: &mut Object, old: Option<&Object>, _: Circumstances<'_>) {
        drop_topology(object, old);
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        let mut errors = validate_head(object);
        errors.extend(validate_endpoints(object, self.features));
        errors
    }

    fn validate_update(&self, object: &Object, old: &Object, _: Part<'_>) -> FieldErrors {
        let mut errors = validate_head(object);
        let found = validate_endpoints(object, self.features);
        // What was once let in may stay.
        if !found.is_empty() && object.array("endpoints") != old.array("endpoints") {
            errors.extend(found);
        }
        errors.extend(immutable(FieldPath::root("addressType"), object.get("addressType"), old.get("addressType")));
        errors
    }

    fn warnings(&self, object: &Object, old: Option<&Object>) -> Vec<String> {
        let mut warnings = Vec::new();
        if old.is_none() && object.str("addressType") == Some("FQDN") {
            // The path is the original's, which has no spec either.
            warnings.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
        }
        let managed_by = object.at(&["metadata", "labels", MANAGED_BY]).and_then(Value::as_str).unwrap_or_default();
        if CONTROLLERS.contains(&managed_by) {
            return warnings;
        }
        for (at, endpoint) in endpoints(object).enumerate() {
            for (index, address) in texts(endpoint.array("addresses")).enumerate() {
                warnings.extend(ip_warnings(format_args!("endpoints[{at}].addresses[{index}]"), address));
            }
        }
        warnings
    }
}

fn endpoints(object: &Object) -> impl ExactSizeIterator<Item = &Object> {
    const NONE: &Object = &Object::new();
    object.array("endpoints").iter().map(|endpoint| endpoint.as_object().unwrap_or(NONE))
}

fn texts(values: &[Value]) -> impl Iterator<Item = &str> {
    values.iter().map(|value| value.as_str().unwrap_or_default())
}

/// The topology of endpoints cannot be written any more. A node that only it told moves to the field for it.
fn drop_topology(object: &mut Object, old: Option<&Object>) {
    if old.is_some_and(|old| old.array("endpoints") == object.array("endpoints")) {
        return;
    }
    let node_of = |endpoint: &Object| {
        endpoint.object("deprecatedTopology").and_then(|topology| topology.str(HOST_NAME)).map(str::to_owned)
    };
    let known: Seen<String> = old.into_iter().flat_map(endpoints).filter_map(node_of).collect();
    for endpoint in object.array_mut("endpoints").into_iter().flatten().filter_map(Value::as_object_mut) {
        let is_good = |node: &String| !node.is_empty() && known.has(node) && dns1123_subdomain(node).is_empty();
        let node = node_of(endpoint).filter(is_good);
        if let Some(node) = node.filter(|_| !endpoint.contains("nodeName")) {
            endpoint.insert("nodeName", node);
        }
        endpoint.remove("deprecatedTopology");
    }
}

/// What is wrong with everything but the endpoints.
fn validate_head(object: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let address_type = object.str("addressType").unwrap_or_default();
    errors.extend(required_one_of(FieldPath::root("addressType"), address_type, &ADDRESS_TYPES));
    let path = FieldPath::root("ports");
    let ports = object.array("ports");
    if ports.len() > MAX_PORTS {
        errors.push(FieldError::too_many(path, ports.len(), MAX_PORTS));
        return errors;
    }
    let mut names = std::collections::HashSet::new();
    for (at, port) in ports.iter().filter_map(Value::as_object).enumerate() {
        let path = path.index(at);
        let name = port.str("name").unwrap_or_default();
        if !name.is_empty() {
            errors.extend(problems(path.child("name"), name, dns1123_label(name)));
        }
        if !names.insert(name) {
            errors.push(FieldError::duplicate(path.child("name"), name));
        }
        match port.str("protocol") {
            Some(protocol) if !PROTOCOLS.contains(&protocol) => {
                errors.push(FieldError::not_supported(path.child("protocol"), protocol, &PROTOCOLS));
            }
            Some(_) => {}
            None => errors.push(FieldError::required(path.child("protocol"), "")),
        }
        if let Some(protocol) = port.str("appProtocol") {
            errors.extend(problems(path.child("appProtocol"), protocol, qualified_name(protocol)));
        }
    }
    errors
}

fn validate_endpoints(object: &Object, features: Features) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let path = FieldPath::root("endpoints");
    let count = endpoints(object).len();
    if count > MAX_ENDPOINTS {
        return FieldErrors::from([FieldError::too_many(path, count, MAX_ENDPOINTS)]);
    }
    let address_type = object.str("addressType").unwrap_or_default();
    for (at, endpoint) in endpoints(object).enumerate() {
        validate_endpoint(path.index(at), endpoint, address_type, features, &mut errors);
    }
    errors
}

fn validate_endpoint(
    path: FieldPath<'_>,
    endpoint: &Object,
    address_type: &str,
    features: Features,
    errors: &mut FieldErrors,
) {
    let addresses_path = path.child("addresses");
    let addresses = endpoint.array("addresses");
    if addresses.is_empty() {
        errors.push(FieldError::required(addresses_path, "must contain at least 1 address"));
    } else if addresses.len() > MAX_ADDRESSES {
        errors.push(FieldError::too_many(addresses_path, addresses.len(), MAX_ADDRESSES));
    }
    for (at, address) in texts(addresses).enumerate() {
        let malformed = match address_type {
            "IPv4" => legacy_ip(addresses_path.index(at), address, features, |_| false),
            "IPv6" => problems(addresses_path.index(at), address, ip_problems(address)),
            _ => FieldErrors::new(),
        };
        if malformed.is_empty() {
            validate_address(addresses_path, at, address, address_type, errors);
        }
        errors.extend(malformed);
    }
    if let Some(node) = endpoint.str("nodeName") {
        errors.extend(problems(path.child("nodeName"), node, dns1123_subdomain(node)));
    }
    if let Some(topology) = endpoint.object("deprecatedTopology") {
        let path = path.child("deprecatedTopology");
        if topology.len() > MAX_TOPOLOGY_LABELS {
            errors.push(FieldError::too_many(path, topology.len(), MAX_TOPOLOGY_LABELS));
        }
        errors.extend(labels(path, Some(topology)));
    }
    if let Some(host) = endpoint.str("hostname") {
        errors.extend(problems(path.child("hostname"), host, dns1123_label(host)));
    }
    if let Some(hints) = endpoint.object("hints") {
        validate_hints(path.child("hints"), hints, errors);
    }
}

/// What is wrong with an address that is well formed.
fn validate_address(path: FieldPath<'_>, at: usize, address: &str, address_type: &str, errors: &mut FieldErrors) {
    let is_six = || parse_ip_sloppy(address).is_some_and(|ip| ip.is_ipv6());
    let (is_right, wanted) = match address_type {
        "IPv4" => (!is_six(), "must be an IPv4 address"),
        "IPv6" => (is_six(), "must be an IPv6 address"),
        "FQDN" => {
            errors.extend(fully_qualified_domain_name(&path.index(at), address));
            return;
        }
        _ => return,
    };
    if !is_right {
        // The original blames the list.
        errors.push(FieldError::invalid(path, address, wanted));
    }
    errors.extend(endpoint_ip(path.index(at), address));
}

fn validate_hints(path: FieldPath<'_>, hints: &Object, errors: &mut FieldErrors) {
    for (list, check) in [("forZones", label_value as fn(&str) -> Vec<&'static str>), ("forNodes", dns1123_subdomain)] {
        let path = path.child(list);
        let items = hints.array(list);
        if items.len() > MAX_HINTS {
            errors.push(FieldError::too_many(path, items.len(), MAX_HINTS));
            return;
        }
        let name_of = |item: &Value| item.as_object().and_then(|item| item.str("name")).unwrap_or_default().to_owned();
        let names: Vec<String> = items.iter().map(name_of).collect();
        for (at, name) in names.iter().enumerate() {
            let path = path.index(at);
            if names[..at].contains(name) {
                errors.push(FieldError::duplicate(path.child("name"), name.as_str()));
            }
            errors.extend(problems(path.child("name"), name, check(name)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::terms;

    fn slices() -> EndpointSlices {
        EndpointSlices { features: terms().features }
    }
    use crate::kinds::tests::object;

    #[test]
    fn what_is_wrong_is_told_by_field() {
        for (text, want) in [
            (r#"{"addressType":"IPv4","endpoints":[{"addresses":["10.0.0.1"]}]}"#, vec![]),
            ("{}", vec!["addressType"]),
            (r#"{"addressType":"IPv4","endpoints":[{}]}"#, vec!["endpoints[0].addresses"]),
            (r#"{"addressType":"IPv4","endpoints":[{"addresses":["::2"]}]}"#, vec!["endpoints[0].addresses"]),
            (r#"{"addressType":"IPv6","endpoints":[{"addresses":["10.0.0.1"]}]}"#, vec!["endpoints[0].addresses"]),
            (r#"{"addressType":"IPv6","endpoints":[{"addresses":["fe80::A"]}]}"#, vec!["endpoints[0].addresses[0]"]),
            (r#"{"addressType":"FQDN","endpoints":[{"addresses":["a"]}]}"#, vec!["endpoints[0].addresses[0]"]),
            (
                r#"{"addressType":"IPv4","endpoints":[{"addresses":["10.0.0.1"],
                    "hints":{"forZones":[{"name":"a"},{"name":"a"}],"forNodes":[{"name":"A"}]}}]}"#,
                vec!["endpoints[0].hints.forZones[1].name", "endpoints[0].hints.forNodes[0].name"],
            ),
            (
                r#"{"addressType":"IPv4","ports":[{"name":"a","protocol":"TCP"},{"name":"a","protocol":"X"},{"name":"b"}]}"#,
                vec!["ports[1].name", "ports[1].protocol", "ports[2].protocol"],
            ),
        ] {
            let fields: Vec<String> = slices().validate(&object(text)).into_iter().map(|error| error.field).collect();
            assert_eq!(fields, want, "{text}");
        }
    }

    #[test]
    fn topology_cannot_be_written_but_a_known_node_is_kept() {
        let text = r#"{"endpoints":[{"addresses":["a"],"deprecatedTopology":{"kubernetes.io/hostname":"n"}}]}"#;
        let mut fresh = object(text);
        drop_topology(&mut fresh, None);
        assert_eq!(Value::from(fresh).to_json(), r#"{"endpoints":[{"addresses":["a"]}]}"#);
        let old = object(text);
        let mut changed = object(&text.replace(r#"["a"]"#, r#"["b"]"#));
        drop_topology(&mut changed, Some(&old));
        assert_eq!(Value::from(changed).to_json(), r#"{"endpoints":[{"addresses":["b"],"nodeName":"n"}]}"#);
        let mut same = object(text);
        drop_topology(&mut same, Some(&old));
        assert_eq!(same, old);
    }
}
