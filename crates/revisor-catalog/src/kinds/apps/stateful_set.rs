//! StatefulSets: pods with names and claims of their own.

use revisor_object::names::dns1123_label;
use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, Seen, Value};

use crate::checks::{self, one_of, problems};
use crate::kinds::core::claim;
use crate::kinds::pod_spec::{self, PodPolicy};
use crate::kinds::workload::{
    NOTHING, available_beyond_ready, beyond_replicas, collisions_forgotten, default_template, fill,
    has_readable_selector, is_about_status, negative, number, share, shown, spec, status, template as template_of,
    template_warnings, text, validate_lasting_pods, validate_selector, warnings_on_update,
};
use crate::strategy::spec_or_status;
use crate::{Feature, Part, Places, Strategy};

const SPEC: FieldPath<'static> = FieldPath::root("spec");

/// What of the spec may be changed.
const CHANGEABLE: [&str; 7] = [
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
];

const FROZEN: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                      'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                      'minReadySeconds' are forbidden";

pub(crate) struct StatefulSets {
    pub(crate) policy: PodPolicy,
}

impl Strategy for StatefulSets {
    fn default(&self, object: &mut Object) {
        let spec = object.object_mut("spec");
        default_template(spec, self.policy.features);
        let strategy = spec.object_mut("updateStrategy");
        if text(strategy, "type").is_empty() {
            strategy.insert("type", "RollingUpdate");
            strategy.object_mut("rollingUpdate");
        }
        if text(strategy, "type") == "RollingUpdate" && strategy.contains("rollingUpdate") {
            let rolling = strategy.object_mut("rollingUpdate");
            fill(rolling, "partition", 0);
            if self.policy.features.has(Feature::MaxUnavailableStatefulSet) {
                fill(rolling, "maxUnavailable", 1);
            }
        }
        for claim in spec.array_mut("volumeClaimTemplates").into_iter().flatten().filter_map(Value::as_object_mut) {
            claim.insert("kind", "PersistentVolumeClaim");
            claim.insert("apiVersion", "v1");
            claim::default_claim_spec(claim.object_mut("spec"));
        }
    }

    fn tracked(&self) -> Places {
        &[&["spec"]]
    }

    fn untouched(&self, part: Part<'_>) -> Places {
        spec_or_status(part)
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        validate_spec(spec(object), None, Template::Checked, self.policy)
    }

    fn validate_update(&self, object: &Object, old: &Object, part: Part<'_>) -> FieldErrors {
        if part == Part::STATUS {
            return validate_status(status(object), status(old));
        }
        let (spec, old) = (spec(object), spec(old));
        // What was stored with a bad template stays changeable.
        let was_good = validate_spec(old, Some(old), Template::Checked, self.policy).is_empty();
        let template = if was_good { Template::Checked } else { Template::Tolerated };
        let mut errors = validate_spec(spec, Some(old), template, self.policy);
        if has_frozen_change(spec, old) {
            errors.push(FieldError::forbidden(SPEC, FROZEN));
        }
        errors
    }

    fn warnings(&self, object: &Object, old: Option<&Object>) -> Vec<String> {
        let mut warnings = match old {
            None => template_warnings(spec(object), self.policy.features),
            Some(old) if is_about_status(object, old) => return Vec::new(),
            Some(old) => warnings_on_update(object, old, self.policy.features),
        };
        let path = SPEC.child("volumeClaimTemplates");
        for (at, claim) in claims(spec(object)).enumerate() {
            let claim_spec = claim.object("spec").unwrap_or(NOTHING);
            let path = path.index(at);
            // The odd path of updates is the original's.
            let path = if old.is_some() { path.child("Spec") } else { path };
            warnings.extend(claim::claim_spec_warnings(path, claim_spec));
        }
        if number(spec(object), "revisionHistoryLimit") < 0 {
            let unwise = "spec.revisionHistoryLimit: a negative value retains all historical revisions; \
                          a value >= 0 is recommended";
            warnings.push(unwise.to_owned());
        }
        warnings
    }
}

/// Whether the template of a spec is looked at, beyond its labels.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Template {
    Checked,
    Tolerated,
}

fn claims(spec: &Object) -> impl Iterator<Item = &Object> {
    spec.array("volumeClaimTemplates").iter().filter_map(Value::as_object)
}

fn has_frozen_change(spec: &Object, old: &Object) -> bool {
    let frozen = |of: &Object| -> Vec<_> {
        of.iter()
            .filter(|(name, _)| !CHANGEABLE.contains(name))
            .map(|(name, value)| (name.to_owned(), value.clone()))
            .collect()
    };
    frozen(spec) != frozen(old)
}

