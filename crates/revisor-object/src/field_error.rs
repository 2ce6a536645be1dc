//! [`FieldError`]: what is wrong with one field of an object.
//!
//! Validation returns a list of these, never only the first, and [`Status::invalid`](crate::Status::invalid) turns
//! the list into an answer. The texts are those of Kubernetes, as far as they go: each part of an error is
//! [clipped](crate::clip) when the error is made.

use std::fmt;

use crate::Object;
use crate::bad_value::{BadValue, Quoted, sent_members};
use crate::clip::{self, clip, clip_joined, clip_shown};
use crate::status::StatusCause;

/// A fault of one field.
///
/// ```
/// use revisor_object::{FieldError, FieldPath};
///
/// let spec = FieldPath::root("spec");
/// let error = FieldError::invalid(spec.child("replicas"), -1_i64, "must be greater than or equal to 0");
/// assert_eq!(error.to_string(), "spec.replicas: Invalid value: -1: must be greater than or equal to 0");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct FieldError {
    /// What sort of fault it is.
    pub kind: FieldErrorKind,
    /// The path of the field.
    pub field: String,
    /// The value that is at fault. Some kinds never show it.
    pub bad_value: BadValue,
    /// What a correct value would look like. May be empty.
    pub detail: String,
}

/// The sorts of fault that Kubernetes tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldErrorKind {
    /// Something refers to a value that does not exist.
    NotFound,
    /// A value is missing.
    Required,
    /// A value occurs twice where it must be unique.
    Duplicate,
    /// A value is malformed or out of bounds.
    Invalid,
    /// A value is not one of a fixed set.
    NotSupported,
    /// A value is well-formed, but not allowed here and now.
    Forbidden,
    /// A text has too many bytes or characters.
    TooLong,
    /// A text has too few characters.
    TooShort,
    /// A list has too many elements.
    TooMany,
    /// A list has too few elements.
    TooFew,
    /// A value is of the wrong type.
    TypeInvalid,
    /// The server failed, and the field is not to blame.
    Internal,
    /// No fault of one field: so many more were found that are not told.
    LeftOut(usize),
}

impl FieldErrorKind {
    /// The word that programs read, in the `reason` of a cause.
    pub const fn reason(self) -> &'static str {
        match self {
            FieldErrorKind::NotFound => "FieldValueNotFound",
            FieldErrorKind::Required => "FieldValueRequired",
            FieldErrorKind::Duplicate => "FieldValueDuplicate",
            FieldErrorKind::Invalid => "FieldValueInvalid",
            FieldErrorKind::NotSupported => "FieldValueNotSupported",
            FieldErrorKind::Forbidden => "FieldValueForbidden",
            FieldErrorKind::TooLong => "FieldValueTooLong",
            FieldErrorKind::TooShort => "FieldValueTooShort",
            FieldErrorKind::TooMany => "FieldValueTooMany",
            FieldErrorKind::TooFew => "FieldValueTooFew",
            FieldErrorKind::TypeInvalid => "FieldValueTypeInvalid",
            FieldErrorKind::Internal => "InternalError",
            FieldErrorKind::LeftOut(_) => "",
        }
    }

    /// The words that people read.
    const fn title(self) -> &'static str {
        match self {
            FieldErrorKind::NotFound => "Not found",
            FieldErrorKind::Required => "Required value",
            FieldErrorKind::Duplicate => "Duplicate value",
            FieldErrorKind::Invalid | FieldErrorKind::TypeInvalid => "Invalid value",
            FieldErrorKind::NotSupported => "Unsupported value",
            FieldErrorKind::Forbidden => "Forbidden",
            FieldErrorKind::TooLong => "Too long",
            FieldErrorKind::TooShort => "Too short",
            FieldErrorKind::TooMany => "Too many",
            FieldErrorKind::TooFew => "Too few",
            FieldErrorKind::Internal => "Internal error",
            FieldErrorKind::LeftOut(_) => "",
        }
    }

    const fn shows_value(self) -> bool {
        match self {
            FieldErrorKind::NotFound
            | FieldErrorKind::Duplicate
            | FieldErrorKind::Invalid
            | FieldErrorKind::TypeInvalid
            | FieldErrorKind::NotSupported
            | FieldErrorKind::TooMany
            | FieldErrorKind::TooFew => true,
            FieldErrorKind::Required
            | FieldErrorKind::Forbidden
            | FieldErrorKind::TooLong
            | FieldErrorKind::TooShort
            | FieldErrorKind::Internal
            | FieldErrorKind::LeftOut(_) => false,
        }
    }
}

