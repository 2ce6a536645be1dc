//! What is answered to reviews, and to what is none.

use std::path::PathBuf;

use super::*;
use crate::crd::SourceFile;

const DEFINITION: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.shop.example.com}
spec:
  group: shop.example.com
  names: {kind: Widget}
  versions:
  - name: v1
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
  - name: v2
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {count: {type: integer}, note: {type: string}}}}
";
const CONVERSION: &str = "\
apiVersion: versioning.revisor.dev/v1alpha1
kind: Conversion
metadata: {name: widgets.shop.example.com}
spec:
  steps: [{from: v1, to: v2, rules: [{move: {from: .spec.size, to: .spec.count}}]}]
";

fn read(texts: &[&str]) -> Result<RuleBook, Vec<String>> {
    let named = texts.iter().enumerate();
    let files: Vec<SourceFile> = named
        .map(|(number, text)| SourceFile { path: PathBuf::from(format!("{number}.yaml")), text: (*text).to_owned() })
        .collect();
    RuleBook::read(&files)
}

fn book() -> RuleBook {
    read(&[CONVERSION, DEFINITION]).expect("can be used")
}

fn tally() -> Tally {
    Tally::new(&prometheus::Registry::new()).expect("can be counted")
}

fn review(desired: &str, objects: &[String]) -> String {
    let objects = objects.join(",");
    format!(
        r#"{{"apiVersion":"{API_VERSION}","kind":"{KIND}","request":{{"uid":"u \"1\"","desiredAPIVersion":"{desired}","objects":[{objects}]}}}}"#
    )
}

fn widget(version: &str, name: &str, spec: &str) -> String {
    format!(
        r#"{{"apiVersion":"shop.example.com/{version}","kind":"Widget","metadata":{{"name":"{name}"}},"spec":{spec}}}"#
    )
}

/// The result and the objects of an answer.
fn answer(book: &RuleBook, desired: &str, objects: &[String], threads: usize) -> (String, Vec<Value>) {
    let review = Review::read(review(desired, objects).as_bytes()).expect("is a review");
    let text = review.answer(book, threads, &tally());
    let answer = parse_json(&text).expect("is JSON").value;
    let response = answer.as_object().and_then(|answer| answer.object("response")).expect("answers");
    assert_eq!(response.str("uid"), Some("u \"1\""));
    (response.get("result").expect("has a result").to_json(), response.array("convertedObjects").to_vec())
}

