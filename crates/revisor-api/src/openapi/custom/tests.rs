//! Schemas of definitions, as they are shown.

use revisor_catalog::Catalog;

use super::*;
use crate::custom_fixture::{defined, with_definition};

fn shown(schema: &str, form: Form) -> Value {
    let catalog = with_definition(&Catalog::default(), &defined("disco.example.com", "Gadget", schema));
    let resource = catalog.resource("disco.example.com", "v1", "gadgets").expect("is served");
    super::schema(resource, resource.custom().expect("is custom"), &Descriptions::default(), form)
}

/// How the member `a` of the spec is shown in both forms.
fn member(schema: &str) -> (Value, Value) {
    let whole =
        format!(r#"{{"type":"object","properties":{{"spec":{{"type":"object","properties":{{"a":{schema}}}}}}}}}"#);
    let member = |form| shown(&whole, form)["properties"]["spec"]["properties"]["a"].clone();
    (member(Form::V3), member(Form::V2))
}

#[test]
fn type_and_metadata_are_added() {
    for form in [Form::V3, Form::V2] {
        let schema = r#"{"type":"object","description":"A gadget.","required":["spec"],
            "properties":{"metadata":{"type":"object","properties":{"name":{"maxLength":5,"type":"string"}}},
                          "spec":{"type":"object"}}}"#;
        assert_eq!(
            shown(schema, form),
            json!({
                "type": "object",
                "description": "A gadget.",
                "required": ["spec"],
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    "metadata": of_type(&meta("ObjectMeta"), false),
                    "spec": {"type": "object"},
                },
                "x-kubernetes-group-version-kind": [{"group": "disco.example.com", "version": "v1", "kind": "Gadget"}],
                "x-kubernetes-selectable-fields": [{"fieldPath": "spec.color"}],
            })
        );
    }
}

#[test]
fn what_may_hold_anything_forbids_nothing() {
    let open = r#"{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"a":{"type":"string"}}}"#;
    assert_eq!(shown(open, Form::V2).get("properties"), None);
    assert_eq!(shown(open, Form::V3)["properties"]["a"], json!({"type": "string"}));
    assert_eq!(member(open).1, json!({"x-kubernetes-preserve-unknown-fields": true}));
}

#[test]
fn members_are_shown_in_the_words_of_each_form() {
    let both = json!([{"type": "integer"}, {"type": "string"}]);
    let either = json!({"x-kubernetes-int-or-string": true});
    let noted = json!({
        "type": "object",
        "example": {"b": 1},
        "externalDocs": {"description": "d", "url": "u"},
        "x-kubernetes-map-type": "granular",
    });
    for (name, schema, v3, v2) in [
        (
            "notes",
            r#"{"type":"object","example":{"b":1},"externalDocs":{"description":"d","url":"u"},
                "x-kubernetes-map-type":"granular"}"#,
            noted.clone(),
            noted,
        ),
        (
            "bounds",
            r#"{"type":"integer","format":"int32","minimum":1,"exclusiveMinimum":true,"maximum":9.5,"default":3}"#,
            json!({"type": "integer", "format": "int32", "minimum": 1, "exclusiveMinimum": true, "maximum": 9.5, "default": 3}),
            json!({"type": "integer", "format": "int32", "minimum": 1, "exclusiveMinimum": true, "maximum": 9.5}),
        ),
        (
            "a text that may be null",
            r#"{"type":"string","nullable":true,"default":null,"enum":["red"],"pattern":"^r","minLength":1}"#,
            json!({"type": "string", "nullable": true, "enum": ["red"], "pattern": "^r", "minLength": 1}),
            json!({"enum": ["red"], "pattern": "^r", "minLength": 1}),
        ),
        (
            "an object that may be null",
            r#"{"type":"object","nullable":true,"properties":{"b":{"type":"string"}}}"#,
            json!({"type": "object", "nullable": true, "properties": {"b": {"type": "string"}}}),
            json!({}),
        ),
        (
            "what is required but may be null",
            r#"{"type":"object","required":["b","c"],
                "properties":{"b":{"type":"string","nullable":true},"c":{"type":"string"}}}"#,
            json!({
                "type": "object",
                "required": ["b", "c"],
                "properties": {"b": {"type": "string", "nullable": true}, "c": {"type": "string"}},
            }),
            json!({"type": "object", "required": ["c"], "properties": {"b": {}, "c": {"type": "string"}}}),
        ),
        (
            "an integer or a string",
            r#"{"x-kubernetes-int-or-string":true}"#,
            json!({"x-kubernetes-int-or-string": true, "anyOf": both}),
            either.clone(),
        ),
        (
            "the same in words of its own",
            r#"{"x-kubernetes-int-or-string":true,"allOf":[{"anyOf":[{"type":"integer"},{"type":"string"}]},{"pattern":"a"}]}"#,
            json!({"x-kubernetes-int-or-string": true, "allOf": [{"anyOf": both}, {"pattern": "a"}]}),
            either.clone(),
        ),
        (
            "the same with another choice",
            r#"{"x-kubernetes-int-or-string":true,"anyOf":[{"pattern":"a"},{"minimum":1}]}"#,
            json!({
                "x-kubernetes-int-or-string": true,
                "anyOf": [{"pattern": "a"}, {"minimum": 1}],
                "allOf": [{"anyOf": both}],
            }),
            either,
        ),
        (
            "a list with keys",
            r#"{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"maxItems":5,
                "items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"}}}}"#,
            json!({
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
                "maxItems": 5,
                "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}},
            }),
            json!({
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
                "maxItems": 5,
                "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}},
            }),
        ),
        (
            "a map",
            r#"{"type":"object","additionalProperties":{"type":"string","default":"x"},"x-kubernetes-map-type":"atomic"}"#,
            json!({
                "type": "object",
                "additionalProperties": {"type": "string", "default": "x"},
                "x-kubernetes-map-type": "atomic",
            }),
            json!({"type": "object", "additionalProperties": {"type": "string"}, "x-kubernetes-map-type": "atomic"}),
        ),
        (
            "rules",
            r#"{"type":"string","x-kubernetes-validations":[{"rule":"true","message":"m","reason":"FieldValueInvalid"}]}"#,
            json!({
                "type": "string",
                "x-kubernetes-validations": [{"rule": "true", "message": "m", "reason": "FieldValueInvalid"}],
            }),
            json!({
                "type": "string",
                "x-kubernetes-validations": [{"rule": "true", "message": "m", "reason": "FieldValueInvalid"}],
            }),
        ),
    ] {
        let found = member(schema);
        assert_eq!(found.0, v3, "{name}");
        assert_eq!(found.1, v2, "{name}");
    }
}

#[test]
fn embedded_resources_have_type_and_metadata_too() {
    let (v3, v2) =
        member(r#"{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"spec":{"type":"object"}}}"#);
    for shown in [&v3, &v2] {
        assert_eq!(shown["required"], json!(["kind", "apiVersion"]));
        assert_eq!(shown["properties"]["metadata"], of_type(&meta("ObjectMeta"), false));
        assert_eq!(shown["properties"]["spec"], json!({"type": "object"}));
    }
    let open = r#"{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}"#;
    let extensions = json!({"x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true});
    assert_eq!(member(open).1, extensions, "to name some members would be to forbid others");
    assert_eq!(member(open).0["required"], json!(["kind", "apiVersion"]));
}
