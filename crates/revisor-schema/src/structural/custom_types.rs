//! The types of custom objects as server-side apply sees them.
//!
//! Every object of a schema becomes a type: its properties are the fields, and what else it may have is said of all
//! other members. Where a schema says nothing, values are seen as what they are: objects as many values, lists as one.

use super::metadata::MetadataType;
use super::{Additional, JsonType, ListType, Structural};
use crate::types::Inside;
use crate::{Field, Fields, Merge, Presence, Shape, Struct, StructId, Topology, Types};

/// The type of values of which the schema says nothing.
const DEDUCED: &str = "deduced";

/// A table with the type `name` of objects with this schema.
pub(crate) fn types_of(schema: &Structural, name: &str, metadata: MetadataType<'_>) -> (Types, StructId) {
    let mut builder = Builder { types: Types::default(), metadata, name, count: 0 };
    let id = builder.object(schema, false, true);
    (builder.types, id)
}

struct Builder<'t> {
    types: Types,
    metadata: MetadataType<'t>,
    name: &'t str,
    count: u32,
}

impl Builder<'_> {
    /// `preserves`: something around it preserves what is unknown, and so does all that is below.
    fn node(&mut self, schema: &Structural, preserves: bool) -> (Shape, Topology) {
        let preserves = preserves || schema.preserves_unknown_fields;
        match schema.kind {
            _ if schema.is_int_or_string => (self.deduced().shape, Topology::Usual),
            // A text with a format is any scalar: its format may say that it is a number.
            Some(JsonType::String) if has_format(schema) => (Shape::IntOrString, Topology::Usual),
            Some(JsonType::String) => (Shape::String, Topology::Usual),
            Some(JsonType::Integer) => (Shape::Int64, Topology::Usual),
            Some(JsonType::Number) => (Shape::Double, Topology::Usual),
            Some(JsonType::Boolean) => (Shape::Bool, Topology::Usual),
            Some(JsonType::Array) => {
                let element = schema.items.as_ref().map_or(Shape::Any, |items| self.node(items, preserves).0);
                let topology = match schema.list_type {
                    Some(ListType::Set) => Topology::Set,
                    Some(ListType::Map) => Topology::ByKeys(schema.list_map_keys.clone()),
                    Some(ListType::Atomic) | None => Topology::Atomic,
                };
                (Shape::List(Box::new(element)), topology)
            }
            Some(JsonType::Object) | None => (Shape::Struct(self.object(schema, preserves, false)), Topology::Usual),
        }
    }

    fn object(&mut self, schema: &Structural, preserves: bool, is_root: bool) -> StructId {
        let preserves = preserves || schema.preserves_unknown_fields;
        let is_resource = is_root || schema.is_embedded_resource;
        let mut fields = Vec::with_capacity(schema.properties.len() + 3);
        if is_resource {
            let metadata = self.types.copy(self.metadata.types, self.metadata.id);
            fields.push(field("apiVersion", Shape::String, Topology::Usual));
            fields.push(field("kind", Shape::String, Topology::Usual));
            let mut metadata = field("metadata", Shape::Struct(metadata), Topology::Usual);
            if is_root {
                metadata.presence = Presence::Always;
            }
            fields.push(metadata);
        }
        for (name, property) in &schema.properties {
            if is_resource && matches!(&**name, "apiVersion" | "kind" | "metadata") {
                continue;
            }
            let (shape, topology) = self.node(property, preserves);
            // Lists whose elements lack a key tell them apart by its default.
            fields.push(Field { default: property.default.clone(), ..field(name, shape, topology) });
        }
        let others = match &schema.additional {
            Some(Additional::Schema(schema)) => {
                let (shape, topology) = self.node(schema, preserves);
                Some(field("", shape, topology))
            }
            Some(Additional::Allowed(true)) => Some(self.deduced()),
            Some(Additional::Allowed(false)) => None,
            None => (preserves || fields.is_empty()).then(|| self.deduced()),
        };
        self.count += 1;
        self.types.push(Struct {
            name: format!("{}#{}", self.name, self.count).into(),
            fields: fields.into(),
            is_atomic: schema.is_atomic_map,
            others: others.map(Box::new),
            is_open: schema.kind.is_none() && !is_root,
            inside: Inside::default(),
            defaulted: Box::default(),
        })
    }

    fn deduced(&mut self) -> Field {
        let id = match self.types.id(DEDUCED) {
            Some(id) => id,
            None => {
                let of = Struct {
                    name: DEDUCED.into(),
                    fields: Fields::default(),
                    is_atomic: false,
                    others: None,
                    is_open: true,
                    inside: Inside::default(),
                    defaulted: Box::default(),
                };
                let id = self.types.push(of);
                self.types.get_mut(id).others = Some(Box::new(field("", Shape::Struct(id), Topology::Usual)));
                id
            }
        };
        field("", Shape::Struct(id), Topology::Usual)
    }
}

fn has_format(schema: &Structural) -> bool {
    schema.checks.as_ref().is_some_and(|checks| !matches!(&*checks.format, "" | "byte"))
}

fn field(name: &str, shape: Shape, topology: Topology) -> Field {
    Field {
        name: name.into(),
        step: format!("f:{name}").into(),
        shape,
        presence: Presence::Given,
        number: None,
        merge: Merge::Plain,
        retain_keys: false,
        topology,
        required: false,
        default: None,
        go_type: None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{metadata_types, schema};
    use super::*;

    #[test]
    fn schemas_become_types() {
        let metadata_types = metadata_types();
        let metadata =
            MetadataType { types: &metadata_types, id: metadata_types.id("meta.v1.ObjectMeta").expect("is there") };
        let schema = schema(
            r#"{"type":"object","properties":{
                "n":{"type":"integer","default":3},
                "s":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
                "k":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["a"],
                     "items":{"type":"object","properties":{"a":{"type":"string","default":"x"}}}},
                "m":{"type":"object","additionalProperties":{"type":"array","x-kubernetes-list-type":"set",
                     "items":{"type":"string"}}},
                "at":{"type":"object","x-kubernetes-map-type":"atomic","properties":{"a":{"type":"string"}}},
                "open":{"x-kubernetes-preserve-unknown-fields":true,
                        "properties":{"inner":{"type":"object","properties":{"b":{"type":"string"}}}}},
                "e":{"type":"object","x-kubernetes-embedded-resource":true}}}"#,
        );
        let (types, id) = types_of(&schema, "T", metadata);
        let of = |field: &Field| match &field.shape {
            Shape::Struct(id) => types.get(*id).clone(),
            other => panic!("{other:?} is no type"),
        };
        let root = types.get(id);
        assert!(root.others.is_none());
        let field = |name: &str| root.field(name).expect(name);
        assert_eq!(field("metadata").presence, Presence::Always);
        assert!(of(field("metadata")).field("ownerReferences").is_some());
        assert_eq!(field("n").shape, Shape::Int64);
        assert_eq!(field("s").topology, Topology::Set);
        assert_eq!(field("k").topology, Topology::ByKeys(vec!["a".into()]));
        assert_eq!(of(field("m")).others.expect("are known").topology, Topology::Set);
        assert!(of(field("at")).is_atomic);
        let open = of(field("open"));
        assert!(of(open.others.as_deref().expect("are known")).others.is_some());
        assert!(of(open.field("inner").expect("is there")).others.is_some(), "below it all is preserved");
        assert!(of(field("e")).field("metadata").is_some());
        assert!(of(field("e")).others.is_none());
    }
}
