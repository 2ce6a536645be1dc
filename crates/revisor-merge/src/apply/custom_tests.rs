//! What who manages of custom objects, whose types are made of a schema.

use revisor_object::{Object, Value, parse_json};
use revisor_schema::{CustomSchema, MetadataType, StructId, Structural, Types};

use super::compare::Comparison;
use super::field_set::FieldSet;
use super::managed_fields::{ManagedFields, Manager, Operation};
use super::server_side_apply::{Application, server_side_apply};
use super::versions::OneVersion;

const METADATA: &str = "type,field,shape,presence,number,merge,list,required,default
meta.v1.ObjectMeta,name,string,nonzero,1,
meta.v1.ObjectMeta,labels,map:string,nonzero,11,
";

const SCHEMA: &str = r#"{"type":"object","properties":{"spec":{"type":"object","properties":{
    "n":{"type":"integer"},
    "s":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
    "k":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["a"],
         "items":{"type":"object","properties":{"a":{"type":"string","default":"x"},"b":{"type":"integer"}}}},
    "m":{"type":"object","additionalProperties":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}},
    "mm":{"type":"object","additionalProperties":{"type":"object","additionalProperties":{"type":"string"}}},
    "at":{"type":"object","x-kubernetes-map-type":"atomic","properties":{"a":{"type":"string"},"b":{"type":"string"}}},
    "open":{"x-kubernetes-preserve-unknown-fields":true,"type":"object",
            "properties":{"inner":{"type":"object","properties":{"b":{"type":"string"}}}}},
    "any":{"x-kubernetes-preserve-unknown-fields":true},
    "ios":{"x-kubernetes-int-or-string":true},
    "l":{"type":"array","items":{"type":"object","properties":{"q":{"type":"integer"}}}},
    "e":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}}}}"#;

fn object(text: &str) -> Object {
    match parse_json(text.as_bytes()).expect("is JSON").value {
        Value::Object(object) => object,
        other => panic!("{other:?} is no object"),
    }
}

fn types() -> (Types, StructId) {
    let types = Types::parse(METADATA).expect("a good table");
    let metadata = MetadataType { types: &types, id: types.id("meta.v1.ObjectMeta").expect("is there") };
    CustomSchema::compile(Structural::read(&object(SCHEMA)), metadata, 36).types("T", metadata)
}

/// Reads as the same set would, whatever the order of its members.
fn shown(set: FieldSet) -> String {
    set.into_value().to_json()
}

fn sorted(text: &str) -> String {
    Value::Object(object(text)).to_json()
}

#[test]
fn who_applies_manages_what_is_named() {
    let (types, id) = types();
    let config = object(
        r#"{"metadata":{"name":"one","labels":{"l":"1"}},"spec":{"n":1,"s":["a","b"],"k":[{"b":1},{"a":"y"}],
            "m":{"p":["a"],"q":[]},"mm":{"z":{"y":"x"},"e":{}},"at":{"a":"1"},
            "open":{"inner":{"b":"1","c":{"d":1}},"u":{"v":[1,2],"w":{}}},"any":{"x":1,"y":[{"z":1}]},"ios":"a",
            "l":[{"q":3}],"e":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","labels":{"a":"b"}},"spec":{"f":1}}}}"#,
    );
    let want = r#"{"f:metadata":{"f:labels":{"f:l":{}},"f:name":{}},"f:spec":{"f:any":{"f:x":{},"f:y":{}},"f:at":{},
        "f:e":{"f:apiVersion":{},"f:kind":{},"f:metadata":{"f:labels":{"f:a":{}},"f:name":{}},"f:spec":{".":{},"f:f":{}}},
        "f:ios":{},"f:k":{"k:{\"a\":\"x\"}":{".":{},"f:b":{}},"k:{\"a\":\"y\"}":{".":{},"f:a":{}}},"f:l":{},
        "f:m":{"f:p":{".":{},"v:\"a\"":{}},"f:q":{}},"f:mm":{"f:e":{},"f:z":{".":{},"f:y":{}}},"f:n":{},
        "f:open":{"f:inner":{"f:b":{},"f:c":{".":{},"f:d":{}}},"f:u":{".":{},"f:v":{},"f:w":{}}},
        "f:s":{"v:\"a\"":{},"v:\"b\"":{}}}}"#;
    assert_eq!(shown(FieldSet::filled(&types, id, &config)), sorted(want));
}

