//! Whether the defaults in a schema are values that the schema would take: they have no unknown fields, embedded
//! resources in them are resources, and they pass all checks and rules.

use revisor_cel::DefaultRules;
use revisor_object::names::NameRule;
use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, Value, aggregate_message, clip_shown};
use revisor_schema::{Malformed, MetadataType, Structural, Validator};
use revisor_version::Release;

use super::validation::Tools;
use crate::validate_metadata;

/// What stands for the type of an object that is made up to hold a default.
const KIND: &str = "Validation";
const API_VERSION: &str = "validation/v1";

/// A step from a resource down to the place of a default.
#[derive(Clone, Copy)]
enum Step<'s> {
    Member(&'s str),
    Element,
}

struct Walk<'a> {
    metadata: MetadataType<'a>,
    rules: DefaultRules<'a>,
    formats: Release,
    requires_pruned: bool,
    errors: FieldErrors,
}

/// The way to a place: from the resource that it is in.
#[derive(Clone)]
struct Place<'s> {
    /// The schema of the resource around.
    resource: &'s Structural,
    steps: Vec<Step<'s>>,
    /// Whether it is in the type or metadata of the resource.
    in_metadata: bool,
    is_resource: bool,
}

/// What is wrong with the defaults of a schema, which is structural.
pub(super) fn validate(path: FieldPath<'_>, schema: &Structural, tools: &Tools, requires_pruned: bool) -> FieldErrors {
    let mut walk = Walk {
        metadata: tools.metadata(),
        rules: DefaultRules::new(tools.stored_rules()),
        formats: tools.formats(),
        requires_pruned,
        errors: FieldErrors::new(),
    };
    let place = Place { resource: schema, steps: Vec::new(), in_metadata: false, is_resource: true };
    walk.schema(path, schema, place);
    walk.errors
}

/// Whether a default in a schema has fields that the schema does not know.
pub(super) fn has_unknown_fields(schema: &Structural) -> bool {
    let is_unpruned = |default: &Value| !schema.prune(&mut default.clone(), schema.is_embedded_resource).is_empty();
    schema.default.as_ref().is_some_and(is_unpruned)
        || schema.items.as_ref().is_some_and(|items| has_unknown_fields(items))
        || schema.properties.iter().any(|(_, property)| has_unknown_fields(property))
}

impl Walk<'_> {
    fn schema<'s>(&mut self, path: FieldPath<'_>, schema: &'s Structural, place: Place<'s>) {
        let mut place = place;
        if schema.is_embedded_resource {
            place = Place { resource: schema, steps: Vec::new(), in_metadata: false, is_resource: true };
        }
        if let Some(default) = &schema.default {
            let at_default = path.child("default");
            let is_unpruned = || !schema.prune(&mut default.clone(), place.is_resource).is_empty();
            if !place.in_metadata && self.requires_pruned && is_unpruned() {
                // What else is wrong is told all the same.
                self.errors.push(FieldError::invalid(at_default, shown(default), "must not have unknown fields"));
            }
            let before = self.errors.len();
            if place.in_metadata {
                self.in_metadata(at_default, default, &place);
            } else {
                self.by_itself(at_default, default, schema, place.is_resource);
            }
            if self.errors.len() == before {
                let validator = Validator::compile_for_default(schema, self.formats.minor.into());
                self.errors.extend(validator.validate(&at_default, default));
            }
            if self.errors.len() == before {
                self.errors.extend(self.rules.check(schema, place.is_resource, &at_default));
            }
        }
        if self.rules.is_exhausted() {
            return;
        }
        // Members that have no name have no defaults.
        let below = |step: Step<'s>, in_metadata: bool| {
            let mut place = Place { in_metadata, is_resource: false, ..place.clone() };
            place.steps.push(step);
            place
        };
        if let Some(items) = &schema.items {
            self.schema(path.child("items"), items, below(Step::Element, place.in_metadata));
        }
        let at_properties = path.child("properties");
        for (name, property) in &schema.properties {
            let is_metadata = place.is_resource && matches!(&**name, "metadata" | "apiVersion" | "kind");
            let place = below(Step::Member(name), place.in_metadata || is_metadata);
            self.schema(at_properties.key(name), property, place);
        }
    }

    fn by_itself(&mut self, path: FieldPath<'_>, default: &Value, schema: &Structural, is_resource: bool) {
        let mut coerced = default.clone();
        match schema.coerce_metadata(&mut coerced, is_resource, self.metadata, Malformed::Refuse) {
            Err(mut error) => {
                error.field = clip_shown(format_args!("{path}.{}", error.field));
                self.errors.push(error);
            }
            Ok(_) => {
                if let Some(object) = coerced.as_object() {
                    let errors = schema.validate_embedded(&path, object, is_resource, self.metadata, &check_metadata);
                    self.errors.extend(errors);
                }
            }
        }
    }

    /// What is in metadata is looked at as part of a whole resource.
    fn in_metadata(&mut self, path: FieldPath<'_>, default: &Value, place: &Place<'_>) {
        let mut whole = default.clone();
        for step in place.steps.iter().rev() {
            whole = match step {
                Step::Member(name) => Value::Object([(*name, whole)].into_iter().collect()),
                Step::Element => Value::Array(vec![whole]),
            };
        }
        for (name, value) in [("kind", KIND), ("apiVersion", API_VERSION)] {
            if let Some(object) = whole.as_object_mut().filter(|object| !object.contains(name)) {
                object.insert(name, value);
            }
        }
        let problem = match place.resource.coerce_metadata(&mut whole, true, self.metadata, Malformed::Refuse) {
            Err(error) => Some(error.to_string()),
            Ok(_) => {
                let none = FieldPath::none();
                let found = whole.as_object().map(|object| {
                    place.resource.validate_embedded(&none, object, true, self.metadata, &check_metadata)
                });
                found.filter(|errors| !errors.is_empty()).map(|errors| aggregate_message(&errors))
            }
        };
        if let Some(problem) = problem {
            let detail = format!("must result in valid metadata: {problem}");
            self.errors.push(FieldError::invalid(path, shown(default), detail));
        }
    }
}

