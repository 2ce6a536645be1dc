//! `apiregistration.k8s.io`: which groups and versions there are, and who serves each of them.

mod api_service;

use revisor_object::names::NameRule;

use super::{Kind, USUAL};
use crate::Rules;

pub(crate) use api_service::bootstrap_object;
pub use api_service::{custom_registration, is_custom_registration, is_own_registration};

pub(super) fn kind(plural: &str) -> Option<Kind> {
    Some(match plural {
        "apiservices" => Kind {
            rules: Rules {
                names: NameRule::PathSegment,
                unconditional_update: false,
                known_finalizers: false,
                ..USUAL
            },
            ..Kind::usual(api_service::ApiServices).selecting_namespace()
        },
        _ => return None,
    })
}
