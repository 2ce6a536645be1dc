//! Members of an object where an absent one counts as its zero value.

use revisor_object::{Object, Value};

/// What stands for an object that is not there.
pub(super) const NONE: &Object = &Object::new();

/// A text, or the empty one.
pub(super) fn text<'a>(object: &'a Object, name: &str) -> &'a str {
    object.str(name).unwrap_or_default()
}

/// A number, or zero.
pub(super) fn number(object: &Object, name: &str) -> i64 {
    given_number(object, name).unwrap_or_default()
}

/// A number, if it is given.
pub(super) fn given_number(object: &Object, name: &str) -> Option<i64> {
    object.get(name).and_then(Value::as_i64)
}

/// Whether a flag is given and true.
pub(super) fn is_true(object: &Object, name: &str) -> bool {
    flag(object, name) == Some(true)
}

/// A flag, if it is given.
pub(super) fn flag(object: &Object, name: &str) -> Option<bool> {
    object.get(name).and_then(Value::as_bool)
}

/// An object, or the empty one.
pub(super) fn part<'a>(object: &'a Object, name: &str) -> &'a Object {
    object.object(name).unwrap_or(NONE)
}

/// The objects in a list, with their places.
pub(super) fn objects<'a>(object: &'a Object, name: &str) -> impl Iterator<Item = (usize, &'a Object)> {
    object.array(name).iter().enumerate().map(|(at, value)| (at, value.as_object().unwrap_or(NONE)))
}

/// The texts in a list, with their places.
pub(super) fn texts<'a>(object: &'a Object, name: &str) -> impl Iterator<Item = (usize, &'a str)> {
    object.array(name).iter().enumerate().map(|(at, value)| (at, value.as_str().unwrap_or_default()))
}

/// The members of a map.
pub(super) fn entries<'a>(object: &'a Object, name: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    object.object(name).into_iter().flat_map(Object::iter)
}

/// All containers of a spec, with the list that each stands in and its place there.
pub(super) fn all_containers(spec: &Object) -> impl Iterator<Item = (&'static str, usize, &Object)> {
    ["initContainers", "containers", "ephemeralContainers"]
        .into_iter()
        .flat_map(move |list| objects(spec, list).map(move |(at, container)| (list, at, container)))
}
