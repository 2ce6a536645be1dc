//! Walking over a schema as it stands in a definition: a `JSONSchemaProps` with all that is below it.

use revisor_object::{Object, Value};

/// Keywords whose value is one schema, where it is an object.
const SINGLE: [&str; 4] = ["not", "additionalProperties", "additionalItems", "items"];
/// Keywords whose value is a list of schemas.
const LISTS: [&str; 4] = ["allOf", "anyOf", "oneOf", "items"];
/// Keywords whose value is a map of schemas, where its members are objects.
const MAPS: [&str; 4] = ["properties", "patternProperties", "definitions", "dependencies"];

/// Whether `predicate` is true of a schema or of one below it.
pub(super) fn any<'a>(schema: &'a Object, predicate: &mut impl FnMut(&'a Object) -> bool) -> bool {
    if predicate(schema) {
        return true;
    }
    let single = SINGLE.iter().filter_map(|name| schema.object(name));
    let lists = LISTS.iter().flat_map(|name| schema.array(name)).filter_map(Value::as_object);
    let maps = MAPS.iter().filter_map(|name| schema.object(name)).flat_map(Object::iter);
    let maps = maps.filter_map(|(_, value)| value.as_object());
    single.chain(lists).chain(maps).any(|below| any(below, predicate))
}

/// Why a schema cannot be read as a structural one at all, in the words of the original: the first reason.
pub(super) fn unreadable(schema: &Object) -> Option<&'static str> {
    let has = |name: &str| schema.contains(name);
    if has("id") {
        return Some("OpenAPIV3Schema 'id' is not supported");
    }
    if has("$schema") {
        return Some("OpenAPIV3Schema 'schema' is not supported");
    }
    if schema.str("$ref").is_some_and(|reference| !reference.is_empty()) {
        return Some("OpenAPIV3Schema '$ref' is not supported");
    }
    if has("patternProperties") {
        return Some("OpenAPIV3Schema 'patternProperties' is not supported");
    }
    if has("dependencies") {
        return Some("OpenAPIV3Schema 'dependencies' is not supported");
    }
    if has("additionalItems") {
        return Some("OpenAPIV3Schema 'additionalItems' is not supported");
    }
    if has("definitions") {
        return Some("OpenAPIV3Schema 'definitions' is not supported");
    }
    let junctors = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|name| schema.array(name));
    let below = schema.object("not").into_iter().chain(junctors.filter_map(Value::as_object));
    if let Some(reason) = below.into_iter().find_map(unreadable) {
        return Some(reason);
    }
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        return Some("internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined");
    }
    if !schema.array("items").is_empty() {
        return Some("OpenAPIV3Schema 'items' must be a schema, but is an array");
    }
    let properties = schema.object("properties").into_iter().flat_map(Object::iter);
    let inner = schema
        .object("items")
        .into_iter()
        .chain(properties.filter_map(|(_, value)| value.as_object()))
        .chain(schema.object("additionalProperties"));
    inner.into_iter().find_map(unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::object;

    #[test]
    fn every_schema_below_is_found() {
        for text in [
            r#"{"x":1}"#,
            r#"{"not":{"x":1}}"#,
            r#"{"additionalProperties":{"x":1}}"#,
            r#"{"items":{"x":1}}"#,
            r#"{"items":[{},{"x":1}]}"#,
            r#"{"allOf":[{"anyOf":[{"oneOf":[{"x":1}]}]}]}"#,
            r#"{"properties":{"a":{"patternProperties":{"b":{"definitions":{"c":{"x":1}}}}}}}"#,
            r#"{"dependencies":{"a":["b"],"c":{"x":1}}}"#,
        ] {
            assert!(any(&object(text), &mut |schema| schema.contains("x")), "{text}");
        }
        assert!(!any(&object(r#"{"properties":{"x":{}},"default":{"x":1}}"#), &mut |schema| schema.contains("x")));
    }

    #[test]
    fn what_no_structure_can_hold_is_named() {
        for (text, want) in [
            (r#"{"type":"object","properties":{"a":{"$ref":""}}}"#, None),
            (r#"{"properties":{"a":{"$schema":"s"}}}"#, Some("OpenAPIV3Schema 'schema' is not supported")),
            (r#"{"items":[{}]}"#, Some("OpenAPIV3Schema 'items' must be a schema, but is an array")),
            (r#"{"not":{"id":"i"}}"#, Some("OpenAPIV3Schema 'id' is not supported")),
        ] {
            assert_eq!(unreadable(&object(text)), want, "{text}");
        }
    }
}
