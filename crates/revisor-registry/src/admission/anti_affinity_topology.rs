//! LimitPodHardAntiAffinityTopology: a pod may keep others from its node, and from nothing larger.

use revisor_object::{Object, Value};

use super::pod_fields::text;
use super::{Admission, Attributes, Operation};
use crate::{Registry, RegistryError};

const HOSTNAME: &str = "kubernetes.io/hostname";

pub(super) struct LimitPodHardAntiAffinityTopology;

impl Admission for LimitPodHardAntiAffinityTopology {
    fn name(&self) -> &'static str {
        "LimitPodHardAntiAffinityTopology"
    }

    fn handles(&self, operation: Operation) -> bool {
        matches!(operation, Operation::Create | Operation::Update)
    }

    fn validate(&self, _: &Registry, attributes: &Attributes<'_>, pod: &Object) -> Result<(), RegistryError> {
        if !attributes.is_about("", "pods") {
            return Ok(());
        }
        let path = ["spec", "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];
        let terms = pod.at(&path).and_then(Value::as_array).unwrap_or_default();
        for term in terms.iter().filter_map(Value::as_object) {
            let key = text(term, "topologyKey");
            if key != HOSTNAME {
                let why = format!(
                    "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {key} but only key {HOSTNAME} \
                     is allowed"
                );
                return Err(attributes.forbidden(why));
            }
        }
        Ok(())
    }
}
