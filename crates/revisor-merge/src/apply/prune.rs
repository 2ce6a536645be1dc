//! Taking places out of an object: what a manager applied before and does not apply any more.

use compact_str::format_compact;
use revisor_object::{Object, Value};
use revisor_schema::{Field, Shape, StructId, Types};

use super::field_set::{FieldSet, Node};
use super::granularity::{Granularity, granularity};
use super::item_step::item_step;

/// Removes the places of `set` from `object`, a value of type `id`.
pub(crate) fn remove(types: &Types, id: StructId, object: &mut Object, set: &FieldSet) {
    remove_structure(types, id, object, set.tree());
}

fn remove_structure(types: &Types, id: StructId, object: &mut Object, set: &Object) {
    object.retain(|name, value| {
        let Some(node) = set.get(&format_compact!("f:{name}")).map(Node::of) else { return true };
        if node.is_member {
            return false;
        }
        if let (Some(field), Some(below)) = (types.get(id).member(name), node.below) {
            remove_field(types, field, value, below);
        }
        true
    });
}

/// Removes places from a value. What has nothing left is null, as in the original: it is neither there nor gone.
fn remove_field(types: &Types, field: &Field, value: &mut Value, set: &Object) {
    let is_one = granularity(types, field) == Granularity::One;
    match (&field.shape, &mut *value) {
        (Shape::Struct(_) | Shape::Map(_) | Shape::List(_) | Shape::Any, Value::Object(_) | Value::Array(_))
            if is_one =>
        {
            *value = Value::Null;
        }
        (Shape::Raw, _) => *value = Value::Null,
        (Shape::Struct(id), Value::Object(object)) => remove_structure(types, *id, object, set),
        (Shape::Map(element), Value::Object(object)) => object.retain(|name, value| {
            let Some(node) = set.get(&format_compact!("f:{name}")).map(Node::of) else { return true };
            keep_element(types, element, value, &node)
        }),
        (Shape::List(element), Value::Array(items)) => items.retain_mut(|item| {
            let node = item_step(types, field, item).and_then(|step| set.get(&step).map(Node::of));
            node.is_none_or(|node| keep_element(types, element, item, &node))
        }),
        _ => {}
    }
    empty_to_null(value);
}

fn keep_element(types: &Types, shape: &Shape, value: &mut Value, node: &Node<'_>) -> bool {
    if node.is_member {
        return false;
    }
    if let (Shape::Struct(id), Value::Object(object), Some(below)) = (shape, &mut *value, node.below) {
        remove_structure(types, *id, object, below);
        empty_to_null(value);
    }
    true
}

fn empty_to_null(value: &mut Value) {
    let is_empty = match value {
        Value::Object(object) => object.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    if is_empty {
        *value = Value::Null;
    }
}

impl FieldSet {
    /// The set with every field of a type that has places of the set below it.
    pub(crate) fn with_named_fields(&self, types: &Types, id: StructId) -> FieldSet {
        let mut set = self.clone();
        name_fields(types, id, set.tree_mut());
        set
    }
}

fn name_fields(types: &Types, id: StructId, set: &mut Object) {
    for (step, below) in set.iter_mut() {
        let Value::Object(below) = below else { continue };
        let Some(name) = step.strip_prefix("f:").filter(|_| !below.is_empty()) else { continue };
        let of = types.get(id);
        if let Some(field) = of.member(name) {
            name_below(types, &field.shape, below);
        }
        if of.field(name).is_some() {
            below.insert(super::field_set::SELF, Object::new());
        }
    }
}

fn name_below(types: &Types, shape: &Shape, set: &mut Object) {
    match shape {
        Shape::Struct(id) => name_fields(types, *id, set),
        Shape::List(element) | Shape::Map(element) => {
            if let Shape::Struct(id) = **element {
                for (_, below) in set.iter_mut() {
                    if let Value::Object(below) = below {
                        name_fields(types, id, below);
                    }
                }
            }
        }
        _ => {}
    }
}
