//! JobValidation: how many pods of a job run at once is settled when they are scheduled as a gang.

use revisor_catalog::Feature;
use revisor_object::{Object, Value};

use super::pod_fields::{objects, text};
use super::{Admission, Attributes, Operation};
use crate::{Registry, RegistryError};

pub(super) struct JobValidation;

impl Admission for JobValidation {
    fn name(&self) -> &'static str {
        "JobValidation"
    }

    fn handles(&self, operation: Operation) -> bool {
        operation == Operation::Update
    }

    fn validate(&self, registry: &Registry, attributes: &Attributes<'_>, job: &Object) -> Result<(), RegistryError> {
        let features = registry.catalog.features();
        let is_on = features.has(Feature::GenericWorkload) || features.has(Feature::WorkloadWithJob);
        let Some(old) = attributes.old.filter(|_| is_on && attributes.is_about("batch", "jobs")) else {
            return Ok(());
        };
        let parallelism = &["spec", "parallelism"];
        if job.at(parallelism) == old.at(parallelism) {
            return Ok(());
        }
        let stored = ("scheduling.k8s.io", "v1alpha2", "podgroups");
        let named = old.at(&["spec", "template", "spec", "schedulingGroup", "podGroupName"]).and_then(Value::as_str);
        let groups = match named {
            Some(name) => {
                registry.stored(stored.0, stored.1, stored.2, attributes.namespace, name).into_iter().collect()
            }
            None => {
                let mut all = registry.all_stored(stored.0, stored.1, stored.2, attributes.namespace);
                all.retain(|group| is_controlled_by(group, old));
                all
            }
        };
        let is_gang = |group: &&Object| group.at(&["spec", "schedulingPolicy", "gang"]).is_some();
        match groups.iter().find(is_gang) {
            None => Ok(()),
            Some(group) => {
                let name = group.object("metadata").map(|metadata| text(metadata, "name")).unwrap_or_default();
                let why = format!("cannot change parallelism for a Job referencing gang-scheduled PodGroup {name:?}");
                Err(attributes.forbidden(why))
            }
        }
    }
}

fn is_controlled_by(object: &Object, owner: &Object) -> bool {
    let uid = owner.at(&["metadata", "uid"]).and_then(Value::as_str).unwrap_or_default();
    let mut owners = object.object("metadata").into_iter().flat_map(|metadata| objects(metadata, "ownerReferences"));
    let controls = |owner: &Object| owner.get("controller").and_then(Value::as_bool) == Some(true);
    owners.any(|known| controls(known) && text(known, "uid") == uid)
}
