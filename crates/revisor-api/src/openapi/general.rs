//! Types that are no table's business: no client sends them as objects, or they have no fields.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::descriptions::Descriptions;
use super::schemas::{meta, of_type, reference};

/// The names of types that have no fields of their own.
pub(super) const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
pub(super) const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
/// An object of any kind.
pub(super) const RAW: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";
/// Any value in the schemas of definitions.
pub(super) const JSON: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON";

/// The full name of what the server says of its own version.
pub(super) const VERSION: &str = "io.k8s.apimachinery.pkg.version.Info";

/// What it says beside that: as which releases the server behaves.
const RELEASE_FIELDS: [&str; 4] =
    ["emulationMajor", "emulationMinor", "minCompatibilityMajor", "minCompatibilityMinor"];

/// What it says at least.
const VERSION_FIELDS: [&str; 9] =
    ["major", "minor", "gitVersion", "gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform"];

/// All of them, by their full names.
pub(super) fn types(texts: &Descriptions) -> BTreeMap<String, Value> {
    let without_fields = [
        (meta("Duration"), json!({"type": "string"})),
        (meta("FieldsV1"), json!({"type": "object"})),
        (meta("MicroTime"), json!({"type": "string", "format": "date-time"})),
        (meta("Patch"), json!({"type": "object"})),
        (meta("Time"), json!({"type": "string", "format": "date-time"})),
        (QUANTITY.to_owned(), json!({"oneOf": [{"type": "string"}, {"type": "number"}]})),
        (
            INT_OR_STRING.to_owned(),
            json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}),
        ),
        (RAW.to_owned(), json!({"type": "object"})),
        (JSON.to_owned(), json!({})),
    ];
    let mut named: BTreeMap<String, Value> = without_fields.into_iter().chain(answers()).chain(discovery()).collect();
    let (name, schema) = version();
    named.insert(name, schema);
    for (name, schema) in &mut named {
        texts.describe(name, schema);
    }
    named
}

fn text() -> Value {
    json!({"type": "string"})
}

/// A text that is always there.
fn given() -> Value {
    json!({"type": "string", "default": ""})
}

fn texts() -> Value {
    json!({"type": "array", "items": given(), "x-kubernetes-list-type": "atomic"})
}

fn list_of(kind: &str) -> Value {
    json!({"type": "array", "items": of_type(&meta(kind), true), "x-kubernetes-list-type": "atomic"})
}

fn core(kind: &str) -> Value {
    json!([{"group": "", "version": "v1", "kind": kind}])
}

/// What requests are answered with beside objects.
fn answers() -> impl Iterator<Item = (String, Value)> {
    [
        (
            "ListMeta",
            json!({"type": "object", "properties": {
                "continue": text(),
                "remainingItemCount": {"type": "integer", "format": "int64"},
                "resourceVersion": text(),
                "selfLink": text(),
                "shardInfo": of_type(&meta("ShardInfo"), false),
            }}),
        ),
        ("ShardInfo", json!({"type": "object", "required": ["selector"], "properties": {"selector": given()}})),
        (
            "Status",
            json!({
                "type": "object",
                "properties": {
                    "apiVersion": text(),
                    "code": {"type": "integer", "format": "int32"},
                    "details": of_type(&meta("StatusDetails"), false),
                    "kind": text(),
                    "message": text(),
                    "metadata": of_type(&meta("ListMeta"), true),
                    "reason": text(),
                    "status": text(),
                },
                "x-kubernetes-group-version-kind": core("Status"),
            }),
        ),
        (
            "StatusCause",
            json!({"type": "object", "properties": {"field": text(), "message": text(), "reason": text()}}),
        ),
        (
            "StatusDetails",
            json!({"type": "object", "properties": {
                "causes": list_of("StatusCause"),
                "group": text(),
                "kind": text(),
                "name": text(),
                "retryAfterSeconds": {"type": "integer", "format": "int32"},
                "uid": text(),
            }}),
        ),
        (
            "WatchEvent",
            json!({
                "type": "object",
                "required": ["type", "object"],
                "properties": {"type": given(), "object": {"allOf": [reference(RAW)]}},
            }),
        ),
    ]
    .into_iter()
    .map(|(name, schema)| (meta(name), schema))
}

/// What discovery is told in.
fn discovery() -> impl Iterator<Item = (String, Value)> {
    [
        (
            "APIGroup",
            json!({
                "type": "object",
                "required": ["name", "versions"],
                "properties": {
                    "apiVersion": text(),
                    "kind": text(),
                    "name": given(),
                    "preferredVersion": of_type(&meta("GroupVersionForDiscovery"), true),
                    "serverAddressByClientCIDRs": list_of("ServerAddressByClientCIDR"),
                    "versions": list_of("GroupVersionForDiscovery"),
                },
                "x-kubernetes-group-version-kind": core("APIGroup"),
            }),
        ),
        (
            "APIGroupList",
            json!({
                "type": "object",
                "required": ["groups"],
                "properties": {"apiVersion": text(), "kind": text(), "groups": list_of("APIGroup")},
                "x-kubernetes-group-version-kind": core("APIGroupList"),
            }),
        ),
        (
            "APIResource",
            json!({
                "type": "object",
                "required": ["name", "singularName", "namespaced", "kind", "verbs"],
                "properties": {
                    "categories": texts(),
                    "group": text(),
                    "kind": given(),
                    "name": given(),
                    "namespaced": {"type": "boolean", "default": false},
                    "shortNames": texts(),
                    "singularName": given(),
                    "storageVersionHash": text(),
                    "verbs": {"type": "array", "items": given()},
                    "version": text(),
                },
            }),
        ),
        (
            "APIResourceList",
            json!({
                "type": "object",
                "required": ["groupVersion", "resources"],
                "properties": {
                    "apiVersion": text(),
                    "groupVersion": given(),
                    "kind": text(),
                    "resources": list_of("APIResource"),
                },
                "x-kubernetes-group-version-kind": core("APIResourceList"),
            }),
        ),
        (
            "APIVersions",
            json!({
                "type": "object",
                "required": ["versions", "serverAddressByClientCIDRs"],
                "properties": {
                    "apiVersion": text(),
                    "kind": text(),
                    "serverAddressByClientCIDRs": list_of("ServerAddressByClientCIDR"),
                    "versions": texts(),
                },
                "x-kubernetes-group-version-kind": core("APIVersions"),
            }),
        ),
        (
            "GroupVersionForDiscovery",
            json!({
                "type": "object",
                "required": ["groupVersion", "version"],
                "properties": {"groupVersion": given(), "version": given()},
            }),
        ),
        (
            "ServerAddressByClientCIDR",
            json!({
                "type": "object",
                "required": ["clientCIDR", "serverAddress"],
                "properties": {"clientCIDR": given(), "serverAddress": given()},
            }),
        ),
    ]
    .into_iter()
    .map(|(name, schema)| (meta(name), schema))
}

/// The type of what the server says of its own version, with its name.
fn version() -> (String, Value) {
    let always = VERSION_FIELDS.map(|name| (name.to_owned(), given()));
    let others = RELEASE_FIELDS.map(|name| (name.to_owned(), text()));
    let fields: Map<String, Value> = always.into_iter().chain(others).collect();
    (VERSION.to_owned(), json!({"type": "object", "required": VERSION_FIELDS, "properties": fields}))
}
