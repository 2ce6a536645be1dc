//! [`Value`] and [`Object`]: an API object while the server works on it.
//!
//! Between requests objects are bytes; a value lives for the length of one write. Members are kept sorted, so that a
//! value has one encoding and lookups stay logarithmic however many keys a client sends.

use compact_str::CompactString;
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use crate::same_text::is_same_text;
use crate::{RawJson, shown_text};

/// A JSON value as Kubernetes reads it: integers that fit 64 bits are integers, all other numbers are floats.
#[derive(Debug, Clone, Default)]
pub enum Value {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number written without fraction and exponent that fits an `i64`.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A string.
    String(CompactString),
    /// An array.
    Array(Vec<Value>),
    /// An object.
    Object(Object),
    /// Any of these that is kept as the text that it was sent as. Only fields whose types say so hold such values.
    Raw(Box<RawJson>),
    /// A member that was sent as a list or map with nothing in it, and that storing would not tell from none. It is a
    /// mark that objects keep and do not show: see [`Object::is_sent_empty`].
    Nothing,
}

impl Value {
    /// What a value says, also if it is kept as a text.
    pub fn plain(&self) -> &Value {
        match self {
            Value::Raw(raw) => raw.value(),
            value => value,
        }
    }

    /// The same, to be owned.
    pub fn into_plain(self) -> Value {
        match self {
            Value::Raw(raw) => raw.into_value(),
            value => value,
        }
    }

    /// The string, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self.plain() {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The integer, if it is one.
    pub fn as_i64(&self) -> Option<i64> {
        match self.plain() {
            Value::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// The boolean, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self.plain() {
            Value::Bool(truth) => Some(*truth),
            _ => None,
        }
    }

    /// The elements, if it is an array.
    pub fn as_array(&self) -> Option<&[Value]> {
        match self.plain() {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The object, if it is one.
    pub fn as_object(&self) -> Option<&Object> {
        match self.plain() {
            Value::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The object, to be changed, if it is one.
    pub fn as_object_mut(&mut self) -> Option<&mut Object> {
        match self {
            Value::Object(object) => Some(object),
            _ => None,
        }
    }

    /// Whether this is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// Whether this is the mark of a member that was sent empty.
    fn is_nothing(&self) -> bool {
        matches!(self, Value::Nothing)
    }

    /// What Go's JSON decoder calls this kind of value in its errors.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Null | Value::Nothing => "null",
            Value::Bool(_) => "bool",
            Value::Int(_) | Value::Float(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
            Value::Raw(raw) => raw.value().type_name(),
        }
    }

    /// The type that Go gives to this value where it does not know its shape.
    pub fn go_type(&self) -> &'static str {
        match self {
            Value::Null | Value::Nothing => "<nil>",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int64",
            Value::Float(_) => "float64",
            Value::String(_) => "string",
            Value::Array(_) => "[]interface {}",
            Value::Object(_) => "map[string]interface {}",
            Value::Raw(raw) => raw.value().go_type(),
        }
    }

    /// Whether there is a member in it, at any depth, that was [sent empty](Object::is_sent_empty).
    pub fn has_sent_empty(&self) -> bool {
        match self {
            Value::Nothing => true,
            Value::Array(items) => items.iter().any(Value::has_sent_empty),
            Value::Object(object) => object.has_sent_empty(),
            _ => false,
        }
    }

    /// The compact JSON text of this value.
    pub fn to_json(&self) -> String {
        // Serializing to memory fails only on keys that are not strings, and ours are.
        sonic_rs::to_string(self).unwrap_or_default()
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::String(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::String(text.into())
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Value {
        Value::Bool(truth)
    }
}

impl From<i32> for Value {
    fn from(number: i32) -> Value {
        Value::Int(number.into())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::Int(number)
    }
}

impl From<Object> for Value {
    fn from(object: Object) -> Value {
        Value::Object(object)
    }
}

impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Value {
        Value::Array(items)
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Null | Value::Nothing => serializer.serialize_unit(),
            Value::Bool(truth) => serializer.serialize_bool(*truth),
            Value::Int(number) => serializer.serialize_i64(*number),
            Value::Float(number) => serializer.serialize_f64(*number),
            Value::String(text) => serializer.serialize_str(&shown_text(text)),
            Value::Array(items) => {
                let mut sequence = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    sequence.serialize_element(item)?;
                }
                sequence.end()
            }
            Value::Object(object) => object.serialize(serializer),
            Value::Raw(raw) => raw.value().serialize(serializer),
        }
    }
}

/// Two texts are compared as texts; one and a value that is none by what it says.
impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Null, Value::Null) | (Value::Nothing, Value::Nothing) => true,
            (Value::Bool(one), Value::Bool(other)) => one == other,
            (Value::Int(one), Value::Int(other)) => one == other,
            (Value::Float(one), Value::Float(other)) => one == other,
            (Value::String(one), Value::String(other)) => is_same_text(one, other),
            (Value::Array(one), Value::Array(other)) => one == other,
            (Value::Object(one), Value::Object(other)) => one == other,
            (Value::Raw(one), Value::Raw(other)) => one == other,
            (Value::Raw(raw), plain) | (plain, Value::Raw(raw)) => raw.says(plain),
            _ => false,
        }
    }
}

