//! Keys that one mapping of a YAML text has more than once, by line, as the original speaks of them.
//!
//! [`parse_yaml`](crate::parse_yaml) notices them; where they stand is only looked up when somebody has to be told.

use std::collections::HashSet;

use saphyr_parser::{Event, Parser, ScalarStyle, StrInput};

use crate::yaml::{key_text, scalar};
use crate::{Value, json::MAX_DEPTH};

/// No more than these are named.
const MAX_NAMED: usize = 100;

/// A mapping or sequence whose end has not come yet.
enum Open {
    Sequence,
    Mapping {
        seen: HashSet<String>,
        expects_key: bool,
        /// The key at hand, if it was seen before, and the line of its value, once that has begun.
        repeated: Option<(String, Option<usize>)>,
    },
}

/// What is said of every key of the first document that its mapping has already: `line 7: key "a" already set in map`.
pub fn repeated_yaml_keys(text: &str) -> Vec<String> {
    let mut open: Vec<Open> = Vec::new();
    let mut found = Vec::new();
    // The line of the scalar before the one at hand: the key, if that is the value.
    let mut key_line = 1;
    for event in Parser::new(StrInput::new(text)) {
        let Ok((event, span)) = event else { break };
        match event {
            Event::Scalar(text, style, _, tag) => {
                // A block begins where it is said that one follows; the parser tells where its text does.
                let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                value_begins(&mut open, if is_block { key_line } else { span.start.line() });
                key_line = span.start.line();
                if let Some(Open::Mapping { seen, expects_key: true, repeated }) = open.last_mut()
                    && let Ok(key) = scalar(&text, style == ScalarStyle::Plain, tag.as_deref())
                    && let Some(name) = key_text(&key)
                    && !seen.insert(name.to_string())
                {
                    let shown = match &key {
                        Value::String(name) => format!("{name:?}"),
                        other => other.to_json(),
                    };
                    *repeated = Some((shown, None));
                }
                step(&mut open, &mut found);
            }
            Event::Alias(_) => {
                value_begins(&mut open, span.start.line());
                step(&mut open, &mut found);
            }
            Event::SequenceStart(..) => {
                value_begins(&mut open, span.start.line());
                open.push(Open::Sequence);
            }
            Event::MappingStart(..) => {
                value_begins(&mut open, span.start.line());
                open.push(Open::Mapping { seen: HashSet::new(), expects_key: true, repeated: None });
            }
            Event::SequenceEnd | Event::MappingEnd => {
                open.pop();
                step(&mut open, &mut found);
            }
            Event::DocumentEnd | Event::StreamEnd => break,
            Event::StreamStart | Event::DocumentStart(_) | Event::Nothing => {}
        }
        if open.len() > MAX_DEPTH || found.len() == MAX_NAMED {
            break;
        }
    }
    found
}

/// Notes the line of a value whose key was seen before. As in the original, that is the line that is told.
fn value_begins(open: &mut [Open], line: usize) {
    if let Some(Open::Mapping { expects_key: false, repeated: Some((_, at)), .. }) = open.last_mut() {
        at.get_or_insert(line);
    }
}

/// After a key comes its value, and after a value the next key. A key is told of when its value is complete.
fn step(open: &mut [Open], found: &mut Vec<String>) {
    if let Some(Open::Mapping { expects_key, repeated, .. }) = open.last_mut() {
        *expects_key = !*expects_key;
        if *expects_key && let Some((shown, line)) = repeated.take() {
            found.push(format!("line {}: key {shown} already set in map", line.unwrap_or_default()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_keys_are_named_by_line() {
        let text = "a: 1\nb:\n  a: 1\n  \"a\": [x, {c: 1, c: 2}]\na: >\n  xx\n1: x\n1: y\nb:\n  z: 1\n";
        assert_eq!(
            repeated_yaml_keys(text),
            [
                "line 4: key \"c\" already set in map",
                "line 4: key \"a\" already set in map",
                "line 5: key \"a\" already set in map",
                "line 8: key 1 already set in map",
                "line 10: key \"b\" already set in map",
            ]
        );
        assert!(repeated_yaml_keys("a: {b: 1}\nb: [a, a]\n").is_empty());
    }
}
