//! [`additions`]: which places a new object adds, where there is no old one to compare it with, written as the set of its
//! manager is stored. It comes to what [`Comparison`](super::compare::Comparison) finds beside an empty object, in a walk
//! along one object that keeps nothing.

use compact_str::CompactString;
use revisor_object::{Object, Value, push_kept_text};
use revisor_schema::{Field, Member, Shape, StructId, Types};

use super::compare::{by_step, has_parts, is_no_object};
use super::field_set::SELF;
use super::granularity::{Granularity, granularity};
use super::item_step::member_step;

/// Room for the places of a usual object.
const USUAL_BYTES: usize = 2048;

/// Places that are left out, as far as they lie below the place that is looked at.
#[derive(Debug, Clone, Default)]
pub(super) struct LeftOut<'p> {
    /// Those that are left out alone.
    pub(super) places: Vec<&'p [&'p str]>,
    /// Those that are left out with all below them.
    pub(super) subtrees: Vec<&'p [&'p str]>,
}

impl<'p> LeftOut<'p> {
    /// Those at or below a step.
    fn within(&self, step: &str) -> LeftOut<'p> {
        let below = |places: &[&'p [&'p str]]| {
            let begun = places.iter().filter_map(|place| place.split_first());
            begun.filter(|(first, _)| **first == step).map(|(_, rest)| rest).collect()
        };
        LeftOut { places: below(&self.places), subtrees: below(&self.subtrees) }
    }
}

/// The places that `new` has and an empty object of type `id` has not, as the text of a set. `None` where more than that
/// is to be said: the write has to be compared, and its places have to be read, as others are.
pub(super) fn additions(types: &Types, id: StructId, new: &Object, left_out: &LeftOut<'_>) -> Option<String> {
    let mut walk = Walk { types, out: Vec::with_capacity(USUAL_BYTES) };
    walk.structure(id, true, Some(new), false, left_out)?;
    String::from_utf8(walk.out).ok()
}

struct Walk<'t> {
    types: &'t Types,
    /// What was written of the set.
    out: Vec<u8>,
}

