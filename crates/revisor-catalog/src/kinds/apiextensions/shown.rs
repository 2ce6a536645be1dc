//! How errors show the larger parts of a definition. The original prints its internal structs, whose fields have other
//! names than those that clients write, and which show what was not given too.

use std::fmt::Write as _;

use revisor_object::{BadValue, Object, Value};

use crate::kinds::members::{is_true, number, text};

/// What stands in a field of a struct.
#[derive(Clone, Copy)]
enum Content {
    Text,
    Flag,
    Optional,
    Schema,
    Schemas,
    SchemaMap,
    SchemaOrBool,
    SchemaOrList,
    Dependencies,
    Docs,
    Rules,
}

use Content::{
    Dependencies, Docs, Flag, Optional, Rules, Schema, SchemaMap, SchemaOrBool, SchemaOrList, Schemas, Text,
};

/// The fields of a schema in their order: as they are shown, as clients write them, and what is in them.
const FIELDS: [(&str, &str, Content); 44] = [
    ("ID", "id", Text),
    ("Schema", "$schema", Text),
    ("Ref", "$ref", Optional),
    ("Description", "description", Text),
    ("Type", "type", Text),
    ("Nullable", "nullable", Flag),
    ("Format", "format", Text),
    ("Title", "title", Text),
    ("Default", "default", Optional),
    ("Maximum", "maximum", Optional),
    ("ExclusiveMaximum", "exclusiveMaximum", Flag),
    ("Minimum", "minimum", Optional),
    ("ExclusiveMinimum", "exclusiveMinimum", Flag),
    ("MaxLength", "maxLength", Optional),
    ("MinLength", "minLength", Optional),
    ("Pattern", "pattern", Text),
    ("MaxItems", "maxItems", Optional),
    ("MinItems", "minItems", Optional),
    ("UniqueItems", "uniqueItems", Flag),
    ("MultipleOf", "multipleOf", Optional),
    ("Enum", "enum", Optional),
    ("MaxProperties", "maxProperties", Optional),
    ("MinProperties", "minProperties", Optional),
    ("Required", "required", Optional),
    ("Items", "items", SchemaOrList),
    ("AllOf", "allOf", Schemas),
    ("OneOf", "oneOf", Schemas),
    ("AnyOf", "anyOf", Schemas),
    ("Not", "not", Schema),
    ("Properties", "properties", SchemaMap),
    ("AdditionalProperties", "additionalProperties", SchemaOrBool),
    ("PatternProperties", "patternProperties", SchemaMap),
    ("Dependencies", "dependencies", Dependencies),
    ("AdditionalItems", "additionalItems", SchemaOrBool),
    ("Definitions", "definitions", SchemaMap),
    ("ExternalDocs", "externalDocs", Docs),
    ("Example", "example", Optional),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", Optional),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", Flag),
    ("XIntOrString", "x-kubernetes-int-or-string", Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Optional),
    ("XListType", "x-kubernetes-list-type", Optional),
    ("XMapType", "x-kubernetes-map-type", Optional),
    ("XValidations", "x-kubernetes-validations", Rules),
];

/// The keywords that a schema has, by the names that errors use, in their order.
pub(super) fn keywords(schema: &Object) -> impl Iterator<Item = &'static str> {
    FIELDS.iter().filter(|(_, name, _)| schema.contains(name)).map(|(shown, _, _)| *shown)
}

/// A schema.
pub(super) fn schema(schema: &Object) -> BadValue {
    shown(|out| write_schema(out, schema))
}

/// The value of `items`.
pub(super) fn items(value: &Value) -> BadValue {
    shown(|out| write_schema_or_list(out, value))
}

/// A value that the original keeps behind a pointer, or a list: as JSON, and null if it is not given.
pub(super) fn given(value: Option<&Value>) -> BadValue {
    shown(|out| write_json(out, value.unwrap_or(&Value::Null)))
}

