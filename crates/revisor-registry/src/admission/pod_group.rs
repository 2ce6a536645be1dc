//! PodGroupProtection: pod groups stay while pods of theirs run, by a finalizer that a controller removes; and
//! PodGroupWorkloadExists: they are only made after a template that exists.

use revisor_object::{Object, Value};

use super::pod_fields::text;
use super::{Admission, Attributes, Operation};
use crate::{Registry, RegistryError};

const GROUP: &str = "scheduling.k8s.io";
const VERSION: &str = "v1alpha2";
const FINALIZER: &str = "scheduling.k8s.io/podgroup-protection";

/// Keeps groups.
pub(super) struct PodGroupProtection;

/// Demands templates.
pub(super) struct PodGroupWorkloadExists;

impl Admission for PodGroupProtection {
    fn name(&self) -> &'static str {
        "PodGroupProtection"
    }

    fn handles(&self, operation: Operation) -> bool {
        operation == Operation::Create
    }

    fn admit(&self, _: &Registry, attributes: &Attributes<'_>, group: &mut Object) -> Result<(), RegistryError> {
        if is_new_group(attributes) {
            super::add_finalizer(group, FINALIZER);
        }
        Ok(())
    }
}

impl Admission for PodGroupWorkloadExists {
    fn name(&self) -> &'static str {
        "PodGroupWorkloadExists"
    }

    fn handles(&self, operation: Operation) -> bool {
        operation == Operation::Create
    }

    fn validate(&self, registry: &Registry, attributes: &Attributes<'_>, group: &Object) -> Result<(), RegistryError> {
        if !is_new_group(attributes) {
            return Ok(());
        }
        let reference = group.at(&["spec", "podGroupTemplateRef", "workload"]).and_then(Value::as_object);
        let Some(reference) = reference else { return Ok(()) };
        let (name, template) = (text(reference, "workloadName"), text(reference, "podGroupTemplateName"));
        let refuse = |why: String| Err(attributes.forbidden(format!("PodGroup rejected: {why}")));
        let Some(workload) = registry.stored(GROUP, VERSION, "workloads", attributes.namespace, name) else {
            return refuse(format!("Workload {name:?} not found"));
        };
        if workload.at(&["metadata", "deletionTimestamp"]).is_some() {
            return refuse(format!("Workload {name:?} is being deleted"));
        }
        let templates = workload.object("spec").map(|spec| spec.array("podGroupTemplates")).unwrap_or_default();
        if !templates.iter().filter_map(Value::as_object).any(|known| text(known, "name") == template) {
            return refuse(format!("PodGroupTemplate {template:?} not found in Workload {name:?}"));
        }
        Ok(())
    }
}

fn is_new_group(attributes: &Attributes<'_>) -> bool {
    attributes.operation == Operation::Create && attributes.is_about(GROUP, "podgroups")
}
