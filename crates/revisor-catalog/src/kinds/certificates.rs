//! `certificates.k8s.io`: who asks for a certificate, who lets them have it, the certificate, and whom to trust.

pub(crate) mod certificate_signing_request;
mod cluster_trust_bundle;
pub(super) mod pem;
mod pod_certificate_request;
mod public_key;
mod signer_name;

use revisor_object::names::NameRule;

pub(crate) use self::cluster_trust_bundle::name_problems as trust_bundle_name_problems;
pub(crate) use self::signer_name::validate_signer_name;
use super::{Kind, USUAL, field};
use crate::{Rules, SelectableField};

const SIGNER: SelectableField = field("spec.signerName", &[&["spec", "signerName"]]);

pub(super) fn kind(plural: &str) -> Option<Kind> {
    let conditional = Rules { unconditional_update: false, ..USUAL };
    Some(match plural {
        "certificatesigningrequests" => Kind {
            rules: Rules { names: NameRule::PathSegment, ..USUAL },
            selectable: vec![SIGNER],
            ..Kind::usual(certificate_signing_request::CertificateSigningRequests)
        },
        "clustertrustbundles" => Kind {
            rules: Rules { names: NameRule::OfKind, ..conditional },
            selectable: vec![SIGNER],
            ..Kind::usual(cluster_trust_bundle::ClusterTrustBundles)
        },
        "podcertificaterequests" => Kind {
            rules: conditional,
            selectable: vec![
                SIGNER,
                field("spec.podName", &[&["spec", "podName"]]),
                field("spec.nodeName", &[&["spec", "nodeName"]]),
            ],
            selects_namespace: Some(false),
            ..Kind::usual(pod_certificate_request::PodCertificateRequests)
        },
        _ => return None,
    })
}
