//! Webhooks and policies of admission.

use revisor_object::{Object, Value};

use super::cells;
use super::fields::{age, array, name, object, or, size, text};
use super::selectors::structure;
use crate::Moment;

pub(super) fn webhooks(configuration: &Object, now: Moment) -> Vec<Value> {
    cells![name(configuration), size(array(configuration, "webhooks")), age(configuration, now)]
}

pub(super) fn mutating_policy(policy: &Object, now: Moment) -> Vec<Value> {
    cells![name(policy), size(array(policy, "spec.mutations")), parameter_kind(policy), age(policy, now)]
}

pub(super) fn validating_policy(policy: &Object, now: Moment) -> Vec<Value> {
    cells![name(policy), size(array(policy, "spec.validations")), parameter_kind(policy), age(policy, now)]
}

fn parameter_kind(policy: &Object) -> String {
    match object(policy, "spec.paramKind") {
        Some(kind) => format!("{}/{}", text(kind, "apiVersion"), text(kind, "kind")),
        None => "<unset>".to_owned(),
    }
}

pub(super) fn policy_binding(binding: &Object, now: Moment) -> Vec<Value> {
    let parameters = object(binding, "spec.paramRef").and_then(|reference| {
        let name = text(reference, "name");
        if name.is_empty() {
            return object(reference, "selector").map(structure);
        }
        Some(format!("{}/{name}", or(text(reference, "namespace"), "*")))
    });
    cells![
        name(binding),
        text(binding, "spec.policyName"),
        parameters.unwrap_or_else(|| "<unset>".to_owned()),
        age(binding, now),
    ]
}
