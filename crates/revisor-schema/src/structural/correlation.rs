//! [`Correlation`]: which old value a new one stands for, so that a fault that was there before can be tolerated.
//!
//! Members of objects stand for those with their name, elements of a list for those with their keys. The elements of
//! other lists stand for nothing, and neither does what the schema does not name.

use std::collections::HashMap;

use revisor_object::Value;

use super::prune::Member;
use super::value_ref::ValueRef;
use super::{JsonType, ListType, Structural};

/// A value, the old value that it stands for, and what both must look like.
#[derive(Debug, Clone, Copy)]
pub struct Correlation<'v> {
    schema: &'v Structural,
    old: ValueRef<'v>,
    new: ValueRef<'v>,
}

/// What was found out about the equality of values, so that no value is compared once for each value around it.
/// Only good as long as the values stay where they are.
#[derive(Debug, Default)]
pub struct Compared(HashMap<(usize, bool), bool>);

impl<'v> Correlation<'v> {
    /// Correlates two values of one schema.
    pub fn new(schema: &'v Structural, old: impl Into<ValueRef<'v>>, new: impl Into<ValueRef<'v>>) -> Correlation<'v> {
        Correlation { schema, old: old.into(), new: new.into() }
    }

    /// The old value.
    pub fn old(&self) -> ValueRef<'v> {
        self.old
    }

    /// The new value.
    pub fn new_value(&self) -> ValueRef<'v> {
        self.new
    }

    /// The schema of both.
    pub fn schema(&self) -> &'v Structural {
        self.schema
    }

    /// The member `name` of both; `None` if it is not in both or the schema does not say what it looks like.
    pub fn key(&self, name: &str) -> Option<Correlation<'v>> {
        let (old, new) = (self.old.as_object()?.get(name)?, self.new.as_object()?.get(name)?);
        match self.schema.member(name) {
            Member::Known(schema) => Some(Correlation::new(schema, old, new)),
            Member::Bare | Member::Unknown => None,
        }
    }

    /// The elements of the new list with what each stands for. `None` for a list whose elements stand for nothing.
    pub fn items(&self) -> Option<Vec<Option<Correlation<'v>>>> {
        let (old, new) = (self.old.as_array()?, self.new.as_array()?);
        let schema = self.schema.items.as_deref()?;
        let before = KeyedList::of(self.schema, old)?;
        let correlate = |new: &'v Value| Some(Correlation::new(schema, before.get(new)?, new));
        Some(new.iter().map(correlate).collect())
    }

    /// Whether both values are the same, as far as the schema shows them: elements with keys may stand in another order,
    /// and objects with members that the schema does not name are never the same.
    pub fn is_unchanged(&self, compared: &mut Compared) -> bool {
        // The first element of an array stands where the array does.
        let place = match self.new {
            ValueRef::Scalar(_) => return self.old == self.new,
            ValueRef::Array(items) => (items.as_ptr().addr(), true),
            ValueRef::Object(object) => (std::ptr::from_ref(object).addr(), false),
        };
        if let Some(known) = compared.0.get(&place) {
            return *known;
        }
        let same = match (self.old, self.new) {
            (ValueRef::Object(old), ValueRef::Object(new)) => {
                old.len() == new.len()
                    && new.iter().all(|(name, _)| self.key(name).is_some_and(|member| member.is_unchanged(compared)))
            }
            (ValueRef::Array(old), ValueRef::Array(new)) => {
                old.len() == new.len()
                    && match self.items() {
                        Some(items) => {
                            items.into_iter().all(|item| item.is_some_and(|item| item.is_unchanged(compared)))
                        }
                        None => old == new,
                    }
            }
            _ => false,
        };
        let has_place = self.new.as_array().is_none_or(|items| !items.is_empty());
        if has_place {
            compared.0.insert(place, same);
        }
        same
    }
}

/// The elements of a list by their keys.
#[derive(Debug)]
pub struct KeyedList<'v> {
    keys: &'v [Box<str>],
    elements: HashMap<String, &'v Value>,
}

impl<'v> KeyedList<'v> {
    /// The elements of a list with this schema; `None` if it does not tell them apart by keys. Of those with the same
    /// keys the first counts.
    pub fn of(schema: &'v Structural, elements: &'v [Value]) -> Option<KeyedList<'v>> {
        let is_keyed = schema.kind == Some(JsonType::Array) && schema.list_type == Some(ListType::Map);
        let keys = Some(&*schema.list_map_keys).filter(|keys| is_keyed && !keys.is_empty())?;
        let mut found = HashMap::with_capacity(elements.len());
        for element in elements {
            if let Some(key) = key_of(keys, element) {
                found.entry(key).or_insert(element);
            }
        }
        Some(KeyedList { keys, elements: found })
    }

    /// The element that has the same keys as this one.
    pub fn get(&self, element: &Value) -> Option<&'v Value> {
        self.elements.get(&key_of(self.keys, element)?).copied()
    }
}

/// The keys of an element as one text; `None` if one is missing or is no scalar.
fn key_of(keys: &[Box<str>], element: &Value) -> Option<String> {
    let element = element.as_object()?;
    let mut text = String::new();
    for name in keys {
        match element.get(name)? {
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
            scalar => {
                text.push('\0');
                text.push_str(&scalar.to_json());
            }
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{parse, schema};
    use super::*;

    #[test]
    fn values_are_unchanged_as_far_as_the_schema_shows_them() {
        let schema = schema(
            r#"{"properties":{"a":{"type":"string"},"open":{"x-kubernetes-preserve-unknown-fields":true},
                "l":{"type":"array","items":{"type":"integer"}},
                "m":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],
                     "items":{"properties":{"k":{},"v":{}}}}}}"#,
        );
        for (old, new, same) in [
            (r#"{"a":"x"}"#, r#"{"a":"x"}"#, true),
            (r#"{"a":"x"}"#, r#"{"a":"y"}"#, false),
            (r#"{"a":"x"}"#, r#"{}"#, false),
            (r#"{"l":[1,2]}"#, r#"{"l":[1,2]}"#, true),
            (r#"{"l":[1,2]}"#, r#"{"l":[2,1]}"#, false),
            (r#"{"m":[{"k":1,"v":1},{"k":2,"v":2}]}"#, r#"{"m":[{"k":2,"v":2},{"k":1,"v":1}]}"#, true),
            (r#"{"m":[{"k":1,"v":1}]}"#, r#"{"m":[{"k":1,"v":2}]}"#, false),
            (r#"{"open":{}}"#, r#"{"open":{}}"#, true),
            (r#"{"open":{"u":1}}"#, r#"{"open":{"u":1}}"#, false),
        ] {
            let (old, new) = (parse(old), parse(new));
            let correlation = Correlation::new(&schema, &old, &new);
            assert_eq!(correlation.is_unchanged(&mut Compared::default()), same, "{old:?} {new:?}");
        }
    }
}
