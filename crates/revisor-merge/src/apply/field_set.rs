//! [`FieldSet`]: a set of places in an object, kept in the very form in which managed fields show it.
//!
//! A set is a tree of objects whose member names are steps: `f:NAME` into a field, `k:{…}` to the item of a list that has
//! these keys, `v:…` to the item that is this value. A step belongs to the set if its subtree is empty or has the
//! member `.`. Because that is the stored form, a set is read and written without being converted, and its operations
//! are merges of sorted members.

use compact_str::CompactString;
use revisor_object::{Object, Value};

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

    /// The set that managed fields show as this value; `None` if it is none.
    pub fn read(value: &Value) -> Option<FieldSet> {
        fn is_set(object: &Object) -> bool {
            object.iter().all(|(step, below)| {
                let known = step == SELF || matches!(step.get(..2), Some("f:" | "k:" | "v:" | "i:"));
                known && below.as_object().is_some_and(is_set)
            })
        }
        value.as_object().filter(|object| is_set(object)).map(|object| FieldSet(object.clone()))
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

    /// The places of both.
    pub fn intersection(&self, other: &FieldSet) -> FieldSet {
        FieldSet(combine(Some(&self.0), Some(&other.0), Combination::Intersection))
    }

    /// The places of this set that the other does not have.
    pub fn difference(&self, other: &FieldSet) -> FieldSet {
        FieldSet(combine(Some(&self.0), Some(&other.0), Combination::Difference))
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

fn combine(one: Option<&Object>, two: Option<&Object>, how: Combination) -> Object {
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
    use revisor_object::parse_json;

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
    }

    #[test]
    fn a_place_that_loses_all_below_it_does_not_become_a_member() {
        check(set(r#"{"f:m":{"f:name":{}},"f:s":{}}"#).without_subtree(&["f:m", "f:name"]), r#"{"f:s":{}}"#);
        check(set(r#"{"f:m":{".":{},"f:name":{}}}"#).without_subtree(&["f:m", "f:name"]), r#"{"f:m":{}}"#);
    }

    #[test]
    fn what_is_no_set_is_refused() {
        for text in ["[]", r#"{"a":{}}"#, r#"{"f:a":1}"#, r#"{"f:a":{"x":{}}}"#] {
            assert_eq!(FieldSet::read(&parse_json(text.as_bytes()).expect("is JSON").value), None, "{text}");
        }
    }
}
