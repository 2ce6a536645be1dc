//! [`FieldSet`]: a set of places in an object, kept in the very form in which managed fields show it.
//!
//! A set is a tree of objects whose member names are steps: `f:NAME` into a field, `k:{…}` to the item of a list that has
//! these keys, `v:…` to the item that is this value. A step belongs to the set if its subtree is empty or has the
//! member `.`. Because that is the stored form, a set is read and written without being converted, and its operations
//! are merges of sorted members.

use compact_str::{CompactString, format_compact};
use revisor_object::{Object, Value, parse_json};

use super::item_step::step_by;

/// The member that says that the place itself belongs to the set, where places below it do too.
pub(crate) const SELF: &str = ".";

/// A set of places in an object.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FieldSet(Object);

/// A node of the tree.
pub(crate) struct Node<'a> {
    pub(crate) is_member: bool,
    pub(crate) below: Option<&'a Object>,
}

impl<'a> Node<'a> {
    pub(crate) fn of(value: &'a Value) -> Node<'a> {
        match value.as_object() {
            Some(object) if !object.is_empty() => Node { is_member: object.contains(SELF), below: Some(object) },
            _ => Node { is_member: true, below: None },
        }
    }
}

/// Which places the combination of two sets has, by which of the two have them.
#[derive(Clone, Copy)]
enum Combination {
    Union,
    Intersection,
    Difference,
}

impl FieldSet {
    /// The set without places.
    pub const fn new() -> FieldSet {
        FieldSet(Object::new())
    }

    /// The set that managed fields show as this value; `None` if it is none. Whoever wrote it may have written it
    /// otherwise than it is written here.
    pub fn read(value: &Value) -> Option<FieldSet> {
        fn tree(value: &Value) -> Option<Object> {
            let mut members = Vec::new();
            let object = match value {
                Value::Null => return Some(Object::new()),
                value => value.as_object()?,
            };
            for (step, below) in object.iter() {
                if step == SELF {
                    members.push((CompactString::from(SELF), Value::Object(Object::new())));
                } else if let Some(step) = canonical(step)? {
                    members.push((step, Value::Object(tree(below)?)));
                }
            }
            // What has nothing below it needs not be said to be there itself.
            if let [(only, _)] = &members[..]
                && only == SELF
            {
                members.clear();
            }
            Some(Object::from_members(members))
        }
        let mut set = tree(value)?;
        // The whole object is no place.
        set.remove(SELF);
        Some(FieldSet(set))
    }

    /// The set that this server stored as this value.
    pub(crate) fn read_stored(value: Value) -> Option<FieldSet> {
        fn is_set(object: &Object) -> bool {
            object.iter().all(|(step, below)| {
                let known = step == SELF || matches!(step.get(..2), Some("f:" | "k:" | "v:" | "i:"));
                known && below.as_object().is_some_and(is_set)
            })
        }
        match value {
            Value::Object(object) if is_set(&object) => Some(FieldSet(object)),
            _ => None,
        }
    }

    /// The set as managed fields show it.
    pub fn into_value(self) -> Value {
        Value::Object(self.0)
    }

    /// Whether it has no places.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The set of these places, each a path of steps.
    pub fn of(places: &[&[&str]]) -> FieldSet {
        let mut set = FieldSet::new();
        for place in places {
            let steps: Vec<CompactString> = place.iter().map(|step| CompactString::from(*step)).collect();
            set.insert(&steps);
        }
        set
    }

    /// Adds a place. The place of the whole object is no place.
    pub(crate) fn insert(&mut self, place: &[CompactString]) {
        let Some((last, above)) = place.split_last() else { return };
        let mut at = &mut self.0;
        for step in above {
            let is_leaf = at.object(step).is_some_and(Object::is_empty);
            at = at.object_mut(step);
            if is_leaf {
                // It had nothing below it and was a member by that alone.
                at.insert(SELF, Object::new());
            }
        }
        match at.get_mut(last).and_then(Value::as_object_mut) {
            None => {
                at.insert(last, Object::new());
            }
            Some(below) => {
                if !below.is_empty() {
                    below.insert(SELF, Object::new());
                }
            }
        }
    }

    /// The places of either.
    pub fn union(&self, other: &FieldSet) -> FieldSet {
        FieldSet(combine(Some(&self.0), Some(&other.0), Combination::Union))
    }

    /// Adds the places of another set.
    pub(crate) fn add(&mut self, other: FieldSet) {
        add(&mut self.0, other.0);
    }

