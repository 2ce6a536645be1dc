//! The status of a job: what its controller may say, in which order, and what it may not take back. Most rules only
//! bind a write that changes what they are about.

use std::collections::HashSet;

use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, Value};

use super::{indexes, is_indexed};
use crate::kinds::workload::{
    NOTHING, given_number, negative, number, shown, spec as spec_of, status as status_of, text,
};
use crate::{Feature, Features};

const STATUS: FieldPath<'static> = FieldPath::root("status");

/// Whether a status has a condition with this status.
pub(super) fn has_condition(status: &Object, kind: &str, value: &str) -> bool {
    let conditions = status.array("conditions").iter().filter_map(Value::as_object);
    conditions.into_iter().any(|condition| text(condition, "type") == kind && text(condition, "status") == value)
}

/// What the conditions of a status say.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Verdict {
    complete: bool,
    failed: bool,
    failure_target: bool,
    success_criteria_met: bool,
}

impl Verdict {
    fn of(status: &Object) -> Verdict {
        let is_true = |kind| has_condition(status, kind, "True");
        Verdict {
            complete: is_true("Complete"),
            failed: is_true("Failed"),
            failure_target: is_true("FailureTarget"),
            success_criteria_met: is_true("SuccessCriteriaMet"),
        }
    }

    fn finished(self) -> bool {
        self.complete || self.failed
    }
}

/// A status in place of another.
struct Change<'a> {
    spec: &'a Object,
    new: &'a Object,
    old: &'a Object,
    now: Verdict,
    before: Verdict,
}

impl Change<'_> {
    fn differs(&self, name: &str) -> bool {
        self.new.get(name) != self.old.get(name)
    }

    fn is_finished_or_differs(&self, name: &str) -> bool {
        self.now.finished() != self.before.finished() || self.differs(name)
    }
}

pub(super) fn validate(object: &Object, old: &Object, features: Features) -> FieldErrors {
    let (new, old) = (status_of(object), status_of(old));
    let change = Change { spec: spec_of(object), new, old, now: Verdict::of(new), before: Verdict::of(old) };
    let mut errors = negative(STATUS, new, &["active", "succeeded", "failed", "ready", "terminating"]);
    errors.extend(validate_uncounted(new));
    validate_conditions(&change, features, &mut errors);
    if !features.has(Feature::JobManagedBy) {
        // Only where others may write it is the status held to all of this.
        return errors;
    }
    validate_times(&change, &mut errors);
    validate_finished(&change, &mut errors);
    validate_indexes(&change, &mut errors);
    validate_progress(&change, &mut errors);
    errors
}

fn uncounted<'o>(status: &'o Object, list: &str) -> &'o [Value] {
    status.object("uncountedTerminatedPods").unwrap_or(NOTHING).array(list)
}

fn validate_uncounted(status: &Object) -> FieldErrors {
    let path = STATUS.child("uncountedTerminatedPods");
    let mut errors = FieldErrors::new();
    let mut seen = HashSet::new();
    for list in ["succeeded", "failed"] {
        let path = path.child(list);
        for (at, uid) in uncounted(status, list).iter().enumerate() {
            let (at, uid) = (path.index(at), uid.as_str().unwrap_or_default());
            if uid.is_empty() {
                errors.push(FieldError::invalid(at, uid, "must not be empty"));
            } else if !seen.insert(uid) {
                errors.push(FieldError::duplicate(at, uid));
            }
        }
    }
    errors
}

