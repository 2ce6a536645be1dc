//! Patches and configurations, by the expressions that make them.

use revisor_schema::Types;

use super::*;
use crate::fixture::{Write, environment, object};
use crate::merge_configuration;

fn patched(expression: &str, sort: &str) -> Result<String, String> {
    let member = if sort == "JSONPatch" { "jsonPatch" } else { "applyConfiguration" };
    let spec = format!(
        r#"{{"spec":{{"variables":[{{"name":"name","expression":"object.metadata.name"}}],
            "mutations":[{{"patchType":"{sort}","{member}":{{"expression":"{expression}"}}}}]}}}}"#
    );
    let policy = MutatingPolicy::compile(&environment(), "p", &object(&spec));
    let text = r#"{"metadata":{"name":"a","annotations":{}},"data":{"k":"v"},"n":1}"#;
    let write = Write::creating(text);
    let (patch, _) = write.look(|inputs| policy.patch(&policy.mutations()[0], inputs));
    match patch.map_err(|error| error.message)? {
        Patch::Configuration(configuration) => Ok(Value::Object(configuration).to_json()),
        Patch::Json(patch) => {
            let mut value = Value::Object(object(text));
            patch.apply(&mut value).map_err(|error| error.to_string())?;
            Ok(value.to_json())
        }
    }
}

#[test]
fn patches_are_what_expressions_make() {
    for (expression, want) in [
        (
            "[JSONPatch{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('x.y/z'), value: variables.name}]",
            Ok(r#"{"metadata":{"name":"a","annotations":{"x.y/z":"a"}},"data":{"k":"v"},"n":1}"#),
        ),
        (
            "[JSONPatch{op: 'test', path: '/n', value: 1}, JSONPatch{op: 'remove', path: '/data'}]",
            Ok(r#"{"metadata":{"name":"a","annotations":{}},"n":1}"#),
        ),
        (
            "[JSONPatch{op: 'move', from: '/data', path: '/n'}]",
            Ok(r#"{"metadata":{"name":"a","annotations":{}},"n":{"k":"v"}}"#),
        ),
        (
            "[JSONPatch{op: 'replace', path: '/data', value: Object.data{x: Object.data.x{y: [1, 2]}}}]",
            Ok(r#"{"metadata":{"name":"a","annotations":{}},"data":{"x":{"y":[1,2]}},"n":1}"#),
        ),
        (
            "[JSONPatch{op: 'replace', path: '/n', value: 9007199254740993}]",
            Ok(r#"{"metadata":{"name":"a","annotations":{}},"data":{"k":"v"},"n":"9007199254740993"}"#),
        ),
        (
            "[JSONPatch{op: 'replace', path: '/n', value: [duration('90m')]}]",
            Ok(r#"{"metadata":{"name":"a","annotations":{}},"data":{"k":"v"},"n":["5400s"]}"#),
        ),
        (
            "[JSONPatch{op: 'replace', path: '/n', value: quantity('1')}]",
            Err(
                "JSONPath valueExpression evaluated to a type that could not marshal to JSON: type conversion error from \
                 'Quantity' to '*structpb.Value'",
            ),
        ),
        (
            "object.n == 1 ? [JSONPatch{op: 'replace', path: '/n', value: 2.0}] : []",
            Ok(r#"{"metadata":{"name":"a","annotations":{}},"data":{"k":"v"},"n":2}"#),
        ),
        (
            "[JSONPatch{op: 'add', path: '/data', value: Object.data{x: Object.wrong{}}}]",
            Err(
                "type mismatch: unexpected type name \"Object.wrong\", expected \"Object.data.x\", which matches field \
                 name path from root Object type",
            ),
        ),
        (
            "[JSONPatch{op: 'add', path: '/n', value: object.gone}]",
            Err(
                "expression '[JSONPatch{op: 'add', path: '/n', value: object.gone}]' resulted in error: no such key: gone",
            ),
        ),
        ("[1]", Err("must evaluate to list(JSONPatch) but got list(int)")),
    ] {
        let want = want.map(|text| Value::Object(object(text)).to_json()).map_err(str::to_owned);
        assert_eq!(patched(expression, "JSONPatch"), want, "{expression}");
    }
}

#[test]
fn configurations_are_what_expressions_write_out() {
    for (expression, want) in [
        (
            "Object{metadata: Object.metadata{labels: {'x': variables.name, ?'y': optional.none()}}}",
            Ok(r#"{"metadata":{"labels":{"x":"a"}}}"#),
        ),
        (
            "Object{kind: 'Other', spec: Object.spec{list: [Object.spec.list{n: 1u}], ?gone: object.?gone}}",
            Ok(r#"{"spec":{"list":[{"n":1}]}}"#),
        ),
        (
            "Object{spec: Object.status{}}",
            Err(
                "type mismatch: unexpected type name \"Object.status\", expected \"Object.spec\", which matches field name \
                 path from root Object type",
            ),
        ),
        ("Object{data: {1: 'x'}}", Err("invalid return type: *dynamic.ObjectVal")),
        ("Object.spec{}", Err("must evaluate to Object but got Object.spec")),
    ] {
        let want = want.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(patched(expression, "ApplyConfiguration"), want, "{expression}");
    }
}

#[test]
fn configurations_are_laid_over_objects_of_their_type() {
    let types = Types::parse(
        "type,field,shape,presence,number,merge,list\nThing,metadata,Meta,always,1,,\nThing,data,map:string,nonzero,2,,\n\
         Thing,one,list:string,nonzero,3,,atomic\nThing,many,list:Part,nonzero,4,,map:name\nMeta,labels,map:string,nonzero,1,,\n\
         Part,name,string,always,1,,\nPart,size,int32,nonzero,2,,\nPart,whole,map:string,nonzero,3,,atomic\n",
    )
    .expect("is a table");
    let id = types.id("Thing").expect("is in the table");
    let there = r#"{"data":{"a":"1"},"many":[{"name":"x","size":1}],"one":["a"]}"#;
    let refused = |why: &str| Err(format!("error applying patch: {why}"));
    for (configuration, want) in [
        (r#"{"data":{"b":"2"}}"#, Ok(r#"{"data":{"a":"1","b":"2"},"many":[{"name":"x","size":1}],"one":["a"]}"#.to_owned())),
        (
            r#"{"many":[{"name":"x","size":2},{"name":"y"}],"metadata":{"labels":{"l":"m"}}}"#,
            Ok(r#"{"data":{"a":"1"},"many":[{"name":"x","size":2},{"name":"y"}],"metadata":{"labels":{"l":"m"}},"one":["a"]}"#
                .to_owned()),
        ),
        (
            r#"{"one":["b"],"many":[{"name":"x","whole":{}}]}"#,
            refused("invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .many[0].whole, .one"),
        ),
        (
            r#"{"data":null}"#,
            refused("failed to convert patch object to typed object: .data: expected map, got &{NULL_VALUE}"),
        ),
        (
            r#"{"nobody":1}"#,
            refused("failed to convert patch object to typed object: .nobody: field not declared in schema"),
        ),
    ] {
        let mut thing = object(there);
        let merged = merge_configuration(&types, id, &mut thing, &object(configuration));
        assert_eq!(merged.map(|()| Value::Object(thing).to_json()), want, "{configuration}");
    }
}
