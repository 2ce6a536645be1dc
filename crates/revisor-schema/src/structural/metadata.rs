//! Resources inside resources: their type and metadata are made to fit as those of any object, and are checked.
//!
//! What a good name or label is, is not known here; the caller brings the check of metadata.

use revisor_object::names::dns1035_label;
use revisor_object::{BadValue, FieldError, FieldErrors, FieldNames, FieldPath, Object, Value, clip_shown};

use super::prune::Member;
use super::value_ref::ValueRef;
use super::{Additional, Structural};
use crate::{Mismatch, StructId, Types};

/// The type of metadata: `meta.v1.ObjectMeta` in the table of all types.
#[derive(Clone, Copy)]
pub struct MetadataType<'t> {
    /// The table.
    pub types: &'t Types,
    /// The type in it.
    pub id: StructId,
}

/// What becomes of metadata that is not of its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// It is refused: a client sent it.
    Refuse,
    /// The fields that are wrong are dropped: it comes from the store, where clients could never mend it.
    Drop,
}

impl Structural {
    /// Whether a resource is embedded in the schema or below it.
    pub fn has_embedded_resources(&self) -> bool {
        self.is_embedded_resource
            || self.properties.iter().any(|(_, schema)| schema.has_embedded_resources())
            || self.items.as_ref().is_some_and(|items| items.has_embedded_resources())
            || matches!(&self.additional, Some(Additional::Schema(schema)) if schema.has_embedded_resources())
    }

    /// Makes the types and metadata of embedded resources fit, and of `value` itself if `is_resource`. Answers the paths
    /// of metadata that does not exist, sorted.
    pub fn coerce_metadata(
        &self,
        value: &mut Value,
        is_resource: bool,
        metadata: MetadataType<'_>,
        malformed: Malformed,
    ) -> Result<FieldNames, FieldError> {
        let mut walk = Coercion { metadata, malformed, unknown: FieldNames::default() };
        match value {
            Value::Object(object) => self.coerce_object(object, is_resource, &mut walk, &FieldPath::none())?,
            other => self.coerce(other, &mut walk, &FieldPath::none())?,
        }
        walk.unknown.sort();
        Ok(walk.unknown)
    }

    pub(super) fn coerce_embedded(
        &self,
        object: &mut Object,
        metadata: MetadataType<'_>,
        malformed: Malformed,
    ) -> Result<FieldNames, FieldError> {
        let mut walk = Coercion { metadata, malformed, unknown: FieldNames::default() };
        self.coerce_object(object, false, &mut walk, &FieldPath::none())?;
        walk.unknown.sort();
        Ok(walk.unknown)
    }

