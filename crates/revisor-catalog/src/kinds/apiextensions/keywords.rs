//! What the keywords of a schema may say, at each place of it, structural or not.

use std::cell::LazyCell;
use std::collections::HashSet;

use revisor_cel::valid_field_path;
use revisor_object::{FieldError, FieldErrors, FieldPath, Object, Value};
use revisor_schema::Structural;

use super::{schema_tree, shown};
use crate::kinds::members::{entries, is_true, objects, text, texts};

/// The types that a value may have.
pub(super) const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// The reasons that a rule may give.
const REASONS: [&str; 4] = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// What is demanded of keywords. Definitions that broke a demand before it was made may go on doing so.
#[derive(Debug, Clone, Copy)]
pub(super) struct Demands {
    pub(super) known_types: bool,
    pub(super) atomic_sets: bool,
    pub(super) map_keys: bool,
}

/// Where in a schema a keyword stands.
#[derive(Clone, Copy)]
struct Place<'p> {
    path: FieldPath<'p>,
    is_root: bool,
    /// Inside the type or metadata of an object.
    in_metadata: bool,
    /// Why there may be no defaults.
    no_defaults: Option<&'p str>,
}

/// What is wrong with the keywords of a schema.
pub(super) fn validate(path: FieldPath<'_>, schema: &Object, demands: Demands) -> FieldErrors {
    let mut errors = FieldErrors::new();
    walk(Place { path, is_root: true, in_metadata: false, no_defaults: None }, schema, demands, &mut errors);
    errors
}

fn walk(place: Place<'_>, schema: &Object, demands: Demands, errors: &mut FieldErrors) {
    unsupported(place, schema, demands, errors);
    if is_true(schema, "uniqueItems") {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(place.path.child("uniqueItems"), detail));
    }
    walk_members(place, schema, demands, errors);
    walk_junctors(place, schema, demands, errors);
    walk_items(place, schema, demands, errors);
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        let at = place.path.child("x-kubernetes-preserve-unknown-fields");
        errors.push(FieldError::invalid(at, false, "must be true or undefined"));
    }
    topologies(place.path, schema, demands, errors);
    rule_texts(place.path, schema, errors);
}

/// Keywords that JSON schema has and definitions do not.
fn unsupported(place: Place<'_>, schema: &Object, demands: Demands, errors: &mut FieldErrors) {
    let path = place.path;
    let kind = text(schema, "type");
    if demands.known_types && !kind.is_empty() && !TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(path.child("type"), kind, &TYPES));
    }
    if let Some(reason) = place.no_defaults.filter(|_| schema.contains("default")) {
        errors.push(FieldError::forbidden(path.child("default"), format!("must not be set {reason}")));
    }
    for name in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
        let is_used = if name == "dependencies" { schema.is_sent(name) } else { schema.contains(name) };
        if is_used {
            errors.push(FieldError::forbidden(path.child(name), format!("{name} is not supported")));
        }
    }
    if kind == "null" {
        let detail = "type cannot be set to null, use nullable as an alternative";
        errors.push(FieldError::forbidden(path.child("type"), detail));
    }
    if !schema.array("items").is_empty() {
        let detail = "items must be a schema object and not an array";
        errors.push(FieldError::forbidden(path.child("items"), detail));
    }
    if place.in_metadata && is_true(schema, "x-kubernetes-embedded-resource") {
        let detail = "must not be used inside of resource meta";
        errors.push(FieldError::forbidden(path.child("x-kubernetes-embedded-resource"), detail));
    }
}

/// The members of an object, named or not.
fn walk_members(place: Place<'_>, schema: &Object, demands: Demands, errors: &mut FieldErrors) {
    let at_additional = place.path.child("additionalProperties");
    let below = Place { is_root: false, ..place };
    if let Some(additional) = schema.get("additionalProperties") {
        if schema.contains("properties") && *additional != Value::Bool(true) {
            let detail = "additionalProperties and properties are mutual exclusive";
            errors.push(FieldError::forbidden(at_additional, detail));
        }
        if let Some(member) = additional.as_object() {
            let no_defaults = match place.in_metadata {
                true => Some("inside additionalProperties applying to object metadata"),
                false => place.no_defaults,
            };
            walk(Place { path: at_additional, no_defaults, ..below }, member, demands, errors);
        }
    }
    let at_properties = place.path.child("properties");
    for (name, property) in entries(schema, "properties") {
        let Some(property) = property.as_object() else { continue };
        let is_object = place.is_root || is_true(schema, "x-kubernetes-embedded-resource");
        let is_metadata = is_object && matches!(name, "metadata" | "kind" | "apiVersion");
        let reason = format!("in top-level {name}");
        let no_defaults = if is_metadata && place.is_root { Some(reason.as_str()) } else { place.no_defaults };
        let in_metadata = place.in_metadata || is_metadata;
        let path = at_properties.key(name);
        walk(Place { path, in_metadata, no_defaults, ..below }, property, demands, errors);
    }
}