/// Conditions that exclude each other or need each other, and those that cannot be taken back.
fn validate_conditions(change: &Change<'_>, features: Features, errors: &mut FieldErrors) {
    let (now, before) = (change.now, change.before);
    let completes = now.complete != before.complete;
    let fails = now.failed != before.failed;
    let of_others = [
        ((completes || fails) && now.complete && now.failed, "cannot set Complete=True and Failed=true conditions"),
        (
            (completes || now.failure_target != before.failure_target) && now.complete && now.failure_target,
            "cannot set Complete=True and FailureTarget=true conditions",
        ),
        (
            (fails || change.differs("failedIndexes")) && now.failed && !now.failure_target,
            "cannot set Failed=True condition without the FailureTarget=true condition",
        ),
        (
            (completes || now.success_criteria_met != before.success_criteria_met)
                && now.complete
                && !now.success_criteria_met,
            "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
        ),
        (before.failed && !now.failed, "cannot disable the terminal Failed=True condition"),
        (before.complete && !now.complete, "cannot disable the terminal Complete=True condition"),
        (before.failure_target && !now.failure_target, "cannot disable the terminal FailureTarget=True condition"),
    ];
    let is_limited = !features.has(Feature::JobManagedBy)
        && !features.has(Feature::JobPodReplacementPolicy)
        && !before.success_criteria_met;
    let of_all = [
        (
            is_limited && now.success_criteria_met && !is_indexed(change.spec),
            "cannot set SuccessCriteriaMet to NonIndexed Job",
        ),
        (
            is_limited && now.success_criteria_met && !change.spec.contains("successPolicy"),
            "cannot set SuccessCriteriaMet=True for Job without SuccessPolicy",
        ),
        (now.success_criteria_met && now.failed, "cannot set SuccessCriteriaMet=True and Failed=true conditions"),
        (
            now.success_criteria_met && now.failure_target,
            "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
        ),
        (
            change.spec.contains("successPolicy") && now.complete && !now.success_criteria_met,
            "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True",
        ),
        (
            before.success_criteria_met && !now.success_criteria_met,
            "cannot disable the SuccessCriteriaMet=True condition",
        ),
        (
            before.complete && !before.success_criteria_met && now.success_criteria_met,
            "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions",
        ),
    ];
    let of_others = of_others.into_iter().filter(|_| features.has(Feature::JobManagedBy));
    let broken = of_others.chain(of_all).filter(|(is_broken, _)| *is_broken);
    let path = STATUS.child("conditions");
    errors.extend(broken.map(|(_, detail)| FieldError::invalid(path, BadValue::Omitted, detail)));
}

fn validate_times(change: &Change<'_>, errors: &mut FieldErrors) {
    let (new, old) = (change.new, change.old);
    let (start, completion) = (new.str("startTime"), new.str("completionTime"));
    let at_completion = STATUS.child("completionTime");
    let invalid = |path, name, detail: &str| FieldError::invalid(path, shown(new, name), detail);
    if change.now.complete != change.before.complete || change.differs("completionTime") {
        match (completion, change.now.complete) {
            (Some(_), false) => {
                let detail = "cannot set completionTime when there is no Complete=True condition";
                errors.push(invalid(at_completion, "completionTime", detail));
            }
            (None, true) => {
                errors.push(FieldError::required(at_completion, "completionTime is required for Complete jobs"));
            }
            _ => {}
        }
    }
    // Times are kept in one form, so that their texts are in their order.
    let is_early = start.zip(completion).is_some_and(|(start, completion)| completion < start);
    if is_early && (change.differs("startTime") || change.differs("completionTime")) {
        errors.push(invalid(at_completion, "completionTime", "must be equal to or after `startTime`"));
    }
    if completion.is_some() && old.contains("completionTime") && change.differs("completionTime") {
        errors.push(invalid(at_completion, "completionTime", "field is immutable"));
    }
    let is_suspended = change.spec.get("suspend").and_then(Value::as_bool) == Some(true);
    let resumes = has_condition(old, "Suspended", "True") && has_condition(new, "Suspended", "False");
    if old.contains("startTime") && change.differs("startTime") && !resumes && !is_suspended {
        let detail = "field is immutable for unsuspended job once set";
        errors.push(invalid(STATUS.child("startTime"), "startTime", detail));
    }
}

