//! Ports of containers that get into each other's way.

use std::collections::HashMap;

use revisor_object::{FieldPath, Object};

use crate::kinds::pod_spec::members::{all_containers, number, objects, text};

/// What is unwise about the ports of a spec.
pub(super) fn of(path: FieldPath<'_>, spec: &Object, found: &mut Vec<String>) {
    let mut others: HashMap<(i64, &str), Vec<(String, &Object)>> = HashMap::new();
    let mut names: HashMap<&str, String> = HashMap::new();
    let mut same_names = Vec::new();
    for (list, at, container) in all_containers(spec) {
        for (of, port) in objects(container, "ports") {
            let field = format!("{path}.{list}[{at}].ports[{of}]");
            let (ip, outer) = (text(port, "hostIP"), number(port, "hostPort"));
            let (inner, protocol) = (number(port, "containerPort"), text(port, "protocol"));
            let name = text(port, "name");
            if !ip.is_empty() && outer == 0 {
                found.push(format!(
                    "{field}: hostIP set without hostPort: {{Name:{name} HostPort:{outer} ContainerPort:{inner} \
                     Protocol:{protocol} HostIP:{ip}}}"
                ));
            }
            let group = others.entry((inner, protocol)).or_default();
            for (other_field, other) in group.iter() {
                let (other_ip, other_outer) = (text(other, "hostIP"), number(other, "hostPort"));
                let relation = if (ip, outer) == (other_ip, other_outer) {
                    "duplicate"
                } else if outer == 0 || other_outer == 0 {
                    "overlapping"
                } else if outer == other_outer && ip.is_empty() != other_ip.is_empty() {
                    "dangerously ambiguous"
                } else {
                    continue;
                };
                found.push(format!("{field}: {relation} port definition with {other_field}"));
            }
            if !name.is_empty() {
                match names.get(name) {
                    Some(first) => same_names.push(format!(
                        "{field}: duplicate port name {name:?} with {first}, services and probes that select ports by \
                         name will use {first}"
                    )),
                    None => {
                        names.insert(name, field.clone());
                    }
                }
            }
            group.push((field, port));
        }
    }
    found.append(&mut same_names);
}
