//! [`SchemaType`]: what an expression may know of a value from its schema: its type, and how large it may become.
//!
//! The sizes are for the estimate of costs (`cost.rs`). Objects get their names from the place where they stand below
//! the value that is spoken of, so that one tree serves all rules of a schema, wherever in it they are.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use revisor_object::Value;
use revisor_schema::{Additional, Checks, JsonType, Shape, StructId, Structural, Types};

use crate::eval::escaping::escape;
use crate::types::Type;

/// How large a request may be, in bytes: no value can be larger.
pub(crate) const LARGEST_REQUEST: i64 = 3 * 1024 * 1024;

/// The last step of the name of what is in a list or a map.
const ELEMENT_OF_LIST: &str = "@idx";
const ELEMENT_OF_MAP: &str = "@elem";

/// The type of a value as its schema has it.
#[derive(Debug)]
pub struct SchemaType {
    shape: SchemaShape,
    /// How many characters, elements or members the value may have; 0 where none are counted.
    pub(crate) most: i64,
    /// How many bytes of JSON the value takes at least.
    pub(crate) smallest: i64,
}

#[derive(Debug)]
enum SchemaShape {
    Simple(Type),
    List(Arc<SchemaType>),
    /// From strings to these.
    Map {
        element: Arc<SchemaType>,
        /// How long a key may be; 0 where that is not counted.
        longest_key: i64,
        /// Whether a member that is spoken of as a field has the size of every other.
        sizes_fields: bool,
    },
    Object {
        /// The fields by the names that they have in expressions.
        fields: BTreeMap<String, Arc<SchemaType>>,
        /// The fields that expressions cannot name, by the names that they have.
        unnamed: BTreeMap<String, Arc<SchemaType>>,
    },
}

impl SchemaType {
    /// What the schema says, or nothing if expressions cannot speak of such a value.
    ///
    /// With `is_resource`, the value is an object of the API: its type and name are there even if the schema is silent.
    pub fn of(schema: &Structural, is_resource: bool) -> Option<Arc<SchemaType>> {
        let nothing = Checks::default();
        let checks = schema.checks.as_deref().unwrap_or(&nothing);
        let max_length = checks.max_length.map(|most| most.max(0));
        if schema.is_int_or_string {
            let most = max_length.map_or(LARGEST_REQUEST - 2, |most| most.saturating_mul(4));
            return Some(SchemaType::simple(Type::Dyn, most, 1));
        }
        Some(match schema.kind? {
            JsonType::Array => {
                let items = schema.items.as_deref()?;
                let element = SchemaType::of(items, items.is_embedded_resource)?;
                let most = match checks.max_items {
                    Some(most) => most.max(0),
                    None => (LARGEST_REQUEST - 2) / element.smallest.saturating_add(1),
                };
                Arc::new(SchemaType { shape: SchemaShape::List(element), most, smallest: 2 })
            }
            JsonType::Object => match &schema.additional {
                Some(Additional::Schema(member)) => {
                    let element = SchemaType::of(member, member.is_embedded_resource)?;
                    let most = match checks.max_properties {
                        Some(most) => most.max(0),
                        // A key, its quotes, a colon and a comma.
                        None => (LARGEST_REQUEST - 2) / element.smallest.saturating_add(6),
                    };
                    SchemaType::map_of(element, most)
                }
                _ => object(schema, checks, is_resource),
            },
            JsonType::String => match checks.format.as_str() {
                "byte" => SchemaType::simple(Type::Bytes, max_length.unwrap_or(LARGEST_REQUEST - 2), 2),
                "duration" => SchemaType::simple(Type::Duration, 32, 3),
                "date" => SchemaType::simple(Type::Timestamp, 12, 12),
                "date-time" => SchemaType::simple(Type::Timestamp, 32, 21),
                _ => {
                    let most = match max_length {
                        // A character takes up to four bytes.
                        Some(most) => most.saturating_mul(4),
                        None if checks.allowed.is_empty() => LARGEST_REQUEST - 2,
                        None => checks.allowed.iter().filter_map(Value::as_str).map(str::len).max().unwrap_or(0) as i64,
                    };
                    SchemaType::simple(Type::String, most, 2)
                }
            },
            JsonType::Boolean => SchemaType::simple(Type::Bool, 0, 4),
            JsonType::Number => SchemaType::simple(Type::Double, 0, 1),
            JsonType::Integer => SchemaType::simple(Type::Int, 0, 1),
        })
    }

