//! [`Outline`]: what an encoded object says at its top, read without reading the rest, and changes of its metadata made in
//! its text. Whoever deletes an object asks for no more of it, and all else stays as it is.

use std::borrow::Cow;

use revisor_object::{Object, Value, parse_json, push_plain_name};

use crate::encode::{Encoded, Writer};
use crate::{Presence, Shape, Struct, StructId, Types};

/// Where members stand that an outline shows beside those of the metadata.
const PARTS: [&str; 2] = ["spec", "status"];

/// Lists that an outline shows too: what holds an object.
const FINALIZERS: &str = "finalizers";

/// An encoded object of which little was read.
pub struct Outline<'t> {
    types: &'t Types,
    /// The text up to the members of the metadata, and behind them.
    around: [&'t str; 2],
    /// The type of the metadata.
    metadata: &'t Struct,
    /// The text of each of its fields that is there.
    members: Vec<Option<&'t str>>,
    /// The object with what is shown of it.
    object: Object,
}

impl Types {
    /// The outline of `json`, an object of the type `id` as [`Types::encode`] writes it, or nothing if it is no such text.
    pub fn outline<'t>(&'t self, id: StructId, json: &'t [u8]) -> Option<Outline<'t>> {
        let text = std::str::from_utf8(json).ok()?;
        let Shape::Struct(metadata) = self.get(id).field("metadata")?.shape else { return None };
        let metadata = self.get(metadata);
        let mut members = vec![None; metadata.fields.len()];
        let (mut around, mut shown) = (None, Vec::with_capacity(PARTS.len() + 1));
        for member in sonic_rs::to_object_iter(text) {
            let (name, lazy) = member.ok()?;
            if name == "metadata" {
                let part = borrowed(&lazy)?;
                let start = part.as_ptr() as usize - text.as_ptr() as usize;
                around = Some([&text[..start + 1], &text[start + part.len() - 1..]]);
                for member in sonic_rs::to_object_iter(part) {
                    let (name, lazy) = member.ok()?;
                    let at = metadata.fields.iter().position(|field| *field.name == *name)?;
                    members[at] = Some(borrowed(&lazy)?);
                }
                let fields = metadata.fields.iter().map(|field| &*field.name);
                let there = fields.zip(&members).filter_map(|(name, text)| Some((name, (*text)?)));
                shown.push(("metadata".into(), Value::Object(at_the_top(there)?)));
            } else if let Some(part) = PARTS.iter().find(|part| ***part == *name) {
                let mut there = Vec::new();
                for member in sonic_rs::to_object_iter(borrowed(&lazy)?) {
                    let (name, lazy) = member.ok()?;
                    there.push((name, borrowed(&lazy)?));
                }
                let top = at_the_top(there.iter().map(|(name, text)| (&**name, *text)))?;
                shown.push(((*part).into(), Value::Object(top)));
            }
        }
        Some(Outline { types: self, around: around?, metadata, members, object: Object::from_members(shown) })
    }
}

impl Outline<'_> {
    /// The object with its metadata, spec and status, and of these what is no object and no list, with the finalizers.
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// The encoded object with these fields of its metadata as they are in `metadata`, or not at all where they are not
    /// there. `None` if it has not all that an encoded object has.
    pub fn encode_with(&self, fields: &[&str], metadata: &Object) -> Option<Encoded> {
        let [before, behind] = self.around;
        let mut bytes = Vec::with_capacity(before.len() + behind.len() + 1024);
        bytes.extend_from_slice(before.as_bytes());
        let mut writer = Writer::new(self.types, bytes);
        let start = writer.bytes.len();
        let mut revision_at = None;
        for (field, text) in self.metadata.fields.iter().zip(&self.members) {
            let name = &*field.name;
            let is_first = writer.bytes.len() == start || revision_at == Some(writer.bytes.len());
            if name == "resourceVersion" {
                if !is_first {
                    writer.bytes.push(b',');
                }
                revision_at = Some(writer.bytes.len());
            } else if fields.contains(&name) {
                writer.field(field, metadata.get(name), is_first);
            } else if let Some(text) = text {
                if !is_first {
                    writer.bytes.push(b',');
                }
                push_plain_name(name, &mut writer.bytes);
                writer.bytes.extend_from_slice(text.as_bytes());
            } else if matches!(field.presence, Presence::Always | Presence::Nullable) {
                return None;
            }
        }
        writer.bytes.extend_from_slice(behind.as_bytes());
        Some(Encoded { revision_at: u32::try_from(revision_at?).ok()?, bytes: writer.bytes })
    }
}

