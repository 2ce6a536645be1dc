//! Bodies that are no proper JSON or YAML, say something twice, or something that nobody asked for.

use revisor_object::{Object, Value};

use super::{Subject, options};
use crate::group::Step;

/// Some writes of good objects whose text is odd.
pub(super) fn steps(subject: &mut Subject<'_>) -> Vec<Step> {
    let path = subject.collection();
    let mut steps = Vec::new();
    for _ in 0..4 {
        let object = subject.good();
        let json = Value::Object(object.clone()).to_json();
        let validation = *subject.choices.of(&["Strict", "Strict", "Warn", "Ignore"]);
        let step = Step::new("POST", format!("{path}?dryRun=All&fieldValidation={validation}"));
        steps.push(if subject.choices.once_in(3) {
            let text = odd_yaml(subject, yaml(&object));
            step.text("application/yaml", text)
        } else {
            let text = odd_json(subject, json);
            step.text("application/json", text)
        });
    }
    let accept = *subject.choices.of(options::ACCEPTS);
    steps.push(Step::new("POST", path + "?dryRun=All").object(subject.good()).header("Accept", accept));
    steps
}

/// Members that are put in front of others: unknown ones, others in another case, and known ones that come again.
const MEMBERS: &[&str] = &[
    "\"unknown\":1",
    "\"unknown\":{\"a\":1,\"a\":2}",
    "\"metadata\":{}",
    "\"metadata\":{\"name\":\"other\",\"name\":\"another\"}",
    "\"kind\":\"Other\"",
    "\"kind\":null",
    "\"apiVersion\":\"v0\"",
    "\"Kind\":\"x\"",
    "\"Metadata\":{\"labels\":{\"a\":\"b\"}}",
    "\"spec\":{}",
    "\"Spec\":{}",
    "\"spec\":null",
    "\"status\":{\"unknown\":1}",
    "\"items\":[]",
    "\"\":1",
    "\"name\":\"x\"",
    "\"labels\":{\"a\":1}",
    "\"labels\":{\"a\":\"b\",\"a\":\"c\"}",
    "\"annotations\":{\"a\":null}",
    "\"creationTimestamp\":\"x\"",
    "\"generation\":\"1\"",
    "\"finalizers\":\"x\"",
    "\"finalizers\":[1]",
    "\"ownerReferences\":[{\"uid\":1,\"unknown\":2}]",
    "\"replicas\":\"1\"",
    "\"replicas\":1.5",
    "\"image\":1",
    "\"ports\":{}",
];

fn odd_json(subject: &mut Subject<'_>, json: String) -> String {
    let starts: Vec<usize> = json.match_indices('{').map(|(at, _)| at).collect();
    match subject.choices.below(8) {
        0 => json[..json.len() - 1].to_owned(),
        1 => format!("{json} {}", subject.choices.of(&["x", "{}", ",", "\u{0}", "null"])),
        2 => {
            let instead = *subject.choices.of(&["::", " ", "=", ":,"]);
            json.replacen(':', instead, 1)
        }
        _ => {
            let at = *subject.choices.of(&starts);
            let member = *subject.choices.of(MEMBERS);
            let comma = if json[at + 1..].starts_with('}') { "" } else { "," };
            format!("{}{member}{comma}{}", &json[..=at], &json[at + 1..])
        }
    }
}

const YAML_LINES: &[&str] = &[
    "kind: Other\n",
    "unknown: 1\n",
    "metadata: {}\n",
    "metadata:\n  name: x\n  name: y\n",
    "&a b: *a\n",
    "? a\n: b\n",
    "1: 2\n",
    "true: x\n",
    "---\n",
    "...\n",
    "\tx: y\n",
    "!!str 1: 2\n",
    "<<: {a: b}\n",
    "x: !!binary aGk=\n",
    "x: 0o17\n",
    "x: 2001-01-01\n",
    "x: .inf\n",
    "x: ~\n",
    "x: yes\n",
    "- a\n",
    "x: |\n y\n z\n",
    "spec: &s {}\nstatus: *s\n",
];

fn odd_yaml(subject: &mut Subject<'_>, yaml: String) -> String {
    let line = *subject.choices.of(YAML_LINES);
    if subject.choices.once_in(2) { format!("{line}{yaml}") } else { format!("{yaml}{line}") }
}

/// The object as YAML in blocks.
pub(super) fn yaml(object: &Object) -> String {
    let mut text = String::new();
    block(&Value::Object(object.clone()), 0, &mut text);
    text
}

/// Members of objects get lines of their own; everything else is written as JSON, which is YAML.
fn block(value: &Value, depth: usize, text: &mut String) {
    let Value::Object(members) = value else { return };
    for (name, member) in members.iter() {
        let name = Value::from(name).to_json();
        let name = name.trim_matches('"');
        let is_plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic());
        let name = if is_plain { name.to_owned() } else { format!("\"{name}\"") };
        *text += &"  ".repeat(depth);
        match member {
            Value::Object(inner) if !inner.is_empty() => {
                *text += &format!("{name}:\n");
                block(member, depth + 1, text);
            }
            _ => *text += &format!("{name}: {}\n", member.to_json()),
        }
    }
}
