//! The checks that validation is made of: small functions from a value to what is wrong with it. Each takes the path of
//! what it looks at, and answers a list that is empty where all is well.

use std::num::{IntErrorKind, ParseIntError};

use revisor_object::names::{label_value, qualified_name};
use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, Value};

use crate::metadata::MAX_ANNOTATION_BYTES;

/// Numbers that may not be negative.
const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

/// One error for each problem with a text.
pub(crate) fn problems(
    path: FieldPath<'_>,
    text: &str,
    problems: impl IntoIterator<Item = impl Into<String>>,
) -> FieldErrors {
    problems.into_iter().map(|problem| FieldError::invalid(path, text, problem.into())).collect()
}

/// A text that must be given.
pub(crate) fn required(path: FieldPath<'_>, text: &str) -> Option<FieldError> {
    text.is_empty().then(|| FieldError::required(path, ""))
}

/// A text that must be one of these. An empty text is none of them.
pub(crate) fn one_of(path: FieldPath<'_>, text: &str, allowed: &[&str]) -> Option<FieldError> {
    (!allowed.contains(&text)).then(|| FieldError::not_supported(path, text, allowed))
}

/// A text that must be given and be one of these.
pub(crate) fn required_one_of(path: FieldPath<'_>, text: &str, allowed: &[&str]) -> Option<FieldError> {
    required(path, text).or_else(|| one_of(path, text, allowed))
}

/// A number that may not be negative.
pub(crate) fn not_negative(path: FieldPath<'_>, number: i64) -> Option<FieldError> {
    (number < 0).then(|| FieldError::invalid(path, number, NOT_NEGATIVE))
}

/// A number that must be greater than zero.
pub(crate) fn positive(path: FieldPath<'_>, number: i64) -> Option<FieldError> {
    (number <= 0).then(|| FieldError::invalid(path, number, "must be greater than zero"))
}

/// A number within bounds.
pub(crate) fn in_range(path: FieldPath<'_>, number: i64, least: i64, most: i64) -> Option<FieldError> {
    let detail = || format!("must be between {least} and {most}, inclusive");
    (!(least..=most).contains(&number)).then(|| FieldError::invalid(path, number, detail()))
}

/// The number of a port.
pub(crate) fn port(path: FieldPath<'_>, number: i64) -> Option<FieldError> {
    in_range(path, number, 1, 65535)
}

/// Labels: qualified names with values.
pub(crate) fn labels(path: FieldPath<'_>, labels: Option<&Object>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    for (key, value) in labels.into_iter().flat_map(Object::iter) {
        errors.extend(problems(path, key, qualified_name(key)));
        let value = value.as_str().unwrap_or_default();
        errors.extend(problems(path, value, label_value(value)));
    }
    errors
}

/// Annotations: qualified names, whose case does not matter, with values that are not too long together.
pub(crate) fn annotations(path: FieldPath<'_>, annotations: Option<&Object>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let mut size = 0;
    for (key, value) in annotations.into_iter().flat_map(Object::iter) {
        size += key.len() + value.as_str().unwrap_or_default().len();
        let found = qualified_name(&key.to_lowercase());
        errors.extend(found.into_iter().map(|problem| FieldError::invalid(path, key, problem)));
    }
    if size > MAX_ANNOTATION_BYTES {
        errors.push(FieldError::too_long(path, MAX_ANNOTATION_BYTES));
    }
    errors
}

/// The error that a field was changed, if it was.
pub(crate) fn immutable(path: FieldPath<'_>, new: Option<&Value>, old: Option<&Value>) -> Option<FieldError> {
    (new != old).then(|| {
        let value = new.map_or(BadValue::of(&Value::Null), BadValue::of);
        FieldError::invalid(path, value, "field is immutable")
    })
}

/// Puts back what stands at these places of the old object. Of metadata that is what a client can change at all.
pub(crate) fn put_back(object: &mut Object, old: &Object, places: &[&[&str]]) {
    for place in places {
        match place {
            ["metadata"] => keep_metadata(object, old),
            place => put_back_one(object, old, place),
        }
    }
}

fn put_back_one(object: &mut Object, old: &Object, place: &[&str]) {
    match place {
        [] => {}
        [name] => object.set(name, old.get(name).cloned()),
        [holder, rest @ ..] => {
            let empty = Object::new();
            put_back_one(object.object_mut(holder), old.object(holder).unwrap_or(&empty), rest);
        }
    }
}

/// Puts back members of the old object.
pub(crate) fn keep(object: &mut Object, old: &Object, members: &[&str]) {
    for name in members {
        object.set(name, old.get(name).cloned());
    }
}

/// Puts back what the writing of a status may not change of metadata.
pub(crate) fn keep_metadata(object: &mut Object, old: &Object) {
    let empty = Object::new();
    let members = &["annotations", "deletionTimestamp", "finalizers", "generation", "labels", "ownerReferences"];
    keep(object.object_mut("metadata"), old.object("metadata").unwrap_or(&empty), members);
}

/// A whole number, or what Go's `strconv.ParseInt` says of the text.
pub(crate) fn parse_int(text: &str) -> Result<i64, String> {
    text.parse().map_err(|error: ParseIntError| {
        let problem = match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        format!("strconv.ParseInt: parsing {text:?}: {problem}")
    })
}
