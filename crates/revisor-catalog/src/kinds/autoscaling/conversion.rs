//! HorizontalPodAutoscalers between `autoscaling/v1` and `autoscaling/v2`.
//!
//! The first version only knows the utilization of the processor. What else there is it carries in annotations, so that
//! nothing is lost on the way there and back: metrics ([`metrics`]), how fast to scale ([`behavior`]), and what the
//! controller found.

mod behavior;
mod go_json;
mod metrics;

use revisor_object::{Object, Value, parse_json};

use self::go_json::{Member, json, list, object};
use super::horizontal_pod_autoscaler::{DEFAULT_CPU_UTILIZATION, cpu_utilization};
use crate::Conversion;
use crate::kinds::workload::{NOTHING, given_number, spec, status, text};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const SCALE_DOWN_TOLERANCE: &str = "autoscaling.alpha.kubernetes.io/scale-down-tolerance";
const SCALE_UP_TOLERANCE: &str = "autoscaling.alpha.kubernetes.io/scale-up-tolerance";

const ROUND_TRIP: [&str; 6] =
    [METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR, SCALE_DOWN_TOLERANCE, SCALE_UP_TOLERANCE];

/// What a condition consists of, in the order of its JSON.
const CONDITION: [&str; 5] = ["type", "status", "lastTransitionTime", "reason", "message"];

/// The first version, as autoscalers of the second one are shown in it.
pub(crate) struct FirstVersion;

impl Conversion for FirstVersion {
    fn to_stored(&self, object: &mut Object) {
        v1_to_v2(object);
    }

    fn to_stored_plainly(&self, object: &mut Object) {
        v1_to_v2(object);
        let Some(behavior) = object.object_mut("spec").get_mut("behavior").and_then(Value::as_object_mut) else {
            return;
        };
        for rules in behavior.iter_mut().filter_map(|(_, rules)| rules.as_object_mut()) {
            rules.retain(|name, value| name != "policies" || value.as_array() != Some(&[]));
        }
    }

    fn to_shown(&self, object: &mut Object) {
        v2_to_v1(object);
    }
}

/// Takes away the annotations that only conversion may set.
pub(crate) fn drop_round_trip_annotations(autoscaler: &mut Object) {
    let metadata = autoscaler.object_mut("metadata");
    let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else { return };
    annotations.retain(|name, _| !ROUND_TRIP.contains(&name));
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
}

/// Makes an autoscaler of the first version one of the second.
fn v1_to_v2(autoscaler: &mut Object) {
    let metrics = annotated(autoscaler, METRICS).and_then(|value| metrics::specs_to_v2(&value));
    let behavior = annotated(autoscaler, BEHAVIOR).and_then(|value| behavior::to_v2(&value));
    let current = annotated(autoscaler, CURRENT_METRICS).and_then(|value| metrics::statuses_to_v2(&value));
    let conditions = annotated(autoscaler, CONDITIONS).and_then(|value| conditions_to_v2(&value));
    drop_round_trip_annotations(autoscaler);

    let spec = autoscaler.object_mut("spec");
    let utilization = spec.remove("targetCPUUtilizationPercentage").and_then(|percent| percent.as_i64());
    let mut metrics = metrics.unwrap_or_default();
    metrics.extend(utilization.map(|percent| Value::Object(cpu_utilization(percent))));
    if metrics.is_empty() {
        metrics.push(Value::Object(cpu_utilization(DEFAULT_CPU_UTILIZATION)));
    }
    spec.insert("metrics", metrics);
    if let Some(behavior) = behavior {
        spec.insert("behavior", behavior);
    }

    let has_status = autoscaler.contains("status") || current.is_some() || conditions.is_some();
    if !has_status {
        return;
    }
    let status = autoscaler.object_mut("status");
    let utilization = status.remove("currentCPUUtilizationPercentage").and_then(|percent| percent.as_i64());
    let found = current.or_else(|| utilization.map(|percent| vec![metrics::cpu_status(percent)]));
    status.set("currentMetrics", found.filter(|found| !found.is_empty()).map(Value::Array));
    status.set("conditions", conditions.filter(|found| !found.is_empty()).map(Value::Array));
}

/// Makes an autoscaler of the second version one of the first.
fn v2_to_v1(autoscaler: &mut Object) {
    drop_round_trip_annotations(autoscaler);
    let mut annotations: Vec<(&str, String)> = Vec::new();

    let metrics = spec(autoscaler).array("metrics").iter().filter_map(Value::as_object);
    let (cpu, others): (Vec<&Object>, Vec<&Object>) =
        metrics.partition(|metric| metrics::utilization(metric).is_some());
    if !others.is_empty() {
        annotations.push((METRICS, list(others.into_iter().map(metrics::spec_to_v1))));
    }
    let target = cpu.into_iter().find_map(metrics::utilization);
    if let Some(behavior) = spec(autoscaler).object("behavior") {
        annotations.push((BEHAVIOR, behavior::to_v1(behavior)));
    }
    let current: Vec<&Object> =
        status(autoscaler).array("currentMetrics").iter().filter_map(Value::as_object).collect();
    // Of several the last counts.
    let found = current.iter().rev().find_map(|metric| metrics::current_utilization(metric));
    if !current.is_empty() {
        annotations.push((CURRENT_METRICS, list(current.into_iter().map(metrics::status_to_v1))));
    }
    let conditions = status(autoscaler).array("conditions");
    if !conditions.is_empty() {
        let conditions = conditions.iter().filter_map(Value::as_object);
        annotations.push((CONDITIONS, list(conditions.map(condition_to_v1))));
    }

    let spec = autoscaler.object_mut("spec");
    spec.remove("metrics");
    spec.remove("behavior");
    spec.set("targetCPUUtilizationPercentage", target.map(Value::Int));
    if autoscaler.contains("status") {
        let status = autoscaler.object_mut("status");
        status.remove("currentMetrics");
        status.remove("conditions");
        status.set("currentCPUUtilizationPercentage", found.map(Value::Int));
    }
    for (name, text) in annotations {
        autoscaler.object_mut("metadata").object_mut("annotations").insert(name, text);
    }
}

/// What an annotation holds; nothing if it holds no JSON.
fn annotated(autoscaler: &Object, name: &str) -> Option<Value> {
    let text = autoscaler.at(&["metadata", "annotations", name])?.as_str()?;
    parse_json(text.as_bytes()).ok().map(|parsed| parsed.value)
}

fn condition_to_v1(condition: &Object) -> String {
    object(CONDITION.map(|name| match (name, condition.get(name)) {
        ("lastTransitionTime", None) => Member::given(name, "null".to_owned()),
        ("reason" | "message", None) => Member::absent(name),
        (_, value) => Member::given(name, value.map_or_else(|| "\"\"".to_owned(), json)),
    }))
}

/// Conditions that were found before; nothing if they are not such.
fn conditions_to_v2(value: &Value) -> Option<Vec<Value>> {
    let read = |value: &Value| -> Option<Value> {
        let found = value.as_object()?;
        let mut condition = Object::new();
        for name in CONDITION {
            match found.get(name) {
                None | Some(Value::Null) => {}
                Some(Value::String(text)) if text.is_empty() && matches!(name, "reason" | "message") => {}
                Some(value @ Value::String(_)) => {
                    condition.insert(name, value.clone());
                }
                Some(_) => return None,
            }
        }
        Some(Value::Object(condition))
    };
    value.as_array()?.iter().map(read).collect()
}

#[cfg(test)]
mod tests;
