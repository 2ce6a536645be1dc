//! The same in the words of Swagger 2: one document for everything that is served.
//!
//! Its readers know no alternatives, no defaults beside references and no nulls, so these are left out. Parameters that
//! many operations have stand in one place and are pointed to.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::custom::Form;
use super::{paths, schemas};
use crate::publication::Publication;

/// Where the newer form has its types, and where the older one does.
const TYPES: (&str, &str) = ("#/components/schemas/", "#/definitions/");

/// What the newer form says of a value that the older one has no words for.
const UNKNOWN: &[&str] = &["allOf", "anyOf", "default", "not", "nullable", "oneOf"];

/// The document of everything that is published.
pub(super) fn document(publication: &Publication) -> Value {
    let types = publication.catalog.types();
    let mut definitions: BTreeMap<String, Value> = BTreeMap::new();
    let mut operations = Operations::default();
    for version in &publication.versions {
        for (name, schema) in schemas::of(types, &version.known, publication.texts(), Form::V2) {
            let schema = definition(&schema);
            // Options belong to many groups.
            let kinds = schema[KINDS].clone();
            let known = definitions.entry(name).or_insert(schema);
            merge_kinds(known, kinds);
        }
        operations.add(paths::of(types, &version.known));
    }
    operations.add(paths::of_version());
    let (name, schema) = schemas::of_version(publication.texts());
    definitions.insert(name, definition(&schema));
    json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": &*publication.release},
        "paths": operations.paths,
        "definitions": definitions,
        "parameters": operations.parameters,
        "securityDefinitions": {
            "BearerToken": {
                "description": "Bearer Token authentication",
                "type": "apiKey",
                "name": "authorization",
                "in": "header",
            },
        },
        "security": [{"BearerToken": []}],
    })
}

const KINDS: &str = "x-kubernetes-group-version-kind";

fn merge_kinds(definition: &mut Value, kinds: Value) {
    let Value::Array(new) = kinds else { return };
    let Some(known) = definition.get_mut(KINDS).and_then(Value::as_array_mut) else { return };
    for kind in new {
        if !known.contains(&kind) {
            known.push(kind);
        }
    }
}

/// A type in the words of the older form.
fn definition(schema: &Value) -> Value {
    let Value::Object(schema) = schema else { return schema.clone() };
    let mut shown = Map::new();
    for (name, value) in schema.iter().filter(|(name, _)| !UNKNOWN.contains(&name.as_str())) {
        let value = match (name.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                properties.iter().map(|(name, property)| (name.clone(), definition(property))).collect()
            }
            ("items" | "additionalProperties", schema) => definition(schema),
            ("$ref", Value::String(target)) => json!(target.replace(TYPES.0, TYPES.1)),
            (_, value) => value.clone(),
        };
        shown.insert(name.clone(), value);
    }
    // Beside a reference nothing else may stand in the newer form, hence its list of one.
    if let Some(target) = schema.get("allOf").and_then(|all| all[0]["$ref"].as_str()) {
        shown.insert("$ref".to_owned(), json!(target.replace(TYPES.0, TYPES.1)));
    }
    // Quantities and the like are written as texts.
    if schema.contains_key("oneOf") && !schema.contains_key("type") {
        shown.insert("type".to_owned(), json!("string"));
    }
    Value::Object(shown)
}

#[derive(Default)]
struct Operations {
    paths: Map<String, Value>,
    /// By the names that operations point to.
    parameters: Map<String, Value>,
    /// By the names that they have in requests: what they are elsewhere, and what points to them here. The same name can
    /// mean different things.
    known: HashMap<String, Vec<(Value, Value)>>,
}

impl Operations {
    fn add(&mut self, paths: Map<String, Value>) {
        for (path, item) in paths {
            let Value::Object(item) = item else { continue };
            let shown: Map<String, Value> = item
                .into_iter()
                .map(|(method, operation)| {
                    let shown = match operation {
                        Value::Array(parameters) => self.shown(&parameters),
                        operation => self.operation(&operation),
                    };
                    (method, shown)
                })
                .collect();
            self.paths.insert(path, Value::Object(shown));
        }
    }

    fn operation(&mut self, operation: &Value) -> Value {
        let body = &operation["requestBody"];
        let mut parameters = self.shown(operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default());
        let mut consumes = vec!["*/*".to_owned()];
        if let Some(content) = body["content"].as_object() {
            consumes = content.keys().cloned().collect();
            let schema = content.values().next().map(|content| definition(&content["schema"]));
            let mut sent = json!({"name": "body", "in": "body", "schema": schema});
            if body["required"] == true {
                sent["required"] = json!(true);
            }
            if let Value::Array(parameters) = &mut parameters {
                parameters.insert(0, sent);
            }
        }
        let mut produces = Vec::new();
        let mut responses = Map::new();
        for (code, response) in operation["responses"].as_object().into_iter().flatten() {
            let mut shown = json!({"description": response["description"]});
            if let Some(content) = response["content"].as_object() {
                produces = content.keys().cloned().collect();
                if let Some(content) = content.values().next() {
                    shown["schema"] = definition(&content["schema"]);
                }
            }
            responses.insert(code.clone(), shown);
        }
        let mut shown = json!({
            "description": operation["description"],
            "consumes": consumes,
            "produces": produces,
            "schemes": ["https"],
            "tags": operation["tags"],
            "operationId": operation["operationId"],
            "parameters": parameters,
            "responses": responses,
        });
        for (name, value) in operation.as_object().into_iter().flatten().filter(|(name, _)| name.starts_with("x-")) {
            shown[name] = value.clone();
        }
        shown
    }

    /// Points to parameters, and remembers them.
    fn shown(&mut self, parameters: &[Value]) -> Value {
        parameters.iter().map(|parameter| self.pointer(parameter)).collect()
    }

    fn pointer(&mut self, parameter: &Value) -> Value {
        let name = parameter["name"].as_str().unwrap_or_default();
        let known = self.known.entry(name.to_owned()).or_default();
        if let Some((_, pointer)) = known.iter().find(|(known, _)| known == parameter) {
            return pointer.clone();
        }
        let mut shown = parameter.clone();
        let kind = shown.as_object_mut().and_then(|shown| shown.remove("schema"));
        shown["type"] = kind.map(|kind| kind["type"].clone()).unwrap_or_default();
        shown["uniqueItems"] = json!(true);
        // Named by what they are, so that they keep their names when others come.
        let hash = Sha256::digest(shown.to_string());
        let name = format!("{name}-{:02x}{:02x}{:02x}{:02x}", hash[0], hash[1], hash[2], hash[3]);
        let pointer = json!({"$ref": format!("#/parameters/{name}")});
        known.push((parameter.clone(), pointer.clone()));
        self.parameters.insert(name, shown);
        pointer
    }
}

#[cfg(test)]
mod tests;
