//! The group `resource.k8s.io`: devices that nodes offer, and claims to them.

pub(super) mod beta1;
mod device_claim;
mod device_class;
mod lists;
mod names;
mod resource_claim;
mod resource_claim_template;
mod resource_slice;

use super::{Kind, USUAL, field};
use crate::{DeleteAnswer, Rules, SelectableField};

const SLICE_FIELDS: &[SelectableField] =
    &[field("spec.nodeName", &[&["spec", "nodeName"]]), field("spec.driver", &[&["spec", "driver"]])];

pub(super) fn kind(plural: &str) -> Option<Kind> {
    let kind = match plural {
        "deviceclasses" => Kind { selects_namespace: Some(true), ..Kind::usual(device_class::DeviceClasses) },
        "resourceclaims" => Kind::usual(resource_claim::ResourceClaims),
        "resourceclaimtemplates" => Kind::usual(resource_claim_template::ResourceClaimTemplates),
        "resourceslices" => Kind { selectable: SLICE_FIELDS.to_vec(), ..Kind::usual(resource_slice::ResourceSlices) },
        _ => return None,
    };
    Some(Kind { rules: Rules { delete_answer: DeleteAnswer::Object, ..USUAL }, ..kind })
}
