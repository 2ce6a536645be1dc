//! Templates from which a claim is made for each pod.

use revisor_object::{FieldError, FieldErrors, FieldPath, Object};

use super::device_claim;
use super::selectors::Selectors;
use crate::checks::{self, immutable};
use crate::{Features, Part, Strategy};

const SPEC: FieldPath<'static> = FieldPath::root("spec");

/// What the metadata of a template may not say, in the order of the original's type.
const SET_BY_OTHERS: [&str; 13] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

pub(crate) struct ResourceClaimTemplates {
    pub(super) selectors: Selectors,
    pub(super) features: Features,
}

impl Strategy for ResourceClaimTemplates {
    fn default(&self, object: &mut Object) {
        device_claim::default_spec(object.object_mut("spec").object_mut("spec"));
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        let empty = Object::new();
        let template = object.object("spec").unwrap_or(&empty);
        let metadata = template.object("metadata").unwrap_or(&empty);
        let path = SPEC.child("metadata");
        let mut errors = checks::annotations(path.child("annotations"), metadata.object("annotations"));
        errors.extend(checks::labels(path.child("labels"), metadata.object("labels")));
        let others = SET_BY_OTHERS.iter().filter(|name| metadata.is_sent(name));
        errors.extend(others.map(|name| {
            // The letters are the original's.
            let shown = if *name == "uid" { "uID" } else { name };
            FieldError::forbidden(path.child(shown), "cannot be set")
        }));
        let spec = template.object("spec").unwrap_or(&empty);
        errors.extend(device_claim::validate_spec(SPEC.child("spec"), spec, &self.selectors, self.features));
        errors
    }

    fn validate_update(&self, object: &Object, old: &Object, _: Part<'_>) -> FieldErrors {
        let mut errors = self.validate(object);
        errors.extend(immutable(SPEC, object.get("spec"), old.get("spec")));
        errors
    }
}
