//! Autoscalers: what is measured, and what it should be. The two versions of the group say it in different places.

use revisor_object::{Object, Value, parse_json};

use super::cells;
use super::core::number_or_text;
use super::fields::{age, amount, annotation, array, first_of, name, number, object, text, value};
use crate::Moment;

/// How many metrics are shown.
const SHOWN: usize = 2;

/// The utilisation that an autoscaler of version 1 aims at if it does not say.
const DEFAULT_CPU: i64 = 80;

pub(super) fn scale(scale: &Object, now: Moment) -> Vec<Value> {
    cells![name(scale), number(scale, "spec.replicas"), number(scale, "status.replicas"), age(scale, now)]
}

pub(super) fn autoscaler(scaler: &Object, now: Moment) -> Vec<Value> {
    let kind = text(scaler, "spec.scaleTargetRef.kind");
    let targets = if text(scaler, "apiVersion") == "autoscaling/v1" && object(scaler, "spec").is_some() {
        targets_of_version_1(scaler)
    } else {
        targets(array(scaler, "spec.metrics"), array(scaler, "status.currentMetrics"))
    };
    cells![
        name(scaler),
        format!("{kind}/{}", text(scaler, "spec.scaleTargetRef.name")),
        targets,
        number_or_text(scaler, "spec.minReplicas", "<unset>"),
        number(scaler, "spec.maxReplicas"),
        number(scaler, "status.currentReplicas"),
        age(scaler, now),
    ]
}

/// Version 1 has a field for the processor, and keeps all else in annotations.
fn targets_of_version_1(scaler: &Object) -> String {
    let kept = |name| annotation(scaler, name).and_then(|text| parse_json(text.as_bytes()).ok());
    let list = |name| kept(name).and_then(|parsed| parsed.value.as_array().map(<[Value]>::to_vec));
    let cpu = |field: &str, percent: i64| -> Value {
        let resource: Object = [("name", Value::from("cpu")), (field, Value::from(percent))].into_iter().collect();
        let metric = [("type", Value::from("Resource")), ("resource", Value::from(resource))];
        Value::from(metric.into_iter().collect::<Object>())
    };
    let percent = |path| value(scaler, path).and_then(Value::as_i64);
    let mut specs = list("autoscaling.alpha.kubernetes.io/metrics").unwrap_or_default();
    specs
        .extend(percent("spec.targetCPUUtilizationPercentage").map(|percent| cpu("targetAverageUtilization", percent)));
    if specs.is_empty() {
        specs.push(cpu("targetAverageUtilization", DEFAULT_CPU));
    }
    let statuses = list("autoscaling.alpha.kubernetes.io/current-metrics").unwrap_or_else(|| {
        let current = percent("status.currentCPUUtilizationPercentage");
        current.map(|percent| cpu("currentAverageUtilization", percent)).into_iter().collect()
    });
    targets(&specs, &statuses)
}

/// What is measured and what it should be, for the first metrics.
fn targets(specs: &[Value], statuses: &[Value]) -> String {
    let target = |(at, spec): (usize, &Value)| {
        let nothing = Object::new();
        target(spec.as_object().unwrap_or(&nothing), statuses.get(at).and_then(Value::as_object))
    };
    first_of(specs.iter().enumerate().map(target), specs.len(), SHOWN, ", ", "<none>")
}

fn target(spec: &Object, status: Option<&Object>) -> String {
    let (source, is_resource) = match text(spec, "type") {
        "External" => ("external", false),
        "Object" => ("object", false),
        "Pods" => ("pods", false),
        "Resource" => ("resource", true),
        "ContainerResource" => ("containerResource", true),
        _ => return "<unknown type>".to_owned(),
    };
    let nothing = Object::new();
    let wanted = object(spec, source).unwrap_or(&nothing);
    let current = status.and_then(|status| object(status, source));
    let unknown = || "<unknown>".to_owned();
    // Version 2 has an object where version 1 has a field with a longer name.
    let average = ["target.averageValue", "targetAverageValue", "averageValue"];
    let average = average.iter().find_map(|path| value(wanted, path));
    let current_average = |current: &&Object| {
        let paths = ["current.averageValue", "currentAverageValue", "averageValue"];
        paths.iter().find_map(|path| value(current, path)).cloned()
    };
    if is_resource {
        let percent = |place: &Object, paths: [&str; 2]| {
            paths.iter().find_map(|path| value(place, path)).map(|percent| format!("{}%", amount(Some(percent))))
        };
        let (current, wanted_text) = match average {
            Some(average) => {
                let current = current.map(|current| given(current_average(&current).as_ref()));
                (current.unwrap_or_else(unknown), amount(Some(average)))
            }
            None => {
                let paths = ["current.averageUtilization", "currentAverageUtilization"];
                let current = current.and_then(|current| percent(current, paths));
                let wanted = percent(wanted, ["target.averageUtilization", "targetAverageUtilization"]);
                (current.unwrap_or_else(unknown), wanted.unwrap_or_else(|| "<auto>".to_owned()))
            }
        };
        return format!("{}: {current}/{wanted_text}", text(wanted, "name"));
    }
    if source == "pods" {
        let current = current.map(|current| given(current_average(&current).as_ref()));
        return format!("{}/{}", current.unwrap_or_else(unknown), given(average));
    }
    match average {
        Some(average) => {
            let current = current.as_ref().and_then(current_average).map(|value| amount(Some(&value)));
            format!("{}/{} (avg)", current.unwrap_or_else(unknown), amount(Some(average)))
        }
        None => {
            let of = |place: &Object, paths: [&str; 2]| given(paths.iter().find_map(|path| value(place, path)));
            let current = current.map(|current| of(current, ["current.value", "currentValue"]));
            format!("{}/{}", current.unwrap_or_else(unknown), of(wanted, ["target.value", "targetValue"]))
        }
    }
}

/// An amount; one that is not there as Go prints it.
fn given(value: Option<&Value>) -> String {
    value.map_or_else(|| "<nil>".to_owned(), |value| amount(Some(value)))
}
