//! The spec of a job, or of the template that a cron job has for its jobs.

use revisor_object::names::domain_prefixed_path;
use revisor_object::{FieldError, FieldErrors, FieldPath, LabelSelectorOptions, Object, StructuredLabelSelector};

use super::{failure_policy, is_indexed, mismatch, success_policy};
use crate::Features;
use crate::checks::{not_negative, one_of};
use crate::kinds::pod_spec::{self, PodPolicy};
use crate::kinds::workload::{given_number, pod, shown, template, template_labels, text};

/// How many pods of an indexed job may run at once, so that the list of its completed indexes keeps its size.
const MAX_PARALLELISM: i64 = 100_000;

/// How many indexes may fail.
const MAX_FAILED_INDEXES: i64 = 100_000;

/// Above so many completions the bounds are lower, if failures are counted for each index.
const MANY_COMPLETIONS: i64 = 100_000;
const MAX_PARALLELISM_OF_MANY: i64 = 10_000;
const MAX_FAILED_INDEXES_OF_MANY: i64 = 10_000;

const MAX_MANAGED_BY_BYTES: usize = 63;

const COUNTS: [&str; 7] = [
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
];

/// What is wrong with a spec, apart from its selector.
pub(crate) fn validate(path: FieldPath<'_>, spec: &Object, old: Option<&Object>, policy: PodPolicy) -> FieldErrors {
    let given = COUNTS.iter().filter_map(|name| Some((name, given_number(spec, name)?)));
    let mut errors: FieldErrors = given.filter_map(|(name, count)| not_negative(path.child(name), count)).collect();
    if spec.contains("maxFailedIndexes") && !spec.contains("backoffLimitPerIndex") {
        let detail = "when maxFailedIndexes is specified";
        errors.push(FieldError::required(path.child("backoffLimitPerIndex"), detail));
    }
    if let Some(manager) = spec.str("managedBy") {
        let at = path.child("managedBy");
        errors.extend(domain_prefixed_path(&at, manager));
        if manager.len() > MAX_MANAGED_BY_BYTES {
            errors.push(FieldError::too_long(at, MAX_MANAGED_BY_BYTES));
        }
    }
    if let Some(mode) = spec.str("completionMode") {
        errors.extend(one_of(path.child("completionMode"), mode, &["NonIndexed", "Indexed"]));
    }
    if is_indexed(spec) {
        errors.extend(validate_indexed(path, spec));
    } else if spec.str("completionMode").is_none_or(|mode| mode == "NonIndexed") {
        for name in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            let needless = given_number(spec, name);
            let error = |count| FieldError::invalid(path.child(name), count, "requires indexed completion mode");
            errors.extend(needless.map(error));
        }
    }
    if let Some(policy) = spec.object("podFailurePolicy") {
        errors.extend(failure_policy::validate(path.child("podFailurePolicy"), policy, spec));
    }
    if let Some(policy) = spec.object("successPolicy") {
        let at = path.child("successPolicy");
        if is_indexed(spec) {
            errors.extend(success_policy::validate(at, policy, given_number(spec, "completions")));
        } else {
            errors.push(FieldError::invalid(at, shown(spec, "successPolicy"), "requires indexed completion mode"));
        }
    }
    if let Some(policy) = spec.str("podReplacementPolicy") {
        let all: &[&str] = &["Failed", "TerminatingOrFailed"];
        let allowed = if spec.contains("podFailurePolicy") { &all[..1] } else { all };
        errors.extend(one_of(path.child("podReplacementPolicy"), policy, allowed));
    }
    errors.extend(pod_spec::validate_template(path.child("template"), template(spec), old.map(template), policy));
    errors.extend(validate_restart_policy(path, spec));
    errors
}

