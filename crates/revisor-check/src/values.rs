//! Values at which two schemas could differ: their bounds and what lies next to them, texts that one pattern matches and
//! the other does not, lists with one item too many or the same item twice.

use std::collections::BTreeSet;

use revisor_convert::{Dice, Generator};
use revisor_object::{FieldPath, Object, Value};
use revisor_schema::{Additional, Checks, JsonType, ListType, PatternWalk, Structural, UndecidedPatterns, Validator};

use crate::budget::Budget;
use crate::keywords::MAX_SHOWN;
use crate::stage::Stage;

/// How many values are tried at one place.
const MAX_VALUES: usize = 240;

/// How many items or members something gets to show that it has too many.
pub(crate) const MAX_ITEMS: i64 = 1100;

/// A pattern that matches nothing.
const NEVER: &str = "a^";

/// Values that are worth a try where `old` became `new`, or the other way round; those of `old` first.
pub(crate) fn telling_values(stage: &Stage<'_>, old: &Structural, new: &Structural) -> Vec<Value> {
    let nothing = Checks::default();
    let checks = [old, new].map(|schema| schema.checks.as_deref().unwrap_or(&nothing));
    let mut generator = Generator::new(stage.old.schema(stage.crd), &[], 3);
    let mut found: Vec<Value> = checks.iter().flat_map(|checks| checks.allowed.iter().cloned()).collect();
    match old.kind {
        Some(JsonType::Integer | JsonType::Number) => found.extend(numbers(checks)),
        Some(JsonType::String) => found.extend(texts(stage.budget, checks).into_iter().map(Value::from)),
        Some(JsonType::Array) => found.extend(lists(&mut generator, old, new, checks)),
        Some(JsonType::Object) => found.extend(maps(&mut generator, old, checks)),
        Some(JsonType::Boolean) => {}
        None => found.extend([Value::Int(1), Value::from("a"), Value::Bool(true), Value::Array(Vec::new())]),
    }
    found.extend(generator.values(old));
    found.extend(generator.values(new));
    found.push(Value::Null);
    let mut seen = BTreeSet::new();
    found.retain(|value| seen.insert(value.to_json()));
    found.truncate(MAX_VALUES);
    found
}

/// A text that the pattern of `old` matches and that of `new` does not, of a length that `old` allows.
pub(crate) fn telling_text(
    budget: &Budget,
    old: &Structural,
    new: &Structural,
) -> Result<Option<String>, UndecidedPatterns> {
    let nothing = Checks::default();
    let [old, new] = [old, new].map(|schema| schema.checks.as_deref().unwrap_or(&nothing));
    let count = |bound: Option<i64>| bound.and_then(|bound| usize::try_from(bound).ok());
    budget.pattern_difference(&old.pattern, &new.pattern, count(old.min_length).unwrap_or(0), count(old.max_length))
}

fn numbers(checks: [&Checks; 2]) -> Vec<Value> {
    let bounds = checks.iter().flat_map(|checks| [checks.minimum, checks.maximum, checks.multiple_of]);
    let mut found = Vec::new();
    for bound in bounds.flatten() {
        for number in [bound, bound - 1.0, bound + 1.0, bound * 2.0] {
            if number == number.trunc() && number.abs() < 9e15 {
                found.push(Value::Int(number as i64));
            }
        }
        found.extend([bound, bound + 0.5, bound - 0.5].map(Value::Float));
    }
    let formats = [i64::from(i32::MAX), i64::from(i32::MAX) + 1, i64::from(i32::MIN) - 1, i64::MAX, 1, 0, -1];
    found.extend(formats.map(Value::Int));
    found.extend([Value::Float(0.5), Value::Float(1e300)]);
    found
}

fn texts(budget: &Budget, checks: [&Checks; 2]) -> Vec<String> {
    let bounds = checks.iter().flat_map(|checks| [checks.min_length, checks.max_length]).flatten();
    let lengths: BTreeSet<usize> = bounds
        .flat_map(|bound| [bound.saturating_sub(1), bound, bound.saturating_add(1)])
        .chain([0, 1])
        .filter(|length| (0..=MAX_SHOWN).contains(length))
        .filter_map(|length| usize::try_from(length).ok())
        .collect();
    let mut found: Vec<String> = lengths.iter().map(|length| "a".repeat(*length)).collect();
    for pattern in checks.iter().map(|checks| checks.pattern.as_str()).filter(|pattern| !pattern.is_empty()) {
        // Of just this length, if there is one.
        let exact = |length: &usize| budget.pattern_difference(pattern, NEVER, *length, Some(*length)).ok().flatten();
        found.extend(lengths.iter().filter_map(exact));
        let Ok(walk) = PatternWalk::new(pattern) else { continue };
        let mut dice = Dice::new(5);
        for length in &lengths {
            found.extend((0..6).filter_map(|_| walk.text(*length, &mut |below| dice.below(below))));
        }
    }
    found
}

