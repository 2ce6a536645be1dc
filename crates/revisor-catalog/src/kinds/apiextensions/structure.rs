//! Whether a schema is structural: every field, item and member is named outside of `allOf`, `anyOf`, `oneOf` and
//! `not`, which only restrict values; each has a type; and metadata is left to the server.

use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Value};
use revisor_schema::Pattern;

use crate::kinds::members::{entries, is_true, objects, text};

/// What a schema is the schema of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Why a schema is not structural, in the order of the messages. It must be [readable](super::schema_tree::unreadable).
pub(super) fn validate(path: FieldPath<'_>, schema: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    invariants(path, schema, Level::Root, &mut errors);
    completeness(path, path, schema, schema, &mut errors);
    errors.sort_by_text();
    errors
}

fn invariants(path: FieldPath<'_>, schema: &Object, level: Level, errors: &mut FieldErrors) {
    let kind = text(schema, "type");
    let has = |name| is_true(schema, name);
    let (is_embedded, preserves, is_int_or_string) = (
        has("x-kubernetes-embedded-resource"),
        has("x-kubernetes-preserve-unknown-fields"),
        has("x-kubernetes-int-or-string"),
    );
    let (at_items, at_type, at_properties) = (path.child("items"), path.child("type"), path.child("properties"));
    let at_additional = path.child("additionalProperties");
    match schema.object("items") {
        Some(items) => invariants(at_items, items, Level::Item, errors),
        None if kind == "array" => errors.push(FieldError::required(at_items, "must be specified")),
        None => {}
    }
    for (name, property) in entries(schema, "properties") {
        if let Some(property) = property.as_object() {
            invariants(at_properties.key(name), property, Level::Field, errors);
        }
    }
    if schema.contains("additionalProperties") {
        if level == Level::Root {
            errors.push(FieldError::forbidden(at_additional, "must not be used at the root"));
        }
        if let Some(member) = schema.object("additionalProperties") {
            invariants(at_additional, member, Level::Field, errors);
        }
    }
    for (is_wrong, name) in
        [(preserves, "x-kubernetes-preserve-unknown-fields"), (is_embedded, "x-kubernetes-embedded-resource")]
    {
        if is_int_or_string && is_wrong {
            let detail = "must be false if x-kubernetes-int-or-string is true";
            errors.push(FieldError::invalid(path.child(name), true, detail));
        }
    }
    let is_first_of_all = objects(schema, "allOf").next().is_some_and(|(_, first)| is_int_or_string_any_of(first));
    value_checks(path, schema, is_int_or_string_any_of(schema), is_first_of_all, errors);
    if is_embedded && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(match kind {
            "" => FieldError::required(at_type, detail),
            kind => FieldError::invalid(at_type, kind, detail),
        });
    } else if kind.is_empty() && !is_int_or_string && !preserves {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(at_type, detail));
    }
    if is_embedded && schema.contains("additionalProperties") {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(at_additional, detail));
    }
    if level == Level::Root && !matches!(kind, "" | "object") {
        errors.push(FieldError::invalid(at_type, kind, "must be object at the root"));
    }
    metadata_invariants(path, schema, level, is_embedded, errors);
    if is_embedded && !preserves && !schema.contains("properties") {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                      x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(at_properties, detail));
    }
}

/// What a schema may say of the type and metadata of an object.
fn metadata_invariants(
    path: FieldPath<'_>,
    schema: &Object,
    level: Level,
    is_embedded: bool,
    errors: &mut FieldErrors,
) {
    if level != Level::Root && !is_embedded {
        return;
    }
    let at_properties = path.child("properties");
    let property = |name: &str| schema.object("properties").and_then(|properties| properties.object(name));
    for (name, wanted) in [("kind", "string"), ("apiVersion", "string"), ("metadata", "object")] {
        let kind = property(name).map(|property| text(property, "type"));
        if let Some(kind) = kind.filter(|kind| *kind != wanted) {
            let at = at_properties.key(name);
            errors.push(FieldError::invalid(at.child("type"), kind, format!("must be {wanted}")));
        }
    }
    let Some(metadata) = property("metadata").filter(|_| level == Level::Root) else { return };
    let is_name = |name: &str| matches!(name, "name" | "generateName");
    let says_more = metadata.iter().any(|(name, value)| match (name, value) {
        ("type" | "default", _) => false,
        ("properties", Value::Object(properties)) => !properties.iter().all(|(name, _)| is_name(name)),
        _ => true,
    });
    if says_more {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.push(FieldError::forbidden(at_properties.key("metadata"), detail));
    }
}

