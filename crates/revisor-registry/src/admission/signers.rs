//! Who may act for a signer of certificates: a right to the signer itself, or to all signers of its domain.

use revisor_auth::ResourceAttributes;

use super::Attributes;
use crate::Registry;
use crate::escalation::user;

/// Whether who writes may do this in the name of a signer (upstream: `IsAuthorizedForSignerName`). The server itself may.
pub(super) fn is_authorized(registry: &Registry, attributes: &Attributes<'_>, verb: &str, signer: &str) -> bool {
    let Some(user) = user(attributes.requester) else { return true };
    let domain = signer.split('/').next().unwrap_or_default();
    let of = |name| ResourceAttributes {
        group: "certificates.k8s.io",
        version: "*",
        resource: "signers",
        name: Some(name),
        ..ResourceAttributes::default()
    };
    registry.allows(&user, verb, of(signer)) || registry.allows(&user, verb, of(&format!("{domain}/*")))
}