/// A job that is finished has nothing going on any more.
fn validate_finished(change: &Change<'_>, errors: &mut FieldErrors) {
    let (new, spec) = (change.new, change.spec);
    if !change.now.finished() {
        return;
    }
    for name in ["active", "terminating"] {
        let count = number(new, name);
        if count > 0 && change.is_finished_or_differs(name) {
            let detail = format!("{name}>0 is invalid for finished job");
            errors.push(FieldError::invalid(STATUS.child(name), count, detail));
        }
    }
    let never_had_to_start =
        spec.get("suspend").and_then(Value::as_bool) == Some(true) && given_number(spec, "completions") == Some(0);
    if !new.contains("startTime") && change.is_finished_or_differs("startTime") && !never_had_to_start {
        errors.push(FieldError::required(STATUS.child("startTime"), "startTime is required for finished job"));
    }
    let is_uncounted = ["succeeded", "failed"].iter().any(|list| !uncounted(new, list).is_empty());
    if is_uncounted && change.is_finished_or_differs("uncountedTerminatedPods") {
        let pods = shown(new, "uncountedTerminatedPods");
        let detail = "must be empty for finished job";
        errors.push(FieldError::invalid(STATUS.child("uncountedTerminatedPods"), pods, detail));
    }
}

fn validate_indexes(change: &Change<'_>, errors: &mut FieldErrors) {
    let (new, spec) = (change.new, change.spec);
    let (completed, failed) = (text(new, "completedIndexes"), new.str("failedIndexes"));
    let (at_completed, at_failed) = (STATUS.child("completedIndexes"), STATUS.child("failedIndexes"));
    let completions = given_number(spec, "completions");
    let has_limit = spec.contains("backoffLimitPerIndex");
    if change.differs("completedIndexes") {
        if let Some(Err(problem)) = completions.map(|completions| indexes::count(completed, completions)) {
            let detail = format!("error parsing completedIndexes: {problem}");
            errors.push(FieldError::invalid(at_completed, completed, detail));
        }
        if !completed.is_empty() && !is_indexed(spec) {
            let detail = "cannot set non-empty completedIndexes when non-indexed completion mode";
            errors.push(FieldError::invalid(at_completed, completed, detail));
        }
    }
    let Some(failed) = failed else { return };
    if change.differs("failedIndexes") {
        let counted = completions.filter(|_| has_limit).map(|completions| indexes::count(failed, completions));
        if let Some(Err(problem)) = counted {
            let detail = format!("error parsing failedIndexes: {problem}");
            errors.push(FieldError::invalid(at_failed, failed, detail));
        }
        if !has_limit {
            let detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
            errors.push(FieldError::invalid(at_failed, failed, detail));
        }
    }
    if change.differs("failedIndexes") || change.differs("completedIndexes") {
        let shared = completions.and_then(|completions| indexes::overlap(completed, failed, completions));
        errors.extend(shared.map(|detail| FieldError::invalid(at_failed, failed, detail)));
    }
}

/// Counters go up, and no more pods are ready than there are.
fn validate_progress(change: &Change<'_>, errors: &mut FieldErrors) {
    let (new, old, spec) = (change.new, change.old, change.spec);
    if let Some(ready) = given_number(new, "ready").filter(|ready| *ready > number(new, "active"))
        && (change.differs("ready") || change.differs("active"))
    {
        errors.push(FieldError::invalid(STATUS.child("ready"), ready, "cannot set more ready pods than active"));
    }
    // An elastic job may be made smaller, and then has fewer successes.
    let is_elastic = is_indexed(spec) && spec.get("completions") == spec.get("parallelism");
    for (name, is_bound) in [("failed", true), ("succeeded", !is_elastic)] {
        let count = number(new, name);
        if is_bound && count < number(old, name) {
            let detail = format!("cannot decrease the {name} counter");
            errors.push(FieldError::invalid(STATUS.child(name), count, detail));
        }
    }
}

#[cfg(test)]
mod tests;
