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

/// The numbers of a source: the part that holds them in the second version, and their names in the first.
struct Numbers {
    part: &'static str,
    value: &'static str,
    average: &'static str,
    utilization: &'static str,
    /// How a number is written: one that is aimed at where there is one, one that was found in any case.
    number: fn(&'static str, Option<&Value>) -> Member<'static>,
}

const AIMED_AT: Numbers = Numbers {
    part: "target",
    value: "targetValue",
    average: "targetAverageValue",
    utilization: "targetAverageUtilization",
    number: Member::of,
};

const FOUND: Numbers = Numbers {
    part: "current",
    value: "currentValue",
    average: "currentAverageValue",
    utilization: "currentAverageUtilization",
    number: Member::quantity,
};

/// A metric in the form of the first version.
pub(super) fn spec_to_v1(metric: &Object) -> String {
    whole(metric, &AIMED_AT)
}

/// What was found about a metric, in the form of the first version.
pub(super) fn status_to_v1(status: &Object) -> String {
    whole(status, &FOUND)
}

fn whole(metric: &Object, numbers: &Numbers) -> String {
    let kind = Member::text("type", metric.get("type"));
    let sources = SOURCES.map(|name| match metric.object(name) {
        Some(source) => Member::given(name, source_to_v1(name, source, numbers)),
        None => Member::absent(name),
    });
    object(std::iter::once(kind).chain(sources))
}

fn source_to_v1(kind: &str, source: &Object, names: &Numbers) -> String {
    let part = |name| source.object(name).unwrap_or(NOTHING);
    let (numbers, metric) = (part(names.part), part("metric"));
    let (value, average) = (numbers.get("value"), numbers.get("averageValue"));
    let name = Member::text("name", source.get("name"));
    let metric_name = Member::text("metricName", metric.get("name"));
    let utilization = Member::of(names.utilization, numbers.get("averageUtilization"));
    match kind {
        "object" => object([
            Member::reference("target", part("describedObject")),
            metric_name,
            Member::quantity(names.value, value),
            Member::selector("selector", metric.get("selector")),
            Member::of("averageValue", average),
        ]),
        "pods" => object([
            metric_name,
            Member::quantity(names.average, average),
            Member::selector("selector", metric.get("selector")),
        ]),
        "resource" => object([name, utilization, (names.number)(names.average, average)]),
        "containerResource" => object([
            name,
            utilization,
            (names.number)(names.average, average),
            Member::text("container", source.get("container")),
        ]),
        _ => object([
            metric_name,
            Member::selector("metricSelector", metric.get("selector")),
            (names.number)(names.value, value),
            Member::of(names.average, average),
        ]),
    }
}

/// The metrics of an annotation; nothing if it has none.
pub(super) fn specs_to_v2(value: &Value) -> Option<Vec<Value>> {
    read(value, AIMED_AT.part, |kind, source| {
        let average = given(source, AIMED_AT.average, quantity)?;
        let (kind, values) = match kind {
            "object" => {
                let average = given(source, "averageValue", quantity)?;
                let value = quantity_or_zero(source, AIMED_AT.value)?;
                // A value of nothing cannot be told from none in the first version.
                let is_given = average.is_none() || value != Value::from("0");
                let kind = if average.is_none() { "Value" } else { "AverageValue" };
                (kind, [("value", is_given.then_some(value)), ("averageValue", average)])
            }
            "pods" => {
                let average = average.unwrap_or_else(|| Value::from("0"));
                ("AverageValue", [("value", None), ("averageValue", Some(average))])
            }
            "external" => {
                let value = given(source, AIMED_AT.value, quantity)?;
                let kind = if value.is_some() { "Value" } else { "AverageValue" };
                (kind, [("value", value), ("averageValue", average)])
            }
            _ => {
                let percent = given(source, AIMED_AT.utilization, int)?;
                let kind = if percent.is_some() { "Utilization" } else { "AverageValue" };
                (kind, [("averageValue", average), ("averageUtilization", percent)])
            }
        };
        let mut target = Object::new();
        target.insert("type", kind);
        for (name, value) in values {
            target.set(name, value);
        }
        Some(target)
    })
}

/// What an annotation says was found; nothing if it says nothing.
pub(super) fn statuses_to_v2(value: &Value) -> Option<Vec<Value>> {
    read(value, FOUND.part, |kind, source| {
        let mut current = Object::new();
        if matches!(kind, "object" | "external") {
            let average = if kind == "object" { "averageValue" } else { FOUND.average };
            current.insert("value", quantity_or_zero(source, FOUND.value)?);
            current.set("averageValue", given(source, average, quantity)?);
        } else {
            current.insert("averageValue", quantity_or_zero(source, FOUND.average)?);
        }
        if matches!(kind, "resource" | "containerResource") {
            current.set("averageUtilization", given(source, FOUND.utilization, int)?);
        }
        Some(current)
    })
}

/// Reads a list of metrics. `numbers` makes the part of a source that holds its numbers.
fn read(value: &Value, part: &str, numbers: impl Fn(&str, &Object) -> Option<Object>) -> Option<Vec<Value>> {
    let read_one = |value: &Value| -> Option<Value> {
        let found = value.as_object()?;
        let mut metric = Object::new();
        metric.insert("type", text_or_empty(found, "type")?);
        for kind in SOURCES {
            let Some(source) = member(found, kind) else { continue };
            let source = source.as_object()?;
            let numbers = numbers(kind, source)?;
            let mut converted = identity(kind, source)?;
            converted.insert(part, numbers);
            metric.insert(kind, converted);
        }
        Some(Value::Object(metric))
    };
    value.as_array()?.iter().map(read_one).collect()
}

/// The part of a source that says what is measured.
fn identity(kind: &str, source: &Object) -> Option<Object> {
    let mut converted = Object::new();
    if matches!(kind, "resource" | "containerResource") {
        converted.insert("name", text_or_empty(source, "name")?);
        if kind == "containerResource" {
            converted.insert("container", text_or_empty(source, "container")?);
        }
        return Some(converted);
    }
    let mut metric = Object::new();
    metric.insert("name", text_or_empty(source, "metricName")?);
    let selector = if kind == "external" { "metricSelector" } else { "selector" };
    metric.set("selector", given(source, selector, label_selector)?);
    converted.insert("metric", metric);
    if kind == "object" {
        let found = member(source, "target").map_or(Some(NOTHING), Value::as_object)?;
        let mut described = Object::new();
        for name in ["kind", "name"] {
            described.insert(name, text_or_empty(found, name)?);
        }
        described.set("apiVersion", given(found, "apiVersion", string)?.filter(|version| *version != Value::from("")));
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

fn text_or_empty(object: &Object, name: &str) -> Option<Value> {
    Some(given(object, name, string)?.unwrap_or_else(|| Value::from("")))
}

fn quantity_or_zero(object: &Object, name: &str) -> Option<Value> {
    Some(given(object, name, quantity)?.unwrap_or_else(|| Value::from("0")))
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
                expression.insert(name, text_or_empty(found, name)?);
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
