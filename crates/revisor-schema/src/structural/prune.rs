//! Taking out of an object what its schema does not know.
//!
//! Nothing is allocated unless something is found.

use revisor_object::{FieldNames, FieldPath, Object, Value};

use super::{Additional, Structural};

impl Structural {
    /// Removes from `value` what the schema does not know and does not preserve. Answers the paths of what went, sorted.
    ///
    /// The type and metadata of a resource stay as they are: those of an embedded one, and those of `value` itself if
    /// `is_resource`.
    pub fn prune(&self, value: &mut Value, is_resource: bool) -> FieldNames {
        let mut walk = Walk { unknown: FieldNames::default(), drops_nulls: false };
        match value {
            Value::Object(object) => walk.root(self, object, is_resource),
            other => walk.value(Some(self), other, false, &FieldPath::none()),
        }
        walk.sorted()
    }

    /// As [`prune`](Structural::prune), of a resource. Also removes every null that its schema neither allows nor has a
    /// default for, as if it had not been given.
    pub fn prune_with_nulls(&self, object: &mut Object) -> FieldNames {
        let mut walk = Walk { unknown: FieldNames::default(), drops_nulls: true };
        walk.root(self, object, true);
        walk.sorted()
    }

    /// What the schema says of the member `name`.
    pub(super) fn member(&self, name: &str) -> Member<'_> {
        match (self.property(name), &self.additional) {
            (Some(schema), _) => Member::Known(schema),
            (None, Some(Additional::Schema(schema))) => Member::Known(schema),
            (None, Some(Additional::Allowed(_))) => Member::Bare,
            (None, None) => Member::Unknown,
        }
    }
}

/// What a schema says of a member of an object.
#[derive(Clone, Copy)]
pub(super) enum Member<'s> {
    /// It looks like this.
    Known(&'s Structural),
    /// It may be there, and nothing is known of what is in it.
    Bare,
    /// Nothing.
    Unknown,
}