// The field is anything that can be shown: mostly a `FieldPath`, sometimes a text from a schema or a client.
impl FieldError {
    fn new(
        kind: FieldErrorKind,
        field: impl fmt::Display,
        bad_value: impl Into<BadValue>,
        detail: impl Into<String>,
    ) -> FieldError {
        let (field, bad_value, detail) = (clip_shown(field), bad_value.into().clipped(), clip(detail));
        FieldError { kind, field, bad_value, detail }
    }

    /// A value is missing.
    pub fn required(field: impl fmt::Display, detail: impl Into<String>) -> FieldError {
        FieldError::new(FieldErrorKind::Required, field, BadValue::Omitted, detail)
    }

    /// A value may not change as it did. How it did belongs to the text; who knows the type of the value adds it, from
    /// [`change`](FieldError::change).
    pub fn changed(field: impl fmt::Display, old: &Object, new: &Object, detail: impl Into<String>) -> FieldError {
        let pair = BadValue::Json(serde_json::Value::Array(vec![sent_members(old), sent_members(new)]));
        FieldError { bad_value: pair, ..FieldError::forbidden(field, detail) }
    }

    /// The value before and after a change that is not allowed, as long as the text does not tell of it.
    pub fn change(&self) -> Option<[&serde_json::Value; 2]> {
        match (self.kind, &self.bad_value) {
            (FieldErrorKind::Forbidden, BadValue::Json(serde_json::Value::Array(pair))) => match pair.as_slice() {
                [old, new] => Some([old, new]),
                _ => None,
            },
            _ => None,
        }
    }

    /// A value is malformed or out of bounds.
    pub fn invalid(field: impl fmt::Display, value: impl Into<BadValue>, detail: impl Into<String>) -> FieldError {
        FieldError::new(FieldErrorKind::Invalid, field, value, detail)
    }

    /// A value is of the wrong type.
    pub fn type_invalid(field: impl fmt::Display, value: impl Into<BadValue>, detail: impl Into<String>) -> FieldError {
        FieldError::new(FieldErrorKind::TypeInvalid, field, value, detail)
    }

    /// A value is not one of `supported`, which the message lists in the order given.
    pub fn not_supported<S: AsRef<str>>(
        field: impl fmt::Display,
        value: impl Into<BadValue>,
        supported: &[S],
    ) -> FieldError {
        let quoted = clip_joined(supported.iter().map(|value| Quoted(value.as_ref())), ", ");
        let detail = if supported.is_empty() { String::new() } else { format!("supported values: {quoted}") };
        FieldError::new(FieldErrorKind::NotSupported, field, value, detail)
    }

    /// A value occurs twice where it must be unique.
    pub fn duplicate(field: impl fmt::Display, value: impl Into<BadValue>) -> FieldError {
        FieldError::new(FieldErrorKind::Duplicate, field, value, "")
    }

    /// Something refers to a value that does not exist.
    pub fn not_found(field: impl fmt::Display, value: impl Into<BadValue>) -> FieldError {
        FieldError::not_found_because(field, value, "")
    }

    /// Something refers to a value that does not exist; `detail` says where it was looked for.
    pub fn not_found_because(
        field: impl fmt::Display,
        value: impl Into<BadValue>,
        detail: impl Into<String>,
    ) -> FieldError {
        FieldError::new(FieldErrorKind::NotFound, field, value, detail)
    }

    /// A value is well-formed, but not allowed here and now.
    pub fn forbidden(field: impl fmt::Display, detail: impl Into<String>) -> FieldError {
        FieldError::new(FieldErrorKind::Forbidden, field, BadValue::Omitted, detail)
    }

    /// A text has more than `most` bytes.
    pub fn too_long(field: impl fmt::Display, most: usize) -> FieldError {
        let detail = format!("may not be more than {most} {}", plural(most, "byte", "bytes"));
        FieldError::new(FieldErrorKind::TooLong, field, BadValue::Omitted, detail)
    }

