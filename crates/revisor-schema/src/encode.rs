//! Writing a value in its canonical form: the fields of a type in the order of the table, names of maps sorted, no
//! white space. Equal objects have equal bytes, so "did this write change anything" is a comparison of bytes.

use revisor_object::{Object, Value, push_json_text, push_kept_text, push_kept_value, push_plain_name};

use crate::raw::SPELLED;
use crate::{Alternative, Field, Presence, Shape, StructId, Types};

/// Room for a usual object with its managed fields.
const USUAL_BYTES: usize = 4096;

/// The canonical JSON of an object and the offsets that the server needs to know in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// The JSON text. `metadata.resourceVersion` is left out: it is spliced in once it is known. A blank before it tells
    /// that it holds parts which are shown otherwise ([`is_spelled`](crate::is_spelled)).
    pub bytes: Vec<u8>,
    /// Where `"resourceVersion":"N",` belongs.
    pub revision_at: u32,
}

impl Types {
    /// Writes `object`, an API object of type `id`, whose first members are `kind` and `apiVersion`. It must conform
    /// to its type, and have metadata with a creation time if a revision is to be put in.
    pub fn encode(&self, id: StructId, kind: &str, api_version: &str, object: &Object) -> Encoded {
        self.write(id, [kind, api_version], object, true)
    }

    /// The same for those who are shown an object before it is stored: with the revision that it says itself.
    pub fn encode_as_it_is(&self, id: StructId, kind: &str, api_version: &str, object: &Object) -> Vec<u8> {
        self.write(id, [kind, api_version], object, false).bytes
    }

    fn write(&self, id: StructId, [kind, api_version]: [&str; 2], object: &Object, splices_revision: bool) -> Encoded {
        let mut bytes = Vec::with_capacity(USUAL_BYTES);
        bytes.extend_from_slice(b"{\"kind\":");
        push_json_text(kind, &mut bytes);
        bytes.extend_from_slice(b",\"apiVersion\":");
        push_json_text(api_version, &mut bytes);
        let mut writer = Writer::new(self, bytes);
        self.get(id).fields.for_each(object, |field, value| match &*field.name {
            "kind" | "apiVersion" => {}
            "metadata" => {
                writer.bytes.extend_from_slice(b",\"metadata\":");
                writer.in_metadata = splices_revision;
                writer.value(&field.shape, value.unwrap_or(&Value::Null));
                writer.in_metadata = false;
            }
            _ => writer.field(field, value, false),
        });
        writer.bytes.push(b'}');
        let mut revision_at = writer.revision_at.unwrap_or_default();
        if writer.is_spelled {
            writer.bytes.insert(0, SPELLED);
            revision_at += 1;
        }
        Encoded { bytes: writer.bytes, revision_at }
    }
}

pub(crate) struct Writer<'t> {
    types: &'t Types,
    pub(crate) bytes: Vec<u8>,
    revision_at: Option<u32>,
    in_metadata: bool,
    /// Whether there is something in it that is shown otherwise to those who read JSON.
    is_spelled: bool,
}

