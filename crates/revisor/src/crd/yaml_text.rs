//! An object as YAML that people would have written: keys in the order in which they stood, texts without quotes where
//! they need none, and those of several lines as such.

use std::fmt::Write as _;

use revisor_object::{KeyOrder, Object, Value, parse_yaml};

/// The members that every object begins with.
const FIRST: [&str; 4] = ["apiVersion", "kind", "metadata", "spec"];

/// An object as YAML. Keys that `order` does not know come behind the others, by name.
pub(crate) fn to_yaml(object: &Object, order: &KeyOrder) -> String {
    let mut text = String::new();
    write_members(&mut text, object, Some(order), 0, false);
    text
}

fn write_members(text: &mut String, object: &Object, order: Option<&KeyOrder>, indent: usize, is_item: bool) {
    let mut names: Vec<&str> = order.map(|order| order.keys().collect()).unwrap_or_default();
    names.retain(|name| object.contains(name));
    if indent == 0 {
        // What is at the top has its usual order, unless somebody chose another one.
        let new = FIRST.into_iter().filter(|name| object.contains(name) && !names.contains(name));
        names = names.iter().copied().chain(new).collect();
    }
    names.extend(object.iter().map(|(name, _)| name));
    let mut seen = std::collections::HashSet::new();
    let mut is_first = true;
    for name in names.into_iter().filter(|name| seen.insert(*name)) {
        let Some(value) = object.get(name) else { continue };
        if !(is_item && is_first) {
            pad(text, indent);
        }
        is_first = false;
        text.push_str(&scalar_text(name));
        text.push(':');
        write_value(text, value, order.and_then(|order| order.member(name)), indent);
    }
}

/// Writes what stands behind a key.
fn write_value(text: &mut String, value: &Value, order: Option<&KeyOrder>, indent: usize) {
    match value {
        Value::Object(object) if !object.is_empty() => {
            text.push('\n');
            write_members(text, object, order, indent + 2, false);
        }
        Value::Array(items) if !items.is_empty() => {
            text.push('\n');
            write_items(text, items, order, indent);
        }
        Value::String(lines) if is_block(lines) => {
            text.push_str(if lines.ends_with('\n') { " |\n" } else { " |-\n" });
            for line in lines.lines() {
                if !line.is_empty() {
                    pad(text, indent + 2);
                    text.push_str(line);
                }
                text.push('\n');
            }
        }
        scalar => {
            let _ = writeln!(text, " {}", plain_value(scalar));
        }
    }
}

fn write_items(text: &mut String, items: &[Value], order: Option<&KeyOrder>, indent: usize) {
    for (index, item) in items.iter().enumerate() {
        let order = order.and_then(|order| order.item(index));
        pad(text, indent);
        match item {
            Value::Object(object) if !object.is_empty() => {
                text.push_str("- ");
                write_members(text, object, order, indent + 2, true);
            }
            Value::Array(inner) if !inner.is_empty() => {
                text.push_str("-\n");
                write_items(text, inner, order, indent + 2);
            }
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => {
                text.push('-');
                write_value(text, item, None, indent);
            }
            empty => {
                let _ = writeln!(text, "- {}", plain_value(empty));
            }
        }
    }
}

fn pad(text: &mut String, indent: usize) {
    text.extend(std::iter::repeat_n(' ', indent));
}

fn plain_value(value: &Value) -> String {
    match value {
        Value::String(text) => scalar_text(text),
        other => other.to_json(),
    }
}

/// A text without quotes, if it is read as the same text then.
fn scalar_text(text: &str) -> String {
    let is_plain = !text.is_empty()
        && text.len() <= 200
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_./-:@%+ ".contains(c))
        && text.starts_with(|c: char| c.is_ascii_alphanumeric() || "/_.".contains(c))
        && !text.contains(": ")
        && !text.ends_with([':', ' '])
        && parse_yaml(text.as_bytes()).is_ok_and(|parsed| parsed.value.as_str() == Some(text));
    if is_plain { text.to_owned() } else { Value::from(text).to_json() }
}

/// Whether a text of several lines can stand as such.
fn is_block(text: &str) -> bool {
    let is_line = |line: &str| !line.ends_with([' ', '\t', '\r']) && line.chars().all(|c| !c.is_control() || c == '\t');
    text.contains('\n')
        && !text.starts_with([' ', '\n', '\t'])
        && !text.ends_with("\n\n")
        && text.lines().all(is_line)
        && text.lines().last().is_some_and(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_is_read() {
        let source = r##"
spec:
  z: 1
  a: [x, "true", "1", "", "a: b", "#c", " d", "e ", "-", "é", "y", "0x1f", "1e3", "~", "2026-01-01"]
  text: |
    line one
      two

    three
  keep: "a\nb "
  end: |-
    x
    y
  nothing: {}
  none: []
  list:
  - {q: 1, b: [[1, 2], [], {}]}
  - null
  - [a, [b]]
  odd key: {"x.y/z": 1.5, "": false, "true": null}
apiVersion: v1
kind: K
"##;
        let parsed = parse_yaml(source.as_bytes()).expect("is YAML").value;
        let object = parsed.as_object().expect("an object");
        let written = to_yaml(object, &KeyOrder::of(source));
        let again = parse_yaml(written.as_bytes()).unwrap_or_else(|error| panic!("{error}:\n{written}")).value;
        assert_eq!(again, parsed, "{written}");
        assert!(written.starts_with("spec:\n  z: 1\n  a:\n  - x\n  - \"true\"\n"), "{written}");
        assert!(written.contains("  text: |\n    line one\n      two\n\n    three\n  keep: \"a\\nb \"\n"), "{written}");
        assert!(written.ends_with("apiVersion: v1\nkind: K\n"), "{written}");
        let fresh = to_yaml(object, &KeyOrder::default());
        assert!(fresh.starts_with("apiVersion: v1\nkind: K\nspec:\n  a:\n"), "{fresh}");
    }
}