    /// The places of any of these. They are united two by two: one after the other, each would copy all before.
    pub(crate) fn union_of(sets: &[&FieldSet]) -> FieldSet {
        match sets {
            [] => FieldSet::new(),
            [only] => (*only).clone(),
            several => {
                let (some, others) = several.split_at(several.len() / 2);
                FieldSet::union_of(some).union(&FieldSet::union_of(others))
            }
        }
    }

    /// The places of both.
    pub fn intersection(&self, other: &FieldSet) -> FieldSet {
        FieldSet(combine(Some(&self.0), Some(&other.0), Combination::Intersection))
    }

    /// The places of this set that the other does not have.
    pub fn difference(&self, other: &FieldSet) -> FieldSet {
        FieldSet(combine(Some(&self.0), Some(&other.0), Combination::Difference))
    }

    /// Takes the places of another set out of this one.
    pub(crate) fn subtract(&mut self, other: &FieldSet) {
        if !other.is_empty() {
            subtract(&mut self.0, &other.0);
        }
    }

    /// Whether a place is in the set.
    pub(crate) fn contains(&self, place: &[&str]) -> bool {
        let Some((last, above)) = place.split_last() else { return false };
        let mut at = &self.0;
        for step in above {
            let Some(below) = at.object(step) else { return false };
            at = below;
        }
        at.get(last).is_some_and(|node| Node::of(node).is_member)
    }

    /// Takes one place out of the set; those below it stay.
    pub(crate) fn take_out(&mut self, place: &[&str]) {
        fn take_out(object: &mut Object, place: &[&str]) {
            let Some((first, rest)) = place.split_first() else { return };
            let Some(below) = object.get_mut(first).and_then(Value::as_object_mut) else { return };
            let was_leaf = below.is_empty();
            if rest.is_empty() {
                below.remove(SELF);
            } else {
                take_out(below, rest);
            }
            let is_left = if was_leaf { !rest.is_empty() } else { !below.is_empty() };
            if !is_left {
                object.remove(first);
            } else if below.len() == 1 && below.contains(SELF) {
                *below = Object::new();
            }
        }
        take_out(&mut self.0, place);
    }

    /// Whether all its places are in the other set too.
    pub(crate) fn is_within(&self, other: &FieldSet) -> bool {
        is_within(&self.0, &other.0)
    }

    /// The set without anything at or below the given place.
    pub fn without_subtree(mut self, place: &[&str]) -> FieldSet {
        fn remove(object: &mut Object, place: &[&str]) {
            match place {
                [] => {}
                [last] => {
                    object.remove(last);
                }
                [first, rest @ ..] => {
                    if let Some(below) = object.get_mut(first).and_then(Value::as_object_mut) {
                        let was_inner = !below.is_empty();
                        remove(below, rest);
                        // Without places below it, a step that was no member itself must not become one.
                        if was_inner && below.is_empty() {
                            object.remove(first);
                        } else if below.len() == 1 && below.contains(SELF) {
                            *below = Object::new();
                        }
                    }
                }
            }
        }
        remove(&mut self.0, place);
        self
    }

    /// The part of the set at and below the given first steps.
    pub fn only_subtrees(mut self, steps: &[&str]) -> FieldSet {
        self.0.retain(|step, _| steps.contains(&step));
        self
    }

    /// The set that this tree is.
    pub(crate) fn from_tree(tree: Object) -> FieldSet {
        FieldSet(tree)
    }

    pub(crate) fn tree(&self) -> &Object {
        &self.0
    }

