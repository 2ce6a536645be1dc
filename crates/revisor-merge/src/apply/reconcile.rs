//! Bringing a set of fields up to what its type says today: what has become one value is managed as one.

use revisor_object::{Object, Value};
use revisor_schema::{Field, Shape, StructId, Types};

use super::field_set::{FieldSet, SELF};
use super::granularity::{Granularity, granularity};

impl FieldSet {
    /// Makes of every place that the type `id` sees as one, and that has places below it, the place alone. A type that
    /// sees as many what was one before changes nothing.
    pub(crate) fn reconcile(&mut self, types: &Types, id: StructId) {
        structure(types, id, self.tree_mut());
    }
}

fn structure(types: &Types, id: StructId, set: &mut Object) {
    let of = types.get(id);
    // Where the schema says nothing at all, what was recorded stays as it was.
    if of.fields.is_empty() && of.is_open {
        return;
    }
    for (step, below) in set.iter_mut() {
        // Most places have nothing below them, and then nobody needs to know their fields.
        let (Some(name), Some(below)) = (step.strip_prefix("f:"), inner(below)) else { continue };
        if let Some(field) = of.member(name) {
            place(types, field, below);
        }
    }
}

fn place(types: &Types, field: &Field, below: &mut Object) {
    match (granularity(types, field), &field.shape) {
        (Granularity::One, Shape::List(_) | Shape::Map(_) | Shape::Struct(_) | Shape::Any | Shape::Raw) => {
            *below = Object::new();
        }
        (Granularity::One, _) => {}
        (Granularity::Many, shape) => contents(types, shape, below),
    }
}

fn contents(types: &Types, shape: &Shape, set: &mut Object) {
    match shape {
        Shape::Struct(id) => structure(types, *id, set),
        Shape::List(element) | Shape::Map(element) => {
            for (_, below) in set.iter_mut().filter(|(step, _)| *step != SELF) {
                let Some(below) = inner(below) else { continue };
                match **element {
                    Shape::Struct(id) if types.get(id).is_atomic => *below = Object::new(),
                    Shape::Struct(id) => structure(types, id, below),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

/// What is below a place, if anything is.
fn inner(below: &mut Value) -> Option<&mut Object> {
    below.as_object_mut().filter(|below| !below.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use revisor_object::parse_json;

    const TABLE: &str = "type,field,shape,presence,number,merge,list,required,default
T,spec,S,always,,
S,args,list:string,nonzero,,
S,names,list:string,nonzero,,,set
S,ports,list:P,nonzero,,,map:port
S,refs,list:R,nonzero,,,map:name
S,ref,R,given,,
S,labels,map:string,nonzero,,,atomic
P,port,int32,always,,
P,args,list:string,nonzero,,
R,*,,,,,atomic,,
R,name,string,nonzero,,
";

    #[test]
    fn what_is_one_value_now_is_managed_as_one() {
        let types = Types::parse(TABLE).expect("a good table");
        let id = types.id("T").expect("is there");
        for (before, after) in [
            (r#"{"f:spec":{"f:args":{"v:\"a\"":{}}}}"#, r#"{"f:spec":{"f:args":{}}}"#),
            (r#"{"f:spec":{"f:args":{".":{},"v:\"a\"":{}}}}"#, r#"{"f:spec":{"f:args":{}}}"#),
            (r#"{"f:spec":{"f:names":{"v:\"a\"":{}}}}"#, r#"{"f:spec":{"f:names":{"v:\"a\"":{}}}}"#),
            (r#"{"f:spec":{"f:ref":{"f:name":{}}}}"#, r#"{"f:spec":{"f:ref":{}}}"#),
            (r#"{"f:spec":{"f:labels":{"f:a":{}}}}"#, r#"{"f:spec":{"f:labels":{}}}"#),
            (
                r#"{"f:spec":{"f:ports":{"k:{\"port\":1}":{".":{},"f:args":{"v:1":{}}}}}}"#,
                r#"{"f:spec":{"f:ports":{"k:{\"port\":1}":{".":{},"f:args":{}}}}}"#,
            ),
            (
                r#"{"f:spec":{"f:refs":{"k:{\"name\":\"a\"}":{"f:name":{}}}}}"#,
                r#"{"f:spec":{"f:refs":{"k:{\"name\":\"a\"}":{}}}}"#,
            ),
            // What the type does not know is left alone.
            (r#"{"f:spec":{"f:gone":{"f:x":{}},"v:1":{}}}"#, r#"{"f:spec":{"f:gone":{"f:x":{}},"v:1":{}}}"#),
        ] {
            let mut set = FieldSet::read(&parse_json(before.as_bytes()).expect("is JSON").value).expect("is a set");
            set.reconcile(&types, id);
            assert_eq!(set.into_value().to_json(), after, "{before}");
        }
    }
}
