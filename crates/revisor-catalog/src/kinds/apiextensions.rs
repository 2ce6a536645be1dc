//! `apiextensions.k8s.io`: the kinds that clients define themselves.

mod approval;
mod condition;
mod conversion_settings;
mod custom_resource_definition;
mod defaults;
pub(crate) mod definition;
mod formats;
mod frozen_versions;
mod keywords;
mod names;
mod naming;
mod schema_condition;
mod schema_tree;
mod shared_parts;
mod shown;
mod structure;
mod validation;

pub use approval::api_approval;
pub use condition::{API_APPROVAL, Condition, ESTABLISHED, NAMES_ACCEPTED, NON_STRUCTURAL_SCHEMA, TERMINATING};
pub use custom_resource_definition::CLEANUP_FINALIZER;
pub use definition::{DefinedVersion, Definition, Names};
pub use frozen_versions::FROZEN_VERSIONS;
pub use naming::{TakenNames, settle_status};

use super::{Kind, Terms, USUAL};
use crate::Rules;

pub(super) fn kind(plural: &str, terms: &Terms) -> Option<Kind> {
    Some(match plural {
        "customresourcedefinitions" => Kind {
            rules: Rules { unconditional_update: false, known_finalizers: false, ..USUAL },
            ..Kind::usual(custom_resource_definition::CustomResourceDefinitions::new(terms)).selecting_namespace()
        },
        _ => return None,
    })
}