impl Walk<'_> {
    /// The node of an object. There `was` an empty one before, or none; the place itself may be added. Answers whether there
    /// is anything below it.
    fn structure(
        &mut self,
        id: StructId,
        was: bool,
        new: Option<&Object>,
        is_added: bool,
        left_out: &LeftOut<'_>,
    ) -> Option<bool> {
        let of = self.types.get(id);
        let start = self.open(is_added);
        for Member { name, field, value } in of.fields.members(new) {
            let Some(member) = field.or(of.others.as_deref()) else { continue };
            let lacks_one = was || (new.is_some() && value.is_none());
            let zero = if lacks_one { member.written_zero() } else { None };
            let old = zero.as_ref().filter(|_| was);
            let value = value.or(zero.as_ref().filter(|_| new.is_some()));
            if old != value {
                // What is the same in an empty object is passed over, and nothing else can be gone.
                match field {
                    Some(field) => self.field(&field.step, member, old, value?, left_out)?,
                    None => self.field(&member_step(name), member, old, value?, left_out)?,
                }
            }
        }
        Some(self.close(start, is_added))
    }

    fn field(
        &mut self,
        step: &CompactString,
        field: &Field,
        old: Option<&Value>,
        new: &Value,
        left_out: &LeftOut<'_>,
    ) -> Option<()> {
        let left_out = left_out.within(step);
        if left_out.subtrees.iter().any(|place| place.is_empty()) {
            return Some(());
        }
        let is_added = old.is_none() && !left_out.places.iter().any(|place| place.is_empty());
        let start = self.out.len();
        self.step(step)?;
        let has_below = self.contents(field, old, new, is_added, &left_out)?;
        if !is_added && !has_below {
            self.out.truncate(start);
        }
        Some(())
    }

    /// The node of a field. Answers whether there is anything below it.
    fn contents(
        &mut self,
        field: &Field,
        old: Option<&Value>,
        new: &Value,
        is_added: bool,
        left_out: &LeftOut<'_>,
    ) -> Option<bool> {
        let has_parts = has_parts(self.types, &field.shape, old) || has_parts(self.types, &field.shape, Some(new));
        let is_one = granularity(self.types, field) == Granularity::One || !has_parts;
        match &field.shape {
            Shape::Struct(id) if !is_one => {
                let may_be_other = self.types.get(*id).is_open;
                if may_be_other && (is_no_object(old) || is_no_object(Some(new))) {
                    return None;
                }
                self.structure(*id, old.and_then(Value::as_object).is_some(), new.as_object(), is_added, left_out)
            }
            Shape::Map(element) if !is_one => {
                let start = self.open(is_added);
                for (name, value) in new.as_object().into_iter().flat_map(Object::iter) {
                    let step = member_step(name);
                    let left_out = left_out.within(&step);
                    // Places within maps are nobody's only where the whole map is.
                    if !left_out.places.is_empty() || !left_out.subtrees.is_empty() {
                        return None;
                    }
                    self.step(&step)?;
                    self.element(element, value)?;
                }
                Some(self.close(start, is_added))
            }
            Shape::List(element) if !is_one => {
                let items = new.as_array().unwrap_or_default();
                let by_step = by_step(self.types, field, items);
                // Of an element that nothing tells apart from others nothing can be said.
                if by_step.len() < items.len() || by_step.windows(2).any(|pair| pair[0].0 == pair[1].0) {
                    return None;
                }
                let start = self.open(is_added);
                for (step, value) in by_step {
                    self.step(&step)?;
                    self.element(element, value)?;
                }
                Some(self.close(start, is_added))
            }
            // What is written though nobody gave it would be modified.
            _ => old.is_none().then(|| self.leaf()),
        }
    }

    /// The node of an element of a list or map, which is added.
    fn element(&mut self, shape: &Shape, value: &Value) -> Option<bool> {
        match shape {
            Shape::Struct(id) if !self.types.get(*id).is_atomic && has_parts(self.types, shape, Some(value)) => {
                self.structure(*id, false, value.as_object(), true, &LeftOut::default())
            }
            _ => Some(self.leaf()),
        }
    }

    /// Begins a step. Nothing if there are bytes in it that are not of UTF-8.
    fn step(&mut self, step: &str) -> Option<()> {
        if self.out.last() != Some(&b'{') {
            self.out.push(b',');
        }
        let has_stray_bytes = push_kept_text(step, &mut self.out);
        self.out.push(b':');
        (!has_stray_bytes).then_some(())
    }

    /// A node with nothing below it.
    fn leaf(&mut self) -> bool {
        self.out.extend_from_slice(b"{}");
        false
    }

    /// Begins a node; answers where. That the place itself is added stands before all below it.
    fn open(&mut self, is_added: bool) -> usize {
        let start = self.out.len();
        self.out.push(b'{');
        if is_added {
            self.out.push(b'"');
            self.out.extend_from_slice(SELF.as_bytes());
            self.out.extend_from_slice(b"\":{}");
        }
        start
    }

    /// Ends a node; answers whether there is anything below it. If there is not, it need not be said to be there itself.
    fn close(&mut self, start: usize, is_added: bool) -> bool {
        const BARE: usize = 1;
        const ADDED: usize = BARE + SELF.len() + 5;
        if self.out.len() == start + if is_added { ADDED } else { BARE } {
            self.out.truncate(start);
            return self.leaf();
        }
        self.out.push(b'}');
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apply::managed_fields::{ManagedFields, Manager, Operation};
    use crate::apply::versions::{OneVersion, Replacement};
    use revisor_object::parse_json;

    const TABLE: &str = "type,field,shape,presence,number,merge,list,required,default
T,kind,string,nonzero,,
T,metadata,M,always,,
T,spec,S,always,,
T,status,U,always,,
T,data,map:string,nonzero,,
M,name,string,nonzero,,
M,uid,string,nonzero,,
M,labels,map:string,nonzero,,
S,replicas,int32,given,,
S,args,list:string,nonzero,,
S,names,list:string,nonzero,,,set
S,ports,list:P,nonzero,,,map:port+protocol
S,ref,R,given,,
S,box,B,given,,
S,open,list:O,nonzero,,,map:name
P,port,int32,always,,
P,protocol,string,nonzero,,,,,\"TCP\"
P,note,string,nonzero,,
R,*,,,,,atomic,,
R,name,string,nonzero,,
B,size,int32,nonzero,,
B,start,int32,always,,
O,name,string,nonzero,,
U,phase,string,nonzero,,
U,spec,B,given,,
";

    /// The set of who makes an object, in a text. In tests it is also made by a comparison, and has to be the same.
    fn set_of_new(object: &str, not_owned: &[&[&str]]) -> Result<String, String> {
        let types = Types::parse(TABLE).expect("a good table");
        let versions = OneVersion { version: "v1", types: &types, id: types.id("T").expect("is there") };
        let Value::Object(new) = parse_json(object.as_bytes()).expect("is JSON").value else { panic!("an object") };
        let manager = Manager {
            name: "m".to_owned(),
            operation: Operation::Update,
            api_version: "v1".to_owned(),
            subresource: String::new(),
        };
        let write = Replacement { versions: &versions, version: "v1", old: &Object::new(), new: &new };
        let entries = ManagedFields::of_new(&manager, write, "now", not_owned)?.into_value().unwrap_or_default();
        let entry = entries.as_array().and_then(<[Value]>::first).and_then(Value::as_object);
        Ok(entry.and_then(|entry| entry.get("fieldsV1")).map(Value::to_json).unwrap_or_default())
    }

    #[test]
    fn who_makes_an_object_manages_what_it_adds() {
        for (object, want) in [
            ("{}", ""),
            (r#"{"kind":"T","metadata":{"name":"n","uid":"u"},"spec":{},"status":{}}"#, ""),
            (
                r#"{"metadata":{"labels":{"a\"b":"c","a":""}}}"#,
                r#"{"f:metadata":{"f:labels":{".":{},"f:a":{},"f:a\"b":{}}}}"#,
            ),
            (r#"{"metadata":{"labels":{}},"data":{}}"#, r#"{"f:data":{},"f:metadata":{"f:labels":{}}}"#),
            (
                r#"{"spec":{"replicas":0,"args":["x"],"names":["b","a<"],"ref":{"name":"r"},"box":{"size":0},"open":[]}}"#,
                r#"{"f:spec":{"f:args":{},"f:box":{".":{},"f:size":{},"f:start":{}},"f:names":{".":{},"v:\"a\\u003c\"":{},"v:\"b\"":{}},"f:open":{},"f:ref":{},"f:replicas":{}}}"#,
            ),
            (
                r#"{"spec":{"ports":[{"port":2,"protocol":"UDP","note":"n"},{"port":1},{}],"box":{}}}"#,
                r#"{"f:spec":{"f:box":{".":{},"f:start":{}},"f:ports":{".":{},"k:{\"port\":0,\"protocol\":\"TCP\"}":{".":{},"f:port":{}},"k:{\"port\":1,\"protocol\":\"TCP\"}":{".":{},"f:port":{}},"k:{\"port\":2,\"protocol\":\"UDP\"}":{".":{},"f:note":{},"f:port":{},"f:protocol":{}}}}}"#,
            ),
            // Items that cannot be told apart are seen as one.
            (
                r#"{"spec":{"open":[{"name":"a"},{"name":"a"}],"names":["x","x"]}}"#,
                r#"{"f:spec":{"f:names":{".":{},"v:\"x\"":{}},"f:open":{".":{},"k:{\"name\":\"a\"}":{}}}}"#,
            ),
            (
                r#"{"status":{"phase":"p","spec":{"size":1}}}"#,
                r#"{"f:status":{"f:phase":{},"f:spec":{".":{},"f:size":{},"f:start":{}}}}"#,
            ),
        ] {
            assert_eq!(set_of_new(object, &[]).as_deref(), Ok(want), "{object}");
        }
        assert!(set_of_new(r#"{"spec":{"open":[{}]}}"#, &[]).is_err(), "nobody can tell which one it is");
    }

    #[test]
    fn what_the_writer_cannot_fill_is_not_its_own() {
        let object = r#"{"metadata":{"name":"n","labels":{"a":"b"}},"spec":{"box":{"size":1}},"status":{"phase":"p"}}"#;
        for (not_owned, want) in [
            (
                &[&["f:status"][..]][..],
                r#"{"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{"f:box":{".":{},"f:size":{},"f:start":{}}}}"#,
            ),
            (
                &[&["f:status"], &["f:metadata"], &["f:spec", "f:box", "f:size"]],
                r#"{"f:spec":{"f:box":{".":{},"f:start":{}}}}"#,
            ),
            (
                &[&["f:status", "f:phase"], &["f:metadata", "f:labels", "f:a"], &["f:spec", "f:box"]],
                r#"{"f:metadata":{"f:labels":{}}}"#,
            ),
        ] {
            assert_eq!(set_of_new(object, not_owned).as_deref(), Ok(want), "{not_owned:?}");
        }
    }
}
