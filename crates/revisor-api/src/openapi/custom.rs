//! The schema of a custom resource, as its definition has it and as clients know those of built-in kinds.
//!
//! What a definition may leave out of its schema, because every object has it, is there for clients: type and metadata,
//! also those of embedded resources. The older form of documents has fewer words, and its readers take what a schema
//! names for all that there is; so there less is said.

use revisor_catalog::{Custom, Resource};
use revisor_schema::{Additional, Checks, ListType, Structural, ValidationRule};
use serde_json::{Map, Value, json};

use super::descriptions::Descriptions;
use super::schemas::{meta, of_type};

/// Which form of documents a schema is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// OpenAPI 3.0.
    V3,
    /// Swagger 2.0.
    V2,
}

/// The schema of a custom resource.
pub(super) fn schema(resource: &Resource, custom: &Custom, texts: &Descriptions, form: Form) -> Value {
    let structural = custom.schema().structural();
    let keeps_unknown = structural.preserves_unknown_fields || custom.preserves_unknown_fields();
    // To name the metadata would be to forbid all else.
    let is_open = structural.kind.is_none() || (form == Form::V2 && keeps_unknown);
    let mut whole = if is_open { json!({"type": "object"}) } else { node(structural, texts, form) };
    if !is_open {
        add_properties(&mut whole, texts);
    }
    whole["x-kubernetes-group-version-kind"] = json!([{"group": resource.group.as_str(), "version": resource.version.as_str(), "kind": resource.kind.as_str()}]);
    if let Some(fields) = selectable_fields(custom) {
        whole["x-kubernetes-selectable-fields"] = fields;
    }
    whole
}

/// The fields that selectors may name.
pub(super) fn selectable_fields(custom: &Custom) -> Option<Value> {
    let fields: Vec<Value> = custom.fields.iter().map(|field| json!({"fieldPath": field.name})).collect();
    (!fields.is_empty()).then_some(Value::Array(fields))
}

/// Type and metadata, which every object has.
fn add_properties(schema: &mut Value, texts: &Descriptions) {
    let properties = &mut schema["properties"];
    for name in ["apiVersion", "kind"] {
        properties[name] = json!({"type": "string"});
        texts.describe_common(name, &mut properties[name]);
    }
    properties["metadata"] = of_type(&meta("ObjectMeta"), false);
    texts.describe_common("metadata", &mut properties["metadata"]);
}

fn node(schema: &Structural, texts: &Descriptions, form: Form) -> Value {
    let is_open = form == Form::V2 && (schema.nullable || schema.preserves_unknown_fields);
    let mut shown = Map::new();
    let mut add = |name: &str, value: Value| {
        shown.insert(name.to_owned(), value);
    };
    if let Some(kind) = schema.kind.filter(|_| !is_open) {
        add("type", json!(kind.as_str()));
    }
    for (name, text) in [("title", &schema.title), ("description", &schema.description)] {
        if !text.is_empty() {
            add(name, json!(text));
        }
    }
    if !schema.properties.is_empty() && !is_open {
        let properties: Map<String, Value> =
            schema.properties.iter().map(|(name, member)| (name.to_string(), node(member, texts, form))).collect();
        add("properties", Value::Object(properties));
    }
    match &schema.additional {
        None => {}
        Some(Additional::Allowed(is_allowed)) => add("additionalProperties", json!(is_allowed)),
        Some(Additional::Schema(member)) => add("additionalProperties", node(member, texts, form)),
    }
    if let Some(items) = schema.items.as_deref().filter(|_| !is_open) {
        add("items", node(items, texts, form));
    }
    if form == Form::V3 {
        let default = schema.default.as_ref().and_then(|default| serde_json::from_str(&default.to_json()).ok());
        if let Some(default) = default.filter(|default: &Value| !default.is_null()) {
            add("default", default);
        }
        if schema.nullable {
            add("nullable", json!(true));
        }
    }
    for (name, is_set) in [
        ("x-kubernetes-preserve-unknown-fields", schema.preserves_unknown_fields),
        ("x-kubernetes-embedded-resource", schema.is_embedded_resource),
        ("x-kubernetes-int-or-string", schema.is_int_or_string),
    ] {
        if is_set {
            add(name, json!(true));
        }
    }
    if let Some(list_type) = schema.list_type {
        let name = match list_type {
            ListType::Atomic => "atomic",
            ListType::Set => "set",
            ListType::Map => "map",
        };
        add("x-kubernetes-list-type", json!(name));
    }
    if !schema.list_map_keys.is_empty() {
        add("x-kubernetes-list-map-keys", json!(schema.list_map_keys));
    }
    if schema.is_atomic_map {
        add("x-kubernetes-map-type", json!("atomic"));
    }
    if let Some(notes) = &schema.notes {
        let notes = [("example", &notes.example), ("externalDocs", &notes.external_docs)];
        for (name, note) in notes.into_iter().filter_map(|(name, note)| Some((name, note.as_ref()?))) {
            if let Ok(note) = serde_json::from_str(&note.to_json()) {
                add(name, note);
            }
        }
    }
    if schema.notes.as_ref().is_some_and(|notes| notes.is_granular_map) {
        add("x-kubernetes-map-type", json!("granular"));
    }
    if !schema.validations.is_empty() {
        add("x-kubernetes-validations", schema.validations.iter().map(rule).collect());
    }
    if let Some(checks) = &schema.checks {
        add_checks(&mut shown, checks, schema, texts, form);
    }
    let mut shown = Value::Object(shown);
    if schema.is_int_or_string && form == Form::V3 {
        add_alternatives(&mut shown);
    }
    if schema.is_embedded_resource && !(form == Form::V2 && schema.preserves_unknown_fields) {
        add_properties(&mut shown, texts);
        require(&mut shown, &["kind", "apiVersion"]);
    }
    shown
}

