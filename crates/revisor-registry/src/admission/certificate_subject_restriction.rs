//! CertificateSubjectRestriction: nobody asks for a certificate of the group that may do everything.

use revisor_catalog::RequestedSubject;
use revisor_object::{Object, Value};

use super::{Admission, Attributes, Operation};
use crate::{Registry, RegistryError};

const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";
const MASTERS: &str = "system:masters";

pub(super) struct CertificateSubjectRestriction;

impl Admission for CertificateSubjectRestriction {
    fn name(&self) -> &'static str {
        "CertificateSubjectRestriction"
    }

    fn handles(&self, operation: Operation) -> bool {
        operation == Operation::Create
    }

    fn validate(&self, _: &Registry, attributes: &Attributes<'_>, object: &Object) -> Result<(), RegistryError> {
        if !attributes.is_about("certificates.k8s.io", "certificatesigningrequests") {
            return Ok(());
        }
        let text = |name| object.at(&["spec", name]).and_then(Value::as_str).unwrap_or_default();
        if text("signerName") != CLIENT_SIGNER {
            return Ok(());
        }
        let subject = RequestedSubject::of(text("request"))
            .map_err(|error| attributes.forbidden(format!("failed to parse CSR: {error}")))?;
        if subject.organizations.iter().any(|group| group == MASTERS) {
            let why = format!("use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed");
            return Err(attributes.forbidden(why));
        }
        Ok(())
    }
}
