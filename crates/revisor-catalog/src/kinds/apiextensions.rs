//! `apiextensions.k8s.io`: the kinds that clients define themselves.

mod condition;
mod custom_resource_definition;

pub use condition::{API_APPROVAL, Condition, ESTABLISHED, NAMES_ACCEPTED, NON_STRUCTURAL_SCHEMA, TERMINATING};

use super::{Kind, USUAL};
use crate::Rules;

pub(super) fn kind(plural: &str) -> Option<Kind> {
    Some(match plural {
        "customresourcedefinitions" => Kind {
            rules: Rules { unconditional_update: false, ..USUAL },
            ..Kind::usual(custom_resource_definition::CustomResourceDefinitions).selecting_namespace()
        },
        _ => return None,
    })
}