/// What restricts the same value further, and schemas that are there to be referred to.
fn walk_junctors(place: Place<'_>, schema: &Object, demands: Demands, errors: &mut FieldErrors) {
    let below = Place { is_root: false, ..place };
    if let Some(not) = schema.object("not") {
        walk(Place { path: place.path.child("not"), ..below }, not, demands, errors);
    }
    for name in ["allOf", "oneOf", "anyOf"] {
        let list = place.path.child(name);
        for (at, nested) in objects(schema, name) {
            walk(Place { path: list.index(at), ..below }, nested, demands, errors);
        }
    }
    for name in ["definitions", "dependencies"] {
        let map = place.path.child(name);
        for (key, nested) in entries(schema, name) {
            if let Some(nested) = nested.as_object() {
                walk(Place { path: map.key(key), ..below }, nested, demands, errors);
            }
        }
    }
}

fn walk_items(place: Place<'_>, schema: &Object, demands: Demands, errors: &mut FieldErrors) {
    let at_items = place.path.child("items");
    let below = Place { is_root: false, ..place };
    if let Some(items) = schema.object("items") {
        walk(Place { path: at_items, ..below }, items, demands, errors);
    }
    for (at, items) in objects(schema, "items") {
        walk(Place { path: at_items.index(at), ..below }, items, demands, errors);
    }
}

/// How lists and maps are seen.
fn topologies(path: FieldPath<'_>, schema: &Object, demands: Demands, errors: &mut FieldErrors) {
    let kind = text(schema, "type");
    let (map_type, list_type) = (schema.str("x-kubernetes-map-type"), schema.str("x-kubernetes-list-type"));
    let wrong_type = |wanted: &str, keyword: &str| {
        let detail = format!("must be {wanted} if {keyword} is specified");
        match kind {
            "" => FieldError::required(path.child("type"), detail),
            kind => FieldError::invalid(path.child("type"), kind, detail),
        }
    };
    if let Some(map_type) = map_type {
        if kind != "object" {
            errors.push(wrong_type("object", "x-kubernetes-map-type"));
        }
        if !matches!(map_type, "atomic" | "granular") {
            let at = path.child("x-kubernetes-map-type");
            errors.push(FieldError::not_supported(at, map_type, &["atomic", "granular"]));
        }
    }
    if list_type.is_some() && kind != "array" {
        errors.push(wrong_type("array", "x-kubernetes-list-type"));
    } else if demands.atomic_sets {
        errors.extend(non_atomic_set(path, schema));
    }
    let at_list_type = path.child("x-kubernetes-list-type");
    if let Some(list_type) = list_type.filter(|list_type| !matches!(*list_type, "atomic" | "set" | "map")) {
        errors.push(FieldError::not_supported(at_list_type, list_type, &["atomic", "set", "map"]));
    }
    if schema.contains("x-kubernetes-list-map-keys") {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        match list_type {
            None => errors.push(FieldError::required(at_list_type, detail)),
            Some("map") => {}
            Some(other) => errors.push(FieldError::invalid(at_list_type, other, detail)),
        }
    }
    if list_type == Some("map") {
        list_map(path, schema, errors);
    }
    if demands.map_keys {
        errors.extend(list_keys(path, schema));
    }
}

/// The elements of a set must be seen as one value each.
pub(super) fn non_atomic_set(path: FieldPath<'_>, schema: &Object) -> Option<FieldError> {
    if text(schema, "x-kubernetes-list-type") != "set" {
        return None;
    }
    let items = schema.object("items")?;
    let at_items = path.child("items");
    let (name, is_wrong) = match text(items, "type") {
        "array" => ("x-kubernetes-list-type", !matches!(items.str("x-kubernetes-list-type"), None | Some("atomic"))),
        "object" => ("x-kubernetes-map-type", items.str("x-kubernetes-map-type") != Some("atomic")),
        _ => return None,
    };
    let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let value = shown::given(items.get("x-kubernetes-list-type"));
    is_wrong.then(|| FieldError::invalid(at_items.child(name), value, detail))
}

