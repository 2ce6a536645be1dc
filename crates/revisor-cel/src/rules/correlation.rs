//! Which old value belongs to a new one, and whether anything changed: [`Correlation`].
//!
//! What was wrong before and is unchanged must not keep an object from being changed elsewhere.

use std::collections::HashMap;

use revisor_object::Value;
use revisor_schema::{Additional, JsonType, ListType, Structural};

/// A new value, the old one that belongs to it, and their schema.
#[derive(Debug, Clone, Copy)]
struct Pair<'a> {
    new: &'a Value,
    old: &'a Value,
    schema: &'a Structural,
}

/// Where an old value belongs to the new one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Correlation<'a> {
    /// At this place, if one does.
    here: Option<Pair<'a>>,
    /// At the nearest place above. Absent at the root, and where nothing is compared.
    above: Option<Pair<'a>>,
}

impl<'a> Correlation<'a> {
    pub(super) fn root(new: &'a Value, old: &'a Value, schema: &'a Structural) -> Correlation<'a> {
        Correlation { here: Some(Pair { new, old, schema }), above: None }
    }

    /// The correlation of an element, with the old one that belongs to it.
    pub(super) fn below(&self, values: Option<(&'a Value, &'a Value)>, schema: &'a Structural) -> Correlation<'a> {
        match self.here {
            None => *self,
            Some(_) => Correlation { here: values.map(|(new, old)| Pair { new, old, schema }), above: self.here },
        }
    }

    /// The correlation of a member, with the old one of the same name.
    pub(super) fn member(
        &self,
        name: &str,
        values: Option<(&'a Value, &'a Value)>,
        schema: &'a Structural,
    ) -> Correlation<'a> {
        // Old and new objects were brought to one version before, so these two say nothing of what the client changed.
        if self.here.is_some() && self.above.is_none() && matches!(name, "apiVersion" | "kind") {
            return Correlation::default();
        }
        self.below(values, schema)
    }

    /// Whether the value, or the nearest above it for which that can be said, is what it was.
    pub(super) fn is_unchanged(&self, equalities: &mut Equalities<'a>) -> bool {
        self.here.or(self.above).is_some_and(|pair| equalities.equal(pair))
    }
}

/// Which values were compared already, by their addresses: an object is gone through once, however many rules fail.
#[derive(Debug, Default)]
pub(super) struct Equalities<'a> {
    known: HashMap<(*const Value, *const Value), bool>,
    values: std::marker::PhantomData<&'a Value>,
}

impl<'a> Equalities<'a> {
    fn equal(&mut self, pair: Pair<'a>) -> bool {
        let addresses = (std::ptr::from_ref(pair.new), std::ptr::from_ref(pair.old));
        if let Some(known) = self.known.get(&addresses) {
            return *known;
        }
        let equal = match (pair.new, pair.old) {
            (Value::Array(new), Value::Array(old)) => self.equal_lists(pair.schema, new, old),
            (Value::Object(new), Value::Object(old)) => {
                new.len() == old.len()
                    && new.iter().all(|(name, value)| {
                        // Of what the schema does not describe it is not known that it is unchanged.
                        let schema = match (pair.schema.property(name), &pair.schema.additional) {
                            (Some(schema), _) => schema,
                            (None, Some(Additional::Schema(schema))) => schema,
                            _ => return false,
                        };
                        old.get(name).is_some_and(|old| self.equal(Pair { new: value, old, schema }))
                    })
            }
            (new, old) => new == old,
        };
        self.known.insert(addresses, equal);
        equal
    }

    fn equal_lists(&mut self, schema: &'a Structural, new: &'a [Value], old: &'a [Value]) -> bool {
        if new.len() != old.len() {
            return false;
        }
        let (Some(items), Some(ListType::Map)) = (&schema.items, schema.list_type) else { return new == old };
        let before = KeyedList::of(schema, old);
        new.iter().all(|new| before.get(new).is_some_and(|old| self.equal(Pair { new, old, schema: items })))
    }
}

