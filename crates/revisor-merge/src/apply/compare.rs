//! [`Comparison`]: which places of an object a write added, changed and removed.
//!
//! Objects are compared as they are encoded: a field that is always written is there with its zero value even if nobody
//! gave it. So a new deployment adds `spec.replicas`, but not `spec`, which an empty one has too.

use compact_str::CompactString;
use revisor_object::{Object, Value};
use revisor_schema::{Field, Pair, Shape, StructId, Types};

use super::field_set::{FieldSet, SELF};
use super::granularity::{Granularity, granularity};
use super::item_step::{item_step, member_step};

/// What is different between two objects of one type.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Comparison {
    /// Places that only the new object has.
    pub added: FieldSet,
    /// Places with another value.
    pub modified: FieldSet,
    /// Places that only the old object has.
    pub removed: FieldSet,
    /// Whether an element of a list lacks what tells it apart from others, so that nothing can be said of it.
    pub has_nameless: bool,
}

impl Comparison {
    /// Compares two objects of type `id`.
    pub fn of(types: &Types, id: StructId, old: &Object, new: &Object) -> Comparison {
        let mut found = Places::default();
        structure(types, id, Some(old), Some(new), &mut found);
        let set = |members| FieldSet::from_tree(Object::from_members(members));
        let has_nameless = found.has_nameless;
        Comparison { added: set(found.added), modified: set(found.modified), removed: set(found.removed), has_nameless }
    }

    /// The part of the changes that `chosen` picks from each set of places.
    pub fn only(self, chosen: impl Fn(FieldSet) -> FieldSet) -> Comparison {
        let [added, modified, removed] = [self.added, self.modified, self.removed].map(chosen);
        Comparison { added, modified, removed, has_nameless: self.has_nameless }
    }

    /// Whether the objects are equal.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }
}

pub(super) type Steps = Vec<(CompactString, Value)>;

/// The places below one place that were added, modified and removed. The sets grow from the leaves, so that nothing is
/// looked up in them while they do.
#[derive(Default)]
struct Places {
    added: Steps,
    modified: Steps,
    removed: Steps,
    has_nameless: bool,
}

/// What became of a place itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    None,
    Added,
    Modified,
    Removed,
}

impl Change {
    /// Of a value that is seen as one.
    fn of_leaf(old: Option<&Value>, new: Option<&Value>) -> Change {
        match (old, new) {
            (Some(old), Some(new)) if old != new => Change::Modified,
            (old, new) => Change::of_inner(old.is_some(), new.is_some()),
        }
    }

    /// Of a value that is made of others.
    fn of_inner(was: bool, is: bool) -> Change {
        match (was, is) {
            (false, true) => Change::Added,
            (true, false) => Change::Removed,
            _ => Change::None,
        }
    }
}

impl Places {
    /// Takes in a place, what became of it, and what was found below it.
    fn take(&mut self, step: &CompactString, change: Change, below: Places) {
        let put = |steps: &mut Steps, is_member: bool, below: Steps| {
            if let Some(node) = node(is_member, below) {
                steps.push((step.clone(), node));
            }
        };
        put(&mut self.added, change == Change::Added, below.added);
        put(&mut self.modified, change == Change::Modified, below.modified);
        put(&mut self.removed, change == Change::Removed, below.removed);
        self.has_nameless |= below.has_nameless;
    }
}

/// A node of a set, if there is anything to it.
pub(super) fn node(is_member: bool, mut below: Steps) -> Option<Value> {
    if is_member && !below.is_empty() {
        // It stands before all steps, which come in their order, so that nothing is left to be sorted.
        below.insert(0, (SELF.into(), Value::Object(Object::new())));
    }
    (is_member || !below.is_empty()).then(|| Value::Object(Object::from_members(below)))
}

fn structure(types: &Types, id: StructId, old: Option<&Object>, new: Option<&Object>, found: &mut Places) {
    let of = types.get(id);
    let (is_old, is_new) = (old.is_some(), new.is_some());
    for Pair { name, field, old, new } in of.fields.pairs(old, new) {
        let Some(member) = field.or(of.others.as_deref()) else { continue };
        let lacks_one = (is_old && old.is_none()) || (is_new && new.is_none());
        let zero = if lacks_one { member.written_zero() } else { None };
        let old = old.or(zero.as_ref().filter(|_| is_old));
        let new = new.or(zero.as_ref().filter(|_| is_new));
        if old != new {
            let mut below = Places::default();
            let change = compare_field(types, member, old, new, &mut below);
            match field {
                Some(field) => found.take(&field.step, change, below),
                None => found.take(&member_step(name), change, below),
            }
        }
    }
}

