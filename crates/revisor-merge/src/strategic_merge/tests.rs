//! What a strategic merge patch does, case by case, on a type that has a field of every sort.

use proptest::prelude::*;
use revisor_object::parse_json;

use super::*;
use crate::arbitrary_value::{any_object, any_value_without_null};
use crate::patch_meter::MAX_DEPTH;

const TABLE: &str = "type,field,shape,presence,number,merge
T,labels,map:string,nonzero,1,
T,phase,string,nonzero,2,
T,count,int32,nonzero,3,
T,marks,list:string,nonzero,4,merge
T,plain,list:string,nonzero,5,
T,parts,list:P,nonzero,6,merge:name
T,atoms,list:P,nonzero,7,
T,spec,S,given,8,
T,whole,S,given,9,replace
T,strategy,S,given,10,retainKeys
T,volumes,list:P,nonzero,11,merge:name+retainKeys
P,name,string,always,1,
P,image,string,nonzero,2,
P,ports,list:Q,nonzero,3,merge:port
P,marks,list:string,nonzero,4,merge
Q,port,int32,always,1,
Q,text,string,nonzero,2,
S,a,string,nonzero,1,
S,b,string,nonzero,2,
S,marks,list:string,nonzero,3,merge
";

fn json(text: &str) -> Value {
    parse_json(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}")).value
}

fn patched(target: &Value, patch: Value) -> Result<Value, PatchError> {
    let types = Types::parse(TABLE).expect("a good table");
    let root = types.id("T").expect("the table has it");
    let mut target = target.clone();
    strategic_merge_patch(&types, root, &mut target, patch).map(|()| target)
}