    /// What a table of types says of a built-in type. Of what it does not describe, and of types that contain themselves,
    /// nothing is known.
    pub fn of_built_in(types: &Types, id: StructId) -> Arc<SchemaType> {
        BuiltInTypes { types, known: HashMap::new() }.of_struct(id)
    }

    /// What has no parts and `most` characters or elements, where no schema but a program says so.
    pub fn sized(kind: Type, most: i64) -> Arc<SchemaType> {
        SchemaType::simple(kind, most, 1)
    }

    /// A map of `most` members, where no schema but a program says how long its keys may be. With `sizes_fields`, what is
    /// known of the size of its members is also known of those that are spoken of as fields (`map.member`).
    pub fn sized_map(longest_key: i64, element: Arc<SchemaType>, most: i64, sizes_fields: bool) -> Arc<SchemaType> {
        let shape = SchemaShape::Map { element, longest_key, sizes_fields };
        Arc::new(SchemaType { shape, most, smallest: 2 })
    }

    /// An object with these fields, by the names that they have in expressions.
    pub fn sized_object<const N: usize>(fields: [(&str, Arc<SchemaType>); N]) -> Arc<SchemaType> {
        let fields = fields.into_iter().map(|(name, field)| (name.to_string(), field)).collect();
        Arc::new(SchemaType { shape: SchemaShape::Object { fields, unnamed: BTreeMap::new() }, most: 0, smallest: 2 })
    }

    fn map_of(element: Arc<SchemaType>, most: i64) -> Arc<SchemaType> {
        SchemaType::sized_map(0, element, most, false)
    }

    fn simple(kind: Type, most: i64, smallest: i64) -> Arc<SchemaType> {
        Arc::new(SchemaType { shape: SchemaShape::Simple(kind), most, smallest })
    }

    /// The type in expressions. Objects in it are called after `name`, with the path to them.
    pub fn kind(&self, name: &str) -> Type {
        match &self.shape {
            SchemaShape::Simple(kind) => kind.clone(),
            SchemaShape::List(element) => Type::list(element.kind(&format!("{name}.{ELEMENT_OF_LIST}"))),
            SchemaShape::Map { element, .. } => {
                Type::map(Type::String, element.kind(&format!("{name}.{ELEMENT_OF_MAP}")))
            }
            SchemaShape::Object { .. } => Type::object(name),
        }
    }

    /// The type that is called `path` if this one is called by nothing: what is left of its name.
    pub(crate) fn named(&self, path: &str) -> Option<&SchemaType> {
        if !path.is_empty() && !path.starts_with('.') {
            return None;
        }
        let mut at = self;
        for step in path.split('.').skip(1) {
            at = match (&at.shape, step) {
                (SchemaShape::List(element), ELEMENT_OF_LIST) | (SchemaShape::Map { element, .. }, ELEMENT_OF_MAP) => {
                    element
                }
                (SchemaShape::Object { fields, .. }, step) => fields.get(step)?,
                _ => return None,
            };
        }
        Some(at)
    }

    /// The field of an object, by its name in expressions.
    pub fn field(&self, name: &str) -> Option<&Arc<SchemaType>> {
        match &self.shape {
            SchemaShape::Object { fields, .. } => fields.get(name),
            _ => None,
        }
    }

    /// The property of an object, by the name that it has in the schema.
    pub(crate) fn property(&self, name: &str) -> Option<&Arc<SchemaType>> {
        match (&self.shape, escape(name)) {
            (SchemaShape::Object { fields, .. }, Some(name)) => fields.get(&*name),
            (SchemaShape::Object { unnamed, .. }, None) => unnamed.get(name),
            _ => None,
        }
    }

    /// What is in a list or in a map.
    pub fn element(&self) -> Option<&Arc<SchemaType>> {
        match &self.shape {
            SchemaShape::List(element) | SchemaShape::Map { element, .. } => Some(element),
            _ => None,
        }
    }

    /// How long the keys of a map may be.
    pub(crate) fn longest_key(&self) -> Option<i64> {
        match self.shape {
            SchemaShape::Map { longest_key, .. } => Some(longest_key),
            _ => None,
        }
    }

    /// What is known of the size of a field: of an object, or of a map whose members are spoken of in this way.
    pub(crate) fn sized_field(&self, name: &str) -> Option<&Arc<SchemaType>> {
        match &self.shape {
            SchemaShape::Map { element, sizes_fields: true, .. } => Some(element),
            _ => self.field(name),
        }
    }
}

