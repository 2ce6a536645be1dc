//! The life of an object: it is created, read, changed in every way, and deleted.

use revisor_catalog::Verb;
use revisor_fuzz::odd_text;
use revisor_object::{Object, Value, parse_json};

use super::{Subject, metadata, options, tries};
use crate::group::Step;

/// What is done to an object between its creation and its end.
const ACTS: usize = 9;

/// Parts that speak with something else than the server.
const ELSEWHERE: &[&str] = &["exec", "attach", "portforward", "proxy", "log"];

pub(super) fn steps(subject: &mut Subject<'_>) -> Vec<Step> {
    if !subject.is_storable() {
        return tries::steps(subject);
    }
    let object = if subject.choices.once_in(3) { metadata::odd(subject) } else { subject.good() };
    let mut steps = vec![Step::new("POST", subject.collection()).object(object)];
    for _ in 0..ACTS {
        let step = match subject.choices.below(12) {
            0 => get(subject),
            1 => list(subject),
            2 | 3 => update(subject),
            4 | 5 => merge(subject),
            6 => json_patch(subject),
            7 | 8 => apply(subject),
            9 => status(subject),
            10 => part(subject),
            _ => delete(subject),
        };
        steps.extend(step);
    }
    steps.push(Step::new("GET", subject.object_path()));
    steps.extend(delete(subject));
    if subject.choices.once_in(4) && subject.has(Verb::DeleteCollection) && subject.resource.namespaced {
        let query = options::list(&mut subject.choices);
        steps.push(Step::new("DELETE", subject.collection() + &query));
        steps.push(Step::new("GET", subject.collection()));
    }
    steps
}

fn get(subject: &mut Subject<'_>) -> Option<Step> {
    let query = *subject.choices.of(&[
        "",
        "",
        "?resourceVersion=0",
        "?resourceVersion=x",
        "?pretty=true",
        "?includeObject=None",
    ]);
    let accept = *subject.choices.of(options::ACCEPTS);
    Some(Step::new("GET", subject.object_path() + query).header("Accept", accept))
}

fn list(subject: &mut Subject<'_>) -> Option<Step> {
    // What lies outside of the namespace is not the same on both sides.
    if !subject.resource.namespaced || !subject.has(Verb::List) {
        return None;
    }
    let query = options::list(&mut subject.choices);
    let step = Step::new("GET", subject.collection() + &query);
    let accept = *subject.choices.of(options::ACCEPTS);
    Some(if subject.choices.once_in(2) { step.header("Accept", accept) } else { step })
}

fn changed(subject: &mut Subject<'_>) -> Object {
    match subject.choices.below(4) {
        0 => metadata::odd(subject),
        1 => subject.good(),
        _ => subject.odd(),
    }
}

fn update(subject: &mut Subject<'_>) -> Option<Step> {
    if !subject.has(Verb::Update) {
        return None;
    }
    let mut object = changed(subject);
    let metadata = object.object_mut("metadata");
    if !metadata.contains("resourceVersion") && subject.choices.once_in(2) {
        metadata.insert("resourceVersion", "${rv}");
    }
    let query = options::write(&mut subject.choices);
    Some(Step::new("PUT", subject.object_path() + &query).object(object))
}

fn partial(subject: &mut Subject<'_>) -> Object {
    let mut object = changed(subject);
    if !subject.choices.once_in(3) {
        object.remove("apiVersion");
        object.remove("kind");
        object.object_mut("metadata").remove("name");
    }
    if subject.choices.once_in(6) {
        let names: Vec<String> = object.iter().map(|(name, _)| name.to_owned()).collect();
        object.insert(subject.choices.of(&names).as_str(), Value::Null);
    }
    object
}

fn merge(subject: &mut Subject<'_>) -> Option<Step> {
    if !subject.has(Verb::Patch) {
        return None;
    }
    let patch = partial(subject);
    let query = options::write(&mut subject.choices);
    let media_type = *subject.choices.of(&["application/merge-patch+json", "application/strategic-merge-patch+json"]);
    Some(Step::new("PATCH", subject.object_path() + &query).value(media_type, Value::Object(patch)))
}

/// Where JSON patches point to.
const POINTERS: &[&str] = &[
    "/metadata/labels",
    "/metadata/labels/a",
    "/metadata/annotations/a~1b",
    "/metadata/name",
    "/metadata/uid",
    "/metadata/finalizers/-",
    "/metadata/finalizers/0",
    "/metadata/ownerReferences",
    "/metadata/managedFields",
    "/metadata/managedFields/0",
    "/metadata/resourceVersion",
    "/spec",
    "/spec/replicas",
    "/spec/template/spec/containers/0/image",
    "/spec/containers/0/image",
    "/spec/unknown",
    "/data/a",
    "/status",
    "/kind",
    "/apiVersion",
    "",
    "/",
    "x",
    "/metadata/labels/a~2",
    "/metadata/finalizers/-1",
    "/metadata/finalizers/01",
];

fn json_patch(subject: &mut Subject<'_>) -> Option<Step> {
    if !subject.has(Verb::Patch) {
        return None;
    }
    let mut operations = Vec::new();
    for _ in 0..=subject.choices.below(2) {
        let mut operation = Object::new();
        let op = *subject.choices.of(&["add", "add", "replace", "remove", "test", "copy", "move", "x"]);
        operation.insert("op", op);
        operation.insert("path", *subject.choices.of(POINTERS));
        if matches!(op, "copy" | "move") {
            operation.insert("from", *subject.choices.of(POINTERS));
        } else if op != "remove" && !subject.choices.once_in(10) {
            let json = *subject.choices.of(&[
                "\"x\"",
                "1",
                "null",
                "{}",
                "[]",
                "{\"a\":\"b\"}",
                "[\"example.com/f\"]",
                "true",
            ]);
            operation.insert("value", parse_json(json.as_bytes()).map(|parsed| parsed.value).unwrap_or_default());
        }
        operations.push(Value::Object(operation));
    }
    let query = options::write(&mut subject.choices);
    let step = Step::new("PATCH", subject.object_path() + &query);
    Some(step.value("application/json-patch+json", Value::Array(operations)))
}

