//! Parts of objects that are kept as the text that they were sent as: found in the text of an object, by its type.

use revisor_object::{Object, RawJson, Value};

use crate::{Shape, StructId, Types};

/// What the bytes of an object begin with that holds JSON with blanks, or written in another way than it is shown in, or
/// texts with bytes that are not of UTF-8. Bytes of other objects are shown as they are.
pub(crate) const SPELLED: u8 = b' ';

/// Whether the bytes of an object hold something that is shown otherwise to those who read JSON
/// ([`compact_json`](revisor_object::compact_json)).
pub fn is_spelled(encoded: &[u8]) -> bool {
    encoded.first() == Some(&SPELLED)
}

impl Types {
    /// Whether objects of the type `id` may hold JSON that is kept as its text.
    pub fn has_raw(&self, id: StructId) -> bool {
        self.get(id).inside.raw
    }

    /// Puts the texts of raw JSON in the place of what was read from them. `value` was read from `json`, an object of the
    /// type `id`.
    pub fn keep_raw(&self, id: StructId, value: &mut Value, json: &[u8]) {
        if let (true, Ok(json)) = (self.has_raw(id), std::str::from_utf8(json)) {
            self.keep_raw_of(&Shape::Struct(id), value, json);
        }
    }

    fn keep_raw_of(&self, shape: &Shape, value: &mut Value, json: &str) {
        match (shape, &mut *value) {
            // Nothing at all stays nothing.
            (Shape::Raw, Value::Null) => {}
            (Shape::Raw, read) => {
                *value = Value::Raw(Box::new(RawJson::known(json, std::mem::take(read).into_plain())))
            }
            (Shape::Struct(id), Value::Object(object)) => {
                let of = self.get(*id);
                // What was read can be found again; of members that come twice the last one counts here too.
                for (name, text) in sonic_rs::to_object_iter(json).map_while(Result::ok) {
                    let field = of.field(&name).filter(|field| self.may_have_raw(&field.shape));
                    if let (Some(field), Some(value)) = (field, object.get_mut(&name)) {
                        self.keep_raw_of(&field.shape, value, text.as_raw_str());
                    }
                }
            }
            (Shape::Map(element), Value::Object(object)) => {
                for (name, text) in sonic_rs::to_object_iter(json).map_while(Result::ok) {
                    if let Some(value) = object.get_mut(&name) {
                        self.keep_raw_of(element, value, text.as_raw_str());
                    }
                }
            }
            (Shape::List(element), Value::Array(items)) => {
                for (item, text) in items.iter_mut().zip(sonic_rs::to_array_iter(json).map_while(Result::ok)) {
                    self.keep_raw_of(element, item, text.as_raw_str());
                }
            }
            _ => {}
        }
    }

    fn may_have_raw(&self, shape: &Shape) -> bool {
        match shape {
            Shape::Raw => true,
            Shape::Struct(id) => self.has_raw(*id),
            Shape::List(element) | Shape::Map(element) => self.may_have_raw(element),
            _ => false,
        }
    }

    /// Whether a path, such as `spec.devices[0].parameters.x`, leads into raw JSON, or into what types read by code of
    /// their own: nobody is told what is odd in there.
    pub fn is_read_apart(&self, id: StructId, path: &str) -> bool {
        let root = Shape::Struct(id);
        let mut shape = &root;
        for step in path.split(['.', '[']) {
            shape = match shape {
                Shape::Raw | Shape::Either(..) => return true,
                Shape::Struct(id) => match self.get(*id).field(step) {
                    Some(field) => &field.shape,
                    None => return false,
                },
                Shape::List(element) | Shape::Map(element) => element,
                _ => return false,
            };
        }
        false
    }

    /// Puts what raw JSON says in the place of its texts, for those who change objects whatever their type.
    pub fn open_raw(&self, id: StructId, object: &mut Object) {
        if self.has_raw(id) {
            self.each_raw(id, object, None);
        }
    }

    /// Gives raw JSON of `object` that says the same as at its place in `old` the text that it had there.
    pub fn restore_raw(&self, id: StructId, object: &mut Object, old: &Object) {
        if self.has_raw(id) {
            self.each_raw(id, object, Some(old));
        }
    }

    fn each_raw(&self, id: StructId, object: &mut Object, old: Option<&Object>) {
        for field in self.get(id).fields.iter().filter(|field| self.may_have_raw(&field.shape)) {
            let before = old.and_then(|old| old.get(&field.name));
            if let (Some(value), true) = (object.get_mut(&field.name), old.is_none() || before.is_some()) {
                self.each_raw_of(&field.shape, value, before);
            }
        }
    }

