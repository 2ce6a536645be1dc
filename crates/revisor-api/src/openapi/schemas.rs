//! The types of a group and version, named and shaped as clients know them.
//!
//! All of it comes from the table of fields, or from the definitions of custom resources; only the types that no client
//! sends as objects stand here.

use std::collections::BTreeMap;

use revisor_catalog::{Catalog, GroupVersion, Resource, Subresource};
use revisor_schema::{Alternative, Field, Merge, Presence, Shape, StructId, Topology, Types};
use serde_json::{Map, Value, json};

use super::custom::{self, Form};
use super::descriptions::Descriptions;
use super::general::{self, INT_OR_STRING, JSON, QUANTITY, RAW};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// What the names of the types of definitions begin with.
const DEFINITIONS: &str = "io.k8s.apiextensions-apiserver.";

/// Where a schema says which kinds it is about.
pub(super) const KINDS: &str = "x-kubernetes-group-version-kind";

/// The full name of a type that all groups share.
pub(super) fn meta(name: &str) -> String {
    format!("{META}.{name}")
}

/// The full name of a kind of the group and version of this resource.
pub(super) fn kind_name(resource: &Resource, kind: &str) -> String {
    let Resource { group, version, .. } = resource;
    if resource.custom().is_none() {
        return full_name(&format!("{}.{version}.{kind}", short_group(group)));
    }
    let domain: Vec<&str> = group.rsplit('.').collect();
    format!("{}.{version}.{kind}", domain.join("."))
}

/// The full name of what a subresource speaks of, where that is another kind than the resource's.
pub(super) fn part_name(types: &Types, resource: &Resource, part: &Subresource) -> Option<String> {
    let of = types.id(&other_type(resource, part)?)?;
    Some(full_name(&types.get(of).name))
}

/// The full name of a type of the table.
fn full_name(name: &str) -> String {
    match name.split_once('.') {
        Some(("meta", _)) => format!("io.k8s.apimachinery.pkg.apis.{name}"),
        Some(("apiextensions", _)) => format!("io.k8s.apiextensions-apiserver.pkg.apis.{name}"),
        Some(("apiregistration", _)) => format!("io.k8s.kube-aggregator.pkg.apis.{name}"),
        // The one group that is the server's own.
        Some(("versioning", _)) => format!("dev.revisor.{name}"),
        _ => format!("io.k8s.api.{name}"),
    }
}

/// What types are named by: `coordination` of `coordination.k8s.io`, and `core` for the group without a name.
pub(super) fn short_group(group: &str) -> &str {
    match group.split('.').next().unwrap_or_default() {
        "" => "core",
        "internal" => "apiserverinternal",
        first => first,
    }
}

/// Points to the type with this full name.
pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// All built-in types that operations can mention, and those which these are made of.
///
/// Of the types that belong to all groups and versions alike, [`KINDS`] are those of all that is built in.
pub(super) fn built_in(catalog: &Catalog, texts: &Descriptions) -> BTreeMap<String, Value> {
    let is_built_in = |resource: &Resource| resource.custom().is_none();
    let mut schemas = Schemas { types: catalog.types(), named: general::types(texts) };
    let mut known: Vec<(&str, &str)> = Vec::new();
    for version in catalog.group_versions() {
        for resource in version.resources.iter().filter(|resource| is_built_in(resource)) {
            known.push((version.group.as_str(), version.version.as_str()));
            schemas.add(resource.root());
            for part in &resource.subresources {
                schemas.add_part(resource, part);
            }
            let name = kind_name(resource, &resource.kind);
            if let Some(schema) = schemas.named.get_mut(&name) {
                schema[KINDS] = kinds(&[(&version.group, &version.version)], &resource.kind);
            }
            schemas.named.insert(kind_name(resource, &resource.list_kind), list(resource, texts));
        }
    }
    for name in ["meta.v1.DeleteOptions", "meta.v1.ObjectMeta"] {
        if let Some(id) = schemas.types.id(name) {
            schemas.add(id);
        }
    }
    known.sort_unstable();
    known.dedup();
    for kind in SHARED_KINDS {
        if let Some(schema) = schemas.named.get_mut(&meta(kind)) {
            schema[KINDS] = kinds(&known, kind);
        }
    }
    for (name, schema) in &mut schemas.named {
        texts.describe(name, schema);
        if schema.get(KINDS).is_some() {
            describe_common(schema, texts);
        }
        bare_references(schema);
    }
    schemas.named
}

/// Kinds that there are in every group and version.
const SHARED_KINDS: [&str; 2] = ["DeleteOptions", "WatchEvent"];

