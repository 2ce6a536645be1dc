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
        if self.schema.list_type != Some(ListType::Map)
            || self.schema.kind != Some(JsonType::Array)
            || self.schema.list_map_keys.is_empty()
        {
            return None;
        }
        let mut by_keys: HashMap<String, &'v Value> = HashMap::with_capacity(old.len());
        for item in old {
            if let Some(keys) = self.keys_of(item) {
                by_keys.entry(keys).or_insert(item);
            }
        }
        let correlate = |new: &'v Value| {
            let old: &'v Value = by_keys.get(&self.keys_of(new)?).copied()?;
            Some(Correlation::new(schema, old, new))
        };
        Some(new.iter().map(correlate).collect())
    }

    /// The keys of an element as one text; `None` if one is missing or is no scalar.
    fn keys_of(&self, item: &Value) -> Option<String> {
        let item = item.as_object()?;
        let mut keys = String::new();
        for name in &self.schema.list_map_keys {
            match item.get(name)? {
                Value::Null | Value::Array(_) | Value::Object(_) => return None,
                scalar => {
                    keys.push('\0');
                    keys.push_str(&scalar.to_json());
                }
            }
        }
        Some(keys)
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
