//! What a webhook made of one object: whether it is still the same object, and its metadata put back.

use revisor_object::names::{label_value, qualified_name};
use revisor_object::{FieldError, FieldErrors, Object, Value, aggregate_message};

use super::GroupVersionKind;

/// How many bytes the annotations of an object may have.
const MAX_ANNOTATION_BYTES: usize = 256 * 1024;

/// How much of an object is shown that lacks its kind.
const SHOWN_BYTES: usize = 4096;

/// `converted`, the object at `position` in the answer, with the metadata of `original` but its own labels and
/// annotations. The error is a whole sentence.
pub(super) fn check(original: Object, converted: Value, desired: &str, position: usize) -> Result<Object, String> {
    let mut converted = object(converted)?;
    let fail = |what: &str, problem: String| {
        format!("conversion webhook for {} returned {what}: {problem}", GroupVersionKind::of(&original))
    };
    let invalid = |problem| fail(&format!("invalid object at index {position}"), problem);

    let (was, is) = (GroupVersionKind::of(&original), GroupVersionKind::of(&converted));
    if is.api_version() != desired {
        return Err(invalid(format!("invalid groupVersion (expected {desired}, received {})", is.api_version())));
    }
    if is.kind != was.kind {
        return Err(invalid(format!("invalid kind (expected {}, received {})", was.kind, is.kind)));
    }
    for (name, shown) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let (was, is) = (identity(&original, name), identity(&converted, name));
        if was != is {
            return Err(fail("invalid object", format!("must have the same {shown}: {was} != {is}")));
        }
    }
    let metadata = restored(&original, &converted).map_err(|problem| fail("invalid metadata", problem))?;
    converted.insert("metadata", metadata);
    Ok(converted)
}

/// The value as an object with a kind.
fn object(converted: Value) -> Result<Object, String> {
    let object = match converted {
        Value::Object(object) => object,
        Value::Null => return Err("unexpected end of JSON input".into()),
        other => {
            let found = other.type_name();
            return Err(format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"));
        }
    };
    if GroupVersionKind::of(&object).kind.is_empty() {
        let mut text = Value::from(object).to_json();
        if text.len() > SHOWN_BYTES {
            text.truncate(text.floor_char_boundary(SHOWN_BYTES));
            text.push('…');
        }
        return Err(format!("Object 'Kind' is missing in '{text}'"));
    }
    Ok(object)
}

/// A part of metadata by which an object is known.
fn identity<'o>(object: &'o Object, name: &str) -> &'o str {
    object.object("metadata").and_then(|metadata| metadata.str(name)).unwrap_or_default()
}

/// The original's metadata with the labels and annotations of the converted object.
fn restored(original: &Object, converted: &Object) -> Result<Object, String> {
    let answered = match converted.get("metadata") {
        None => return Err("missing metadata in converted object".into()),
        Some(Value::Object(metadata)) => metadata,
        Some(other) => return Err(format!("invalid metadata of type {} in converted object", other.go_type())),
    };
    let mut metadata = match original.get("metadata") {
        None => Object::new(),
        Some(Value::Object(metadata)) => metadata.clone(),
        Some(other) => return Err(format!("invalid metadata of type {} in input object", other.go_type())),
    };
    for (field, check) in [("labels", check_labels as fn(&Object) -> FieldErrors), ("annotations", check_annotations)] {
        let new = match answered.get(field) {
            None | Some(Value::Null) => {
                metadata.remove(field);
                continue;
            }
            Some(Value::Object(new)) => new,
            Some(other) => {
                return Err(format!("invalid metadata.{field} of type {} in converted object", other.go_type()));
            }
        };
        if let Some(old) = metadata.get(field).filter(|old| !old.is_null() && old.as_object().is_none()) {
            return Err(format!("invalid metadata.{field} of type {} in original object", old.go_type()));
        }
        if let Some((key, value)) = new.iter().find(|(_, value)| value.as_str().is_none()) {
            let found = value.go_type();
            return Err(format!("metadata.{field}[{key}] must be a string, but is {found} in converted object"));
        }
        // What was there before is not held against the webhook.
        let is_changed = metadata.object(field) != Some(new) && !(new.is_empty() && metadata.object(field).is_none());
        let errors = if is_changed { check(new) } else { FieldErrors::new() };
        if !errors.is_empty() {
            return Err(aggregate_message(&errors));
        }
        metadata.insert(field, new.clone());
    }
    Ok(metadata)
}

fn check_labels(labels: &Object) -> FieldErrors {
    let error = |value: &str, problem| FieldError::invalid("metadata.labels", value, problem);
    let mut errors = FieldErrors::new();
    for (key, value) in labels.iter() {
        let value = value.as_str().unwrap_or_default();
        errors.extend(qualified_name(key).into_iter().map(|problem| error(key, problem)));
        errors.extend(label_value(value).into_iter().map(|problem| error(value, problem)));
    }
    errors
}

