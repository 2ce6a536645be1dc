//! A document of OpenAPI 3: what it is about, and how it is written.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use revisor_catalog::GroupVersion;
use revisor_schema::Types;
use serde_json::{Map, Value, json};

use super::custom::Form;
use super::library::{Library, mentions};
use super::{Descriptions, paths, schemas};

/// Documents beside those of groups and versions; with the ones of groups, these are all that there are.
pub(super) const OTHERS: [&str; 5] =
    ["/.well-known/openid-configuration", "/api", "/apis", "/openid/v1/jwks", "/version"];

/// What documents are made of.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) types: &'a Types,
    pub(super) library: &'a Library,
    pub(super) texts: &'a Descriptions,
    /// What the documents call their version.
    pub(super) release: &'a str,
}

impl Source<'_> {
    /// The document of a group and version.
    pub(super) fn version(&self, known: &GroupVersion) -> String {
        let is_custom = known.resources.iter().all(|resource| resource.custom().is_some());
        let mut own = schemas::custom(known, self.texts, Form::V3);
        let paths = paths::of(self.types, known);
        if is_custom {
            // Those who define kinds have no say in what the server is called, and no credentials of their own.
            return self.write(json!({"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}), None, &paths, &own);
        }
        let mentioned = mentioned(&paths);
        for (name, kinds) in schemas::shared_kinds(known).filter(|(name, _)| mentioned.contains(name.as_str())) {
            if let Some(mut schema) = self.library.schema(&name) {
                schema[schemas::KINDS] = kinds;
                own.insert(name, schema);
            }
        }
        self.write_own(&paths, &own)
    }

    /// The document at another path.
    pub(super) fn other(&self, path: &str) -> String {
        let paths = paths_of(path);
        self.write_own(&paths, &BTreeMap::new())
    }

    fn write_own(&self, paths: &Map<String, Value>, own: &BTreeMap<String, Value>) -> String {
        let security = json!({"BearerToken": {
            "type": "apiKey",
            "description": "Bearer Token authentication",
            "name": "authorization",
            "in": "header",
        }});
        self.write(json!({"title": "Kubernetes", "version": self.release}), Some(security), paths, own)
    }

    fn write(
        &self,
        info: Value,
        security: Option<Value>,
        paths: &Map<String, Value>,
        own: &BTreeMap<String, Value>,
    ) -> String {
        let reached = self.library.reached(mentioned(paths), own);
        let types = members(self.library.texts(&reached, own));
        let schemas = if types.is_empty() { String::new() } else { format!(r#""schemas":{{{types}}}"#) };
        let security = security.map(|security| format!(r#""securitySchemes":{security}"#)).unwrap_or_default();
        let between = if schemas.is_empty() || security.is_empty() { "" } else { "," };
        let paths = members(paths.iter().map(|(path, item)| (path.as_str(), Cow::Owned(item.to_string()))));
        format!(
            r#"{{"openapi":"3.0.0","info":{info},"paths":{{{paths}}},"components":{{{schemas}{between}{security}}}}}"#
        )
    }
}

/// What is said at another path than that of a group and version; that of a group, if it is none of [`OTHERS`].
pub(super) fn paths_of(path: &str) -> Map<String, Value> {
    match path {
        "/.well-known/openid-configuration" => paths::of_issuer(),
        "/api" => paths::of_core(),
        "/apis" => paths::of_groups(),
        "/openid/v1/jwks" => paths::of_keys(),
        "/version" => paths::of_version(),
        group => paths::of_group(group.strip_prefix("/apis/").unwrap_or(group)),
    }
}

/// The members of an object, written one behind the other.
pub(super) fn members<'a>(members: impl IntoIterator<Item = (&'a str, Cow<'a, str>)>) -> String {
    let mut text = String::new();
    for (name, value) in members {
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(&Value::from(name).to_string());
        text.push(':');
        text.push_str(&value);
    }
    text
}

/// The types that these paths mention.
pub(super) fn mentioned(paths: &Map<String, Value>) -> BTreeSet<&str> {
    paths.values().flat_map(mentions).collect()
}