/// Up to so many members an object is looked through from its start.
const SMALL: usize = 16;

/// A JSON object: members sorted by name, each name once.
///
/// Go tells a list or map that was sent with nothing in it from one that was not sent, until it is stored; but nearly
/// all of its code asks how long it is, or compares by meaning (`equality.Semantic`), and sees no difference. So such
/// members are [marks](Value::Nothing) that nothing here shows and no comparison counts, and that are gone when the
/// object was encoded. The few who look closer ask [`is_sent_empty`](Object::is_sent_empty).
#[derive(Debug, Clone, Default)]
pub struct Object {
    members: Vec<(CompactString, Value)>,
}

impl Object {
    /// An object without members.
    pub const fn new() -> Object {
        Object { members: Vec::new() }
    }

    /// Makes an object of members in any order; of two with one name the last is kept.
    pub fn from_members(members: Vec<(CompactString, Value)>) -> Object {
        Object::from_unsorted(members, |_| ())
    }

    /// Makes an object of members in any order. Of two with one name the last is kept, as Go's decoder does; the names
    /// of those that were dropped are handed to `on_duplicate`.
    pub(crate) fn from_unsorted(
        mut members: Vec<(CompactString, Value)>,
        mut on_duplicate: impl FnMut(&str),
    ) -> Object {
        if !members.is_sorted_by(|(one, _), (two, _)| one < two) {
            members.sort_by(|(one, _), (two, _)| one.cmp(two));
            members.dedup_by(|later, earlier| {
                let same = later.0 == earlier.0;
                if same {
                    on_duplicate(&later.0);
                    std::mem::swap(&mut later.1, &mut earlier.1);
                }
                same
            });
        }
        Object { members }
    }

    /// Makes an object of members that are in the order of their names, each name once.
    pub fn from_sorted(members: Vec<(CompactString, Value)>) -> Object {
        debug_assert!(members.is_sorted_by(|(one, _), (two, _)| one < two), "members are not in order");
        Object { members }
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    fn position(&self, name: &str) -> Result<usize, usize> {
        self.members.binary_search_by(|(member, _)| member.as_str().cmp(name))
    }

    /// Where the member `name` stands. Most objects are small, and most names that are asked for are not there: then
    /// to compare lengths one after the other beats to search.
    fn find(&self, name: &str) -> Option<usize> {
        self.find_any(name).filter(|at| is_shown(&self.members[*at]))
    }

    /// The same, be it a mark or not.
    fn find_any(&self, name: &str) -> Option<usize> {
        if self.members.len() <= SMALL {
            return self.members.iter().position(|(member, _)| is_same_text(member, name));
        }
        self.position(name).ok()
    }

    /// Whether there is a member `name`.
    pub fn contains(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Whether the member `name` is not there because there was nothing in the list or map that was sent for it.
    pub fn is_sent_empty(&self, name: &str) -> bool {
        self.find_any(name).is_some_and(|at| !is_shown(&self.members[at]))
    }

    /// Whether the member `name` was sent, be there anything in it or not (in Go: it is not `nil`).
    pub fn is_sent(&self, name: &str) -> bool {
        self.find_any(name).is_some()
    }

    /// The names of all members that were sent.
    pub fn names_sent(&self) -> impl Iterator<Item = &str> {
        self.iter_as_sent().map(|(name, _)| name)
    }

    /// Whether there is something in it, at any depth, that was sent [empty](Object::is_sent_empty).
    pub fn has_sent_empty(&self) -> bool {
        self.iter_as_sent().any(|(_, value)| value.has_sent_empty())
    }

    /// The member `name`.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.find(name).map(|at| &self.members[at].1)
    }

    /// The member `name`, to be changed.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.find(name).map(|at| &mut self.members[at].1)
    }

