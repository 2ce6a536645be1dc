//! Lists whose elements are told apart: in a set no element occurs twice, in a list of objects no keys do.

use std::collections::HashMap;

use revisor_object::{BadValue, FieldError, FieldErrors, FieldPath, Object, Value, push_json_value};

use super::value_ref::ValueRef;
use super::{Additional, ListType, Structural};

impl Structural {
    /// Whether a list in the schema or below it is a set or is told apart by keys.
    pub(super) fn has_list_types(&self) -> bool {
        matches!(self.list_type, Some(ListType::Set | ListType::Map))
            || self.properties.iter().any(|(_, schema)| schema.has_list_types())
            || self.items.as_ref().is_some_and(|items| items.has_list_types())
            || matches!(&self.additional, Some(Additional::Schema(schema)) if schema.has_list_types())
    }

    /// What occurs twice in the lists of `object` and may not. Each value is reported where it occurs the second time.
    pub fn validate_list_types(&self, object: &Object) -> FieldErrors {
        let mut errors = FieldErrors::new();
        self.lists_of_object(object, &FieldPath::none(), &mut errors);
        errors
    }

    fn lists_of_object(&self, object: &Object, path: &FieldPath<'_>, errors: &mut FieldErrors) {
        if let Some(Additional::Schema(schema)) = &self.additional {
            for (name, value) in object.iter() {
                schema.lists_of(value, &path.key(name), errors);
            }
        }
        if !self.properties.is_empty() {
            for (name, value) in object.iter() {
                if let Some(schema) = self.property(name) {
                    schema.lists_of(value, &path.child(name), errors);
                }
            }
        }
    }

    fn lists_of(&self, value: &Value, path: &FieldPath<'_>, errors: &mut FieldErrors) {
        match value {
            Value::Object(object) => self.lists_of_object(object, path, errors),
            Value::Array(items) => {
                match self.list_type {
                    // Most sets are a few texts.
                    Some(ListType::Set) if are_few_different_texts(items) => {}
                    Some(ListType::Set) => {
                        let keys = items.iter().map(identity);
                        for at in repeated(keys) {
                            errors.push(FieldError::duplicate(path.index(at), ValueRef::from(&items[at]).quote()));
                        }
                    }
                    Some(ListType::Map) => self.check_keys(items, path, errors),
                    _ => {}
                }
                if let Some(schema) = &self.items {
                    for (at, item) in items.iter().enumerate() {
                        schema.lists_of(item, &path.index(at), errors);
                    }
                }
            }
            _ => {}
        }
    }

    fn check_keys(&self, items: &[Value], path: &FieldPath<'_>, errors: &mut FieldErrors) {
        for (at, item) in items.iter().enumerate() {
            if !matches!(item, Value::Object(_) | Value::Null) {
                let detail = "must be an object for an array of list-type map";
                errors.push(FieldError::invalid(path.index(at), ValueRef::from(item).quote(), detail));
                return;
            }
        }
        if items.len() < 2 {
            return;
        }
        let keys_of = |item: &Value| -> Object {
            let Some(object) = item.as_object() else { return Object::new() };
            self.list_map_keys.iter().filter_map(|key| Some((&**key, object.get(key)?.clone()))).collect()
        };
        let keys: Vec<Value> = items.iter().map(|item| Value::Object(keys_of(item))).collect();
        // One key alone is compared as what it is, several together as an object.
        let identify = |keys: &Value| match (keys, &self.list_map_keys[..]) {
            (Value::Object(keys), [only]) => keys.get(only).map_or_else(Vec::new, identity),
            (keys, _) => identity(keys),
        };
        for at in repeated(keys.iter().map(identify)) {
            errors.push(FieldError::duplicate(path.index(at), BadValue::of(&keys[at])));
        }
    }
}

/// Up to so many elements are compared with each other, which is quicker than to hash them.
const FEW: usize = 16;

fn are_few_different_texts(items: &[Value]) -> bool {
    let is_new = |(at, item)| matches!(item, &Value::String(_)) && !items[..at].contains(item);
    items.len() <= FEW && items.iter().enumerate().all(is_new)
}

/// What tells a value from all others: its text. A number with a fraction of zero is no integer when it stands alone,
/// and is one within a list or an object.
fn identity(value: &Value) -> Vec<u8> {
    let mut text = Vec::new();
    match value {
        Value::Float(_) => text.extend_from_slice(value.to_json().as_bytes()),
        other => push_json_value(other, &mut text),
    }
    text
}

/// The places where something occurs for the second time.
fn repeated(keys: impl ExactSizeIterator<Item = Vec<u8>>) -> Vec<usize> {
    if keys.len() < 2 {
        return Vec::new();
    }
    let mut seen: HashMap<Vec<u8>, u32> = HashMap::with_capacity(keys.len());
    let mut places = Vec::new();
    for (at, key) in keys.enumerate() {
        let times = seen.entry(key).or_default();
        *times += 1;
        if *times == 2 {
            places.push(at);
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use revisor_object::FieldError;

    use super::super::testing::{parse, schema};

    #[test]
    fn what_may_occur_once_is_reported_where_it_occurs_again() {
        let schema = schema(
            r#"{"properties":{
                "s":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
                "k":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["a"],
                     "items":{"properties":{"s":{"x-kubernetes-list-type":"set"}}}},
                "kk":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["a","b"]},
                "m":{"additionalProperties":{"x-kubernetes-list-type":"set"}}}}"#,
        );
        assert!(schema.has_list_types());
        for (text, want) in [
            (r#"{"s":["a","b","a","a"]}"#, vec![r#"s[2]: Duplicate value: "a""#]),
            (r#"{"s":[{"x":1},{"x":1},1,1.5]}"#, vec![r#"s[1]: Duplicate value: {"x":1}"#]),
            (r#"{"k":[{"a":1,"b":1},{"a":1,"b":2}]}"#, vec![r#"k[1]: Duplicate value: {"a":1}"#]),
            (r#"{"k":[{"a":1},{"a":1.0}]}"#, vec![]),
            (r#"{"s":[[1],[1.0],2,2.0]}"#, vec![r#"s[1]: Duplicate value: [1]"#]),
            (r#"{"k":[{"b":1},null,{"a":null}]}"#, vec![r#"k[1]: Duplicate value: {}"#]),
            (r#"{"kk":[{"a":1,"b":1},{"a":1,"b":2},{"b":2,"a":1}]}"#, vec![r#"kk[2]: Duplicate value: {"a":1,"b":2}"#]),
            (
                r#"{"k":[{"a":1},"x"]}"#,
                vec![r#"k[1]: Invalid value: "x": must be an object for an array of list-type map"#],
            ),
            (r#"{"k":[{"a":1,"s":["q","q"]}]}"#, vec![r#"k[0].s[1]: Duplicate value: "q""#]),
            (r#"{"m":{"n":[true,true]}}"#, vec![r#"m[n][1]: Duplicate value: true"#]),
        ] {
            let value = parse(text);
            let errors = schema.validate_list_types(value.as_object().expect("is an object"));
            let said: Vec<String> = errors.iter().map(FieldError::to_string).collect();
            assert_eq!(said, want, "{text}");
        }
    }
}
