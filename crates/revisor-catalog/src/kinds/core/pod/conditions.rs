//! The conditions of a pod that the server itself sets.

use revisor_object::{Object, Value};

/// Says that the pod is not scheduled because its gates are closed.
pub(super) fn set_scheduling_gated(status: &mut Object, now: &str) {
    let condition: Object = [
        ("type", Value::from("PodScheduled")),
        ("status", Value::from("False")),
        ("reason", Value::from("SchedulingGated")),
        ("message", Value::from("Scheduling is blocked due to non-empty scheduling gates")),
        ("lastTransitionTime", Value::from(now)),
    ]
    .into_iter()
    .collect();
    status.insert("conditions", vec![Value::from(condition)]);
}
