//! Completing a value: the fields that are always written are there, as they are in a value that was written and read
//! again. Only then can a new value be compared with a stored one.

use revisor_object::{Object, Value};

use crate::conform::is_zero;
use crate::{Alternative, Field, Presence, Shape, StructId, Types};

/// Fields that tell the elements of a list apart and may be absent: the original's schema says that they are empty then,
/// although they are not always written.
const EMPTY_KEYS: [(&str, &str); 1] = [("core.v1.LocalObjectReference", "name")];

impl Field {
    /// What is written where the field was not given, if anything is.
    pub fn written_zero(&self) -> Option<Value> {
        match self.presence {
            Presence::Always => Some(written_zero(&self.shape)),
            Presence::Nullable => Some(Value::Null),
            Presence::NonZero | Presence::Given => None,
        }
    }

    /// Whether it is written although it was not given.
    pub fn is_always_written(&self) -> bool {
        matches!(self.presence, Presence::Always | Presence::Nullable)
    }

    /// Whether nothing and a list or map with nothing in it look the same, as they do once they were stored.
    pub(crate) fn is_shown_as_null_if_empty(&self) -> bool {
        self.presence == Presence::Nullable && matches!(self.shape, Shape::List(_) | Shape::Map(_))
    }
}

impl Field {
    /// Whether the original tells a list, a map or bytes with nothing in them from those that were not given.
    pub(crate) fn can_be_sent_empty(&self) -> bool {
        matches!(self.shape, Shape::List(_) | Shape::Map(_) | Shape::Bytes)
    }
}

impl Types {
    /// Gives `object`, a conforming value of type `id`, every field that is always written, at any depth. Doing it
    /// again changes nothing.
    pub fn complete(&self, id: StructId, object: &mut Object) {
        let of = self.get(id);
        if !of.inside.always_written {
            return;
        }
        // Most members hold nothing else, and need not be looked up.
        let mut cursor = of.fields.cursor();
        for (name, value) in object.iter_mut().filter(|(_, value)| holds_others(value)) {
            if let Some(field) = cursor.find(name) {
                self.complete_within(&field.shape, value);
            }
        }
        for field in of.fields.always_written() {
            if !object.contains(&field.name)
                && let Some(mut value) = field.written_zero()
            {
                self.complete_within(&field.shape, &mut value);
                object.insert(&field.name, value);
            }
        }
    }

    /// Forgets the lists and maps with nothing in them that are shown as `null`, at any depth, as storing does. What is
    /// left of them is the [mark](Object::is_sent_empty) that others have too.
    pub fn forget_empty(&self, id: StructId, object: &mut Object) {
        let of = self.get(id);
        if !of.inside.shown_as_null {
            return;
        }
        let mut cursor = of.fields.cursor();
        object.retain(|name, value| {
            if !holds_others(value) && !value.is_null() {
                return true;
            }
            let Some(field) = cursor.find(name) else { return true };
            if field.is_shown_as_null_if_empty() && is_zero(value) {
                *value = Value::Nothing;
                return true;
            }
            self.forget_empty_within(&field.shape, value);
            true
        });
    }

    fn forget_empty_within(&self, shape: &Shape, value: &mut Value) {
        match (shape, value) {
            (Shape::Struct(id) | Shape::Either(_, id), Value::Object(object)) => self.forget_empty(*id, object),
            (Shape::Either(Alternative::List, id), Value::Array(items)) => {
                items.iter_mut().filter_map(Value::as_object_mut).for_each(|object| self.forget_empty(*id, object));
            }
            (Shape::List(element), Value::Array(items)) if holds_objects(element) => {
                items.iter_mut().for_each(|item| self.forget_empty_within(element, item));
            }
            (Shape::Map(element), Value::Object(object)) if holds_objects(element) => {
                object.iter_mut().for_each(|(_, item)| self.forget_empty_within(element, item));
            }
            _ => {}
        }
    }

    /// What stands under a key of an element of type `id` that lacks it (upstream: `getAssociativeKeyDefault`): the
    /// original's schema has the zero value as the default of everything that is always written.
    pub fn key_default(&self, id: StructId, key: &str) -> Option<Value> {
        let of = self.get(id);
        let field = of.field(key)?;
        let empty = || EMPTY_KEYS.contains(&(&*of.name, key)).then(|| Value::from(""));
        let zero = || field.written_zero().filter(|zero| !zero.is_null());
        field.default.clone().or_else(zero).or_else(empty)
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

/// Whether there may be other values in a value.
fn holds_others(value: &Value) -> bool {
    matches!(value, Value::Array(_) | Value::Object(_))
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
    fn what_is_given_with_nothing_in_it_is_kept_until_it_is_stored() {
        let types = Types::parse(TABLE).expect("a good table");
        let id = types.id("T").expect("is there");
        let read = |text: &str| parse_json(text.as_bytes()).expect("JSON").value;
        for (sent, fitted) in [(r#"{"items":[]}"#, r#"{"items":[]}"#), (r#"{"items":null}"#, "{}"), ("{}", "{}")] {
            let mut value = read(sent);
            types.conform_as_sent(id, &mut value).expect("fits");
            assert_eq!(value, read(fitted), "{sent}");
            let Value::Object(mut object) = value else { panic!("an object") };
            types.forget_empty(id, &mut object);
            assert!(object.is_empty(), "{sent}");
            let mut value = read(sent);
            types.conform(id, &mut value).expect("fits");
            assert_eq!(value, read("{}"), "{sent}");
        }
    }

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