/// The one use of `anyOf` in which types may stand.
fn is_int_or_string_any_of(schema: &Object) -> bool {
    let types: Vec<Option<&str>> = schema
        .array("anyOf")
        .iter()
        .map(|value| value.as_object().filter(|only| only.len() == 1).and_then(|only| only.str("type")))
        .collect();
    types == [Some("integer"), Some("string")]
}

/// What only restricts values, in a schema or under a junctor.
fn value_checks(
    path: FieldPath<'_>,
    schema: &Object,
    skips_any_of: bool,
    skips_any_of_in_first: bool,
    errors: &mut FieldErrors,
) {
    for name in ["anyOf", "allOf", "oneOf"] {
        if name == "anyOf" && skips_any_of {
            continue;
        }
        let list = path.child(name);
        for (at, nested) in objects(schema, name) {
            let skips = name == "allOf" && at == 0 && skips_any_of_in_first;
            nested_checks(list.index(at), nested, skips, errors);
        }
    }
    if let Some(not) = schema.object("not") {
        nested_checks(path.child("not"), not, false, errors);
    }
    let pattern = text(schema, "pattern");
    if let Some(problem) = Pattern::check(pattern).err().filter(|_| !pattern.is_empty()) {
        let detail = format!("must be a valid regular expression, but isn't: {problem}");
        errors.push(FieldError::invalid(path.child("pattern"), pattern, detail));
    }
}

/// What stands under a junctor may say nothing about structure.
fn nested_checks(path: FieldPath<'_>, schema: &Object, skips_any_of: bool, errors: &mut FieldErrors) {
    value_checks(path, schema, skips_any_of, false, errors);
    if let Some(items) = schema.object("items") {
        nested_checks(path.child("items"), items, false, errors);
    }
    if let Some(member) = schema.object("additionalProperties") {
        nested_checks(path.child("additionalProperties"), member, false, errors);
    }
    let at_properties = path.child("properties");
    for (name, property) in entries(schema, "properties") {
        if let Some(property) = property.as_object() {
            nested_checks(at_properties.key(name), property, false, errors);
        }
    }
    for (name, wanted) in [
        ("type", "empty"),
        ("additionalProperties", "undefined"),
        ("default", "undefined"),
        ("title", "empty"),
        ("description", "empty"),
        ("nullable", "false"),
        ("x-kubernetes-preserve-unknown-fields", "false"),
        ("x-kubernetes-embedded-resource", "false"),
        ("x-kubernetes-int-or-string", "false"),
        ("x-kubernetes-list-map-keys", "empty"),
        ("x-kubernetes-list-type", "undefined"),
        ("x-kubernetes-map-type", "undefined"),
        ("x-kubernetes-validations", "empty"),
    ] {
        let says_nothing = match schema.get(name) {
            // As a default, false is a value like any other.
            Some(Value::Bool(false)) => name != "default",
            given => given.is_none(),
        };
        if !says_nothing {
            errors.push(FieldError::forbidden(path.child(name), format!("must be {wanted} to be structural")));
        }
    }
    if schema.object("properties").is_some_and(|properties| properties.contains("metadata")) {
        let detail = "must not be specified in a nested context";
        errors.push(FieldError::forbidden(at_properties.key("metadata"), detail));
    }
}

/// What is restricted under a junctor must be named outside of it: `named_at` is where, `path` where the restriction is.
fn completeness(
    path: FieldPath<'_>,
    named_at: FieldPath<'_>,
    checks: &Object,
    schema: &Object,
    errors: &mut FieldErrors,
) {
    if let Some(not) = checks.object("not") {
        nested_completeness(path.child("not"), named_at, not, Some(schema), errors);
    }
    for name in ["allOf", "anyOf", "oneOf"] {
        let list = path.child(name);
        for (at, nested) in objects(checks, name) {
            nested_completeness(list.index(at), named_at, nested, Some(schema), errors);
        }
    }
}

