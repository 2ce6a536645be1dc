//! The same in the words of Swagger 2: one document for everything that is served.
//!
//! Its readers know no alternatives, no defaults beside references and no nulls, so these are left out. Parameters that
//! many operations have stand in one place and are pointed to.
//!
//! The document is put together of parts: what is said of one group and version is kept for as long as its resources
//! stay the same, and what is built in for as long as the server runs. So after a definition has changed, one part is
//! made and the others are copied.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use bytes::Bytes;
use revisor_aggregator::settle_names;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::custom::Form;
use super::document::{members, mentioned};
use super::library::{Library, TYPES};
use super::{document, parameters, paths, schemas, swagger_protobuf};
use crate::encoding::Encoding;
use crate::publication::{Publication, path_of};
use crate::tag::Tag;

/// Where the older form has its types.
const DEFINITIONS: &str = "#/definitions/";

/// What the newer form says of a value that the older one has no words for.
const UNKNOWN: &[&str] = &["allOf", "anyOf", "default", "not", "nullable", "oneOf"];

/// What stands of one group and version in the document.
pub(super) type VersionSwagger = OnceLock<Part>;

/// What stays the same whatever is defined.
#[derive(Debug, Default)]
pub(super) struct SwaggerParts {
    /// The built-in types.
    types: OnceLock<Types>,
    /// The paths that are not about the resources of a group and version.
    others: OnceLock<Part>,
}

#[derive(Debug)]
struct Types {
    tag: Tag,
    by_name: BTreeMap<String, Definition>,
}

/// A part of the document, in both encodings.
#[derive(Debug)]
pub(super) struct Part {
    tag: Tag,
    /// The members of `paths`, without the braces.
    paths: String,
    /// The entries of the same.
    path_entries: Vec<u8>,
    /// Types that are not built in.
    definitions: BTreeMap<String, Definition>,
    /// The built-in types that are mentioned.
    mentions: Vec<String>,
}

#[derive(Debug)]
struct Definition {
    text: String,
    entry: Vec<u8>,
}

impl Definition {
    fn of(name: &str, schema: &Value) -> Definition {
        let shown = definition(schema);
        Definition { text: shown.to_string(), entry: swagger_protobuf::definition_entry(name, &shown) }
    }
}

impl Part {
    fn of(paths: &Map<String, Value>, own: &BTreeMap<String, Value>, library: &Library) -> Part {
        let mentions: Vec<String> = library.reached(mentioned(paths), own).into_iter().map(str::to_owned).collect();
        let definitions: BTreeMap<String, Definition> =
            own.iter().map(|(name, schema)| (name.clone(), Definition::of(name, schema))).collect();
        let shown: Map<String, Value> =
            paths.iter().map(|(path, item)| (path.clone(), path_item(item, !own.is_empty()))).collect();
        let paths = members(shown.iter().map(|(path, item)| (path.as_str(), Cow::Owned(item.to_string()))));
        let texts = definitions.iter().map(|(name, of)| (name.as_str(), Cow::Borrowed(of.text.as_str())));
        let tag = Tag::of(format!("{paths}\n{}\n{}", members(texts), mentions.join("\n")).as_bytes());
        let path_entries = swagger_protobuf::path_entries(&Value::Object(shown));
        Part { tag, paths, path_entries, definitions, mentions }
    }
}

impl Part {
    /// What another server adds. A type of this server's keeps its name.
    fn of_another(part: &Value, types: &Types) -> Part {
        let is_another = |name: &str, schema: &Value| {
            let text = schema.to_string();
            types.by_name.get(name).is_some_and(|known| known.text != text)
        };
        let part = settle_names(part, is_another);
        let definitions = part["definitions"].as_object().into_iter().flatten();
        let definitions: BTreeMap<String, Definition> = definitions
            .map(|(name, schema)| {
                let entry = swagger_protobuf::definition_entry(name, schema);
                (name.clone(), Definition { text: schema.to_string(), entry })
            })
            .collect();
        let items = part["paths"].as_object().into_iter().flatten();
        let paths = members(items.map(|(path, item)| (path.as_str(), Cow::Owned(item.to_string()))));
        let tag = Tag::of(part.to_string().as_bytes());
        let path_entries = swagger_protobuf::path_entries(&part["paths"]);
        Part { tag, paths, path_entries, definitions, mentions: Vec::new() }
    }
}

impl Publication {
    /// What clients know the document by: it changes with every part.
    pub(super) fn swagger_tag(&self) -> &Tag {
        self.openapi.swagger_tag.get_or_init(|| {
            let mut hashes = vec![&*self.constants.release, self.swagger_types().tag.hash()];
            hashes.extend(self.swagger_parts().into_iter().map(|part| part.tag.hash()));
            Tag::of(hashes.join("\n").as_bytes())
        })
    }

