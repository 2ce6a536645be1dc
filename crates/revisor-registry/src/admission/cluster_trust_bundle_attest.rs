//! ClusterTrustBundleAttest: only who may attest for a signer says whom to trust in its name.

use revisor_catalog::Feature;
use revisor_object::{Object, Value};

use super::signers::is_authorized;
use super::{Admission, Attributes, Operation};
use crate::escalation::is_bookkeeping;
use crate::{Registry, RegistryError};

pub(super) struct ClusterTrustBundleAttest;

impl Admission for ClusterTrustBundleAttest {
    fn name(&self) -> &'static str {
        "ClusterTrustBundleAttest"
    }

    fn handles(&self, operation: Operation) -> bool {
        matches!(operation, Operation::Create | Operation::Update)
    }

    fn validate(&self, registry: &Registry, attributes: &Attributes<'_>, object: &Object) -> Result<(), RegistryError> {
        let is_bundle = attributes.resource.name() == ("certificates.k8s.io", "clustertrustbundles");
        if !is_bundle || !registry.catalog.features().has(Feature::ClusterTrustBundle) {
            return Ok(());
        }
        let signer = object.at(&["spec", "signerName"]).and_then(Value::as_str).unwrap_or_default();
        // Who only says who depends on a bundle, or stores it anew, says nothing about trust.
        let is_untouched = attributes.operation == Operation::Update && is_bookkeeping(attributes, object);
        if signer.is_empty() || is_untouched || is_authorized(registry, attributes, "attest", signer) {
            return Ok(());
        }
        Err(attributes.forbidden(format!("user not permitted to attest for signerName {signer:?}")))
    }
}
