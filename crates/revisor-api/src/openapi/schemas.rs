//! The types of a group and version, named and shaped as clients know them.
//!
//! What a field may hold comes from the table of fields. What the table does not say, because the server itself has no
//! use for it, stands here: which fields a client must give, and what makes the items of a list distinct.

use std::collections::BTreeMap;

use revisor_catalog::GroupVersion;
use revisor_schema::{Field, Presence, Shape, Struct, StructId, Types};
use serde_json::{Map, Value, json};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

/// Types that all groups share.
const META_TYPES: &[&str] = &["DeleteOptions", "ManagedFieldsEntry", "ObjectMeta", "OwnerReference", "Preconditions"];

/// The fields that a client must give, by type.
const REQUIRED: &[(&str, &[&str])] = &[
    ("Event", &["metadata", "involvedObject"]),
    ("NamespaceCondition", &["type", "status"]),
    ("OwnerReference", &["apiVersion", "kind", "name", "uid"]),
];

/// Types that are changed as a whole.
const ATOMIC: &[&str] = &["LocalObjectReference", "ObjectReference", "OwnerReference"];

/// What tells the items of a list apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Items {
    /// Nothing: the list is changed as a whole.
    Atomic,
    /// Their value.
    Set,
    /// This field.
    Map(&'static str),
}

/// By type and field, what a list is.
const LISTS: &[(&str, &str, Items)] = &[
    ("DeleteOptions", "dryRun", Items::Atomic),
    ("NamespaceSpec", "finalizers", Items::Atomic),
    ("NamespaceStatus", "conditions", Items::Map("type")),
    ("ObjectMeta", "finalizers", Items::Set),
    ("ObjectMeta", "managedFields", Items::Atomic),
    ("ObjectMeta", "ownerReferences", Items::Map("uid")),
    ("ServiceAccount", "imagePullSecrets", Items::Atomic),
    ("ServiceAccount", "secrets", Items::Map("name")),
];

/// Fields of any shape whose type has a name nevertheless.
const NAMED: &[(&str, &str, &str)] = &[("ManagedFieldsEntry", "fieldsV1", "FieldsV1")];

/// The full name of a type that all groups share.
pub(super) fn meta(name: &str) -> String {
    format!("{META}.{name}")
}

/// The full name of a type that is used in this group and version.
pub(super) fn qualified(group: &str, version: &str, name: &str) -> String {
    if META_TYPES.contains(&name) { meta(name) } else { format!("io.k8s.api.{}.{version}.{name}", short_group(group)) }
}

/// `coordination` of `coordination.k8s.io`, and `core` for the group without a name.
pub(super) fn short_group(group: &str) -> &str {
    match group.split('.').next().unwrap_or_default() {
        "" => "core",
        first => first,
    }
}

/// Points to the type with this full name.
pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// All types that the operations of a group and version mention, and those which these are made of.
pub(super) fn of(types: &Types, known: &GroupVersion) -> Value {
    let mut schemas = Schemas { types, known, named: general() };
    let mut roots: Vec<&str> = known.resources.iter().map(|resource| resource.kind).collect();
    roots.push("DeleteOptions");
    for id in roots.iter().filter_map(|name| types.id(name)) {
        schemas.add(id);
    }
    let GroupVersion { group, version, .. } = *known;
    for resource in &known.resources {
        let own = |kind: &str| json!([{"group": group, "version": version, "kind": kind}]);
        if let Some(schema) = schemas.named.get_mut(&qualified(group, version, resource.kind)) {
            schema["x-kubernetes-group-version-kind"] = own(resource.kind);
        }
        let list = json!({
            "type": "object",
            "description": format!("A list of {} objects.", resource.kind),
            "required": ["items"],
            "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "metadata": of_type(&meta("ListMeta"), true),
                "items": {"type": "array", "items": of_type(&qualified(group, version, resource.kind), true)},
            },
            "x-kubernetes-group-version-kind": own(&resource.list_kind),
        });
        schemas.named.insert(qualified(group, version, &resource.list_kind), list);
    }
    if let Some(schema) = schemas.named.get_mut(&meta("DeleteOptions")) {
        schema["x-kubernetes-group-version-kind"] =
            json!([{"group": group, "version": version, "kind": "DeleteOptions"}]);
    }
    schemas.named.into_iter().collect()
}

