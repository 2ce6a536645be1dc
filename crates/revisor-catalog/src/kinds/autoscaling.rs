//! `autoscaling`: how many pods a workload has, by what is measured.

pub(crate) mod conversion;
mod horizontal_pod_autoscaler;

use super::Kind;

pub(super) fn kind(plural: &str) -> Option<Kind> {
    Some(match plural {
        "horizontalpodautoscalers" => Kind::usual(horizontal_pod_autoscaler::HorizontalPodAutoscalers),
        _ => return None,
    })
}
