//! Values held against schemas: what is said of each, and in which order.

use revisor_object::{FieldError, FieldPath, MAX_FIELD_ERRORS};

use super::super::correlation::Correlation;
use super::super::testing::{parse, schema};
use super::*;

#[track_caller]
fn check(schema_text: &str, text: &str, want: &[&str]) {
    let validator = Validator::compile(&schema(schema_text), 36);
    let errors = validator.validate(&FieldPath::none(), &parse(text));
    let said: Vec<String> = errors.iter().map(FieldError::to_string).collect();
    assert_eq!(said, want, "{schema_text} {text}");
}

#[test]
fn defaults_are_checked_by_formats_that_are_without_meaning() {
    for (schema_text, default, want) in [
        (r#"{"type":"object","format":"date"}"#, "[]", &[][..]),
        (r#"{"type":"object","format":"bogus"}"#, "true", &[" in body must be of type bogus: \"\""]),
        (r#"{"x-kubernetes-int-or-string":true}"#, "[]", &[]),
        (r#"{"type":"integer","format":"int32"}"#, "true", &[" in body must be of type int32: \"\""]),
        (r#"{"type":"string","format":"ipv4"}"#, "\"x\"", &[" in body must be of type ipv4: \"x\""]),
    ] {
        let errors =
            Validator::compile_for_default(&schema(schema_text), 36).validate(&FieldPath::none(), &parse(default));
        let said: Vec<&str> = errors.iter().map(|error| &*error.detail).collect();
        assert_eq!(said, want, "{schema_text} {default}");
    }
}

/// Checks a member `x` of an object.
#[track_caller]
fn check_member(schema_text: &str, text: &str, want: &[&str]) {
    check(&format!(r#"{{"type":"object","properties":{{"x":{schema_text}}}}}"#), &format!(r#"{{"x":{text}}}"#), want);
}

#[test]
fn types_are_checked() {
    for (schema, value, want) in [
        (r#"{"type":"string"}"#, r#""a""#, vec![]),
        (
            r#"{"type":"string"}"#,
            "1",
            vec![r#"x: Invalid value: "integer": x in body must be of type string: "integer""#],
        ),
        (r#"{"type":"string"}"#, "null", vec![r#"x: Invalid value: "null": x in body must be of type string: "null""#]),
        (r#"{"type":"string","nullable":true}"#, "null", vec![]),
        (r#"{"type":"integer"}"#, "2.0", vec![]),
        (
            r#"{"type":"integer"}"#,
            "2.5",
            vec![
                r#"x: Invalid value: "number": x in body must be of type integer: "number""#,
                r#"<nil>: Invalid value: "": Checked value must be of type integer (default format) in x"#,
            ],
        ),
        (r#"{"type":"number"}"#, "2", vec![]),
        (
            r#"{"type":"boolean"}"#,
            "{}",
            vec![r#"x: Invalid value: "object": x in body must be of type boolean: "object""#],
        ),
        (
            r#"{"type":"array","items":{"type":"string"}}"#,
            r#"["a",1]"#,
            vec![r#"x[1]: Invalid value: "integer": x[1] in body must be of type string: "integer""#],
        ),
        (r#"{"x-kubernetes-int-or-string":true}"#, r#""50%""#, vec![]),
        (
            r#"{"x-kubernetes-int-or-string":true}"#,
            "true",
            vec![r#"x: Invalid value: "boolean": x in body must be of type integer,string: "boolean""#],
        ),
        (
            r#"{"type":"integer","format":"int32"}"#,
            "4294967296",
            vec![r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in x"#],
        ),
        (
            r#"{"type":"string","format":"date"}"#,
            "1",
            vec![r#"x: Invalid value: "int64": x in body must be of type date: "int64""#],
        ),
        (
            r#"{"type":"string","format":"date"}"#,
            r#""no""#,
            vec![r#"x: Invalid value: "no": x in body must be of type date: "no""#],
        ),
        (r#"{"type":"string","format":"unheard-of"}"#, r#""no""#, vec![]),
        (r#"{}"#, r#"{"any":["thing"]}"#, vec![]),
    ] {
        check_member(schema, value, &want);
    }
}

#[test]
fn keywords_are_checked() {
    for (schema, value, want) in [
        (
            r#"{"type":"integer","minimum":3}"#,
            "2",
            vec!["x: Invalid value: 2: x in body should be greater than or equal to 3"],
        ),
        (
            r#"{"type":"integer","minimum":3,"exclusiveMinimum":true}"#,
            "3",
            vec!["x: Invalid value: 3: x in body should be greater than 3"],
        ),
        (
            r#"{"type":"number","maximum":2.5}"#,
            "2.75",
            vec!["x: Invalid value: 2.75: x in body should be less than or equal to 2.5"],
        ),
        (
            r#"{"type":"integer","maximum":5,"exclusiveMaximum":true}"#,
            "5",
            vec!["x: Invalid value: 5: x in body should be less than 5"],
        ),
        (r#"{"type":"integer","multipleOf":3}"#, "7", vec!["x: Invalid value: 7: x in body should be a multiple of 3"]),
        (r#"{"type":"number","multipleOf":0.1}"#, "0.3", vec![]),
        (
            r#"{"type":"number","multipleOf":0.5}"#,
            "0.75",
            vec!["x: Invalid value: 0.75: x in body should be a multiple of 0.5"],
        ),
        (
            r#"{"type":"integer","maximum":5.5}"#,
            "5",
            vec![r#"<nil>: Invalid value: "": Maximum boundary value must be of type integer (default format) in x"#],
        ),
        (r#"{"type":"string","maxLength":2}"#, r#""äöü""#, vec!["x: Too long: may not be more than 2 bytes"]),
        (
            r#"{"type":"string","minLength":3}"#,
            r#""ab""#,
            vec![r#"x: Invalid value: "ab": x in body should be at least 3 chars long"#],
        ),
        (
            r#"{"type":"string","pattern":"^a+$"}"#,
            r#""b""#,
            vec![r#"x: Invalid value: "b": x in body should match '^a+$'"#],
        ),
        (
            r#"{"type":"string","pattern":"("}"#,
            r#""b""#,
            vec![
                r#"x: Invalid value: "b": x in body should match '(, but pattern is invalid: error parsing regexp: missing closing ): `(`'"#,
            ],
        ),
        (r#"{"type":"array","minItems":1}"#, "[]", vec!["x: Invalid value: 0: x in body should have at least 1 items"]),
        (r#"{"type":"array","maxItems":1}"#, "[1,2]", vec!["x: Too many: 2: must have at most 1 item"]),
        (
            r#"{"type":"object","minProperties":1}"#,
            "{}",
            vec!["x: Invalid value: 0: x in body should have at least 1 properties"],
        ),
        (r#"{"type":"object","maxProperties":0}"#, r#"{"a":1}"#, vec!["x: Too many: 1: must have at most 0 items"]),
        (r#"{"type":"object","required":["a","b"]}"#, r#"{"a":1}"#, vec!["x.b: Required value"]),
        (
            r#"{"type":"string","enum":["a","b"]}"#,
            r#""c""#,
            vec![r#"x: Unsupported value: "c": supported values: "a", "b""#],
        ),
        (r#"{"type":"integer","enum":[1,2]}"#, "3", vec![r#"x: Unsupported value: 3: supported values: "1", "2""#]),
        (
            r#"{"type":"string","nullable":true,"enum":["a"]}"#,
            "null",
            vec![r#"x: Unsupported value: null: supported values: "a""#],
        ),
        (
            r#"{"type":"object","additionalProperties":{"type":"string"}}"#,
            r#"{"k":1}"#,
            vec![r#"x.k: Invalid value: "integer": x.k in body must be of type string: "integer""#],
        ),
    ] {
        check_member(schema, value, &want);
    }
    check(r#"{"required":["spec"]}"#, "{}", &["spec: Required value"]);
}

#[test]
fn of_alternatives_the_closest_is_shown() {
    let one_of = r#"{"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}]}"#;
    let any_of = r#"{"type":"object","properties":{"a":{},"n":{"type":"integer"}},
        "anyOf":[{"required":["a"]},{"properties":{"n":{"minimum":5}}}]}"#;
    for (schema, value, want) in [
        (one_of, r#"{"a":1}"#, vec![]),
        (
            one_of,
            "{}",
            vec![
                r#"<nil>: Invalid value: "": "x" must validate one and only one schema (oneOf). Found none valid"#,
                "x.a: Required value",
            ],
        ),
        (
            one_of,
            r#"{"a":1,"b":1}"#,
            vec![
                r#"<nil>: Invalid value: "": "x" must validate one and only one schema (oneOf). Found 2 valid alternatives"#,
            ],
        ),
        (any_of, r#"{"n":7}"#, vec![]),
        (
            any_of,
            r#"{"n":1}"#,
            vec![
                r#"<nil>: Invalid value: "": "x" must validate at least one schema (anyOf)"#,
                "x.n: Invalid value: 1: x.n in body should be greater than or equal to 5",
            ],
        ),
        (
            r#"{"type":"string","allOf":[{"minLength":3},{"pattern":"a"}]}"#,
            r#""b""#,
            vec![
                r#"x: Invalid value: "b": x in body should be at least 3 chars long"#,
                r#"x: Invalid value: "b": x in body should match 'a'"#,
                r#"<nil>: Invalid value: "": "x" must validate all the schemas (allOf). None validated"#,
            ],
        ),
        (
            r#"{"type":"string","not":{"enum":["b"]}}"#,
            r#""b""#,
            vec![r#"<nil>: Invalid value: "": "x" must not validate the schema (not)"#],
        ),
        (
            r#"{"type":"string","minLength":3,"allOf":[{"minLength":3}]}"#,
            r#""b""#,
            vec![
                r#"x: Invalid value: "b": x in body should be at least 3 chars long"#,
                r#"<nil>: Invalid value: "": "x" must validate all the schemas (allOf). None validated"#,
            ],
        ),
    ] {
        check_member(schema, value, &want);
    }
}

#[test]
fn faults_that_were_there_before_are_tolerated() {
    let text = r#"{"type":"object","properties":{
        "a":{"type":"string","maxLength":1},
        "o":{"type":"object","required":["r"],"properties":{"p":{"type":"integer","maximum":1},"q":{"type":"string"}}},
        "l":{"type":"array","items":{"type":"string","maxLength":1}},
        "m":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],
             "items":{"type":"object","properties":{"k":{"type":"string"},"v":{"type":"integer","maximum":1}}}}}}"#;
    let schema = schema(text);
    let validator = Validator::compile(&schema, 36);
    for (old, new, want) in [
        (r#"{"a":"xx"}"#, r#"{"a":"xx"}"#, vec![]),
        (r#"{"a":"xx"}"#, r#"{"a":"yy"}"#, vec!["a"]),
        (r#"{}"#, r#"{"a":"yy"}"#, vec!["a"]),
        (r#"{"o":{"p":2,"q":"a"}}"#, r#"{"o":{"p":2,"q":"b"}}"#, vec!["o.r"]),
        (r#"{"o":{"p":2,"q":"a"}}"#, r#"{"o":{"p":2,"q":"a"}}"#, vec![]),
        (r#"{"l":["xx"]}"#, r#"{"l":["xx"]}"#, vec![]),
        (r#"{"l":["xx"]}"#, r#"{"l":["xx","y"]}"#, vec!["l[0]"]),
        (r#"{"m":[{"k":"a","v":2}]}"#, r#"{"m":[{"k":"b","v":3},{"k":"a","v":2}]}"#, vec!["m[0].v"]),
    ] {
        let (old, new) = (parse(old), parse(new));
        let errors = validator.validate_update(&FieldPath::none(), Correlation::new(&schema, &old, &new));
        let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, want, "{old:?} {new:?}");
    }
}

#[test]
fn what_is_wrong_is_bounded() {
    let many = format!("[{}0]", "0,".repeat(200_000));
    let validator = Validator::compile(&schema(r#"{"type":"array","items":{"type":"string"}}"#), 36);
    let errors = validator.validate(&FieldPath::none(), &parse(&many));
    assert_eq!(errors.len(), MAX_FIELD_ERRORS + 1);
    assert_eq!(errors.last().map(FieldError::to_string).as_deref(), Some("and 199001 more errors"));
    let branches = vec![r#"{"not":{}}"#; 1000].join(",");
    let costly = format!(r#"{{"items":{{"anyOf":[{branches}]}}}}"#);
    let errors = Validator::compile(&schema(&costly), 36).validate(&FieldPath::none(), &parse(&many));
    let first = errors.first().map(FieldError::to_string).expect("is refused");
    assert!(first.contains("takes more than"), "{first}");
}

#[test]
fn paths_begin_where_the_value_stands() {
    let validator = Validator::compile(&schema(r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#), 36);
    let path = FieldPath::root("status");
    let said = |text: &str| validator.validate(&path, &parse(text))[0].to_string();
    assert_eq!(
        said(r#"{"n":"a"}"#),
        r#"status.n: Invalid value: "string": n in body must be of type integer: "string""#
    );
    assert_eq!(said("1"), r#"status: Invalid value: "integer":  in body must be of type object: "integer""#);
}
