//! What services hold: node ports and load balancers.

use revisor_object::{Object, Value};

use super::evaluator::{Usage, number, one};

pub(super) fn add_usage(service: &Object, usage: &mut Usage) {
    let empty = Object::new();
    let spec = service.object("spec").unwrap_or(&empty);
    let ports = spec.array("ports");
    let is_balanced = spec.str("type") == Some("LoadBalancer");
    let node_ports = match spec.str("type") {
        Some("NodePort") => ports.len(),
        Some("LoadBalancer") if spec.get("allocateLoadBalancerNodePorts") == Some(&Value::Bool(false)) => {
            let chosen = |port: &&Value| port.as_object().is_some_and(|port| port.contains("nodePort"));
            ports.iter().filter(chosen).count()
        }
        Some("LoadBalancer") => ports.len(),
        _ => 0,
    };
    usage.insert("services".to_owned(), one());
    usage.insert("services.nodeports".to_owned(), number(node_ports));
    usage.insert("services.loadbalancers".to_owned(), number(usize::from(is_balanced)));
}
