//! The rules for cron jobs, case by case.

use super::*;
use crate::Catalog;
use crate::kinds::tests::{object, terms};

fn cron_jobs() -> CronJobs {
    CronJobs { policy: terms().pods() }
}

fn cron_job(changes: &str) -> Object {
    let mut job = object(
        r#"{"metadata":{"name":"c","namespace":"n"},"spec":{"schedule":"*/5 * * * *","jobTemplate":{"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i:1"}]}}}}}}"#,
    );
    for (name, value) in object(changes).iter() {
        job.object_mut("spec").insert(name, value.clone());
    }
    let catalog = Catalog::default();
    catalog.resource("batch", "v1", "cronjobs").expect("is served").default(&mut job);
    job
}

fn causes(errors: FieldErrors) -> Vec<String> {
    errors.iter().map(|error| format!("{} {}", error.kind.reason(), error.field)).collect()
}

#[test]
fn bad_specs_are_refused_with_every_cause() {
    for (changes, want) in [
        ("{}", &[][..]),
        (r#"{"schedule":"@hourly","timeZone":"Europe/Berlin"}"#, &[]),
        (r#"{"schedule":""}"#, &["FieldValueRequired spec.schedule"]),
        (r#"{"schedule":"* * * *"}"#, &["FieldValueInvalid spec.schedule"]),
        (r#"{"schedule":"TZ=UTC 0 0 * * *"}"#, &["FieldValueInvalid spec.schedule"]),
        (r#"{"timeZone":"Local"}"#, &["FieldValueInvalid spec.timeZone"]),
        (r#"{"timeZone":""}"#, &["FieldValueInvalid spec.timeZone"]),
        (r#"{"concurrencyPolicy":"Maybe"}"#, &["FieldValueNotSupported spec.concurrencyPolicy"]),
        (
            r#"{"startingDeadlineSeconds":-1,"successfulJobsHistoryLimit":-1,"failedJobsHistoryLimit":-1}"#,
            &[
                "FieldValueInvalid spec.startingDeadlineSeconds",
                "FieldValueInvalid spec.successfulJobsHistoryLimit",
                "FieldValueInvalid spec.failedJobsHistoryLimit",
            ],
        ),
    ] {
        assert_eq!(causes(cron_jobs().validate(&cron_job(changes))), want, "{changes}");
    }
}

#[test]
fn what_was_stored_with_a_zone_in_its_schedule_may_keep_it() {
    let old = cron_job(r#"{"schedule":"TZ=UTC 0 0 * * *","timeZone":"Mars/Olympus"}"#);
    for (changes, want) in [
        (r#"{"schedule":"TZ=UTC 1 0 * * *"}"#, &[][..]),
        (r#"{"schedule":"TZ=UTC 1 0 * * *","timeZone":"Mars/Olympus"}"#, &["FieldValueInvalid spec.schedule"]),
    ] {
        let new = cron_job(changes);
        assert_eq!(causes(cron_jobs().validate_update(&new, &old, Part::Whole)), want, "{changes}");
        assert_eq!(cron_jobs().warnings(&new, Some(&old)).len(), 1, "{changes}");
    }
}

#[test]
fn names_leave_room_for_those_of_jobs() {
    for (letters, want) in [(52, &[][..]), (53, &["FieldValueInvalid metadata.name"])] {
        let mut job = cron_job("{}");
        job.object_mut("metadata").insert("name", "x".repeat(letters));
        assert_eq!(causes(cron_jobs().validate(&job)), want, "{letters}");
    }
}
