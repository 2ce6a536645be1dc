//! The order of a merged list: elements that the patch names stand in its order, the others keep theirs, and the two
//! are woven together by where they stood before.

use std::collections::HashMap;

use compact_str::CompactString;
use revisor_object::Value;

use super::PATCH;

/// What tells an element of a list from the others: a scalar itself, or that of a field of an object.
///
/// An integer and a float are never the same, as in the original.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Null,
    Bool(bool),
    Int(i64),
    Float(u64),
    Text(CompactString),
}

impl Key {
    /// The key for a scalar. Arrays and objects are none.
    pub(super) fn of(value: &Value) -> Option<Key> {
        match value {
            Value::Null | Value::Nothing => Some(Key::Null),
            Value::Bool(truth) => Some(Key::Bool(*truth)),
            Value::Int(number) => Some(Key::Int(*number)),
            // To add zero makes the two zeros one.
            Value::Float(number) => Some(Key::Float((number + 0.0).to_bits())),
            Value::String(text) => Some(Key::Text(text.clone())),
            Value::Array(_) | Value::Object(_) | Value::Raw(_) => None,
        }
    }
}

/// Where each key of a list stands first. Makes every search in a list one step, however long the list.
#[derive(Debug, Clone)]
pub(super) struct Ranks {
    first: HashMap<Key, usize>,
}

impl Ranks {
    pub(super) fn of(keys: impl IntoIterator<Item = Key>) -> Ranks {
        let mut ranks = Ranks { first: HashMap::new() };
        keys.into_iter().enumerate().for_each(|(at, key)| ranks.add(key, at));
        ranks
    }

    /// Notes that `key` stands `at` a place behind all that are known.
    pub(super) fn add(&mut self, key: Key, at: usize) {
        self.first.entry(key).or_insert(at);
    }

    pub(super) fn get(&self, key: &Key) -> Option<usize> {
        self.first.get(key).copied()
    }
}

/// Puts `items` into order: those that are in `wanted` as they stand there, the others as they stand in `before`. Of
/// the next ones of both kinds the other goes first only if it did so before.
///
/// An element still says that it is to be deleted if it came with an element that the same patch added and then merged
/// again. It goes behind all others of its kind.
pub(super) fn arrange(items: Vec<(Key, Value)>, wanted: &Ranks, before: &Ranks) -> Vec<Value> {
    let size = items.len();
    let (mut named, mut others): (Vec<_>, Vec<_>) = items.into_iter().partition(|(key, _)| wanted.get(key).is_some());
    named.sort_by_cached_key(|(key, item)| (is_deletion(item), wanted.get(key)));
    others.sort_by_cached_key(|(key, item)| (is_deletion(item), before.get(key).unwrap_or(usize::MAX)));
    let mut arranged = Vec::with_capacity(size);
    let mut named = named.into_iter().peekable();
    for (key, other) in others {
        let rank = before.get(&key);
        let goes_first = |next: &Key| rank.zip(before.get(next)).is_some_and(|(other, next)| other < next);
        while let Some((_, item)) = named.next_if(|(next, _)| !goes_first(next)) {
            arranged.push(item);
        }
        arranged.push(other);
    }
    arranged.extend(named.map(|(_, item)| item));
    arranged
}

/// The directive that an element of a patch carries.
pub(super) fn directive(item: &Value) -> Option<&Value> {
    item.as_object()?.get(PATCH)
}

/// Whether an element of a patch is there to delete another.
pub(super) fn is_deletion(item: &Value) -> bool {
    directive(item).is_some_and(|found| found.as_str() == Some("delete"))
}
