//! The core group: everything that was there before there were groups.

pub(crate) mod claim;
mod config_map;
mod event;
mod namespace;
mod secret;
mod service_account;

use revisor_object::names::NameRule;

use super::{Kind, USUAL, field};
use crate::{DeleteAnswer, Rules, SelectableField};

const EVENT_FIELDS: &[SelectableField] = &[
    field("involvedObject.kind", &[&["involvedObject", "kind"]]),
    field("involvedObject.namespace", &[&["involvedObject", "namespace"]]),
    field("involvedObject.name", &[&["involvedObject", "name"]]),
    field("involvedObject.uid", &[&["involvedObject", "uid"]]),
    field("involvedObject.apiVersion", &[&["involvedObject", "apiVersion"]]),
    field("involvedObject.resourceVersion", &[&["involvedObject", "resourceVersion"]]),
    field("involvedObject.fieldPath", &[&["involvedObject", "fieldPath"]]),
    field("reason", &[&["reason"]]),
    field("reportingComponent", &[&["reportingComponent"]]),
    field("source", &[&["source", "component"], &["reportingComponent"]]),
    field("type", &[&["type"]]),
];

pub(super) fn kind(plural: &str) -> Option<Kind> {
    Some(match plural {
        "configmaps" => Kind::usual(config_map::ConfigMaps),
        "events" => Kind {
            rules: Rules { names: NameRule::PathSegment, create_on_update: true, validates_metadata: false, ..USUAL },
            selectable: EVENT_FIELDS.to_vec(),
            ..Kind::usual(event::Events)
        },
        "namespaces" => Kind {
            rules: Rules { names: NameRule::Dns1123Label, ..USUAL },
            selectable: vec![field("status.phase", &[&["status", "phase"]])],
            ..Kind::usual(namespace::Namespaces)
        },
        "persistentvolumeclaims" => {
            Kind { rules: Rules { delete_answer: DeleteAnswer::Object, ..USUAL }, ..Kind::usual(claim::Claims) }
        }
        "secrets" => Kind { selectable: vec![field("type", &[&["type"]])], ..Kind::usual(secret::Secrets) },
        "serviceaccounts" => Kind {
            rules: Rules { delete_answer: DeleteAnswer::Object, ..USUAL },
            ..Kind::usual(service_account::ServiceAccounts)
        },
        _ => return None,
    })
}
