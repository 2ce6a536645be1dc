//! `coordination.k8s.io`: who leads.

mod lease;

use super::{Kind, USUAL};
use crate::Rules;

pub(super) fn kind(plural: &str) -> Option<Kind> {
    Some(match plural {
        "leases" => Kind {
            rules: Rules { create_on_update: true, unconditional_update: false, ..USUAL },
            ..Kind::usual(lease::Leases)
        },
        _ => return None,
    })
}
