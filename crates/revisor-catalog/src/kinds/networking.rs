//! The group `networking.k8s.io`: ways into services, walls between pods, and the addresses of services.

mod ingress;
mod ingress_class;
mod ip_address;
mod network_policy;
mod service_cidr;

use revisor_object::names::NameRule;

use super::{Kind, Terms, USUAL};
use crate::Rules;

pub(super) fn kind(plural: &str, terms: &Terms) -> Option<Kind> {
    let features = terms.features;
    Some(match plural {
        "ingressclasses" => Kind { selects_namespace: Some(true), ..Kind::usual(ingress_class::IngressClasses) },
        "ingresses" => Kind::usual(ingress::Ingresses { features }),
        // Names of addresses are checked by their strategy, because they are addresses.
        "ipaddresses" => Kind {
            rules: Rules { names: NameRule::OfKind, prefix_is_name: true, ..USUAL },
            selects_namespace: Some(true),
            ..Kind::usual(ip_address::IpAddresses)
        },
        "networkpolicies" => Kind::usual(network_policy::NetworkPolicies { features }),
        "servicecidrs" => {
            Kind { selects_namespace: Some(true), ..Kind::usual(service_cidr::ServiceCidrs { features }) }
        }
        _ => return None,
    })
}
