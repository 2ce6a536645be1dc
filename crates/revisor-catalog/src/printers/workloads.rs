//! Kinds that make pods, and kinds that say how pods are treated.

use revisor_object::{Object, Value};

use super::cells;
use super::core::{controller, number_or_text};
use super::fields::{
    age, array, condition, is_going, is_true, name, number, object, objects, since, size, text, truth, value,
};
use super::selectors::{labels, query, selector};
use crate::Moment;

/// The names and the images of the containers there.
fn containers(here: &Object, path: &str) -> (String, String) {
    let joined = |field| objects(here, path).map(|container| text(container, field)).collect::<Vec<_>>().join(",");
    (joined("name"), joined("image"))
}

pub(super) fn pod_template(template: &Object, _: Moment) -> Vec<Value> {
    let (names, images) = containers(template, "template.spec.containers");
    cells![name(template), names, images, labels(object(template, "template.metadata.labels"))]
}

pub(super) fn replication_controller(controller: &Object, now: Moment) -> Vec<Value> {
    let (names, images) = containers(controller, "spec.template.spec.containers");
    cells![
        name(controller),
        number(controller, "spec.replicas"),
        number(controller, "status.replicas"),
        number(controller, "status.readyReplicas"),
        age(controller, now),
        names,
        images,
        labels(object(controller, "spec.selector")),
    ]
}

pub(super) fn replica_set(set: &Object, now: Moment) -> Vec<Value> {
    let (names, images) = containers(set, "spec.template.spec.containers");
    cells![
        name(set),
        number(set, "spec.replicas"),
        number(set, "status.replicas"),
        number(set, "status.readyReplicas"),
        age(set, now),
        names,
        images,
        selector(object(set, "spec.selector")),
    ]
}

pub(super) fn deployment(deployment: &Object, now: Moment) -> Vec<Value> {
    let (names, images) = containers(deployment, "spec.template.spec.containers");
    cells![
        name(deployment),
        ready_of_desired(deployment),
        number(deployment, "status.updatedReplicas"),
        number(deployment, "status.availableReplicas"),
        age(deployment, now),
        names,
        images,
        query(object(deployment, "spec.selector")).unwrap_or_else(|| "<invalid>".to_owned()),
    ]
}

fn ready_of_desired(set: &Object) -> String {
    format!("{}/{}", number(set, "status.readyReplicas"), number(set, "spec.replicas"))
}

pub(super) fn stateful_set(set: &Object, now: Moment) -> Vec<Value> {
    let (names, images) = containers(set, "spec.template.spec.containers");
    cells![name(set), ready_of_desired(set), age(set, now), names, images]
}

pub(super) fn daemon_set(set: &Object, now: Moment) -> Vec<Value> {
    let (names, images) = containers(set, "spec.template.spec.containers");
    cells![
        name(set),
        number(set, "status.desiredNumberScheduled"),
        number(set, "status.currentNumberScheduled"),
        number(set, "status.numberReady"),
        number(set, "status.updatedNumberScheduled"),
        number(set, "status.numberAvailable"),
        labels(object(set, "spec.template.spec.nodeSelector")),
        age(set, now),
        names,
        images,
        selector(object(set, "spec.selector")),
    ]
}

pub(super) fn controller_revision(revision: &Object, now: Moment) -> Vec<Value> {
    cells![name(revision), controller(revision), number(revision, "revision"), age(revision, now)]
}

pub(super) fn job(job: &Object, now: Moment) -> Vec<Value> {
    let succeeded = number(job, "status.succeeded");
    let completions = match value(job, "spec.completions") {
        Some(_) => format!("{succeeded}/{}", number(job, "spec.completions")),
        None => match number(job, "spec.parallelism") {
            parallel @ 2.. => format!("{succeeded}/1 of {parallel}"),
            _ => format!("{succeeded}/1"),
        },
    };
    let started = Moment::parse(text(job, "status.startTime"));
    let ended = Moment::parse(text(job, "status.completionTime")).unwrap_or(now);
    let duration = started.map(|started| ended.since(started)).unwrap_or_default();
    let is = |kind| is_true(job, "status.conditions", kind);
    let status = match () {
        () if is("Complete") => "Complete",
        () if is("Failed") => "Failed",
        () if is_going(job) => "Terminating",
        () if is("Suspended") => "Suspended",
        () if is("FailureTarget") => "FailureTarget",
        () if is("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    };
    let (names, images) = containers(job, "spec.template.spec.containers");
    cells![
        name(job),
        status,
        completions,
        duration,
        age(job, now),
        names,
        images,
        selector(object(job, "spec.selector")),
    ]
}

pub(super) fn cron_job(job: &Object, now: Moment) -> Vec<Value> {
    let suspend = value(job, "spec.suspend").and_then(Value::as_bool);
    let last = value(job, "status.lastScheduleTime").map(|_| since(job, "status.lastScheduleTime", now));
    let (names, images) = containers(job, "spec.jobTemplate.spec.template.spec.containers");
    cells![
        name(job),
        text(job, "spec.schedule"),
        number_or_text(job, "spec.timeZone", "<none>"),
        match suspend {
            Some(true) => "True",
            Some(false) => "False",
            None => "<unset>",
        },
        size(array(job, "status.active")),
        last.unwrap_or_else(|| "<none>".to_owned()),
        age(job, now),
        names,
        images,
        selector(object(job, "spec.jobTemplate.spec.selector")),
    ]
}

pub(super) fn disruption_budget(budget: &Object, now: Moment) -> Vec<Value> {
    cells![
        name(budget),
        number_or_text(budget, "spec.minAvailable", "N/A"),
        number_or_text(budget, "spec.maxUnavailable", "N/A"),
        number(budget, "status.disruptionsAllowed"),
        age(budget, now),
    ]
}

pub(super) fn priority_class(class: &Object, now: Moment) -> Vec<Value> {
    cells![
        name(class),
        number(class, "value"),
        truth(class, "globalDefault"),
        age(class, now),
        text(class, "preemptionPolicy"),
    ]
}

pub(super) fn pod_group(group: &Object, now: Moment) -> Vec<Value> {
    let policy = if value(group, "spec.schedulingPolicy.gang").is_some() { "Gang" } else { "Basic" };
    let scheduled = condition(group, "status.conditions", "PodGroupScheduled");
    let status = match scheduled.map(|condition| text(condition, "status")) {
        None => "Pending",
        Some("True") => "Scheduled",
        Some(_) => "Unschedulable",
    };
    let disrupted = condition(group, "status.conditions", "DisruptionTarget");
    let status = disrupted.map_or(status, |condition| text(condition, "reason"));
    let workload = match object(group, "spec.podGroupTemplateRef") {
        Some(reference) => text(reference, "workload.workloadName"),
        None => "<none>",
    };
    cells![name(group), policy, workload, status, age(group, now)]
}