/// The versions of a definition. Those parts that all versions share are not shown with them.
pub(super) fn versions<'a>(versions: impl Iterator<Item = &'a Object>, shared: &[&str]) -> BadValue {
    shown(|out| {
        let own = |version: &'a Object, name: &str| version.get(name).filter(|_| !shared.contains(&name));
        write_list(out, versions, |out, version| {
            write_members(
                out,
                [
                    ("Name", quoted(text(version, "name"))),
                    ("Served", is_true(version, "served").to_string()),
                    ("Storage", is_true(version, "storage").to_string()),
                    ("Deprecated", is_true(version, "deprecated").to_string()),
                    ("DeprecationWarning", json(version.get("deprecationWarning"))),
                    (
                        "Schema",
                        in_text(own(version, "schema"), |out, value| {
                            let schema = value.as_object().and_then(|value| value.get("openAPIV3Schema"));
                            write_members(out, [("OpenAPIV3Schema", in_text(schema, write_schema_value))]);
                        }),
                    ),
                    ("Subresources", in_text(own(version, "subresources"), write_subresources)),
                    (
                        "AdditionalPrinterColumns",
                        in_text(own(version, "additionalPrinterColumns"), |out, value| {
                            write_list(out, objects(value), write_column);
                        }),
                    ),
                    (
                        "SelectableFields",
                        in_text(own(version, "selectableFields"), |out, value| {
                            write_list(out, objects(value), |out, field| {
                                write_members(out, [("JSONPath", quoted(text(field, "jsonPath")))]);
                            });
                        }),
                    ),
                ],
            );
        });
    })
}

fn shown(write: impl FnOnce(&mut String)) -> BadValue {
    let mut out = String::new();
    write(&mut out);
    BadValue::Text(out)
}

fn objects(value: &Value) -> impl Iterator<Item = &Object> {
    value.as_array().unwrap_or_default().iter().filter_map(Value::as_object)
}

fn write_schema_value(out: &mut String, value: &Value) {
    match value {
        Value::Object(schema) => write_schema(out, schema),
        _ => out.push_str("null"),
    }
}

fn write_schema(out: &mut String, schema: &Object) {
    write_members(out, FIELDS.iter().map(|(shown, name, content)| (*shown, field(schema.get(name), *content))));
}

fn field(value: Option<&Value>, content: Content) -> String {
    match content {
        Text => quoted(value.and_then(Value::as_str).unwrap_or_default()),
        Flag => value.and_then(Value::as_bool).unwrap_or_default().to_string(),
        Optional => json(value),
        Schema => in_text(value, write_schema_value),
        Schemas => in_text(value, |out, value| write_list(out, objects(value), write_schema)),
        SchemaMap => in_text(value, |out, value| write_map(out, value, write_schema_value)),
        SchemaOrBool => in_text(value, |out, value| {
            let schema = Some(value).filter(|value| value.as_object().is_some());
            let allows = schema.is_some() || *value == Value::Bool(true);
            write_members(out, [("Allows", allows.to_string()), ("Schema", in_text(schema, write_schema_value))]);
        }),
        SchemaOrList => in_text(value, write_schema_or_list),
        Dependencies => in_text(value, |out, value| {
            write_map(out, value, |out, value| {
                let schema = Some(value).filter(|value| value.as_object().is_some());
                let names = Some(value).filter(|value| value.as_array().is_some());
                write_members(out, [("Schema", in_text(schema, write_schema_value)), ("Property", json(names))]);
            });
        }),
        Docs => in_text(value.and_then(Value::as_object), |out, docs| {
            write_members(
                out,
                [("Description", quoted(text(docs, "description"))), ("URL", quoted(text(docs, "url")))],
            );
        }),
        Rules => in_text(value, |out, value| write_list(out, objects(value), write_rule)),
    }
}

fn write_schema_or_list(out: &mut String, value: &Value) {
    let schema = Some(value).filter(|value| value.as_object().is_some());
    let list = Some(value).filter(|value| value.as_array().is_some());
    write_members(
        out,
        [
            ("Schema", in_text(schema, write_schema_value)),
            ("JSONSchemas", in_text(list, |out, list| write_list(out, objects(list), write_schema))),
        ],
    );
}

fn write_rule(out: &mut String, rule: &Object) {
    write_members(
        out,
        [
            ("Rule", quoted(text(rule, "rule"))),
            ("Message", quoted(text(rule, "message"))),
            ("MessageExpression", quoted(text(rule, "messageExpression"))),
            ("Reason", json(rule.get("reason"))),
            ("FieldPath", quoted(text(rule, "fieldPath"))),
            ("OptionalOldSelf", json(rule.get("optionalOldSelf"))),
        ],
    );
}

fn write_subresources(out: &mut String, value: &Value) {
    let part = |name| value.as_object().and_then(|value| value.object(name));
    write_members(
        out,
        [
            ("Status", in_text(part("status"), |out, _| out.push_str("{}"))),
            (
                "Scale",
                in_text(part("scale"), |out, scale| {
                    write_members(
                        out,
                        [
                            ("SpecReplicasPath", quoted(text(scale, "specReplicasPath"))),
                            ("StatusReplicasPath", quoted(text(scale, "statusReplicasPath"))),
                            ("LabelSelectorPath", json(scale.get("labelSelectorPath"))),
                        ],
                    );
                }),
            ),
        ],
    );
}

