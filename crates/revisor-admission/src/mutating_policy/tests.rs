use super::*;
use crate::fixture::{Write, environment, object};

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
        ("Object.spec{}", Err("must evaluate to Object but got Object.spec")),
    ] {
        let want = want.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(patched(expression, "ApplyConfiguration"), want, "{expression}");
    }
}
