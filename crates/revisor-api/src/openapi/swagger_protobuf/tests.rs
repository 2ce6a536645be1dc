//! What is written, read back by its numbers.

use serde_json::json;

use super::*;
use crate::openapi::wire::reading::{Content, at};

#[test]
fn types_are_written_by_their_numbers() {
    let of = json!({
        "description": "d",
        "type": "object",
        "required": ["a", "b"],
        "maximum": 1.5,
        "minLength": 200,
        "exclusiveMinimum": true,
        "enum": ["x"],
        "properties": {"a": {"type": "array", "items": {"$ref": "#/definitions/T"}}},
        "additionalProperties": {"type": "string"},
        "x-kubernetes-list-map-keys": ["k"],
    });
    let bytes = schema(&of).0;
    for (name, path, want) in [
        ("description", &[4][..], vec![Content::Bytes(b"d")]),
        ("type", &[22, 1], vec![Content::Bytes(b"object")]),
        ("required", &[19], vec![Content::Bytes(b"a"), Content::Bytes(b"b")]),
        ("maximum", &[7], vec![Content::Double(1.5)]),
        ("minLength", &[12], vec![Content::Number(200)]),
        ("exclusiveMinimum", &[10], vec![Content::Number(1)]),
        ("enum", &[20, 2], vec![Content::Bytes(b"\"x\"\n")]),
        ("a property's name", &[25, 1, 1], vec![Content::Bytes(b"a")]),
        ("a property's items", &[25, 1, 2, 23, 1, 1], vec![Content::Bytes(b"#/definitions/T")]),
        ("members", &[21, 1, 22, 1], vec![Content::Bytes(b"string")]),
        ("an extension's name", &[31, 1], vec![Content::Bytes(b"x-kubernetes-list-map-keys")]),
        ("an extension", &[31, 2, 2], vec![Content::Bytes(b"[\"k\"]\n")]),
    ] {
        assert_eq!(at(&bytes, path), want, "{name}");
    }
    let closed = schema(&json!({"additionalProperties": false})).0;
    assert_eq!(at(&closed, &[21, 2]), [Content::Number(0)]);
}

#[test]
fn operations_are_written_by_their_numbers() {
    let document = json!({
        "swagger": "2.0",
        "info": {"title": "t", "version": "v"},
        "paths": {"/p": {
            "get": {
                "operationId": "g",
                "parameters": [{"$ref": "#/parameters/q-1"}, {"name": "body", "in": "body", "schema": {"type": "object"}}],
                "responses": {"200": {"description": "OK", "schema": {"type": "string"}}},
                "x-kubernetes-action": "get",
            },
            "parameters": [{"name": "n", "in": "path", "type": "string", "required": true}],
        }},
        "definitions": {"T": {"type": "object"}},
        "parameters": {"q-1": {"name": "q", "in": "query", "type": "boolean", "uniqueItems": true}},
        "securityDefinitions": {"B": {"type": "apiKey", "name": "authorization", "in": "header"}},
        "security": [{"B": []}],
    });
    let definition = definition_entry("T", &document["definitions"]["T"]);
    let bytes = encode(&document, &path_entries(&document["paths"]), &definition);
    for (name, path, want) in [
        ("swagger", &[1][..], &b"2.0"[..]),
        ("title", &[2, 1], b"t"),
        ("version", &[2, 2], b"v"),
        ("a path", &[8, 2, 1], b"/p"),
        ("an operation", &[8, 2, 2, 2, 5], b"g"),
        ("a reference", &[8, 2, 2, 2, 8, 2, 1], b"#/parameters/q-1"),
        ("a body", &[8, 2, 2, 2, 8, 1, 1, 2], b"body"),
        ("a code", &[8, 2, 2, 2, 9, 1, 1], b"200"),
        ("an answer", &[8, 2, 2, 2, 9, 1, 2, 1, 2, 1, 22, 1], b"string"),
        ("an action", &[8, 2, 2, 2, 13, 2, 2], b"\"get\"\n"),
        ("a parameter of the path", &[8, 2, 2, 9, 1, 2, 4, 4], b"n"),
        ("its type", &[8, 2, 2, 9, 1, 2, 4, 5], b"string"),
        ("a type", &[9, 1, 1], b"T"),
        ("a shared parameter", &[10, 1, 2, 2, 3, 4], b"q"),
        ("its type", &[10, 1, 2, 2, 3, 6], b"boolean"),
        ("a requirement", &[12, 1, 1], b"B"),
        ("a way to authenticate", &[13, 1, 2, 2, 2], b"authorization"),
    ] {
        assert_eq!(at(&bytes, path), [Content::Bytes(want)], "{name}");
    }
    assert_eq!(at(&bytes, &[10, 1, 2, 2, 3, 20]), [Content::Number(1)]);
}
