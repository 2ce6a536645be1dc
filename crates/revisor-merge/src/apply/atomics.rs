//! The places of a configuration that can only be set as a whole.

use revisor_object::{Object, Value};
use revisor_schema::{Field, Shape, StructId, Types};

use super::granularity::{Granularity, granularity};

/// The paths of all lists, maps and objects in `config` that are seen as one value: who sets one of them drops whatever
/// else was in it.
pub fn atomic_places(types: &Types, id: StructId, config: &Object) -> Vec<String> {
    let mut found = Vec::new();
    members(types, id, config, "", &mut found);
    found
}

fn members(types: &Types, id: StructId, object: &Object, path: &str, found: &mut Vec<String>) {
    for (name, value) in object.iter() {
        if let Some(field) = types.get(id).field(name) {
            of_field(types, field, value, &format!("{path}.{name}"), found);
        }
    }
}

fn of_field(types: &Types, field: &Field, value: &Value, path: &str, found: &mut Vec<String>) {
    if matches!(value.plain(), Value::Object(_) | Value::Array(_)) && granularity(types, field) == Granularity::One {
        found.push(path.to_owned());
    }
    below(types, &field.shape, value, path, found);
}

fn below(types: &Types, shape: &Shape, value: &Value, path: &str, found: &mut Vec<String>) {
    match (shape, value) {
        (Shape::Struct(id), Value::Object(object)) => members(types, *id, object, path, found),
        (Shape::List(element), Value::Array(elements)) => {
            for (at, value) in elements.iter().enumerate() {
                let path = format!("{path}[{at}]");
                let is_atomic = match element.as_ref() {
                    Shape::Struct(id) => types.get(*id).is_atomic,
                    Shape::Any | Shape::Raw | Shape::List(_) => true,
                    _ => false,
                };
                if is_atomic && matches!(value, Value::Object(_) | Value::Array(_)) {
                    found.push(path.clone());
                }
                below(types, element, value, &path, found);
            }
        }
        _ => {}
    }
}
