//! Giving what is absent its default: members of objects that are there, and nulls that are not allowed.

use compact_str::CompactString;
use revisor_object::{Object, Value};

use super::metadata::{Malformed, MetadataType};
use super::prune::Member;
use super::{Additional, Structural};

impl Structural {
    /// Whether there is a default in the schema or below it. Without one, nothing has to be looked at.
    pub fn has_defaults(&self) -> bool {
        self.default.is_some()
            || self.properties.iter().any(|(_, schema)| schema.has_defaults())
            || self.items.as_ref().is_some_and(|items| items.has_defaults())
            || matches!(&self.additional, Some(Additional::Schema(schema)) if schema.has_defaults())
    }

    /// Gives what is absent below `value` its default. Objects that are not there are not made for the sake of the
    /// defaults in them; a default itself is looked into. Doing it again changes nothing.
    pub fn fill_defaults(&self, value: &mut Value) {
        match value {
            Value::Object(object) => self.fill_object(object),
            Value::Array(items) => {
                let Some(schema) = &self.items else { return };
                for item in items {
                    schema.replace_null(item);
                    schema.fill_defaults(item);
                }
            }
            _ => {}
        }
    }

    pub(super) fn fill_object(&self, object: &mut Object) {
        let mut missing = Vec::new();
        for (name, schema) in &self.properties {
            let Some(default) = &schema.default else { continue };
            match object.get_mut(name) {
                Some(value) if value.is_null() && !schema.nullable => *value = default.clone(),
                Some(_) => {}
                None => missing.push((CompactString::from(&**name), default.clone())),
            }
        }
        object.insert_all(missing);
        for (name, value) in object.iter_mut() {
            // Nothing can be missing in most members, and to look for their schemas is most of the work.
            if !matches!(value, Value::Null | Value::Object(_) | Value::Array(_)) {
                continue;
            }
            if let Member::Known(schema) = self.member(name) {
                if self.property(name).is_none() {
                    schema.replace_null(value);
                }
                schema.fill_defaults(value);
            }
        }
    }

    /// Takes out of all defaults what the schema would not let an object have at their places.
    pub(super) fn prune_defaults(&mut self, metadata: MetadataType<'_>) {
        self.prune_defaults_below(metadata, false, true);
    }

    /// `keeps`: a list around it preserves what is unknown. `is_resource`: its metadata is that of an object.
    fn prune_defaults_below(&mut self, metadata: MetadataType<'_>, keeps: bool, is_resource: bool) {
        let is_resource = is_resource || self.is_embedded_resource;
        if let Some(mut default) = self.default.take() {
            // With fields that are wrong dropped there is nothing left to refuse.
            let _ = self.coerce_metadata(&mut default, is_resource, metadata, Malformed::Drop);
            if !keeps {
                self.prune(&mut default, is_resource);
            }
            self.default = Some(default);
        }
        let keeps_items = self.preserves_unknown_fields || keeps;
        if let Some(items) = &mut self.items {
            items.prune_defaults_below(metadata, keeps_items, false);
        }
        if let Some(Additional::Schema(schema)) = &mut self.additional {
            schema.prune_defaults_below(metadata, false, false);
        }
        for (name, schema) in &mut self.properties {
            if is_resource && &**name == "metadata" {
                // Metadata knows its own fields.
                if let Some(default) = schema.default.take() {
                    let mut holder: Object = [("metadata", default)].into_iter().collect();
                    let _ = super::metadata::coerce_object_metadata(&mut holder, metadata, Malformed::Drop);
                    schema.default = holder.remove("metadata");
                }
                continue;
            }
            schema.prune_defaults_below(metadata, false, false);
        }
    }

    fn replace_null(&self, value: &mut Value) {
        if let (Value::Null, false, Some(default)) = (&*value, self.nullable, &self.default) {
            *value = default.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::metadata::MetadataType;
    use super::super::testing::{metadata_types, parse, schema};

    #[test]
    fn defaults_hold_only_what_objects_may() {
        let types = metadata_types();
        let metadata = MetadataType { types: &types, id: types.id("meta.v1.ObjectMeta").expect("is there") };
        let mut schema = schema(
            r#"{"properties":{"o":{"default":{"a":1,"b":2},"properties":{"a":{}}},
                "e":{"x-kubernetes-embedded-resource":true,"default":{"metadata":{"name":"n","odd":1},"x":1}}}}"#,
        );
        schema.prune_defaults(metadata);
        let shown =
            |name| schema.property(name).and_then(|schema| schema.default.as_ref()).map(|value| value.to_json());
        assert_eq!(shown("o").as_deref(), Some(r#"{"a":1}"#));
        assert_eq!(shown("e").as_deref(), Some(r#"{"metadata":{"name":"n"}}"#));
    }

    #[test]
    fn what_is_absent_gets_its_default() {
        for (name, schema_text, text, want) in [
            ("members", r#"{"properties":{"a":{"default":1},"b":{"default":2}}}"#, r#"{"a":5}"#, r#"{"a":5,"b":2}"#),
            ("objects are not made", r#"{"properties":{"o":{"properties":{"a":{"default":1}}}}}"#, "{}", "{}"),
            (
                "defaults are looked into",
                r#"{"properties":{"o":{"default":{},"properties":{"a":{"default":1}}}}}"#,
                "{}",
                r#"{"o":{"a":1}}"#,
            ),
            (
                "elements and members of maps",
                r#"{"properties":{"l":{"items":{"default":"x","properties":{"a":{"default":1}}}},
                    "m":{"additionalProperties":{"default":"y","properties":{"a":{"default":2}}}}}}"#,
                r#"{"l":[{},null,"z"],"m":{"k":{},"n":null}}"#,
                r#"{"l":[{"a":1},"x","z"],"m":{"k":{"a":2},"n":"y"}}"#,
            ),
            (
                "null is replaced where it is not allowed",
                r#"{"properties":{"a":{"default":1},"b":{"default":1,"nullable":true}}}"#,
                r#"{"a":null,"b":null}"#,
                r#"{"a":1,"b":null}"#,
            ),
        ] {
            let schema = schema(schema_text);
            assert!(schema.has_defaults(), "{name}");
            let mut value = parse(text);
            schema.fill_defaults(&mut value);
            assert_eq!(value.to_json(), want, "{name}");
            schema.fill_defaults(&mut value);
            assert_eq!(value.to_json(), want, "{name}, again");
        }
        assert!(!schema(r#"{"properties":{"a":{"type":"string"}}}"#).has_defaults());
    }
}