fn rule(rule: &ValidationRule) -> Value {
    let ValidationRule { rule, message, message_expression, reason, field_path, optional_old_self } = rule;
    let mut shown = json!({"rule": rule});
    let reason = reason.as_deref().unwrap_or_default();
    for (name, text) in [
        ("message", message.as_str()),
        ("messageExpression", message_expression),
        ("reason", reason),
        ("fieldPath", field_path),
    ] {
        if !text.is_empty() {
            shown[name] = json!(text);
        }
    }
    if let Some(is_optional) = optional_old_self {
        shown["optionalOldSelf"] = json!(is_optional);
    }
    shown
}

fn add_checks(shown: &mut Map<String, Value>, checks: &Checks, schema: &Structural, texts: &Descriptions, form: Form) {
    let mut add = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            shown.insert(name.to_owned(), value);
        }
    };
    let text = |text: &str| (!text.is_empty()).then(|| json!(text));
    let flag = |is_set: bool| is_set.then_some(Value::Bool(true));
    let count = |count: Option<i64>| count.map(|count| json!(count));
    add("format", text(&checks.format));
    add("pattern", text(&checks.pattern));
    add("minimum", checks.minimum.map(number));
    add("maximum", checks.maximum.map(number));
    add("multipleOf", checks.multiple_of.map(number));
    add("exclusiveMinimum", flag(checks.exclusive_minimum));
    add("exclusiveMaximum", flag(checks.exclusive_maximum));
    add("uniqueItems", flag(checks.unique_items));
    add("minLength", count(checks.min_length));
    add("maxLength", count(checks.max_length));
    add("minItems", count(checks.min_items));
    add("maxItems", count(checks.max_items));
    add("minProperties", count(checks.min_properties));
    add("maxProperties", count(checks.max_properties));
    // What may be null counts as absent for those who read the older form.
    let is_required = |name: &str| form == Form::V3 || !schema.property(name).is_some_and(|member| member.nullable);
    let has_null_members =
        form == Form::V2 && matches!(&schema.additional, Some(Additional::Schema(member)) if member.nullable);
    let required: Vec<&str> = checks.required.iter().map(|name| &**name).filter(|name| is_required(name)).collect();
    add("required", (!required.is_empty() && !has_null_members).then(|| json!(required)));
    let allowed = checks.allowed.iter().filter_map(|value| serde_json::from_str::<Value>(&value.to_json()).ok());
    add("enum", (!checks.allowed.is_empty()).then(|| allowed.collect()));
    if form == Form::V3 {
        let all = |schemas: &[Structural]| {
            let shown = schemas.iter().map(|schema| node(schema, texts, form));
            (!schemas.is_empty()).then(|| shown.collect())
        };
        add("allOf", all(&checks.all_of));
        add("anyOf", all(&checks.any_of));
        add("oneOf", all(&checks.one_of));
        add("not", checks.not.as_deref().map(|not| node(not, texts, form)));
    }
}

/// Says in the usual words that a value is an integer or a string, unless the schema does so itself.
fn add_alternatives(schema: &mut Value) {
    let both = json!([{"type": "integer"}, {"type": "string"}]);
    if schema["anyOf"] == both || schema["allOf"][0]["anyOf"] == both {
        return;
    }
    match (schema.get("anyOf").is_some(), schema.get_mut("allOf").and_then(Value::as_array_mut)) {
        (false, _) => schema["anyOf"] = both,
        (true, Some(all)) => all.insert(0, json!({"anyOf": both})),
        (true, None) => schema["allOf"] = json!([{"anyOf": both}]),
    }
}

fn require(schema: &mut Value, names: &[&str]) {
    let mut required: Vec<Value> = schema["required"].as_array().cloned().unwrap_or_default();
    for name in names {
        if !required.iter().any(|known| known == name) {
            required.push(json!(name));
        }
    }
    schema["required"] = Value::Array(required);
}

/// A bound, without a fraction where it has none.
fn number(number: f64) -> Value {
    const EXACT: f64 = (1_u64 << 53) as f64;
    if number.fract() == 0.0 && number.abs() < EXACT { json!(number as i64) } else { json!(number) }
}

#[cfg(test)]
mod tests;
