//! Objects whose metadata is odd.

use revisor_fuzz::odd_text;
use revisor_object::{Object, Value, parse_json};

use super::{Subject, options};
use crate::group::Step;

/// What metadata may say, odd or not.
const ODD: &[(&str, &str)] = &[
    ("name", r#""""#),
    ("name", r#""A""#),
    ("name", r#""a..b""#),
    ("name", r#""a/b""#),
    ("name", r#""..""#),
    ("name", r#""a%b""#),
    ("name", r#"null"#),
    ("generateName", r#""gen-""#),
    ("generateName", r#""Gen_""#),
    ("namespace", r#""other""#),
    ("namespace", r#""""#),
    ("uid", r#""x""#),
    ("resourceVersion", r#""1""#),
    ("resourceVersion", r#""x""#),
    ("generation", "7"),
    ("generation", "-1"),
    ("creationTimestamp", r#""2020-01-01T00:00:00Z""#),
    ("creationTimestamp", r#""2020-01-01T00:00:00.5+01:00""#),
    ("creationTimestamp", "null"),
    ("deletionTimestamp", r#""2020-01-01T00:00:00Z""#),
    ("deletionGracePeriodSeconds", "5"),
    ("selfLink", r#""/x""#),
    ("labels", r#"{"a":"b"}"#),
    ("labels", r#"{"a/b/c":"d"}"#),
    ("labels", r#"{"":"d"}"#),
    ("labels", r#"{"a":"-"}"#),
    ("labels", r#"{"A.example/x":"B_c.d","kubernetes.io/x":""}"#),
    ("labels", r#"{"a":null}"#),
    ("labels", "null"),
    ("annotations", r#"{"a/b/c":"d","":"x","A B":"y"}"#),
    ("annotations", r#"{"kubernetes.io/Some":"\u0000ä"}"#),
    ("annotations", r#"{"EXAMPLE.com/x":"y"}"#),
    ("finalizers", r#"["a"]"#),
    ("finalizers", r#"["example.com/a","example.com/a"]"#),
    ("finalizers", r#"["a/b/c",""]"#),
    ("finalizers", r#"["orphan","foregroundDeletion"]"#),
    ("finalizers", r#"["orphan"]"#),
    ("finalizers", r#"["kubernetes"]"#),
    ("finalizers", r#"[]"#),
    ("ownerReferences", r#"[]"#),
    ("ownerReferences", r#"[{}]"#),
    ("ownerReferences", r#"[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"u"}]"#),
    (
        "ownerReferences",
        r#"[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"u"},{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"u"}]"#,
    ),
    (
        "ownerReferences",
        r#"[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"u"},{"apiVersion":"apps/v1","kind":"Deployment","name":"b","uid":"u"}]"#,
    ),
    (
        "ownerReferences",
        r#"[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"u","controller":true},{"apiVersion":"v1","kind":"ConfigMap","name":"b","uid":"v","controller":true}]"#,
    ),
    ("ownerReferences", r#"[{"apiVersion":"v1","kind":"Event","name":"a","uid":"u"}]"#),
    (
        "ownerReferences",
        r#"[{"apiVersion":"a/b/c","kind":"","name":"","uid":"","controller":false,"blockOwnerDeletion":true}]"#,
    ),
    (
        "ownerReferences",
        r#"[{"apiVersion":"v1","kind":"X","name":"a","uid":"u","blockOwnerDeletion":true,"controller":null}]"#,
    ),
    ("managedFields", r#"[]"#),
    ("managedFields", r#"[{}]"#),
    (
        "managedFields",
        r#"[{"manager":"m","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{}}}]"#,
    ),
    (
        "managedFields",
        r#"[{"manager":"m","operation":"Nothing","apiVersion":"v1","fieldsType":"FieldsV2","fieldsV1":{"x":{}}}]"#,
    ),
    (
        "managedFields",
        r#"[{"manager":"m","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{"f:a":{}}}},"time":"2020-01-01T00:00:00Z","subresource":"x"}]"#,
    ),
    ("unknown", "1"),
];

/// Some objects with odd metadata, created without being stored.
pub(super) fn steps(subject: &mut Subject<'_>) -> Vec<Step> {
    let path = subject.collection();
    let mut steps = Vec::new();
    for _ in 0..5 {
        let object = odd(subject);
        let write = options::write(&mut subject.choices);
        let joint = if write.is_empty() { "?" } else { "&" };
        steps.push(Step::new("POST", format!("{path}{write}{joint}dryRun=All")).object(object));
    }
    steps
}

/// A good object with odd metadata.
pub(super) fn odd(subject: &mut Subject<'_>) -> Object {
    let mut object = subject.good();
    for _ in 0..=subject.choices.below(2) {
        let metadata = object.object_mut("metadata");
        if subject.choices.once_in(6) {
            let field = *subject.choices.of(&["name", "generateName", "labels", "annotations", "finalizers"]);
            let text = odd_text(&mut subject.choices, "some-name");
            let value = match field {
                "labels" => Value::Object([("a", Value::from(text))].into_iter().collect()),
                "annotations" => Value::Object([(text.as_str(), Value::from("x"))].into_iter().collect()),
                "finalizers" => Value::Array(vec![Value::from(text)]),
                _ => Value::from(text),
            };
            metadata.insert(field, value);
        } else {
            let (field, json) = *subject.choices.of(ODD);
            metadata.insert(field, parse_json(json.as_bytes()).map(|parsed| parsed.value).unwrap_or_default());
            if field == "generateName" {
                metadata.remove("name");
            }
        }
    }
    object
}
