//! Filling in the defaults of the table: those that do not depend on what stands beside a field. The others are the
//! business of the kinds.

use revisor_object::{Object, Value};

use crate::conform::is_zero;
use crate::{Presence, Shape, StructId, Types};

impl Types {
    /// Gives every absent field of `object`, a conforming value of type `id`, its default, at any depth. Doing it again
    /// changes nothing.
    pub fn fill_defaults(&self, id: StructId, object: &mut Object) {
        let of = self.get(id);
        for field in of.defaulted.iter().map(|place| &of.fields[*place as usize]) {
            // What is always written cannot be told from its zero value, so that is a field that was not given.
            let is_given = |value: &Value| !(field.presence == Presence::Always && is_zero(value));
            match object.get_mut(&field.name) {
                Some(value) if field.default.is_none() || is_given(value) => self.default_within(&field.shape, value),
                _ => {
                    if let Some(value) = self.default_of_absent(&field.shape, field.presence, field.default.as_ref()) {
                        object.insert(&field.name, value);
                    }
                }
            }
        }
    }

    fn default_of_absent(&self, shape: &Shape, presence: Presence, default: Option<&Value>) -> Option<Value> {
        if let Some(default) = default {
            let mut value = default.clone();
            self.default_within(shape, &mut value);
            return Some(value);
        }
        // An object that is always written is there even if nobody gave it, and so are its defaults.
        let Shape::Struct(id) = shape else { return None };
        if presence != Presence::Always || !self.get(*id).inside.defaults {
            return None;
        }
        let mut object = Object::new();
        self.fill_defaults(*id, &mut object);
        (!object.is_empty()).then_some(Value::Object(object))
    }

    fn default_within(&self, shape: &Shape, value: &mut Value) {
        match (shape, value) {
            (Shape::Struct(id), Value::Object(object)) if self.get(*id).inside.defaults => {
                self.fill_defaults(*id, object)
            }
            (Shape::List(element), Value::Array(items)) if self.may_default(element) => {
                for item in items {
                    self.default_within(element, item);
                }
            }
            (Shape::Map(element), Value::Object(object)) if self.may_default(element) => {
                for (_, item) in object.iter_mut() {
                    self.default_within(element, item);
                }
            }
            _ => {}
        }
    }

    /// Whether there may be something with a default in values of this shape.
    pub(crate) fn may_default(&self, shape: &Shape) -> bool {
        match shape {
            Shape::Struct(id) => self.get(*id).inside.defaults,
            Shape::List(element) | Shape::Map(element) => self.may_default(element),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use revisor_object::parse_json;

    const TABLE: &str = "type,field,shape,presence,number,merge,list,required,default
T,spec,S,always,,
T,note,string,nonzero,,
S,policy,string,nonzero,,,,,\"Always\"
S,ports,list:P,nonzero,,
S,extra,P,given,,
P,protocol,string,nonzero,,,,,\"TCP\"
P,number,int32,given,,,,,8
P,weight,int32,always,,,,,5
";

    #[test]
    fn absent_fields_get_their_defaults_at_any_depth_and_only_once() {
        let types = Types::parse(TABLE).expect("a good table");
        for (text, want) in [
            ("{}", r#"{"spec":{"policy":"Always"}}"#),
            (
                r#"{"spec":{"policy":"Never","extra":{}}}"#,
                r#"{"spec":{"extra":{"number":8,"protocol":"TCP","weight":5},"policy":"Never"}}"#,
            ),
            (
                r#"{"spec":{"ports":[{"protocol":"UDP","weight":1},{"number":0,"weight":0}]}}"#,
                r#"{"spec":{"policy":"Always","ports":[{"number":8,"protocol":"UDP","weight":1},{"number":0,"protocol":"TCP","weight":5}]}}"#,
            ),
        ] {
            let Value::Object(mut object) = parse_json(text.as_bytes()).expect("is JSON").value else {
                panic!("{text}")
            };
            for time in ["once", "twice"] {
                types.fill_defaults(types.id("T").expect("is there"), &mut object);
                assert_eq!(Value::Object(object.clone()).to_json(), want, "{text} {time}");
            }
        }
    }
}
