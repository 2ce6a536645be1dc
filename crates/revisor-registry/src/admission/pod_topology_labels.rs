//! PodTopologyLabels: a pod on a node is labelled with the zone and region of the node.

use revisor_catalog::Feature;
use revisor_object::Object;

use super::pod_fields::{labels, spec, text};
use super::{Admission, Attributes, Operation};
use crate::{Registry, RegistryError};

const LABELS: [&str; 2] = ["topology.kubernetes.io/region", "topology.kubernetes.io/zone"];

pub(crate) struct PodTopologyLabels;

impl Admission for PodTopologyLabels {
    fn name(&self) -> &'static str {
        "PodTopologyLabels"
    }

    fn handles(&self, operation: Operation) -> bool {
        matches!(operation, Operation::Create | Operation::Update)
    }

    fn admit(&self, registry: &Registry, attributes: &Attributes<'_>, pod: &mut Object) -> Result<(), RegistryError> {
        if attributes.is_about_part("", "pods", "binding") || attributes.is_about("", "bindings") {
            let target = pod.object("target").filter(|target| target.str("kind") == Some("Node"));
            let node = target.map(|target| text(target, "name").to_owned()).unwrap_or_default();
            copy_labels(registry, &node, pod.object_mut("metadata"));
        }
        if attributes.is_about("", "pods") {
            let node = text(spec(pod), "nodeName").to_owned();
            copy_labels(registry, &node, pod.object_mut("metadata"));
        }
        Ok(())
    }
}

/// Writes where a node is into the labels of metadata. A node that does not exist is nowhere.
fn copy_labels(registry: &Registry, node: &str, metadata: &mut Object) {
    if node.is_empty() || !registry.catalog.features().has(Feature::PodTopologyLabelsAdmission) {
        return;
    }
    let Some(node) = registry.stored("", "v1", "nodes", None, node) else { return };
    for label in LABELS {
        if let Some(value) = labels(&node).get(label) {
            metadata.object_mut("labels").insert(label, value.clone());
        }
    }
}