    /// Without an old value, texts are opened; with one they are restored.
    fn each_raw_of(&self, shape: &Shape, value: &mut Value, old: Option<&Value>) {
        match (shape, &mut *value, old) {
            (Shape::Raw, Value::Raw(_), None) => *value = std::mem::take(value).into_plain(),
            (Shape::Raw, new, Some(old @ Value::Raw(_))) if new.plain() == old.plain() => *value = old.clone(),
            (Shape::Struct(id), Value::Object(object), None) => self.each_raw(*id, object, None),
            (Shape::Struct(id), Value::Object(object), Some(Value::Object(old))) => {
                self.each_raw(*id, object, Some(old));
            }
            (Shape::List(element), Value::Array(items), old) => {
                let old = old.map(|old| old.as_array().unwrap_or_default());
                for (at, item) in items.iter_mut().enumerate() {
                    match old {
                        None => self.each_raw_of(element, item, None),
                        Some(old) if at < old.len() => self.each_raw_of(element, item, old.get(at)),
                        Some(_) => {}
                    }
                }
            }
            // No API type has maps of raw JSON.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use revisor_object::parse_json;

    const TABLE: &str = "type,field,shape,presence,number,merge
T,name,string,nonzero,1,
T,data,raw,always,2,
T,parts,list:P,nonzero,3,
P,more,raw,given,1,
";

    fn read(types: &Types, text: &str) -> Object {
        let id = types.id("T").expect("is there");
        let mut value = parse_json(text.as_bytes()).expect("JSON").value;
        types.keep_raw(id, &mut value, text.as_bytes());
        types.conform(id, &mut value).expect("fits");
        value.as_object().expect("an object").clone()
    }

    const TEXT: &str =
        r#"{"name":"n", "parts":[ {"more": [ 1.0, "<" ]}, {}, {"more":null} ],"data":{ "b":1e3 , "a":"\u003c" }}"#;

    #[test]
    fn the_texts_of_raw_json_survive_every_encoding() {
        let types = Types::parse(TABLE).expect("a good table");
        let id = types.id("T").expect("is there");
        let object = read(&types, TEXT);
        let encoded = types.encode(id, "T", "v1", &object).bytes;
        assert!(is_spelled(&encoded));
        assert_eq!(
            String::from_utf8_lossy(&encoded),
            r#" {"kind":"T","apiVersion":"v1","name":"n","data":{ "b":1e3 , "a":"\u003c" },"parts":[{"more":[ 1.0, "<" ]},{},{}]}"#
        );
        let mut again = parse_json(&encoded).expect("JSON").value;
        types.keep_raw(id, &mut again, &encoded);
        types.conform(id, &mut again).expect("fits");
        assert_eq!(types.encode(id, "T", "v1", again.as_object().expect("an object")).bytes, encoded);

        let message = types.write_protobuf(id, &object);
        let mut again = types.read_protobuf(id, &message).expect("a message");
        types.conform(id, &mut again).expect("fits");
        assert_eq!(again.as_object(), Some(&object));
        assert_eq!(types.write_protobuf(id, again.as_object().expect("an object")), message);

        let mut again = types.read_cbor(Some(id), &types.write_cbor(Some(id), &object)).expect("CBOR");
        types.conform(id, &mut again).expect("fits");
        let encoded = types.encode(id, "T", "v1", again.as_object().expect("an object")).bytes;
        assert_eq!(
            String::from_utf8_lossy(&encoded),
            r#"{"kind":"T","apiVersion":"v1","name":"n","data":{"a":"\u003c","b":1000},"parts":[{"more":[1,"\u003c"]},{},{}]}"#,
            "what was not sent as JSON is spelled as the original spells it"
        );
    }

    #[test]
    fn what_was_not_changed_keeps_its_text() {
        let types = Types::parse(TABLE).expect("a good table");
        let id = types.id("T").expect("is there");
        let old = read(&types, TEXT);
        let mut new = old.clone();
        types.open_raw(id, &mut new);
        assert!(matches!(new.get("data"), Some(Value::Object(_))));
        new.object_mut("data").insert("b", 7);
        types.restore_raw(id, &mut new, &old);
        let mut new = Value::Object(new);
        types.conform(id, &mut new).expect("fits");
        let encoded = types.encode(id, "T", "v1", new.as_object().expect("an object")).bytes;
        assert_eq!(
            String::from_utf8_lossy(&encoded),
            r#" {"kind":"T","apiVersion":"v1","name":"n","data":{"a":"\u003c","b":7},"parts":[{"more":[ 1.0, "<" ]},{},{}]}"#
        );
    }

    #[test]
    fn what_types_read_by_code_of_their_own_is_read_apart() {
        let table = TABLE.replace("P,more,", "T,either,orlist:P,given,4,\nP,more,");
        let types = Types::parse(&table).expect("a good table");
        let id = types.id("T").expect("is there");
        let cases = [("name", false), ("parts[0].x", false), ("data.a", true), ("either.x", true), ("none.x", false)];
        for (path, want) in cases {
            assert_eq!(types.is_read_apart(id, path), want, "{path}");
        }
    }

    #[test]
    fn of_members_that_come_twice_the_last_one_counts() {
        let types = Types::parse(TABLE).expect("a good table");
        let object = read(&types, r#"{"parts":[{"more":1},{"more":2}],"data":1,"parts":[{"more": 3}],"data": 2.0}"#);
        let texts: Vec<&str> = [object.get("data"), object.array("parts")[0].as_object().expect("one").get("more")]
            .into_iter()
            .map(|value| match value {
                Some(Value::Raw(raw)) => raw.text(),
                other => panic!("no text: {other:?}"),
            })
            .collect();
        assert_eq!(texts, ["2.0", "3"]);
    }
}