/// The types of a table, each described once.
struct BuiltInTypes<'a> {
    types: &'a Types,
    /// Nothing while a type is being described.
    known: HashMap<StructId, Option<Arc<SchemaType>>>,
}

impl BuiltInTypes<'_> {
    fn of_struct(&mut self, id: StructId) -> Arc<SchemaType> {
        if let Some(known) = self.known.get(&id) {
            return known.clone().unwrap_or_else(|| SchemaType::simple(Type::Dyn, LARGEST_REQUEST, 1));
        }
        self.known.insert(id, None);
        let mut fields = BTreeMap::new();
        for field in &self.types.get(id).fields {
            let found = self.of_shape(&field.shape);
            if let Some(name) = escape(&field.name) {
                fields.insert(name.into_owned(), found);
            }
        }
        let shape = SchemaShape::Object { fields, unnamed: BTreeMap::new() };
        let found = Arc::new(SchemaType { shape, most: 0, smallest: 2 });
        self.known.insert(id, Some(found.clone()));
        found
    }

    fn of_shape(&mut self, shape: &Shape) -> Arc<SchemaType> {
        let long = LARGEST_REQUEST - 2;
        match shape {
            Shape::String | Shape::Duration => SchemaType::simple(Type::String, long, 2),
            Shape::Bool => SchemaType::simple(Type::Bool, 0, 4),
            Shape::Int32 | Shape::Int64 => SchemaType::simple(Type::Int, 0, 1),
            Shape::Double => SchemaType::simple(Type::Double, 0, 1),
            Shape::Bytes => SchemaType::simple(Type::Bytes, long, 2),
            Shape::Time | Shape::MicroTime => SchemaType::simple(Type::Timestamp, 32, 21),
            Shape::Quantity | Shape::IntOrString | Shape::Any | Shape::Raw | Shape::Either(..) => {
                SchemaType::simple(Type::Dyn, long, 1)
            }
            Shape::List(element) => {
                let element = self.of_shape(element);
                let most = long / element.smallest.saturating_add(1);
                Arc::new(SchemaType { shape: SchemaShape::List(element), most, smallest: 2 })
            }
            Shape::Map(element) => {
                let element = self.of_shape(element);
                let most = long / element.smallest.saturating_add(6);
                SchemaType::map_of(element, most)
            }
            Shape::Struct(id) => self.of_struct(*id),
        }
    }
}

fn object(schema: &Structural, checks: &Checks, is_resource: bool) -> Arc<SchemaType> {
    let text = Structural { kind: Some(JsonType::String), ..Structural::default() };
    let (metadata, of_resource);
    let mut properties: Vec<(&str, &Structural)> =
        schema.properties.iter().map(|(name, property)| (&**name, property)).collect();
    if is_resource && !describes_resource(schema) {
        metadata = Structural {
            kind: Some(JsonType::Object),
            properties: vec![("generateName".into(), text.clone()), ("name".into(), text.clone())],
            ..Structural::default()
        };
        of_resource = [("kind", &text), ("apiVersion", &text), ("metadata", &metadata)];
        properties.retain(|(name, _)| of_resource.iter().all(|(given, _)| given != name));
        properties.extend(of_resource);
    }
    let (mut fields, mut unnamed) = (BTreeMap::new(), BTreeMap::new());
    let mut smallest = 2_i64;
    for (name, property) in properties {
        let Some(field) = SchemaType::of(property, property.is_embedded_resource) else { continue };
        let has_default = property.default.as_ref().is_some_and(|value| !value.is_null());
        if !has_default && checks.required.iter().any(|required| **required == *name) {
            // The name, its quotes, a colon and a comma.
            smallest = smallest.saturating_add(name.len() as i64 + 4).saturating_add(field.smallest);
        }
        match escape(name) {
            Some(name) => fields.insert(name.into_owned(), field),
            None => unnamed.insert(name.to_string(), field),
        };
    }
    Arc::new(SchemaType { shape: SchemaShape::Object { fields, unnamed }, most: 0, smallest })
}

/// Whether the schema says of itself all that is known of every object of the API.
fn describes_resource(schema: &Structural) -> bool {
    let is =
        |schema: &Structural, name: &str, kind| schema.property(name).is_some_and(|found| found.kind == Some(kind));
    is(schema, "kind", JsonType::String)
        && is(schema, "apiVersion", JsonType::String)
        && is(schema, "metadata", JsonType::Object)
        && schema.property("metadata").is_some_and(|metadata| {
            is(metadata, "name", JsonType::String) && is(metadata, "generateName", JsonType::String)
        })
}

