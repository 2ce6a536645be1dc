//! PodResizeValidator: a pod does not grow beyond what its node has to give.

use revisor_catalog::Feature;
use revisor_object::{Object, Quantity, Value};

use super::limit_ranger::pod_requests;
use super::pod_fields::{labels, spec, text};
use super::{Admission, Attributes, Operation};
use crate::{Registry, RegistryError};

pub(super) struct PodResizeValidator;

impl Admission for PodResizeValidator {
    fn name(&self) -> &'static str {
        "PodResizeValidator"
    }

    fn handles(&self, operation: Operation) -> bool {
        operation == Operation::Update
    }

    fn validate(&self, registry: &Registry, attributes: &Attributes<'_>, pod: &Object) -> Result<(), RegistryError> {
        let is_resized = attributes.is_about_part("", "pods", "resize");
        let is_on = registry.catalog.features().has(Feature::InPlacePodVerticalScaling);
        let node = text(spec(pod), "nodeName");
        let Some(old) = attributes.old.filter(|_| is_resized && is_on && !node.is_empty()) else { return Ok(()) };
        let generation = |pod: &Object| pod.at(&["metadata", "generation"]).cloned();
        if generation(old) == generation(pod) {
            return Ok(());
        }
        let Some(stored) = registry.stored("", "v1", "nodes", None, node) else {
            return Err(attributes.forbidden(format!("node {node:?} not found")));
        };
        let refuse = |why: String, cause| {
            let (resource, name) = (attributes.resource.clone(), attributes.name.to_owned());
            Err(RegistryError::ForbiddenBecause { resource, name, why, cause })
        };
        let system = labels(&stored).str("kubernetes.io/os").unwrap_or("linux");
        if system != "linux" {
            let why = format!("pod resize is only supported on linux nodes, node {node:?} is {system:?}");
            return refuse(why, "UnsupportedPlatform");
        }
        let lacking = lacking(spec(pod), &stored);
        if lacking.is_empty() {
            return Ok(());
        }
        let why = format!("node didn't have enough allocatable resources: {}", lacking.join("; "));
        refuse(why, "NodeCapacity")
    }
}

/// What a pod asks for beyond what a node has to give (upstream: `validateRequestsWithinAllocatable`).
fn lacking(spec: &Object, node: &Object) -> Vec<String> {
    let requests = pod_requests(spec);
    let mut lacking = Vec::new();
    for name in ["cpu", "memory"] {
        let text = node.at(&["status", "allocatable", name]).and_then(Value::as_str);
        let allocatable = text.and_then(|text| Quantity::parse(text).ok()).unwrap_or(Quantity::ZERO);
        let requested = requests.get(name).cloned().unwrap_or(Quantity::ZERO);
        if requested > allocatable {
            let amount = |quantity: &Quantity| if name == "cpu" { quantity.milli_value() } else { quantity.value() };
            let (requested, allocatable) = (amount(&requested), amount(&allocatable));
            lacking.push(format!("{name}, requested: {requested}, allocatable: {allocatable}"));
        }
    }
    lacking
}

#[cfg(test)]
mod tests {
    use revisor_object::parse_json;

    use super::*;

    #[test]
    fn a_pod_fits_its_node() {
        let object = |text: &str| match parse_json(text.as_bytes()).expect("is JSON").value {
            Value::Object(object) => object,
            other => panic!("{other:?}"),
        };
        let node = object(r#"{"status":{"allocatable":{"cpu":"2","memory":"1Gi"}}}"#);
        for (requests, want) in [
            (r#"{"cpu":"2","memory":"1Gi"}"#, vec![]),
            (r#"{"cpu":"2500m"}"#, vec!["cpu, requested: 2500, allocatable: 2000"]),
            (r#"{"memory":"2Gi"}"#, vec!["memory, requested: 2147483648, allocatable: 1073741824"]),
        ] {
            let spec = object(&format!(r#"{{"containers":[{{"resources":{{"requests":{requests}}}}}]}}"#));
            assert_eq!(lacking(&spec, &node), want, "{requests}");
        }
    }
}