    /// A text has more than `most` characters.
    pub fn too_long_characters(field: impl fmt::Display, most: usize) -> FieldError {
        let detail = format!("may not be more than {most} {}", plural(most, "character", "characters"));
        FieldError::new(FieldErrorKind::TooLong, field, BadValue::Omitted, detail)
    }

    /// A text has less than `least` characters.
    pub fn too_short(field: impl fmt::Display, least: usize) -> FieldError {
        let detail = format!("must be at least {least} {}", plural(least, "character", "characters"));
        FieldError::new(FieldErrorKind::TooShort, field, BadValue::Omitted, detail)
    }

    /// A list has `actual` elements, which is more than `most`.
    pub fn too_many(field: impl fmt::Display, actual: usize, most: usize) -> FieldError {
        let detail = format!("must have at most {most} {}", plural(most, "item", "items"));
        FieldError::new(FieldErrorKind::TooMany, field, BadValue::of(&actual), detail)
    }

    /// A list has `actual` elements, which is less than `least`.
    pub fn too_few(field: impl fmt::Display, actual: usize, least: usize) -> FieldError {
        let detail = format!("must have at least {least} {}", plural(least, "item", "items"));
        FieldError::new(FieldErrorKind::TooFew, field, BadValue::of(&actual), detail)
    }

    /// The server failed while it looked at the field.
    pub fn internal(field: impl fmt::Display, error: impl fmt::Display) -> FieldError {
        FieldError::new(FieldErrorKind::Internal, field, BadValue::Omitted, clip_shown(error))
    }

    /// Stands for so many more errors at the end of [`FieldErrors`](crate::FieldErrors).
    pub(crate) fn left_out(errors: usize) -> FieldError {
        FieldError::new(FieldErrorKind::LeftOut(errors), "", BadValue::Omitted, "")
    }

    /// The message without the name of the field.
    ///
    /// ```
    /// use revisor_object::FieldError;
    /// assert_eq!(FieldError::duplicate("spec.ports[1]", "web").body(), "Duplicate value: \"web\"");
    /// ```
    pub fn body(&self) -> String {
        Body(self).to_string()
    }

    /// How long the message is, with the name of the field.
    pub(crate) fn shown_bytes(&self) -> usize {
        clip::shown_bytes(self)
    }

    /// The entry for this error in the details of a [`Status`](crate::Status).
    pub fn cause(&self) -> StatusCause {
        StatusCause { reason: self.kind.reason().into(), message: self.body(), field: self.field.clone() }
    }
}

fn plural(count: usize, one: &'static str, many: &'static str) -> &'static str {
    if count == 1 { one } else { many }
}

struct Body<'a>(&'a FieldError);

impl fmt::Display for Body<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FieldError { kind, bad_value, detail, .. } = self.0;
        if let FieldErrorKind::LeftOut(more) = *kind {
            return write!(f, "and {more} more {}", plural(more, "error", "errors"));
        }
        f.write_str(kind.title())?;
        if kind.shows_value() && *bad_value != BadValue::Omitted {
            write!(f, ": {bad_value}")?;
        }
        if !detail.is_empty() {
            write!(f, ": {detail}")?;
        }
        Ok(())
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            FieldErrorKind::LeftOut(_) => Body(self).fmt(f),
            _ => write!(f, "{}: {}", self.field, Body(self)),
        }
    }
}

impl std::error::Error for FieldError {}