#[cfg(test)]
mod tests {
    use revisor_object::parse_json;

    use super::*;

    fn schema(text: &str) -> Structural {
        let parsed = parse_json(text.as_bytes()).expect("is JSON").value;
        Structural::read(parsed.as_object().expect("is an object"))
    }

    #[test]
    fn types_and_sizes_are_those_of_the_schema() {
        for (text, kind, most, smallest) in [
            (r#"{"type":"integer"}"#, "int", 0, 1),
            (r#"{"type":"boolean"}"#, "bool", 0, 4),
            (r#"{"type":"number"}"#, "double", 0, 1),
            (r#"{"type":"string"}"#, "string", 3_145_726, 2),
            (r#"{"type":"string","maxLength":5}"#, "string", 20, 2),
            (r#"{"type":"string","maxLength":-5}"#, "string", 0, 2),
            (r#"{"type":"string","enum":["a","bcd"]}"#, "string", 3, 2),
            (r#"{"type":"string","format":"byte"}"#, "bytes", 3_145_726, 2),
            (r#"{"type":"string","format":"byte","maxLength":5}"#, "bytes", 5, 2),
            (r#"{"type":"string","format":"duration"}"#, "google.protobuf.Duration", 32, 3),
            (r#"{"type":"string","format":"date"}"#, "google.protobuf.Timestamp", 12, 12),
            (r#"{"type":"string","format":"date-time"}"#, "google.protobuf.Timestamp", 32, 21),
            (r#"{"x-kubernetes-int-or-string":true}"#, "dyn", 3_145_726, 1),
            (r#"{"x-kubernetes-int-or-string":true,"maxLength":3}"#, "dyn", 12, 1),
            (r#"{"type":"array","items":{"type":"integer"}}"#, "list(int)", 1_572_863, 2),
            (r#"{"type":"array","maxItems":3,"items":{"type":"object"}}"#, "list(t.@idx)", 3, 2),
            (r#"{"type":"object","additionalProperties":{"type":"string"}}"#, "map(string, string)", 393_215, 2),
            (
                r#"{"type":"object","maxProperties":4,"additionalProperties":{"type":"object"}}"#,
                "map(string, t.@elem)",
                4,
                2,
            ),
            (
                r#"{"type":"object","required":["ab","c","d"],"properties":{
                    "ab":{"type":"integer"},"c":{"type":"integer","default":1},"d":{}}}"#,
                "t",
                0,
                9,
            ),
        ] {
            let found = SchemaType::of(&schema(text), false).expect(text);
            assert_eq!(
                (found.kind("t").to_string().as_str(), found.most, found.smallest),
                (kind, most, smallest),
                "{text}"
            );
        }
        for text in [
            "{}",
            r#"{"x-kubernetes-preserve-unknown-fields":true}"#,
            r#"{"type":"array"}"#,
            r#"{"type":"array","items":{}}"#,
            r#"{"type":"object","additionalProperties":{}}"#,
        ] {
            assert!(SchemaType::of(&schema(text), false).is_none(), "{text}");
        }
    }

    #[test]
    fn of_every_resource_type_and_name_are_known() {
        let silent = SchemaType::of(&schema(r#"{"type":"object","properties":{"metadata":{"type":"integer"}}}"#), true);
        let silent = silent.expect("is an object");
        assert_eq!(silent.named(".metadata.name").map(|found| found.kind("")), Some(Type::String));
        assert_eq!(silent.field("kind").map(|found| found.kind("")), Some(Type::String));
        let own = schema(
            r#"{"type":"object","properties":{"kind":{"type":"string"},"apiVersion":{"type":"string"},
                "metadata":{"type":"object","properties":{"name":{"type":"string","maxLength":1},
                "generateName":{"type":"string"}}}}}"#,
        );
        let own = SchemaType::of(&own, true).expect("is an object");
        assert_eq!(own.named(".metadata.name").map(|found| found.most), Some(4));
    }

    #[test]
    fn a_thousand_levels_are_no_danger() {
        let mut deep = Structural { kind: Some(JsonType::Integer), ..Structural::default() };
        for _ in 0..1000 {
            deep = Structural { kind: Some(JsonType::Array), items: Some(Box::new(deep)), ..Structural::default() };
        }
        let deep = SchemaType::of(&deep, false).expect("is a list");
        assert!(deep.kind("t").to_string().starts_with("list(list("));
    }
}