fn nested_completeness(
    path: FieldPath<'_>,
    named_at: FieldPath<'_>,
    checks: &Object,
    schema: Option<&Object>,
    errors: &mut FieldErrors,
) {
    let Some(schema) = schema else {
        return errors.push(FieldError::required(named_at, format!("because it is defined in {path}")));
    };
    completeness(path, named_at, checks, schema, errors);
    if let Some(items) = checks.object("items") {
        nested_completeness(path.child("items"), named_at.child("items"), items, schema.object("items"), errors);
    }
    let (at_properties, named_properties) = (path.child("properties"), named_at.child("properties"));
    for (name, property) in entries(checks, "properties") {
        let Some(property) = property.as_object() else { continue };
        let named = schema.object("properties").and_then(|properties| properties.object(name));
        nested_completeness(at_properties.key(name), named_properties.key(name), property, named, errors);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::{check, object};

    #[test]
    fn structural_schemas() {
        let type_required = "FieldValueRequired s.type";
        for (schema, want) in [
            (r#"{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}}}"#, &[][..]),
            (r#"{"x-kubernetes-preserve-unknown-fields":true}"#, &[]),
            ("{}", &[type_required]),
            (r#"{"type":"string"}"#, &["FieldValueInvalid s.type"]),
            (
                r#"{"type":"object","properties":{"a":{},"b":{"type":"array"},"c":{"type":"array","items":{}}}}"#,
                &[
                    "FieldValueRequired s.properties[a].type",
                    "FieldValueRequired s.properties[b].items",
                    "FieldValueRequired s.properties[c].items.type",
                ],
            ),
            (
                r#"{"type":"object","additionalProperties":{"type":"string"}}"#,
                &["FieldValueForbidden s.additionalProperties"],
            ),
            (
                r#"{"type":"object","properties":{"metadata":{"type":"object","properties":{"name":{"type":"string","pattern":"a"}}}}}"#,
                &[],
            ),
            (
                r#"{"type":"object","properties":{"kind":{"type":"integer"},"metadata":{"type":"object","description":"d"}}}"#,
                &["FieldValueInvalid s.properties[kind].type", "FieldValueForbidden s.properties[metadata]"],
            ),
            (
                r#"{"type":"object","properties":{"a":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]}}}"#,
                &[],
            ),
            (
                r#"{"type":"object","properties":{"a":{"x-kubernetes-int-or-string":true,"allOf":[{"anyOf":[{"type":"integer"},{"type":"string"}]},{"pattern":"("}]}}}"#,
                &["FieldValueInvalid s.properties[a].allOf[1].pattern"],
            ),
            (
                r#"{"type":"object","anyOf":[{"nullable":false,"default":false}]}"#,
                &["FieldValueForbidden s.anyOf[0].default"],
            ),
            (
                r#"{"type":"object","anyOf":[{"type":"object","nullable":true,"properties":{"a":{},"metadata":{}}}]}"#,
                &[
                    "FieldValueForbidden s.anyOf[0].nullable",
                    "FieldValueForbidden s.anyOf[0].properties[metadata]",
                    "FieldValueForbidden s.anyOf[0].type",
                    "FieldValueRequired s.properties[a]",
                    "FieldValueRequired s.properties[metadata]",
                ],
            ),
            (
                r#"{"type":"object","properties":{"a":{"x-kubernetes-embedded-resource":true,"additionalProperties":true,"x-kubernetes-int-or-string":true}}}"#,
                &[
                    "FieldValueForbidden s.properties[a].additionalProperties",
                    "FieldValueInvalid s.properties[a].x-kubernetes-embedded-resource",
                    "FieldValueRequired s.properties[a].properties",
                    "FieldValueRequired s.properties[a].type",
                ],
            ),
        ] {
            check(schema, &validate(FieldPath::root("s"), &object(schema)), want);
        }
    }
}
