//! The types of a group and version, named and shaped as clients know them.
//!
//! All of it comes from the table of fields, or from the definitions of custom resources; only the types that no client
//! sends as objects stand here.

use std::collections::BTreeMap;

use revisor_catalog::{GroupVersion, Resource, Subresource};
use revisor_schema::{Alternative, Field, Merge, Presence, Shape, StructId, Topology, Types};
use serde_json::{Map, Value, json};

use super::custom::{self, Form};
use super::descriptions::Descriptions;

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// The names of types that have no fields of their own.
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";

/// The full name of what the server says of its own version.
pub(super) const VERSION: &str = "io.k8s.apimachinery.pkg.version.Info";

/// What it says beside that: as which releases the server behaves.
const RELEASE_FIELDS: [&str; 4] =
    ["emulationMajor", "emulationMinor", "minCompatibilityMajor", "minCompatibilityMinor"];

/// What it says at least.
const VERSION_FIELDS: [&str; 9] =
    ["buildDate", "compiler", "gitCommit", "gitTreeState", "gitVersion", "goVersion", "major", "minor", "platform"];

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

/// All types that the operations of a group and version mention, and those which these are made of.
pub(super) fn of(types: &Types, known: &GroupVersion, texts: &Descriptions, form: Form) -> BTreeMap<String, Value> {
    let mut schemas = Schemas { types, named: general() };
    for resource in &known.resources {
        // The types of a custom resource are in a table of its own; what this one knows of it is its metadata.
        let own = if resource.custom().is_some() { types.id("meta.v1.ObjectMeta") } else { Some(resource.root()) };
        if let Some(id) = own {
            schemas.add(id);
        }
        if let Some(custom) = resource.custom() {
            let schema = custom::schema(resource, custom, texts, form);
            schemas.named.insert(kind_name(resource, &resource.kind), schema);
        }
        for part in &resource.subresources {
            schemas.add_part(resource, part);
        }
    }
    if let Some(id) = types.id("meta.v1.DeleteOptions") {
        schemas.add(id);
    }
    let (group, version) = (known.group.as_str(), known.version.as_str());
    for resource in &known.resources {
        let own = |kind: &str| json!([{"group": group, "version": version, "kind": kind}]);
        let name = kind_name(resource, &resource.kind);
        if let Some(schema) = schemas.named.get_mut(&name) {
            schema["x-kubernetes-group-version-kind"] = own(&resource.kind);
        }
        let is_built_in = resource.custom().is_none();
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
            "x-kubernetes-group-version-kind": own(&resource.list_kind),
        });
        for field in ["apiVersion", "kind"] {
            texts.describe_common(field, &mut list["properties"][field]);
        }
        if let Some(fields) = resource.custom().and_then(custom::selectable_fields) {
            list["x-kubernetes-selectable-fields"] = fields;
        }
        schemas.named.insert(kind_name(resource, &resource.list_kind), list);
    }
    if let Some(schema) = schemas.named.get_mut(&meta("DeleteOptions")) {
        schema["x-kubernetes-group-version-kind"] =
            json!([{"group": group, "version": version, "kind": "DeleteOptions"}]);
    }
    for (name, schema) in &mut schemas.named {
        texts.describe(name, schema);
    }
    for resource in &known.resources {
        let properties =
            schemas.named.get_mut(&kind_name(resource, &resource.kind)).and_then(|of| of.get_mut("properties"));
        for (field, property) in properties.and_then(Value::as_object_mut).into_iter().flatten() {
            texts.describe_common(field, property);
        }
    }
    schemas.named
}

/// The type of what the server says of its own version, with its name.
pub(super) fn of_version(texts: &Descriptions) -> (String, Value) {
    let always = VERSION_FIELDS.map(|name| (name.to_owned(), json!({"type": "string", "default": ""})));
    let others = RELEASE_FIELDS.map(|name| (name.to_owned(), json!({"type": "string"})));
    let fields: Map<String, Value> = always.into_iter().chain(others).collect();
    let mut schema = json!({"type": "object", "required": VERSION_FIELDS, "properties": fields});
    texts.describe(VERSION, &mut schema);
    (VERSION.to_owned(), schema)
}

/// The name in the table of another kind that a subresource speaks of.
fn other_type(resource: &Resource, part: &Subresource) -> Option<String> {
    let (api_version, kind) = part.other_kind?;
    let (group, version) = api_version.split_once('/').unwrap_or((&resource.group, &resource.version));
    Some(format!("{}.{version}.{kind}", short_group(group)))
}

/// Types that are no table's business: no client sends them as objects, or they have no fields.
fn general() -> BTreeMap<String, Value> {
    let text = || json!({"type": "string"});
    let core = |kind: &str| json!([{"group": "", "version": "v1", "kind": kind}]);
    let types = [
        ("Duration", json!({"type": "string"})),
        ("FieldsV1", json!({"type": "object"})),
        ("MicroTime", json!({"type": "string", "format": "date-time"})),
        ("Patch", json!({"type": "object"})),
        ("Time", json!({"type": "string", "format": "date-time"})),
        (
            "ListMeta",
            json!({"type": "object", "properties": {
                "continue": text(),
                "remainingItemCount": {"type": "integer", "format": "int64"},
                "resourceVersion": text(),
                "selfLink": text(),
            }}),
        ),
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
                "causes": {
                    "type": "array",
                    "items": of_type(&meta("StatusCause"), true),
                    "x-kubernetes-list-type": "atomic",
                },
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
                "properties": {"type": {"type": "string", "default": ""}, "object": {"type": "object"}},
                "x-kubernetes-group-version-kind": core("WatchEvent"),
            }),
        ),
    ];
    let others = [
        (QUANTITY.to_owned(), json!({"oneOf": [{"type": "string"}, {"type": "number"}]})),
        (
            INT_OR_STRING.to_owned(),
            json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}),
        ),
    ];
    types.into_iter().map(|(name, schema)| (meta(name), schema)).chain(others).collect()
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
            schema["x-kubernetes-group-version-kind"] = json!([{"group": group, "version": version, "kind": kind}]);
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
        let properties: Map<String, Value> =
            of.fields.iter().map(|field| (field.name.to_string(), self.field(field))).collect();
        let mut schema = json!({"type": "object", "properties": properties});
        let required: Vec<&str> = of.fields.iter().filter(|field| field.required).map(|field| &*field.name).collect();
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        if of.is_atomic {
            schema["x-kubernetes-map-type"] = json!("atomic");
        }
        self.named.insert(name, schema);
    }

    fn field(&mut self, field: &Field) -> Value {
        if (&*field.name, &field.shape) == ("fieldsV1", &Shape::Any) {
            return of_type(&meta("FieldsV1"), false);
        }
        let mut schema = self.shape(&field.shape, field.presence == Presence::Always);
        if let Some(default) = &field.default {
            schema["default"] = serde_json::from_str(&default.to_json()).unwrap_or_default();
        }
        let is_list = matches!(field.shape, Shape::List(_));
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

    /// `always` says whether the zero value stands in for a missing one.
    fn shape(&mut self, shape: &Shape, always: bool) -> Value {
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
            Shape::Any => return json!({}),
            Shape::List(items) => return json!({"type": "array", "items": self.shape(items, true)}),
            Shape::Map(values) => return json!({"type": "object", "additionalProperties": self.shape(values, true)}),
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
        let catalog = with_definition(&Catalog::default(), &defined("disco.example.com", "Gadget", "{}"), 1);
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
