//! Members of an object where an absent one counts as its zero value.

use revisor_object::{Object, Value};

/// What stands for an object that is not there.
pub(crate) const NONE: &Object = &Object::new();

/// A text, or the empty one.
pub(crate) fn text<'a>(object: &'a Object, name: &str) -> &'a str {
    object.str(name).unwrap_or_default()
}

/// A number, or zero.
pub(crate) fn number(object: &Object, name: &str) -> i64 {
    given_number(object, name).unwrap_or_default()
}

/// A number, if it is given.
pub(crate) fn given_number(object: &Object, name: &str) -> Option<i64> {
    object.get(name).and_then(Value::as_i64)
}

/// Whether a flag is given and true.
pub(crate) fn is_true(object: &Object, name: &str) -> bool {
    flag(object, name) == Some(true)
}

/// A flag, if it is given.
pub(crate) fn flag(object: &Object, name: &str) -> Option<bool> {
    object.get(name).and_then(Value::as_bool)
}

/// An object, or the empty one.
pub(crate) fn part<'a>(object: &'a Object, name: &str) -> &'a Object {
    object.object(name).unwrap_or(NONE)
}

/// The objects in a list, with their places.
pub(crate) fn objects<'a>(object: &'a Object, name: &str) -> impl Iterator<Item = (usize, &'a Object)> {
    object.array(name).iter().enumerate().map(|(at, value)| (at, value.as_object().unwrap_or(NONE)))
}

/// The texts in a list, with their places.
pub(crate) fn texts<'a>(object: &'a Object, name: &str) -> impl Iterator<Item = (usize, &'a str)> {
    object.array(name).iter().enumerate().map(|(at, value)| (at, value.as_str().unwrap_or_default()))
}

/// The members of a map.
pub(crate) fn entries<'a>(object: &'a Object, name: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    object.object(name).into_iter().flat_map(Object::iter)
}
