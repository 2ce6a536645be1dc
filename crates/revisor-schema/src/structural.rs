//! [`Structural`]: the schema of a custom resource, read once from its definition.
//!
//! A definition holds its schemas as `JSONSchemaProps`. Here they become a tree in which each node says what a value at
//! its place must be, so that nothing has to be looked up by name when an object comes.
//!
//! What is done with an object by it has a file each: [`prune`], [`defaults`], [`metadata`], [`list_types`],
//! [`validator`], [`custom_types`], [`canonical`]. [`CustomSchema`](custom_schema::CustomSchema) holds it all together
//! for the server.

pub(crate) mod canonical;
pub(crate) mod correlation;
pub(crate) mod custom_schema;
pub(crate) mod custom_types;
mod defaults;
pub(crate) mod format;
mod list_types;
pub(crate) mod metadata;
pub(crate) mod pattern;
mod prune;
pub(crate) mod validator;
pub(crate) mod value_ref;

use revisor_object::{Object, Value};

/// What a node says of the type of its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonType {
    /// `object`
    Object,
    /// `array`
    Array,
    /// `string`
    String,
    /// `integer`
    Integer,
    /// `number`
    Number,
    /// `boolean`
    Boolean,
}

impl JsonType {
    /// The type with this name in a schema.
    pub fn parse(name: &str) -> Option<JsonType> {
        use JsonType::{Array, Boolean, Integer, Number, Object, String};
        [Object, Array, String, Integer, Number, Boolean].into_iter().find(|kind| kind.as_str() == name)
    }

    /// The name in a schema.
    pub fn as_str(self) -> &'static str {
        match self {
            JsonType::Object => "object",
            JsonType::Array => "array",
            JsonType::String => "string",
            JsonType::Integer => "integer",
            JsonType::Number => "number",
            JsonType::Boolean => "boolean",
        }
    }
}

/// What an object may hold beside its properties.
#[derive(Debug, Clone, PartialEq)]
pub enum Additional {
    /// Anything, or nothing.
    Allowed(bool),
    /// Members that look like this.
    Schema(Box<Structural>),
}

/// How a list is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListType {
    /// As one value.
    Atomic,
    /// As distinct scalars.
    Set,
    /// As objects told apart by their keys.
    Map,
}

/// A rule in CEL.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ValidationRule {
    /// The expression that must be true.
    pub rule: String,
    /// What to say otherwise.
    pub message: String,
    /// An expression that says it.
    pub message_expression: String,
    /// Why: the reason of the cause.
    pub reason: Option<String>,
    /// What the cause is about, below the rule's place.
    pub field_path: String,
    /// Whether the rule runs without an old value too, with `oldSelf` being optional; `None` if it does not say.
    pub optional_old_self: Option<bool>,
}

/// One node of a schema.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Structural {
    /// The type; some nodes have none.
    pub kind: Option<JsonType>,
    /// The members that an object may have, sorted by name.
    pub properties: Vec<(Box<str>, Structural)>,
    /// What an object may have beside them.
    pub additional: Option<Additional>,
    /// What the elements of an array look like.
    pub items: Option<Box<Structural>>,
    /// What an absent value becomes.
    pub default: Option<Value>,
    /// Whether null is a value.
    pub nullable: bool,
    /// A short name for people.
    pub title: String,
    /// What it is, for people.
    pub description: String,
    /// `x-kubernetes-preserve-unknown-fields`: members that the schema does not name stay.
    pub preserves_unknown_fields: bool,
    /// `x-kubernetes-embedded-resource`: the value is an object of the API with type and metadata.
    pub is_embedded_resource: bool,
    /// `x-kubernetes-int-or-string`
    pub is_int_or_string: bool,
    /// `x-kubernetes-list-type`
    pub list_type: Option<ListType>,
    /// `x-kubernetes-list-map-keys`
    pub list_map_keys: Vec<Box<str>>,
    /// `x-kubernetes-map-type: atomic`: server-side apply sees an object as one value.
    pub is_atomic_map: bool,
    /// `x-kubernetes-validations`
    pub validations: Vec<ValidationRule>,
    /// What is checked about a value beside its type. Boxed: most nodes have none.
    pub checks: Option<Box<Checks>>,
    /// What is said and changes nothing. Boxed for the same reason.
    pub notes: Option<Box<Notes>>,
}

/// What a schema tells its readers of a value, and the server makes no use of.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Notes {
    /// `example`
    pub example: Option<Value>,
    /// `externalDocs`: where more is said.
    pub external_docs: Option<Value>,
    /// `x-kubernetes-map-type: granular`: server-side apply sees the members of an object, as it does by itself.
    pub is_granular_map: bool,
}

