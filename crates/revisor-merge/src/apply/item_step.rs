//! The step to an item of a list: by its keys, or by its value.

use compact_str::{CompactString, format_compact};
use revisor_object::{Object, Value};
use revisor_schema::{Field, Shape, Topology, Types};

/// The step to an item of the list `field`; `None` if the item has no value under a key, or the list is seen as one.
pub(crate) fn item_step(types: &Types, field: &Field, item: &Value) -> Option<CompactString> {
    match &field.topology {
        Topology::Set => Some(format_compact!("v:{}", item.to_json())),
        Topology::ByKeys(keys) => {
            let Shape::List(element) = &field.shape else { return None };
            let Shape::Struct(id) = **element else { return None };
            let item = item.as_object()?;
            let mut shown = Object::new();
            // Most lists have one key, and most items have a value under it.
            if let [key] = &keys[..]
                && let Some(value) = item.get(key)
            {
                return Some(format_compact!("k:{{\"{key}\":{}}}", value.to_json()));
            }
            for key in keys {
                let default = || types.key_default(id, key);
                // A key without a value is left out; it tells items apart as well as any value.
                if let Some(value) = item.get(key).cloned().or_else(default) {
                    shown.insert(key, value);
                }
            }
            (!shown.is_empty()).then(|| format_compact!("k:{}", Value::Object(shown).to_json()))
        }
        Topology::Usual | Topology::Atomic | Topology::Granular => None,
    }
}