fn validate_spec(spec: &Object, old: Option<&Object>, mode: Template, pods: PodPolicy) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let policy = text(spec, "podManagementPolicy");
    if !matches!(policy, "OrderedReady" | "Parallel") {
        let detail = "must be 'OrderedReady' or 'Parallel'";
        errors.push(FieldError::invalid(SPEC.child("podManagementPolicy"), policy, detail));
    }
    errors.extend(validate_strategy(spec));
    if let Some(retention) = spec.object("persistentVolumeClaimRetentionPolicy") {
        let path = SPEC.child("persistentVolumeClaimRetentionPolicy");
        for name in ["whenDeleted", "whenScaled"] {
            errors.extend(one_of(path.child(name), text(retention, name), &["Retain", "Delete"]));
        }
    }
    if old.is_none() {
        let path = SPEC.child("volumeClaimTemplates");
        for (at, claim) in claims(spec).enumerate() {
            let claim_spec = claim.object("spec").unwrap_or(NOTHING);
            errors.extend(claim::validate_claim_spec(path.index(at).child("spec"), claim_spec, pods.features));
        }
    }
    errors.extend(negative(SPEC, spec, &["replicas", "minReadySeconds"]));
    let ordinals = spec.object("ordinals").unwrap_or(NOTHING);
    errors.extend(checks::not_negative(SPEC.child("ordinals").child("start"), number(ordinals, "start")));
    // What cannot be changed is not looked at again.
    if old.is_none() {
        let service = text(spec, "serviceName");
        if !service.is_empty() {
            errors.extend(problems(SPEC.child("serviceName"), service, dns1123_label(service)));
        }
    }
    errors.extend(validate_selector(spec, "statefulset", ""));
    if has_readable_selector(spec) {
        errors.extend(validate_template(spec, old, mode, pods));
    }
    errors.extend(validate_lasting_pods(spec, "StatefulSet"));
    errors
}

fn validate_strategy(spec: &Object) -> FieldErrors {
    let path = SPEC.child("updateStrategy");
    let strategy = spec.object("updateStrategy").unwrap_or(NOTHING);
    let at_rolling = path.child("rollingUpdate");
    match (text(strategy, "type"), strategy.object("rollingUpdate")) {
        ("OnDelete" | "RollingUpdate", None) => FieldErrors::new(),
        ("OnDelete", Some(rolling)) => {
            let detail = "only allowed for updateStrategy 'RollingUpdate'";
            FieldErrors::from([FieldError::invalid(at_rolling, BadValue::of(rolling), detail)])
        }
        ("RollingUpdate", Some(rolling)) => {
            let mut errors = negative(at_rolling, rolling, &["partition"]);
            if rolling.contains("maxUnavailable") {
                let (unavailable, at) = (share(rolling, "maxUnavailable"), at_rolling.child("maxUnavailable"));
                errors.extend(unavailable.check_int_or_percent(&at));
                if unavailable.int_or_percent() == 0 {
                    errors.push(FieldError::invalid(at, BadValue::from(unavailable), "cannot be 0"));
                }
                errors.extend(unavailable.check_at_most_100_percent(&at));
            }
            errors
        }
        _ => {
            let detail = "must be 'RollingUpdate' or 'OnDelete'";
            FieldErrors::from([FieldError::invalid(path, shown(spec, "updateStrategy"), detail)])
        }
    }
}

/// Upstream: `ValidatePodTemplateSpecForStatefulSet`.
fn validate_template(spec: &Object, old: Option<&Object>, mode: Template, policy: PodPolicy) -> FieldErrors {
    let path = SPEC.child("template");
    let template = template_of(spec);
    let metadata = template.object("metadata").unwrap_or(NOTHING);
    let mut errors = match mode {
        Template::Checked => validate_pods(spec, old, policy),
        Template::Tolerated => FieldErrors::new(),
    };
    // Looked at in any case, and so a second time in a template that is checked.
    errors.extend(checks::labels(path.child("labels"), metadata.object("labels")));
    errors.extend(checks::annotations(path.child("annotations"), metadata.object("annotations")));
    let at_annotations = path.child("annotations");
    errors.extend(pod_spec::validate_annotations(at_annotations, template, old.map(template_of), policy));
    errors
}

/// The template as its pods will be: the controller gives them their host names and the volumes of their claims.
fn validate_pods(spec: &Object, old: Option<&Object>, policy: PodPolicy) -> FieldErrors {
    let path = SPEC.child("template");
    let template = template_of(spec);
    let old_template = old.map(template_of);
    let pod = template.object("spec").unwrap_or(NOTHING);
    let is_as_it_stands = !pod.contains("subdomain") && !pod.contains("hostname") && claims(spec).next().is_none();
    if is_as_it_stands {
        return pod_spec::validate_template(path, template, old_template, policy);
    }
    let mut completed = template.clone();
    let pod = completed.object_mut("spec");
    pod.remove("subdomain");
    pod.remove("hostname");
    add_claim_volumes(pod, spec);
    pod_spec::validate_template(path, &completed, old_template, policy)
}

fn add_claim_volumes(pod: &mut Object, spec: &Object) {
    let names: Vec<&str> =
        claims(spec).map(|claim| claim.at(&["metadata", "name"]).and_then(Value::as_str).unwrap_or_default()).collect();
    if names.is_empty() {
        return;
    }
    let mut volumes: Vec<Value> = Vec::new();
    let mut claimed = Seen::default();
    for name in &names {
        if !claimed.is_new(*name) {
            continue;
        }
        let source: Object = [("claimName", Value::from(*name))].into_iter().collect();
        let volume = [("name", Value::from(*name)), ("persistentVolumeClaim", Value::from(source))];
        volumes.push(Value::Object(volume.into_iter().collect()));
    }
    let own = pod.array("volumes").iter();
    let others = own.filter(|volume| volume.as_object().is_none_or(|volume| !claimed.has(&text(volume, "name"))));
    volumes.extend(others.cloned());
    pod.insert("volumes", volumes);
}

fn validate_status(status: &Object, old: &Object) -> FieldErrors {
    let path = FieldPath::root("status");
    let counts = [
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
        "collisionCount",
    ];
    let mut errors = negative(path, status, &counts);
    let parts = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
    errors.extend(beyond_replicas(path, status, &parts));
    errors.extend(available_beyond_ready(path, status, "status.readyReplicas"));
    errors.extend(collisions_forgotten(path, status, old));
    errors
}

#[cfg(test)]
mod tests;
