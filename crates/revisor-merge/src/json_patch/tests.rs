//! RFC 6902, and where the original differs from it.

use proptest::prelude::*;
use revisor_object::{parse_json, parse_stored};

use super::*;
use crate::arbitrary_value::{any_name, any_object, any_value};
use crate::patch_meter::{MAX_COPIED_BYTES, MAX_DEPTH, MAX_WORK};

fn json(text: &str) -> Value {
    parse_json(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}")).value
}

fn patch(text: &str) -> JsonPatch {
    JsonPatch::parse(json(text)).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn patched(target: &str, patch: &str) -> Result<String, PatchError> {
    let mut target = json(target);
    JsonPatch::parse(json(patch))?.apply(&mut target)?;
    Ok(target.to_json())
}

#[test]
fn applies_the_examples_of_the_rfc() {
    for (name, target, patch, want) in [
        (
            "A.1 adding an object member",
            r#"{"foo":"bar"}"#,
            r#"[{"op":"add","path":"/baz","value":"qux"}]"#,
            r#"{"baz":"qux","foo":"bar"}"#,
        ),
        (
            "A.2 adding an array element",
            r#"{"foo":["bar","baz"]}"#,
            r#"[{"op":"add","path":"/foo/1","value":"qux"}]"#,
            r#"{"foo":["bar","qux","baz"]}"#,
        ),
        (
            "A.3 removing an object member",
            r#"{"baz":"qux","foo":"bar"}"#,
            r#"[{"op":"remove","path":"/baz"}]"#,
            r#"{"foo":"bar"}"#,
        ),
        (
            "A.4 removing an array element",
            r#"{"foo":["bar","qux","baz"]}"#,
            r#"[{"op":"remove","path":"/foo/1"}]"#,
            r#"{"foo":["bar","baz"]}"#,
        ),
        (
            "A.5 replacing a value",
            r#"{"baz":"qux","foo":"bar"}"#,
            r#"[{"op":"replace","path":"/baz","value":"boo"}]"#,
            r#"{"baz":"boo","foo":"bar"}"#,
        ),
        (
            "A.6 moving a value",
            r#"{"foo":{"bar":"baz","waldo":"fred"},"qux":{"corge":"grault"}}"#,
            r#"[{"op":"move","from":"/foo/waldo","path":"/qux/thud"}]"#,
            r#"{"foo":{"bar":"baz"},"qux":{"corge":"grault","thud":"fred"}}"#,
        ),
        (
            "A.7 moving an array element",
            r#"{"foo":["all","grass","cows","eat"]}"#,
            r#"[{"op":"move","from":"/foo/1","path":"/foo/3"}]"#,
            r#"{"foo":["all","cows","eat","grass"]}"#,
        ),
        (
            "A.8 testing a value: success",
            r#"{"baz":"qux","foo":["a",2,"c"]}"#,
            r#"[{"op":"test","path":"/baz","value":"qux"},{"op":"test","path":"/foo/1","value":2}]"#,
            r#"{"baz":"qux","foo":["a",2,"c"]}"#,
        ),
        (
            "A.10 adding a nested member object",
            r#"{"foo":"bar"}"#,
            r#"[{"op":"add","path":"/child","value":{"grandchild":{}}}]"#,
            r#"{"child":{"grandchild":{}},"foo":"bar"}"#,
        ),
        (
            "A.11 ignoring unrecognized elements",
            r#"{"foo":"bar"}"#,
            r#"[{"op":"add","path":"/baz","value":"qux","xyz":123}]"#,
            r#"{"baz":"qux","foo":"bar"}"#,
        ),
        (
            "A.14 escape ordering",
            r#"{"/":9,"~1":10}"#,
            r#"[{"op":"test","path":"/~01","value":10}]"#,
            r#"{"/":9,"~1":10}"#,
        ),
        (
            "A.16 adding an array value",
            r#"{"foo":["bar"]}"#,
            r#"[{"op":"add","path":"/foo/-","value":["abc","def"]}]"#,
            r#"{"foo":["bar",["abc","def"]]}"#,
        ),
    ] {
        assert_eq!(patched(target, patch).as_deref(), Ok(want), "{name}");
    }
}

#[test]
fn refuses_the_bad_examples_of_the_rfc() {
    let failed = |path: &str| PatchError::TestFailed { path: path.to_owned() };
    let refused = |why: &str| PatchError::NotApplicable(why.to_owned());
    for (name, target, patch, want) in [
        (
            "A.9 testing a value: error",
            r#"{"baz":"qux"}"#,
            r#"[{"op":"test","path":"/baz","value":"bar"}]"#,
            failed("/baz"),
        ),
        (
            "A.12 adding to a nonexistent target",
            r#"{"foo":"bar"}"#,
            r#"[{"op":"add","path":"/baz/bat","value":"qux"}]"#,
            refused("add operation does not apply: doc is missing path: \"/baz/bat\": missing value"),
        ),
        (
            "A.13 invalid JSON patch document: the last of two operations counts",
            r#"{"foo":"bar"}"#,
            r#"[{"op":"add","path":"/baz","value":"qux","op":"remove"}]"#,
            refused("error in remove for path: '/baz': Unable to remove nonexistent key: baz: missing value"),
        ),
        (
            "A.15 comparing strings and numbers",
            r#"{"/":9,"~1":10}"#,
            r#"[{"op":"test","path":"/~01","value":"10"}]"#,
            failed("/~01"),
        ),
    ] {
        assert_eq!(patched(target, patch), Err(want), "{name}");
    }
}

const TARGET: &str = r#"{"a":[1,2,3],"o":{"n":null,"x":{}},"s":"t"}"#;

#[test]
fn takes_what_kubernetes_takes() {
    for (patch, want) in [
        ("null", TARGET),
        ("[]", TARGET),
        (r#"[{"op":"add","path":"/s","value":9}]"#, r#"{"a":[1,2,3],"o":{"n":null,"x":{}},"s":9}"#),
        (r#"[{"op":"add","path":"ignored/s","value":9}]"#, r#"{"a":[1,2,3],"o":{"n":null,"x":{}},"s":9}"#),
        (r#"[{"op":"add","path":"/s"}]"#, r#"{"a":[1,2,3],"o":{"n":null,"x":{}},"s":null}"#),
        (r#"[{"op":"add","path":"/","value":9}]"#, r#"{"":9,"a":[1,2,3],"o":{"n":null,"x":{}},"s":"t"}"#),
        (r#"[{"op":"add","path":"/a/-1","value":9}]"#, r#"{"a":[1,2,3,9],"o":{"n":null,"x":{}},"s":"t"}"#),
        (r#"[{"op":"add","path":"/a/-4","value":9}]"#, r#"{"a":[9,1,2,3],"o":{"n":null,"x":{}},"s":"t"}"#),
        (r#"[{"op":"add","path":"/a/3","value":9}]"#, r#"{"a":[1,2,3,9],"o":{"n":null,"x":{}},"s":"t"}"#),
        (r#"[{"op":"add","path":"/a/+1","value":9}]"#, r#"{"a":[1,9,2,3],"o":{"n":null,"x":{}},"s":"t"}"#),
        (r#"[{"op":"remove","path":"/a/-1"}]"#, r#"{"a":[1,2],"o":{"n":null,"x":{}},"s":"t"}"#),
        (r#"[{"op":"remove","path":"/o/n"}]"#, r#"{"a":[1,2,3],"o":{"x":{}},"s":"t"}"#),
        (r#"[{"op":"replace","path":"/a/-1","value":9}]"#, r#"{"a":[1,2,9],"o":{"n":null,"x":{}},"s":"t"}"#),
        (r#"[{"op":"replace","path":"/o/new","value":9}]"#, r#"{"a":[1,2,3],"o":{"n":null,"new":9,"x":{}},"s":"t"}"#),
        (r#"[{"op":"replace","path":"","value":{"b":1}}]"#, r#"{"b":1}"#),
        (r#"[{"op":"replace","path":"","value":[1]},{"op":"add","path":"/0","value":0}]"#, "[0,1]"),
        (r#"[{"op":"copy","from":"/a","path":"/a/0"}]"#, r#"{"a":[[1,2,3],1,2,3],"o":{"n":null,"x":{}},"s":"t"}"#),
        (r#"[{"op":"copy","from":"/none","path":"/s"}]"#, r#"{"a":[1,2,3],"o":{"n":null,"x":{}},"s":null}"#),
        (r#"[{"op":"move","from":"/o/n","path":"/o/m"}]"#, r#"{"a":[1,2,3],"o":{"m":null,"x":{}},"s":"t"}"#),
        (r#"[{"op":"move","from":"/s","path":"/s"}]"#, TARGET),
        (r#"[{"op":"test","path":"/none","value":null}]"#, TARGET),
        (r#"[{"op":"test","path":"/none"}]"#, TARGET),
        (r#"[{"op":"test","path":"/o/n","value":null}]"#, TARGET),
        (r#"[{"op":"test","path":"/o","value":{"x":{},"n":null}}]"#, TARGET),
        (r#"[{"op":"test","path":"","value":{"s":"t","o":{"x":{},"n":null},"a":[1,2,3]}}]"#, TARGET),
    ] {
        assert_eq!(patched(TARGET, patch).as_deref(), Ok(want), "{patch}");
    }
}

#[test]
fn refuses_what_does_not_fit() {
    for patch in [
        "[null]",
        "[{}]",
        r#"[{"op":null,"path":"/s"}]"#,
        r#"[{"op":"Add","path":"/s","value":1}]"#,
        r#"[{"Op":"add","path":"/s","value":1}]"#,
        r#"[{"op":"add","value":1}]"#,
        r#"[{"op":"add","path":null,"value":1}]"#,
        r#"[{"op":"move","path":"/s"}]"#,
        r#"[{"op":"copy","from":"/s"}]"#,
        r#"[{"op":"add","path":"","value":{}}]"#,
        r#"[{"op":"add","path":"s","value":1}]"#,
        r#"[{"op":"add","path":"/s/x","value":1}]"#,
        r#"[{"op":"add","path":"/o/n/x","value":1}]"#,
        r#"[{"op":"add","path":"/none/x","value":1}]"#,
        r#"[{"op":"add","path":"/a/4","value":1}]"#,
        r#"[{"op":"add","path":"/a/-5","value":1}]"#,
        r#"[{"op":"add","path":"/a/x","value":1}]"#,
        r#"[{"op":"add","path":"/a/-/x","value":1}]"#,
        r#"[{"op":"remove","path":""}]"#,
        r#"[{"op":"remove","path":"/none"}]"#,
        r#"[{"op":"remove","path":"/a/3"}]"#,
        r#"[{"op":"remove","path":"/a/-"}]"#,
        r#"[{"op":"replace","path":"/none/x","value":1}]"#,
        r#"[{"op":"replace","path":"/a/3","value":1}]"#,
        r#"[{"op":"replace","path":"/a/-","value":1}]"#,
        r#"[{"op":"replace","path":"","value":"text"}]"#,
        r#"[{"op":"replace","path":""}]"#,
        r#"[{"op":"move","from":"/none","path":"/s"}]"#,
        r#"[{"op":"move","from":"","path":"/s"}]"#,
        r#"[{"op":"move","from":"/s","path":""}]"#,
        r#"[{"op":"move","from":"/o","path":"/o/x/y"}]"#,
        r#"[{"op":"move","from":"/a/0","path":"/a/3"}]"#,
        r#"[{"op":"copy","from":"","path":"/s"}]"#,
        r#"[{"op":"copy","from":"/a/3","path":"/s"}]"#,
        r#"[{"op":"copy","from":"/s","path":"/a/4"}]"#,
        r#"[{"op":"test","path":"/a/3","value":null}]"#,
        r#"[{"op":"test","path":"/none/x","value":null}]"#,
    ] {
        let error = patched(TARGET, patch).expect_err(patch);
        assert!(matches!(error, PatchError::NotApplicable(_)), "{patch}: {error}");
        assert_eq!(error.client_message(), "the server rejected our request due to an error in our request");
    }
}

#[test]
fn tests_compare_type_and_value() {
    for (path, value) in [
        ("/none", "1"),
        ("/o/n", "{}"),
        ("/o/x", "null"),
        ("/o/x", "[]"),
        ("/a/0", "1.0"),
        ("/a/0", r#""1""#),
        ("/a", "[1,2]"),
        ("/a", "[2,1,3]"),
        ("/o", r#"{"x":{}}"#),
        ("", "null"),
        ("", "{}"),
    ] {
        let patch = format!(r#"[{{"op":"test","path":"{path}","value":{value}}}]"#);
        assert_eq!(patched(TARGET, &patch), Err(PatchError::TestFailed { path: path.to_owned() }), "{patch}");
    }
}

#[test]
fn wrong_types_are_malformed() {
    for (patch, want) in [
        ("{}", "object into Go value of type []handlers.jsonPatchOp"),
        ("7", "number into Go value of type []handlers.jsonPatchOp"),
        (r#"["x"]"#, "string into Go value of type handlers.jsonPatchOp"),
        ("[[1]]", "array into Go value of type handlers.jsonPatchOp"),
        (r#"[{"op":1}]"#, "number into Go struct field jsonPatchOp.op of type string"),
        (r#"[{"op":"add","path":["x"]}]"#, "array into Go struct field jsonPatchOp.path of type string"),
        (r#"[{"op":"add","path":"","from":true}]"#, "bool into Go struct field jsonPatchOp.from of type string"),
        (r#"[{"op":"unknown"},{"op":{}}]"#, "object into Go struct field jsonPatchOp.op of type string"),
    ] {
        let error = JsonPatch::parse(json(patch)).expect_err(patch);
        let want = format!("error decoding patch: json: cannot unmarshal {want}");
        assert_eq!(error, PatchError::Malformed(want.clone()), "{patch}");
        assert_eq!(error.client_message(), want, "{patch}");
    }
}

#[test]
fn a_patch_that_fails_says_which_operation_is_unknown_in_few_words() {
    let patch = format!(r#"[{{"op":"{}","path":"/s"}}]"#, "x".repeat(1_000_000));
    let error = JsonPatch::parse(json(&patch)).expect_err("there is no such operation");
    assert_eq!(error, PatchError::NotApplicable(format!("Unexpected kind: {}", "x".repeat(40))));
}

#[test]
fn the_number_of_operations_is_bounded() {
    let operations = |count: usize| Value::Array(vec![json(r#"{"op":"test","path":"/none"}"#); count]);
    let limit = JsonPatch::MAX_OPERATIONS;
    assert!(JsonPatch::parse(operations(limit)).is_ok());
    let error = PatchError::TooManyOperations { count: limit + 1, limit };
    assert_eq!(JsonPatch::parse(operations(limit + 1)), Err(error));
}

#[test]
fn copies_are_bounded_together() {
    let text = "x".repeat(MAX_COPIED_BYTES / 2 - 2);
    let target = format!(r#"{{"a":["{text}"]}}"#);
    let copy = r#"{"op":"copy","from":"/a/0","path":"/a/-"}"#;
    assert!(patched(&target, &format!("[{copy},{copy}]")).is_ok());
    let size = MAX_COPIED_BYTES / 2 * 3;
    let error = PatchError::CopyTooLarge { size, limit: MAX_COPIED_BYTES };
    assert_eq!(patched(&target, &format!("[{copy},{copy},{copy}]")), Err(error));
}

#[test]
fn copies_that_double_end_soon() {
    let bomb = vec![r#"{"op":"copy","from":"/a","path":"/a/-"}"#; 1000].join(",");
    let error = patched(r#"{"a":[1]}"#, &format!("[{bomb}]")).expect_err("is far too large");
    assert!(matches!(error, PatchError::CopyTooLarge { .. } | PatchError::TooDeep { .. }), "{error}");
    let bomb = vec![r#"{"op":"copy","from":"/a","path":"/a/x"},{"op":"copy","from":"/a/x","path":"/a/y"}"#; 1000];
    let error = patched(r#"{"a":{}}"#, &format!("[{}]", bomb.join(","))).expect_err("is far too large");
    assert!(matches!(error, PatchError::CopyTooLarge { .. } | PatchError::TooDeep { .. }), "{error}");
}

#[test]
fn no_operation_nests_too_deeply() {
    // An array of `levels`, and the way down to the innermost of them.
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let way = |levels: usize| "/0".repeat(levels - 1);
    let half = MAX_DEPTH / 2;
    // With the object around them, the two halves are just as deep as is allowed.
    for (levels, fits) in [(half - 1, true), (half, false)] {
        let target = format!(r#"{{"a":{},"b":{}}}"#, nested(half), nested(levels));
        let end = way(half);
        for patch in [
            format!(r#"[{{"op":"add","path":"/a{end}/-","value":{}}}]"#, nested(levels)),
            format!(r#"[{{"op":"copy","from":"/b","path":"/a{end}/-"}}]"#),
            format!(r#"[{{"op":"move","from":"/b","path":"/a{end}/-"}}]"#),
            format!(
                r#"[{{"op":"add","path":"/a{end}/-","value":1}},{{"op":"replace","path":"/a{end}/0","value":{}}}]"#,
                nested(levels)
            ),
        ] {
            match patched(&target, &patch) {
                Ok(text) => {
                    assert!(fits, "{patch}");
                    assert!(parse_json(text.as_bytes()).is_ok(), "{patch}");
                }
                Err(error) => {
                    assert!(!fits, "{patch}: {error}");
                    assert_eq!(error, PatchError::TooDeep { limit: MAX_DEPTH });
                }
            }
        }
    }
}

#[test]
fn work_is_bounded() {
    // Every move shifts the whole array twice: without a limit this would take minutes.
    let target = format!("{{\"a\":[{}]}}", vec!["0"; 700_000].join(","));
    let moves = vec![r#"{"op":"move","from":"/a/0","path":"/a/0"}"#; JsonPatch::MAX_OPERATIONS].join(",");
    assert_eq!(patched(&target, &format!("[{moves}]")), Err(PatchError::TooMuchWork { limit: MAX_WORK }));
    // To append shifts nothing.
    let appends = vec![r#"{"op":"add","path":"/a/-","value":0}"#; JsonPatch::MAX_OPERATIONS].join(",");
    assert!(patched(&target, &format!("[{appends}]")).is_ok());
}

#[test]
fn one_patch_applies_to_many_values() {
    let patch = patch(r#"[{"op":"add","path":"/n","value":1}]"#);
    for target in ["{}", r#"{"n":0}"#] {
        let mut target = json(target);
        assert_eq!(patch.apply(&mut target), Ok(()));
        assert_eq!(target.to_json(), r#"{"n":1}"#);
    }
}

fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn any_pointer() -> impl Strategy<Value = String> {
    let token = prop_oneof![
        6 => any_name().prop_map(escape),
        3 => prop::sample::select(vec!["1", "2", "-1", "-2", "+0", "~2"]).prop_map(str::to_owned),
    ];
    prop_oneof![
        1 => Just(String::new()),
        1 => "[a/~]{0,4}",
        8 => prop::collection::vec(token, 1..4).prop_map(|tokens| format!("/{}", tokens.join("/"))),
    ]
}

fn any_operation() -> impl Strategy<Value = Value> {
    let op = prop::sample::select(vec!["add", "remove", "replace", "move", "copy", "test", "add", "copy", "move"]);
    (op, any_pointer(), any_pointer(), any_value()).prop_map(|(op, path, from, value)| {
        let members = [("op", op.into()), ("path", path.into()), ("from", from.into()), ("value", value)];
        Value::Object(members.into_iter().collect())
    })
}

fn one(op: &str, members: &[(&str, &Value)]) -> JsonPatch {
    let mut operation: Object = members.iter().map(|(name, value)| (*name, (*value).clone())).collect();
    operation.insert("op", op);
    JsonPatch::parse(Value::Array(vec![operation.into()])).expect("is a patch")
}

proptest! {
    #[test]
    fn no_value_makes_parsing_panic(patch in any_value()) {
        let _ = JsonPatch::parse(patch);
    }

    #[test]
    fn no_patch_makes_applying_panic(
        mut target in any_value(),
        operations in prop::collection::vec(any_operation(), 0..8),
    ) {
        let patch = JsonPatch::parse(Value::Array(operations)).expect("the members are there and of the right type");
        if patch.apply(&mut target).is_ok() {
            prop_assert_eq!(&parse_json(target.to_json().as_bytes()).expect("is JSON").value, &target);
        }
    }

    #[test]
    fn what_is_added_is_there(target in any_object(), name in any_name(), value in any_value()) {
        let path = Value::from(format!("/{}", escape(name)));
        let mut added = target.clone();
        prop_assert_eq!(one("add", &[("path", &path), ("value", &value)]).apply(&mut added), Ok(()));
        prop_assert_eq!(added.as_object().and_then(|object| object.get(name)), Some(&value));
        prop_assert_eq!(one("test", &[("path", &path), ("value", &value)]).apply(&mut added), Ok(()));
        prop_assert_eq!(one("remove", &[("path", &path)]).apply(&mut added), Ok(()));
        let mut without = target;
        without.as_object_mut().expect("is an object").remove(name);
        prop_assert_eq!(added, without);
    }

    #[test]
    fn to_move_is_to_copy_and_remove(
        mut target in any_object(), value in any_value(), from in any_name(), to in any_name(),
    ) {
        prop_assume!(from != to);
        target.as_object_mut().expect("is an object").insert(from, value);
        let (from, to) = (Value::from(format!("/{}", escape(from))), Value::from(format!("/{}", escape(to))));
        let mut moved = target.clone();
        prop_assert_eq!(one("move", &[("from", &from), ("path", &to)]).apply(&mut moved), Ok(()));
        let mut copied = target;
        prop_assert_eq!(one("copy", &[("from", &from), ("path", &to)]).apply(&mut copied), Ok(()));
        prop_assert_eq!(one("remove", &[("path", &from)]).apply(&mut copied), Ok(()));
        prop_assert_eq!(moved, copied);
    }

    #[test]
    fn to_test_changes_nothing(target in any_value(), path in any_pointer(), value in any_value()) {
        let mut tested = target.clone();
        let outcome = one("test", &[("path", &path.into()), ("value", &value)]).apply(&mut tested);
        prop_assert_eq!(&tested, &target);
        prop_assert!(!matches!(outcome, Err(PatchError::Malformed(_))));
    }
}

#[test]
fn what_cannot_be_done_is_told_in_the_words_of_the_original() {
    for (operation, want) in [
        (r#"{"op":"frob","path":"/a"}"#, "Unexpected kind: frob"),
        (
            r#"{"op":"add","path":"/x/y","value":1}"#,
            r#"add operation does not apply: doc is missing path: "/x/y": missing value"#,
        ),
        (
            r#"{"op":"add","path":"/list/5","value":1}"#,
            "error in add for path: '/list/5': Unable to access invalid index: 5: invalid index referenced",
        ),
        (
            r#"{"op":"add","path":"/list/x","value":1}"#,
            "error in add for path: '/list/x': value was not a proper array index: 'x': strconv.Atoi: parsing \"x\": \
             invalid syntax",
        ),
        (
            r#"{"op":"remove","path":"/a~1b"}"#,
            "error in remove for path: '/a~1b': Unable to remove nonexistent key: a/b: missing value",
        ),
        (
            r#"{"op":"replace","path":"/x/y","value":1}"#,
            "replace operation does not apply: doc is missing path: /x/y: missing value",
        ),
        (
            r#"{"op":"replace","path":"/list/5","value":1}"#,
            "replace operation does not apply: doc is missing key: /list/5: missing value",
        ),
        (
            r#"{"op":"move","from":"/x","path":"/y"}"#,
            "error in move for path: 'x': Unable to remove nonexistent key: x: missing value",
        ),
        (
            r#"{"op":"move","from":"/list","path":"/x/y"}"#,
            "move operation does not apply: doc is missing destination path: /x/y: missing value",
        ),
        (
            r#"{"op":"copy","from":"/x/y","path":"/z"}"#,
            "copy operation does not apply: doc is missing from path: /x/y: missing value",
        ),
    ] {
        let patch = parse_json(format!("[{operation}]").as_bytes()).expect(operation).value;
        let mut target = parse_json(br#"{"list":[0]}"#).expect("is JSON").value;
        let applied = JsonPatch::parse(patch).and_then(|patch| patch.apply(&mut target));
        assert_eq!(applied, Err(PatchError::NotApplicable(want.to_owned())), "{operation}");
    }
}

#[test]
fn what_is_kept_as_its_text_is_patched_as_what_it_says() {
    let object = r#"{"metadata":{"managedFields":[{"fieldsV1":{"f:a":{"f:b":{}}}}]}}"#;
    for patch in [
        r#"[{"op":"test","path":"/metadata/managedFields/0/fieldsV1","value":{"f:a":{"f:b":{}}}}]"#,
        r#"[{"op":"test","path":"/metadata/managedFields/0/fieldsV1/f:a/f:b","value":{}}]"#,
        r#"[{"op":"add","path":"/metadata/managedFields/0/fieldsV1/f:c","value":{}}]"#,
        r#"[{"op":"remove","path":"/metadata/managedFields/0/fieldsV1/f:a"}]"#,
        r#"[{"op":"move","from":"/metadata/managedFields/0","path":"/x"}]"#,
        r#"[{"op":"copy","from":"/metadata/managedFields","path":"/x"},{"op":"remove","path":"/x/0/fieldsV1/f:a/f:b"}]"#,
    ] {
        let mut target = parse_stored(object.as_bytes()).expect("is JSON");
        JsonPatch::parse(json(patch)).and_then(|patch| patch.apply(&mut target)).expect(patch);
        assert_eq!(Ok(target.to_json()), patched(object, patch), "{patch}");
        let moved = target.as_object().and_then(|object| object.get("x"));
        assert!(moved.is_none_or(|moved| !format!("{moved:?}").contains("Raw")), "{moved:?}");
    }
}