fn borrowed<'t>(lazy: &sonic_rs::LazyValue<'t>) -> Option<&'t str> {
    match lazy.as_raw_cow() {
        Cow::Borrowed(text) => Some(text),
        Cow::Owned(_) => None,
    }
}

/// Those of the members that are shown, read.
fn at_the_top<'t>(members: impl Iterator<Item = (&'t str, &'t str)>) -> Option<Object> {
    let is_shown = |(name, text): &(&str, &str)| *name == FINALIZERS || !text.starts_with(['{', '[']);
    let read = members.filter(is_shown).map(|(name, text)| Some((name.into(), read(text)?)));
    Some(Object::from_members(read.collect::<Option<Vec<_>>>()?))
}

fn read(text: &str) -> Option<Value> {
    let plain = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).filter(|plain| !plain.contains('\\'));
    match plain {
        Some(plain) => Some(Value::from(plain)),
        None => parse_json(text.as_bytes()).ok().map(|parsed| parsed.value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "type,field,shape,presence,number,merge
T,metadata,M,always,,
T,spec,S,always,,
T,data,map:string,nonzero,,
M,name,string,nonzero,,
M,resourceVersion,string,nonzero,,
M,generation,int64,nonzero,,
M,creationTimestamp,time,always,,
M,deletionTimestamp,time,given,,
M,labels,map:string,nonzero,,
M,finalizers,list:string,nonzero,,
S,node,string,nonzero,,
S,parts,list:string,nonzero,,
";

    fn object(text: &str) -> Object {
        let Value::Object(object) = parse_json(text.as_bytes()).expect("is JSON").value else { panic!("an object") };
        object
    }

    #[test]
    fn what_is_changed_in_the_text_is_as_if_all_had_been_read_and_written() {
        let types = Types::parse(TABLE).expect("a good table");
        let id = types.id("T").expect("is there");
        let spec = r#""spec":{"node":"a\"\u003cb","parts":["p"]},"data":{"x":"}\\\"{"}"#;
        for metadata in [
            r#"{"name":"n","generation":1,"creationTimestamp":"t","labels":{"a":"b"}}"#,
            r#"{"name":"n","creationTimestamp":"t"}"#,
            r#"{"creationTimestamp":"t","finalizers":["a","b"]}"#,
            r#"{"name":"n","generation":7,"creationTimestamp":"t","deletionTimestamp":"u","finalizers":["a"]}"#,
        ] {
            let mut whole = object(&format!(r#"{{"metadata":{metadata},{spec}}}"#));
            let stored = types.encode(id, "T", "v1", &whole);
            let (head, tail) = stored.bytes.split_at(stored.revision_at as usize);
            let shown = [head, br#""resourceVersion":"12","#, tail].concat();
            let outline = types.outline(id, &shown).expect("it is an object");
            assert_eq!(outline.object().at(&["spec", "node"]), Some(&Value::from("a\"<b")));
            assert!(outline.object().at(&["spec", "parts"]).is_none(), "nobody asked for it");
            assert_eq!(outline.encode_with(&[], &Object::new()), Some(stored), "{metadata}");

            for (fields, changed) in [
                (&["generation", "deletionTimestamp"][..], r#"{"generation":2,"deletionTimestamp":"now"}"#),
                (&["finalizers"], r#"{"finalizers":["c"]}"#),
                (&["finalizers", "generation"], "{}"),
            ] {
                let changed = object(changed);
                let marked = whole.object_mut("metadata");
                fields.iter().for_each(|name| marked.set(name, changed.get(name).cloned()));
                let want = types.encode(id, "T", "v1", &whole);
                assert_eq!(outline.encode_with(fields, &changed), Some(want), "{fields:?} of {metadata}");
                whole = object(std::str::from_utf8(&shown).expect("is text"));
            }
        }
    }

    #[test]
    fn what_is_no_encoded_object_has_no_outline() {
        let types = Types::parse(TABLE).expect("a good table");
        let id = types.id("T").expect("is there");
        for text in ["", "[]", "{", r#"{"spec":{}}"#, r#"{"metadata":{"strange":1}}"#, r#"{"metadata":{"name":"#] {
            assert!(types.outline(id, text.as_bytes()).is_none(), "{text}");
        }
        let without_time = types.outline(id, br#"{"metadata":{"name":"n"},"spec":{}}"#).expect("it can be read");
        assert!(without_time.encode_with(&[], &Object::new()).is_none(), "an encoded object has a creation time");
    }
}
