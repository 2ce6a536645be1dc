//! Jobs: pods that run until so many have succeeded.
//!
//! A job finds its pods by labels that the server makes up, unless it is asked not to. The rules of its spec are in
//! [`spec`], those of its status in [`status`], and what of its template may be changed later in [`template`].

mod failure_policy;
mod indexes;
mod spec;
mod status;
mod success_policy;
mod template;

use revisor_object::names::{dns1123_label, label_value};
use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, StructuredLabelSelector, Value};

use crate::checks::immutable;
use crate::kinds::pod_spec::PodPolicy;
use crate::kinds::workload::{
    NOTHING, default_template, fill, given_number, is_counted, mismatch, name_warning, number, spec as spec_of,
    template_labels, text,
};
use crate::kinds::{Kind, field};
use crate::strategy::spec_or_status;
use crate::{Circumstances, Feature, Part, Places, SelectableField, Strategy};

pub(super) use spec::{validate as validate_job_spec, warnings as job_spec_warnings};

const SPEC: FieldPath<'static> = FieldPath::root("spec");

const JOB_NAME: &str = "batch.kubernetes.io/job-name";
const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";
const LEGACY_JOB_NAME: &str = "job-name";
const LEGACY_CONTROLLER_UID: &str = "controller-uid";

pub(super) fn kind(policy: PodPolicy) -> Kind {
    let succeeded = SelectableField { absent: "0", ..field("status.successful", &[&["status", "succeeded"]]) };
    Kind { selectable: vec![succeeded], ..Kind::usual(Jobs { policy }) }
}

pub(crate) struct Jobs {
    pub(crate) policy: PodPolicy,
}

impl Strategy for Jobs {
    fn default(&self, object: &mut Object) {
        let spec = object.object_mut("spec");
        default_template(spec, self.policy.features);
        if !spec.contains("completions") && !spec.contains("parallelism") {
            spec.insert("completions", 1);
        }
        fill(spec, "parallelism", 1);
        let limit = if spec.contains("backoffLimitPerIndex") { i32::MAX } else { 6 };
        fill(spec, "backoffLimit", limit);
        fill(spec, "completionMode", "NonIndexed");
        fill(spec, "suspend", false);
        if self.policy.features.has(Feature::JobPodReplacementPolicy) {
            let replacement = if spec.contains("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
            fill(spec, "podReplacementPolicy", replacement);
        }
        fill(spec, "manualSelector", false);
        // A new job inherits the labels of its template together with those that are made up for it.
        let is_complete = has_manual_selector(spec)
            || template_labels(spec).is_some_and(|labels| labels.contains(LEGACY_CONTROLLER_UID));
        if is_complete {
            inherit_labels(object);
        }
    }

    /// In the original a job inherits the labels of its template by its defaults, as one map with theirs, in which those
    /// that are made up show up later: whoever sent the template manages the ones that were sent.
    fn as_managed(&self, object: &Object) -> Option<Object> {
        template_labels(spec_of(object))?;
        let mut object = object.clone();
        inherit_labels(&mut object);
        Some(object)
    }

    fn tracked(&self) -> Places {
        &[&["spec"]]
    }

    fn untouched(&self, part: Part<'_>) -> Places {
        spec_or_status(part)
    }

    fn settle(&self, object: &mut Object, old: Option<&Object>, _: Circumstances<'_>) {
        // Who manages a job is fixed once it is made, so nobody comes to it later.
        if !self.policy.features.has(Feature::JobManagedBy) && old.is_none() {
            object.object_mut("spec").remove("managedBy");
        }
    }

    /// Defaults are filled in whenever a job is read, so what a write of the status took away comes back.
    fn settle_status(&self, object: &mut Object, _: &Object) {
        inherit_labels(object);
    }

    fn prepare_create(&self, object: &mut Object, circumstances: Circumstances<'_>) {
        object.remove("status");
        let had_labels = template_labels(spec_of(object)).is_some();
        if !has_manual_selector(spec_of(object)) {
            generate_selector(object);
            // In the original, labels of a template that had none show up on the job only once it is stored. So what is
            // wrong with them is not said of the job.
            let name = object.at(&["metadata", "name"]).and_then(Value::as_str).unwrap_or_default();
            if had_labels || label_value(name).is_empty() {
                inherit_labels(object);
            }
        }
        self.settle(object, None, circumstances);
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        validate_whole(object, None, self.policy)
    }

    fn validate_update(&self, object: &Object, old: &Object, part: Part<'_>) -> FieldErrors {
        if part == Part::STATUS {
            return status::validate(object, old, self.policy.features);
        }
        let mut errors = validate_whole(object, Some(old), self.policy);
        let (new, old_spec) = (spec_of(object), spec_of(old));
        // Once as what it is, and once as what takes the place of the old one.
        errors.extend(spec::validate(SPEC, new, Some(old_spec), self.policy));
        errors.extend(spec::validate_selector(new, Some(old_spec)));
        errors.extend(validate_completions(new, old_spec));
        let frozen = |name| immutable(SPEC.child(name), new.get(name), old_spec.get(name));
        errors.extend(frozen("selector"));
        errors.extend(template::validate_update(object, old, self.policy.features));
        let rest = ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"];
        errors.extend(rest.into_iter().filter_map(frozen));
        errors
    }

    fn warnings(&self, object: &Object, old: Option<&Object>) -> Vec<String> {
        match old {
            None => {
                let mut warnings: Vec<String> = name_warning(object).into_iter().collect();
                warnings.extend(spec::warnings(SPEC, spec_of(object), self.policy.features));
                warnings
            }
            Some(old) if is_counted(object, old) => spec::warnings(SPEC, spec_of(object), self.policy.features),
            Some(_) => Vec::new(),
        }
    }

    fn orphans_by_default(&self) -> bool {
        true
    }

    fn warns_of_orphans(&self) -> Option<&'static str> {
        Some(
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or \
             set propagationPolicy=Orphan to suppress this warning",
        )
    }
}