fn apply(subject: &mut Subject<'_>) -> Option<Step> {
    if !subject.has(Verb::Patch) {
        return None;
    }
    let mut object = changed(subject);
    if subject.choices.once_in(8) {
        let name = *subject.choices.of(&["kind", "apiVersion", "metadata"]);
        object.remove(name);
    }
    let manager = *subject.choices.of(&[
        "?fieldManager=a",
        "?fieldManager=b",
        "?fieldManager=a&force=true",
        "?force=true",
        "",
        "?fieldManager=b&force=true&dryRun=All",
        "?fieldManager=b&fieldValidation=Strict",
    ]);
    let step = Step::new("PATCH", subject.object_path() + manager);
    Some(step.value("application/apply-patch+yaml", Value::Object(object)))
}

fn status(subject: &mut Subject<'_>) -> Option<Step> {
    if !subject.resource.subresources.iter().any(|part| part.name == "status") {
        return None;
    }
    let status = subject.part("status")?;
    let path = subject.object_path() + "/status" + &options::write(&mut subject.choices);
    let mut object = if subject.choices.once_in(2) { subject.good() } else { Object::new() };
    object.insert("status", status);
    Some(match subject.choices.below(4) {
        0 => Step::new("PUT", path).object(object),
        1 => Step::new("PATCH", path).value("application/merge-patch+json", Value::Object(object)),
        2 => Step::new("PATCH", path).value("application/strategic-merge-patch+json", Value::Object(object)),
        _ => {
            let mut whole = subject.good();
            whole.remove("spec");
            whole.set("status", object.remove("status"));
            Step::new("PATCH", path + "?fieldManager=s").value("application/apply-patch+yaml", Value::Object(whole))
        }
    })
}

/// Bodies for the parts of objects that speak of something else.
const PARTS: &[(&str, &str)] = &[
    ("scale", r#"{"spec":{"replicas":3}}"#),
    ("scale", r#"{"spec":{"replicas":-3}}"#),
    ("scale", r#"{"spec":{}}"#),
    ("scale", r#"{}"#),
    ("scale", r#"{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"${name}"},"spec":{"replicas":2}}"#),
    ("scale", r#"{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"${name}"}}"#),
    (
        "scale",
        r#"{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"${name}","uid":"x"},"spec":{"replicas":2}}"#,
    ),
    (
        "scale",
        r#"{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"x","labels":{"a":"b"}},"spec":{"replicas":2},"status":{"replicas":9}}"#,
    ),
    ("binding", r#"{"target":{"kind":"Node","name":"n"}}"#),
    ("binding", r#"{"target":{"kind":"Pod","name":""},"metadata":{"name":"x"}}"#),
    ("eviction", r#"{}"#),
    ("eviction", r#"{"metadata":{"name":"${name}"},"deleteOptions":{"gracePeriodSeconds":0}}"#),
    ("eviction", r#"{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"x"}}"#),
    (
        "eviction",
        r#"{"apiVersion":"policy/v1beta1","kind":"Eviction","metadata":{"name":"${name}"},"deleteOptions":{"dryRun":["All"]}}"#,
    ),
    ("token", r#"{"spec":{"audiences":["a"],"expirationSeconds":600}}"#),
    ("token", r#"{"spec":{"expirationSeconds":5}}"#),
    ("token", r#"{"spec":{"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"x"}}}"#),
    ("token", r#"{"spec":{"boundObjectRef":{"kind":"X","apiVersion":"v1","name":"x"}}}"#),
    ("token", r#"{}"#),
];

fn part(subject: &mut Subject<'_>) -> Option<Step> {
    let parts: Vec<_> = subject.resource.subresources.iter().filter(|part| !ELSEWHERE.contains(&part.name)).collect();
    if parts.is_empty() {
        return None;
    }
    let part = *subject.choices.of(&parts);
    let path = format!("{}/{}", subject.object_path(), part.name);
    let method = *subject.choices.of(&["GET", "PUT", "PATCH", "POST", "PATCH", "DELETE"]);
    let bodies: Vec<&str> = PARTS.iter().filter(|(name, _)| *name == part.name).map(|(_, body)| *body).collect();
    let query = options::write(&mut subject.choices);
    Some(match method {
        "GET" => {
            let accept = *subject.choices.of(options::ACCEPTS);
            Step::new(method, path).header("Accept", accept)
        }
        "DELETE" => Step::new(method, path),
        _ => {
            let value = if bodies.is_empty() {
                Value::Object(changed(subject))
            } else {
                parse_json(subject.choices.of(&bodies).as_bytes()).map(|parsed| parsed.value).unwrap_or_default()
            };
            let media_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
            Step::new(method, path + &query).value(media_type, value)
        }
    })
}

fn delete(subject: &mut Subject<'_>) -> Option<Step> {
    if !subject.has(Verb::Delete) {
        return None;
    }
    let step = Step::new("DELETE", subject.object_path() + &options::delete(&mut subject.choices));
    Some(match subject.choices.below(6) {
        0 => step.text("application/json", odd_text(&mut subject.choices, "{\"gracePeriodSeconds\":0}")),
        1..=3 => step.text("application/json", *subject.choices.of(options::DELETE_BODIES)),
        _ => step,
    })
}
