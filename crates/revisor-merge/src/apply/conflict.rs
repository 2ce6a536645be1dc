//! [`Conflict`]: a place that one manager applies and another manages, and how clients are told of it.

use revisor_object::{Object, Value, parse_json};

use super::field_set::{FieldSet, Node, SELF};
use super::managed_fields::{Manager, Operation};

/// A place that somebody else manages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Who manages it, in the words of messages.
    pub manager: String,
    /// The place, as `.spec.containers[name="web"].image`.
    pub place: String,
}

impl Conflict {
    /// One conflict for each place of a set.
    pub(crate) fn all(manager: &Manager, set: &FieldSet) -> Vec<Conflict> {
        let manager = describe(manager);
        places(set).into_iter().map(|place| Conflict { manager: manager.clone(), place }).collect()
    }
}

/// What clients are told about conflicts.
pub fn describe_conflicts(conflicts: &[Conflict]) -> String {
    if let [Conflict { manager, place }] = conflicts {
        return format!("Apply failed with 1 conflict: conflict with {manager}: {place}");
    }
    let mut sorted: Vec<&Conflict> = conflicts.iter().collect();
    sorted.sort_by(|one, two| one.manager.cmp(&two.manager));
    let mut lines = Vec::new();
    let mut last = "";
    for conflict in sorted {
        if conflict.manager != last {
            lines.push(format!("conflicts with {}:", conflict.manager));
            last = &conflict.manager;
        }
        lines.push(format!("- {}", conflict.place));
    }
    format!("Apply failed with {} conflicts: {}", conflicts.len(), lines.join("\n"))
}

fn describe(manager: &Manager) -> String {
    let mut text = format!("{:?}", manager.name);
    if !manager.subresource.is_empty() {
        text.push_str(&format!(" with subresource {:?}", manager.subresource));
    }
    if manager.operation == Operation::Update {
        text.push_str(&format!(" using {}", manager.api_version));
    }
    text
}

/// The places of a set in the notation of messages.
fn places(set: &FieldSet) -> Vec<String> {
    fn walk(tree: &Object, path: &mut String, found: &mut Vec<String>) {
        for (step, below) in tree.iter().filter(|(step, _)| *step != SELF) {
            let before = path.len();
            path.push_str(&shown(step));
            let node = Node::of(below);
            if node.is_member {
                found.push(path.clone());
            }
            if let Some(below) = node.below {
                walk(below, path, found);
            }
            path.truncate(before);
        }
    }
    let mut found = Vec::new();
    walk(set.tree(), &mut String::new(), &mut found);
    found
}

fn shown(step: &str) -> String {
    match step.split_at_checked(2) {
        Some(("f:", name)) => format!(".{name}"),
        Some(("v:", value)) => format!("[={value}]"),
        Some(("i:", at)) => format!("[{at}]"),
        Some(("k:", keys)) => match parse_json(keys.as_bytes()).map(|parsed| parsed.value) {
            Ok(Value::Object(keys)) => {
                let keys: Vec<String> =
                    keys.iter().map(|(name, value)| format!("{name}={}", value.to_json())).collect();
                format!("[{}]", keys.join(","))
            }
            _ => format!("[{keys}]"),
        },
        _ => step.to_owned(),
    }
}