/// What a schema checks about a value beside its type.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Checks {
    /// `format`
    pub format: String,
    /// `minimum` and whether it is excluded.
    pub minimum: Option<f64>,
    /// Whether the minimum itself is too small.
    pub exclusive_minimum: bool,
    /// `maximum`
    pub maximum: Option<f64>,
    /// Whether the maximum itself is too large.
    pub exclusive_maximum: bool,
    /// `multipleOf`
    pub multiple_of: Option<f64>,
    /// `minLength`
    pub min_length: Option<i64>,
    /// `maxLength`
    pub max_length: Option<i64>,
    /// `pattern`
    pub pattern: String,
    /// `minItems`
    pub min_items: Option<i64>,
    /// `maxItems`
    pub max_items: Option<i64>,
    /// `uniqueItems`
    pub unique_items: bool,
    /// `minProperties`
    pub min_properties: Option<i64>,
    /// `maxProperties`
    pub max_properties: Option<i64>,
    /// `required`
    pub required: Vec<Box<str>>,
    /// `enum`
    pub allowed: Vec<Value>,
    /// `allOf`
    pub all_of: Vec<Structural>,
    /// `anyOf`
    pub any_of: Vec<Structural>,
    /// `oneOf`
    pub one_of: Vec<Structural>,
    /// `not`
    pub not: Option<Box<Structural>>,
}

impl Structural {
    /// How many schemas there are in this one, itself among them.
    pub fn nodes(&self) -> usize {
        let properties = self.properties.iter().map(|(_, schema)| schema);
        let additional = match &self.additional {
            Some(Additional::Schema(schema)) => Some(&**schema),
            _ => None,
        };
        let checks = self.checks.iter().flat_map(|checks| {
            let alternatives = [&checks.all_of, &checks.any_of, &checks.one_of].into_iter().flatten();
            alternatives.chain(checks.not.as_deref())
        });
        let all = properties.chain(additional).chain(self.items.as_deref()).chain(checks);
        1 + all.map(Structural::nodes).sum::<usize>()
    }

    /// Reads a `JSONSchemaProps`. Whatever is no part of it, or of the wrong type, counts as absent: definitions were
    /// made to fit their own types before, and what is wrong with them is said when they are validated.
    pub fn read(schema: &Object) -> Structural {
        let flag = |name| schema.get(name).and_then(Value::as_bool).unwrap_or_default();
        let text = |name| schema.str(name).unwrap_or_default().to_owned();
        let properties = schema.object("properties").into_iter().flat_map(Object::iter);
        let additional = match schema.get("additionalProperties") {
            Some(Value::Bool(truth)) => Some(Additional::Allowed(*truth)),
            Some(Value::Object(schema)) => Some(Additional::Schema(Box::new(Structural::read(schema)))),
            _ => None,
        };
        Structural {
            kind: schema.str("type").and_then(JsonType::parse),
            // Members of an object are sorted already.
            properties: properties
                .filter_map(|(name, value)| Some((Box::from(name), Structural::read(value.as_object()?))))
                .collect(),
            additional,
            items: schema.object("items").map(|items| Box::new(Structural::read(items))),
            default: schema.get("default").cloned(),
            nullable: flag("nullable"),
            title: text("title"),
            description: text("description"),
            preserves_unknown_fields: flag("x-kubernetes-preserve-unknown-fields"),
            is_embedded_resource: flag("x-kubernetes-embedded-resource"),
            is_int_or_string: flag("x-kubernetes-int-or-string"),
            list_type: match schema.str("x-kubernetes-list-type") {
                Some("atomic") => Some(ListType::Atomic),
                Some("set") => Some(ListType::Set),
                Some("map") => Some(ListType::Map),
                _ => None,
            },
            list_map_keys: texts(schema, "x-kubernetes-list-map-keys"),
            is_atomic_map: schema.str("x-kubernetes-map-type") == Some("atomic"),
            validations: objects(schema, "x-kubernetes-validations").map(ValidationRule::read).collect(),
            checks: Some(Checks::read(schema)).filter(|checks| *checks != Checks::default()).map(Box::new),
            notes: Some(Notes::read(schema)).filter(|notes| *notes != Notes::default()).map(Box::new),
        }
    }

    /// The schema of the member `name`, if the schema names it.
    pub fn property(&self, name: &str) -> Option<&Structural> {
        let at = self.properties.binary_search_by(|(known, _)| (**known).cmp(name)).ok()?;
        Some(&self.properties[at].1)
    }
}

impl Notes {
    fn read(schema: &Object) -> Notes {
        Notes {
            example: schema.get("example").cloned(),
            external_docs: schema.get("externalDocs").filter(|docs| docs.as_object().is_some()).cloned(),
            is_granular_map: schema.str("x-kubernetes-map-type") == Some("granular"),
        }
    }
}

impl ValidationRule {
    fn read(rule: &Object) -> ValidationRule {
        let text = |name| rule.str(name).unwrap_or_default().to_owned();
        ValidationRule {
            rule: text("rule"),
            message: text("message"),
            message_expression: text("messageExpression"),
            reason: rule.str("reason").map(str::to_owned),
            field_path: text("fieldPath"),
            optional_old_self: rule.get("optionalOldSelf").and_then(Value::as_bool),
        }
    }
}

