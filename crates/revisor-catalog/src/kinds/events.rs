//! `events.k8s.io`: the newer form of events. They are stored as core events, and all rules look at that form.

mod conversion;
mod event;

use super::{Kind, USUAL, field};
use crate::{Rules, SelectableField};

pub(crate) use conversion::CoreEvents;

/// Their places are those of core events.
const FIELDS: &[SelectableField] = &[
    field("regarding.kind", &[&["involvedObject", "kind"]]),
    field("regarding.namespace", &[&["involvedObject", "namespace"]]),
    field("regarding.name", &[&["involvedObject", "name"]]),
    field("regarding.uid", &[&["involvedObject", "uid"]]),
    field("regarding.apiVersion", &[&["involvedObject", "apiVersion"]]),
    field("regarding.resourceVersion", &[&["involvedObject", "resourceVersion"]]),
    field("regarding.fieldPath", &[&["involvedObject", "fieldPath"]]),
    field("reason", &[&["reason"]]),
    field("reportingController", &[&["reportingComponent"]]),
    field("type", &[&["type"]]),
];

pub(super) fn kind(plural: &str) -> Option<Kind> {
    Some(match plural {
        "events" => Kind {
            rules: Rules { create_on_update: true, ..USUAL },
            selectable: FIELDS.to_vec(),
            ..Kind::usual(event::StrictEvents)
        },
        _ => return None,
    })
}
