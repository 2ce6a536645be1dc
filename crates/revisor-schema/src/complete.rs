//! Completing a value: the fields that are always written are there, as they are in a value that was written and read
//! again. Only then can a new value be compared with a stored one.

use revisor_object::{Object, Value};

use crate::{Alternative, Presence, Shape, StructId, Types};

impl Types {
    /// Gives `object`, a conforming value of type `id`, every field that is always written, at any depth. Doing it
    /// again changes nothing.
    pub fn complete(&self, id: StructId, object: &mut Object) {
        for field in &self.get(id).fields {
            match object.get_mut(&field.name) {
                Some(value) => self.complete_within(&field.shape, value),
                None => {
                    let mut value = match field.presence {
                        Presence::Always => written_zero(&field.shape),
                        Presence::Nullable => Value::Null,
                        Presence::NonZero | Presence::Given => continue,
                    };
                    self.complete_within(&field.shape, &mut value);
                    object.insert(&field.name, value);
                }
            }
        }
    }

    fn complete_within(&self, shape: &Shape, value: &mut Value) {
        match (shape, value) {
            (Shape::Struct(id) | Shape::Either(_, id), Value::Object(object)) => self.complete(*id, object),
            (Shape::Either(Alternative::List, id), Value::Array(items)) => {
                items.iter_mut().filter_map(Value::as_object_mut).for_each(|object| self.complete(*id, object));
            }
            (Shape::List(element), Value::Array(items)) if holds_objects(element) => {
                items.iter_mut().for_each(|item| self.complete_within(element, item));
            }
            (Shape::Map(element), Value::Object(object)) if holds_objects(element) => {
                object.iter_mut().for_each(|(_, item)| self.complete_within(element, item));
            }
            _ => {}
        }
    }
}

fn holds_objects(shape: &Shape) -> bool {
    match shape {
        Shape::Struct(_) | Shape::Either(..) => true,
        Shape::List(element) | Shape::Map(element) => holds_objects(element),
        _ => false,
    }
}

/// What is written where nothing was given.
fn written_zero(shape: &Shape) -> Value {
    match shape {
        Shape::String | Shape::Bytes => Value::from(""),
        Shape::Bool => Value::Bool(false),
        Shape::Int32 | Shape::Int64 | Shape::Double | Shape::IntOrString => Value::Int(0),
        Shape::Quantity => Value::from("0"),
        Shape::Duration => Value::from("0s"),
        Shape::Struct(_) => Value::Object(Object::new()),
        Shape::Time | Shape::MicroTime | Shape::Any | Shape::Raw => Value::Null,
        Shape::List(_) | Shape::Map(_) | Shape::Either(..) => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use revisor_object::parse_json;

    const TABLE: &str = "type,field,shape,presence,number,merge
T,metadata,M,always,,
T,items,list:S,nullable,,
T,seen,time,always,,
M,name,string,nonzero,,
M,creationTimestamp,time,nonzero,,
S,on,bool,given,,
S,who,string,always,,
S,limits,M,always,,
";

    #[test]
    fn a_completed_value_is_what_is_read_after_it_was_written() {
        let types = Types::parse(TABLE).expect("a good table");
        let id = types.id("T").expect("is there");
        for text in
            ["{}", r#"{"metadata":{"name":"n"}}"#, r#"{"items":[{},{"on":false},{"who":"me","limits":{"name":"m"}}]}"#]
        {
            let Ok(Value::Object(mut object)) = parse_json(text.as_bytes()).map(|parsed| parsed.value) else {
                panic!("an object")
            };
            let written = types.encode(id, "T", "v1", &object);
            let Ok(Value::Object(mut read)) = parse_json(&written.bytes).map(|parsed| parsed.value) else {
                panic!("an object")
            };
            read.remove("kind");
            read.remove("apiVersion");
            types.complete(id, &mut object);
            assert_eq!(object, read, "{text}");
        }
    }
}