fn compare_field(types: &Types, field: &Field, old: Option<&Value>, new: Option<&Value>, below: &mut Places) -> Change {
    let has_parts = has_parts(types, &field.shape, old) || has_parts(types, &field.shape, new);
    if granularity(types, field) == Granularity::One || !has_parts {
        return Change::of_leaf(old, new);
    }
    match &field.shape {
        Shape::Struct(id) => {
            let (old_object, new_object) = (old.and_then(Value::as_object), new.and_then(Value::as_object));
            structure(types, *id, old_object, new_object, below);
            // Where the schema says nothing, a value may become an object, or an object something else.
            if types.get(*id).is_open && (is_no_object(old) || is_no_object(new)) {
                return Change::of_leaf(old, new);
            }
            // A null stands for an object with nothing in it.
            Change::of_inner(old.is_some(), new.is_some())
        }
        Shape::Map(element) => {
            map(types, element, old.and_then(Value::as_object), new.and_then(Value::as_object), below);
            Change::of_inner(old.is_some(), new.is_some())
        }
        Shape::List(element) => {
            list(types, field, element, items(old), items(new), below);
            Change::of_inner(old.is_some(), new.is_some())
        }
        _ => Change::of_leaf(old, new),
    }
}

fn element(types: &Types, shape: &Shape, old: Option<&Value>, new: Option<&Value>, below: &mut Places) -> Change {
    let has_parts = has_parts(types, shape, old) || has_parts(types, shape, new);
    match shape {
        Shape::Struct(id) if has_parts && !types.get(*id).is_atomic => {
            structure(types, *id, old.and_then(Value::as_object), new.and_then(Value::as_object), below);
            Change::of_inner(old.is_some(), new.is_some())
        }
        _ => Change::of_leaf(old, new),
    }
}

fn map(types: &Types, shape: &Shape, old: Option<&Object>, new: Option<&Object>, found: &mut Places) {
    let mut compare = |name: &str, old: Option<&Value>, new: Option<&Value>| {
        let mut below = Places::default();
        let change = element(types, shape, old, new, &mut below);
        found.take(&member_step(name), change, below);
    };
    for (name, value) in old.into_iter().flat_map(Object::iter) {
        compare(name, Some(value), new.and_then(|new| new.get(name)));
    }
    for (name, value) in new.into_iter().flat_map(Object::iter) {
        if !old.is_some_and(|old| old.contains(name)) {
            compare(name, None, Some(value));
        }
    }
}

fn list(types: &Types, field: &Field, shape: &Shape, old: &[Value], new: &[Value], found: &mut Places) {
    let (olds, news) = (by_step(types, field, old), by_step(types, field, new));
    found.has_nameless |= olds.len() < old.len() || news.len() < new.len();
    let (mut olds, mut news) = (&olds[..], &news[..]);
    while let Some((step, _)) = olds.first().into_iter().chain(news.first()).min_by_key(|(step, _)| step) {
        let (old, new) = (take_run(&mut olds, step), take_run(&mut news, step));
        let mut below = Places::default();
        let change = match (old, new) {
            ([] | [_], [] | [_]) => element(types, shape, value_of(old), value_of(new), &mut below),
            // Items that cannot be told apart are seen as one.
            ([_, _, ..], [_, _, ..]) => {
                if old == new {
                    Change::None
                } else {
                    Change::Modified
                }
            }
            ([_, _, ..], rest) => {
                if let Some(value) = value_of(rest) {
                    let change = element(types, shape, None, Some(value), &mut below);
                    found.take(step, change, std::mem::take(&mut below));
                }
                Change::Removed
            }
            (rest, [_, _, ..]) => {
                if let Some(value) = value_of(rest) {
                    let change = element(types, shape, Some(value), None, &mut below);
                    found.take(step, change, std::mem::take(&mut below));
                }
                Change::Added
            }
        };
        found.take(step, change, below);
    }
}

pub(super) type Item<'v> = (CompactString, &'v Value);

fn value_of<'v>(run: &[Item<'v>]) -> Option<&'v Value> {
    run.first().map(|(_, value)| *value)
}

/// Takes the items with this step from the front.
fn take_run<'i, 'v>(items: &mut &'i [Item<'v>], step: &CompactString) -> &'i [Item<'v>] {
    let end = items.iter().position(|(known, _)| known != step).unwrap_or(items.len());
    let (run, rest) = items.split_at(end);
    *items = rest;
    run
}

/// Whether there is something in a value to look at. An object with nothing in it has the fields that are always written.
pub(super) fn has_parts(types: &Types, shape: &Shape, value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => false,
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(object)) if object.is_empty() => match shape {
            Shape::Struct(id) => types.get(*id).fields.iter().any(|field| field.written_zero().is_some()),
            _ => false,
        },
        _ => true,
    }
}

