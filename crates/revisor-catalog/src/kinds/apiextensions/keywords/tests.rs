//! Schemas with one fault each, and those that have none.

use super::*;
use crate::kinds::tests::{check, object};

const ALL: Demands = Demands { known_types: true, atomic_sets: true, map_keys: true };

#[test]
fn keywords_are_checked_at_every_place() {
    let forbidden = |name: &str| format!("FieldValueForbidden s.{name}");
    for name in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
        let schema = match name {
            "id" | "$ref" => format!(r#"{{"{name}":"x"}}"#),
            _ => format!(r#"{{"{name}":{{}}}}"#),
        };
        let parsed = object(&schema);
        check(&schema, &validate(FieldPath::root("s"), &parsed, ALL), &[&forbidden(name)]);
    }
    for (schema, want) in [
        (r#"{"type":"object","properties":{"a":{"type":"string","default":"b"}}}"#, &[][..]),
        (r#"{"type":"text"}"#, &["FieldValueNotSupported s.type"]),
        (r#"{"type":"null"}"#, &["FieldValueForbidden s.type", "FieldValueNotSupported s.type"]),
        (
            r#"{"items":[{"uniqueItems":true}]}"#,
            &["FieldValueForbidden s.items", "FieldValueForbidden s.items[0].uniqueItems"],
        ),
        (r#"{"properties":{"a":{}},"additionalProperties":true}"#, &[]),
        (r#"{"properties":{"a":{}},"additionalProperties":false}"#, &["FieldValueForbidden s.additionalProperties"]),
        (
            r#"{"properties":{"metadata":{"default":{},"additionalProperties":{"default":1,"x-kubernetes-embedded-resource":true}}}}"#,
            &[
                "FieldValueForbidden s.properties[metadata].default",
                "FieldValueForbidden s.properties[metadata].additionalProperties.default",
                "FieldValueForbidden s.properties[metadata].additionalProperties.x-kubernetes-embedded-resource",
            ],
        ),
        (
            r#"{"x-kubernetes-preserve-unknown-fields":false}"#,
            &["FieldValueInvalid s.x-kubernetes-preserve-unknown-fields"],
        ),
        (
            r#"{"x-kubernetes-map-type":"x","x-kubernetes-list-type":"y"}"#,
            &[
                "FieldValueRequired s.type",
                "FieldValueNotSupported s.x-kubernetes-map-type",
                "FieldValueRequired s.type",
                "FieldValueNotSupported s.x-kubernetes-list-type",
            ],
        ),
        (
            r#"{"type":"array","x-kubernetes-list-type":"set","items":{"type":"object","nullable":true}}"#,
            &["FieldValueInvalid s.items.x-kubernetes-map-type", "FieldValueForbidden s.items.nullable"],
        ),
        (
            r#"{"type":"array","x-kubernetes-list-type":"map"}"#,
            &["FieldValueRequired s.x-kubernetes-list-map-keys", "FieldValueRequired s.items"],
        ),
        (
            r#"{"type":"array","x-kubernetes-list-map-keys":["a"],"items":{"type":"object"}}"#,
            &["FieldValueRequired s.x-kubernetes-list-type"],
        ),
        (
            r#"{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["a","a","b","c"],
                "items":{"type":"object","required":["c"],"properties":{"a":{"type":"string","default":""},"c":{"type":"array","nullable":true}}}}"#,
            &[
                "FieldValueInvalid s.x-kubernetes-list-map-keys",
                "FieldValueInvalid s.x-kubernetes-list-map-keys",
                "FieldValueInvalid s.items.properties[c].type",
                "FieldValueForbidden s.items.properties[c].nullable",
            ],
        ),
    ] {
        let parsed = object(schema);
        check(schema, &validate(FieldPath::root("s"), &parsed, ALL), want);
    }
}

#[test]
fn the_texts_of_rules_are_checked() {
    let at = |name: &str, reason: &str| format!("{reason} s.x-kubernetes-validations[0].{name}");
    for (rule, name, reason) in [
        (r#"{"rule":" "}"#, "rule", "FieldValueRequired"),
        (r#"{"rule":"true","message":" "}"#, "message", "FieldValueInvalid"),
        (r#"{"rule":"true","message":"a\nb"}"#, "message", "FieldValueInvalid"),
        (r#"{"rule":"true\n&& true"}"#, "message", "FieldValueRequired"),
        (r#"{"rule":"true","messageExpression":" "}"#, "messageExpression", "FieldValueRequired"),
        (r#"{"rule":"true","reason":"Bad"}"#, "reason", "FieldValueNotSupported"),
        (r#"{"rule":"true","fieldPath":".b"}"#, "fieldPath", "FieldValueInvalid"),
    ] {
        let schema = format!(r#"{{"type":"object","properties":{{"a":{{}}}},"x-kubernetes-validations":[{rule}]}}"#);
        let parsed = object(&schema);
        check(rule, &validate(FieldPath::root("s"), &parsed, ALL), &[&at(name, reason)]);
    }
}
