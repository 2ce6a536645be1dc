//! The group `discovery.k8s.io`: where services lead to.

mod endpoint_slice;

use super::Kind;

pub(super) fn kind(plural: &str) -> Option<Kind> {
    Some(match plural {
        "endpointslices" => Kind::usual(endpoint_slice::EndpointSlices),
        _ => return None,
    })
}
