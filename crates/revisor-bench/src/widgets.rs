//! Custom objects for the load: a definition with a schema of a hundred fields and ten rules, and objects that fill it.

use serde_json::{Value, json};

/// The API version of the custom objects.
pub(crate) const API_VERSION: &str = "bench.example.com/v1";

/// Their name in paths.
pub(crate) const PLURAL: &str = "widgets";

/// Parts of the spec, each with the same ten fields.
const PARTS: usize = 10;

/// The definition.
pub(crate) fn definition() -> Value {
    let text = |most: u32| json!({"type": "string", "maxLength": most});
    let part = json!({
        "type": "object",
        "required": ["name", "size"],
        "properties": {
            "name": {"type": "string", "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"},
            "size": {"type": "integer", "minimum": 0, "maximum": 1000},
            "weight": {"type": "number"},
            "enabled": {"type": "boolean", "default": true},
            "mode": {"type": "string", "enum": ["Fast", "Safe"], "default": "Safe"},
            "limit": {"x-kubernetes-int-or-string": true},
            "note": text(256),
            "tags": {"type": "array", "maxItems": 16, "items": text(32), "x-kubernetes-list-type": "set"},
            "options": {"type": "object", "maxProperties": 16, "additionalProperties": text(64)},
            "since": {"type": "string", "format": "date-time"},
        },
        "x-kubernetes-validations": [
            {"rule": "!self.enabled || self.size > 0", "message": "what is enabled has a size"},
        ],
    });
    let parts: serde_json::Map<String, Value> = (0..PARTS).map(|at| (format!("part{at}"), part.clone())).collect();
    let schema = json!({
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": parts},
            "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
        },
    });
    let version = json!({
        "name": "v1",
        "served": true,
        "storage": true,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{PLURAL}.bench.example.com")},
        "spec": {
            "group": "bench.example.com",
            "scope": "Namespaced",
            "names": {"plural": PLURAL, "kind": "Widget"},
            "versions": [version],
        },
    })
}

/// The spec of one object. `turn` makes each version differ from the last.
pub(crate) fn spec(turn: u64) -> Value {
    let part = |at: usize| {
        json!({
            "name": format!("part-{at}"),
            "size": turn % 900 + 1,
            "weight": 0.5,
            "mode": "Fast",
            "limit": "10%",
            "note": "All work and no play makes a server fast.",
            "tags": ["one", "two", "three"],
            "options": {"colour": "blue", "shape": "round"},
            "since": "2026-11-16T03:00:00Z",
        })
    };
    Value::Object((0..PARTS).map(|at| (format!("part{at}"), part(at))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_has_a_hundred_fields_and_ten_rules() {
        let definition = definition();
        let parts = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
        let parts = parts.as_object().expect("parts").values();
        let (fields, rules): (Vec<usize>, Vec<usize>) = parts
            .map(|part| {
                let fields = part["properties"].as_object().expect("fields").len();
                (fields, part["x-kubernetes-validations"].as_array().expect("rules").len())
            })
            .unzip();
        assert_eq!((fields.iter().sum::<usize>(), rules.iter().sum::<usize>()), (100, 10));
    }
}
