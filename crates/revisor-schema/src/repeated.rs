//! What an object with members that occur twice says: as Go's decoder reads it, which decodes the second into what the
//! first left.

use revisor_object::{Object, Value, parse_json};

use crate::{Presence, Shape, StructId, Types};

impl Types {
    /// The value of a JSON object of the type `id`, some of whose members occur twice. Fields of objects and members of
    /// maps are added to those that are there, elements of lists are read over those in their places, and of all else the
    /// last one counts. `None` if the text cannot be followed.
    pub fn read_repeated(&self, id: StructId, json: &str) -> Option<Value> {
        self.read_over(&Shape::Struct(id), None, json)
    }

    fn read_over(&self, shape: &Shape, before: Option<Value>, json: &str) -> Option<Value> {
        Some(match (shape, json.as_bytes().first()?) {
            (Shape::Struct(id), b'{') => {
                let of = self.get(*id);
                let mut object = object_of(before);
                for member in sonic_rs::to_object_iter(json) {
                    let (name, text) = member.ok()?;
                    let text = text.as_raw_str();
                    let value = match of.field(&name) {
                        // Nothing changes nothing where Go has no pointer.
                        Some(field)
                            if text == "null"
                                && object.contains(&name)
                                && !is_nilable(field.presence, &field.shape) =>
                        {
                            continue;
                        }
                        Some(field) => self.read_over(&field.shape, object.remove(&name), text)?,
                        None => plain(text)?,
                    };
                    object.insert(&name, value);
                }
                Value::Object(object)
            }
            (Shape::Map(element), b'{') => {
                let mut object = object_of(before);
                for member in sonic_rs::to_object_iter(json) {
                    let (name, text) = member.ok()?;
                    // The values of maps begin anew.
                    object.insert(&name, self.read_over(element, None, text.as_raw_str())?);
                }
                Value::Object(object)
            }
            (Shape::List(element), b'[') => {
                let before = match before {
                    Some(Value::Array(items)) => items,
                    _ => Vec::new(),
                };
                let mut before = before.into_iter();
                let mut items = Vec::new();
                for item in sonic_rs::to_array_iter(json) {
                    let item = item.ok()?;
                    items.push(match (item.as_raw_str(), before.next()) {
                        ("null", Some(kept)) => kept,
                        (text, before) => self.read_over(element, before, text)?,
                    });
                }
                Value::Array(items)
            }
            _ => plain(json)?,
        })
    }
}

/// Whether Go can tell that such a field is not there.
fn is_nilable(presence: Presence, shape: &Shape) -> bool {
    let is_scalar_or_struct =
        matches!(shape, Shape::String | Shape::Bool | Shape::Int32 | Shape::Int64 | Shape::Double | Shape::Struct(_));
    presence == Presence::Given || !is_scalar_or_struct
}

fn object_of(value: Option<Value>) -> Object {
    match value {
        Some(Value::Object(object)) => object,
        _ => Object::new(),
    }
}

fn plain(json: &str) -> Option<Value> {
    parse_json(json.as_bytes()).ok().map(|parsed| parsed.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "type,field,shape,presence,number,merge
T,name,string,nonzero,1,
T,count,int32,given,2,
T,data,raw,always,3,
T,labels,map:string,nonzero,4,
T,kinds,map:P,nonzero,5,
T,parts,list:P,nonzero,6,
T,inner,P,always,7,
T,other,P,given,8,
P,a,string,nonzero,1,
P,b,string,nonzero,2,
P,texts,list:string,nonzero,3,
";

    #[test]
    fn what_occurs_twice_is_read_over_what_was_there() {
        let types = Types::parse(TABLE).expect("a good table");
        let id = types.id("T").expect("is there");
        for (text, want) in [
            (r#"{"name":"a","name":"b","x":1,"x":{"y":2}}"#, r#"{"name":"b","x":{"y":2}}"#),
            (r#"{"name":"a","name":null,"count":1,"count":null}"#, r#"{"count":null,"name":"a"}"#),
            (r#"{"labels":{"x":"1","y":"2"}, "labels": {"y":"3","z":"4"}}"#, r#"{"labels":{"x":"1","y":"3","z":"4"}}"#),
            (r#"{"labels":{"x":"1"},"labels":null}"#, r#"{"labels":null}"#),
            (r#"{"kinds":{"x":{"a":"1"}},"kinds":{"x":{"b":"2"},"y":{}}}"#, r#"{"kinds":{"x":{"b":"2"},"y":{}}}"#),
            (r#"{"inner":{"a":"1","a":"2"},"inner":{"b":"3","q":4}}"#, r#"{"inner":{"a":"2","b":"3","q":4}}"#),
            (
                r#"{"inner":{"a":"1"},"inner":null,"other":{"a":"1"},"other":null}"#,
                r#"{"inner":{"a":"1"},"other":null}"#,
            ),
            (r#"{"data":{"a":1},"data":{"b":2}}"#, r#"{"data":{"b":2}}"#),
            (
                r#"{"parts":[{"a":"1","texts":["x","y"]},{"a":"2"}],"parts":[{"b":"3","texts":["z"]}]}"#,
                r#"{"parts":[{"a":"1","b":"3","texts":["z"]}]}"#,
            ),
            (r#"{"parts":[{"a":"1"}],"parts":[null,{"b":"2"}]}"#, r#"{"parts":[{"a":"1"},{"b":"2"}]}"#),
            (r#"{"parts":[{"a":"1"}],"parts":null,"parts":[{"b":"2"}]}"#, r#"{"parts":[{"b":"2"}]}"#),
        ] {
            let read = types.read_repeated(id, text).expect("JSON");
            assert_eq!(read.to_json(), want, "{text}");
        }
    }
}