fn validate_indexed(path: FieldPath<'_>, spec: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let completions = given_number(spec, "completions");
    let parallelism = given_number(spec, "parallelism");
    let failed = given_number(spec, "maxFailedIndexes");
    let (at_parallelism, at_failed) = (path.child("parallelism"), path.child("maxFailedIndexes"));
    if completions.is_none() {
        errors.push(FieldError::required(path.child("completions"), "when completion mode is Indexed"));
    }
    if let Some(count) = parallelism.filter(|count| *count > MAX_PARALLELISM) {
        let detail = format!("must be less than or equal to {MAX_PARALLELISM} when completion mode is Indexed");
        errors.push(FieldError::invalid(at_parallelism, count, detail));
    }
    if let Some(count) = failed.filter(|count| completions.is_some_and(|completions| *count > completions)) {
        errors.push(FieldError::invalid(at_failed, count, "must be less than or equal to completions"));
    }
    if let Some(count) = failed.filter(|count| *count > MAX_FAILED_INDEXES) {
        let detail = format!("must be less than or equal to {MAX_FAILED_INDEXES}");
        errors.push(FieldError::invalid(at_failed, count, detail));
    }
    let has_many = completions.is_some_and(|completions| completions > MANY_COMPLETIONS);
    if has_many && spec.contains("backoffLimitPerIndex") {
        if failed.is_none() {
            let detail = format!("must be specified when completions is above {MANY_COMPLETIONS}");
            errors.push(FieldError::required(at_failed, detail));
        }
        let detail = |most: i64| {
            format!(
                "must be less than or equal to {most} when completions are above {MANY_COMPLETIONS} and used with \
                 backoff limit per index"
            )
        };
        if let Some(count) = parallelism.filter(|count| *count > MAX_PARALLELISM_OF_MANY) {
            errors.push(FieldError::invalid(at_parallelism, count, detail(MAX_PARALLELISM_OF_MANY)));
        }
        if let Some(count) = failed.filter(|count| *count > MAX_FAILED_INDEXES_OF_MANY) {
            errors.push(FieldError::invalid(at_failed, count, detail(MAX_FAILED_INDEXES_OF_MANY)));
        }
    }
    errors
}

/// Pods that always restart never come to an end.
fn validate_restart_policy(path: FieldPath<'_>, spec: &Object) -> Option<FieldError> {
    let template = path.child("template");
    let at_pod = template.child("spec");
    let at = at_pod.child("restartPolicy");
    match text(pod(spec), "restartPolicy") {
        "" | "Always" => Some(FieldError::required(at, "valid values: \"OnFailure\", \"Never\"")),
        "Never" => None,
        policy @ "OnFailure" if spec.contains("podFailurePolicy") => {
            Some(FieldError::invalid(at, policy, "only \"Never\" is supported when podFailurePolicy is specified"))
        }
        "OnFailure" => None,
        policy => Some(FieldError::not_supported(at, policy, &["OnFailure", "Never"])),
    }
}

/// What is wrong with the selector of a job's spec, and with a template that it does not find.
pub(super) fn validate_selector(spec: &Object, old: Option<&Object>) -> FieldErrors {
    let root = FieldPath::root("spec");
    let path = root.child("selector");
    let Some(object) = spec.object("selector") else {
        return FieldErrors::from([FieldError::required(path, ""), mismatch(spec)]);
    };
    let old = old.and_then(|old| old.object("selector")).map(StructuredLabelSelector::new);
    let options = LabelSelectorOptions {
        allow_invalid_values: old.is_some_and(StructuredLabelSelector::has_invalid_value),
        ..LabelSelectorOptions::default()
    };
    let selector = StructuredLabelSelector::new(object);
    let mut errors = selector.validate(&path, options);
    if selector.to_selector().is_ok() && !selector.matches(template_labels(spec)) {
        errors.push(mismatch(spec));
    }
    errors
}

/// What is unwise about a spec.
pub(crate) fn warnings(path: FieldPath<'_>, spec: &Object, features: Features) -> Vec<String> {
    let mut warnings = Vec::new();
    let exceeds = |name, bound| given_number(spec, name).is_some_and(|count| count > bound);
    if is_indexed(spec) && exceeds("completions", MANY_COMPLETIONS) && exceeds("parallelism", MAX_PARALLELISM_OF_MANY) {
        warnings.push(format!(
            "{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, \
             Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        ));
    }
    warnings.extend(pod_spec::template_warnings(path.child("template"), template(spec), features));
    warnings
}
