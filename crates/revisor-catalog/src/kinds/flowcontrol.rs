//! `flowcontrol.apiserver.k8s.io`: which requests belong together, and how much of the server each sort of them gets.

mod bootstrap;
mod flow_schema;
mod priority_level;

use revisor_object::{FieldError, FieldErrors, FieldPath, Object};

use super::Kind;
use crate::checks::required;
use crate::kinds::members::number;

pub(crate) use bootstrap::bootstrap_objects;
use bootstrap::mandatory_specs;

pub(super) fn kind(plural: &str) -> Option<Kind> {
    Some(match plural {
        "flowschemas" => {
            Kind::usual(flow_schema::FlowSchemas { mandatory: mandatory_specs(plural) }).selecting_namespace()
        }
        "prioritylevelconfigurations" => {
            Kind::usual(priority_level::PriorityLevelConfigurations { mandatory: mandatory_specs(plural) })
                .selecting_namespace()
        }
        _ => return None,
    })
}

/// The spec that the object must have, if it is one that every server needs.
fn mandatory_spec<'a>(mandatory: &'a [(String, Object)], object: &Object) -> Option<&'a Object> {
    let name = name_of(object);
    mandatory.iter().find(|(known, _)| known == name).map(|(_, spec)| spec)
}

fn name_of(object: &Object) -> &str {
    object.object("metadata").and_then(|metadata| metadata.str("name")).unwrap_or_default()
}

fn validate_status(object: &Object) -> FieldErrors {
    let status = FieldPath::root("status");
    let path = status.child("conditions");
    let mut seen = std::collections::HashSet::new();
    let mut errors = FieldErrors::new();
    let conditions = object.object("status").map(|status| status.array("conditions")).unwrap_or_default();
    for (at, condition) in conditions.iter().enumerate() {
        let path = path.index(at);
        let kind = condition.as_object().and_then(|condition| condition.str("type")).unwrap_or_default();
        if !seen.insert(kind) {
            errors.push(FieldError::duplicate(path.child("type"), kind));
        }
        errors.extend(required(path.child("type"), kind));
    }
    errors
}
