//! The group `discovery.k8s.io`: where services lead to.

mod endpoint_slice;

use super::{Kind, Terms};

pub(super) fn kind(plural: &str, terms: &Terms) -> Option<Kind> {
    Some(match plural {
        "endpointslices" => Kind::usual(endpoint_slice::EndpointSlices { features: terms.features }),
        _ => return None,
    })
}
