//! `autoscaling`: how many pods a workload has, by what is measured.

pub(crate) mod conversion;
mod horizontal_pod_autoscaler;

use super::{Kind, Terms};

pub(super) fn kind(plural: &str, terms: &Terms) -> Option<Kind> {
    Some(match plural {
        "horizontalpodautoscalers" => {
            Kind::usual(horizontal_pod_autoscaler::HorizontalPodAutoscalers { features: terms.features })
        }
        _ => return None,
    })
}
