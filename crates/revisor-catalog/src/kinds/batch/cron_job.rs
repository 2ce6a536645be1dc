//! CronJobs: jobs that are made anew on a schedule.

use revisor_object::{
    FieldError, FieldErrors, FieldPath, Object, Value, check_cron, cron_names_time_zone, time_zone_problems,
};

use super::job::{job_spec_warnings, validate_job_spec};
use crate::checks::{not_negative, problems, required, required_one_of};
use crate::kinds::pod_spec::PodPolicy;
use crate::kinds::workload::{
    NOTHING, default_template, given_number, is_about_status, is_counted, name_warning, shown, spec as spec_of, text,
};
use crate::strategy::spec_or_status;
use crate::{Part, Places, Strategy};

const SPEC: FieldPath<'static> = FieldPath::root("spec");

/// The controller appends eleven characters to the name of a cron job to name its jobs.
const MAX_NAME_BYTES: usize = 52;

pub(crate) struct CronJobs {
    pub(crate) policy: PodPolicy,
}

impl Strategy for CronJobs {
    fn default(&self, object: &mut Object) {
        // What jobs are given by default they are given when they are made.
        let job = object.object_mut("spec").object_mut("jobTemplate").object_mut("spec");
        default_template(job, self.policy.features);
    }

    fn tracked(&self) -> Places {
        &[&["spec"]]
    }

    fn untouched(&self, part: Part<'_>) -> Places {
        spec_or_status(part)
    }

    fn validate(&self, object: &Object) -> FieldErrors {
        let mut errors = validate_spec(object, None, self.policy);
        let name = object.at(&["metadata", "name"]).and_then(Value::as_str).unwrap_or_default();
        if name.len() > MAX_NAME_BYTES {
            errors.push(FieldError::invalid("metadata.name", name, "must be no more than 52 characters"));
        }
        errors
    }

    fn validate_update(&self, object: &Object, old: &Object, part: Part<'_>) -> FieldErrors {
        if part == Part::STATUS {
            return FieldErrors::new();
        }
        validate_spec(object, Some(old), self.policy)
    }

    fn warnings(&self, object: &Object, old: Option<&Object>) -> Vec<String> {
        let template = SPEC.child("jobTemplate");
        let path = template.child("spec");
        let Some(old) = old else {
            let mut warnings: Vec<String> = name_warning(object).into_iter().collect();
            warnings.extend(job_spec_warnings(path, job_spec(object), self.policy.features));
            return warnings;
        };
        let mut warnings = Vec::new();
        if is_counted(object, old) {
            warnings.extend(job_spec_warnings(path, job_spec(object), self.policy.features));
        }
        if !is_about_status(object, old) && cron_names_time_zone(text(spec_of(object), "schedule")) {
            warnings.push(
                "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see \
                 https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
                    .to_owned(),
            );
        }
        warnings
    }
}

fn job_spec(object: &Object) -> &Object {
    object.at(&["spec", "jobTemplate", "spec"]).and_then(Value::as_object).unwrap_or(NOTHING)
}

fn validate_spec(object: &Object, old: Option<&Object>, policy: PodPolicy) -> FieldErrors {
    let (spec, old_spec) = (spec_of(object), old.map(spec_of));
    let count = |name| given_number(spec, name).and_then(|count| not_negative(SPEC.child(name), count));
    let mut errors = validate_schedule(spec, old_spec);
    errors.extend(count("startingDeadlineSeconds"));
    let is_same_zone = old_spec.is_some_and(|old| old.get("timeZone") == spec.get("timeZone"));
    if let Some(zone) = spec.str("timeZone").filter(|_| !is_same_zone) {
        errors.extend(problems(SPEC.child("timeZone"), zone, time_zone_problems(zone)));
    }
    let policies = ["Allow", "Forbid", "Replace"];
    errors.extend(required_one_of(SPEC.child("concurrencyPolicy"), text(spec, "concurrencyPolicy"), &policies));
    let template = SPEC.child("jobTemplate");
    let path = template.child("spec");
    let job = job_spec(object);
    errors.extend(validate_job_spec(path, job, old.map(job_spec), policy));
    if job.object("selector").is_some() {
        let detail = "`selector` will be auto-generated";
        errors.push(FieldError::invalid(path.child("selector"), shown(job, "selector"), detail));
    }
    if job.get("manualSelector").and_then(Value::as_bool) == Some(true) {
        errors.push(FieldError::not_supported(path.child("manualSelector"), true, &["nil", "false"]));
    }
    errors.extend(["successfulJobsHistoryLimit", "failedJobsHistoryLimit"].into_iter().filter_map(count));
    errors
}

/// Time zones have a field of their own; schedules that were stored with one may keep it.
fn validate_schedule(spec: &Object, old: Option<&Object>) -> FieldErrors {
    let (path, schedule) = (SPEC.child("schedule"), text(spec, "schedule"));
    if let Some(missing) = required(path, schedule) {
        return FieldErrors::from([missing]);
    }
    let mut errors = FieldErrors::new();
    if let Err(problem) = check_cron(schedule) {
        errors.push(FieldError::invalid(path, schedule, problem.to_string()));
    }
    if cron_names_time_zone(schedule) {
        let had_one = old.is_some_and(|old| cron_names_time_zone(text(old, "schedule")));
        let detail = match (had_one, spec.contains("timeZone")) {
            (true, true) => Some("cannot use both timeZone field and TZ or CRON_TZ in schedule"),
            (true, false) => None,
            (false, _) => Some("cannot use TZ or CRON_TZ in schedule, use timeZone field instead"),
        };
        errors.extend(detail.map(|detail| FieldError::invalid(path, schedule, detail)));
    }
    errors
}

#[cfg(test)]
mod tests;
