//! Deployments: pods that are replaced step by step when their template changes.

use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, Value};

use crate::checks::{immutable, parse_int};
use crate::kinds::pod_spec::{self, PodPolicy};
use crate::kinds::workload::{
    NOTHING, available_beyond_ready, beyond_replicas, collisions_forgotten, default_template, fill, given_number,
    has_readable_selector, negative, number, share, shown, spec, status, template, text, validate_lasting_pods,
    validate_selector, warnings_on_create, warnings_on_update,
};
use crate::{Part, Places, Strategy};

const SPEC: FieldPath<'static> = FieldPath::root("spec");

/// What is left of a field of the first versions: the revision to roll back to.
const ROLLBACK_TO: &str = "deprecated.deployment.rollback.to";

pub(crate) struct Deployments {
    pub(crate) policy: PodPolicy,
}

impl Strategy for Deployments {
    fn default(&self, object: &mut Object) {
        let spec = object.object_mut("spec");
        default_template(spec, self.policy.features);
        let strategy = spec.object_mut("strategy");
        if text(strategy, "type") == "RollingUpdate" {
            let rolling = strategy.object_mut("rollingUpdate");
            fill(rolling, "maxUnavailable", "25%");
            fill(rolling, "maxSurge", "25%");
        }
        settle_rollback(object);
    }

    fn unreadable(&self, object: &Object) -> Option<String> {
        let written = rollback_to(object).filter(|written| !written.is_empty())?;
        let problem = parse_int(written).err()?;
        Some(format!("failed to parse annotation[{ROLLBACK_TO}]={written} as int64: {problem}"))
    }

    fn tracked(&self) -> Places {
        // Annotations are passed on to replica sets.
        &[&["spec"], &["metadata", "annotations"]]
    }

    fn untouched(&self, part: Part<'_>) -> Places {
        // Its annotations may go with its status, where controllers note a revision; its labels may not.
        if part == Part::STATUS { &[&["spec"], &["metadata", "labels"]] } else { &[&["status"]] }
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        validate_spec(object, None, self.policy)
    }

    fn validate_update(&self, object: &Object, old: &Object, part: Part<'_>) -> FieldErrors {
        if part == Part::STATUS {
            return validate_status(status(object), status(old));
        }
        let mut errors = validate_spec(object, Some(spec(old)), self.policy);
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

/// Writes the revision to roll back to in its one form. An empty one says nothing.
fn settle_rollback(object: &mut Object) {
    let Some(written) = rollback_to(object) else { return };
    let canonical = written.parse::<i64>().ok().map(|revision| revision.to_string());
    if written.is_empty() || canonical.as_deref().is_some_and(|canonical| canonical != written) {
        let metadata = object.object_mut("metadata");
        metadata.object_mut("annotations").set(ROLLBACK_TO, canonical.map(Value::from));
        if metadata.object("annotations").is_some_and(Object::is_empty) {
            metadata.remove("annotations");
        }
    }
}

fn validate_spec(object: &Object, old: Option<&Object>, policy: PodPolicy) -> FieldErrors {
    let spec = spec(object);
    let mut errors = negative(SPEC, spec, &["replicas"]);
    errors.extend(validate_selector(spec, "deployment", "invalid label selector"));
    if has_readable_selector(spec) {
        errors.extend(pod_spec::validate_template(SPEC.child("template"), template(spec), old.map(template), policy));
        // Its pods are those of its replica sets.
        errors.extend(validate_lasting_pods(spec, "ReplicaSet"));
    }
    errors.extend(validate_strategy(spec));
    errors.extend(negative(SPEC, spec, &["minReadySeconds", "revisionHistoryLimit"]));
    errors.extend(validate_rollback(object));
    if let Some(deadline) = given_number(spec, "progressDeadlineSeconds") {
        errors.extend(negative(SPEC, spec, &["progressDeadlineSeconds"]));
        if deadline <= number(spec, "minReadySeconds") {
            let detail = "must be greater than minReadySeconds";
            errors.push(FieldError::invalid(SPEC.child("progressDeadlineSeconds"), deadline, detail));
        }
    }
    errors
}

fn validate_strategy(spec: &Object) -> FieldErrors {
    let path = SPEC.child("strategy");
    let strategy = spec.object("strategy").unwrap_or(NOTHING);
    let at_rolling = path.child("rollingUpdate");
    match (text(strategy, "type"), strategy.object("rollingUpdate")) {
        ("Recreate", None) => FieldErrors::new(),
        ("Recreate", Some(_)) => {
            let detail = "may not be specified when strategy `type` is 'Recreate'";
            FieldErrors::from([FieldError::forbidden(at_rolling, detail)])
        }
        ("RollingUpdate", rolling) => {
            let rolling = rolling.unwrap_or(NOTHING);
            let (unavailable, surge) = (share(rolling, "maxUnavailable"), share(rolling, "maxSurge"));
            let at_unavailable = at_rolling.child("maxUnavailable");
            let mut errors = unavailable.check_int_or_percent(&at_unavailable);
            errors.extend(surge.check_int_or_percent(&at_rolling.child("maxSurge")));
            if unavailable.int_or_percent() == 0 && surge.int_or_percent() == 0 {
                let detail = "may not be 0 when `maxSurge` is 0";
                errors.push(FieldError::invalid(at_unavailable, BadValue::from(unavailable), detail));
            }
            errors.extend(unavailable.check_at_most_100_percent(&at_unavailable));
            errors
        }
        _ => FieldErrors::from([FieldError::not_supported(
            path,
            shown(spec, "strategy"),
            &["Recreate", "RollingUpdate"],
        )]),
    }
}

fn validate_rollback(object: &Object) -> Option<FieldError> {
    let revision = rollback_to(object)?.parse::<i64>().ok()?;
    let detail = "must be greater than or equal to 0";
    (revision < 0).then(|| FieldError::invalid("spec.rollback.version", revision, detail))
}

fn rollback_to(object: &Object) -> Option<&str> {
    object.at(&["metadata", "annotations", ROLLBACK_TO]).and_then(Value::as_str)
}

fn validate_status(status: &Object, old: &Object) -> FieldErrors {
    let path = FieldPath::root("status");
    let counts = [
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    ];
    let mut errors = negative(path, status, &counts);
    errors.extend(beyond_replicas(path, status, &["updatedReplicas", "readyReplicas", "availableReplicas"]));
    errors.extend(available_beyond_ready(path, status, "readyReplicas"));
    errors.extend(collisions_forgotten(path, status, old));
    errors
}

#[cfg(test)]
mod tests;
