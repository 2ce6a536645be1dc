//! The ports of containers.

use revisor_object::names::port_name;
use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Seen};

use super::members::{is_true, number, objects, text};
use crate::checks::{self, problems};

const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];

/// What is wrong with the ports of one container.
pub(super) fn validate(path: FieldPath<'_>, container: &Object, errors: &mut FieldErrors) {
    let mut names = Seen::default();
    for (at, port) in objects(container, "ports") {
        let path = path.index(at);
        let name = text(port, "name");
        if !name.is_empty() {
            let found = port_name(name);
            if !found.is_empty() {
                errors.extend(problems(path.child("name"), name, found));
            } else if !names.is_new(name) {
                errors.push(FieldError::duplicate(path.child("name"), name));
            }
        }
        match number(port, "containerPort") {
            0 => errors.push(FieldError::required(path.child("containerPort"), "")),
            inner => errors.extend(checks::port(path.child("containerPort"), inner)),
        }
        match number(port, "hostPort") {
            0 => {}
            outer => errors.extend(checks::port(path.child("hostPort"), outer)),
        }
        errors.extend(checks::required_one_of(path.child("protocol"), text(port, "protocol"), PROTOCOLS));
    }
}

/// The ports of the host that more than one port of these containers wants.
pub(super) fn validate_host_ports<'a>(
    path: FieldPath<'_>,
    containers: impl Iterator<Item = (usize, &'a Object)>,
    errors: &mut FieldErrors,
) {
    let mut taken = Seen::default();
    for (at, container) in containers {
        let path = path.index(at);
        let path = path.child("ports");
        for (at, port) in objects(container, "ports") {
            let outer = number(port, "hostPort");
            let key = (text(port, "protocol"), text(port, "hostIP"), outer);
            if outer != 0 && !taken.is_new(key) {
                let path = path.index(at);
                errors.push(FieldError::duplicate(path.child("hostPort"), format!("{}/{}/{}", key.0, key.1, key.2)));
            }
        }
    }
}

/// On the host's network a port of the container is that port of the host. A template may leave it to its pods.
pub(super) fn validate_on_host(path: FieldPath<'_>, spec: &Object, is_pod: bool, errors: &mut FieldErrors) {
    if !is_true(spec, "hostNetwork") {
        return;
    }
    let path = path.child("containers");
    for (at, container) in objects(spec, "containers") {
        let path = path.index(at);
        let path = path.child("ports");
        for (at, port) in objects(container, "ports") {
            let (outer, inner) = (number(port, "hostPort"), number(port, "containerPort"));
            if (is_pod || outer != 0) && outer != inner {
                let path = path.index(at);
                let detail = "must match `containerPort` when `hostNetwork` is true";
                errors.push(FieldError::invalid(path.child("hostPort"), outer, detail));
            }
        }
    }
}
