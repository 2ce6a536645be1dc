//! [`Library`]: the built-in types, each written once for all documents that have it.
//!
//! With thousands of custom resources, nearly all of each of their documents is this.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use revisor_catalog::Catalog;
use serde_json::Value;

use super::{Descriptions, schemas};

/// Where documents have their types.
pub(super) const TYPES: &str = "#/components/schemas/";

/// The built-in types by their full names.
#[derive(Debug)]
pub(crate) struct Library(BTreeMap<String, LibraryType>);

#[derive(Debug)]
struct LibraryType {
    /// The schema, as OpenAPI 3 has it.
    text: String,
    mentions: Vec<String>,
}

impl Library {
    /// The types of what is built in.
    pub(crate) fn of(catalog: &Catalog, texts: &Descriptions) -> Library {
        let types = schemas::built_in(catalog, texts).into_iter().map(|(name, schema)| {
            let mentions = mentions(&schema).into_iter().map(str::to_owned).collect();
            (name, LibraryType { text: schema.to_string(), mentions })
        });
        Library(types.collect())
    }

    /// The names of all types.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The schema of a type.
    pub(super) fn schema(&self, name: &str) -> Option<Value> {
        self.0.get(name).and_then(|found| serde_json::from_str(&found.text).ok())
    }

    /// The types of this library that these lead to, by way of types that `own` has instead or beside.
    pub(super) fn reached<'a>(
        &'a self,
        from: impl IntoIterator<Item = &'a str>,
        own: &'a BTreeMap<String, Value>,
    ) -> BTreeSet<&'a str> {
        let mut reached = BTreeSet::new();
        let mut open: Vec<&str> = from.into_iter().chain(own.values().flat_map(mentions)).collect();
        while let Some(name) = open.pop() {
            if let Some(found) = self.0.get(name).filter(|_| reached.insert(name)) {
                open.extend(found.mentions.iter().map(String::as_str));
            }
        }
        reached.retain(|name| self.0.contains_key(*name));
        reached
    }

    /// The texts of these types, and of `own` ones. Where both have a type, `own` has the better one.
    pub(super) fn texts<'a>(
        &'a self,
        reached: &BTreeSet<&'a str>,
        own: &'a BTreeMap<String, Value>,
    ) -> BTreeMap<&'a str, Cow<'a, str>> {
        let known = reached.iter().filter_map(|name| Some((*name, Cow::Borrowed(&*self.0.get(*name)?.text))));
        let own = own.iter().map(|(name, schema)| (name.as_str(), Cow::Owned(schema.to_string())));
        known.chain(own).collect()
    }
}

/// The names of the types that a part of a document mentions.
pub(super) fn mentions(part: &Value) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    collect(part, &mut found);
    found
}

fn collect<'a>(part: &'a Value, found: &mut BTreeSet<&'a str>) {
    match part {
        Value::Object(fields) => {
            found.extend(fields.get("$ref").and_then(|target| target.as_str()?.strip_prefix(TYPES)));
            fields.values().for_each(|field| collect(field, found));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        _ => {}
    }
}