/// A list whose elements are told apart by keys.
fn list_map(path: FieldPath<'_>, schema: &Object, errors: &mut FieldErrors) {
    let at_keys = path.child("x-kubernetes-list-map-keys");
    let at_items = path.child("items");
    if !schema.contains("x-kubernetes-list-map-keys") {
        errors.push(FieldError::required(at_keys, "must not be empty if x-kubernetes-list-type is map"));
    }
    let items = match schema.get("items") {
        None => {
            let detail = "must have a schema if x-kubernetes-list-type is map";
            return errors.push(FieldError::required(at_items, detail));
        }
        Some(Value::Object(items)) => items,
        Some(other) => {
            let detail = "must only have a single schema if x-kubernetes-list-type is map";
            return errors.push(FieldError::invalid(at_items, shown::items(other), detail));
        }
    };
    let kind = text(items, "type");
    if kind != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        return errors.push(FieldError::invalid(at_items.child("type"), kind, detail));
    }
    let at_properties = at_items.child("properties");
    // Every key may be wrong, and each error shows all of them: they are put into words once.
    let all_keys = LazyCell::new(|| shown::given(schema.get("x-kubernetes-list-map-keys")).clipped());
    let mut seen = HashSet::new();
    for (_, key) in texts(schema, "x-kubernetes-list-map-keys") {
        match items.object("properties").and_then(|properties| properties.object(key)) {
            Some(property) if matches!(text(property, "type"), "array" | "object") => {
                let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                errors.push(FieldError::invalid(at_properties.key(key).child("type"), kind, detail));
            }
            Some(_) => {}
            None => {
                let detail = "entries must all be names of item properties";
                errors.push(FieldError::invalid(at_keys, all_keys.clone(), detail));
            }
        }
        if !seen.insert(key) {
            errors.push(FieldError::invalid(at_keys, all_keys.clone(), "must not contain duplicate entries"));
        }
    }
}

/// What tells elements apart is always there.
pub(super) fn list_keys(path: FieldPath<'_>, schema: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let list_type = text(schema, "x-kubernetes-list-type");
    let Some(items) = schema.object("items").filter(|_| matches!(list_type, "set" | "map")) else { return errors };
    let at_items = path.child("items");
    if is_true(items, "nullable") {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(FieldError::forbidden(at_items.child("nullable"), detail));
    }
    if list_type == "set" {
        return errors;
    }
    let at_properties = at_items.child("properties");
    let required: HashSet<&str> = texts(items, "required").map(|(_, name)| name).collect();
    for (_, key) in texts(schema, "x-kubernetes-list-map-keys") {
        let Some(property) = items.object("properties").and_then(|properties| properties.object(key)) else { continue };
        let at = at_properties.key(key);
        if !required.contains(key) && !property.contains("default") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required \
                          property";
            errors.push(FieldError::required(at.child("default"), detail));
        }
        if is_true(property, "nullable") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(at.child("nullable"), detail));
        }
    }
    errors
}

/// The texts of rules. What they mean is looked at elsewhere.
fn rule_texts(path: FieldPath<'_>, schema: &Object, errors: &mut FieldErrors) {
    let has_breaks = |text: &str| text.contains(['\n', '\r']);
    let at_rules = path.child("x-kubernetes-validations");
    // Many rules may name fields of one schema, which is read once.
    let structural = LazyCell::new(|| schema_tree::unreadable(schema).is_none().then(|| Structural::read(schema)));
    for (at, rule) in objects(schema, "x-kubernetes-validations") {
        let path = at_rules.index(at);
        let (at_message, at_field) = (path.child("message"), path.child("fieldPath"));
        let (expression, message) = (text(rule, "rule").trim(), text(rule, "message"));
        if expression.is_empty() {
            errors.push(FieldError::required(path.child("rule"), "rule is not specified"));
        } else if !message.is_empty() && message.trim().is_empty() {
            errors.push(FieldError::invalid(at_message, message, "must be non-empty if specified"));
        } else if has_breaks(message.trim()) {
            errors.push(FieldError::invalid(at_message, message, "must not contain line breaks"));
        } else if has_breaks(expression) && message.is_empty() {
            let detail = "message must be specified if rule contains line breaks";
            errors.push(FieldError::required(at_message, detail));
        }
        let message_expression = text(rule, "messageExpression");
        if !message_expression.is_empty() && message_expression.trim().is_empty() {
            let detail = "messageExpression must be non-empty if specified";
            errors.push(FieldError::required(path.child("messageExpression"), detail));
        }
        if let Some(reason) = rule.str("reason").filter(|reason| !REASONS.contains(reason)) {
            let shown = shown::given(Some(&Value::from(reason)));
            errors.push(FieldError::not_supported(path.child("reason"), shown, &REASONS));
        }
        let field = text(rule, "fieldPath");
        if field.is_empty() {
            continue;
        }
        if field.trim().is_empty() {
            errors.push(FieldError::invalid(at_field, field, "must be non-empty if specified"));
        }
        if has_breaks(field) {
            errors.push(FieldError::invalid(at_field, field, "must not contain line breaks"));
        }
        if structural.as_ref().is_some_and(|schema| valid_field_path(field, schema, true).is_err()) {
            errors.push(FieldError::invalid(at_field, field, "must be a valid path"));
        }
    }
}

#[cfg(test)]
mod tests;
