//! `coordination.k8s.io`: who leads, and who could.

mod lease;
mod lease_candidate;

use revisor_object::names::NameRule;

use super::{Kind, USUAL};
use crate::Rules;

pub(super) fn kind(plural: &str) -> Option<Kind> {
    let rules = Rules { create_on_update: true, unconditional_update: false, known_finalizers: false, ..USUAL };
    Some(match plural {
        "leases" => Kind { rules, ..Kind::usual(lease::Leases) },
        "leasecandidates" => Kind {
            rules: Rules { names: NameRule::ConfigMapKey, ..rules },
            ..Kind::usual(lease_candidate::LeaseCandidates)
        },
        _ => return None,
    })
}
