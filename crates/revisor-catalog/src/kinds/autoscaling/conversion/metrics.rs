//! Metrics in both forms. The second version tells what is measured and what is aimed at apart; the first has a field
//! for each combination.

use revisor_object::{Object, Value};

use super::behavior::{member, quantity};
use super::go_json::{Member, object};
use super::{NOTHING, given_number, text};

/// The sources in the order of their fields, each with its rules.
const SOURCES: [&str; 5] = ["object", "pods", "resource", "containerResource", "external"];

/// The utilization of the processor that a metric aims at, if that is what it is about.
pub(super) fn utilization(metric: &Object) -> Option<i64> {
    cpu(metric, "target")
}

/// The utilization of the processor that was found, if that is what a metric is about.
pub(super) fn current_utilization(metric: &Object) -> Option<i64> {
    cpu(metric, "current")
}

fn cpu(metric: &Object, part: &str) -> Option<i64> {
    let resource = metric.object("resource").filter(|_| text(metric, "type") == "Resource")?;
    given_number(resource.object(part)?, "averageUtilization").filter(|_| text(resource, "name") == "cpu")
}

/// What was found about the processor.
pub(super) fn cpu_status(percent: i64) -> Value {
    let current: Object = [("averageUtilization", Value::from(percent))].into_iter().collect();
    let resource: Object = [("name", Value::from("cpu")), ("current", Value::from(current))].into_iter().collect();
    let status = [("type", Value::from("Resource")), ("resource", Value::from(resource))];
    Value::Object(status.into_iter().collect())
}

/// A metric in the form of the first version.
pub(super) fn spec_to_v1(metric: &Object) -> String {
    whole(metric, |kind, source| {
        let part = |name| source.object(name).unwrap_or(NOTHING);
        let (target, metric) = (part("target"), part("metric"));
        let average = Member::of("targetAverageValue", target.get("averageValue"));
        let utilization = Member::of("targetAverageUtilization", target.get("averageUtilization"));
        let metric_name = Member::text("metricName", metric.get("name"));
        match kind {
            "object" => object([
                Member::reference("target", part("describedObject")),
                metric_name,
                Member::quantity("targetValue", target.get("value")),
                Member::selector("selector", metric.get("selector")),
                Member::of("averageValue", target.get("averageValue")),
            ]),
            "pods" => object([
                metric_name,
                Member::quantity("targetAverageValue", target.get("averageValue")),
                Member::selector("selector", metric.get("selector")),
            ]),
            "resource" => object([Member::text("name", source.get("name")), utilization, average]),
            "containerResource" => object([
                Member::text("name", source.get("name")),
                utilization,
                average,
                Member::text("container", source.get("container")),
            ]),
            _ => object([
                metric_name,
                Member::selector("metricSelector", metric.get("selector")),
                Member::of("targetValue", target.get("value")),
                average,
            ]),
        }
    })
}

/// What was found about a metric, in the form of the first version.
pub(super) fn status_to_v1(status: &Object) -> String {
    whole(status, |kind, source| {
        let part = |name| source.object(name).unwrap_or(NOTHING);
        let (current, metric) = (part("current"), part("metric"));
        let average = Member::quantity("currentAverageValue", current.get("averageValue"));
        let utilization = Member::of("currentAverageUtilization", current.get("averageUtilization"));
        let metric_name = Member::text("metricName", metric.get("name"));
        match kind {
            "object" => object([
                Member::reference("target", part("describedObject")),
                metric_name,
                Member::quantity("currentValue", current.get("value")),
                Member::selector("selector", metric.get("selector")),
                Member::of("averageValue", current.get("averageValue")),
            ]),
            "pods" => object([metric_name, average, Member::selector("selector", metric.get("selector"))]),
            "resource" => object([Member::text("name", source.get("name")), utilization, average]),
            "containerResource" => object([
                Member::text("name", source.get("name")),
                utilization,
                average,
                Member::text("container", source.get("container")),
            ]),
            _ => object([
                metric_name,
                Member::selector("metricSelector", metric.get("selector")),
                Member::quantity("currentValue", current.get("value")),
                Member::of("currentAverageValue", current.get("averageValue")),
            ]),
        }
    })
}

fn whole(metric: &Object, write: impl Fn(&str, &Object) -> String) -> String {
    let kind = Member::text("type", metric.get("type"));
    let sources = SOURCES.map(|name| match metric.object(name) {
        Some(source) => Member::given(name, write(name, source)),
        None => Member::absent(name),
    });
    object(std::iter::once(kind).chain(sources))
}

/// The metrics of an annotation; nothing if it has none.
pub(super) fn specs_to_v2(value: &Value) -> Option<Vec<Value>> {
    read(value, |kind, source| {
        let average = given(source, "targetAverageValue", quantity)?;
        let mut target = Object::new();
        let mut aim = |kind: &str, values: [(&str, Option<Value>); 2]| {
            target.insert("type", kind);
            for (name, value) in values {
                target.set(name, value);
            }
        };
        match kind {
            "object" => {
                let average = given(source, "averageValue", quantity)?;
                let value = given(source, "targetValue", quantity)?.unwrap_or_else(|| Value::from("0"));
                // A value of nothing cannot be told from none in the first version.
                let is_given = average.is_none() || value != Value::from("0");
                let kind = if average.is_none() { "Value" } else { "AverageValue" };
                aim(kind, [("value", is_given.then_some(value)), ("averageValue", average)]);
            }
            "pods" => {
                let average = average.unwrap_or_else(|| Value::from("0"));
                aim("AverageValue", [("value", None), ("averageValue", Some(average))]);
            }
            "external" => {
                let value = given(source, "targetValue", quantity)?;
                let kind = if value.is_some() { "Value" } else { "AverageValue" };
                aim(kind, [("value", value), ("averageValue", average)]);
            }
            _ => {
                let percent = given(source, "targetAverageUtilization", int)?;
                let kind = if percent.is_some() { "Utilization" } else { "AverageValue" };
                aim(kind, [("averageValue", average), ("averageUtilization", percent)]);
            }
        }
        Some(("target", target))
    })
}