/// Which of the kinds that there are everywhere a built-in group and version has: its own and those of the core.
pub(super) fn shared_kinds(known: &GroupVersion) -> impl Iterator<Item = (String, Value)> {
    let mut versions = vec![("", "v1"), (known.group.as_str(), known.version.as_str())];
    versions.dedup();
    SHARED_KINDS.iter().map(move |kind| (meta(kind), kinds(&versions, kind)))
}

/// The types of the custom resources of a group and version.
pub(super) fn custom(known: &GroupVersion, texts: &Descriptions, form: Form) -> BTreeMap<String, Value> {
    let mut named = BTreeMap::new();
    for resource in &known.resources {
        let Some(custom) = resource.custom() else { continue };
        let mut schema = custom::schema(resource, custom, texts, form);
        describe_common(&mut schema, texts);
        named.insert(kind_name(resource, &resource.kind), schema);
        named.insert(kind_name(resource, &resource.list_kind), list(resource, texts));
    }
    named
}

fn describe_common(schema: &mut Value, texts: &Descriptions) {
    for (field, property) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        texts.describe_common(field, property);
    }
}

/// The type of the lists of a resource.
fn list(resource: &Resource, texts: &Descriptions) -> Value {
    let is_built_in = resource.custom().is_none();
    let name = kind_name(resource, &resource.kind);
    let mut list = json!({
        "type": "object",
        "description": format!("A list of {} objects.", resource.kind),
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": of_type(&meta("ListMeta"), is_built_in),
            "items": {"type": "array", "items": if is_built_in { of_type(&name, true) } else { reference(&name) }},
        },
    });
    list[KINDS] = kinds(&[(&resource.group, &resource.version)], &resource.list_kind);
    for field in ["apiVersion", "kind"] {
        texts.describe_common(field, &mut list["properties"][field]);
    }
    if let Some(fields) = resource.custom().and_then(custom::selectable_fields) {
        list["x-kubernetes-selectable-fields"] = fields;
    }
    list
}

fn kinds(versions: &[(&str, &str)], kind: &str) -> Value {
    versions.iter().map(|(group, version)| json!({"group": group, "version": version, "kind": kind})).collect()
}

/// A reference that nothing stands beside needs no list around it.
fn bare_references(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.len() == 1
                && let Some(target) = fields.get("allOf").and_then(|all| all.get(0)?.get("$ref")).cloned()
            {
                *schema = json!({"$ref": target});
                return;
            }
            fields.values_mut().for_each(bare_references);
        }
        Value::Array(items) => items.iter_mut().for_each(bare_references),
        _ => {}
    }
}

/// The name in the table of another kind that a subresource speaks of.
fn other_type(resource: &Resource, part: &Subresource) -> Option<String> {
    let (api_version, kind) = part.other_kind?;
    let (group, version) = api_version.split_once('/').unwrap_or((&resource.group, &resource.version));
    Some(format!("{}.{version}.{kind}", short_group(group)))
}

/// A value of a named type. Beside a reference nothing else may stand, hence the list of one.
pub(super) fn of_type(name: &str, has_default: bool) -> Value {
    let mut schema = json!({"allOf": [reference(name)]});
    if has_default {
        schema["default"] = json!({});
    }
    schema
}

struct Schemas<'a> {
    types: &'a Types,
    named: BTreeMap<String, Value>,
}

