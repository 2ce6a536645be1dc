//! `certificates.k8s.io`: who asks for a certificate, who lets them have it, and the certificate.

mod certificate_signing_request;
mod pem;
mod signer_name;

use revisor_object::names::NameRule;

use super::{Kind, USUAL, field};
use crate::Rules;

pub(super) fn kind(plural: &str) -> Option<Kind> {
    Some(match plural {
        "certificatesigningrequests" => Kind {
            rules: Rules { names: NameRule::PathSegment, ..USUAL },
            selectable: vec![field("spec.signerName", &[&["spec", "signerName"]])],
            ..Kind::usual(certificate_signing_request::CertificateSigningRequests)
        },
        _ => return None,
    })
}
