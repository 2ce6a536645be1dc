//! Annotations that mean something to the server: of pods and of their templates.

use revisor_object::{FieldError, FieldErrors, FieldPath, Object};

use super::members::{part, text};
use super::options::Options;
use super::profiles;
use crate::kinds::taints;

const MIRROR: &str = "kubernetes.io/config.mirror";
const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/tolerations";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Whether metadata are those of a pod that only shows what a kubelet runs by itself.
pub(super) fn is_mirror(metadata: &Object) -> bool {
    part(metadata, "annotations").contains(MIRROR)
}

/// Whether metadata have no cost of deletion, or one that is a number.
pub(super) fn has_sound_deletion_cost(metadata: &Object) -> bool {
    let Some(cost) = part(metadata, "annotations").str(DELETION_COST) else { return true };
    let is_canonical = cost == "0" || cost.starts_with('-') || cost.starts_with(|first| matches!(first, '1'..='9'));
    is_canonical && cost.parse::<i32>().is_ok()
}

/// What is wrong with the annotations of a pod or a template. How strictly they are looked at is asked only where that
/// matters, because it takes a look at all of the old spec.
pub(super) fn validate(
    path: FieldPath<'_>,
    metadata: &Object,
    spec: &Object,
    options: impl Fn() -> Options,
    errors: &mut FieldErrors,
) {
    let Some(annotations) = metadata.object("annotations") else { return };
    if let Some(value) = annotations.str(MIRROR)
        && text(spec, "nodeName").is_empty()
    {
        let detail = "must set spec.nodeName if mirror pod annotation is set";
        errors.push(FieldError::invalid(path.key(MIRROR), value, detail));
    }
    let given = text(annotations, TOLERATIONS);
    if !given.is_empty() {
        match taints::TOLERATIONS.read(given) {
            Ok(list) => {
                let path = path.child(TOLERATIONS);
                errors.extend(taints::validate_tolerations(path, &list, options().comparing_tolerations));
            }
            Err(detail) => errors.push(FieldError::invalid(path, TOLERATIONS, detail)),
        }
    }
    if !has_sound_deletion_cost(metadata) && !options().any_deletion_cost {
        let cost = text(annotations, DELETION_COST);
        errors.push(FieldError::invalid(path.key(DELETION_COST), cost, "must be a 32bit integer"));
    }
    profiles::validate_annotations(path, annotations, spec, errors);
}
