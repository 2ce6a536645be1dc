//! [`Conflict`]: a place that one manager applies and another manages, and how clients are told of it.

use std::cmp::Ordering;

use revisor_object::{FieldNames, Object, Parsed, Value, parse_json};

use super::field_set::{FieldSet, Node, SELF};
use super::managed_fields::{Manager, Operation};

/// A place that somebody else manages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Who manages it, in the words of messages.
    pub manager: String,
    /// The place, as `.spec.containers[name="web"].image`.
    pub place: String,
    /// How many places that is: one, unless this conflict stands for those that are not told.
    pub places: usize,
}

impl Conflict {
    /// One conflict for each place of a set, as far as they are told, and one for all the others.
    pub(crate) fn all(manager: &Manager, set: &FieldSet) -> Vec<Conflict> {
        let manager = describe(manager);
        let found = places(set);
        let told = found.iter().map(|place| (place.clone(), 1));
        let more = Some(found.left_out()).filter(|more| *more > 0).map(|more| (format!("and {more} more"), more));
        told.chain(more).map(|(place, places)| Conflict { manager: manager.clone(), place, places }).collect()
    }
}

/// What clients are told about conflicts.
pub fn describe_conflicts(conflicts: &[Conflict]) -> String {
    if let [Conflict { manager, place, places: 1 }] = conflicts {
        return format!("Apply failed with 1 conflict: conflict with {manager}: {place}");
    }
    let mut lines = Vec::new();
    let mut last = "";
    for conflict in conflicts {
        if conflict.manager != last {
            lines.push(format!("conflicts with {}:", conflict.manager));
            last = &conflict.manager;
        }
        lines.push(format!("- {}", conflict.place));
    }
    let places: usize = conflicts.iter().map(|conflict| conflict.places).sum();
    format!("Apply failed with {places} conflicts: {}", lines.join("\n"))
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

/// The places of a set in the notation of messages: at every level the places themselves before those below them.
fn places(set: &FieldSet) -> FieldNames {
    fn walk(tree: &Object, path: &mut String, found: &mut FieldNames) {
        let mut steps: Vec<(&str, Node<'_>)> =
            tree.iter().filter(|(step, _)| *step != SELF).map(|(step, below)| (step, Node::of(below))).collect();
        steps.sort_by(|(one, _), (two, _)| in_order(one, two));
        for (step, _) in steps.iter().filter(|(_, node)| node.is_member) {
            found.push(format_args!("{path}{}", shown(step)));
        }
        for (step, node) in &steps {
            if let Some(below) = node.below {
                let before = path.len();
                path.push_str(&shown(step));
                walk(below, path, found);
                path.truncate(before);
            }
        }
    }
    let mut found = FieldNames::default();
    walk(set.tree(), &mut String::new(), &mut found);
    found
}

/// The order of steps: numbers by their value, everything else by its text.
fn in_order(one: &str, two: &str) -> Ordering {
    let numbers = |step: &str| -> Vec<Value> {
        match (step.get(..2), step.get(2..).map(|rest| parse_json(rest.as_bytes()))) {
            (Some("k:"), Some(Ok(Parsed { value: Value::Object(keys), .. }))) => {
                keys.iter().map(|(_, value)| value.clone()).collect()
            }
            (Some("v:"), Some(Ok(parsed))) => vec![parsed.value],
            _ => Vec::new(),
        }
    };
    let by_value = numbers(one).iter().zip(&numbers(two)).find_map(|(one, two)| {
        let order = match (one.as_i64(), two.as_i64()) {
            (Some(one), Some(two)) => one.cmp(&two),
            _ => one.to_json().cmp(&two.to_json()),
        };
        (order != Ordering::Equal).then_some(order)
    });
    by_value.unwrap_or_else(|| one.cmp(two))
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

#[cfg(test)]
mod tests {
    use super::*;
    use revisor_object::MAX_FIELD_ERRORS;

    #[test]
    fn conflicts_that_are_not_told_are_counted() {
        let steps: Vec<String> = (0..MAX_FIELD_ERRORS + 5).map(|at| format!("f:{at:05}")).collect();
        let set = FieldSet::from_tree(steps.iter().map(|step| (step.as_str(), Object::new().into())).collect());
        let manager = Manager {
            name: "other".to_owned(),
            operation: Operation::Apply,
            api_version: "v1".to_owned(),
            subresource: String::new(),
        };
        let conflicts = Conflict::all(&manager, &set);
        assert_eq!(conflicts.len(), MAX_FIELD_ERRORS + 1);
        let told = describe_conflicts(&conflicts);
        assert!(told.starts_with("Apply failed with 1005 conflicts: conflicts with \"other\":\n- .00000\n"), "{told}");
        assert!(told.ends_with("\n- .00999\n- and 5 more"), "{told}");
    }
}
