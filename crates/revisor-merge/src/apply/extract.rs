//! Which places an object fills: what who applies it comes to manage.

use compact_str::format_compact;
use revisor_object::{Object, Value};
use revisor_schema::{Field, Shape, StructId, Types};

use super::compare::{Steps, node};
use super::field_set::FieldSet;
use super::granularity::{Granularity, granularity};
use super::item_step::item_step;

impl FieldSet {
    /// The places that `object`, of type `id`, fills: its leaves, the items of its lists, and what is empty.
    pub fn filled(types: &Types, id: StructId, object: &Object) -> FieldSet {
        FieldSet::from_tree(Object::from_members(structure(types, id, object)))
    }
}

/// Whether a place itself is filled, and the places below it. Sets grow from the leaves, so that nothing is looked up in
/// them while they do.
type Filled = (bool, Steps);

fn structure(types: &Types, id: StructId, object: &Object) -> Steps {
    let of = types.get(id);
    let mut found = Steps::with_capacity(object.len());
    for (name, value) in object.iter() {
        let (step, (is_member, below)) = match (of.field(name), &of.others) {
            (Some(known), _) => (known.step.clone(), field(types, known, value)),
            // Who names a member manages that it is there, as in a map.
            (None, Some(others)) => (format_compact!("f:{name}"), (true, field(types, others, value).1)),
            (None, None) => (format_compact!("f:{name}"), (true, Steps::new())),
        };
        found.extend(node(is_member, below).map(|node| (step, node)));
    }
    found
}

fn field(types: &Types, field: &Field, value: &Value) -> Filled {
    match (granularity(types, field), &field.shape, value) {
        (Granularity::Many, Shape::Struct(id), Value::Object(object)) if !object.is_empty() => {
            (false, structure(types, *id, object))
        }
        (Granularity::Many, Shape::Map(shape), Value::Object(object)) if !object.is_empty() => {
            let members = object.iter().filter_map(|(name, value)| {
                node(true, element(types, shape, value)).map(|node| (format_compact!("f:{name}"), node))
            });
            (false, members.collect())
        }
        // Of an empty list nothing is managed: there is nothing to take away from it.
        (Granularity::Many, Shape::List(shape), Value::Array(items)) => {
            let mut found: Steps = items
                .iter()
                .filter_map(|item| Some((item_step(types, field, item)?, node(true, element(types, shape, item))?)))
                .collect();
            found.sort_by(|(one, _), (two, _)| one.cmp(two));
            // Items that cannot be told apart are seen as one.
            found.dedup_by(|(later, _), (earlier, node)| {
                let is_same = later == earlier;
                if is_same {
                    *node = Value::Object(Object::new());
                }
                is_same
            });
            (false, found)
        }
        _ => (true, Steps::new()),
    }
}

fn element(types: &Types, shape: &Shape, value: &Value) -> Steps {
    match (shape, value) {
        (Shape::Struct(id), Value::Object(object)) if !types.get(*id).is_atomic => structure(types, *id, object),
        _ => Steps::new(),
    }
}
