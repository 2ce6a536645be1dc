//! The core group: everything that was there before there were groups.

mod binding;
pub(crate) mod claim;
mod component_status;
mod config_map;
mod endpoints;
pub(crate) mod event;
mod limit_range;
mod namespace;
mod node;
pub(crate) mod persistent_volume;
mod pod;
mod pod_template;
mod replication_controller;
mod resource_quota;
mod secret;
pub(crate) mod service;
mod service_account;
mod tls_pair;

use revisor_object::names::NameRule;

use super::{Kind, Terms, USUAL, field};
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

const NODE_FIELDS: &[SelectableField] =
    &[SelectableField { absent: "false", ..field("spec.unschedulable", &[&["spec", "unschedulable"]]) }];

pub(super) fn kind(plural: &str, terms: &Terms) -> Option<Kind> {
    let policy = terms.pods();
    let features = terms.features;
    Some(match plural {
        "bindings" => Kind::usual(binding::Bindings),
        "componentstatuses" => {
            Kind { selects_namespace: Some(true), ..Kind::usual(component_status::ComponentStatuses) }
        }
        "configmaps" => Kind::usual(config_map::ConfigMaps),
        "endpoints" => {
            Kind { rules: Rules { create_on_update: true, ..USUAL }, ..Kind::usual(endpoints::Endpoints { features }) }
        }
        "events" => Kind {
            rules: Rules { names: NameRule::PathSegment, create_on_update: true, known_finalizers: false, ..USUAL },
            selectable: EVENT_FIELDS.to_vec(),
            ..Kind::usual(event::Events)
        },
        "limitranges" => Kind {
            rules: Rules { create_on_update: true, names_nameless: true, ..USUAL },
            ..Kind::usual(limit_range::LimitRanges)
        },
        "namespaces" => Kind {
            rules: Rules { names: NameRule::Dns1123Label, ..USUAL },
            selectable: vec![field("status.phase", &[&["status", "phase"]])],
            ..Kind::usual(namespace::Namespaces)
        },
        "nodes" => Kind { selectable: NODE_FIELDS.to_vec(), ..Kind::usual(node::Nodes { features }) },
        "persistentvolumeclaims" => Kind {
            rules: Rules { delete_answer: DeleteAnswer::Object, ..USUAL },
            ..Kind::usual(claim::Claims { features })
        },
        "persistentvolumes" => Kind {
            rules: Rules { delete_answer: DeleteAnswer::Object, ..USUAL },
            selects_namespace: Some(true),
            ..Kind::usual(persistent_volume::PersistentVolumes { features })
        },
        "resourcequotas" => Kind {
            rules: Rules { delete_answer: DeleteAnswer::Object, ..USUAL },
            ..Kind::usual(resource_quota::ResourceQuotas)
        },
        "pods" => Kind {
            rules: Rules { delete_answer: DeleteAnswer::Object, ..USUAL },
            selectable: pod::FIELDS.to_vec(),
            ..Kind::usual(pod::Pods { policy })
        },
        "podtemplates" => Kind {
            rules: Rules { delete_answer: DeleteAnswer::Object, ..USUAL },
            ..Kind::usual(pod_template::PodTemplates { policy })
        },
        "replicationcontrollers" => replication_controller::kind(policy),
        "secrets" => Kind { selectable: vec![field("type", &[&["type"]])], ..Kind::usual(secret::Secrets) },
        "serviceaccounts" => Kind {
            rules: Rules { delete_answer: DeleteAnswer::Object, ..USUAL },
            ..Kind::usual(service_account::ServiceAccounts)
        },
        "services" => Kind {
            rules: Rules {
                // By which rule depends on a feature, and only new ones are held to it.
                names: NameRule::OfKind,
                create_on_update: true,
                delete_answer: DeleteAnswer::Object,
                ..USUAL
            },
            selectable: vec![
                field("spec.clusterIP", &[&["spec", "clusterIP"]]),
                field("spec.type", &[&["spec", "type"]]),
            ],
            ..Kind::usual(service::Services { features })
        },
        _ => return None,
    })
}
