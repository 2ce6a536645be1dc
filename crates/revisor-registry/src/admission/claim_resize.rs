//! A claim may only ask for more if it is bound, and if the class that it came from can make volumes larger.

use revisor_object::{Object, Quantity, Value};

use super::{Admission, Attributes, Operation, claim_class};
use crate::{Registry, RegistryError};

pub(super) struct ClaimResize;

impl Admission for ClaimResize {
    fn name(&self) -> &'static str {
        "PersistentVolumeClaimResize"
    }

    fn handles(&self, operation: Operation) -> bool {
        operation == Operation::Update
    }

    fn validate(&self, registry: &Registry, attributes: &Attributes<'_>, object: &Object) -> Result<(), RegistryError> {
        let Some(old) = attributes.old else { return Ok(()) };
        if attributes.operation != Operation::Update || !attributes.is_about("", "persistentvolumeclaims") {
            return Ok(());
        }
        if size(object) <= size(old) {
            return Ok(());
        }
        if old.at(&["status", "phase"]).and_then(Value::as_str) != Some("Bound") {
            return Err(attributes.forbidden("Only bound persistent volume claims can be expanded"));
        }
        if !allows_expansion(registry, object, old) {
            return Err(attributes.forbidden(
                "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must \
                 support resize",
            ));
        }
        Ok(())
    }
}

fn size(claim: &Object) -> Quantity {
    let text = claim.at(&["spec", "resources", "requests", "storage"]).and_then(Value::as_str);
    text.and_then(|text| Quantity::parse(text).ok()).unwrap_or(Quantity::ZERO)
}

fn allows_expansion(registry: &Registry, claim: &Object, old: &Object) -> bool {
    let Some(class) = claim_class(claim).filter(|class| !class.is_empty()) else { return false };
    if claim_class(old) != Some(class) {
        return false;
    }
    let class = registry.read_once("storage.k8s.io", "v1", "storageclasses", None, class);
    class.is_some_and(|class| class.get("allowVolumeExpansion").and_then(Value::as_bool) == Some(true))
}