fn write_column(out: &mut String, column: &Object) {
    write_members(
        out,
        [
            ("Name", quoted(text(column, "name"))),
            ("Type", quoted(text(column, "type"))),
            ("Format", quoted(text(column, "format"))),
            ("Description", quoted(text(column, "description"))),
            ("Priority", number(column, "priority").to_string()),
            ("JSONPath", quoted(text(column, "jsonPath"))),
        ],
    );
}

fn in_text<T>(value: Option<T>, write: impl FnOnce(&mut String, T)) -> String {
    let mut out = String::new();
    match value {
        Some(value) => write(&mut out, value),
        None => out.push_str("null"),
    }
    out
}

fn write_members(out: &mut String, members: impl IntoIterator<Item = (&'static str, String)>) {
    out.push('{');
    for (at, (name, value)) in members.into_iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        // Writing to a string does not fail.
        let _ = write!(out, "{comma}\"{name}\":{value}");
    }
    out.push('}');
}

fn write_list<T>(out: &mut String, items: impl Iterator<Item = T>, write: impl Fn(&mut String, T)) {
    out.push('[');
    for (at, item) in items.enumerate() {
        if at > 0 {
            out.push(',');
        }
        write(out, item);
    }
    out.push(']');
}

fn write_map(out: &mut String, value: &Value, write: impl Fn(&mut String, &Value)) {
    out.push('{');
    for (at, (name, value)) in value.as_object().into_iter().flat_map(Object::iter).enumerate() {
        let comma = if at == 0 { "" } else { "," };
        let _ = write!(out, "{comma}{}:", quoted(name));
        write(out, value);
    }
    out.push('}');
}

fn quoted(text: &str) -> String {
    json(Some(&Value::from(text)))
}

fn json(value: Option<&Value>) -> String {
    in_text(value, write_json)
}

/// JSON as the original writes it. Only inside of a list are texts quoted by the rules of JSON.
fn write_json(out: &mut String, value: &Value) {
    let list = BadValue::of(&[value]).to_string();
    out.push_str(list.strip_prefix('[').and_then(|list| list.strip_suffix(']')).unwrap_or(&list));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::object;

    #[test]
    fn versions_are_shown_without_what_they_share() {
        let version = object(
            r#"{"name":"v1","served":true,"deprecationWarning":"a<b","schema":{"openAPIV3Schema":{}},
                "subresources":{"status":{},"scale":{"specReplicasPath":".a"}},"selectableFields":[{"jsonPath":".b"}],
                "additionalPrinterColumns":[{"name":"N","type":"integer","priority":1}]}"#,
        );
        let text = versions([&version].into_iter(), &["schema"]).to_string();
        assert_eq!(
            text,
            "[{\"Name\":\"v1\",\"Served\":true,\"Storage\":false,\"Deprecated\":false,\
             \"DeprecationWarning\":\"a\\u003cb\",\"Schema\":null,\"Subresources\":{\"Status\":{},\"Scale\":\
             {\"SpecReplicasPath\":\".a\",\"StatusReplicasPath\":\"\",\"LabelSelectorPath\":null}},\
             \"AdditionalPrinterColumns\":[{\"Name\":\"N\",\"Type\":\"integer\",\"Format\":\"\",\"Description\":\"\",\
             \"Priority\":1,\"JSONPath\":\"\"}],\"SelectableFields\":[{\"JSONPath\":\".b\"}]}]"
        );
    }

    #[test]
    fn schemas_show_what_was_given_and_what_was_not() {
        let of = object(
            r#"{"type":"array","default":[1],"items":{"type":"string"},"additionalProperties":true,
                "properties":{"a":{"not":{}}},"dependencies":{"d":["e"]},"x-kubernetes-validations":[{"rule":"r"}]}"#,
        );
        let text = schema(&of).to_string();
        for part in [
            "{\"ID\":\"\",\"Schema\":\"\",\"Ref\":null,",
            "\"Default\":[1],",
            "\"Items\":{\"Schema\":{\"ID\":\"\",",
            "\"XValidations\":null},\"JSONSchemas\":null},",
            "\"AdditionalProperties\":{\"Allows\":true,\"Schema\":null},",
            "\"Properties\":{\"a\":{\"ID\":",
            "\"Dependencies\":{\"d\":{\"Schema\":null,\"Property\":[\"e\"]}},",
            "\"XValidations\":[{\"Rule\":\"r\",\"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,\
             \"FieldPath\":\"\",\"OptionalOldSelf\":null}]}",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert_eq!(keywords(&of).next(), Some("Type"));
    }
}