impl Checks {
    fn read(schema: &Object) -> Checks {
        let flag = |name| schema.get(name).and_then(Value::as_bool).unwrap_or_default();
        let count = |name| schema.get(name).and_then(Value::as_i64);
        let number = |name| match schema.get(name)? {
            Value::Int(number) => Some(*number as f64),
            Value::Float(number) => Some(*number),
            _ => None,
        };
        let schemas = |name| objects(schema, name).map(Structural::read).collect();
        Checks {
            format: schema.str("format").unwrap_or_default().to_owned(),
            minimum: number("minimum"),
            exclusive_minimum: flag("exclusiveMinimum"),
            maximum: number("maximum"),
            exclusive_maximum: flag("exclusiveMaximum"),
            multiple_of: number("multipleOf"),
            min_length: count("minLength"),
            max_length: count("maxLength"),
            pattern: schema.str("pattern").unwrap_or_default().to_owned(),
            min_items: count("minItems"),
            max_items: count("maxItems"),
            unique_items: flag("uniqueItems"),
            min_properties: count("minProperties"),
            max_properties: count("maxProperties"),
            required: texts(schema, "required"),
            allowed: schema.array("enum").to_vec(),
            all_of: schemas("allOf"),
            any_of: schemas("anyOf"),
            one_of: schemas("oneOf"),
            not: schema.object("not").map(|not| Box::new(Structural::read(not))),
        }
    }
}

fn objects<'a>(schema: &'a Object, name: &str) -> impl Iterator<Item = &'a Object> {
    schema.array(name).iter().filter_map(Value::as_object)
}

fn texts(schema: &Object, name: &str) -> Vec<Box<str>> {
    schema.array(name).iter().filter_map(Value::as_str).map(Box::from).collect()
}

/// What the tests of the files below share.
#[cfg(test)]
pub(crate) mod testing {
    use revisor_object::{Value, parse_json};

    use super::Structural;
    use crate::Types;

    #[track_caller]
    pub(crate) fn parse(text: &str) -> Value {
        parse_json(text.as_bytes()).expect("is JSON").value
    }

    #[track_caller]
    pub(crate) fn schema(text: &str) -> Structural {
        Structural::read(parse(text).as_object().expect("is an object"))
    }

    pub(crate) fn metadata_types() -> Types {
        const TABLE: &str = "type,field,shape,presence,number,merge,list,required,default
meta.v1.ObjectMeta,name,string,nonzero,1,
meta.v1.ObjectMeta,namespace,string,nonzero,3,
meta.v1.ObjectMeta,uid,string,nonzero,5,
meta.v1.ObjectMeta,resourceVersion,string,nonzero,6,
meta.v1.ObjectMeta,creationTimestamp,time,nonzero,8,
meta.v1.ObjectMeta,labels,map:string,nonzero,11,
meta.v1.ObjectMeta,ownerReferences,list:meta.v1.OwnerReference,nonzero,13,merge:uid,map:uid
meta.v1.OwnerReference,uid,string,always,4,
meta.v1.OwnerReference,name,string,always,3,
";
        Types::parse(TABLE).expect("a good table")
    }
}

#[cfg(test)]
mod tests {
    use revisor_object::parse_json;

    use super::*;

    #[test]
    fn a_schema_is_read_with_all_that_is_below_it() {
        let text = r#"{"type":"object","required":["a"],"properties":{
            "b":{"type":"array","items":{"type":"string","maxLength":3},"x-kubernetes-list-type":"set"},
            "a":{"type":"object","additionalProperties":{"type":"integer","minimum":1,"exclusiveMinimum":true},
                 "x-kubernetes-validations":[{"rule":"size(self) < 3","reason":"FieldValueInvalid"}]}}}"#;
        let parsed = parse_json(text.as_bytes()).expect("is JSON").value;
        let schema = Structural::read(parsed.as_object().expect("is an object"));
        assert_eq!(schema.kind, Some(JsonType::Object));
        let names: Vec<&str> = schema.properties.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["a", "b"]);
        let list = schema.property("b").expect("is named");
        assert_eq!(list.list_type, Some(ListType::Set));
        let item = list.items.as_ref().and_then(|items| items.checks.as_ref()).expect("has checks");
        assert_eq!(item.max_length, Some(3));
        let map = schema.property("a").expect("is named");
        assert_eq!(map.validations[0].reason.as_deref(), Some("FieldValueInvalid"));
        let Some(Additional::Schema(member)) = &map.additional else { panic!("has members") };
        let checks = member.checks.as_ref().expect("has checks");
        assert_eq!((checks.minimum, checks.exclusive_minimum), (Some(1.0), true));
        assert!(schema.property("c").is_none());
    }
}