    fn coerce(&self, value: &mut Value, walk: &mut Coercion<'_>, path: &FieldPath<'_>) -> Result<(), FieldError> {
        match value {
            Value::Object(object) => self.coerce_object(object, self.is_embedded_resource, walk, path),
            Value::Array(items) => {
                let Some(schema) = &self.items else { return Ok(()) };
                for (at, item) in items.iter_mut().enumerate() {
                    schema.coerce(item, walk, &path.index(at))?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn coerce_object(
        &self,
        object: &mut Object,
        is_resource: bool,
        walk: &mut Coercion<'_>,
        path: &FieldPath<'_>,
    ) -> Result<(), FieldError> {
        if is_resource || self.is_embedded_resource {
            walk.resource(object, path)?;
        }
        for (name, value) in object.iter_mut() {
            match (self.property(name), self.member(name)) {
                (Some(schema), _) => schema.coerce(value, walk, &path.child(name))?,
                (None, Member::Known(schema)) => schema.coerce(value, walk, &path.key(name))?,
                _ => {}
            }
        }
        Ok(())
    }

    /// What is wrong with the types and metadata of embedded resources in the object at `path`, and with its own if
    /// `is_resource`. `check` says what is wrong with metadata that is of its type and has a name; the fields of its
    /// errors begin with `metadata`.
    pub fn validate_embedded(
        &self,
        path: &FieldPath<'_>,
        object: &Object,
        is_resource: bool,
        metadata: MetadataType<'_>,
        check: &dyn Fn(&Object) -> FieldErrors,
    ) -> FieldErrors {
        let mut walk = Inspection { metadata, check, errors: FieldErrors::new() };
        self.inspect_object(object, is_resource, &mut walk, path);
        walk.errors
    }

    fn inspect(&self, value: &Value, walk: &mut Inspection<'_>, path: &FieldPath<'_>) {
        match value {
            Value::Object(object) => self.inspect_object(object, false, walk, path),
            Value::Array(items) => {
                let Some(schema) = &self.items else { return };
                for (at, item) in items.iter().enumerate() {
                    schema.inspect(item, walk, &path.index(at));
                }
            }
            _ => {}
        }
    }

    fn inspect_object(&self, object: &Object, is_resource: bool, walk: &mut Inspection<'_>, path: &FieldPath<'_>) {
        if is_resource || self.is_embedded_resource {
            walk.resource(object, path);
        }
        for (name, value) in object.iter() {
            match (self.property(name), self.member(name)) {
                (Some(schema), _) => schema.inspect(value, walk, &path.child(name)),
                (None, Member::Known(schema)) => schema.inspect(value, walk, &path.key(name)),
                _ => {}
            }
        }
    }
}

/// Makes `object.metadata` fit its type. Answers what it had and does not exist, as `metadata.odd`.
pub(super) fn coerce_object_metadata(
    object: &mut Object,
    metadata: MetadataType<'_>,
    malformed: Malformed,
) -> Result<FieldNames, Mismatch> {
    let Some(given) = object.get_mut("metadata") else { return Ok(FieldNames::default()) };
    let MetadataType { types, id } = metadata;
    match malformed {
        Malformed::Refuse => Ok(below_metadata(&types.conform(id, given)?.unknown_fields)),
        Malformed::Drop => {
            let (findings, fits) = types.conform_partly(id, given);
            let mut unknown = findings.unknown_fields;
            if let (Err(_), Value::Object(members)) = (fits, given) {
                drop_misfits(members, metadata, &mut unknown);
            }
            Ok(below_metadata(&unknown))
        }
    }
}

/// Drops the fields of metadata that are not of their types, one by one, so that none takes the others with it.
fn drop_misfits(members: &mut Object, metadata: MetadataType<'_>, unknown: &mut FieldNames) {
    members.retain(|name, value| {
        let mut alone = Value::Object([(name, std::mem::take(value))].into_iter().collect());
        let Ok(findings) = metadata.types.conform(metadata.id, &mut alone) else { return false };
        unknown.append_below("", &findings.unknown_fields);
        match alone.as_object_mut().and_then(|alone| alone.remove(name)) {
            Some(fitting) => {
                *value = fitting;
                true
            }
            None => false,
        }
    });
}

fn below_metadata(fields: &FieldNames) -> FieldNames {
    let mut below = FieldNames::default();
    below.append_below("metadata.", fields);
    below
}

struct Coercion<'t> {
    metadata: MetadataType<'t>,
    malformed: Malformed,
    unknown: FieldNames,
}

impl Coercion<'_> {
    fn resource(&mut self, object: &mut Object, path: &FieldPath<'_>) -> Result<(), FieldError> {
        for name in ["apiVersion", "kind"] {
            match object.get(name) {
                None | Some(Value::String(_)) => {}
                Some(_) if self.malformed == Malformed::Drop => {
                    object.remove(name);
                }
                Some(other) => return Err(FieldError::invalid(path.child(name), quote(other), "must be a string")),
            }
        }
        // What does not fit is shown as it was given.
        let before = object.get("metadata").cloned();
        match coerce_object_metadata(object, self.metadata, self.malformed) {
            Ok(unknown) => {
                let prefix = path.to_string();
                let dot = if prefix == "<nil>" { String::new() } else { format!("{prefix}.") };
                self.unknown.append_below(&dot, &unknown);
                Ok(())
            }
            Err(mismatch) => {
                let shown = before.as_ref().map_or(BadValue::Omitted, quote);
                Err(FieldError::invalid(path.child("metadata"), shown, mismatch.to_string()))
            }
        }
    }
}

struct Inspection<'t> {
    metadata: MetadataType<'t>,
    check: &'t dyn Fn(&Object) -> FieldErrors,
    errors: FieldErrors,
}

impl Inspection<'_> {
    fn resource(&mut self, object: &Object, path: &FieldPath<'_>) {
        for name in ["apiVersion", "kind"] {
            if !object.contains(name) {
                self.errors.push(FieldError::required(path.child(name), ""));
            }
        }
        if let Some(version) = object.get("apiVersion") {
            let problem = match version.as_str() {
                None => Some("must be a string".to_owned()),
                Some("") => Some("must not be empty".to_owned()),
                Some(text) if text.matches('/').count() > 1 => Some(format!("unexpected GroupVersion string: {text}")),
                Some(_) => None,
            };
            let error = |problem| FieldError::invalid(path.child("apiVersion"), quote(version), problem);
            self.errors.extend(problem.map(error));
        }
        if let Some(kind) = object.get("kind") {
            let problem = match kind.as_str() {
                None => Some("must be a string".to_owned()),
                Some("") => Some("must not be empty".to_owned()),
                Some(text) => {
                    let problems = dns1035_label(&text.to_lowercase());
                    (!problems.is_empty())
                        .then(|| format!("may have mixed case, but should otherwise match: {}", problems.join(",")))
                }
            };
            let error = |problem| FieldError::invalid(path.child("kind"), quote(kind), problem);
            self.errors.extend(problem.map(error));
        }
        if let Some(metadata) = object.get("metadata") {
            self.inspect_metadata(metadata, path);
        }
    }

