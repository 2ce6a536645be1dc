//! `policy`: what may be done to pods that run.

mod pod_disruption_budget;

use revisor_object::names::NameRule;

use super::{Kind, USUAL};
use crate::Rules;

pub(super) fn kind(plural: &str) -> Option<Kind> {
    Some(match plural {
        "poddisruptionbudgets" => Kind {
            rules: Rules {
                names: NameRule::PathSegment,
                unconditional_update: false,
                known_finalizers: false,
                ..USUAL
            },
            ..Kind::usual(pod_disruption_budget::PodDisruptionBudgets)
        },
        _ => return None,
    })
}
