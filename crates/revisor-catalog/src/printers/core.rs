//! Small kinds of the core, and others of their size.

use std::collections::BTreeSet;

use revisor_object::{Object, Value};

use super::cells;
use super::fields::{age, amount, condition, count, name, object, objects, or, text, truth, value};
use crate::Moment;

pub(super) fn component_status(component: &Object, _: Moment) -> Vec<Value> {
    let healthy = condition(component, "conditions", "Healthy");
    let status = match healthy.map(|condition| text(condition, "status")) {
        None => "Unknown",
        Some("True") => "Healthy",
        Some(_) => "Unhealthy",
    };
    let of = |field| healthy.map_or("", |condition| text(condition, field));
    cells![name(component), status, of("message"), of("error")]
}

pub(super) fn config_map(map: &Object, now: Moment) -> Vec<Value> {
    cells![name(map), count(map, "data") + count(map, "binaryData"), age(map, now)]
}

pub(super) fn secret(secret: &Object, now: Moment) -> Vec<Value> {
    cells![name(secret), text(secret, "type"), count(secret, "data"), age(secret, now)]
}

pub(super) fn namespace(namespace: &Object, now: Moment) -> Vec<Value> {
    cells![name(namespace), text(namespace, "status.phase"), age(namespace, now)]
}

pub(super) fn lease(lease: &Object, now: Moment) -> Vec<Value> {
    cells![name(lease), text(lease, "spec.holderIdentity"), age(lease, now)]
}

pub(super) fn lease_candidate(candidate: &Object, now: Moment) -> Vec<Value> {
    cells![
        name(candidate),
        text(candidate, "spec.leaseName"),
        text(candidate, "spec.binaryVersion"),
        text(candidate, "spec.emulationVersion"),
        age(candidate, now),
    ]
}

pub(super) fn runtime_class(class: &Object, now: Moment) -> Vec<Value> {
    cells![name(class), text(class, "handler"), age(class, now)]
}

pub(super) fn api_service(service: &Object, now: Moment) -> Vec<Value> {
    let host = match object(service, "spec.service") {
        Some(host) => format!("{}/{}", text(host, "namespace"), text(host, "name")),
        None => "Local".to_owned(),
    };
    let available = match condition(service, "status.conditions", "Available") {
        None => "Unknown".to_owned(),
        Some(condition) => match (text(condition, "status"), text(condition, "reason")) {
            (status, reason) if status == "True" || reason.is_empty() => status.to_owned(),
            (status, reason) => format!("{status} ({reason})"),
        },
    };
    cells![name(service), host, available, age(service, now)]
}

pub(super) fn node(node: &Object, now: Moment) -> Vec<Value> {
    // Of several conditions of one type the last counts.
    let ready = objects(node, "status.conditions").rfind(|condition| text(condition, "type") == "Ready");
    let mut status = match ready.map(|condition| text(condition, "status")) {
        None => "Unknown",
        Some("True") => "Ready",
        Some(_) => "NotReady",
    }
    .to_owned();
    if truth(node, "spec.unschedulable") {
        status += ",SchedulingDisabled";
    }
    let mut kernel = or(text(node, "status.nodeInfo.kernelVersion"), "<unknown>").to_owned();
    let architecture = text(node, "status.nodeInfo.architecture");
    if !architecture.is_empty() {
        kernel += &format!(" ({architecture})");
    }
    cells![
        name(node),
        status,
        or(&node_roles(node), "<none>"),
        age(node, now),
        text(node, "status.nodeInfo.kubeletVersion"),
        node_address(node, "InternalIP"),
        node_address(node, "ExternalIP"),
        or(text(node, "status.nodeInfo.osImage"), "<unknown>"),
        kernel,
        or(text(node, "status.nodeInfo.containerRuntimeVersion"), "<unknown>"),
    ]
}

fn node_roles(node: &Object) -> String {
    let mut roles = BTreeSet::new();
    for (label, value) in object(node, "metadata.labels").iter().flat_map(|labels| labels.iter()) {
        match label.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => roles.insert(role),
            None if label == "kubernetes.io/role" => roles.insert(value.as_str().unwrap_or_default()),
            None => false,
        };
    }
    roles.remove("");
    roles.into_iter().collect::<Vec<_>>().join(",")
}

fn node_address<'a>(node: &'a Object, kind: &str) -> &'a str {
    let address = objects(node, "status.addresses").find(|address| text(address, "type") == kind);
    address.map_or("<none>", |address| text(address, "address"))
}

pub(super) fn resource_quota(quota: &Object, now: Moment) -> Vec<Value> {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    let used = object(quota, "status.used");
    for (resource, hard) in object(quota, "status.hard").iter().flat_map(|hard| hard.iter()) {
        let used = amount(used.and_then(|used| used.get(resource)));
        let column = if resource.starts_with("limits.") { &mut limits } else { &mut requests };
        column.push(format!("{resource}: {used}/{}", amount(Some(hard))));
    }
    cells![name(quota), requests.join(", "), limits.join(", "), age(quota, now)]
}

/// `kind.group/name` of the controller among the owners, or `<none>`.
pub(super) fn controller(here: &Object) -> String {
    let Some(owner) = objects(here, "metadata.ownerReferences").find(|owner| truth(owner, "controller")) else {
        return "<none>".to_owned();
    };
    let group = text(owner, "apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
    let kind = text(owner, "kind");
    let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
    format!("{}/{}", qualified.to_lowercase(), text(owner, "name"))
}

/// A number or a text that a field takes, or what stands for none.
pub(super) fn number_or_text(here: &Object, path: &str, nothing: &str) -> String {
    value(here, path).map_or_else(|| nothing.to_owned(), |value| amount(Some(value)))
}
