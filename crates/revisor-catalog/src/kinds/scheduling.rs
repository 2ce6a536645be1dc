//! The group `scheduling.k8s.io`: what goes first, and what goes together.

mod pod_group;
mod policy;
mod priority_class;
mod workload;

use super::{Kind, Terms};

pub(super) fn kind(plural: &str, terms: &Terms) -> Option<Kind> {
    Some(match plural {
        "podgroups" => Kind::usual(pod_group::PodGroups { features: terms.features }),
        "priorityclasses" => Kind { selects_namespace: Some(true), ..Kind::usual(priority_class::PriorityClasses) },
        "workloads" => Kind::usual(workload::Workloads { features: terms.features }),
        _ => return None,
    })
}
