//! `coordination.k8s.io`: who leads, and who could.

mod lease;
mod lease_candidate;

use revisor_object::names::NameRule;

use super::{Kind, Terms, USUAL};
use crate::Rules;

pub(super) fn kind(plural: &str, terms: &Terms) -> Option<Kind> {
    let rules = Rules { create_on_update: true, unconditional_update: false, ..USUAL };
    Some(match plural {
        "leases" => Kind { rules, ..Kind::usual(lease::Leases { features: terms.features }) },
        "leasecandidates" => Kind {
            rules: Rules { names: NameRule::ConfigMapKey, ..rules },
            ..Kind::usual(lease_candidate::LeaseCandidates)
        },
        _ => return None,
    })
}
