//! Custom objects for the load: a definition with a schema of a hundred fields and ten rules, and objects that fill it.
//!
//! With a [`Conversion`] there are two versions. The load is made in the one that is not stored.

use serde_json::{Value, json};

/// Their name in paths.
pub(crate) const PLURAL: &str = "widgets";

/// The version that is stored, and the other one.
pub(crate) const STORED: &str = "v1";
pub(crate) const OTHER: &str = "v2";

/// What the other version calls two fields of each part, where it has names of its own: twenty in all.
const RENAMED: [(&str, &str); 2] = [("mode", "style"), ("note", "remark")];

/// How objects get from the version that is stored to the one in which the load is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Conversion {
    /// Both versions look the same: only their name changes.
    None,
    /// Twenty fields have other names, and rules say so.
    Rules,
    /// The same, by a webhook that the bench serves itself.
    Webhook,
}

/// The group of the objects: each way to convert has one, so that they can be measured on one server.
pub(crate) fn group(conversion: Option<Conversion>) -> &'static str {
    match conversion {
        None => "bench.example.com",
        Some(Conversion::None) => "none.bench.example.com",
        Some(Conversion::Rules) => "rules.bench.example.com",
        Some(Conversion::Webhook) => "webhook.bench.example.com",
    }
}

/// The API version in which the load is made.
pub(crate) fn api_version(conversion: Option<Conversion>) -> String {
    format!("{}/{}", group(conversion), if conversion.is_some() { OTHER } else { STORED })
}

/// Whether the load is made in a version with names of its own.
fn is_renamed(conversion: Option<Conversion>) -> bool {
    matches!(conversion, Some(Conversion::Rules | Conversion::Webhook))
}

/// Gives the fields of a spec, or of the properties of one, the names of the other version, or takes them back.
pub(crate) fn rename(spec: &mut Value, to_other: bool) {
    for part in spec.as_object_mut().into_iter().flat_map(serde_json::Map::values_mut) {
        let Some(part) = part.as_object_mut() else { continue };
        for (old, new) in RENAMED {
            let (from, to) = if to_other { (old, new) } else { (new, old) };
            if let Some(value) = part.remove(from) {
                part.insert(to.to_owned(), value);
            }
        }
    }
}

/// The Conversion between the versions.
pub(crate) fn conversion(conversion: Option<Conversion>) -> Value {
    let rules: Vec<Value> = (0..PARTS)
        .flat_map(|at| RENAMED.map(|(old, new)| (format!(".spec.part{at}.{old}"), format!(".spec.part{at}.{new}"))))
        .map(|(from, to)| json!({"move": {"from": from, "to": to}}))
        .collect();
    json!({
        "apiVersion": "versioning.revisor.dev/v1alpha1",
        "kind": "Conversion",
        "metadata": {"name": name(conversion)},
        "spec": {"steps": [{"from": STORED, "to": OTHER, "rules": rules}]},
    })
}

/// The name of the definition, and of its Conversion.
pub(crate) fn name(conversion: Option<Conversion>) -> String {
    format!("{PLURAL}.{}", group(conversion))
}

/// Parts of the spec, each with the same ten fields.
const PARTS: usize = 10;

/// The definition. `webhook` is where the webhook is found, if one converts.
pub(crate) fn definition(conversion: Option<Conversion>, webhook: Option<&Value>) -> Value {
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
    let version = |name: &str, is_renamed: bool| {
        let mut parts = Value::Object(parts.clone());
        if is_renamed {
            let parts = parts.as_object_mut().into_iter().flat_map(serde_json::Map::values_mut);
            parts.for_each(|part| rename(part, true));
        }
        json!({
            "name": name,
            "served": true,
            "storage": name == STORED,
            "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {
                    "spec": {"type": "object", "properties": parts},
                    "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
                },
            }},
            "subresources": {"status": {}},
        })
    };
    let mut versions = vec![version(STORED, false)];
    if conversion.is_some() {
        versions.push(version(OTHER, is_renamed(conversion)));
    }
    let strategy = match webhook {
        None => json!({"strategy": "None"}),
        Some(client) => json!({
            "strategy": "Webhook",
            "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client},
        }),
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name(conversion)},
        "spec": {
            "group": group(conversion),
            "scope": "Namespaced",
            "names": {"plural": PLURAL, "kind": "Widget"},
            "conversion": strategy,
            "versions": versions,
        },
    })
}

/// The spec of one object. `turn` makes each version differ from the last.
pub(crate) fn spec(turn: u64, conversion: Option<Conversion>) -> Value {
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
    let mut spec = Value::Object((0..PARTS).map(|at| (format!("part{at}"), part(at))).collect());
    if is_renamed(conversion) {
        rename(&mut spec, true);
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_has_a_hundred_fields_and_ten_rules() {
        let definition = definition(None, None);
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

    #[test]
    fn the_other_version_has_twenty_names_of_its_own() {
        let rules = Some(Conversion::Rules);
        let steps = conversion(rules)["spec"]["steps"][0]["rules"].as_array().expect("rules").len();
        assert_eq!(steps, 20);
        let versions = definition(rules, None)["spec"]["versions"].clone();
        for (at, has_note) in [(0, true), (1, false)] {
            let parts = &versions[at]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
            let names = |name: &str| parts["part0"]["properties"].get(name).is_some();
            assert_eq!((names("note"), names("remark"), names("size")), (has_note, !has_note, true));
        }
        let sent = spec(1, rules);
        assert!(sent["part9"].get("remark").is_some() && sent["part9"].get("note").is_none());
        // With metadata and managed fields that is twice as much.
        assert!((2000..3000).contains(&sent.to_string().len()));
        assert_eq!(spec(1, Some(Conversion::None)), spec(1, None));
    }
}
