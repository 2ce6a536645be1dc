//! CertificateApproval: only who may approve for a signer approves or denies what is asked of it.

use revisor_object::{Object, Value};

use super::signers::is_authorized;
use super::{Admission, Attributes, Operation};
use crate::{Registry, RegistryError};

pub(super) struct CertificateApproval;

impl Admission for CertificateApproval {
    fn name(&self) -> &'static str {
        "CertificateApproval"
    }

    fn handles(&self, operation: Operation) -> bool {
        operation == Operation::Update
    }

    fn validate(&self, registry: &Registry, attributes: &Attributes<'_>, _: &Object) -> Result<(), RegistryError> {
        if !attributes.is_about_part("certificates.k8s.io", "certificatesigningrequests", "approval") {
            return Ok(());
        }
        // By the signer as it was: nobody gets around the check by naming another.
        let signer = attributes.old.and_then(|old| old.at(&["spec", "signerName"])).and_then(Value::as_str);
        let signer = signer.unwrap_or_default();
        if is_authorized(registry, attributes, "approve", signer) {
            return Ok(());
        }
        Err(attributes.forbidden(format!("user not permitted to approve requests with signerName {signer:?}")))
    }
}
