//! CertificateSigning: only who may sign for a signer gives out its certificates, or says that it will not.

use revisor_object::{Object, Value};

use super::signers::is_authorized;
use super::{Admission, Attributes, Operation};
use crate::{Registry, RegistryError};

pub(super) struct CertificateSigning;

impl Admission for CertificateSigning {
    fn name(&self) -> &'static str {
        "CertificateSigning"
    }

    fn handles(&self, operation: Operation) -> bool {
        operation == Operation::Update
    }

    fn validate(&self, registry: &Registry, attributes: &Attributes<'_>, object: &Object) -> Result<(), RegistryError> {
        if !attributes.is_about_part("certificates.k8s.io", "certificatesigningrequests", "status") {
            return Ok(());
        }
        let Some(old) = attributes.old else { return Ok(()) };
        let part = |request: &Object, name: &str| {
            let value = request.at(&["status", name]).cloned();
            // Nothing and an empty list say the same.
            value.filter(|value| value.as_array().is_none_or(|list| !list.is_empty()))
        };
        if ["certificate", "conditions"].iter().all(|name| part(old, name) == part(object, name)) {
            return Ok(());
        }
        let signer = old.at(&["spec", "signerName"]).and_then(Value::as_str).unwrap_or_default();
        if is_authorized(registry, attributes, "sign", signer) {
            return Ok(());
        }
        Err(attributes.forbidden(format!("user not permitted to sign requests with signerName {signer:?}")))
    }
}
