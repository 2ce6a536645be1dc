//! Devices: claims, slices, taints and requests for the state of pools.

use revisor_object::{Object, Value};

use super::cells;
use super::fields::{age, array, is_going, name, number, object, objects, since, text, value};
use crate::Moment;

pub(super) fn claim(claim: &Object, now: Moment) -> Vec<Value> {
    let mut states = Vec::new();
    if is_going(claim) {
        states.push("deleted");
    }
    if value(claim, "status.allocation").is_some() {
        states.push("allocated");
        if !array(claim, "status.reservedFor").is_empty() {
            states.push("reserved");
        }
    } else if !is_going(claim) {
        states.push("pending");
    }
    cells![name(claim), states.join(","), age(claim, now)]
}

pub(super) fn slice(slice: &Object, now: Moment) -> Vec<Value> {
    cells![
        name(slice),
        text(slice, "spec.nodeName"),
        text(slice, "spec.driver"),
        text(slice, "spec.pool.name"),
        age(slice, now),
    ]
}

pub(super) fn taint_rule(rule: &Object, now: Moment) -> Vec<Value> {
    let added = value(rule, "spec.taint.timeAdded").map(|_| since(rule, "spec.taint.timeAdded", now));
    cells![
        name(rule),
        text(rule, "spec.taint.key"),
        text(rule, "spec.taint.value"),
        text(rule, "spec.taint.effect"),
        added.unwrap_or_default(),
        age(rule, now),
    ]
}

pub(super) fn pool_status_request(request: &Object, now: Moment) -> Vec<Value> {
    let mut conditions = objects(request, "status.conditions").filter(|one| text(one, "status") == "True");
    let decided = conditions.find(|condition| ["Complete", "Failed"].contains(&text(condition, "type")));
    let outcome = decided.map_or("Pending", |condition| text(condition, "type"));
    let (shown, pools) = (array(request, "status.pools").len(), number(request, "status.poolCount"));
    let is_cut_short = outcome == "Complete" && pools > i64::try_from(shown).unwrap_or(i64::MAX);
    let status = if is_cut_short { format!("Complete ({shown}/{pools} pools)") } else { outcome.to_owned() };
    // Nothing is known before there is an answer, or from one that failed.
    let is_known = object(request, "status").is_some() && outcome != "Failed";
    let known = |number: i64| if is_known { number.to_string() } else { "-".to_owned() };
    let sum = |field: &str| known(objects(request, "status.pools").map(|pool| number(pool, field)).sum());
    let faulty = objects(request, "status.pools").filter(|pool| value(pool, "validationError").is_some()).count();
    let completed = decided.filter(|_| outcome == "Complete");
    cells![
        name(request),
        text(request, "spec.driver"),
        sum("totalDevices"),
        sum("availableDevices"),
        sum("allocatedDevices"),
        sum("unavailableDevices"),
        known(i64::try_from(faulty).unwrap_or(i64::MAX)),
        pools,
        status,
        completed.map_or_else(|| "<none>".to_owned(), |condition| since(condition, "lastTransitionTime", now)),
    ]
}