fn has_manual_selector(spec: &Object) -> bool {
    spec.get("manualSelector").and_then(Value::as_bool) == Some(true)
}

fn is_indexed(spec: &Object) -> bool {
    text(spec, "completionMode") == "Indexed"
}

/// A job without labels has those of its template.
fn inherit_labels(object: &mut Object) {
    let has_own = object.at(&["metadata", "labels"]).and_then(Value::as_object).is_some_and(|own| !own.is_empty());
    let labels = template_labels(spec_of(object)).filter(|_| !has_own).cloned();
    if let Some(labels) = labels {
        object.object_mut("metadata").insert("labels", labels);
    }
}

/// Marks the template with the job's name and identity, and selects by the latter. What a client has set there stays,
/// and is found wrong later.
fn generate_selector(object: &mut Object) {
    let metadata = object.object("metadata").unwrap_or(NOTHING);
    let (name, uid) = (text(metadata, "name").to_owned(), text(metadata, "uid").to_owned());
    let spec = object.object_mut("spec");
    let labels = spec.object_mut("template").object_mut("metadata").object_mut("labels");
    for key in [LEGACY_JOB_NAME, JOB_NAME] {
        fill(labels, key, name.as_str());
    }
    for key in [LEGACY_CONTROLLER_UID, CONTROLLER_UID] {
        fill(labels, key, uid.as_str());
    }
    fill(spec.object_mut("selector").object_mut("matchLabels"), CONTROLLER_UID, uid);
}

fn validate_whole(object: &Object, old: Option<&Object>, policy: PodPolicy) -> FieldErrors {
    let spec = spec_of(object);
    let old_spec = old.map(spec_of);
    let mut errors = validate_generated_selector(object, old_spec);
    errors.extend(spec::validate(SPEC, spec, old_spec, policy));
    errors.extend(spec::validate_selector(spec, old_spec));
    let completions = number(spec, "completions");
    if is_indexed(spec) && completions > 0 {
        let name = object.at(&["metadata", "name"]).and_then(Value::as_str).unwrap_or_default();
        let host = format!("{name}-{}", completions - 1);
        if !dns1123_label(&host).is_empty() {
            let detail = format!("will not able to create pod with invalid DNS label: {host}");
            errors.push(FieldError::invalid("metadata.name", name, detail));
        }
    }
    errors
}

/// Labels that were made up must still be as they were. Jobs from before the prefixed labels need not have them.
fn validate_generated_selector(object: &Object, old: Option<&Object>) -> FieldErrors {
    let spec = spec_of(object);
    let Some(selector) = spec.object("selector").filter(|_| !has_manual_selector(spec)) else {
        return FieldErrors::new();
    };
    let metadata = object.object("metadata").unwrap_or(NOTHING);
    let (name, uid) = (text(metadata, "name"), text(metadata, "uid"));
    let needs_prefixed = old.is_none_or(|old| {
        template_labels(old).is_some_and(|labels| labels.contains(JOB_NAME) && labels.contains(CONTROLLER_UID))
    });
    let all = [(LEGACY_CONTROLLER_UID, uid), (LEGACY_JOB_NAME, name), (CONTROLLER_UID, uid), (JOB_NAME, name)];
    let expected = if needs_prefixed { &all[..] } else { &all[..2] };
    let labels = template_labels(spec).unwrap_or(NOTHING);
    let root = SPEC.child("template");
    let at_metadata = root.child("metadata");
    let path = at_metadata.child("labels");
    let mut errors = FieldErrors::new();
    for (key, value) in expected {
        let detail = || format!("must be '{value}'");
        match labels.str(key) {
            None => errors.push(FieldError::required(path.key(key), detail())),
            Some(found) if found == *value => {}
            Some(_) => errors.push(FieldError::invalid(path.key(key), BadValue::of(labels), detail())),
        }
    }
    let expected: Object = expected.iter().map(|(key, value)| (*key, Value::from(*value))).collect();
    let selector = StructuredLabelSelector::new(selector);
    if selector.to_selector().is_ok() && !selector.matches(Some(&expected)) {
        let shown = spec.get("selector").map_or(BadValue::Omitted, BadValue::of);
        errors.push(FieldError::invalid(SPEC.child("selector"), shown, "`selector` not auto-generated"));
    }
    errors
}

/// How many must succeed is only changed for indexed jobs, together with how many run at once.
fn validate_completions(spec: &Object, old: &Object) -> Option<FieldError> {
    let path = SPEC.child("completions");
    if !is_indexed(spec) {
        return immutable(path, spec.get("completions"), old.get("completions"));
    }
    let completions = given_number(spec, "completions").filter(|now| given_number(old, "completions") != Some(*now))?;
    let detail = "can only be modified in tandem with spec.parallelism";
    (completions != number(spec, "parallelism")).then(|| FieldError::invalid(path, completions, detail))
}

#[cfg(test)]
mod tests;