impl Schemas<'_> {
    /// Adds another kind that a subresource speaks of.
    fn add_part(&mut self, resource: &Resource, part: &Subresource) {
        let Some(id) = other_type(resource, part).and_then(|name| self.types.id(&name)) else { return };
        self.add(id);
        let Some((api_version, kind)) = part.other_kind else { return };
        let (group, version) = api_version.split_once('/').unwrap_or((&resource.group, &resource.version));
        if let Some(schema) = self.named.get_mut(&full_name(&self.types.get(id).name)) {
            schema[KINDS] = kinds(&[(group, version)], kind);
        }
    }

    /// Adds a type and, where it is new, the types of its fields. Types may contain each other: one that is under way
    /// has its place already.
    fn add(&mut self, id: StructId) {
        let types = self.types;
        let of = types.get(id);
        let name = full_name(&of.name);
        if self.named.contains_key(&name) {
            return;
        }
        self.named.insert(name.clone(), Value::Null);
        let any = if name.starts_with(DEFINITIONS) { JSON } else { RAW };
        let properties: Map<String, Value> =
            of.fields.iter().map(|field| (field.name.to_string(), self.field(field, any))).collect();
        let mut schema = json!({"type": "object"});
        if !properties.is_empty() {
            schema["properties"] = Value::Object(properties);
        }
        let required: Vec<&str> = of.fields.iter().filter(|field| field.required).map(|field| &*field.name).collect();
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        if of.is_atomic {
            schema["x-kubernetes-map-type"] = json!("atomic");
        }
        self.named.insert(name, schema);
    }

    fn field(&mut self, field: &Field, any: &str) -> Value {
        if (&*field.name, &field.shape) == ("fieldsV1", &Shape::Any) {
            return of_type(&meta("FieldsV1"), false);
        }
        let mut schema = self.shape(&field.shape, field.presence == Presence::Always, any);
        let is_list = matches!(field.shape, Shape::List(_) | Shape::Bytes);
        match &field.topology {
            Topology::Usual => {}
            Topology::Atomic if is_list => schema["x-kubernetes-list-type"] = json!("atomic"),
            Topology::Atomic => schema["x-kubernetes-map-type"] = json!("atomic"),
            Topology::Granular => schema["x-kubernetes-map-type"] = json!("granular"),
            Topology::Set => schema["x-kubernetes-list-type"] = json!("set"),
            Topology::ByKeys(keys) => {
                schema["x-kubernetes-list-type"] = json!("map");
                schema["x-kubernetes-list-map-keys"] = json!(keys);
            }
        }
        let strategy = match &field.merge {
            Merge::Plain => "",
            Merge::Replace => "replace",
            Merge::Set | Merge::ByKey(_) => "merge",
        };
        if let Merge::ByKey(key) = &field.merge {
            schema["x-kubernetes-patch-merge-key"] = json!(key);
        }
        let retain_keys = field.retain_keys.then_some("retainKeys");
        let strategies: Vec<&str> =
            Some(strategy).filter(|text| !text.is_empty()).into_iter().chain(retain_keys).collect();
        if !strategies.is_empty() {
            schema["x-kubernetes-patch-strategy"] = json!(strategies.join(","));
        }
        schema
    }

    /// `always` says whether the zero value stands in for a missing one, `any` what a value of any kind is called.
    fn shape(&mut self, shape: &Shape, always: bool, any: &str) -> Value {
        let (mut schema, zero) = match shape {
            Shape::String => (json!({"type": "string"}), json!("")),
            Shape::Bool => (json!({"type": "boolean"}), json!(false)),
            Shape::Int32 => (json!({"type": "integer", "format": "int32"}), json!(0)),
            Shape::Int64 => (json!({"type": "integer", "format": "int64"}), json!(0)),
            // A missing value of these is null, not empty.
            Shape::Bytes => return json!({"type": "string", "format": "byte"}),
            Shape::Double => (json!({"type": "number", "format": "double"}), json!(0)),
            Shape::Time => return of_type(&meta("Time"), false),
            Shape::Duration => return of_type(&meta("Duration"), false),
            Shape::Quantity => return of_type(QUANTITY, false),
            Shape::IntOrString => return of_type(INT_OR_STRING, false),
            Shape::MicroTime => return of_type(&meta("MicroTime"), false),
            Shape::Any | Shape::Raw => return of_type(any, false),
            Shape::List(items) => return json!({"type": "array", "items": self.shape(items, true, any)}),
            Shape::Map(values) => {
                return json!({"type": "object", "additionalProperties": self.shape(values, true, any)});
            }
            Shape::Struct(id) => {
                self.add(*id);
                (of_type(&full_name(&self.types.get(*id).name), false), json!({}))
            }
            Shape::Either(alternative, id) => {
                self.add(*id);
                let suffix = match alternative {
                    Alternative::Bool => "OrBool",
                    Alternative::List => "OrArray",
                    Alternative::Texts => "OrStringArray",
                };
                let name = full_name(&format!("{}{suffix}", self.types.get(*id).name));
                let schema = of_type(&name, false);
                // No schema can say what such a value is.
                self.named.insert(name, json!({}));
                return schema;
            }
        };
        if always {
            schema["default"] = zero;
        }
        schema
    }
}

#[cfg(test)]
mod tests {
    use revisor_catalog::Catalog;

    use super::*;
    use crate::custom_fixture::{defined, with_definition};

    #[test]
    fn names_are_those_that_clients_know() {
        let catalog = with_definition(&Catalog::default(), &defined("disco.example.com", "Gadget", "{}"));
        for (group, name, want) in [
            ("", "configmaps", "io.k8s.api.core.v1.ConfigMap"),
            ("coordination.k8s.io", "leases", "io.k8s.api.coordination.v1.Lease"),
            ("rbac.authorization.k8s.io", "roles", "io.k8s.api.rbac.v1.Role"),
            ("disco.example.com", "gadgets", "com.example.disco.v1.Gadget"),
        ] {
            let resource = catalog.resource(group, "v1", name).expect("is served");
            assert_eq!(kind_name(resource, &resource.kind), want);
        }
    }
}