    pub(crate) fn tree_mut(&mut self) -> &mut Object {
        &mut self.0
    }
}

/// A step as it is written here; `None` inside if it is of a kind that nobody knows yet, which is dropped, and `None` if
/// it is none at all.
fn canonical(step: &str) -> Option<Option<CompactString>> {
    let rest = step.get(2..)?;
    let value = || parse_json(rest.as_bytes()).ok().map(|parsed| parsed.value);
    let step = match step.as_bytes() {
        [b'f', b':', ..] => CompactString::from(step),
        [b'v', b':', ..] => step_by("v:", &value()?),
        [b'k', b':', ..] => step_by("k:", &value().filter(|keys| keys.as_object().is_some())?),
        [b'i', b':', ..] => format_compact!("i:{}", rest.parse::<i64>().ok()?),
        [_, b':', ..] => return Some(None),
        _ => return None,
    };
    Some(Some(step))
}

fn add(to: &mut Object, other: Object) {
    let mut new = Vec::new();
    for (step, node) in other {
        match (to.get_mut(&step), node) {
            (None, node) => new.push((step, node)),
            (Some(Value::Object(there)), Value::Object(node)) => match (there.is_empty(), node.is_empty()) {
                (true, true) => {}
                // What has nothing below it is a member by that alone.
                (false, true) => drop(there.insert(SELF, Object::new())),
                (true, false) => {
                    *there = node;
                    there.insert(SELF, Object::new());
                }
                (false, false) => add(there, node),
            },
            (Some(_), _) => {}
        }
    }
    to.insert_all(new);
}

fn subtract(from: &mut Object, other: &Object) {
    from.retain(|step, value| {
        let Some(other) = other.get(step).filter(|_| step != SELF).map(Node::of) else { return true };
        let Value::Object(below) = value else { return false };
        if below.is_empty() {
            return !other.is_member;
        }
        if let Some(other) = other.below {
            subtract(below, other);
        }
        if other.is_member {
            below.remove(SELF);
        }
        if below.is_empty() {
            return false;
        }
        if below.len() == 1 && below.contains(SELF) {
            *below = Object::new();
        }
        true
    });
}

fn is_within(one: &Object, two: &Object) -> bool {
    one.iter().filter(|(step, _)| *step != SELF).all(|(step, one)| {
        let Some(two) = two.get(step).map(Node::of) else { return false };
        let one = Node::of(one);
        let below = match (one.below, two.below) {
            (None, _) => true,
            (Some(one), Some(two)) => is_within(one, two),
            (Some(one), None) => one.iter().all(|(step, _)| step == SELF),
        };
        below && (two.is_member || !one.is_member)
    })
}

/// How many times larger one set must be for its members to be looked up instead of passed by.
const MUCH_LARGER: usize = 16;

/// The intersection of two sets of which one is much larger: many managers have a few places each of a large object.
fn meet(small: &Object, large: &Object) -> Object {
    let shared = small.iter().filter(|(step, _)| *step != SELF).filter_map(|(step, one)| {
        let both = combine_nodes(Node::of(one), Node::of(large.get(step)?), Combination::Intersection);
        Some((CompactString::from(step), both?))
    });
    Object::from_members(shared.collect())
}

fn combine(one: Option<&Object>, two: Option<&Object>, how: Combination) -> Object {
    if let (Some(one), Some(two), Combination::Intersection) = (one, two, how) {
        if one.len() > two.len().saturating_mul(MUCH_LARGER) {
            return meet(two, one);
        }
        if two.len() > one.len().saturating_mul(MUCH_LARGER) {
            return meet(one, two);
        }
    }
    let mut members = Vec::new();
    let mut ones = one.into_iter().flat_map(Object::iter).filter(|(step, _)| *step != SELF).peekable();
    let mut twos = two.into_iter().flat_map(Object::iter).filter(|(step, _)| *step != SELF).peekable();
    loop {
        let order = match (ones.peek(), twos.peek()) {
            (None, None) => break,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some((one, _)), Some((two, _))) => one.cmp(two),
        };
        let (one, two) = match order {
            std::cmp::Ordering::Less => (ones.next(), None),
            std::cmp::Ordering::Greater => (None, twos.next()),
            std::cmp::Ordering::Equal => (ones.next(), twos.next()),
        };
        let Some(step) = one.or(two).map(|(step, _)| step) else { break };
        // What stands in one of them only is taken whole or not at all.
        let taken = match (how, one, two) {
            (Combination::Union, Some((_, only)), None)
            | (Combination::Union, None, Some((_, only)))
            | (Combination::Difference, Some((_, only)), None) => Some(only.clone()),
            (_, Some((_, one)), Some((_, two))) => combine_nodes(Node::of(one), Node::of(two), how),
            _ => None,
        };
        if let Some(taken) = taken {
            members.push((CompactString::from(step), taken));
        }
    }
    Object::from_members(members)
}

