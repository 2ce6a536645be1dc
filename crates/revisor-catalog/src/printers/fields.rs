//! How printers read an object: by paths such as `spec.nodeName`, with the zero of the type for what is missing.

use revisor_object::{Object, Value};

use super::cells;
use crate::Moment;

/// The value at the end of a path.
pub(super) fn value<'a>(object: &'a Object, path: &str) -> Option<&'a Value> {
    let mut at = object;
    let mut rest = path;
    while let Some((name, deeper)) = rest.split_once('.') {
        at = at.object(name)?;
        rest = deeper;
    }
    at.get(rest).filter(|value| !value.is_null())
}

/// The text there; empty if there is none.
pub(super) fn text<'a>(object: &'a Object, path: &str) -> &'a str {
    value(object, path).and_then(Value::as_str).unwrap_or_default()
}

/// The number there; zero if there is none.
pub(super) fn number(object: &Object, path: &str) -> i64 {
    value(object, path).and_then(Value::as_i64).unwrap_or_default()
}

/// The truth there; false if there is none.
pub(super) fn truth(object: &Object, path: &str) -> bool {
    value(object, path).and_then(Value::as_bool).unwrap_or_default()
}

/// The object there.
pub(super) fn object<'a>(object: &'a Object, path: &str) -> Option<&'a Object> {
    value(object, path)?.as_object()
}

/// The elements there.
pub(super) fn array<'a>(object: &'a Object, path: &str) -> &'a [Value] {
    value(object, path).and_then(Value::as_array).unwrap_or_default()
}

/// Those elements there that are objects.
pub(super) fn objects<'a>(object: &'a Object, path: &str) -> impl DoubleEndedIterator<Item = &'a Object> + Clone {
    array(object, path).iter().filter_map(Value::as_object)
}

/// Those elements there that are texts.
pub(super) fn texts<'a>(object: &'a Object, path: &str) -> Vec<&'a str> {
    array(object, path).iter().filter_map(Value::as_str).collect()
}

/// How many members the object there has.
pub(super) fn count(here: &Object, path: &str) -> i64 {
    object(here, path).map_or(0, length)
}

/// The number of members as a cell.
fn length(object: &Object) -> i64 {
    i64::try_from(object.len()).unwrap_or(i64::MAX)
}

/// The number of elements as a cell.
pub(super) fn size(items: &[Value]) -> i64 {
    i64::try_from(items.len()).unwrap_or(i64::MAX)
}

/// The text, or `other` in place of an empty one.
pub(super) fn or<'a>(text: &'a str, other: &'a str) -> &'a str {
    if text.is_empty() { other } else { text }
}

/// A quantity, or a number or text that a field takes; zero if there is none.
pub(super) fn amount(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "0".to_owned(),
        Some(Value::String(text)) => text.to_string(),
        Some(other) => other.to_json(),
    }
}

/// The object's name.
pub(super) fn name(object: &Object) -> &str {
    text(object, "metadata.name")
}

/// The annotation with this name. Names of annotations have dots, so they are no part of a path.
pub(super) fn annotation<'a>(here: &'a Object, name: &str) -> Option<&'a str> {
    object(here, "metadata.annotations")?.str(name)
}

/// Whether the object is being deleted.
pub(super) fn is_going(object: &Object) -> bool {
    value(object, "metadata.deletionTimestamp").is_some()
}

/// How long ago the time there was.
pub(super) fn since(object: &Object, path: &str, now: Moment) -> String {
    Moment::parse(text(object, path)).map_or_else(|| "<unknown>".to_owned(), |time| now.since(time))
}

/// How long ago the object was created.
pub(super) fn age(object: &Object, now: Moment) -> String {
    since(object, "metadata.creationTimestamp", now)
}

/// The first condition of this type in the list there.
pub(super) fn condition<'a>(object: &'a Object, path: &str, kind: &str) -> Option<&'a Object> {
    objects(object, path).find(|condition| text(condition, "type") == kind)
}

/// Whether the first condition of this type in the list there is true.
pub(super) fn is_true(object: &Object, path: &str, kind: &str) -> bool {
    condition(object, path, kind).is_some_and(|condition| text(condition, "status") == "True")
}

/// The first of a list of so many, and how many more there are. Only those are made that are shown.
pub(super) fn first_of(
    list: impl Iterator<Item = String>,
    many: usize,
    shown: usize,
    between: &str,
    nothing: &str,
) -> String {
    let first = list.take(shown).collect::<Vec<_>>().join(between);
    match many.saturating_sub(shown) {
        0 if first.is_empty() => nothing.to_owned(),
        0 => first,
        more => format!("{first} + {more} more..."),
    }
}

/// For kinds that have nothing more to show.
pub(super) fn name_and_age(object: &Object, now: Moment) -> Vec<Value> {
    cells![name(object), age(object, now)]
}

/// For kinds without a printer.
pub(super) fn name_and_creation(object: &Object, _: Moment) -> Vec<Value> {
    cells![name(object), or(text(object, "metadata.creationTimestamp"), "0001-01-01T00:00:00Z")]
}