#[track_caller]
fn check(cases: &[(&str, &str, &str, &str)]) {
    for (name, target, patch, want) in cases {
        let found = patched(&json(target), json(patch)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(found.to_json(), json(want).to_json(), "{name}");
    }
}

#[test]
fn objects_are_merged_by_member() {
    check(&[
        ("nothing", r#"{"phase":"x"}"#, "{}", r#"{"phase":"x"}"#),
        ("null is no patch", r#"{"phase":"x"}"#, "null", r#"{"phase":"x"}"#),
        ("scalars replace", r#"{"phase":"x","count":1}"#, r#"{"phase":"y"}"#, r#"{"phase":"y","count":1}"#),
        ("null removes", r#"{"phase":"x","count":1}"#, r#"{"phase":null}"#, r#"{"count":1}"#),
        ("null for nothing", r#"{"count":1}"#, r#"{"phase":null}"#, r#"{"count":1}"#),
        (
            "maps",
            r#"{"labels":{"a":"1","b":"2"}}"#,
            r#"{"labels":{"b":null,"c":"3"}}"#,
            r#"{"labels":{"a":"1","c":"3"}}"#,
        ),
        ("structs", r#"{"spec":{"a":"1"}}"#, r#"{"spec":{"b":"2"}}"#, r#"{"spec":{"a":"1","b":"2"}}"#),
        ("new without nulls", "{}", r#"{"spec":{"a":null,"b":"2"}}"#, r#"{"spec":{"b":"2"}}"#),
        ("another type", r#"{"spec":"odd"}"#, r#"{"spec":{"a":null,"b":"2"}}"#, r#"{"spec":{"b":"2"}}"#),
        ("unknown fields are set", "{}", r#"{"other":{"x":[1]}}"#, r#"{"other":{"x":[1]}}"#),
        ("replaced as a whole", r#"{"whole":{"a":"1"}}"#, r#"{"whole":{"b":"2"}}"#, r#"{"whole":{"b":"2"}}"#),
        (
            "the strategy alone retains nothing",
            r#"{"strategy":{"a":"1"}}"#,
            r#"{"strategy":{"b":"2"}}"#,
            r#"{"strategy":{"a":"1","b":"2"}}"#,
        ),
    ]);
}

#[test]
fn directives_act_on_objects() {
    check(&[
        ("replace", r#"{"spec":{"a":"1"}}"#, r#"{"spec":{"$patch":"replace","b":"2"}}"#, r#"{"spec":{"b":"2"}}"#),
        ("delete empties", r#"{"spec":{"a":"1"}}"#, r#"{"spec":{"$patch":"delete","b":"2"}}"#, r#"{"spec":{}}"#),
        ("replace the root", r#"{"phase":"x","count":1}"#, r#"{"$patch":"replace","count":2}"#, r#"{"count":2}"#),
        ("delete the root", r#"{"phase":"x"}"#, r#"{"$patch":"delete"}"#, "{}"),
        ("nothing to replace", r#"{"count":1}"#, r#"{"spec":{"$patch":"replace","b":"2"}}"#, r#"{"count":1}"#),
        ("instead of another type", r#"{"spec":"odd"}"#, r#"{"spec":{"$patch":"delete"}}"#, "{}"),
        (
            "in new elements",
            "{}",
            r#"{"atoms":[{"name":"a"},{"name":"b","$patch":"delete"}]}"#,
            r#"{"atoms":[{"name":"a"}]}"#,
        ),
        (
            "retain keys",
            r#"{"strategy":{"a":"1","b":"2"}}"#,
            r#"{"strategy":{"$retainKeys":["b","marks"],"marks":["m"],"a":null}}"#,
            r#"{"strategy":{"b":"2","marks":["m"]}}"#,
        ),
        (
            "retain keys in elements",
            r#"{"volumes":[{"name":"a","image":"1","marks":["m"]}]}"#,
            r#"{"volumes":[{"$retainKeys":["name","image"],"name":"a","image":"2"}]}"#,
            r#"{"volumes":[{"name":"a","image":"2"}]}"#,
        ),
    ]);
}

#[test]
fn lists_of_scalars_are_sets_or_atoms() {
    check(&[
        ("atoms are replaced", r#"{"plain":["a","b"]}"#, r#"{"plain":["c"]}"#, r#"{"plain":["c"]}"#),
        ("sets gain", r#"{"marks":["a","b"]}"#, r#"{"marks":["c"]}"#, r#"{"marks":["c","a","b"]}"#),
        ("each once", r#"{"marks":["a","b"]}"#, r#"{"marks":["b","b","c"]}"#, r#"{"marks":["a","b","c"]}"#),
        (
            "in the order of the patch",
            r#"{"marks":["a","b","c"]}"#,
            r#"{"marks":["c","a"]}"#,
            r#"{"marks":["b","c","a"]}"#,
        ),
        ("an empty patch", r#"{"marks":["a"]}"#, r#"{"marks":[]}"#, r#"{"marks":["a"]}"#),
        ("two empty lists", r#"{"marks":[]}"#, r#"{"marks":[]}"#, r#"{"marks":[]}"#),
        ("null removes all", r#"{"marks":["a"]}"#, r#"{"marks":null}"#, "{}"),
        (
            "delete",
            r#"{"marks":["a","b","c"]}"#,
            r#"{"$deleteFromPrimitiveList/marks":["c","a","x"]}"#,
            r#"{"marks":["b"]}"#,
        ),
        (
            "delete from atoms",
            r#"{"plain":["a","b"]}"#,
            r#"{"$deleteFromPrimitiveList/plain":["a"]}"#,
            r#"{"plain":["b"]}"#,
        ),
        ("delete from nothing", "{}", r#"{"$deleteFromPrimitiveList/marks":["a"]}"#, "{}"),
        (
            "delete and add",
            r#"{"marks":["a","b"]}"#,
            r#"{"$deleteFromPrimitiveList/marks":["a"],"marks":["c"]}"#,
            r#"{"marks":["c","b"]}"#,
        ),
        (
            "delete in no list's name",
            r#"{"marks":["a"]}"#,
            r#"{"$deleteFromPrimitiveList/":["a"]}"#,
            r#"{"marks":["a"]}"#,
        ),
    ]);
}

#[test]
fn lists_of_objects_are_merged_by_key() {
    let two = r#"{"parts":[{"name":"a","image":"1"},{"name":"b","image":"1"}]}"#;
    check(&[
        (
            "atoms are replaced",
            r#"{"atoms":[{"name":"a"}]}"#,
            r#"{"atoms":[{"name":"b"}]}"#,
            r#"{"atoms":[{"name":"b"}]}"#,
        ),
        (
            "one is changed",
            two,
            r#"{"parts":[{"name":"b","image":"2"}]}"#,
            r#"{"parts":[{"name":"a","image":"1"},{"name":"b","image":"2"}]}"#,
        ),
        (
            "one is added",
            two,
            r#"{"parts":[{"name":"c"}]}"#,
            r#"{"parts":[{"name":"c"},{"name":"a","image":"1"},{"name":"b","image":"1"}]}"#,
        ),
        (
            "a member goes",
            two,
            r#"{"parts":[{"name":"a","image":null}]}"#,
            r#"{"parts":[{"name":"a"},{"name":"b","image":"1"}]}"#,
        ),
        (
            "one is deleted",
            two,
            r#"{"parts":[{"name":"a","$patch":"delete"}]}"#,
            r#"{"parts":[{"name":"b","image":"1"}]}"#,
        ),
        ("none is deleted", two, r#"{"parts":[{"name":"x","$patch":"delete"}]}"#, two),
        (
            "deleted and made anew",
            two,
            r#"{"parts":[{"name":"a","$patch":"delete"},{"name":"a"}]}"#,
            r#"{"parts":[{"name":"a"},{"name":"b","image":"1"}]}"#,
        ),
        ("all are replaced", two, r#"{"parts":[{"$patch":"replace"},{"name":"c"}]}"#, r#"{"parts":[{"name":"c"}]}"#),
        ("all are replaced by nothing", two, r#"{"parts":[{"$patch":"replace"}]}"#, r#"{"parts":[]}"#),
        (
            "twice in the patch",
            two,
            r#"{"parts":[{"name":"c","image":"1"},{"name":"c","image":"2"}]}"#,
            r#"{"parts":[{"name":"c","image":"2"},{"name":"a","image":"1"},{"name":"b","image":"1"}]}"#,
        ),
        (
            "lists in lists",
            r#"{"parts":[{"name":"a","ports":[{"port":1},{"port":2}],"marks":["x"]}]}"#,
            r#"{"parts":[{"name":"a","ports":[{"port":2,"text":"t"},{"port":1,"$patch":"delete"}],"$deleteFromPrimitiveList/marks":["x"]}]}"#,
            r#"{"parts":[{"name":"a","ports":[{"port":2,"text":"t"}],"marks":[]}]}"#,
        ),
        (
            "what an added element would delete goes last when it is merged again",
            two,
            r#"{"parts":[{"name":"c","ports":[{"port":1,"$patch":"delete"},{"port":2}]},{"name":"c","ports":[]},{"name":"a","$patch":"delete"}]}"#,
            r#"{"parts":[{"name":"c","ports":[{"port":2},{"port":1,"$patch":"delete"}]},{"name":"b","image":"1"}]}"#,
        ),
        (
            "an added element is taken as it is",
            two,
            r#"{"parts":[{"$patch":"replace"},{"name":"c","image":null}]}"#,
            r#"{"parts":[{"name":"c","image":null}]}"#,
        ),
    ]);
}

#[test]
fn the_order_of_elements_can_be_given() {
    let four = r#"{"parts":[{"name":"a"},{"name":"b"},{"name":"c"},{"name":"d"}]}"#;
    check(&[
        (
            "scalars",
            r#"{"marks":["a","b","c"]}"#,
            r#"{"$setElementOrder/marks":["c","b","a"]}"#,
            r#"{"marks":["c","b","a"]}"#,
        ),
        (
            "what is not listed stays before",
            r#"{"marks":["a","b","c"]}"#,
            r#"{"$setElementOrder/marks":["c","b"]}"#,
            r#"{"marks":["a","c","b"]}"#,
        ),
        (
            "with a patch",
            r#"{"marks":["a","b"]}"#,
            r#"{"$setElementOrder/marks":["c","b","a"],"marks":["c"]}"#,
            r#"{"marks":["c","b","a"]}"#,
        ),
        ("of a new list", "{}", r#"{"$setElementOrder/marks":["a","b"],"marks":["a","b"]}"#, r#"{"marks":["a","b"]}"#),
        ("of nothing", "{}", r#"{"$setElementOrder/marks":["a","b"]}"#, "{}"),
        ("of atoms", r#"{"plain":["a","b"]}"#, r#"{"$setElementOrder/plain":["b","a"]}"#, r#"{"plain":["b","a"]}"#),
        (
            "objects",
            four,
            r#"{"$setElementOrder/parts":[{"name":"d"},{"name":"b"}]}"#,
            r#"{"parts":[{"name":"a"},{"name":"c"},{"name":"d"},{"name":"b"}]}"#,
        ),
        (
            "with a deletion and an addition",
            four,
            r#"{"$setElementOrder/parts":[{"name":"d"},{"name":"x"}],"parts":[{"name":"x"},{"name":"a","$patch":"delete"}]}"#,
            r#"{"parts":[{"name":"b"},{"name":"c"},{"name":"d"},{"name":"x"}]}"#,
        ),
        (
            "what is added takes the place of what is deleted",
            four,
            r#"{"$setElementOrder/parts":[{"name":"x"}],"parts":[{"name":"x"},{"name":"d","$patch":"delete"}]}"#,
            r#"{"parts":[{"name":"a"},{"name":"b"},{"name":"c"},{"name":"x"}]}"#,
        ),
        (
            "a new list loses what is to be deleted",
            "{}",
            r#"{"$setElementOrder/parts":[{"name":"a"}],"parts":[{"name":"a"},{"name":"b","$patch":"delete"}]}"#,
            r#"{"parts":[{"name":"a"}]}"#,
        ),
    ]);
}

#[test]
fn bad_patches_are_refused_in_the_words_of_the_original() {
    let target = json(
        r#"{"phase":"x","marks":["a"],"plain":["a"],"parts":[{"name":"a"}],"atoms":[{"name":"a"}],"labels":{"a":{}},"other":{}}"#,
    );
    for (patch, want) in [
        ("[]", "json: cannot unmarshal array into Go value of type map[string]interface {}"),
        (r#""x""#, "json: cannot unmarshal string into Go value of type map[string]interface {}"),
        (r#"{"$patch":"merge"}"#, "unknown patch type: merge in map: map[$patch:merge]"),
        (r#"{"$patch":null,"a":[1,"b"]}"#, "unknown patch type: <nil> in map: map[$patch:<nil> a:[1 b]]"),
        (r#"{"parts":[{"$patch":"merge","name":"a"}]}"#, "merging lists cannot yet be specified in the patch"),
        (r#"{"parts":[{"$patch":"drop","name":"a"}]}"#, "unknown patch type: drop in map: map[$patch:drop name:a]"),
        (r#"{"parts":[{"image":"1"}]}"#, "map: map[image:1] does not contain declared merge key: name"),
        (r#"{"parts":[{"$patch":"delete"}]}"#, "map: map[$patch:delete] does not contain declared merge key: name"),
        (r#"{"parts":["a"]}"#, "list element types are not identical: [[map[name:a]] [a]]"),
        (r#"{"marks":[1]}"#, "list element types are not identical: [[a] [1]]"),
        (r#"{"marks":[null]}"#, "list element types are not identical: [[a] [<nil>]]"),
        (r#"{"labels":{"a":{}}}"#, "merging an object in json but data type is not struct, instead is: map"),
        (r#"{"other":{}}"#, "unable to find api field in struct T for the json field \"other\""),
        (r#"{"$retainKeys":"phase"}"#, "invalid patch format of retainKeys"),
        (r#"{"$retainKeys":["phase"],"count":1}"#, "invalid patch format of retainKeys"),
        (r#"{"$retainKeys":[{}]}"#, "invalid patch format of retainKeys"),
        (r#"{"$deleteFromPrimitiveList":["a"]}"#, "invalid patch format of primitive list"),
        (r#"{"$deleteFromPrimitiveListX/marks":["a"]}"#, "invalid patch format of primitive list"),
        (r#"{"$deleteFromPrimitiveList/atoms":[{"name":"a"}]}"#, "cannot merge lists without merge key for struct"),
        (r#"{"$setElementOrder":["a"]}"#, "invalid patch format of setElementOrder list"),
        (r#"{"$setElementOrder/marks":"a"}"#, "expected a []interface {}, but received a string"),
        (r#"{"$setElementOrder/phase":["a"]}"#, "expected a []interface {}, but received a string"),
        (r#"{"$setElementOrder/count":["a"]}"#, "expected slice or array type, but got: struct"),
        (r#"{"$setElementOrder/marks":["a"],"marks":null}"#, "expected a []interface {}, but received a %!s(<nil>)"),
        (
            r#"{"$setElementOrder/marks":["a"],"marks":["b"]}"#,
            "The order in patch list:\n[b]\n doesn't match $setElementOrder list:\n[a]\n",
        ),
        (
            r#"{"$setElementOrder/parts":[{"image":"a"}]}"#,
            "map: map[image:a] does not contain declared merge key: name",
        ),
        (
            r#"{"$setElementOrder/nothing":["a"]}"#,
            "unable to find api field in struct T for the json field \"nothing\"",
        ),
    ] {
        assert_eq!(patched(&target, json(patch)), Err(PatchError::Malformed(want.to_owned())), "{patch}");
    }
    let lists = json(r#"{"marks":[["a"]]}"#);
    let error = patched(&lists, json(r#"{"marks":["a"]}"#)).expect_err("lists of lists");
    assert_eq!(error, PatchError::NotApplicable("lists of lists are not supported".to_owned()));
}

#[test]
fn depth_is_bounded() {
    let nested = |depth| (0..depth).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
    let patch = |depth| Value::Object([("other", nested(depth))].into_iter().collect());
    assert!(patched(&json("{}"), patch(MAX_DEPTH - 1)).is_ok());
    assert_eq!(patched(&json("{}"), patch(MAX_DEPTH)), Err(PatchError::TooDeep { limit: MAX_DEPTH }));
    assert_eq!(patched(&patch(MAX_DEPTH), json("{}")), Err(PatchError::TooDeep { limit: MAX_DEPTH }));
}

#[test]
fn what_an_error_shows_of_a_patch_is_bounded() {
    let patch = format!(r#"{{"parts":[{{"image":"{}"}}]}}"#, "é".repeat(100_000));
    let error = patched(&json(r#"{"parts":[]}"#), json(&patch)).expect_err("the key is missing");
    assert!(error.to_string().len() < 2048, "{error}");
}

#[test]
fn long_lists_are_merged_in_one_go() {
    // Searched element by element, these would take ten thousand million steps and not finish.
    const LONG: usize = 100_000;
    let list = |from: usize, extra: &str| {
        let parts: Vec<String> = (from..from + LONG).map(|n| format!(r#"{{"name":"{n}"{extra}}}"#)).collect();
        format!("[{}]", parts.join(","))
    };
    let half = LONG / 2;
    let target = json(&format!(r#"{{"parts":{}}}"#, list(0, "")));
    let patch = format!(r#"{{"$setElementOrder/parts":{},"parts":{}}}"#, list(half, ""), list(half, r#","image":"x""#));
    let merged = patched(&target, json(&patch)).expect("fits");
    let parts = merged.as_object().map(|object| object.array("parts")).expect("is an object");
    assert_eq!(parts.len(), LONG + half);
    let deleted =
        patched(&merged, json(&format!(r#"{{"parts":{}}}"#, list(0, r#","$patch":"delete""#)))).expect("fits");
    assert_eq!(deleted.as_object().map(|object| object.array("parts").len()), Some(half));
}

fn any_target() -> impl Strategy<Value = Value> {
    let marks = prop::collection::btree_set("[a-e]", 0..4)
        .prop_map(|marks| Value::Array(marks.into_iter().map(Value::from).collect()));
    let parts = prop::collection::btree_map("[a-e]", "[xy]", 0..4).prop_map(|parts| {
        let part = |(name, image): (String, String)| {
            Value::Object([("name", Value::from(name)), ("image", Value::from(image))].into_iter().collect())
        };
        Value::Array(parts.into_iter().map(part).collect())
    });
    (marks, parts, "[xy]").prop_map(|(marks, parts, phase)| {
        Value::Object([("marks", marks), ("parts", parts), ("phase", phase.into())].into_iter().collect())
    })
}

proptest! {
    #[test]
    fn an_object_merged_with_itself_stays(target in any_target()) {
        prop_assert_eq!(patched(&target, target.clone()), Ok(target));
    }

    #[test]
    fn to_merge_twice_is_to_merge_once(target in any_target(), patch in any_target()) {
        let once = patched(&target, patch.clone()).expect("fits");
        prop_assert_eq!(patched(&once, patch), Ok(once));
    }

    #[test]
    fn unknown_members_are_taken_over(patch in any_value_without_null()) {
        let patch = Value::Object([("other", patch)].into_iter().collect());
        prop_assert_eq!(patched(&json("{}"), patch.clone()), Ok(patch));
    }

    #[test]
    fn nothing_panics(target in any_object(), patch in any_object()) {
        // Random members under known names reach all branches; whether they fit is not the question.
        for name in ["marks", "parts", "atoms", "labels", "$setElementOrder/parts", "$deleteFromPrimitiveList/marks"] {
            let place = |value: &Value| Value::Object([(name, value.clone())].into_iter().collect());
            let _ = patched(&place(&target), place(&patch));
            let lists = |value: &Value| {
                let items = value.as_object().into_iter().flat_map(|object| object.iter());
                place(&Value::Array(items.map(|(_, item)| item.clone()).collect()))
            };
            let _ = patched(&lists(&target), lists(&patch));
        }
    }
}
