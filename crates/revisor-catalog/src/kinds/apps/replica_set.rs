//! ReplicaSets: so many pods of one template.

use revisor_object::{FieldErrors, FieldPath, Object};

use crate::checks::immutable;
use crate::kinds::pod_spec::{self, PodPolicy};
use crate::kinds::workload::{
    available_beyond_ready, beyond_replicas, default_template, has_readable_selector, negative, spec, status, template,
    validate_lasting_pods, validate_selector, warnings_on_create, warnings_on_update,
};
use crate::strategy::spec_or_status;
use crate::{Part, Places, Strategy};

const SPEC: FieldPath<'static> = FieldPath::root("spec");

pub(crate) struct ReplicaSets {
    pub(crate) policy: PodPolicy,
}

impl Strategy for ReplicaSets {
    fn default(&self, object: &mut Object) {
        default_template(object.object_mut("spec"), self.policy.features);
    }

    fn tracked(&self) -> Places {
        &[&["spec"]]
    }

    fn untouched(&self, part: Part<'_>) -> Places {
        spec_or_status(part)
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        validate_spec(spec(object), None, self.policy)
    }

    fn validate_update(&self, object: &Object, old: &Object, part: Part<'_>) -> FieldErrors {
        if part == Part::STATUS {
            return validate_status(status(object));
        }
        let mut errors = validate_spec(spec(object), Some(spec(old)), self.policy);
        errors.extend(immutable(SPEC.child("selector"), spec(object).get("selector"), spec(old).get("selector")));
        errors
    }

    fn warnings(&self, object: &Object, old: Option<&Object>) -> Vec<String> {
        match old {
            None => warnings_on_create(object, self.policy.features),
            Some(old) => warnings_on_update(object, old, self.policy.features),
        }
    }
}

fn validate_spec(spec: &Object, old: Option<&Object>, policy: PodPolicy) -> FieldErrors {
    let mut errors = negative(SPEC, spec, &["replicas", "minReadySeconds"]);
    // The name of the other kind is the original's.
    errors.extend(validate_selector(spec, "deployment", "invalid label selector"));
    if has_readable_selector(spec) {
        errors.extend(pod_spec::validate_template(SPEC.child("template"), template(spec), old.map(template), policy));
        errors.extend(validate_lasting_pods(spec, "ReplicaSet"));
    }
    errors
}

fn validate_status(status: &Object) -> FieldErrors {
    let path = FieldPath::root("status");
    let counts = [
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
        "terminatingReplicas",
    ];
    let mut errors = negative(path, status, &counts);
    errors.extend(beyond_replicas(path, status, &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"]));
    errors.extend(available_beyond_ready(path, status, "readyReplicas"));
    errors
}