impl<'t> Writer<'t> {
    /// One that goes on behind these bytes.
    pub(crate) fn new(types: &'t Types, bytes: Vec<u8>) -> Writer<'t> {
        Writer { types, bytes, revision_at: None, in_metadata: false, is_spelled: false }
    }

    pub(crate) fn field(&mut self, field: &Field, value: Option<&Value>, first: bool) {
        let presence = field.presence;
        let value = match value {
            Some(value) => value,
            None if matches!(presence, Presence::Always | Presence::Nullable) => &Value::Null,
            None => return,
        };
        if !first {
            self.bytes.push(b',');
        }
        push_plain_name(&field.name, &mut self.bytes);
        if presence == Presence::Nullable && value.is_null() {
            self.bytes.extend_from_slice(b"null");
        } else {
            self.value(&field.shape, value);
        }
    }

    fn value(&mut self, shape: &Shape, value: &Value) {
        match (shape, value) {
            (_, Value::String(text)) => self.is_spelled |= push_kept_text(text, &mut self.bytes),
            (Shape::Struct(id) | Shape::Either(_, id), Value::Object(object)) => self.structure(*id, object),
            (Shape::Either(Alternative::List, id), Value::Array(items)) => {
                self.list(items, |writer, item| writer.value(&Shape::Struct(*id), item));
            }
            (Shape::Struct(id), Value::Null) => self.structure(*id, &Object::new()),
            (Shape::List(element), Value::Array(items)) => {
                self.list(items, |writer, item| writer.value(element, item));
            }
            (Shape::Map(element), Value::Object(object)) => {
                self.bytes.push(b'{');
                for (at, (name, item)) in object.iter().enumerate() {
                    if at > 0 {
                        self.bytes.push(b',');
                    }
                    self.is_spelled |= push_kept_text(name, &mut self.bytes);
                    self.bytes.push(b':');
                    self.value(element, item);
                }
                self.bytes.push(b'}');
            }
            (Shape::String | Shape::Bytes, Value::Null) => self.bytes.extend_from_slice(b"\"\""),
            (Shape::Bool, Value::Null) => self.bytes.extend_from_slice(b"false"),
            (Shape::Int32 | Shape::Int64 | Shape::Double | Shape::IntOrString, Value::Null) => self.bytes.push(b'0'),
            (Shape::Quantity, Value::Null) => self.bytes.extend_from_slice(b"\"0\""),
            (Shape::Duration, Value::Null) => self.bytes.extend_from_slice(b"\"0s\""),
            (Shape::Raw, Value::Raw(raw)) if raw.problem().is_none() => {
                self.is_spelled |= !raw.is_compact();
                self.bytes.extend_from_slice(raw.text().as_bytes());
            }
            (_, value) => self.is_spelled |= push_kept_value(value, &mut self.bytes),
        }
    }

    fn list(&mut self, items: &[Value], write: impl Fn(&mut Self, &Value)) {
        self.bytes.push(b'[');
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                self.bytes.push(b',');
            }
            write(self, item);
        }
        self.bytes.push(b']');
    }

    fn structure(&mut self, id: StructId, object: &Object) {
        let types = self.types;
        let metadata = std::mem::take(&mut self.in_metadata);
        self.bytes.push(b'{');
        let start = self.bytes.len();
        types.get(id).fields.for_each(object, |field, value| {
            if metadata && &*field.name == "resourceVersion" {
                // The splice brings its own comma behind it, so this one is written now, and the fields that follow
                // start as if they were the first.
                if self.bytes.len() > start {
                    self.bytes.push(b',');
                }
                self.revision_at = Some(self.bytes.len() as u32);
                return;
            }
            let first = self.bytes.len() == start || self.revision_at == Some(self.bytes.len() as u32);
            self.field(field, value, first);
        });
        // What is never stored has no creation time; then nothing may follow the place of the revision.
        if self.bytes.last() == Some(&b',') {
            self.bytes.pop();
        }
        self.bytes.push(b'}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use revisor_object::parse_json;

    const TABLE: &str = "type,field,shape,presence,number,merge
T,metadata,M,always,,
T,spec,S,always,,
T,seen,time,always,,
T,data,map:string,nonzero,,
M,name,string,nonzero,,
M,resourceVersion,string,nonzero,,
M,creationTimestamp,time,nonzero,,
M,labels,map:string,nonzero,,
S,on,bool,given,,
S,who,string,always,,
S,more,orlist:S,given,,
";

    #[track_caller]
    fn check(text: &str, want: &str) {
        let types = Types::parse(TABLE).expect("a good table");
        let Value::Object(object) = parse_json(text.as_bytes()).expect("is JSON").value else { panic!("an object") };
        let encoded = types.encode(types.id("T").expect("is there"), "T", "v1", &object);
        let mut bytes = encoded.bytes;
        bytes.insert(encoded.revision_at as usize, b'^');
        assert_eq!(String::from_utf8_lossy(&bytes), want);
    }

    #[test]
    fn fields_stand_in_the_order_of_the_table_with_a_place_for_the_revision() {
        check(
            r#"{"data":{"b":"2","a":"1"},"spec":{"on":false},"metadata":{"labels":{"x":"y"},"creationTimestamp":"t","name":"n"}}"#,
            r#"{"kind":"T","apiVersion":"v1","metadata":{"name":"n",^"creationTimestamp":"t","labels":{"x":"y"}},"spec":{"on":false,"who":""},"seen":null,"data":{"a":"1","b":"2"}}"#,
        );
    }

    #[test]
    fn an_object_can_be_written_with_its_own_revision() {
        let types = Types::parse(TABLE).expect("a good table");
        for (metadata, want) in [
            (
                r#"{"name":"n","resourceVersion":"9","labels":{"a":"b"}}"#,
                r#"{"name":"n","resourceVersion":"9","labels":{"a":"b"}}"#,
            ),
            (r#"{"name":"n"}"#, r#"{"name":"n"}"#),
        ] {
            let text = format!(r#"{{"metadata":{metadata}}}"#);
            let Value::Object(object) = parse_json(text.as_bytes()).expect("is JSON").value else {
                panic!("an object")
            };
            let bytes = types.encode_as_it_is(types.id("T").expect("is there"), "T", "v1", &object);
            let want = format!(r#"{{"kind":"T","apiVersion":"v1","metadata":{want},"spec":{{"who":""}},"seen":null}}"#);
            assert_eq!(String::from_utf8_lossy(&bytes), want);
        }
    }

    #[test]
    fn a_shape_with_alternatives_is_written_as_it_is() {
        let written = |more: &str| {
            format!(
                r#"{{"kind":"T","apiVersion":"v1","metadata":{{^}},"spec":{{"who":"","more":{more}}},"seen":null}}"#
            )
        };
        check(r#"{"spec":{"more":{"who":"me"}}}"#, &written(r#"{"who":"me"}"#));
        check(r#"{"spec":{"more":[{"on":true},{}]}}"#, &written(r#"[{"on":true,"who":""},{"who":""}]"#));
    }

    #[test]
    fn the_revision_may_come_first() {
        check(
            r#"{"metadata":{"resourceVersion":"9","creationTimestamp":"t"}}"#,
            r#"{"kind":"T","apiVersion":"v1","metadata":{^"creationTimestamp":"t"},"spec":{"who":""},"seen":null}"#,
        );
    }
}