    /// The document in JSON.
    pub(super) fn swagger_json(&self) -> Bytes {
        let made = self.openapi.swagger_json.get_or_init(|| {
            let parts = self.swagger_parts();
            let paths: Vec<&str> = parts.iter().map(|part| &*part.paths).filter(|paths| !paths.is_empty()).collect();
            let definitions = self.swagger_definitions(&parts);
            let definitions = members(definitions.into_iter().map(|(name, of)| (name, Cow::Borrowed(&*of.text))));
            let large = [("paths", paths.join(",")), ("definitions", definitions)];
            let large = large.map(|(name, members)| (name, Cow::Owned(format!("{{{members}}}"))));
            let head = self.swagger_head();
            let head = head.as_object().into_iter().flatten();
            let head = head.map(|(name, value)| (name.as_str(), Cow::Owned(value.to_string())));
            format!("{{{}}}", members(head.chain(large))).into()
        });
        made.clone()
    }

    /// The document in protobuf.
    pub(super) fn swagger_protobuf(&self) -> Bytes {
        let made = self.openapi.swagger_protobuf.get_or_init(|| {
            let parts = self.swagger_parts();
            let paths: Vec<&[u8]> = parts.iter().map(|part| &*part.path_entries).collect();
            let definitions: Vec<&[u8]> = self.swagger_definitions(&parts).into_values().map(|of| &*of.entry).collect();
            swagger_protobuf::encode(&self.swagger_head(), &paths.concat(), &definitions.concat()).into()
        });
        made.clone()
    }

    /// All parts, in the order of their paths.
    fn swagger_parts(&self) -> Vec<&Part> {
        let mut parts: Vec<(String, &Part)> = self
            .versions
            .iter()
            .map(|version| {
                let make = || {
                    let own = schemas::custom(&version.known, self.texts(), Form::V2);
                    Part::of(&paths::of(self.catalog.types(), &version.known), &own, self.library())
                };
                (path_of(&version.known) + "/", version.openapi.swagger.get_or_init(make))
            })
            .collect();
        parts.sort_by(|(left, _), (right, _)| left.cmp(right));
        let others = self.constants.swagger.others.get_or_init(|| {
            let paths: Map<String, Value> = self.others().keys().flat_map(|path| document::paths_of(path)).collect();
            Part::of(&paths, &BTreeMap::new(), self.library())
        });
        let of_others = self.openapi.swagger_of_others.get_or_init(|| {
            let told = self.view.as_ref().map(|view| view.swagger_parts()).unwrap_or_default();
            told.iter().map(|part| Part::of_another(part, self.swagger_types())).collect()
        });
        std::iter::once(others).chain(parts.into_iter().map(|(_, part)| part)).chain(of_others).collect()
    }

    fn swagger_types(&self) -> &Types {
        self.constants.swagger.types.get_or_init(|| {
            let library = self.library();
            let schema = |name: &str| Some((name.to_owned(), Definition::of(name, &library.schema(name)?)));
            let by_name: BTreeMap<String, Definition> = library.names().filter_map(schema).collect();
            let all = members(by_name.iter().map(|(name, of)| (name.as_str(), Cow::Borrowed(&*of.text))));
            Types { tag: Tag::of(all.as_bytes()), by_name }
        })
    }

    /// All types that these parts mention or bring, by their names.
    fn swagger_definitions<'a>(&'a self, parts: &[&'a Part]) -> BTreeMap<&'a str, &'a Definition> {
        let mentioned: BTreeSet<&str> = parts.iter().flat_map(|part| &part.mentions).map(String::as_str).collect();
        let types = &self.swagger_types().by_name;
        let built_in = mentioned.into_iter().filter_map(|name| Some((name, types.get(name)?)));
        let own = parts.iter().flat_map(|part| &part.definitions).map(|(name, of)| (name.as_str(), of));
        built_in.chain(own).collect()
    }

