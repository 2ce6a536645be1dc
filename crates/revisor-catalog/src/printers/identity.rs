//! Certificates and roles.

use revisor_object::{Object, Value};

use super::cells;
use super::fields::{age, name, number, objects, or, text, value};
use super::selectors::labels;
use crate::Moment;
use crate::moment::human_seconds;

pub(super) fn role_binding(binding: &Object, now: Moment) -> Vec<Value> {
    let of_kind = |kind: &str| -> Vec<String> {
        let subjects = objects(binding, "subjects").filter(|subject| text(subject, "kind") == kind);
        let shown = subjects.map(|subject| match kind {
            "ServiceAccount" => format!("{}/{}", text(subject, "namespace"), text(subject, "name")),
            _ => text(subject, "name").to_owned(),
        });
        shown.collect()
    };
    cells![
        name(binding),
        format!("{}/{}", text(binding, "roleRef.kind"), text(binding, "roleRef.name")),
        age(binding, now),
        of_kind("User").join(", "),
        of_kind("Group").join(", "),
        of_kind("ServiceAccount").join(", "),
    ]
}

pub(super) fn signing_request(request: &Object, now: Moment) -> Vec<Value> {
    let seconds = value(request, "spec.expirationSeconds").map(|_| number(request, "spec.expirationSeconds"));
    cells![
        name(request),
        age(request, now),
        or(text(request, "spec.signerName"), "<none>"),
        text(request, "spec.username"),
        seconds.map_or_else(|| "<none>".to_owned(), human_seconds),
        signing_state(request),
    ]
}

fn signing_state(request: &Object) -> String {
    let has = |kind: &str| objects(request, "status.conditions").any(|condition| text(condition, "type") == kind);
    let mut state = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    }
    .to_owned();
    if has("Failed") {
        state += ",Failed";
    }
    if !text(request, "status.certificate").is_empty() {
        state += ",Issued";
    }
    state
}

pub(super) fn trust_bundle(bundle: &Object, _: Moment) -> Vec<Value> {
    cells![name(bundle), or(text(bundle, "spec.signerName"), "<none>")]
}

pub(super) fn pod_certificate_request(request: &Object, _: Moment) -> Vec<Value> {
    let mut kinds = objects(request, "status.conditions").map(|condition| text(condition, "type"));
    let state = kinds.rfind(|kind| ["Issued", "Denied", "Failed"].contains(kind));
    cells![
        name(request),
        text(request, "spec.podName"),
        text(request, "spec.serviceAccountName"),
        text(request, "spec.nodeName"),
        text(request, "spec.signerName"),
        state.unwrap_or("Pending"),
        labels(value(request, "spec.unverifiedUserAnnotations").and_then(Value::as_object)),
    ]
}
