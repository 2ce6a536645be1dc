//! Services, what is behind them and what leads to them.

use std::collections::BTreeSet;

use revisor_object::{Object, Value};

use super::cells;
use super::core::number_or_text;
use super::fields::{age, annotation, array, first_of, name, number, object, objects, or, text, texts, value};
use super::selectors::{labels, selector};
use crate::Moment;

/// How many of many addresses and ports are shown.
const SHOWN: usize = 3;

pub(super) fn service(service: &Object, now: Moment) -> Vec<Value> {
    let ports: Vec<String> = objects(service, "spec.ports").map(service_port).collect();
    let addresses = texts(service, "spec.clusterIPs");
    cells![
        name(service),
        text(service, "spec.type"),
        addresses.first().copied().unwrap_or("<none>"),
        external_addresses(service),
        or(&ports.join(","), "<none>"),
        age(service, now),
        labels(object(service, "spec.selector")),
    ]
}

fn service_port(port: &Object) -> String {
    let (number_here, protocol) = (number(port, "port"), text(port, "protocol"));
    match number(port, "nodePort") {
        on_node @ 1.. => format!("{number_here}:{on_node}/{protocol}"),
        _ => format!("{number_here}/{protocol}"),
    }
}

fn external_addresses(service: &Object) -> String {
    let given = texts(service, "spec.externalIPs").join(",");
    match text(service, "spec.type") {
        "ClusterIP" | "NodePort" => or(&given, "<none>").to_owned(),
        "LoadBalancer" => {
            let balanced = load_balancer(service);
            match (balanced.is_empty(), given.is_empty()) {
                (true, true) => "<pending>".to_owned(),
                (false, false) => format!("{balanced},{given}"),
                _ => balanced + &given,
            }
        }
        "ExternalName" => text(service, "spec.externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

/// Where a load balancer can be reached.
fn load_balancer(here: &Object) -> String {
    let points = objects(here, "status.loadBalancer.ingress");
    let addresses: BTreeSet<&str> = points.map(|point| or(text(point, "ip"), text(point, "hostname"))).collect();
    addresses.into_iter().filter(|address| !address.is_empty()).collect::<Vec<_>>().join(",")
}

pub(super) fn endpoints(endpoints: &Object, now: Moment) -> Vec<Value> {
    // Every address is there at every port, and few are shown.
    let list = objects(endpoints, "subsets").flat_map(|subset| {
        let portless = array(subset, "ports").is_empty().then_some(None).into_iter();
        let ports = portless.chain(objects(subset, "ports").map(|port| Some(number(port, "port"))));
        let addresses = || objects(subset, "addresses").map(|address| text(address, "ip"));
        ports.flat_map(move |port| {
            addresses().map(move |address| match port {
                None => address.to_owned(),
                Some(port) if address.contains(':') => format!("[{address}]:{port}"),
                Some(port) => format!("{address}:{port}"),
            })
        })
    });
    let many = objects(endpoints, "subsets")
        .map(|subset| array(subset, "ports").len().max(1).saturating_mul(array(subset, "addresses").len()))
        .sum();
    let nothing = if array(endpoints, "subsets").is_empty() { "<none>" } else { "" };
    cells![name(endpoints), first_of(list, many, SHOWN, ",", nothing), age(endpoints, now)]
}

pub(super) fn endpoint_slice(slice: &Object, now: Moment) -> Vec<Value> {
    let port = |port: &Object| match (value(port, "port"), value(port, "name")) {
        (Some(_), _) => number(port, "port").to_string(),
        (None, Some(_)) => text(port, "name").to_owned(),
        (None, None) => "*".to_owned(),
    };
    let ports = objects(slice, "ports").map(port);
    let addresses = || objects(slice, "endpoints").flat_map(|endpoint| texts(endpoint, "addresses"));
    let many = addresses().count();
    cells![
        name(slice),
        text(slice, "addressType"),
        first_of(ports, array(slice, "ports").len(), SHOWN, ",", "<unset>"),
        first_of(addresses().map(str::to_owned), many, SHOWN, ",", "<unset>"),
        age(slice, now),
    ]
}

pub(super) fn ingress(ingress: &Object, now: Moment) -> Vec<Value> {
    let ports = if array(ingress, "spec.tls").is_empty() { "80" } else { "80, 443" };
    cells![
        name(ingress),
        number_or_text(ingress, "spec.ingressClassName", "<none>"),
        ingress_hosts(ingress),
        load_balancer(ingress),
        ports,
        age(ingress, now),
    ]
}

fn ingress_hosts(ingress: &Object) -> String {
    let rules = array(ingress, "spec.rules");
    let mut hosts = Vec::new();
    let mut seen = 0;
    for rule in objects(ingress, "spec.rules") {
        if hosts.len() == SHOWN {
            break;
        }
        seen += 1;
        hosts.extend(Some(text(rule, "host")).filter(|host| !host.is_empty()));
    }
    if hosts.is_empty() {
        return "*".to_owned();
    }
    // As the original counts: rules without a host count as more hosts once enough are shown.
    let more = if seen < rules.len() { format!(" + {} more...", rules.len() - SHOWN) } else { String::new() };
    hosts.join(",") + &more
}

pub(super) fn ingress_class(class: &Object, now: Moment) -> Vec<Value> {
    let is_default = annotation(class, "ingressclass.kubernetes.io/is-default-class") == Some("true");
    let parameters = match object(class, "spec.parameters") {
        None => "<none>".to_owned(),
        Some(parameters) => {
            let group = value(parameters, "apiGroup").map(|_| format!(".{}", text(parameters, "apiGroup")));
            format!("{}{}/{}", text(parameters, "kind"), group.unwrap_or_default(), text(parameters, "name"))
        }
    };
    let mark = if is_default { " (default)" } else { "" };
    cells![format!("{}{mark}", name(class)), text(class, "spec.controller"), parameters, age(class, now)]
}

pub(super) fn network_policy(policy: &Object, now: Moment) -> Vec<Value> {
    let nothing = Object::new();
    cells![name(policy), selector(Some(object(policy, "spec.podSelector").unwrap_or(&nothing))), age(policy, now)]
}

pub(super) fn service_cidr(range: &Object, now: Moment) -> Vec<Value> {
    cells![name(range), texts(range, "spec.cidrs").join(","), age(range, now)]
}

pub(super) fn ip_address(address: &Object, now: Moment) -> Vec<Value> {
    let parent = match object(address, "spec.parentRef") {
        None => "<none>".to_owned(),
        Some(parent) => {
            let (group, resource) = (text(parent, "group"), text(parent, "resource"));
            let qualified = if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
            let mut path = qualified.to_lowercase();
            for part in [Some(text(parent, "namespace")).filter(|part| !part.is_empty()), Some(text(parent, "name"))] {
                path.extend(part.map(|part| format!("/{part}")));
            }
            path
        }
    };
    cells![name(address), parent, age(address, now)]
}
