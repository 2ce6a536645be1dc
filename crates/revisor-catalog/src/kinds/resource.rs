//! The group `resource.k8s.io`: devices that nodes offer, and claims to them.

pub(super) mod beta1;
mod device_claim;
mod device_class;
mod device_taint_rule;
mod lists;
mod names;
mod resource_claim;
mod resource_claim_template;
mod resource_pool_status_request;
mod resource_slice;
mod selectors;

use revisor_object::names::NameRule;

use self::selectors::Selectors;
use super::{Kind, Terms, USUAL, field};
use crate::{DeleteAnswer, Rules, SelectableField};

const SLICE_FIELDS: &[SelectableField] =
    &[field("spec.nodeName", &[&["spec", "nodeName"]]), field("spec.driver", &[&["spec", "driver"]])];

pub(super) fn kind(plural: &str, terms: &Terms) -> Option<Kind> {
    let mut rules = Rules { delete_answer: DeleteAnswer::Object, ..USUAL };
    let kind = match plural {
        "deviceclasses" => {
            rules.names = NameRule::LongName;
            Kind {
                selects_namespace: Some(true),
                ..Kind::usual(device_class::DeviceClasses { selectors: Selectors::new(terms) })
            }
        }
        "devicetaintrules" => Kind::usual(device_taint_rule::DeviceTaintRules).selecting_namespace(),
        "resourceclaims" => {
            Kind::usual(resource_claim::ResourceClaims { selectors: Selectors::new(terms), features: terms.features })
        }
        "resourceclaimtemplates" => Kind::usual(resource_claim_template::ResourceClaimTemplates {
            selectors: Selectors::new(terms),
            features: terms.features,
        }),
        "resourcepoolstatusrequests" => {
            rules.unconditional_update = false;
            Kind::usual(resource_pool_status_request::ResourcePoolStatusRequests).selecting_namespace()
        }
        "resourceslices" => Kind { selectable: SLICE_FIELDS.to_vec(), ..Kind::usual(resource_slice::ResourceSlices) },
        _ => return None,
    };
    Some(Kind { rules, ..kind })
}