    /// The small rest of the document.
    fn swagger_head(&self) -> Value {
        let shared = parameters::all().map(|parameter| {
            let parameter = shown_parameter(&parameter);
            (parameter_name(&parameter), parameter)
        });
        json!({
            "swagger": "2.0",
            "info": {"title": "Kubernetes", "version": &*self.constants.release},
            "parameters": shared.collect::<Map<String, Value>>(),
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
            ("$ref", Value::String(target)) => json!(target.replace(TYPES, DEFINITIONS)),
            (_, value) => value.clone(),
        };
        shown.insert(name.clone(), value);
    }
    // Beside a reference nothing else may stand in the newer form, hence its list of one.
    if let Some(target) = schema.get("allOf").and_then(|all| all[0]["$ref"].as_str()) {
        shown.insert("$ref".to_owned(), json!(target.replace(TYPES, DEFINITIONS)));
    }
    // Quantities and the like are written as texts.
    if schema.contains_key("oneOf") && !schema.contains_key("type") {
        shown.insert("type".to_owned(), json!("string"));
    }
    Value::Object(shown)
}

/// What stands at a path, of a custom resource or of what is built in.
fn path_item(item: &Value, is_custom: bool) -> Value {
    let shown = item.as_object().into_iter().flatten().map(|(method, of)| {
        let shown = if of.is_array() { shown(of) } else { operation(of, is_custom) };
        (method.clone(), shown)
    });
    Value::Object(shown.collect())
}

/// The order in which the original names media types; others come behind them.
const MEDIA_TYPES: [&str; 10] = [
    "text/plain",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];

fn media_types(content: &Map<String, Value>) -> Vec<String> {
    let mut names: Vec<String> = content.keys().cloned().collect();
    names.sort_by_key(|name| MEDIA_TYPES.iter().position(|known| known == name).unwrap_or(MEDIA_TYPES.len()));
    names
}

fn operation(operation: &Value, is_custom: bool) -> Value {
    let body = &operation["requestBody"];
    let mut parameters = shown(&operation["parameters"]);
    let mut produces = Vec::new();
    let mut responses = Map::new();
    let mut is_text = false;
    for (code, response) in operation["responses"].as_object().into_iter().flatten() {
        let mut shown = json!({"description": response["description"]});
        if let Some(content) = response["content"].as_object() {
            produces = media_types(content);
            if let Some(content) = content.values().next() {
                shown["schema"] = definition(&content["schema"]);
                is_text |= content["schema"]["type"] == "string";
            }
        }
        responses.insert(code.clone(), shown);
    }
    let is_about_objects = operation.get("x-kubernetes-action").is_some();
    let consumes: Vec<String> = match body["content"].as_object() {
        Some(content) => {
            let schema = content.values().next().map(|content| definition(&content["schema"]));
            let mut sent = json!({"name": "body", "in": "body", "schema": schema});
            if body["required"] == true {
                sent["required"] = json!(true);
            }
            if let Value::Array(parameters) = &mut parameters {
                parameters.insert(0, sent);
            }
            media_types(content)
        }
        None if is_custom => Encoding::media_types(Encoding::TEXTS).into_iter().map(str::to_owned).collect(),
        None if is_about_objects => vec!["*/*".to_owned()],
        None if is_text => Vec::new(),
        None => produces.clone(),
    };
    let mut shown = json!({
        "description": operation["description"],
        "produces": produces,
        "schemes": ["https"],
        "tags": operation["tags"],
        "operationId": operation["operationId"],
        "responses": responses,
    });
    if !consumes.is_empty() {
        shown["consumes"] = json!(consumes);
    }
    if parameters.as_array().is_some_and(|parameters| !parameters.is_empty()) {
        shown["parameters"] = parameters;
    }
    for (name, value) in operation.as_object().into_iter().flatten().filter(|(name, _)| name.starts_with("x-")) {
        shown[name] = value.clone();
    }
    shown
}

/// Points to parameters.
fn shown(parameters: &Value) -> Value {
    parameters.as_array().into_iter().flatten().map(pointer).collect()
}

/// Points to a parameter, unless it is said of one kind only.
fn pointer(parameter: &Value) -> Value {
    let shown = shown_parameter(parameter);
    if shown["in"] == "path" && shown["name"] == "name" {
        return shown;
    }
    json!({"$ref": format!("#/parameters/{}", parameter_name(&shown))})
}

fn shown_parameter(parameter: &Value) -> Value {
    let mut shown = parameter.clone();
    let schema = shown.as_object_mut().and_then(|shown| shown.remove("schema")).unwrap_or_default();
    for (name, value) in schema.as_object().into_iter().flatten() {
        shown[name] = value.clone();
    }
    shown
}

/// Parameters are named by what they are: the same name can mean different things.
fn parameter_name(parameter: &Value) -> String {
    let hash = Sha256::digest(parameter.to_string());
    let name = parameter["name"].as_str().unwrap_or_default();
    format!("{name}-{:02x}{:02x}{:02x}{:02x}", hash[0], hash[1], hash[2], hash[3])
}

#[cfg(test)]
mod tests;
