//! Endpoints: where a Service leads to, the older way. EndpointSlices do the same and scale.

use revisor_object::names::{dns1123_label, dns1123_subdomain, port_number, qualified_name};
use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Value, ip_warnings};

use crate::checks::{problems, required_one_of};
use crate::kinds::addresses::{endpoint_ip, legacy_ip};
use crate::{Features, Part, Strategy};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// The lists of addresses that a subset has.
const LISTS: [&str; 2] = ["addresses", "notReadyAddresses"];

/// Who made the object, as far as a label says so.
const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";

pub(crate) struct Endpoints {
    pub(crate) features: Features,
}

impl Strategy for Endpoints {
    fn validate(&self, object: &Object) -> FieldErrors {
        let mut errors = FieldErrors::new();
        let path = FieldPath::root("subsets");
        for (at, subset) in object.array("subsets").iter().filter_map(Value::as_object).enumerate() {
            validate_subset(path.index(at), subset, self.features, &mut errors);
        }
        errors
    }

    fn validate_update(&self, object: &Object, old: &Object, _: Part<'_>) -> FieldErrors {
        let errors = self.validate(object);
        // What was once let in may stay.
        if !errors.is_empty() && object.array("subsets") == old.array("subsets") { FieldErrors::new() } else { errors }
    }

    fn warnings(&self, object: &Object, _: Option<&Object>) -> Vec<String> {
        // The controller writes addresses as they should be, and many of them.
        let managed_by = object.at(&["metadata", "labels", MANAGED_BY]).and_then(Value::as_str);
        if managed_by == Some("endpoint-controller") {
            return Vec::new();
        }
        let mut warnings = Vec::new();
        for (at, subset) in object.array("subsets").iter().filter_map(Value::as_object).enumerate() {
            for list in LISTS {
                for (index, ip) in addresses(subset, list).map(ip_of).enumerate() {
                    warnings.extend(ip_warnings(format_args!("subsets[{at}].{list}[{index}].ip"), ip));
                }
            }
        }
        warnings
    }
}

fn addresses<'a>(subset: &'a Object, list: &str) -> impl Iterator<Item = &'a Object> {
    subset.array(list).iter().filter_map(Value::as_object)
}

fn ip_of(address: &Object) -> &str {
    address.str("ip").unwrap_or_default()
}

fn validate_subset(path: FieldPath<'_>, subset: &Object, features: Features, errors: &mut FieldErrors) {
    if LISTS.iter().all(|list| subset.array(list).is_empty()) {
        errors.push(FieldError::required(path, "must specify `addresses` or `notReadyAddresses`"));
    }
    for list in LISTS {
        let path = path.child(list);
        for (at, address) in addresses(subset, list).enumerate() {
            validate_address(path.index(at), address, features, errors);
        }
    }
    let ports = subset.array("ports");
    let path = path.child("ports");
    for (at, port) in ports.iter().filter_map(Value::as_object).enumerate() {
        validate_port(path.index(at), port, ports.len() > 1, errors);
    }
}

fn validate_address(path: FieldPath<'_>, address: &Object, features: Features, errors: &mut FieldErrors) {
    let ip = ip_of(address);
    errors.extend(legacy_ip(path.child("ip"), ip, features, |_| false));
    if let Some(host) = address.str("hostname") {
        errors.extend(problems(path.child("hostname"), host, dns1123_label(host)));
    }
    if let Some(node) = address.str("nodeName") {
        errors.extend(problems(path.child("nodeName"), node, dns1123_subdomain(node)));
    }
    errors.extend(endpoint_ip(path.child("ip"), ip));
}

fn validate_port(path: FieldPath<'_>, port: &Object, must_have_name: bool, errors: &mut FieldErrors) {
    let text = |name| port.str(name).unwrap_or_default();
    let name = text("name");
    if !name.is_empty() {
        errors.extend(problems(path.child("name"), name, dns1123_label(name)));
    } else if must_have_name {
        errors.push(FieldError::required(path.child("name"), ""));
    }
    let number = port.get("port").and_then(Value::as_i64).unwrap_or_default();
    let found = port_number(number);
    errors.extend(found.into_iter().map(|problem| FieldError::invalid(path.child("port"), number, problem)));
    errors.extend(required_one_of(path.child("protocol"), text("protocol"), &PROTOCOLS));
    if let Some(protocol) = port.str("appProtocol") {
        errors.extend(problems(path.child("appProtocol"), protocol, qualified_name(protocol)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::terms;

    fn endpoints_kind() -> Endpoints {
        Endpoints { features: terms().features }
    }
    use crate::kinds::tests::object;

    #[test]
    fn addresses_must_lead_somewhere() {
        for (subset, want) in [
            (r#"{"addresses":[{"ip":"10.0.0.1"}]}"#, vec![]),
            (r#"{"ports":[]}"#, vec!["subsets[0]"]),
            // Both rules about addresses speak of one that is none.
            (r#"{"addresses":[{"ip":"x"}]}"#, vec!["subsets[0].addresses[0].ip"; 2]),
            (r#"{"notReadyAddresses":[{"ip":"::1"}]}"#, vec!["subsets[0].notReadyAddresses[0].ip"]),
            (
                r#"{"addresses":[{"ip":"10.0.0.1","nodeName":"A"}],"ports":[{"port":1,"protocol":"X"},{"name":"a"}]}"#,
                vec![
                    "subsets[0].addresses[0].nodeName",
                    "subsets[0].ports[0].name",
                    "subsets[0].ports[0].protocol",
                    "subsets[0].ports[1].port",
                    "subsets[0].ports[1].protocol",
                ],
            ),
        ] {
            let endpoints = object(&format!(r#"{{"subsets":[{subset}]}}"#));
            let fields: Vec<String> =
                endpoints_kind().validate(&endpoints).into_iter().map(|error| error.field).collect();
            assert_eq!(fields, want, "{subset}");
            let unchanged = endpoints_kind().validate_update(&endpoints, &endpoints, Part::Whole);
            assert!(unchanged.is_empty(), "{subset}");
        }
    }

    #[test]
    fn odd_addresses_are_warned_of_unless_the_controller_wrote_them() {
        let subsets = r#""subsets":[{"addresses":[{"ip":"2001:DB8::1"}]}]"#;
        assert_eq!(endpoints_kind().warnings(&object(&format!("{{{subsets}}}")), None).len(), 1);
        let labels = r#""metadata":{"labels":{"endpoints.kubernetes.io/managed-by":"endpoint-controller"}}"#;
        assert!(endpoints_kind().warnings(&object(&format!("{{{labels},{subsets}}}")), None).is_empty());
    }
}
