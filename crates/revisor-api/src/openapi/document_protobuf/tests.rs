//! What is written, read back by its numbers.

use serde_json::json;

use super::*;
use crate::openapi::wire::reading::{Content, at};

#[test]
fn types_are_written_by_their_numbers() {
    let of = json!({
        "type": "object",
        "description": "d",
        "nullable": true,
        "externalDocs": {"description": "more", "url": "u"},
        "example": {"a": 1},
        "maximum": 1.5,
        "minLength": 200,
        "enum": ["x"],
        "required": ["a", "b"],
        "allOf": [{"$ref": "#/components/schemas/T"}],
        "anyOf": [{"type": "integer"}],
        "not": {"type": "string"},
        "items": {"$ref": "#/components/schemas/I"},
        "properties": {"a": {"type": "string", "default": ""}, "b": {"default": 0}, "c": {"default": {}}},
        "additionalProperties": {"type": "boolean", "default": false},
        "x-kubernetes-map-type": "atomic",
    });
    let bytes = schema(&of).0;
    for (name, path, want) in [
        ("type", &[25][..], vec![Content::Bytes(b"object")]),
        ("description", &[34], vec![Content::Bytes(b"d")]),
        ("nullable", &[1], vec![Content::Number(1)]),
        ("more", &[6, 2], vec![Content::Bytes(b"u")]),
        ("example", &[7, 2], vec![Content::Bytes(b"{\"a\":1}\n")]),
        ("maximum", &[11], vec![Content::Double(1.5)]),
        ("minLength", &[16], vec![Content::Number(200)]),
        ("enum", &[24, 2], vec![Content::Bytes(b"\"x\"\n")]),
        ("required", &[23], vec![Content::Bytes(b"a"), Content::Bytes(b"b")]),
        ("allOf", &[26, 2, 1], vec![Content::Bytes(b"#/components/schemas/T")]),
        ("anyOf", &[28, 1, 25], vec![Content::Bytes(b"integer")]),
        ("not", &[29, 25], vec![Content::Bytes(b"string")]),
        ("items", &[30, 1, 2, 1], vec![Content::Bytes(b"#/components/schemas/I")]),
        ("names", &[31, 1, 1], vec![Content::Bytes(b"a"), Content::Bytes(b"b"), Content::Bytes(b"c")]),
        ("an empty default", &[31, 1, 2, 1, 33, 3], vec![Content::Bytes(b"")]),
        ("a default of 0", &[31, 1, 2, 1, 33, 1], vec![Content::Double(0.0)]),
        ("members", &[32, 1, 1, 33, 2], vec![Content::Number(0)]),
        ("an extension", &[36, 2, 2], vec![Content::Bytes(b"\"atomic\"\n")]),
    ] {
        assert_eq!(at(&bytes, path), want, "{name}");
    }
    assert_eq!(at(&bytes, &[31, 1, 2, 1, 33]).len(), 3, "a default that cannot be written is there");
}

#[test]
fn documents_are_written_by_their_numbers() {
    let of = |name: &str| json!({"schema": {"$ref": format!("#/components/schemas/{name}")}});
    let document = json!({
        "openapi": "3.0.0",
        "info": {"title": "t", "version": "v"},
        "paths": {"/p": {
            "put": {
                "tags": ["g"],
                "operationId": "o",
                "parameters": [{"name": "q", "in": "query", "schema": {"type": "string"}}],
                "requestBody": {"content": {"*/*": of("B")}, "required": true},
                "responses": {"200": {"description": "OK", "content": {"application/json": of("A")}}},
                "x-kubernetes-action": "put",
            },
            "parameters": [{"name": "n", "in": "path", "required": true, "schema": {"type": "string"}}],
        }},
        "components": {
            "schemas": {"A": {"type": "object"}},
            "securitySchemes": {"S": {"type": "apiKey", "name": "authorization", "in": "header"}},
        },
    });
    let bytes = encode(&document);
    for (name, path, want) in [
        ("version of the form", &[1][..], &b"3.0.0"[..]),
        ("title", &[2, 1], b"t"),
        ("version", &[2, 6], b"v"),
        ("a path", &[4, 1, 1], b"/p"),
        ("a tag", &[4, 1, 2, 5, 1], b"g"),
        ("an operation", &[4, 1, 2, 5, 5], b"o"),
        ("a parameter", &[4, 1, 2, 5, 6, 1, 1], b"q"),
        ("a body", &[4, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2, 1], b"#/components/schemas/B"),
        ("a code", &[4, 1, 2, 5, 8, 2, 1], b"200"),
        ("an answer", &[4, 1, 2, 5, 8, 2, 2, 1, 3, 1, 2, 1, 2, 1], b"#/components/schemas/A"),
        ("an action", &[4, 1, 2, 5, 13, 2, 2], b"\"put\"\n"),
        ("a part of the path", &[4, 1, 2, 13, 1, 1], b"n"),
        ("a type", &[5, 1, 1, 1], b"A"),
        ("a way to authenticate", &[5, 7, 1, 2, 1, 3], b"authorization"),
    ] {
        assert_eq!(at(&bytes, path), [Content::Bytes(want)], "{name}");
    }
}
