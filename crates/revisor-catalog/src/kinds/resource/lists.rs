//! Lists and maps of bounded size. What is over its bound is not looked at any further.

use std::collections::HashSet;

use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, Value};

/// What is wrong with the elements of a list of objects.
pub(super) fn objects(
    path: FieldPath<'_>,
    items: &[Value],
    most: usize,
    validate: impl Fn(FieldPath<'_>, &Object) -> FieldErrors,
) -> FieldErrors {
    elements(path, items, most, Value::as_object, validate)
}

/// What is wrong with the elements of a list of objects, each of which must have a name of its own.
pub(super) fn named(
    path: FieldPath<'_>,
    items: &[Value],
    most: usize,
    name: &str,
    validate: impl Fn(FieldPath<'_>, &Object) -> FieldErrors,
) -> FieldErrors {
    let mut errors = objects(path, items, most, validate);
    if items.len() <= most {
        let names = items.iter().filter_map(Value::as_object).map(|item| item.str(name).unwrap_or_default());
        errors.extend(duplicates(path, names));
    }
    errors
}

/// What is wrong with the elements of a list of texts.
pub(super) fn texts(
    path: FieldPath<'_>,
    items: &[Value],
    most: usize,
    validate: impl Fn(FieldPath<'_>, &str) -> FieldErrors,
) -> FieldErrors {
    elements(path, items, most, Value::as_str, validate)
}

/// What is wrong with the elements of a list of different texts.
pub(super) fn distinct_texts(
    path: FieldPath<'_>,
    items: &[Value],
    most: usize,
    validate: impl Fn(FieldPath<'_>, &str) -> FieldErrors,
) -> FieldErrors {
    let mut errors = texts(path, items, most, validate);
    if items.len() <= most {
        errors.extend(duplicates(path, items.iter().filter_map(Value::as_str)));
    }
    errors
}

fn elements<'v, T: ?Sized + 'v>(
    path: FieldPath<'_>,
    items: &'v [Value],
    most: usize,
    read: impl Fn(&'v Value) -> Option<&'v T>,
    validate: impl Fn(FieldPath<'_>, &T) -> FieldErrors,
) -> FieldErrors {
    if items.len() > most {
        return FieldErrors::from([FieldError::too_many(path, items.len(), most)]);
    }
    let items = items.iter().filter_map(read).enumerate();
    items.flat_map(|(at, item)| validate(path.index(at), item)).collect()
}

/// The errors that something was there before.
pub(super) fn duplicates<'a>(path: FieldPath<'_>, names: impl Iterator<Item = &'a str>) -> FieldErrors {
    let mut seen = HashSet::new();
    let repeated = names.enumerate().filter(|(_, name)| !seen.insert(*name));
    repeated.map(|(at, name)| FieldError::duplicate(path.index(at), BadValue::from(name))).collect()
}
