//! Access to devices that are in use, for their administration, is only given in namespaces that are marked for it.

use revisor_object::{FieldError, FieldErrors, Object, Value};

use super::{Admission, Attributes, Operation};
use crate::{Registry, RegistryError};

/// The label that marks a namespace.
const LABEL: &str = "resource.kubernetes.io/admin-access";

pub(super) struct DeviceAdminAccess;

impl Admission for DeviceAdminAccess {
    fn name(&self) -> &'static str {
        "DeviceAdminAccess"
    }

    fn handles(&self, operation: Operation) -> bool {
        matches!(operation, Operation::Create | Operation::Update)
    }

    fn validate(&self, registry: &Registry, attributes: &Attributes<'_>, object: &Object) -> Result<(), RegistryError> {
        if attributes.resource.group != "resource.k8s.io" {
            return Ok(());
        }
        let Some(path) = requested(attributes, object) else { return Ok(()) };
        let namespace = attributes.namespace.unwrap_or_default();
        let namespace = registry.read_once("", "v1", "namespaces", None, namespace);
        let label = namespace.as_ref().and_then(|namespace| namespace.at(&["metadata", "labels", LABEL]));
        if label.and_then(Value::as_str) == Some("true") {
            return Ok(());
        }
        let detail = format!("admin access to devices requires the `{LABEL}: true` label on the containing namespace");
        Err(RegistryError::Invalid {
            resource: attributes.resource.clone(),
            name: attributes.name.to_owned(),
            errors: FieldErrors::from([FieldError::forbidden(path, detail)]),
        })
    }
}

/// Where such access is asked for, if it was not given before.
fn requested(attributes: &Attributes<'_>, object: &Object) -> Option<String> {
    let is_set = |holder: &Object| holder.get("adminAccess").and_then(Value::as_bool) == Some(true);
    match (attributes.operation, attributes.resource.plural.as_str(), attributes.subresource) {
        (Operation::Create, "resourceclaims" | "resourceclaimtemplates", None) => {
            let spec = match attributes.resource.plural.as_str() {
                "resourceclaims" => object.object("spec")?,
                _ => object.object("spec")?.object("spec")?,
            };
            let requests = spec.at(&["devices", "requests"]).and_then(Value::as_array)?;
            let mut exactly = requests.iter().map(|request| request.as_object()?.object("exactly"));
            let at = exactly.position(|exactly| exactly.is_some_and(is_set))?;
            // The path is the same for both, and leaves out a step.
            Some(format!("spec.devices.requests[{at}].adminAccess"))
        }
        (Operation::Update, "resourceclaims", Some("status")) => {
            let position = |claim: &Object| {
                let results = claim.at(&["status", "allocation", "devices", "results"]).and_then(Value::as_array)?;
                results.iter().position(|result| result.as_object().is_some_and(is_set))
            };
            if attributes.old.and_then(position).is_some() {
                return None;
            }
            position(object).map(|at| format!("status.allocation.devices.results[{at}].adminAccess"))
        }
        _ => None,
    }
}