/// Types that are no table's business: no client sends them as objects, or they have no fields.
fn general() -> BTreeMap<String, Value> {
    let text = || json!({"type": "string"});
    let core = |kind: &str| json!([{"group": "", "version": "v1", "kind": kind}]);
    let types = [
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
    types.into_iter().map(|(name, schema)| (meta(name), schema)).collect()
}

/// A value of a named type. Beside a reference nothing else may stand, hence the list of one.
fn of_type(name: &str, has_default: bool) -> Value {
    let mut schema = json!({"allOf": [reference(name)]});
    if has_default {
        schema["default"] = json!({});
    }
    schema
}

struct Schemas<'a> {
    types: &'a Types,
    known: &'a GroupVersion,
    named: BTreeMap<String, Value>,
}

impl Schemas<'_> {
    fn name(&self, of: &Struct) -> String {
        qualified(self.known.group, self.known.version, &of.name)
    }

    /// Adds a type and, where it is new, the types of its fields. Types may contain each other: one that is under way
    /// has its place already.
    fn add(&mut self, id: StructId) {
        let types = self.types;
        let of = types.get(id);
        let name = self.name(of);
        if self.named.contains_key(&name) {
            return;
        }
        self.named.insert(name.clone(), Value::Null);
        let properties: Map<String, Value> =
            of.fields.iter().map(|field| (field.name.to_string(), self.field(of, field))).collect();
        let mut schema = json!({"type": "object", "properties": properties});
        if let Some((_, required)) = REQUIRED.iter().find(|(known, _)| **known == *of.name) {
            schema["required"] = json!(required);
        }
        if ATOMIC.contains(&&*of.name) {
            schema["x-kubernetes-map-type"] = json!("atomic");
        }
        self.named.insert(name, schema);
    }

    fn field(&mut self, of: &Struct, field: &Field) -> Value {
        let is = |known: &str, name: &str| *known == *of.name && *name == *field.name;
        if let Some((.., named)) = NAMED.iter().find(|(known, name, _)| is(known, name)) {
            return of_type(&meta(named), false);
        }
        let mut schema = self.shape(&field.shape, field.presence == Presence::Always);
        if let Some((.., items)) = LISTS.iter().find(|(known, name, _)| is(known, name)) {
            let kind = match items {
                Items::Atomic => "atomic",
                Items::Set => "set",
                Items::Map(_) => "map",
            };
            schema["x-kubernetes-list-type"] = json!(kind);
            if let Items::Map(key) = items {
                schema["x-kubernetes-list-map-keys"] = json!([key]);
                schema["x-kubernetes-patch-merge-key"] = json!(key);
            }
            if *items != Items::Atomic {
                schema["x-kubernetes-patch-strategy"] = json!("merge");
            }
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
            Shape::Time => return of_type(&meta("Time"), false),
            Shape::MicroTime => return of_type(&meta("MicroTime"), false),
            Shape::Any => return json!({}),
            Shape::List(items) => return json!({"type": "array", "items": self.shape(items, true)}),
            Shape::Map(values) => return json!({"type": "object", "additionalProperties": self.shape(values, true)}),
            Shape::Struct(id) => {
                self.add(*id);
                (of_type(&self.name(self.types.get(*id)), false), json!({}))
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

    #[test]
    fn what_is_said_about_fields_is_about_fields_that_there_are() {
        let catalog = Catalog::build();
        let types = catalog.types();
        let find = |of: &str, field: &str| {
            let found = types.id(of).and_then(|id| types.get(id).field(field));
            found.unwrap_or_else(|| panic!("{of}.{field} is in the table")).shape.clone()
        };
        for (of, fields) in REQUIRED {
            for field in *fields {
                find(of, field);
            }
        }
        for (of, field, items) in LISTS {
            let Shape::List(element) = find(of, field) else { panic!("{of}.{field} is a list") };
            if let (Items::Map(key), Shape::Struct(id)) = (items, &*element) {
                assert!(types.get(*id).field(key).is_some(), "{of}.{field} has the key {key}");
            }
        }
        for (of, field, _) in NAMED {
            assert_eq!(find(of, field), Shape::Any);
        }
        for name in ATOMIC.iter().chain(META_TYPES) {
            assert!(types.id(name).is_some(), "{name}");
        }
    }

    #[test]
    fn names_are_those_that_clients_know() {
        for (group, name, want) in [
            ("", "ConfigMap", "io.k8s.api.core.v1.ConfigMap"),
            ("coordination.k8s.io", "LeaseSpec", "io.k8s.api.coordination.v1.LeaseSpec"),
            ("coordination.k8s.io", "ObjectMeta", "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"),
            ("rbac.authorization.k8s.io", "Role", "io.k8s.api.rbac.v1.Role"),
        ] {
            assert_eq!(qualified(group, "v1", name), want);
        }
    }
}
