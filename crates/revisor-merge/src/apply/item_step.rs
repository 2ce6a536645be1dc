//! The step to an item of a list: by its keys, or by its value.

use compact_str::CompactString;
use revisor_object::{Object, Value, push_json_value};
use revisor_schema::{Field, Shape, Topology, Types};

/// Room for a step; few take more.
const USUAL_STEP: usize = 64;

/// The step to an item of the list `field`; `None` if the item has no value under a key, or the list is seen as one.
pub(crate) fn item_step(types: &Types, field: &Field, item: &Value) -> Option<CompactString> {
    match &field.topology {
        Topology::Set => Some(step_by("v:", item)),
        Topology::ByKeys(keys) => {
            let Shape::List(element) = &field.shape else { return None };
            let Shape::Struct(id) = **element else { return None };
            let item = item.as_object()?;
            let mut shown = Object::new();
            // Most lists have one key, and most items have a value under it.
            if let [key] = &keys[..]
                && let Some(value) = item.get(key)
            {
                let mut json = Vec::with_capacity(USUAL_STEP);
                json.extend_from_slice(b"k:{\"");
                json.extend_from_slice(key.as_bytes());
                json.extend_from_slice(b"\":");
                push_json_value(value, &mut json);
                json.push(b'}');
                return Some(CompactString::from_utf8_lossy(&json));
            }
            for key in keys {
                let default = || types.key_default(id, key);
                // A key without a value is left out; it tells items apart as well as any value.
                if let Some(value) = item.get(key).cloned().or_else(default) {
                    shown.insert(key, value);
                }
            }
            (!shown.is_empty()).then(|| step_by("k:", &Value::Object(shown)))
        }
        Topology::Usual | Topology::Atomic | Topology::Granular => None,
    }
}

/// The step to a member of an object or a map.
pub(crate) fn member_step(name: &str) -> CompactString {
    let mut step = CompactString::const_new("f:");
    step.push_str(name);
    step
}

/// A step by a value, which is written as Go's encoder writes it: what HTML minds is escaped.
pub(crate) fn step_by(kind: &str, value: &Value) -> CompactString {
    let mut json = Vec::with_capacity(USUAL_STEP);
    json.extend_from_slice(kind.as_bytes());
    push_json_value(value, &mut json);
    CompactString::from_utf8_lossy(&json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_html_minds_is_escaped() {
        let keys = Value::from(Object::from_iter([("name", Value::from("<a&b>"))]));
        assert_eq!(step_by("k:", &keys), r#"k:{"name":"\u003ca\u0026b\u003e"}"#);
    }
}
