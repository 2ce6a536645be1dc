//! The generator makes valid objects, all sorts of them, and always the same.

use revisor_cel::Environment;
use revisor_object::parse_json;
use revisor_version::Release;

use super::*;

fn version(spec: &str) -> VersionSchema {
    let text = format!(r#"{{"type":"object","properties":{{"spec":{spec}}}}}"#);
    let schema = parse_json(text.as_bytes()).expect("is JSON").value;
    let schema = Structural::read(schema.as_object().expect("an object"));
    VersionSchema::new("g", "K", "v1", schema, &Environment::new(Release { major: 1, minor: 36 }), 36)
}

/// So many different valid objects, at least, of which these are some.
#[track_caller]
fn check(spec: &str, least: usize, want: &[&str]) {
    let version = version(spec);
    let make = || {
        let mut generator = Generator::new(&version, &[], 1);
        let mut made = Vec::new();
        generator.boundaries(&mut |object| {
            made.push(object);
            made.len() < 2000
        });
        for _ in 0..100 {
            made.extend(generator.sample());
        }
        made
    };
    let made = make();
    for object in &made {
        assert!(version.is_valid(object), "{}: {:?}", object.to_json(), version.validate(object));
    }
    let different: BTreeSet<String> =
        made.iter().filter_map(|object| Some(object.as_object()?.get("spec")?.to_json())).collect();
    assert!(different.len() >= least, "{} objects of {spec}: {different:?}", different.len());
    for want in want {
        assert!(different.contains(*want), "no {want} among {different:?}");
    }
    assert_eq!(make(), made, "the same every time");
}

#[test]
fn the_bounds_of_every_keyword_are_reached() {
    check(r#"{"type":"integer","minimum":3,"maximum":9,"multipleOf":3}"#, 3, &["3", "6", "9"]);
    check(r#"{"type":"integer","format":"int32"}"#, 10, &["0", "-2147483648", "2147483647"]);
    check(r#"{"type":"number","minimum":0,"exclusiveMinimum":true,"maximum":1}"#, 2, &["1", "0.5"]);
    check(r#"{"type":"boolean","nullable":true}"#, 3, &["true", "false", "null"]);
    check(r#"{"type":"string","minLength":2,"maxLength":3}"#, 3, &[r#""aa""#, r#""bbb""#]);
    check(r#"{"type":"string","enum":["x","y"]}"#, 2, &[r#""x""#, r#""y""#]);
    check(r#"{"type":"string","pattern":"^(0|[1-9][0-9]{0,4})s$","maxLength":6}"#, 5, &[r#""0s""#]);
    check(
        r#"{"type":"array","items":{"type":"string","enum":["a","b","c"]},"minItems":1,"maxItems":3,"x-kubernetes-list-type":"set"}"#,
        4,
        &[],
    );
    check(
        r#"{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["n"],"items":
            {"type":"object","required":["n"],"properties":{"n":{"type":"string"},"v":{"type":"integer"}}}}"#,
        6,
        &["[]"],
    );
    check(r#"{"type":"object","minProperties":1,"maxProperties":2,"additionalProperties":{"type":"integer"}}"#, 4, &[]);
    check(
        r#"{"type":"object","required":["a"],"properties":{"a":{"type":"integer"},"b":{"type":"string"}}}"#,
        10,
        &[r#"{"a":0}"#],
    );
    check(r#"{"x-kubernetes-int-or-string":true}"#, 5, &[r#""50%""#, "0"]);
    check(r#"{"type":"object","x-kubernetes-preserve-unknown-fields":true}"#, 2, &["{}"]);
    check(
        r#"{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}"#,
        1,
        &[],
    );
}

#[test]
fn formats_alternatives_and_rules_are_met() {
    for format in [
        "ipv4",
        "ipv6",
        "cidr",
        "uri",
        "email",
        "hostname",
        "uuid",
        "date",
        "date-time",
        "duration",
        "byte",
        "mac",
        "k8s-short-name",
    ] {
        check(&format!(r#"{{"type":"string","format":"{format}"}}"#), 1, &[]);
    }
    check(
        r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},
            "oneOf":[{"required":["a"]},{"required":["b"]}]}"#,
        4,
        &[],
    );
    check(r#"{"type":"integer","not":{"enum":[0,1]}}"#, 4, &["2"]);
    check(r#"{"type":"string","anyOf":[{"pattern":"^a+$"},{"enum":["zz"]}]}"#, 2, &[r#""zz""#]);
    check(
        r#"{"type":"object","required":["min","max"],"properties":{"min":{"type":"integer"},"max":{"type":"integer"}},
            "x-kubernetes-validations":[{"rule":"self.min < self.max"}]}"#,
        20,
        &[],
    );
    check(
        r#"{"type":"object","properties":{"kind":{"type":"string","enum":["A","B"]},"a":{"type":"string","maxLength":5}},
            "x-kubernetes-validations":[{"rule":"has(self.a) == (has(self.kind) && self.kind == 'A')"}]}"#,
        4,
        &[],
    );
    check(
        r#"{"type":"object","properties":{"d":{"type":"string","default":"x"},"n":{"type":"integer"}}}"#,
        4,
        &[r#"{"d":"x"}"#],
    );
}

#[test]
fn what_is_shrunk_stays_what_it_was_found_for() {
    let object =
        parse_json(br#"{"kind":"K","spec":{"a":[{"n":73,"s":"xyz"},{"n":5}],"b":{"c":1}}}"#).expect("is JSON").value;
    let small = shrink(object, SHRINKING, &mut |object| {
        let spec = object.as_object().and_then(|object| object.object("spec"));
        let items = spec.map(|spec| spec.array("a").to_vec()).unwrap_or_default();
        items.iter().any(|item| item.as_object().and_then(|item| item.get("n")?.as_i64()).is_some_and(|n| n > 10))
    });
    assert_eq!(small.to_json(), r#"{"kind":"K","spec":{"a":[{"n":11}]}}"#);
}

/// To make all smaller forms of it at once would take a hundred million values.
#[test]
fn what_is_large_is_shrunk_one_attempt_at_a_time() {
    let items: Vec<Value> = (0..10_000).map(Value::Int).collect();
    let object = Value::Object([("kind", Value::from("K")), ("spec", Value::Array(items))].into_iter().collect());
    let mut attempts = 0;
    let small = shrink(object, 20, &mut |object| {
        attempts += 1;
        object.as_object().is_some_and(|object| object.array("spec").contains(&Value::Int(9_999)))
    });
    assert_eq!((attempts, small.as_object().map(|object| object.array("spec").len())), (20, Some(9_982)));
}