fn check_metadata(metadata: &Object) -> FieldErrors {
    let is_in_namespace = metadata.str("namespace").is_some_and(|namespace| !namespace.is_empty());
    validate_metadata(metadata, is_in_namespace, NameRule::PathSegment)
}

fn shown(value: &Value) -> BadValue {
    BadValue::of(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::apiextensions::validation::Tools;
    use crate::kinds::tests::{check, object, terms};

    #[test]
    fn defaults_pass_their_own_schema() {
        let tools = Tools::new(&terms());
        for (property, want) in [
            (r#"{"type":"string","default":"a"}"#, &[][..]),
            (r#"{"type":"string","nullable":true,"default":null}"#, &[]),
            (r#"{"type":"string","default":1}"#, &["FieldValueTypeInvalid s.properties[a].default"]),
            (r#"{"type":"string","enum":["a"],"default":"b"}"#, &["FieldValueNotSupported s.properties[a].default"]),
            (
                r#"{"type":"object","default":{"x":1,"y":2},"properties":{"x":{"type":"integer"}}}"#,
                &["FieldValueInvalid s.properties[a].default"],
            ),
            (
                r#"{"type":"string","default":{"x":1},"enum":["a"]}"#,
                &[
                    "FieldValueInvalid s.properties[a].default",
                    "FieldValueTypeInvalid s.properties[a].default",
                    "FieldValueNotSupported s.properties[a].default",
                ],
            ),
            (
                r#"{"type":"integer","default":5,"x-kubernetes-validations":[{"rule":"self > 10"}]}"#,
                &["FieldValueInvalid s.properties[a].default"],
            ),
            (r#"{"type":"integer","default":50,"x-kubernetes-validations":[{"rule":"self > 10"}]}"#, &[]),
            (
                r#"{"type":"array","items":{"type":"object","properties":{"x":{"type":"integer","default":"one"}}}}"#,
                &["FieldValueTypeInvalid s.properties[a].items.properties[x].default"],
            ),
            (
                r#"{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true,
                    "default":{"apiVersion":"v1","kind":"A","metadata":{"name":1}}}"#,
                &["FieldValueInvalid s.properties[a].default.metadata"],
            ),
            (
                r#"{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true,
                    "default":{"kind":"A"}}"#,
                &["FieldValueRequired s.properties[a].default.apiVersion"],
            ),
            (
                r#"{"type":"object","x-kubernetes-embedded-resource":true,
                    "properties":{"metadata":{"type":"object","default":{"labels":{"a":"-"}}},"kind":{"type":"string","default":"A"}}}"#,
                &["FieldValueInvalid s.properties[a].properties[metadata].default"],
            ),
        ] {
            let schema = Structural::read(&object(&format!(r#"{{"type":"object","properties":{{"a":{property}}}}}"#)));
            let found = validate(FieldPath::root("s"), &schema, &tools, true);
            check(property, &found, want);
        }
    }

    #[test]
    fn unknown_fields_may_be_left_from_before() {
        let schema = Structural::read(&object(
            r#"{"type":"object","properties":{"a":{"type":"object","default":{"y":2},"properties":{"x":{"type":"integer"}}}}}"#,
        ));
        assert!(has_unknown_fields(&schema));
        let tools = Tools::new(&terms());
        let found = validate(FieldPath::root("s"), &schema, &tools, false);
        check("unpruned", &found, &[]);
    }
}