    /// The string member `name`; `None` if it is absent or no string.
    pub fn str(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    /// The object member `name`; `None` if it is absent or no object.
    pub fn object(&self, name: &str) -> Option<&Object> {
        self.get(name)?.as_object()
    }

    /// The elements of the array member `name`; empty if it is absent or no array.
    pub fn array(&self, name: &str) -> &[Value] {
        self.get(name).and_then(Value::as_array).unwrap_or_default()
    }

    /// The member `name` as an array that can be changed; `None` if there is none.
    pub fn array_mut(&mut self, name: &str) -> Option<&mut Vec<Value>> {
        match self.get_mut(name)? {
            Value::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The value at the end of `path`.
    pub fn at(&self, path: &[&str]) -> Option<&Value> {
        let (last, parents) = path.split_last()?;
        let mut object = self;
        for name in parents {
            object = object.object(name)?;
        }
        object.get(last)
    }

    /// Sets the member `name`; answers what was there.
    pub fn insert(&mut self, name: &str, value: impl Into<Value>) -> Option<Value> {
        let value = value.into();
        match self.position(name) {
            Ok(at) => Some(std::mem::replace(&mut self.members[at].1, value)).filter(|old| !old.is_nothing()),
            Err(at) => {
                self.members.insert(at, (name.into(), value));
                None
            }
        }
    }

    /// Sets the member `name`, or removes it where there is nothing to set.
    pub fn set(&mut self, name: &str, value: Option<Value>) {
        match value {
            Some(value) => {
                self.insert(name, value);
            }
            None => {
                self.remove(name);
            }
        }
    }

    /// Sets many members at once. One by one, each new one would shift those behind it.
    pub fn insert_all(&mut self, new: Vec<(CompactString, Value)>) {
        if new.is_empty() {
            return;
        }
        let mut members = std::mem::take(&mut self.members);
        members.extend(new);
        *self = Object::from_members(members);
    }

    /// Removes the member `name`; answers what was there.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        self.find_any(name).map(|at| self.members.remove(at).1).filter(|old| !old.is_nothing())
    }

    /// The object member `name`, made if it is absent or something else.
    pub fn object_mut(&mut self, name: &str) -> &mut Object {
        let at = match self.position(name) {
            Ok(at) => at,
            Err(at) => {
                self.members.insert(at, (name.into(), Value::Null));
                at
            }
        };
        let value = &mut self.members[at].1;
        if value.as_object().is_none() {
            *value = Value::Object(Object::new());
        }
        match value {
            Value::Object(object) => object,
            _ => unreachable!("was made an object above"),
        }
    }

    /// The members in the order of their names.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &Value)> {
        self.members.iter().filter(|member| is_shown(member)).map(|(name, value)| (name.as_str(), value))
    }

    /// The same with the marks of those that were sent empty.
    pub(crate) fn iter_as_sent(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.members.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// The members in the order of their names, values to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut Value)> {
        let shown = self.members.iter_mut().filter(|(_, value)| !value.is_nothing());
        shown.map(|(name, value)| (name.as_str(), value))
    }

    /// Keeps the members for which `keep` says so.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &mut Value) -> bool) {
        self.members.retain_mut(|(name, value)| value.is_nothing() || keep(name, value));
    }
}