#[test]
fn objects_come_back_in_order_however_many_threads_convert_them() {
    let book = book();
    let objects: Vec<String> =
        (0..1000).map(|n| widget("v2", &format!("w{n}"), &format!(r#"{{"count":{n},"note":"n{n}"}}"#))).collect();
    let (result, one) = answer(&book, "shop.example.com/v1", &objects, 1);
    assert_eq!(result, r#"{"status":"Success"}"#);
    for threads in [2, 3, 7, 1000, 1001] {
        assert_eq!(answer(&book, "shop.example.com/v1", &objects, threads).1, one, "{threads}");
    }
    let texts: Vec<String> = one.iter().map(Value::to_json).collect();
    assert!(texts[7].contains(r#""spec":{"size":7}"#) && texts[7].contains(KEPT_ANNOTATION), "{}", texts[7]);
    let (_, back) = answer(&book, "shop.example.com/v2", &texts, 3);
    let back: Vec<String> = back.iter().map(Value::to_json).collect();
    assert_eq!(back, objects);
    assert_eq!(answer(&book, "shop.example.com/v2", &objects[..2], 1).1.len(), 2, "of the same version");
    assert_eq!(answer(&book, "shop.example.com/v2", &[], 1), (r#"{"status":"Success"}"#.to_owned(), Vec::new()));
}

#[test]
fn what_cannot_be_converted_fails_the_review_with_the_reason() {
    let book = book();
    let good = widget("v1", "good", r#"{"size":1}"#);
    let large = format!(r#"{{"count":1,"note":"{}"}}"#, "x".repeat(MAX_ANNOTATIONS));
    let bad_kept = widget("v1", "w", "{}")
        .replace(r#""name":"w""#, &format!(r#""name":"w","annotations":{{"{KEPT_ANNOTATION}":"[]"}}"#));
    for (desired, object, want) in [
        (
            "shop.example.com/v9",
            good.clone(),
            r#"Widget good: widgets.shop.example.com has no version \"shop.example.com/v9\""#,
        ),
        ("other/v1", good.clone(), r#"has no version \"other/v1\""#),
        ("shop.example.com/v2", widget("v7", "w", "{}"), r#"has no version \"shop.example.com/v7\""#),
        ("shop.example.com/v2", good.replace("Widget", "Gadget"), "no definition of its kind is known here"),
        ("shop.example.com/v2", "5".to_owned(), "number is no object"),
        ("shop.example.com/v2", "{}".to_owned(), "no definition of its kind"),
        ("shop.example.com/v2", bad_kept, "Widget w: "),
        ("shop.example.com/v1", widget("v2", "w", &large), "262144 are allowed"),
    ] {
        let (result, objects) = answer(&book, desired, &[good.clone(), object.clone()], 1);
        assert!(result.starts_with(r#"{"message":""#) && result.ends_with(r#""status":"Failure"}"#), "{result}");
        assert!(result.contains(want) && objects.is_empty(), "{want}: {result}");
    }
    let (result, _) = answer(&book, "shop.example.com/v9", &vec![good; 100], 4);
    assert!(result.contains("(and 99 objects more)"), "{result}");
    let book = read(&[DEFINITION]).expect("can be used");
    let (result, _) = answer(&book, "shop.example.com/v2", &[widget("v1", "w", "{}")], 1);
    assert!(result.contains("there is no Conversion of widgets.shop.example.com"), "{result}");
    assert_eq!(book.unconverted().collect::<Vec<_>>(), ["widgets.shop.example.com"]);
}

#[test]
fn what_is_no_review_is_said_to_be_none() {
    let good = review("shop.example.com/v1", &[]);
    for (text, want) in [
        ("{".to_owned(), "the body is no JSON"),
        ("[]".to_owned(), "the body is no ConversionReview"),
        ("{}".to_owned(), r#"but "" of """#),
        (good.replace("io/v1", "io/v1beta1"), r#"but "ConversionReview" of "apiextensions.k8s.io/v1beta1""#),
        (good.replace("\"request\"", "\"question\""), "request is missing"),
        (good.replace("\"uid\"", "\"id\""), "request.uid is missing"),
        (good.replace("\"shop.example.com/v1\"", "5"), "request.desiredAPIVersion is missing"),
        (good.replace("[]", "{}"), "request.objects is no list"),
    ] {
        let problem = Review::read(text.as_bytes()).err().unwrap_or_default();
        assert!(problem.contains(want), "{text}: {problem}");
    }
    assert!(Review::read(good.replace("[]", "null").as_bytes()).is_ok());
}

#[test]
fn files_are_taken_all_or_not_at_all_and_everything_that_is_wrong_is_said() {
    let lossy = CONVERSION.replace(
        "{move: {from: .spec.size, to: .spec.count}}",
        "{values: {path: .spec.size, to: .spec.count, map: {\"1\": 1, \"2\": 1}}}",
    );
    let other = CONVERSION.replace("widgets.", "gadgets.");
    let old = DEFINITION.replace("io/v1\n", "io/v1beta1\n");
    let twin = DEFINITION.replace("widgets.", "things.");
    for (texts, want) in [
        (vec![""], vec!["there is no CustomResourceDefinition"]),
        (vec![DEFINITION, &lossy], vec!["1.yaml, document 1", "spec.steps[0].rules[0]"]),
        (
            vec![DEFINITION, &other, "{"],
            vec![
                "2.yaml, document 1",
                r#"1.yaml, document 1 (from line 1 on): there is no definition "gadgets.shop.example.com""#,
            ],
        ),
        (
            vec![DEFINITION, CONVERSION, CONVERSION],
            vec![r#"the Conversion "widgets.shop.example.com" stands in 1.yaml"#],
        ),
        (vec![DEFINITION, DEFINITION], vec!["1.yaml, document 1 (from line 1 on): the CustomResourceDefinition"]),
        (vec![DEFINITION, &twin], vec!["widgets.shop.example.com has the same group and kind"]),
        (vec![&old], vec![r#"0.yaml, document 1 (from line 1 on): it is of "apiextensions.k8s.io/v1beta1", and only"#]),
    ] {
        let problems = read(&texts).err().unwrap_or_default().join("\n");
        for want in want {
            assert!(problems.contains(want), "{want}\nis not in\n{problems}");
        }
    }
}
