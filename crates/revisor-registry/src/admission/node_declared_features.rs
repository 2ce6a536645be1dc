//! NodeDeclaredFeatureValidator: a pod is not changed in a way that its node cannot follow.

use revisor_catalog::Feature;
use revisor_object::{Object, Value};

use super::pod_fields::{objects, spec, text};
use super::{Admission, Attributes, Operation};
use crate::{Registry, RegistryError};

pub(super) struct NodeDeclaredFeatureValidator;

impl Admission for NodeDeclaredFeatureValidator {
    fn name(&self) -> &'static str {
        "NodeDeclaredFeatureValidator"
    }

    fn handles(&self, operation: Operation) -> bool {
        operation == Operation::Update
    }

    fn validate(&self, registry: &Registry, attributes: &Attributes<'_>, pod: &Object) -> Result<(), RegistryError> {
        let is_pod = attributes.is_about("", "pods") || attributes.is_about_part("", "pods", "resize");
        if !is_pod || !registry.catalog.features().has(Feature::NodeDeclaredFeatures) {
            return Ok(());
        }
        let (Some(old), node) = (attributes.old, text(spec(pod), "nodeName")) else { return Ok(()) };
        let generation = |pod: &Object| pod.at(&["metadata", "generation"]).cloned();
        if node.is_empty() || generation(old) == generation(pod) {
            return Ok(());
        }
        let required = required(spec(old), spec(pod));
        if required.is_empty() {
            return Ok(());
        }
        let Some(stored) = registry.stored("", "v1", "nodes", None, node) else {
            return Err(attributes.forbidden(format!("node {node:?} not found")));
        };
        let declared = stored.at(&["status", "declaredFeatures"]).and_then(Value::as_array).unwrap_or_default();
        let missing: Vec<&str> =
            required.into_iter().filter(|name| !declared.iter().any(|known| known.as_str() == Some(name))).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let features = missing.join(", ");
        let why = format!("pod update requires features {features} which are not available on node {node:?}");
        Err(attributes.forbidden(why))
    }
}

/// What a node must be able to do for this change (upstream: `InferForPodUpdate`), in the order of names.
fn required(old: &Object, new: &Object) -> Vec<&'static str> {
    let mut required = Vec::new();
    if old.get("resources") != new.get("resources") {
        required.push("InPlacePodLevelResourcesVerticalScaling");
    }
    let is_sidecar = |container: &Object| text(container, "restartPolicy") == "Always";
    let mut pairs = objects(old, "initContainers").zip(objects(new, "initContainers"));
    if pairs.any(|(old, new)| !is_sidecar(old) && old.get("resources") != new.get("resources")) {
        required.push("InPlacePodVerticalScalingInitContainers");
    }
    required
}
