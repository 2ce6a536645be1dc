//! Discovery of old turned into that of today: one list of resources and their parts, which are told apart by their names
//! (upstream: `ConvertGroupVersionIntoToDiscovery`).

use serde_json::{Map, Value, json};

/// What stands of a version in aggregated discovery, by the list of its resources.
pub(crate) fn version_of_list(version: &str, list: &Value) -> Value {
    let mut resources: Vec<Value> = Vec::new();
    let position = |resources: &[Value], name: &str| resources.iter().position(|known| known["resource"] == name);
    for entry in list["resources"].as_array().into_iter().flatten() {
        let name = entry["name"].as_str().unwrap_or_default();
        match name.split_once('/') {
            None => {
                let told = resource(entry, name);
                match position(&resources, name) {
                    // A part of it came before.
                    Some(at) => {
                        let parts = resources[at]["subresources"].take();
                        resources[at] = told;
                        resources[at]["subresources"] = parts;
                    }
                    None => resources.push(told),
                }
            }
            Some((name, part)) => {
                let at = position(&resources, name).unwrap_or_else(|| {
                    resources.push(json!({"resource": name, "scope": scope(entry)}));
                    resources.len() - 1
                });
                let told = json!({"subresource": part, "responseKind": kind(entry), "verbs": entry["verbs"]});
                match resources[at]["subresources"].as_array_mut() {
                    Some(parts) => parts.push(told),
                    None => resources[at]["subresources"] = json!([told]),
                }
            }
        }
    }
    json!({"version": version, "resources": resources, "freshness": "Current"})
}

fn resource(entry: &Value, name: &str) -> Value {
    let mut told = json!({
        "resource": name,
        "responseKind": kind(entry),
        "scope": scope(entry),
        "singularResource": entry["singularName"].as_str().unwrap_or_default(),
        "verbs": entry["verbs"],
    });
    for list in ["shortNames", "categories"] {
        if let Some(names) = entry[list].as_array().filter(|names| !names.is_empty()) {
            told[list] = json!(names);
        }
    }
    told
}

fn scope(entry: &Value) -> &'static str {
    if entry["namespaced"].as_bool() == Some(true) { "Namespaced" } else { "Cluster" }
}

fn kind(entry: &Value) -> Value {
    let text = |name: &str| json!(entry[name].as_str().unwrap_or_default());
    let members = ["group", "version", "kind"].map(|name| (name.to_owned(), text(name)));
    Value::Object(members.into_iter().collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stand_with_what_they_are_parts_of() {
        let list = json!({"resources": [
            {"name": "nodes", "singularName": "node", "namespaced": false, "kind": "NodeMetrics", "verbs": ["get"]},
            {"name": "pods/log", "namespaced": true, "kind": "Log", "verbs": ["get"]},
            {"name": "pods", "namespaced": true, "kind": "PodMetrics", "verbs": ["list"], "shortNames": ["po"]},
        ]});
        let version = version_of_list("v1beta1", &list);
        assert_eq!(version["version"], "v1beta1");
        assert_eq!(version["freshness"], "Current");
        let resources = version["resources"].as_array().expect("a list");
        assert_eq!(resources.len(), 2);
        assert_eq!(resources[0]["scope"], "Cluster");
        assert_eq!(resources[0]["responseKind"]["kind"], "NodeMetrics");
        assert_eq!(resources[1]["resource"], "pods");
        assert_eq!(resources[1]["shortNames"], json!(["po"]));
        assert_eq!(resources[1]["subresources"][0]["subresource"], "log");
        assert_eq!(version_of_list("v1", &json!("nonsense"))["resources"], json!([]));
    }
}