pub(super) fn is_meta(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

struct Walk {
    unknown: FieldNames,
    drops_nulls: bool,
}

impl Walk {
    fn sorted(mut self) -> FieldNames {
        self.unknown.sort();
        self.unknown
    }

    fn root(&mut self, schema: &Structural, object: &mut Object, is_resource: bool) {
        let is_resource = is_resource || schema.is_embedded_resource;
        self.object(Some(schema), object, schema.preserves_unknown_fields, is_resource, &FieldPath::none());
    }

    /// `keeps`: unknown members stay, because a list around it says so.
    fn value(&mut self, schema: Option<&Structural>, value: &mut Value, keeps: bool, path: &FieldPath<'_>) {
        let keeps = keeps || schema.is_some_and(|schema| schema.preserves_unknown_fields);
        if keeps && schema.is_none() {
            return;
        }
        match value {
            Value::Object(object) => {
                let is_resource = schema.is_some_and(|schema| schema.is_embedded_resource);
                self.object(schema, object, keeps, is_resource, path);
            }
            Value::Array(items) => {
                let schema = schema.and_then(|schema| schema.items.as_deref());
                for (at, item) in items.iter_mut().enumerate() {
                    self.value(schema, item, keeps, &path.index(at));
                }
            }
            _ => {}
        }
    }

    fn object(
        &mut self,
        schema: Option<&Structural>,
        object: &mut Object,
        keeps: bool,
        is_resource: bool,
        path: &FieldPath<'_>,
    ) {
        object.retain(|name, value| {
            if is_resource && is_meta(name) {
                return true;
            }
            match schema.map_or(Member::Unknown, |schema| schema.member(name)) {
                Member::Known(schema) => {
                    if self.drops_nulls && value.is_null() && !schema.nullable && schema.default.is_none() {
                        return false;
                    }
                    self.value(Some(schema), value, false, &path.child(name));
                    true
                }
                Member::Bare => {
                    self.value(None, value, false, &path.child(name));
                    true
                }
                Member::Unknown if keeps => true,
                Member::Unknown => {
                    self.unknown.push(path.child(name));
                    false
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{parse, schema};

    #[test]
    fn what_the_schema_does_not_know_goes() {
        let nested = r#"{"type":"object","properties":{"a":{"type":"string"}}}"#;
        for (name, schema_text, text, want, unknown) in [
            (
                "members, in objects and lists",
                format!(r#"{{"properties":{{"spec":{nested},"list":{{"type":"array","items":{nested}}}}}}}"#),
                r#"{"spec":{"a":"x","b":{"c":1}},"list":[{"a":"1"},{"z":1}],"other":2}"#,
                r#"{"list":[{"a":"1"},{}],"spec":{"a":"x"}}"#,
                vec!["list[1].z", "other", "spec.b"],
            ),
            (
                "type and metadata of the resource stay",
                r#"{"type":"object"}"#.to_owned(),
                r#"{"apiVersion":"a/v1","kind":"A","metadata":{"name":"n","odd":1},"status":{}}"#,
                r#"{"apiVersion":"a/v1","kind":"A","metadata":{"name":"n","odd":1}}"#,
                vec!["status"],
            ),
            (
                "those of embedded resources too, and of nothing else",
                r#"{"properties":{"e":{"x-kubernetes-embedded-resource":true,"properties":{"spec":{}}},"n":{}}}"#
                    .to_owned(),
                r#"{"e":{"kind":"K","metadata":{"x":1},"spec":{"y":1},"z":1},"n":{"kind":"K"}}"#,
                r#"{"e":{"kind":"K","metadata":{"x":1},"spec":{}},"n":{}}"#,
                vec!["e.spec.y", "e.z", "n.kind"],
            ),
            (
                "preserved members stay, known ones are looked into",
                format!(r#"{{"x-kubernetes-preserve-unknown-fields":true,"properties":{{"known":{nested}}}}}"#),
                r#"{"known":{"b":1},"open":{"b":[{"c":1}]}}"#,
                r#"{"known":{},"open":{"b":[{"c":1}]}}"#,
                vec!["known.b"],
            ),
            (
                "a list that preserves does so for its elements",
                format!(r#"{{"properties":{{"l":{{"x-kubernetes-preserve-unknown-fields":true,"items":{nested}}}}}}}"#),
                r#"{"l":[{"a":"1","b":2}]}"#,
                r#"{"l":[{"a":"1","b":2}]}"#,
                vec![],
            ),
            (
                "members of maps",
                format!(
                    r#"{{"properties":{{"m":{{"additionalProperties":{nested}}},"f":{{"additionalProperties":true}}}}}}"#
                ),
                r#"{"m":{"k":{"a":"1","b":2}},"f":{"s":"x","o":{"p":1},"l":[{"q":1}]}}"#,
                r#"{"f":{"l":[{}],"o":{},"s":"x"},"m":{"k":{"a":"1"}}}"#,
                vec!["f.l[0].q", "f.o.p", "m.k.b"],
            ),
        ] {
            let mut value = parse(text);
            let found = schema(&schema_text).prune(&mut value, true);
            assert_eq!(value.to_json(), want, "{name}");
            assert_eq!(*found, unknown[..], "{name}");
        }
    }

    #[test]
    fn nulls_that_are_neither_allowed_nor_replaced_go() {
        let schema = schema(
            r#"{"properties":{"a":{"type":"string"},"n":{"type":"string","nullable":true},
                "d":{"type":"string","default":"x"},"l":{"type":"array","items":{"type":"string"}},
                "m":{"additionalProperties":{"type":"string"}},"o":{"x-kubernetes-preserve-unknown-fields":true}}}"#,
        );
        let mut value = parse(r#"{"a":null,"n":null,"d":null,"l":[null],"m":{"k":null},"o":{"u":null}}"#);
        let object = value.as_object_mut().expect("is an object");
        assert!(schema.prune_with_nulls(object).is_empty());
        assert_eq!(value.to_json(), r#"{"d":null,"l":[null],"m":{},"n":null,"o":{"u":null}}"#);
    }
}