fn is_shown((_, value): &(CompactString, Value)) -> bool {
    !value.is_nothing()
}

impl PartialEq for Object {
    fn eq(&self, other: &Object) -> bool {
        let mut others = other.iter();
        let is_next = |(name, value): (&str, &Value)| {
            others.next().is_some_and(|(other, its)| is_same_text(name, other) && value == its)
        };
        self.iter().all(is_next) && others.next().is_none()
    }
}

/// The members in the order of their names.
impl IntoIterator for Object {
    type Item = (CompactString, Value);
    type IntoIter = std::vec::IntoIter<(CompactString, Value)>;

    fn into_iter(mut self) -> Self::IntoIter {
        self.members.retain(is_shown);
        self.members.into_iter()
    }
}

impl<'a> FromIterator<(&'a str, Value)> for Object {
    fn from_iter<I: IntoIterator<Item = (&'a str, Value)>>(members: I) -> Object {
        let members = members.into_iter().map(|(name, value)| (name.into(), value)).collect();
        Object::from_unsorted(members, |_| ())
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len()))?;
        for (name, value) in self.iter() {
            map.serialize_entry(&*shown_text(name), value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_members_with_one_name_the_last_is_kept() {
        let mut dropped = Vec::new();
        let members = vec![("b".into(), Value::Int(1)), ("a".into(), Value::Int(2)), ("b".into(), Value::Int(3))];
        let object = Object::from_unsorted(members, |name| dropped.push(name.to_owned()));
        assert_eq!(Value::from(object).to_json(), r#"{"a":2,"b":3}"#);
        assert_eq!(dropped, ["b"]);
    }

    #[test]
    fn many_members_are_set_at_once() {
        let mut object: Object = [("b", Value::Int(1)), ("d", Value::Int(2))].into_iter().collect();
        object.insert_all(vec![("e".into(), Value::Int(3)), ("a".into(), Value::Int(4)), ("b".into(), Value::Int(5))]);
        assert_eq!(Value::from(object.clone()).to_json(), r#"{"a":4,"b":5,"d":2,"e":3}"#);
        object.insert_all(Vec::new());
        assert_eq!(object.len(), 4);
    }

    #[test]
    fn what_was_sent_empty_is_not_there_but_known() {
        let sent = || [("a", Value::Int(1)), ("b", Value::Nothing)].into_iter().collect::<Object>();
        let mut object = sent();
        let plain: Object = [("a", Value::Int(1))].into_iter().collect();
        assert_eq!((object.len(), object.get("b"), object.contains("b")), (1, None, false));
        assert_eq!(object, plain);
        assert_eq!(Value::from(object.clone()).to_json(), r#"{"a":1}"#);
        assert!(object.is_sent_empty("b") && !object.is_sent_empty("a") && !object.is_sent_empty("c"));
        assert!(Value::from(vec![object.clone().into()]).has_sent_empty() && !Value::from(plain).has_sent_empty());
        object.retain(|_, _| true);
        assert_eq!(object.clone().into_iter().count(), 1);
        assert_eq!(object.remove("b"), None);
        assert!(!object.is_sent_empty("b"));
        let mut object = sent();
        assert_eq!(object.insert("b", 2), None);
        assert_eq!(object, [("a", Value::Int(1)), ("b", Value::Int(2))].into_iter().collect());
        let alone: Object = [("b", Value::Nothing)].into_iter().collect();
        assert!(alone.is_empty());
    }

    #[test]
    fn members_stay_sorted_through_changes() {
        let mut object: Object = [("m", Value::Int(1))].into_iter().collect();
        object.insert("z", 2);
        object.insert("a", "first");
        object.object_mut("o").insert("k", true);
        assert_eq!(object.remove("m"), Some(Value::Int(1)));
        assert_eq!(Value::from(object.clone()).to_json(), r#"{"a":"first","o":{"k":true},"z":2}"#);
        assert_eq!(object.at(&["o", "k"]), Some(&Value::Bool(true)));
        assert_eq!(object.at(&["o", "k", "deeper"]), None);
    }
}
