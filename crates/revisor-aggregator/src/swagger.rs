//! Parts of Swagger documents: what a server adds for one version, and how that is put beside what is there (upstream:
//! `kube-openapi/pkg/aggregator`).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

/// How the names of definitions begin where they are referred to.
const DEFINITIONS: &str = "#/definitions/";

/// The same of parameters.
const PARAMETERS: &str = "#/parameters/";

/// The most names that are tried for one definition.
const MOST_NAMES: u32 = 1000;

/// The most levels that are looked into.
const DEPTH: usize = 512;

/// The paths of a document that begin with `prefix`, and the definitions that they need.
pub(crate) fn part_of(document: &Value, prefix: &str) -> Value {
    let all = document["paths"].as_object().into_iter().flatten();
    let mut paths: Map<String, Value> =
        all.filter(|(path, _)| path.starts_with(prefix)).map(|(path, item)| (path.clone(), item.clone())).collect();
    paths.values_mut().for_each(|item| inline_parameters(item, &document["parameters"], DEPTH));
    let empty = Map::new();
    let known = document["definitions"].as_object().unwrap_or(&empty);
    let (mut needed, mut new) = (BTreeSet::new(), BTreeSet::new());
    paths.values().for_each(|item| references(item, &mut new, DEPTH));
    while let Some(name) = new.pop_first() {
        if let Some(definition) = known.get(&name)
            && needed.insert(name)
        {
            references(definition, &mut new, DEPTH);
            new.retain(|name| !needed.contains(name));
        }
    }
    let definitions: Map<String, Value> =
        needed.into_iter().filter_map(|name| Some((name.clone(), known.get(&name)?.clone()))).collect();
    json!({"paths": paths, "definitions": definitions})
}

/// The same part with other names for the definitions of which `is_another` says that somebody else has the name for
/// something else.
pub fn settle_names(part: &Value, is_another: impl Fn(&str, &Value) -> bool) -> Value {
    let empty = Map::new();
    let definitions = part["definitions"].as_object().unwrap_or(&empty);
    let is_free = |name: &str| !definitions.contains_key(name) && !is_another(name, &Value::Null);
    let new_name = |name: &str| (2..MOST_NAMES).map(|number| format!("{name}_v{number}")).find(|name| is_free(name));
    let renamed: BTreeMap<&str, String> = definitions
        .iter()
        .filter(|(name, definition)| is_another(name, definition))
        .filter_map(|(name, _)| Some((name.as_str(), new_name(name)?)))
        .collect();
    let target = |name: &str| renamed.get(name).map_or(name, String::as_str).to_owned();
    let definitions: Map<String, Value> = definitions
        .iter()
        .map(|(name, definition)| {
            let mut definition = definition.clone();
            rename(&mut definition, &target, DEPTH);
            (target(name), definition)
        })
        .collect();
    let mut paths = part["paths"].clone();
    rename(&mut paths, &target, DEPTH);
    json!({"paths": paths, "definitions": definitions})
}

/// Puts parameters that many operations have where they are pointed to.
fn inline_parameters(value: &mut Value, shared: &Value, depth: usize) {
    let Some(depth) = depth.checked_sub(1) else { return };
    match value {
        Value::Object(members) => {
            let pointed = members.get("$ref").and_then(Value::as_str).and_then(|it| it.strip_prefix(PARAMETERS));
            if let Some(parameter) = pointed.and_then(|name| shared.get(name)) {
                *value = parameter.clone();
                return;
            }
            members.values_mut().for_each(|member| inline_parameters(member, shared, depth));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| inline_parameters(item, shared, depth)),
        _ => {}
    }
}

/// The names of definitions that something refers to.
fn references(value: &Value, found: &mut BTreeSet<String>, depth: usize) {
    let Some(depth) = depth.checked_sub(1) else { return };
    match value {
        Value::Object(members) => {
            if let Some(name) = members.get("$ref").and_then(Value::as_str).and_then(|it| it.strip_prefix(DEFINITIONS))
            {
                found.insert(name.to_owned());
            }
            members.values().for_each(|member| references(member, found, depth));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found, depth)),
        _ => {}
    }
}

fn rename(value: &mut Value, target: &impl Fn(&str) -> String, depth: usize) {
    let Some(depth) = depth.checked_sub(1) else { return };
    match value {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get_mut("$ref")
                && let Some(name) = reference.strip_prefix(DEFINITIONS)
            {
                *reference = format!("{DEFINITIONS}{}", target(name));
            }
            members.values_mut().for_each(|member| rename(member, target, depth));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, target, depth)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_what_it_needs_and_nothing_else() {
        let to = |name: &str| json!({"$ref": format!("#/definitions/{name}")});
        let document = json!({
            "parameters": {"p": {"name": "p"}},
            "paths": {"/apis/a/v1/x": {"get": {"schema": to("X"), "parameters": [{"$ref": "#/parameters/p"}]}}, "/apis/b/v1/y": {"get": {"schema": to("Y")}}},
            "definitions": {"X": {"properties": {"m": to("Meta"), "again": to("X")}}, "Meta": {}, "Y": {}},
        });
        let part = part_of(&document, "/apis/a/v1/");
        let names = |list: &str| part[list].as_object().expect("is there").keys().cloned().collect::<Vec<_>>();
        assert_eq!(
            (names("paths"), names("definitions")),
            (vec!["/apis/a/v1/x".into()], vec!["Meta".into(), "X".into()])
        );

        let own = json!({"Meta": {"type": "object"}, "X_v2": {}});
        let is_another = |name: &str, definition: &Value| own.get(name).is_some_and(|known| known != definition);
        let settled = settle_names(&part, is_another);
        assert_eq!(settled["definitions"]["Meta_v2"], json!({}));
        assert_eq!(settled["definitions"]["X"]["properties"]["m"], to("Meta_v2"));
        assert_eq!(settled["paths"]["/apis/a/v1/x"]["get"]["schema"], to("X"));
        assert_eq!(settled["paths"]["/apis/a/v1/x"]["get"]["parameters"], json!([{"name": "p"}]));
        assert_eq!(settle_names(&json!(3), is_another)["definitions"], json!({}));
    }
}
