//! Which places an object fills: what who applies it comes to manage.

use compact_str::CompactString;
use revisor_object::{Object, Value};
use revisor_schema::{Field, Shape, StructId, Types};

use super::field_set::FieldSet;
use super::granularity::{Granularity, granularity};
use super::item_step::item_step;

impl FieldSet {
    /// The places that `object`, of type `id`, fills: its leaves, the items of its lists, and what is empty.
    pub fn filled(types: &Types, id: StructId, object: &Object) -> FieldSet {
        let mut walk = Walk { types, place: Vec::new(), found: FieldSet::new() };
        walk.structure(id, object);
        walk.found
    }
}

struct Walk<'t> {
    types: &'t Types,
    place: Vec<CompactString>,
    found: FieldSet,
}

impl Walk<'_> {
    fn structure(&mut self, id: StructId, object: &Object) {
        let types = self.types;
        for (name, value) in object.iter() {
            self.place.push(CompactString::from(format!("f:{name}")));
            let of = types.get(id);
            match (of.field(name), &of.others) {
                (Some(field), _) => self.field(field, value),
                (None, Some(others)) => {
                    self.field(others, value);
                    // Who names a member manages that it is there, as in a map.
                    self.found.insert(&self.place);
                }
                (None, None) => self.found.insert(&self.place),
            }
            self.place.pop();
        }
    }

    fn field(&mut self, field: &Field, value: &Value) {
        match (granularity(self.types, field), &field.shape, value) {
            (Granularity::Many, Shape::Struct(id), Value::Object(object)) if !object.is_empty() => {
                self.structure(*id, object);
            }
            (Granularity::Many, Shape::Map(element), Value::Object(object)) if !object.is_empty() => {
                for (name, value) in object.iter() {
                    self.place.push(CompactString::from(format!("f:{name}")));
                    self.element(element, value);
                    self.found.insert(&self.place);
                    self.place.pop();
                }
            }
            // Of an empty list nothing is managed: there is nothing to take away from it.
            (Granularity::Many, Shape::List(_), Value::Array(items)) if items.is_empty() => {}
            (Granularity::Many, Shape::List(element), Value::Array(items)) => {
                for item in items {
                    let Some(step) = item_step(self.types, field, item) else { continue };
                    self.place.push(step);
                    self.element(element, item);
                    self.found.insert(&self.place);
                    self.place.pop();
                }
            }
            _ => self.found.insert(&self.place),
        }
    }

    fn element(&mut self, shape: &Shape, value: &Value) {
        match (shape, value) {
            (Shape::Struct(id), Value::Object(object)) if !self.types.get(*id).is_atomic => self.structure(*id, object),
            _ => self.found.insert(&self.place),
        }
    }
}
