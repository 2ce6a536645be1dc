//! What a client may leave out of an update because the server gave it: so that what was sent to create a Service can
//! be sent again.

use std::collections::{HashMap, HashSet};

use revisor_catalog::{ServicePort, ServiceSpec};
use revisor_object::{Object, Value};

/// Puts back addresses and ports of the old Service where the new one leaves them open.
pub(super) fn keep_allocated(service: &mut Object, old: &Object) {
    let (new, was) = (ServiceSpec::of(service), ServiceSpec::of(old));
    let mut kept: Vec<(&str, Value)> = Vec::new();
    if !was.is_external_name() && !new.is_external_name() {
        if new.cluster_ip().is_empty() && !was.cluster_ip().is_empty() {
            kept.push(("clusterIP", Value::from(was.cluster_ip())));
        }
        if new.cluster_ips().is_empty() && !was.cluster_ips().is_empty() {
            kept.push(("clusterIPs", Value::from(was.cluster_ips().to_vec())));
        }
    }
    if new.needs_health_check() && was.needs_health_check() && new.health_check_node_port() == 0 {
        kept.push(("healthCheckNodePort", Value::from(was.health_check_node_port())));
    }
    let ports =
        if was.allocates_node_ports() && new.allocates_node_ports() { known_ports(new, was) } else { Vec::new() };
    let spec = service.object_mut("spec");
    for (name, value) in kept {
        spec.insert(name, value);
    }
    for (at, number) in ports {
        let port = spec.array_mut("ports").and_then(|ports| ports.get_mut(at)).and_then(Value::as_object_mut);
        if let Some(port) = port {
            port.insert("nodePort", number);
        }
    }
}

/// The node ports of ports that have the name of an old one, unless another port has taken the number.
fn known_ports(new: ServiceSpec<'_>, was: ServiceSpec<'_>) -> Vec<(usize, i64)> {
    let asked: HashSet<i64> = new.node_ports().collect();
    let by_name: HashMap<&str, i64> = was.ports().map(|port| (port.name(), port.node_port())).collect();
    let open = new.ports().enumerate().filter(|(_, port)| port.node_port() == 0);
    let known = open.filter_map(|(at, port): (usize, ServicePort<'_>)| Some((at, *by_name.get(port.name())?)));
    known.filter(|(_, number)| *number != 0 && !asked.contains(number)).collect()
}

/// Brings `clusterIPs` in line with `clusterIP`, for clients that only know the one. Nothing else is looked at.
pub(super) fn match_cluster_ips(service: &mut Object, old: Option<&Object>) {
    let new = ServiceSpec::of(service);
    let ip = new.cluster_ip();
    let list = |ip: &str| Some(Value::from(vec![Value::from(ip)]));
    let set = match old.map(ServiceSpec::of) {
        None if !ip.is_empty() && new.cluster_ips().is_empty() => list(ip),
        None => return,
        Some(was) => {
            let is_same_list = new.cluster_ips() == was.cluster_ips();
            if ip == was.cluster_ip() {
                if !new.cluster_ips().is_empty() || was.cluster_ips().is_empty() {
                    return;
                }
                Some(Value::from(was.cluster_ips().to_vec()))
            } else if !is_same_list {
                return;
            } else if ip.is_empty() {
                None
            } else {
                list(ip)
            }
        }
    };
    service.object_mut("spec").set("clusterIPs", set);
}

#[cfg(test)]
mod tests {
    use super::*;
    use revisor_object::parse_json;

    fn service(spec: &str) -> Object {
        let value = parse_json(format!(r#"{{"spec":{spec}}}"#).as_bytes()).expect("is JSON").value;
        value.as_object().expect("is an object").clone()
    }

    #[test]
    fn what_was_given_need_not_be_sent_again() {
        for (name, old, new, want) in [
            (
                "addresses",
                r#"{"type":"ClusterIP","clusterIP":"a","clusterIPs":["a","b"]}"#,
                r#"{"type":"ClusterIP"}"#,
                r#"{"clusterIP":"a","clusterIPs":["a","b"],"type":"ClusterIP"}"#,
            ),
            (
                "a port by its name",
                r#"{"type":"NodePort","ports":[{"name":"x","nodePort":1},{"name":"y","nodePort":2}]}"#,
                r#"{"type":"NodePort","ports":[{"name":"y"},{"name":"z"}]}"#,
                r#"{"ports":[{"name":"y","nodePort":2},{"name":"z"}],"type":"NodePort"}"#,
            ),
            (
                "a port that another took",
                r#"{"type":"NodePort","ports":[{"name":"x","nodePort":1}]}"#,
                r#"{"type":"NodePort","ports":[{"name":"x"},{"name":"y","nodePort":1}]}"#,
                r#"{"ports":[{"name":"x"},{"name":"y","nodePort":1}],"type":"NodePort"}"#,
            ),
            (
                "the port for health checks",
                r#"{"type":"LoadBalancer","externalTrafficPolicy":"Local","healthCheckNodePort":5}"#,
                r#"{"type":"LoadBalancer","externalTrafficPolicy":"Local"}"#,
                r#"{"externalTrafficPolicy":"Local","healthCheckNodePort":5,"type":"LoadBalancer"}"#,
            ),
            (
                "nothing for a name",
                r#"{"type":"ClusterIP","clusterIP":"a","clusterIPs":["a"]}"#,
                r#"{"type":"ExternalName"}"#,
                r#"{"type":"ExternalName"}"#,
            ),
        ] {
            let mut object = service(new);
            keep_allocated(&mut object, &service(old));
            assert_eq!(object.get("spec").map(Value::to_json).as_deref(), Some(want), "{name}");
        }
    }

    #[test]
    fn the_list_follows_the_one() {
        for (old, new, want) in [
            (None, r#"{"clusterIP":"a"}"#, Some(r#"["a"]"#)),
            (None, r#"{"clusterIP":"a","clusterIPs":["b"]}"#, Some(r#"["b"]"#)),
            (None, "{}", None),
            (Some(r#"{"clusterIP":"a","clusterIPs":["a","b"]}"#), r#"{"clusterIP":"a"}"#, Some(r#"["a","b"]"#)),
            (Some(r#"{"clusterIP":"a","clusterIPs":["a"]}"#), r#"{"clusterIPs":["a"]}"#, None),
            (
                Some(r#"{"clusterIP":"a","clusterIPs":["a"]}"#),
                r#"{"clusterIP":"c","clusterIPs":["a"]}"#,
                Some(r#"["c"]"#),
            ),
            (
                Some(r#"{"clusterIP":"a","clusterIPs":["a"]}"#),
                r#"{"clusterIP":"c","clusterIPs":["d"]}"#,
                Some(r#"["d"]"#),
            ),
        ] {
            let mut object = service(new);
            match_cluster_ips(&mut object, old.map(service).as_ref());
            let list = object.at(&["spec", "clusterIPs"]).map(Value::to_json);
            assert_eq!(list.as_deref(), want, "{old:?} to {new}");
        }
    }
}
