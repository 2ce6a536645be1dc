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
    // Only where others may write it is the status held to all of this.
    let is_shared = features.has(Feature::JobManagedBy);
    if is_shared {
        validate_completion(&change, &mut errors);
        validate_finished(&change, &mut errors);
        validate_indexes(&change, &mut errors);
        validate_pods(&change, &mut errors);
    }
    validate_success(&change, features, &mut errors);
    if is_shared {
        validate_progress(&change, &mut errors);
    }
    validate_lasting_success(&change, &mut errors);
    errors
}

/// One error for each of these statements about conditions that is true.
fn conditions<const N: usize>(broken: [(bool, &str); N]) -> impl Iterator<Item = FieldError> {
    let broken = broken.into_iter().filter(|(is_broken, _)| *is_broken);
    broken.map(|(_, detail)| FieldError::invalid(STATUS.child("conditions"), BadValue::Omitted, detail))
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

/// Conditions that exclude each other or need each other, and when a job was complete.
fn validate_completion(change: &Change<'_>, errors: &mut FieldErrors) {
    let (now, before, new) = (change.now, change.before, change.new);
    let completes = now.complete != before.complete;
    let fails = now.failed != before.failed;
    errors.extend(conditions([
        ((completes || fails) && now.complete && now.failed, "cannot set Complete=True and Failed=true conditions"),
        (
            (completes || now.failure_target != before.failure_target) && now.complete && now.failure_target,
            "cannot set Complete=True and FailureTarget=true conditions",
        ),
    ]));
    let (start, completion) = (new.str("startTime"), new.str("completionTime"));
    let path = STATUS.child("completionTime");
    let invalid = |detail: &str| FieldError::invalid(path, shown(new, "completionTime"), detail);
    if completes || change.differs("completionTime") {
        match (completion, now.complete) {
            (Some(_), false) => {
                errors.push(invalid("cannot set completionTime when there is no Complete=True condition"));
            }
            (None, true) => errors.push(FieldError::required(path, "completionTime is required for Complete jobs")),
            _ => {}
        }
    }
    // Times are kept in one form, so that their texts are in their order.
    let is_early = start.zip(completion).is_some_and(|(start, completion)| completion < start);
    if is_early && (change.differs("startTime") || change.differs("completionTime")) {
        errors.push(invalid("must be equal to or after `startTime`"));
    }
    errors.extend(conditions([
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
    ]));
}

/// What the condition that enough has succeeded goes together with.
fn validate_success(change: &Change<'_>, features: Features, errors: &mut FieldErrors) {
    let (now, before) = (change.now, change.before);
    let is_limited = !features.has(Feature::JobManagedBy)
        && !features.has(Feature::JobPodReplacementPolicy)
        && !before.success_criteria_met;
    errors.extend(conditions([
        (
            is_limited && now.success_criteria_met && !is_indexed(change.spec),
            "cannot set SuccessCriteriaMet to NonIndexed Job",
        ),
        (now.success_criteria_met && now.failed, "cannot set SuccessCriteriaMet=True and Failed=true conditions"),
        (
            now.success_criteria_met && now.failure_target,
            "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
        ),
        (
            is_limited && now.success_criteria_met && !change.spec.contains("successPolicy"),
            "cannot set SuccessCriteriaMet=True for Job without SuccessPolicy",
        ),
        (
            change.spec.contains("successPolicy") && now.complete && !now.success_criteria_met,
            "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True",
        ),
    ]));
}

/// That enough has succeeded can neither be taken back nor be said too late.
fn validate_lasting_success(change: &Change<'_>, errors: &mut FieldErrors) {
    let (now, before) = (change.now, change.before);
    errors.extend(conditions([
        (
            before.success_criteria_met && !now.success_criteria_met,
            "cannot disable the SuccessCriteriaMet=True condition",
        ),
        (
            before.complete && !before.success_criteria_met && now.success_criteria_met,
            "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions",
        ),
    ]));
}

/// A job that is finished has nothing going on any more.
fn validate_finished(change: &Change<'_>, errors: &mut FieldErrors) {
    let (new, spec) = (change.new, change.spec);
    if !change.now.finished() {
        return;
    }
    errors.extend(going_on(change, "active"));
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

/// The error that a finished job still has pods that this member counts.
fn going_on(change: &Change<'_>, name: &str) -> Option<FieldError> {
    let count = number(change.new, name);
    let is_wrong = count > 0 && change.now.finished() && change.is_finished_or_differs(name);
    is_wrong.then(|| FieldError::invalid(STATUS.child(name), count, format!("{name}>0 is invalid for finished job")))
}

fn validate_indexes(change: &Change<'_>, errors: &mut FieldErrors) {
    let (new, spec) = (change.new, change.spec);
    let (completed, failed) = (text(new, "completedIndexes"), new.str("failedIndexes"));
    let (at_completed, at_failed) = (STATUS.child("completedIndexes"), STATUS.child("failedIndexes"));
    let completions = given_number(spec, "completions");
    let has_limit = spec.contains("backoffLimitPerIndex");
    let wrongly_listed = |name: &str, list: &str| {
        let problem = completions.filter(|_| change.differs(name)).map(|bound| indexes::count(list, bound))?.err()?;
        Some(FieldError::invalid(STATUS.child(name), list, format!("error parsing {name}: {problem}")))
    };
    errors.extend(wrongly_listed("completedIndexes", completed));
    errors.extend(failed.filter(|_| has_limit).and_then(|failed| wrongly_listed("failedIndexes", failed)));
    if change.differs("completedIndexes") && !completed.is_empty() && !is_indexed(spec) {
        let detail = "cannot set non-empty completedIndexes when non-indexed completion mode";
        errors.push(FieldError::invalid(at_completed, completed, detail));
    }
    let Some(failed) = failed else { return };
    if change.differs("failedIndexes") && !has_limit {
        let detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
        errors.push(FieldError::invalid(at_failed, failed, detail));
    }
    if change.differs("failedIndexes") || change.differs("completedIndexes") {
        let shared = completions.and_then(|completions| indexes::overlap(completed, failed, completions));
        errors.extend(shared.map(|detail| FieldError::invalid(at_failed, failed, detail)));
    }
}

/// No pods are left of a finished job, and no more are ready than there are.
fn validate_pods(change: &Change<'_>, errors: &mut FieldErrors) {
    let new = change.new;
    errors.extend(going_on(change, "terminating"));
    if let Some(ready) = given_number(new, "ready").filter(|ready| *ready > number(new, "active"))
        && (change.differs("ready") || change.differs("active"))
    {
        errors.push(FieldError::invalid(STATUS.child("ready"), ready, "cannot set more ready pods than active"));
    }
}

/// What happened cannot be taken back: verdicts stay, counters go up, and times are set once.
fn validate_progress(change: &Change<'_>, errors: &mut FieldErrors) {
    let (new, old, spec) = (change.new, change.old, change.spec);
    let (now, before) = (change.now, change.before);
    errors.extend(conditions([
        (before.failed && !now.failed, "cannot disable the terminal Failed=True condition"),
        (before.complete && !now.complete, "cannot disable the terminal Complete=True condition"),
        (before.failure_target && !now.failure_target, "cannot disable the terminal FailureTarget=True condition"),
    ]));
    // An elastic job may be made smaller, and then has fewer successes.
    let is_elastic = is_indexed(spec) && spec.get("completions") == spec.get("parallelism");
    for (name, is_bound) in [("failed", true), ("succeeded", !is_elastic)] {
        let count = number(new, name);
        if is_bound && count < number(old, name) {
            let detail = format!("cannot decrease the {name} counter");
            errors.push(FieldError::invalid(STATUS.child(name), count, detail));
        }
    }
    if new.contains("completionTime") && old.contains("completionTime") && change.differs("completionTime") {
        let shown = shown(new, "completionTime");
        errors.push(FieldError::invalid(STATUS.child("completionTime"), shown, "field is immutable"));
    }
    let is_suspended = spec.get("suspend").and_then(Value::as_bool) == Some(true);
    let resumes = has_condition(old, "Suspended", "True") && has_condition(new, "Suspended", "False");
    if old.contains("startTime") && change.differs("startTime") && !resumes && !is_suspended {
        let detail = "field is immutable for unsuspended job once set";
        errors.push(FieldError::invalid(STATUS.child("startTime"), shown(new, "startTime"), detail));
    }
}

#[cfg(test)]
mod tests;
