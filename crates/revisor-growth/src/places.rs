//! [`Place`]: every list and map of a type, at any depth.

use revisor_object::{Object, Value};
use revisor_schema::{Shape, StructId, Types};

use crate::items::{Filling, Variation};

/// A list or map of a type, and the way to it.
#[derive(Debug, Clone)]
pub struct Place {
    /// The names of the fields on the way, the last one its own. Lists and maps on the way have one item.
    pub path: Vec<Box<str>>,
    /// The type that has the field.
    pub owner: StructId,
    /// How many lists and maps lie around this one in the same field.
    pub depth: usize,
}

impl Place {
    /// All lists and maps of a type, each type once on every way.
    pub fn all(types: &Types, root: StructId) -> Vec<Place> {
        let mut places = Vec::new();
        walk(types, root, &mut Vec::new(), &mut vec![root], &mut places);
        places
    }

    /// `spec.containers.ports`
    pub fn name(&self) -> String {
        self.path.join(".") + &"[]".repeat(self.depth)
    }

    /// Whether it belongs to what is written through the status.
    pub fn is_status(&self) -> bool {
        self.path.first().is_some_and(|first| &**first == "status")
    }

    /// The object with so many items in this place.
    pub fn fill(&self, types: &Types, root: StructId, base: &Object, variation: Variation, items: usize) -> Object {
        let mut object = base.clone();
        fill_in(types, root, &self.path, self.depth, &mut object, Filling { variation, items });
        object
    }
}

fn walk(types: &Types, of: StructId, path: &mut Vec<Box<str>>, seen: &mut Vec<StructId>, places: &mut Vec<Place>) {
    for field in &types.get(of).fields {
        path.push(field.name.clone());
        let mut shape = &field.shape;
        let mut depth = 0;
        while let Shape::List(element) | Shape::Map(element) = shape {
            places.push(Place { path: path.clone(), owner: of, depth });
            depth += 1;
            shape = element;
        }
        if let Shape::Struct(id) | Shape::Either(_, id) = shape
            && !seen.contains(id)
        {
            seen.push(*id);
            walk(types, *id, path, seen, places);
            seen.pop();
        }
        path.pop();
    }
}

/// Follows a path into an object, making what is not there, and fills the field at its end.
fn fill_in(types: &Types, of: StructId, path: &[Box<str>], depth: usize, object: &mut Object, filling: Filling) {
    let Some((name, rest)) = path.split_first() else { return };
    let Some(field) = types.get(of).field(name) else { return };
    if rest.is_empty() {
        let mut value = filling.collection(types, name, inner(&field.shape, depth));
        for level in (0..depth).rev() {
            value = around(inner(&field.shape, level), value);
        }
        object.insert(name, value);
        return;
    }
    if !object.contains(name) {
        let one = Filling { items: 1, ..filling };
        object.insert(name, one.value(types, name, &field.shape, 0));
    }
    let mut value = object.get_mut(name);
    let mut shape = &field.shape;
    loop {
        match (shape, value) {
            (Shape::List(element), Some(Value::Array(items))) => {
                value = items.first_mut();
                shape = element;
            }
            (Shape::Map(element), Some(Value::Object(members))) => {
                value = members.iter_mut().next().map(|(_, member)| member);
                shape = element;
            }
            (Shape::Struct(id) | Shape::Either(_, id), Some(Value::Object(inner))) => {
                return fill_in(types, *id, rest, depth, inner, filling);
            }
            _ => return,
        }
    }
}

/// The shape so many lists and maps deep.
fn inner(shape: &Shape, depth: usize) -> &Shape {
    match shape {
        Shape::List(element) | Shape::Map(element) if depth > 0 => inner(element, depth - 1),
        shape => shape,
    }
}

/// A list or map with this one item.
fn around(shape: &Shape, value: Value) -> Value {
    match shape {
        Shape::Map(_) => Value::Object([("k0", value)].into_iter().collect()),
        _ => Value::Array(vec![value]),
    }
}