fn combine_nodes(one: Node<'_>, two: Node<'_>, how: Combination) -> Option<Value> {
    let is_member = match how {
        Combination::Union => one.is_member || two.is_member,
        Combination::Intersection => one.is_member && two.is_member,
        Combination::Difference => one.is_member && !two.is_member,
    };
    let mut below = combine(one.below, two.below, how);
    match (is_member, below.is_empty()) {
        (false, true) => None,
        (true, false) => {
            below.insert(SELF, Object::new());
            Some(Value::Object(below))
        }
        _ => Some(Value::Object(below)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> FieldSet {
        FieldSet::read(&parse_json(text.as_bytes()).expect("is JSON").value).expect("is a set")
    }

    #[track_caller]
    fn check(found: FieldSet, want: &str) {
        assert_eq!(found.into_value().to_json(), want);
    }

    #[test]
    fn places_are_kept_with_the_places_below_them() {
        let mut found = FieldSet::of(&[&["f:a", "f:b"], &["f:c"]]);
        found.insert(&["f:a".into()]);
        found.insert(&["f:c".into(), "v:1".into()]);
        check(found, r#"{"f:a":{".":{},"f:b":{}},"f:c":{".":{},"v:1":{}}}"#);
    }

    #[test]
    fn sets_combine() {
        let one = set(r#"{"f:a":{".":{},"f:x":{},"f:y":{}},"f:b":{},"f:d":{"f:z":{}}}"#);
        let two = set(r#"{"f:a":{"f:y":{}},"f:b":{".":{},"f:q":{}},"f:c":{}}"#);
        check(
            one.union(&two),
            r#"{"f:a":{".":{},"f:x":{},"f:y":{}},"f:b":{".":{},"f:q":{}},"f:c":{},"f:d":{"f:z":{}}}"#,
        );
        check(one.intersection(&two), r#"{"f:a":{"f:y":{}},"f:b":{}}"#);
        check(one.difference(&two), r#"{"f:a":{".":{},"f:x":{}},"f:d":{"f:z":{}}}"#);
        check(two.difference(&one), r#"{"f:b":{"f:q":{}},"f:c":{}}"#);
        check(one.difference(&one), "{}");
        for (from, other) in [(&one, &two), (&two, &one), (&one, &one)] {
            let mut rest = from.clone();
            rest.subtract(other);
            assert_eq!(rest, from.difference(other));
            let mut all = from.clone();
            all.add(other.clone());
            assert_eq!(all, from.union(other));
            assert_eq!(from.is_within(other), rest.is_empty());
            assert!(from.intersection(other).is_within(other));
        }
    }

    #[test]
    fn a_place_goes_and_those_below_it_stay() {
        for (from, place, want) in [
            (r#"{"f:m":{"f:name":{}},"f:s":{}}"#, &["f:m", "f:name"][..], r#"{"f:s":{}}"#),
            (r#"{"f:m":{".":{},"f:name":{}}}"#, &["f:m", "f:name"], r#"{"f:m":{}}"#),
            (r#"{"f:m":{".":{},"f:name":{}}}"#, &["f:m"], r#"{"f:m":{"f:name":{}}}"#),
            (r#"{"f:m":{"f:name":{}}}"#, &["f:m"], r#"{"f:m":{"f:name":{}}}"#),
            (r#"{"f:m":{}}"#, &["f:m"], "{}"),
            (r#"{"f:m":{}}"#, &["f:m", "f:name"], r#"{"f:m":{}}"#),
            (r#"{"f:m":{}}"#, &["f:x", "f:name"], r#"{"f:m":{}}"#),
        ] {
            let mut found = set(from);
            found.take_out(place);
            check(found, want);
        }
    }

    #[test]
    fn a_place_that_loses_all_below_it_does_not_become_a_member() {
        check(set(r#"{"f:m":{"f:name":{}},"f:s":{}}"#).without_subtree(&["f:m", "f:name"]), r#"{"f:s":{}}"#);
        check(set(r#"{"f:m":{".":{},"f:name":{}}}"#).without_subtree(&["f:m", "f:name"]), r#"{"f:m":{}}"#);
    }

    #[test]
    fn what_is_no_set_is_refused() {
        for text in [
            "[]",
            r#"{"a":{}}"#,
            r#"{"f:a":1}"#,
            r#"{"f:a":{"x":{}}}"#,
            r#"{"k:1":{}}"#,
            r#"{"v:x":{}}"#,
            r#"{"i:x":{}}"#,
        ] {
            assert_eq!(FieldSet::read(&parse_json(text.as_bytes()).expect("is JSON").value), None, "{text}");
        }
    }

    #[test]
    fn what_is_written_otherwise_is_read_all_the_same() {
        for (text, want) in [
            (r#"{".":{},"f:a":{".":{}}}"#, r#"{"f:a":{}}"#),
            (r#"{"f:a":null}"#, r#"{"f:a":{}}"#),
            (r#"{"x:a":{},"f:a":{}}"#, r#"{"f:a":{}}"#),
            (r#"{"k:{\"b\": 1, \"a\":\"x\"}":{},"v: 1":{}}"#, r#"{"k:{\"a\":\"x\",\"b\":1}":{},"v:1":{}}"#),
            (r#"{"v:\"a&b\"":{}}"#, r#"{"v:\"a\\u0026b\"":{}}"#),
        ] {
            check(set(text), want);
        }
    }
}