pub(super) fn is_no_object(value: Option<&Value>) -> bool {
    value.is_some_and(|value| !matches!(value, Value::Object(_) | Value::Null))
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).unwrap_or_default()
}

/// The items with their steps, in the order of these. Those with the same step stay in the order of the list.
pub(super) fn by_step<'v>(types: &Types, field: &Field, items: &'v [Value]) -> Vec<Item<'v>> {
    let mut found: Vec<Item<'v>> =
        items.iter().filter_map(|item| item_step(types, field, item).map(|step| (step, item))).collect();
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use revisor_object::parse_json;

    const TABLE: &str = "type,field,shape,presence,number,merge,list,required,default
T,spec,S,always,,
T,data,map:string,nonzero,,
S,replicas,int32,given,,
S,args,list:string,nonzero,,
S,names,list:string,nonzero,,,set
S,ports,list:P,nonzero,,,map:port+protocol
S,ref,R,given,,
S,box,B,always,,
P,port,int32,always,,
P,protocol,string,nonzero,,,,,\"TCP\"
P,note,string,nonzero,,
R,*,,,,,atomic,,
R,name,string,nonzero,,
B,size,int32,nonzero,,
S,count,C,given,,
S,open,list:O,nonzero,,,map:name
C,start,int32,always,,
O,name,string,nonzero,,
";

    #[track_caller]
    fn check(old: &str, new: &str, added: &str, modified: &str, removed: &str) {
        let types = Types::parse(TABLE).expect("a good table");
        let object = |text: &str| match parse_json(text.as_bytes()).expect("is JSON").value {
            Value::Object(object) => object,
            _ => panic!("{text} is no object"),
        };
        let found = Comparison::of(&types, types.id("T").expect("is there"), &object(old), &object(new));
        let shown = [found.added, found.modified, found.removed].map(|set| set.into_value().to_json());
        assert_eq!(shown, [added, modified, removed], "{old} → {new}");
    }

    #[test]
    fn a_new_object_adds_what_an_empty_one_lacks() {
        check(
            "{}",
            r#"{"spec":{"replicas":1,"args":["a"],"ports":[{"port":80}]},"data":{"k":"v"}}"#,
            r#"{"f:data":{".":{},"f:k":{}},"f:spec":{"f:args":{},"f:ports":{".":{},"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}},"f:replicas":{}}}"#,
            "{}",
            "{}",
        );
    }

    #[test]
    fn changes_are_found_where_they_are() {
        check(
            r#"{"spec":{"replicas":1,"names":["a","b"],"args":["x"],"ref":{"name":"r"},"ports":[{"port":1,"note":"n"}]}}"#,
            r#"{"spec":{"replicas":2,"names":["b","c"],"args":["y"],"ref":{"name":"s"},"ports":[{"port":1,"note":"m"}],"box":{"size":1}}}"#,
            r#"{"f:spec":{"f:box":{"f:size":{}},"f:names":{"v:\"c\"":{}}}}"#,
            r#"{"f:spec":{"f:args":{},"f:ports":{"k:{\"port\":1,\"protocol\":\"TCP\"}":{"f:note":{}}},"f:ref":{},"f:replicas":{}}}"#,
            r#"{"f:spec":{"f:names":{"v:\"a\"":{}}}}"#,
        );
    }

    #[test]
    fn what_disappears_takes_all_its_places_along() {
        check(
            r#"{"data":{"k":"v"},"spec":{"ports":[{"port":1}]}}"#,
            "{}",
            "{}",
            "{}",
            r#"{"f:data":{".":{},"f:k":{}},"f:spec":{"f:ports":{".":{},"k:{\"port\":1,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}}"#,
        );
    }

    #[test]
    fn what_is_always_written_is_there_though_nobody_gave_it() {
        check("{}", r#"{"spec":{"count":{}}}"#, r#"{"f:spec":{"f:count":{".":{},"f:start":{}}}}"#, "{}", "{}");
        check(
            "{}",
            r#"{"spec":{"ports":[{}]}}"#,
            r#"{"f:spec":{"f:ports":{".":{},"k:{\"port\":0,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}}"#,
            "{}",
            "{}",
        );
    }

    #[test]
    fn an_element_that_nothing_tells_apart_is_noticed() {
        let types = Types::parse(TABLE).expect("a good table");
        let compare = |new: &str| {
            let Value::Object(new) = parse_json(new.as_bytes()).expect("is JSON").value else { panic!("an object") };
            Comparison::of(&types, types.id("T").expect("is there"), &Object::new(), &new)
        };
        assert!(compare(r#"{"spec":{"open":[{}]}}"#).has_nameless);
        assert!(!compare(r#"{"spec":{"open":[{"name":"a"}],"ports":[{}]}}"#).has_nameless);
    }
}