/// The field's name lacks its last letter in Kubernetes too.
fn check_annotations(annotations: &Object) -> FieldErrors {
    const FIELD: &str = "metadata.annotation";
    let mut errors = FieldErrors::new();
    let mut size = 0;
    for (key, value) in annotations.iter() {
        size += key.len() + value.as_str().unwrap_or_default().len();
        let problems = qualified_name(&key.to_lowercase());
        errors.extend(problems.into_iter().map(|problem| FieldError::invalid(FIELD, key, problem)));
    }
    if size > MAX_ANNOTATION_BYTES {
        errors.push(FieldError::too_long(FIELD, MAX_ANNOTATION_BYTES));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use revisor_object::parse_json;

    const ORIGINAL: &str = r#"{"apiVersion":"g.io/v1","kind":"Widget","metadata":{"annotations":{"keep":"1"},
        "finalizers":["a/b"],"name":"w","namespace":"ns","uid":"u"},"spec":{"a":1}}"#;

    fn json(text: &str) -> Value {
        parse_json(text.as_bytes()).expect("the test's JSON is valid").value
    }

    /// Checks what a webhook made of the original; `{M}` in it stands for the members of metadata that must stay.
    #[track_caller]
    fn check_made(made: &str, want: &str) {
        let Value::Object(original) = json(ORIGINAL) else { panic!("not an object") };
        let made = made.replace("{M}", r#""name":"w","namespace":"ns","uid":"u""#);
        let found = check(original, json(&made), "g.io/v2", 3).map_or_else(|e| e, |o| Value::from(o).to_json());
        let want = want.replace("{W}", "conversion webhook for g.io/v1, Kind=Widget returned");
        assert_eq!(found, want, "{made}");
    }

    #[test]
    fn everything_but_metadata_is_taken_and_of_metadata_labels_and_annotations() {
        check_made(
            r#"{"apiVersion":"g.io/v2","kind":"Widget","spec":{"b":2},
                "metadata":{{M},"labels":{"a":"b"},"finalizers":[],"generation":7}}"#,
            r#"{"apiVersion":"g.io/v2","kind":"Widget","metadata":{"finalizers":["a/b"],"labels":{"a":"b"},"name":"w","namespace":"ns","uid":"u"},"spec":{"b":2}}"#,
        );
        check_made(
            r#"{"apiVersion":"g.io/v2","kind":"Widget","metadata":{{M},"labels":null,"annotations":{"keep":"1"}}}"#,
            r#"{"apiVersion":"g.io/v2","kind":"Widget","metadata":{"annotations":{"keep":"1"},"finalizers":["a/b"],"name":"w","namespace":"ns","uid":"u"}}"#,
        );
    }

    #[test]
    fn what_is_not_the_same_object_is_refused() {
        for (made, want) in [
            ("null", "unexpected end of JSON input"),
            ("\"x\"", "json: cannot unmarshal string into Go value of type map[string]interface {}"),
            ("{}", "Object 'Kind' is missing in '{}'"),
            (r#"{"kind":5}"#, r#"Object 'Kind' is missing in '{"kind":5}'"#),
            (
                r#"{"apiVersion":"a/b/c","kind":"Widget"}"#,
                r#"Object 'Kind' is missing in '{"apiVersion":"a/b/c","kind":"Widget"}'"#,
            ),
            (
                r#"{"kind":"Widget"}"#,
                "{W} invalid object at index 3: invalid groupVersion (expected g.io/v2, received )",
            ),
            (
                r#"{"apiVersion":"g.io/v1","kind":"Widget"}"#,
                "{W} invalid object at index 3: invalid groupVersion (expected g.io/v2, received g.io/v1)",
            ),
            (
                r#"{"apiVersion":"g.io/v2","kind":"Other"}"#,
                "{W} invalid object at index 3: invalid kind (expected Widget, received Other)",
            ),
            (r#"{"apiVersion":"g.io/v2","kind":"Widget"}"#, "{W} invalid object: must have the same name: w != "),
            (
                r#"{"apiVersion":"g.io/v2","kind":"Widget","metadata":{"name":5}}"#,
                "{W} invalid object: must have the same name: w != ",
            ),
            (
                r#"{"apiVersion":"g.io/v2","kind":"Widget","metadata":{"name":"w","namespace":"x"}}"#,
                "{W} invalid object: must have the same namespace: ns != x",
            ),
            (
                r#"{"apiVersion":"g.io/v2","kind":"Widget","metadata":{"name":"w","namespace":"ns","uid":"x"}}"#,
                "{W} invalid object: must have the same UID: u != x",
            ),
        ] {
            check_made(made, want);
        }
    }

    #[test]
    fn labels_and_annotations_must_be_valid_if_they_change() {
        const NAME: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
        for (fields, want) in [
            (r#""labels":"x""#, "invalid metadata.labels of type string in converted object".to_owned()),
            (r#""labels":{"a":5}"#, "metadata.labels[a] must be a string, but is int64 in converted object".into()),
            (r#""labels":{"a":5.5}"#, "metadata.labels[a] must be a string, but is float64 in converted object".into()),
            (r#""labels":{"a":null}"#, "metadata.labels[a] must be a string, but is <nil> in converted object".into()),
            (
                r#""labels":{"a":{}}"#,
                "metadata.labels[a] must be a string, but is map[string]interface {} in converted object".into(),
            ),
            (
                r#""annotations":{"a":[]}"#,
                "metadata.annotations[a] must be a string, but is []interface {} in converted object".into(),
            ),
            (r#""labels":{"a b":"c"}"#, format!("metadata.labels: Invalid value: \"a b\": {NAME}")),
            (r#""annotations":{"a b":"c"}"#, format!("metadata.annotation: Invalid value: \"a b\": {NAME}")),
        ] {
            let made = format!(r#"{{"apiVersion":"g.io/v2","kind":"Widget","metadata":{{{{M}},{fields}}}}}"#);
            check_made(&made, &format!("{{W}} invalid metadata: {want}"));
        }
        let long = "c".repeat(300_000);
        check_made(
            &format!(
                r#"{{"apiVersion":"g.io/v2","kind":"Widget","metadata":{{{{M}},"annotations":{{"a":"{long}"}}}}}}"#
            ),
            "{W} invalid metadata: metadata.annotation: Too long: may not be more than 262144 bytes",
        );
    }
}
