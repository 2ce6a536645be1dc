//! AlwaysPullImages: images are pulled each time, so that nobody runs an image that they could not pull themselves
//! because it is on the node already.

use std::collections::HashSet;

use revisor_object::{FieldError, FieldPath, Object};

use super::pod_fields::{objects, objects_mut, spec, text};
use super::{Admission, Attributes, Operation};
use crate::{Registry, RegistryError};

/// The lists of containers in the order in which the original visits them.
const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

pub(super) struct AlwaysPullImages;

impl Admission for AlwaysPullImages {
    fn name(&self) -> &'static str {
        "AlwaysPullImages"
    }

    fn handles(&self, operation: Operation) -> bool {
        matches!(operation, Operation::Create | Operation::Update)
    }

    fn admit(&self, _: &Registry, attributes: &Attributes<'_>, pod: &mut Object) -> Result<(), RegistryError> {
        if !concerns(attributes, pod) {
            return Ok(());
        }
        let spec = pod.object_mut("spec");
        for list in CONTAINERS {
            for container in objects_mut(spec, list) {
                container.insert("imagePullPolicy", "Always");
            }
        }
        for volume in objects_mut(spec, "volumes") {
            if volume.object("image").is_some() {
                volume.object_mut("image").insert("pullPolicy", "Always");
            }
        }
        Ok(())
    }

    fn validate(&self, _: &Registry, attributes: &Attributes<'_>, pod: &Object) -> Result<(), RegistryError> {
        if !concerns(attributes, pod) {
            return Ok(());
        }
        let (root, spec) = (FieldPath::root("spec"), spec(pod));
        let mut refusals = Vec::new();
        let mut hold = |path: String, policy: &str| {
            if policy != "Always" {
                let problem = FieldError::not_supported(path, policy, &["Always"]);
                refusals.push(attributes.forbidden(problem.to_string()));
            }
        };
        for list in CONTAINERS {
            for (at, container) in spec.array(list).iter().enumerate() {
                let policy = container.as_object().map(|container| text(container, "imagePullPolicy"));
                hold(root.child(list).index(at).child("imagePullPolicy").to_string(), policy.unwrap_or_default());
            }
        }
        for (at, volume) in spec.array("volumes").iter().enumerate() {
            if let Some(image) = volume.as_object().and_then(|volume| volume.object("image")) {
                let path = root.child("volumes").index(at).child("image").child("pullPolicy").to_string();
                hold(path, text(image, "pullPolicy"));
            }
        }
        match refusals.len() {
            0 => Ok(()),
            1 => Err(refusals.remove(0)),
            // Several refusals are no refusal that has a status of its own.
            _ => {
                let all: Vec<String> = refusals.iter().map(ToString::to_string).collect();
                Err(RegistryError::Undecided(format!("[{}]", all.join(", "))))
            }
        }
    }
}

/// Whether images come to a pod that it did not have.
fn concerns(attributes: &Attributes<'_>, pod: &Object) -> bool {
    if !attributes.is_about("", "pods") {
        return false;
    }
    fn images(pod: &Object) -> HashSet<&str> {
        let spec = spec(pod);
        CONTAINERS.iter().flat_map(|list| objects(spec, list)).map(|container| text(container, "image")).collect()
    }
    match attributes.old.filter(|_| attributes.operation == Operation::Update) {
        None => true,
        Some(old) => !images(pod).is_subset(&images(old)),
    }
}
