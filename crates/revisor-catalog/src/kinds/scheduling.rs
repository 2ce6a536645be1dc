//! The group `scheduling.k8s.io`: what goes first.

mod priority_class;

use super::Kind;

pub(super) fn kind(plural: &str) -> Option<Kind> {
    Some(match plural {
        "priorityclasses" => Kind { selects_namespace: Some(true), ..Kind::usual(priority_class::PriorityClasses) },
        _ => return None,
    })
}