fn lists(generator: &mut Generator<'_>, old: &Structural, new: &Structural, checks: [&Checks; 2]) -> Vec<Value> {
    let Some(item) = old.items.as_deref() else { return Vec::new() };
    let mut found = twins(generator, old, new, item);
    let bounds = checks.iter().flat_map(|checks| [checks.min_items, checks.max_items]).flatten();
    let counts: BTreeSet<i64> = bounds.flat_map(|bound| [bound - 1, bound, bound + 1]).collect();
    let is_distinct =
        matches!(old.list_type, Some(ListType::Set | ListType::Map)) || checks.iter().any(|checks| checks.unique_items);
    for count in counts.into_iter().filter(|count| (0..=MAX_ITEMS).contains(count)) {
        let items = match is_distinct {
            true => distinct_items(generator, old, item, count as usize),
            false => vec![generator.least(item); count as usize],
        };
        found.push(Value::Array(items));
    }
    found
}

/// Lists with two items that `new` takes for the same.
fn twins(generator: &mut Generator<'_>, old: &Structural, new: &Structural, item: &Structural) -> Vec<Value> {
    let mut found = Vec::new();
    for one in generator.values(item).into_iter().take(6) {
        found.push(Value::Array(vec![one.clone(), one.clone()]));
        let Value::Object(members) = &one else { continue };
        // Told apart by what is no longer a key.
        for key in old.list_map_keys.iter().filter(|key| !new.list_map_keys.contains(key)) {
            let Some(schema) = item.property(key) else { continue };
            for value in generator.values(schema).into_iter().take(12) {
                let mut other = members.clone();
                if other.get(key) != Some(&value) {
                    other.insert(key, value);
                    found.push(Value::Array(vec![one.clone(), Value::Object(other)]));
                }
            }
        }
    }
    found
}

/// So many items of which no two are the same, as far as they can be told apart by a number.
fn distinct_items(generator: &mut Generator<'_>, list: &Structural, item: &Structural, count: usize) -> Vec<Value> {
    let least = generator.least(item);
    let key = match (list.list_type, list.list_map_keys.first()) {
        (Some(ListType::Map), Some(key)) => Some(key),
        _ => None,
    };
    let schema = key.map_or(Some(item), |key| item.property(key));
    let Some(schema) = schema else { return vec![least; count] };
    let validator = Validator::compile(schema, u32::MAX);
    let mut texts = (0..).map(|number: usize| match schema.kind {
        Some(JsonType::Integer | JsonType::Number) => Value::Int(number as i64),
        _ => Value::from(format!("a{number}")),
    });
    let mut others = generator.values(schema).into_iter();
    (0..count)
        .map(|_| {
            let numbered = texts.next().filter(|value| validator.validate(&FieldPath::none(), value).is_empty());
            let value = numbered.or_else(|| others.next()).unwrap_or(Value::Null);
            match (key, &least) {
                (Some(key), Value::Object(members)) => {
                    let mut members = members.clone();
                    members.insert(key, value);
                    Value::Object(members)
                }
                _ => value,
            }
        })
        .collect()
}

fn maps(generator: &mut Generator<'_>, old: &Structural, checks: [&Checks; 2]) -> Vec<Value> {
    let member = match &old.additional {
        Some(Additional::Schema(values)) => Some(generator.least(values)),
        Some(Additional::Allowed(true)) => Some(Value::Int(1)),
        _ => old.preserves_unknown_fields.then_some(Value::Int(1)),
    };
    let bounds = checks.iter().flat_map(|checks| [checks.min_properties, checks.max_properties]).flatten();
    let counts: BTreeSet<i64> = bounds.flat_map(|bound| [bound - 1, bound, bound + 1]).collect();
    let mut found = vec![Value::Object(Object::new())];
    for count in counts.into_iter().filter(|count| (0..=MAX_ITEMS).contains(count)) {
        let mut object = Object::new();
        for (name, property) in &old.properties {
            if object.len() < count as usize {
                let value = generator.least(property);
                object.insert(name, value);
            }
        }
        if let Some(member) = &member {
            for number in object.len()..count as usize {
                object.insert(&format!("k{number}"), member.clone());
            }
        }
        found.push(Value::Object(object));
    }
    found
}