/// What an annotation says was found; nothing if it says nothing.
pub(super) fn statuses_to_v2(value: &Value) -> Option<Vec<Value>> {
    read(value, |kind, source| {
        let mut current = Object::new();
        let zero = || Value::from("0");
        match kind {
            "object" => {
                current.insert("value", given(source, "currentValue", quantity)?.unwrap_or_else(zero));
                current.set("averageValue", given(source, "averageValue", quantity)?);
            }
            "external" => {
                current.insert("value", given(source, "currentValue", quantity)?.unwrap_or_else(zero));
                current.set("averageValue", given(source, "currentAverageValue", quantity)?);
            }
            "pods" => {
                current.insert("averageValue", given(source, "currentAverageValue", quantity)?.unwrap_or_else(zero));
            }
            _ => {
                current.insert("averageValue", given(source, "currentAverageValue", quantity)?.unwrap_or_else(zero));
                current.set("averageUtilization", given(source, "currentAverageUtilization", int)?);
            }
        }
        Some(("current", current))
    })
}

/// Reads a list of metrics. `values` makes the part of a source that holds numbers.
fn read(value: &Value, values: impl Fn(&str, &Object) -> Option<(&'static str, Object)>) -> Option<Vec<Value>> {
    let read_one = |value: &Value| -> Option<Value> {
        let found = value.as_object()?;
        let mut metric = Object::new();
        metric.insert("type", given(found, "type", string)?.unwrap_or_else(|| Value::from("")));
        for kind in SOURCES {
            let Some(source) = member(found, kind) else { continue };
            let source = source.as_object()?;
            let (name, numbers) = values(kind, source)?;
            let mut converted = identity(kind, source)?;
            converted.insert(name, numbers);
            metric.insert(kind, converted);
        }
        Some(Value::Object(metric))
    };
    value.as_array()?.iter().map(read_one).collect()
}

/// The part of a source that says what is measured.
fn identity(kind: &str, source: &Object) -> Option<Object> {
    let mut converted = Object::new();
    let empty = || Value::from("");
    if matches!(kind, "resource" | "containerResource") {
        converted.insert("name", given(source, "name", string)?.unwrap_or_else(empty));
        if kind == "containerResource" {
            converted.insert("container", given(source, "container", string)?.unwrap_or_else(empty));
        }
        return Some(converted);
    }
    let mut metric = Object::new();
    metric.insert("name", given(source, "metricName", string)?.unwrap_or_else(empty));
    let selector = if kind == "external" { "metricSelector" } else { "selector" };
    metric.set("selector", given(source, selector, label_selector)?);
    converted.insert("metric", metric);
    if kind == "object" {
        let found = member(source, "target").map_or(Some(NOTHING), Value::as_object)?;
        let mut described = Object::new();
        for name in ["kind", "name"] {
            described.insert(name, given(found, name, string)?.unwrap_or_else(empty));
        }
        described.set("apiVersion", given(found, "apiVersion", string)?.filter(|version| *version != empty()));
        converted.insert("describedObject", described);
    }
    Some(converted)
}

/// A member that may be missing, but not be of another type: then the whole is not what it should be.
fn given(object: &Object, name: &str, read: impl Fn(&Value) -> Option<Value>) -> Option<Option<Value>> {
    match member(object, name) {
        None => Some(None),
        Some(value) => read(value).map(Some),
    }
}

fn string(value: &Value) -> Option<Value> {
    value.as_str().map(Value::from)
}

fn int(value: &Value) -> Option<Value> {
    i32::try_from(value.as_i64()?).ok().map(Value::from)
}

/// A label selector whose members are of their types.
fn label_selector(value: &Value) -> Option<Value> {
    let found = value.as_object()?;
    let mut selector = Object::new();
    if let Some(labels) = member(found, "matchLabels") {
        let labels = labels.as_object().filter(|labels| labels.iter().all(|(_, value)| value.as_str().is_some()))?;
        selector.set("matchLabels", (!labels.is_empty()).then(|| Value::Object(labels.clone())));
    }
    if let Some(expressions) = member(found, "matchExpressions") {
        let read = |expression: &Value| -> Option<Value> {
            let found = expression.as_object()?;
            let mut expression = Object::new();
            for name in ["key", "operator"] {
                expression.insert(name, given(found, name, string)?.unwrap_or_else(|| Value::from("")));
            }
            let values = member(found, "values").map_or(Some(&[][..]), Value::as_array)?;
            let values = values.iter().map(string).collect::<Option<Vec<Value>>>()?;
            expression.set("values", (!values.is_empty()).then_some(Value::Array(values)));
            Some(Value::Object(expression))
        };
        let expressions = expressions.as_array()?.iter().map(read).collect::<Option<Vec<Value>>>()?;
        selector.set("matchExpressions", (!expressions.is_empty()).then_some(Value::Array(expressions)));
    }
    Some(Value::Object(selector))
}