    fn inspect_metadata(&mut self, metadata: &Value, path: &FieldPath<'_>) {
        let mut fitting = metadata.clone();
        if let Err(mismatch) = self.metadata.types.conform(self.metadata.id, &mut fitting) {
            self.errors.push(FieldError::invalid(path.child("metadata"), quote(metadata), mismatch.to_string()));
            return;
        }
        let Value::Object(mut fitting) = fitting else { return };
        if fitting.str("name").unwrap_or_default().is_empty() {
            // Resources without a name may be embedded; the check knows only those that have one.
            fitting.insert("name", "fakename");
        }
        for mut error in (self.check)(&fitting) {
            error.field = clip_shown(path.child(&error.field));
            self.errors.push(error);
        }
    }
}

fn quote(value: &Value) -> BadValue {
    ValueRef::from(value).quote()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{metadata_types, parse, schema};
    use super::*;

    const EMBEDDED: &str = r#"{"properties":{
        "e":{"x-kubernetes-embedded-resource":true},
        "l":{"items":{"x-kubernetes-embedded-resource":true}},
        "m":{"additionalProperties":{"x-kubernetes-embedded-resource":true}}}}"#;

    #[test]
    fn metadata_of_embedded_resources_is_made_to_fit() {
        let types = metadata_types();
        let metadata = MetadataType { types: &types, id: types.id("meta.v1.ObjectMeta").expect("is there") };
        let (refuse, drop) = (Malformed::Refuse, Malformed::Drop);
        for (text, malformed, want) in [
            (r#"{"metadata":{"odd":1}}"#, refuse, Ok((r#"{"metadata":{"odd":1}}"#, vec![]))),
            (
                r#"{"e":{"metadata":{"name":"n","odd":1}},"l":[{"metadata":{"odd":1}}],"m":{"k":{"metadata":{"odd":1}}}}"#,
                refuse,
                Ok((
                    r#"{"e":{"metadata":{"name":"n"}},"l":[{"metadata":{}}],"m":{"k":{"metadata":{}}}}"#,
                    vec!["e.metadata.odd", "l[0].metadata.odd", "m[k].metadata.odd"],
                )),
            ),
            (r#"{"e":{"kind":1}}"#, refuse, Err("e.kind: Invalid value: 1: must be a string")),
            (r#"{"e":{"kind":1,"apiVersion":"v1"}}"#, drop, Ok((r#"{"e":{"apiVersion":"v1"}}"#, vec![]))),
            (
                r#"{"e":{"metadata":{"name":1}}}"#,
                refuse,
                Err(
                    r#"e.metadata: Invalid value: {"name":1}: json: cannot unmarshal number into Go struct field ObjectMeta.name of type string"#,
                ),
            ),
            (
                r#"{"e":{"metadata":{"name":1,"namespace":"x"}}}"#,
                drop,
                Ok((r#"{"e":{"metadata":{"namespace":"x"}}}"#, vec![])),
            ),
        ] {
            let mut value = parse(text);
            let found = schema(EMBEDDED).coerce_metadata(&mut value, false, metadata, malformed);
            match (found, want) {
                (Ok(unknown), Ok((fitting, odd))) => {
                    assert_eq!(value.to_json(), fitting, "{text}");
                    assert_eq!(*unknown, odd[..], "{text}");
                }
                (Err(error), Err(said)) => assert_eq!(error.to_string(), said, "{text}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }

    #[test]
    fn embedded_resources_have_a_type_and_good_metadata() {
        let types = metadata_types();
        let metadata = MetadataType { types: &types, id: types.id("meta.v1.ObjectMeta").expect("is there") };
        let check = |metadata: &Object| match metadata.str("name") {
            Some("bad") => FieldErrors::from([FieldError::invalid("metadata.name", "bad", "no")]),
            _ => FieldErrors::new(),
        };
        for (text, want) in [
            (r#"{"e":{}}"#, vec!["e.apiVersion: Required value", "e.kind: Required value"]),
            (r#"{"e":{"apiVersion":"v1","kind":"Pod","metadata":{}}}"#, vec![]),
            (
                r#"{"e":{"apiVersion":"a/b/c","kind":"","metadata":{"name":"bad"}}}"#,
                vec![
                    r#"e.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c"#,
                    r#"e.kind: Invalid value: "": must not be empty"#,
                    r#"e.metadata.name: Invalid value: "bad": no"#,
                ],
            ),
            (
                r#"{"m":{"k":{"kind":"K"}},"l":[{"apiVersion":"v1"}]}"#,
                vec!["l[0].kind: Required value", "m[k].apiVersion: Required value"],
            ),
        ] {
            let value = parse(text);
            let object = value.as_object().expect("is an object");
            let errors = schema(EMBEDDED).validate_embedded(&FieldPath::none(), object, false, metadata, &check);
            let said: Vec<String> = errors.iter().map(FieldError::to_string).collect();
            assert_eq!(said, want, "{text}");
        }
    }
}