/// One text for many errors: in brackets when there are several, each text only once, and empty when there are none.
///
/// ```
/// use revisor_object::{FieldError, aggregate_message};
///
/// let errors = [FieldError::required("a", ""), FieldError::required("b", ""), FieldError::required("a", "")];
/// assert_eq!(aggregate_message(&errors), "[a: Required value, b: Required value]");
/// assert_eq!(aggregate_message(&errors[..1]), "a: Required value");
/// ```
pub fn aggregate_message(errors: &[FieldError]) -> String {
    let mut seen = std::collections::HashSet::new();
    let texts: Vec<String> =
        errors.iter().map(FieldError::to_string).filter(|text| seen.insert(text.clone())).collect();
    match texts.as_slice() {
        [only] => only.clone(),
        [] => String::new(),
        several => format!("[{}]", several.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FieldPath;
    use serde_json::json;

    #[test]
    fn reads_as_in_kubernetes() {
        for (error, reason, want) in [
            (
                FieldError::required(FieldPath::root("metadata").child("name"), "name or generateName is required"),
                "FieldValueRequired",
                "metadata.name: Required value: name or generateName is required",
            ),
            (FieldError::required("a", ""), "FieldValueRequired", "a: Required value"),
            (FieldError::invalid("a", "x", "detail"), "FieldValueInvalid", r#"a: Invalid value: "x": detail"#),
            (FieldError::invalid("a", 7_i64, ""), "FieldValueInvalid", "a: Invalid value: 7"),
            (FieldError::invalid("a", json!(null), "d"), "FieldValueInvalid", "a: Invalid value: null: d"),
            (
                FieldError::invalid("a", json!({"b": "c"}), "d"),
                "FieldValueInvalid",
                r#"a: Invalid value: {"b":"c"}: d"#,
            ),
            (FieldError::invalid("a", BadValue::Omitted, "d"), "FieldValueInvalid", "a: Invalid value: d"),
            (FieldError::type_invalid("a", true, "d"), "FieldValueTypeInvalid", "a: Invalid value: true: d"),
            (
                FieldError::not_supported("a", "x", &["One", "Two"]),
                "FieldValueNotSupported",
                r#"a: Unsupported value: "x": supported values: "One", "Two""#,
            ),
            (
                FieldError::not_supported::<&str>("a", "x", &[]),
                "FieldValueNotSupported",
                r#"a: Unsupported value: "x""#,
            ),
            (FieldError::duplicate("a", "x"), "FieldValueDuplicate", r#"a: Duplicate value: "x""#),
            (FieldError::not_found("a", "x"), "FieldValueNotFound", r#"a: Not found: "x""#),
            (FieldError::forbidden("a", "not now"), "FieldValueForbidden", "a: Forbidden: not now"),
            (FieldError::too_long("a", 1), "FieldValueTooLong", "a: Too long: may not be more than 1 byte"),
            (FieldError::too_long("a", 63), "FieldValueTooLong", "a: Too long: may not be more than 63 bytes"),
            (
                FieldError::too_long_characters("a", 2),
                "FieldValueTooLong",
                "a: Too long: may not be more than 2 characters",
            ),
            (FieldError::too_short("a", 1), "FieldValueTooShort", "a: Too short: must be at least 1 character"),
            (FieldError::too_many("a", 3, 2), "FieldValueTooMany", "a: Too many: 3: must have at most 2 items"),
            (FieldError::too_few("a", 0, 1), "FieldValueTooFew", "a: Too few: 0: must have at least 1 item"),
            (FieldError::internal("a", "disk full"), "InternalError", "a: Internal error: disk full"),
        ] {
            assert_eq!(error.to_string(), want);
            let cause = error.cause();
            assert_eq!(cause.reason, reason, "{want}");
            assert_eq!(format!("{}: {}", cause.field, cause.message), want);
        }
    }

    #[test]
    fn every_part_is_bounded() {
        let long = "x".repeat(1 << 20);
        let names: Vec<&str> = vec![&long; 100];
        for error in [
            FieldError::invalid(FieldPath::root("spec").key(&long), long.as_str(), long.as_str()),
            FieldError::invalid("a", json!({ "b": long, "c": [long] }), ""),
            FieldError::invalid("a", BadValue::Text(long.clone()), ""),
            FieldError::not_supported("a", "x", &names),
            FieldError::internal("a", &long),
        ] {
            let text = error.to_string();
            assert!(text.len() < 4 * clip::MAX_TEXT_BYTES, "{} bytes", text.len());
            assert!(text.contains("more bytes)"), "{text}");
        }
    }

    #[test]
    fn several_errors_share_brackets() {
        assert_eq!(aggregate_message(&[]), "");
        let twice = [FieldError::forbidden("a", "b"), FieldError::forbidden("a", "b")];
        assert_eq!(aggregate_message(&twice), "a: Forbidden: b");
    }
}