/// The elements of a list by their keys. Lists whose elements have no keys have none here.
#[derive(Debug)]
pub(super) struct KeyedList<'a> {
    keys: &'a [Box<str>],
    elements: HashMap<String, &'a Value>,
}

impl<'a> KeyedList<'a> {
    pub(super) fn of(schema: &'a Structural, elements: &'a [Value]) -> KeyedList<'a> {
        let is_keyed = schema.kind == Some(JsonType::Array) && schema.list_type == Some(ListType::Map);
        let keys: &[Box<str>] = if is_keyed { &schema.list_map_keys } else { &[] };
        let mut found = HashMap::new();
        if !keys.is_empty() {
            for element in elements {
                if let Some(key) = key_of(keys, element) {
                    found.entry(key).or_insert(element);
                }
            }
        }
        KeyedList { keys, elements: found }
    }

    /// The first element that has the same keys as this one.
    pub(super) fn get(&self, element: &Value) -> Option<&'a Value> {
        if self.elements.is_empty() {
            return None;
        }
        self.elements.get(&key_of(self.keys, element)?).copied()
    }
}

/// All keys of an element as one text; nothing if one is missing or no scalar.
fn key_of(keys: &[Box<str>], element: &Value) -> Option<String> {
    let object = element.as_object()?;
    let mut text = String::new();
    for key in keys {
        match object.get(key)? {
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
            // Numbers with and without fraction are not the same.
            Value::Float(number) => text.push_str(&format!("f{number}")),
            scalar => text.push_str(&scalar.to_json()),
        }
        text.push('\0');
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use revisor_object::parse_json;

    use super::*;

    fn value(text: &str) -> Value {
        parse_json(text.as_bytes()).expect("is JSON").value
    }

    #[test]
    fn what_the_schema_describes_can_be_unchanged() {
        let schema = r#"{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"integer"}}},
            "l":{"type":"array","items":{"type":"string"}},
            "k":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["n"],
                 "items":{"type":"object","properties":{"n":{"type":"string"},"v":{"type":"integer"}}}},
            "m":{"type":"object","additionalProperties":{"type":"integer"}}}}"#;
        let schema = value(schema);
        let schema = Structural::read(schema.as_object().expect("is an object"));
        for (new, old, unchanged) in [
            (r#"{"a":{"b":1}}"#, r#"{"a":{"b":1}}"#, true),
            (r#"{"a":{"b":1}}"#, r#"{"a":{"b":2}}"#, false),
            (r#"{"a":{"b":1}}"#, r#"{"a":{"b":1.0}}"#, false),
            (r#"{"a":{"b":1,"c":1}}"#, r#"{"a":{"b":1,"c":1}}"#, false),
            (r#"{"l":["a","b"]}"#, r#"{"l":["a","b"]}"#, true),
            (r#"{"l":["a","b"]}"#, r#"{"l":["b","a"]}"#, false),
            (r#"{"k":[{"n":"a"},{"n":"b"}]}"#, r#"{"k":[{"n":"b"},{"n":"a"}]}"#, true),
            (r#"{"k":[{"n":"a","v":1}]}"#, r#"{"k":[{"n":"a","v":2}]}"#, false),
            (r#"{"m":{"x":1}}"#, r#"{"m":{"x":1}}"#, true),
            (r#"{"m":{"x":1}}"#, r#"{"m":{"y":1}}"#, false),
            (r#"{"x":1}"#, r#"{"x":1}"#, false),
            (r#"{"a":null}"#, r#"{"a":null}"#, true),
        ] {
            let (new, old) = (value(new), value(old));
            let correlation = Correlation::root(&new, &old, &schema);
            assert_eq!(correlation.is_unchanged(&mut Equalities::default()), unchanged, "{new:?} {old:?}");
        }
    }
}
