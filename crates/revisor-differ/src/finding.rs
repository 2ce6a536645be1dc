//! [`Finding`]: how two answers differ, named so that the same cause has the same name.

use std::collections::BTreeSet;

use regex::Regex;
use serde_json::Value;

use crate::normal::{Content, Normal};

/// One difference of two answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What differences with the same cause have in common.
    pub cause: String,
    /// What our server says.
    pub ours: String,
    /// What the other says.
    pub theirs: String,
}

impl Finding {
    fn new(cause: impl Into<String>, ours: impl Into<String>, theirs: impl Into<String>) -> Finding {
        Finding { cause: cause.into(), ours: ours.into(), theirs: theirs.into() }
    }
}

fn quoted() -> Regex {
    Regex::new(r#""(?:[^"\\]|\\.)*""#).expect("a pattern of this file")
}

fn number() -> Regex {
    Regex::new(r"\d+").expect("a pattern of this file")
}

/// A text without what changes from request to request.
fn template(text: &str) -> String {
    let text = quoted().replace_all(text, "\"…\"");
    let text = number().replace_all(&text, "#");
    text.chars().take(240).collect()
}

/// Whether the two servers are in the same state after these answers, as far as one can see.
pub fn is_together(ours: &Normal, theirs: &Normal) -> bool {
    (ours.status < 300) == (theirs.status < 300)
}

/// How the answers to one request differ. `about` names what was asked.
pub fn compare(about: &str, ours: &Normal, theirs: &Normal) -> Vec<Finding> {
    if ours.status != theirs.status {
        let (ours, theirs) = (verdict(ours), verdict(theirs));
        let cause = format!("status of {about}: theirs {}, ours {}", template(&theirs), template(&ours));
        return vec![Finding::new(cause, ours, theirs)];
    }
    let mut findings = Vec::new();
    compare_warnings(ours, theirs, &mut findings);
    for name in ["content-type", "retry-after", "location", "cache-control", "vary"] {
        let all = |answer: &Normal| answer.header(name).collect::<Vec<_>>().join(", ");
        let (ours, theirs) = (all(ours), all(theirs));
        if ours != theirs {
            findings.push(Finding::new(format!("header {name}: theirs {theirs:?}, ours {ours:?}"), ours, theirs));
        }
    }
    match (&ours.body, &theirs.body) {
        (Content::Json(ours), Content::Json(theirs)) => {
            if ours["kind"] == "Status" && theirs["kind"] == "Status" {
                compare_statuses(ours, theirs, &mut findings);
            } else {
                compare_values(about, "", ours, theirs, &mut findings);
            }
        }
        (Content::Stream(ours), Content::Stream(theirs)) => {
            let as_value = |stream: &[Value]| Value::Array(stream.to_vec());
            compare_values(about, "", &as_value(ours), &as_value(theirs), &mut findings);
        }
        (ours, theirs) if ours == theirs => {}
        (ours, theirs) => {
            let show = |content: &Content| format!("{content:?}").chars().take(600).collect::<String>();
            findings.push(Finding::new(format!("body of {about}"), show(ours), show(theirs)));
        }
    }
    findings
}

/// What an answer comes down to.
fn verdict(answer: &Normal) -> String {
    let text = match &answer.body {
        Content::Json(body) if body["kind"] == "Status" => {
            format!("{} {}", body["reason"].as_str().unwrap_or(""), body["message"].as_str().unwrap_or(""))
        }
        Content::Json(body) => body["kind"].as_str().unwrap_or("").to_owned(),
        Content::Stream(_) => "stream".to_owned(),
        Content::Text(text) => text.chars().take(200).collect(),
    };
    format!("{} {text}", answer.status)
}

fn compare_warnings(ours: &Normal, theirs: &Normal, findings: &mut Vec<Finding>) {
    let all = |answer: &Normal| answer.header("warning").map(str::to_owned).collect::<BTreeSet<String>>();
    let (ours, theirs) = (all(ours), all(theirs));
    for missing in theirs.difference(&ours) {
        findings.push(Finding::new(format!("warning missing: {}", template_warning(missing)), "", missing));
    }
    for extra in ours.difference(&theirs) {
        findings.push(Finding::new(format!("warning too much: {}", template_warning(extra)), extra, ""));
    }
}

fn template_warning(text: &str) -> String {
    template(&text.trim_start_matches("299 - ").trim_matches('"').replace("\\\"", "\""))
}

/// A cause whose message prints a whole object, without that object: the original prints its internal types.
fn without_object(cause: &str) -> String {
    let mut cause: Value = serde_json::from_str(cause).unwrap_or_default();
    let message = cause["message"].as_str().unwrap_or("").to_owned();
    for start in [" value: {", " value: [{"] {
        if let Some(at) = message.find(start) {
            let value = &message[at + " value: ".len()..];
            let mut values = serde_json::Deserializer::from_str(value).into_iter::<Value>();
            if let Some(Ok(_)) = values.next() {
                let rest = &value[values.byte_offset()..];
                cause["message"] = format!("{} value: {{…}}{rest}", &message[..at]).into();
            }
        }
    }
    cause.to_string()
}

/// Takes out of both what they have in common.
fn take_common(ours: &mut Vec<String>, theirs: &mut Vec<String>, key: impl Fn(&str) -> String) -> usize {
    let before = ours.len();
    ours.retain(|cause| {
        let found = theirs.iter().position(|other| key(other) == key(cause));
        if let Some(at) = found {
            theirs.remove(at);
        }
        found.is_none()
    });
    before - ours.len()
}

/// The fields of causes in their order, without numbers and the keys of maps.
fn fields_of(causes: &[String]) -> Vec<String> {
    let key = Regex::new(r"\[[^\]]*\]").expect("a pattern of this file");
    let field = |cause: &String| -> String {
        let cause: Value = serde_json::from_str(cause).unwrap_or_default();
        key.replace_all(cause["field"].as_str().unwrap_or(""), "[]").into_owned()
    };
    causes.iter().map(field).collect()
}

/// Failures are told apart by their causes, in whatever order; then by the rest.
fn compare_statuses(ours: &Value, theirs: &Value, findings: &mut Vec<Finding>) {
    let causes = |status: &Value| -> Vec<String> {
        let causes = status["details"]["causes"].as_array();
        causes.into_iter().flatten().map(Value::to_string).collect()
    };
    let (our_causes, their_causes) = (causes(ours), causes(theirs));
    let (mut extra, mut missing) = (our_causes.clone(), their_causes.clone());
    take_common(&mut extra, &mut missing, str::to_owned);
    let printed = (extra.join(" "), missing.join(" "));
    if take_common(&mut extra, &mut missing, without_object) > 0 {
        findings.push(Finding::new("an object in a message is printed otherwise", printed.0, printed.1));
        if missing.is_empty() && extra.is_empty() {
            return;
        }
    }
    let label = |cause: &str| {
        let cause: Value = serde_json::from_str(cause).unwrap_or_default();
        let part = |name: &str| cause[name].as_str().unwrap_or("").to_owned();
        let field = number().replace_all(&part("field"), "#").into_owned();
        let tail: Vec<&str> = field.rsplit('.').take(3).collect();
        let tail: Vec<&str> = tail.into_iter().rev().collect();
        format!("{} …{}: {}", part("reason"), tail.join("."), template(&part("message")))
    };
    for cause in &missing {
        findings.push(Finding::new(format!("cause missing: {}", label(cause)), "", cause));
    }
    for cause in &extra {
        findings.push(Finding::new(format!("cause too much: {}", label(cause)), cause, ""));
    }
    if !missing.is_empty() || !extra.is_empty() {
        return;
    }
    if our_causes != their_causes {
        let (our_fields, their_fields) = (fields_of(&our_causes), fields_of(&their_causes));
        let cause = if our_fields == their_fields {
            "order of causes of the members of a map".to_owned()
        } else {
            format!("order of causes: theirs {their_fields:?}, ours {our_fields:?}")
        };
        findings.push(Finding::new(cause, our_causes.join(" "), their_causes.join(" ")));
        return;
    }
    let message = |status: &Value| status["message"].as_str().unwrap_or("").to_owned();
    if message(ours) != message(theirs) {
        let cause = format!("message: theirs {}, ours {}", template(&message(theirs)), template(&message(ours)));
        findings.push(Finding::new(cause, message(ours), message(theirs)));
        return;
    }
    compare_values("Status", "", ours, theirs, findings);
}

fn compare_values(about: &str, at: &str, ours: &Value, theirs: &Value, findings: &mut Vec<Finding>) {
    match (ours, theirs) {
        (Value::Object(our_members), Value::Object(their_members)) => {
            let names: BTreeSet<&String> = our_members.keys().chain(their_members.keys()).collect();
            for name in names {
                let at = format!("{at}.{name}");
                match (our_members.get(name), their_members.get(name)) {
                    (Some(ours), Some(theirs)) => compare_values(about, &at, ours, theirs, findings),
                    (Some(ours), None) => {
                        findings.push(Finding::new(format!("{about}: {at} too much"), short(ours), "nothing"));
                    }
                    (None, Some(theirs)) => {
                        findings.push(Finding::new(format!("{about}: {at} missing"), "nothing", short(theirs)));
                    }
                    (None, None) => {}
                }
            }
        }
        (Value::Array(our_items), Value::Array(their_items)) if our_items.len() == their_items.len() => {
            for (ours, theirs) in our_items.iter().zip(their_items) {
                compare_values(about, &format!("{at}[]"), ours, theirs, findings);
            }
        }
        (Value::Array(our_items), Value::Array(their_items)) => {
            let cause = format!("{about}: {at} has another length");
            let show = |items: &[Value]| format!("{}: {}", items.len(), short(&Value::Array(items.to_vec())));
            findings.push(Finding::new(cause, show(our_items), show(their_items)));
        }
        (ours, theirs) if ours == theirs => {}
        (ours, theirs) => findings.push(Finding::new(format!("{about}: {at}"), short(ours), short(theirs))),
    }
}

fn short(value: &Value) -> String {
    value.to_string().chars().take(400).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &str) -> Normal {
        let body = serde_json::from_str(body).map_or_else(|_| Content::Text(body.to_owned()), Content::Json);
        Normal { status, headers: Vec::new(), body }
    }

    #[test]
    fn differences_are_named_by_their_cause() {
        let invalid = |causes: &str| {
            answer(422, &format!(r#"{{"kind":"Status","reason":"Invalid","details":{{"causes":[{causes}]}}}}"#))
        };
        let cause = |field: &str| format!(r#"{{"reason":"R","message":"bad \"x\" 7","field":"{field}"}}"#);
        for (ours, theirs, want) in [
            (answer(200, r#"{"kind":"A"}"#), answer(201, r#"{"kind":"A"}"#), "status of pods: theirs # A, ours # A"),
            (answer(200, r#"{"a":{"b":1}}"#), answer(200, r#"{"a":{"b":2}}"#), "pods: .a.b"),
            (answer(200, r#"{"a":[{"b":1}]}"#), answer(200, r#"{"a":[{}]}"#), "pods: .a[].b too much"),
            (invalid(&cause("spec.a[3].b")), invalid(""), "cause too much: R …spec.a[#].b: bad \"…\" #"),
            (
                invalid(&format!("{},{}", cause("a"), cause("b"))),
                invalid(&format!("{},{}", cause("b"), cause("a"))),
                r#"order of causes: theirs ["b", "a"], ours ["a", "b"]"#,
            ),
            (
                invalid(&format!("{},{}", cause("a[x]"), cause("a[y]"))),
                invalid(&format!("{},{}", cause("a[y]"), cause("a[x]"))),
                "order of causes of the members of a map",
            ),
            (
                invalid(r#"{"reason":"R","message":"Invalid value: {\"a\":1}: no","field":"f"}"#),
                invalid(r#"{"reason":"R","message":"Invalid value: {\"A\":1,\"B\":null}: no","field":"f"}"#),
                "an object in a message is printed otherwise",
            ),
            (
                invalid(r#"{"reason":"R","message":"Invalid value: {\"a\":1}: no","field":"f"}"#),
                invalid(""),
                r#"cause too much: R …f: Invalid value: {"…":#}: no"#,
            ),
        ] {
            let found: Vec<String> = compare("pods", &ours, &theirs).into_iter().map(|found| found.cause).collect();
            assert_eq!(found, [want]);
            assert_eq!(compare("pods", &ours, &ours), []);
        }
    }
}