#[test]
fn who_creates_manages_what_is_new() {
    let (types, id) = types();
    let created = object(
        r#"{"metadata":{"labels":{"l":"1"}},"spec":{"n":1,"s":["a","b"],"k":[{"a":"x","b":1},{"a":"y"}],
            "m":{"p":["a"],"q":[]},"mm":{"z":{"y":"x"},"e":{}},"at":{"a":"1"},
            "open":{"inner":{"b":"1"},"u":{"v":[1,2],"w":{}}},"any":{"x":1,"y":[{"z":1}]},"ios":"a","l":[{"q":3}],
            "e":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","labels":{"a":"b"}},"spec":{"f":1}}}}"#,
    );
    let want = r#"{"f:metadata":{"f:labels":{".":{},"f:l":{}}},"f:spec":{".":{},"f:any":{".":{},"f:x":{},"f:y":{}},
        "f:at":{},"f:e":{".":{},"f:apiVersion":{},"f:kind":{},
            "f:metadata":{".":{},"f:labels":{".":{},"f:a":{}},"f:name":{}},"f:spec":{".":{},"f:f":{}}},"f:ios":{},
        "f:k":{".":{},"k:{\"a\":\"x\"}":{".":{},"f:a":{},"f:b":{}},"k:{\"a\":\"y\"}":{".":{},"f:a":{}}},"f:l":{},
        "f:m":{".":{},"f:p":{".":{},"v:\"a\"":{}},"f:q":{}},"f:mm":{".":{},"f:e":{},"f:z":{".":{},"f:y":{}}},"f:n":{},
        "f:open":{".":{},"f:inner":{".":{},"f:b":{}},"f:u":{".":{},"f:v":{},"f:w":{}}},
        "f:s":{".":{},"v:\"a\"":{},"v:\"b\"":{}}}}"#;
    let found = Comparison::of(&types, id, &Object::new(), &created);
    assert_eq!(shown(found.added), sorted(want));
    assert!(found.modified.is_empty() && found.removed.is_empty());
}

#[test]
fn values_may_become_something_else_where_the_schema_says_nothing() {
    let (types, id) = types();
    let (old, new) = (object(r#"{"spec":{"any":{"x":1}}}"#), object(r#"{"spec":{"any":"text"}}"#));
    let found = Comparison::of(&types, id, &old, &new);
    assert_eq!(shown(found.modified), r#"{"f:spec":{"f:any":{}}}"#);
    assert_eq!(shown(found.removed), r#"{"f:spec":{"f:any":{"f:x":{}}}}"#);
}

#[test]
fn what_is_applied_no_longer_goes() {
    let (types, id) = types();
    let manager = Manager {
        name: "me".to_owned(),
        operation: Operation::Apply,
        api_version: "example.com/v1".to_owned(),
        subresource: String::new(),
    };
    let apply = |live: &Object, managed: ManagedFields, config: &str| {
        let versions = OneVersion { version: "example.com/v1", types: &types, id };
        let (config, allowed) = (object(config), FieldSet::new());
        let application = Application { config: &config, manager: &manager, force: false, allowed: &allowed, now: "t" };
        server_side_apply(&versions, live, managed, application, |set| set).expect("nobody else manages it")
    };
    let first = r#"{"spec":{"open":{"u":{"v":1,"w":2},"t":[1]},"mm":{"z":{"y":"x","q":"r"}},"m":{"p":["a","b"]}}}"#;
    let one = apply(&Object::new(), ManagedFields::default(), first);
    let two =
        apply(&one.object, one.managed, r#"{"spec":{"open":{"u":{"w":3}},"mm":{"z":{"y":"x"}},"m":{"p":["b"]}}}"#);
    assert_eq!(
        Value::Object(two.object).to_json(),
        r#"{"spec":{"m":{"p":["b"]},"mm":{"z":{"y":"x"}},"open":{"u":{"w":3}}}}"#
    );
}
