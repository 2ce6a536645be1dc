//! ExtendedResourceToleration: a pod that asks for devices tolerates the taint that keeps others from their nodes.

use std::collections::BTreeSet;

use revisor_object::{Object, Value};

use super::pod_fields::{append, objects, text};
use super::{Admission, Attributes, Operation};
use crate::{Registry, RegistryError};

pub(super) struct ExtendedResourceToleration;

impl Admission for ExtendedResourceToleration {
    fn name(&self) -> &'static str {
        "ExtendedResourceToleration"
    }

    fn handles(&self, operation: Operation) -> bool {
        matches!(operation, Operation::Create | Operation::Update)
    }

    fn admit(&self, _: &Registry, attributes: &Attributes<'_>, pod: &mut Object) -> Result<(), RegistryError> {
        if !attributes.is_about("", "pods") {
            return Ok(());
        }
        let spec = pod.object_mut("spec");
        let mut missing = extended_resources(spec);
        let wanted = missing.clone();
        for known in spec.array_mut("tolerations").into_iter().flatten().filter_map(Value::as_object_mut) {
            let is_like = text(known, "effect") == "NoSchedule"
                && text(known, "operator") == "Exists"
                && text(known, "value").is_empty();
            // One that differs in nothing but how long it lasts gives way.
            if let Some(resource) = wanted.get(text(known, "key")).filter(|_| is_like) {
                missing.remove(resource);
                *known = toleration(resource);
            }
        }
        for resource in missing {
            append(spec, "tolerations", toleration(&resource));
        }
        Ok(())
    }
}

/// The toleration of a taint that has the name of a resource.
fn toleration(resource: &str) -> Object {
    Object::from_iter([
        ("key", Value::from(resource)),
        ("operator", Value::from("Exists")),
        ("effect", Value::from("NoSchedule")),
    ])
}

fn extended_resources(spec: &Object) -> BTreeSet<String> {
    let containers = ["containers", "initContainers"].into_iter().flat_map(|list| objects(spec, list));
    let requests = containers.filter_map(|container| container.object("resources")?.object("requests"));
    let names = requests.flat_map(|requests| requests.iter().map(|(name, _)| name.to_owned()));
    names.filter(|name| is_extended(name)).collect()
}

/// Whether a resource is one of a vendor (upstream: `IsExtendedResourceName`).
fn is_extended(name: &str) -> bool {
    name.contains('/') && !name.contains("kubernetes.io/") && !name.starts_with("requests.")
}
