//! Ports of containers that get into each other's way.

use std::collections::HashMap;

use revisor_object::{FieldPath, Object, Seen};

use super::MOST_WARNINGS;
use crate::kinds::pod_spec::members::{all_containers, number, objects, text};

/// What is unwise about the ports of a spec.
pub(super) fn of(path: FieldPath<'_>, spec: &Object, found: &mut Vec<String>) {
    if have_nothing_to_do_with_each_other(spec) {
        return;
    }
    let mut others: HashMap<(i64, &str), Others<'_>> = HashMap::new();
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
            if found.len() < MOST_WARNINGS {
                let warn = |(other, relation)| format!("{field}: {relation} port definition with {other}");
                found.extend(group.related(ip, outer).map(warn));
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
            group.push(field, ip, outer);
        }
    }
    found.append(&mut same_names);
}

/// Whether no two ports share a number or a name, and none names an address, as nearly always: then there is nothing to
/// warn of, and nothing has to be written down of any.
fn have_nothing_to_do_with_each_other(spec: &Object) -> bool {
    let (mut numbers, mut names) = (Seen::default(), Seen::default());
    all_containers(spec).flat_map(|(_, _, container)| objects(container, "ports")).all(|(_, port)| {
        let name = text(port, "name");
        text(port, "hostIP").is_empty()
            && numbers.is_new((number(port, "containerPort"), text(port, "protocol")))
            && (name.is_empty() || names.is_new(name))
    })
}

/// Ports with one number and protocol: their fields, and where those of the host stand among them. Ports are not
/// compared with all others, because most of these have nothing to do with each other.
#[derive(Default)]
struct Others<'a> {
    ports: Vec<(String, &'a str, i64)>,
    by_outer: HashMap<i64, Vec<usize>>,
    by_address: HashMap<(i64, &'a str), Vec<usize>>,
    /// Those that name an address, by the port of the host.
    addressed: HashMap<i64, Vec<usize>>,
}

impl<'a> Others<'a> {
    fn push(&mut self, field: String, ip: &'a str, outer: i64) {
        let at = self.ports.len();
        self.ports.push((field, ip, outer));
        self.by_outer.entry(outer).or_default().push(at);
        self.by_address.entry((outer, ip)).or_default().push(at);
        if !ip.is_empty() {
            self.addressed.entry(outer).or_default().push(at);
        }
    }

    /// The fields of the ports, in their order, that get into the way of this one, and how.
    fn related(&self, ip: &'a str, outer: i64) -> impl Iterator<Item = (&str, &'static str)> {
        let mut related: Vec<usize> = Vec::new();
        let mut add = |places: Option<&Vec<usize>>| related.extend(places.into_iter().flatten());
        if outer == 0 {
            add(Some(&(0..self.ports.len()).collect()));
        } else {
            add(self.by_outer.get(&0));
            add(self.by_address.get(&(outer, ip)));
            add(if ip.is_empty() { self.addressed.get(&outer) } else { self.by_address.get(&(outer, "")) });
        }
        related.sort_unstable();
        related.into_iter().map(move |at| {
            let (field, other_ip, other_outer) = &self.ports[at];
            let relation = if (ip, outer) == (*other_ip, *other_outer) {
                "duplicate"
            } else if outer == 0 || *other_outer == 0 {
                "overlapping"
            } else {
                "dangerously ambiguous"
            };
            (field.as_str(), relation)
        })
    }
}
