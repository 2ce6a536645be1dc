//! [`Outline`]: what an encoded object says at its top, read without reading the rest, and changes of its metadata made in
//! its text. Whoever deletes an object asks for no more of it, and all else stays as it is.

use std::ops::Range;

use revisor_object::{JsonScan, Object, Value, parse_json, push_plain_name};

use crate::encode::{Encoded, Writer};
use crate::fields::Fields;
use crate::{Presence, Shape, StructId, Types};

/// Where members stand that an outline shows beside those of the metadata.
const PARTS: [&str; 2] = ["spec", "status"];

/// Lists that an outline shows too: what holds an object.
const FINALIZERS: &str = "finalizers";

/// Where the metadata of an encoded object stand, and what is in them.
#[derive(Debug, Clone)]
pub struct Outline {
    /// The type of the metadata.
    metadata: StructId,
    /// Between the brackets.
    within: Range<usize>,
    /// The value of each field that is there.
    members: Vec<Option<Range<usize>>>,
}

impl Types {
    /// The outline of `json`, an object of the type `id` as [`Types::encode`] writes it, and the object with its metadata,
    /// spec and status, and of these what is no object and no list, with the finalizers. Nothing if it is no such text.
    pub fn outline(&self, id: StructId, json: &[u8]) -> Option<(Outline, Object)> {
        let text = std::str::from_utf8(json).ok()?;
        let Shape::Struct(metadata) = self.get(id).field("metadata")?.shape else { return None };
        let mut scan = JsonScan::new(text);
        let (mut outline, mut shown) = (None, Vec::with_capacity(PARTS.len() + 1));
        scan.enter()?;
        while let Some(name) = scan.member()? {
            if name == "metadata" {
                let found = Outline::read(metadata, &self.get(metadata).fields, &mut scan)?;
                let fields = self.get(metadata).fields.iter().map(|field| &*field.name);
                let there = fields.zip(&found.members).filter_map(|(name, place)| Some((name, &text[place.clone()?])));
                shown.push(("metadata".into(), Value::Object(at_the_top(there)?)));
                outline = Some(found);
            } else if let Some(part) = PARTS.iter().find(|part| **part == name) {
                let mut there = Vec::new();
                scan.enter()?;
                while let Some(name) = scan.member()? {
                    there.push((name, scan.value()?));
                }
                shown.push(((*part).into(), Value::Object(at_the_top(there.into_iter())?)));
            } else {
                scan.value()?;
            }
        }
        Some((outline?, Object::from_members(shown)))
    }

    /// The encoded object `json` with these fields of its metadata as they are in `metadata`, or not at all where they are
    /// not there. `None` if it has not all that an encoded object has.
    pub fn encode_with(&self, outline: &Outline, json: &[u8], fields: &[&str], metadata: &Object) -> Option<Encoded> {
        let (before, behind) = (json.get(..outline.within.start)?, json.get(outline.within.end..)?);
        let mut bytes = Vec::with_capacity(before.len() + outline.within.len() + behind.len() + ROOM_FOR_CHANGES);
        bytes.extend_from_slice(before);
        let mut writer = Writer::new(self, bytes);
        let start = writer.bytes.len();
        let mut revision_at = None;
        for (field, place) in self.get(outline.metadata).fields.iter().zip(&outline.members) {
            let name = &*field.name;
            let is_first = writer.bytes.len() == start || revision_at == Some(writer.bytes.len());
            if name == "resourceVersion" {
                if !is_first {
                    writer.bytes.push(b',');
                }
                revision_at = Some(writer.bytes.len());
            } else if fields.contains(&name) {
                writer.field(field, metadata.get(name), is_first);
            } else if let Some(place) = place {
                if !is_first {
                    writer.bytes.push(b',');
                }
                push_plain_name(name, &mut writer.bytes);
                writer.bytes.extend_from_slice(json.get(place.clone())?);
            } else if matches!(field.presence, Presence::Always | Presence::Nullable) {
                return None;
            }
        }
        writer.bytes.extend_from_slice(behind);
        Some(Encoded { revision_at: u32::try_from(revision_at?).ok()?, bytes: writer.bytes })
    }
}

/// Room for what is written into metadata.
const ROOM_FOR_CHANGES: usize = 256;

impl Outline {
    /// That of the metadata that the scan has come to.
    fn read(metadata: StructId, fields: &Fields, scan: &mut JsonScan<'_>) -> Option<Outline> {
        let mut members = vec![None; fields.len()];
        scan.enter()?;
        let start = scan.at();
        let mut end = start;
        while let Some(name) = scan.member()? {
            let at = fields.iter().position(|field| *field.name == *name)?;
            let length = scan.value()?.len();
            end = scan.at();
            members[at] = Some(end - length..end);
        }
        Some(Outline { metadata, within: start..end, members })
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
            let (outline, top) = types.outline(id, &shown).expect("it is an object");
            assert_eq!(top.at(&["spec", "node"]), Some(&Value::from("a\"<b")));
            assert!(top.at(&["spec", "parts"]).is_none(), "nobody asked for it");
            assert_eq!(types.encode_with(&outline, &shown, &[], &Object::new()), Some(stored), "{metadata}");

            for (fields, changed) in [
                (&["generation", "deletionTimestamp"][..], r#"{"generation":2,"deletionTimestamp":"now"}"#),
                (&["finalizers"], r#"{"finalizers":["c"]}"#),
                (&["finalizers", "generation"], "{}"),
            ] {
                let changed = object(changed);
                let marked = whole.object_mut("metadata");
                fields.iter().for_each(|name| marked.set(name, changed.get(name).cloned()));
                let want = types.encode(id, "T", "v1", &whole);
                let found = types.encode_with(&outline, &shown, fields, &changed);
                assert_eq!(found, Some(want), "{fields:?} of {metadata}");
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
        let text = br#"{"metadata":{"name":"n"},"spec":{}}"#;
        let (without_time, _) = types.outline(id, text).expect("it can be read");
        let marked = types.encode_with(&without_time, text, &[], &Object::new());
        assert!(marked.is_none(), "an encoded object has a creation time");
    }
}
