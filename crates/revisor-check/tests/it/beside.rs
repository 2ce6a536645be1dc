//! What definitions say beside their schemas, and versions beside each other.

use revisor_check::{Effort, SemverStep, declared};
use revisor_object::{Object, Value};

use crate::definitions::{boats, object, report, report_with, report_within, sent, told};

const SPEC: &str = r#"{"type":"object","properties":{"n":{"type":"integer"},"s":{"type":"string"}}}"#;

/// A definition and a change of it.
fn changed(more: [&str; 2], change: impl Fn(&mut Object)) -> Vec<String> {
    let (old, mut new) = (boats(&[("v1", SPEC)], more[0]), boats(&[("v1", SPEC)], more[1]));
    change(new.object_mut("spec"));
    told(&report(&old, &new).findings)
}

#[test]
fn what_is_said_of_the_whole_is_compared() {
    let same = ["", ""];
    let names = |spec: &mut Object, name: &str, value: Value| {
        spec.object_mut("names").insert(name, value);
    };
    assert_eq!(changed(same, |_| ()), [""; 0]);
    assert_eq!(changed(same, |spec| drop(spec.insert("scope", "Cluster"))), ["breaks all: spec.scope"]);
    assert_eq!(changed(same, |spec| drop(spec.insert("group", "lake.example"))), ["breaks all: spec.group"]);
    assert_eq!(changed(same, |spec| names(spec, "kind", "Ship".into())), ["breaks all: spec.names.kind"]);
    let short = Value::Array(vec!["bo".into()]);
    assert_eq!(changed(same, |spec| names(spec, "shortNames", short.clone())), ["additive: spec.names.shortNames"]);
    let status = r#","subresources":{"status":{}}"#;
    let path = "spec.versions[v1].subresources";
    assert_eq!(changed(["", status], |_| ()), [format!("breaks writers: {path}.status")]);
    assert_eq!(changed([status, ""], |_| ()), [format!("breaks writers: {path}.status")]);
    let scale = r#","subresources":{"scale":{"specReplicasPath":".spec.n","statusReplicasPath":".status.n"}}"#;
    let other = r#","subresources":{"scale":{"specReplicasPath":".spec.m","statusReplicasPath":".status.n"}}"#;
    assert_eq!(changed([scale, other], |_| ()), [format!("breaks readers: {path}.scale.specReplicasPath")]);
    let column = r#","additionalPrinterColumns":[{"name":"N","type":"integer","jsonPath":".spec.n"}]"#;
    let columns = "spec.versions[v1].additionalPrinterColumns";
    assert_eq!(changed([column, ""], |_| ()), [format!("breaks readers: {columns}")]);
    assert_eq!(changed(["", column], |_| ()), [format!("additive: {columns}")]);
    let selectable = r#","selectableFields":[{"jsonPath":".spec.s"}]"#;
    assert_eq!(changed([selectable, ""], |_| ()), ["breaks readers: spec.versions[v1].selectableFields"]);
    let deprecated = r#","deprecated":true"#;
    assert_eq!(changed(["", deprecated], |_| ()), ["additive: spec.versions[v1].deprecated"]);
    assert_eq!(
        changed(same, |spec| drop(spec.insert("conversion", object(r#"{"strategy":"Webhook"}"#)))),
        ["additive: spec.conversion.strategy"]
    );
}

#[test]
fn versions_come_and_go() {
    let one = boats(&[("v1", SPEC)], "");
    let two = boats(&[("v1", SPEC), ("v2", SPEC)], "");
    assert_eq!(told(&report(&one, &two).findings), ["additive: spec.versions[v2]"]);
    let gone = report(&two, &one);
    assert_eq!(told(&gone.findings), ["breaks all: spec.versions[v2]"]);
    assert_eq!(gone.step(), SemverStep::Major);
    let mut stored = two.clone();
    stored.object_mut("status").insert("storedVersions", vec![Value::from("v1"), Value::from("v2")]);
    let found = told(&report(&stored, &one).findings);
    assert_eq!(found, ["breaks all: spec.versions[v2]", "breaks all: status.storedVersions"]);
}

#[test]
fn a_field_that_another_version_does_not_show_breaks_its_readers_unless_rules_carry_it_over() {
    let size = r#"{"type":"object","properties":{"size":{"type":"integer"}}}"#;
    let count = r#"{"type":"object","properties":{"count":{"type":"integer"}}}"#;
    let (old, new) = (boats(&[("v1", size)], ""), boats(&[("v1", size), ("v2", count)], ""));
    let found = report(&old, &new);
    assert_eq!(told(&found.findings), ["breaks readers: .spec.size", "additive: spec.versions[v2]"]);
    let witness = found.findings[0].witness.clone().expect("is shown");
    assert_ne!(sent(size, &witness), sent(count, &witness));
    let rules = r#"{"apiVersion":"versioning.revisor.dev/v1alpha1","kind":"Conversion","metadata":{"name":"boats.sea.example"},
        "spec":{"steps":[{"from":"v1","to":"v2","rules":[{"move":{"from":".spec.size","to":".spec.count"}}]}]}}"#;
    assert_eq!(told(&report_with(&old, &new, rules).findings), ["additive: spec.versions[v2]"]);
    // What was so before is no change.
    assert_eq!(told(&report(&new, &new).findings), [""; 0]);
}

#[test]
fn what_is_canonical_otherwise_is_carried_over() {
    let tls = r#"{"type":"object","properties":{"tls":{"type":"string"}}}"#;
    let validation = r#"{"type":"object","properties":{"validation":{"type":"string"}}}"#;
    let (old, new) = (boats(&[("v1", tls)], ""), boats(&[("v1", validation)], ""));
    assert!(report(&old, &new).breaks());
    let rules = r#"{"apiVersion":"versioning.revisor.dev/v1alpha1","kind":"Conversion","metadata":{"name":"boats.sea.example"},
        "spec":{"canonicalize":[{"version":"v1","rules":[{"move":{"from":".spec.tls","to":".spec.validation"}}]}]}}"#;
    let found = report_with(&old, &new, rules);
    assert!(!found.breaks(), "{:#?}", found.findings);
}

#[test]
fn older_definitions_are_compared_with_newer_ones() {
    let mut old = boats(&[("v1", SPEC)], "");
    old.insert("apiVersion", "apiextensions.k8s.io/v1beta1");
    let found = report(&old, &boats(&[("v1", SPEC)], ""));
    assert_eq!(told(&found.findings), ["breaks readers: ."], "unknown fields were kept");
    assert_eq!(declared(&old, &old), Ok(None));
}

#[test]
fn what_the_new_storage_version_cannot_say_is_lost_to_the_others() {
    let small = r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#;
    let (old, new) = (boats(&[("v1", SPEC), ("v2", small)], ""), boats(&[("v2", small), ("v1", SPEC)], ""));
    let found = report(&old, &new);
    assert_eq!(told(&found.findings), ["breaks readers: .spec.s", "additive: spec.versions[v2].storage"]);
    let finding = &found.findings[0];
    assert_eq!(finding.version.as_deref(), Some("v1"));
    assert!(finding.message.starts_with("v1 once it is stored in v2: the field is gone"), "{}", finding.message);
    // The other way round more can be said.
    assert_eq!(told(&report(&new, &old).findings), ["additive: spec.versions[v1].storage"]);
}

#[test]
fn what_versions_differed_by_before_takes_no_work() {
    let fields = |of: &str, more: &str| {
        let many: Vec<String> = (0..100).map(|number| format!(r#""{of}{number}":{{"type":"string"}}"#)).collect();
        format!(r#"{{"type":"object","properties":{{{}{more}}}}}"#, many.join(","))
    };
    let (one, other) = (fields("a", ""), fields("b", ""));
    let more = fields("a", r#","late":{"type":"integer"}"#);
    let old = boats(&[("v1", &one), ("v2", &other)], "");
    let new = boats(&[("v1", &more), ("v2", &other)], "");
    let found = report_within(&old, &new, Effort { objects: 60, ..Effort::default() }).findings;
    let of_late = |finding: &&revisor_check::Finding| finding.path == ".spec.late" && finding.witness.is_some();
    assert!(found.iter().any(|finding| of_late(&finding)), "{:?}", told(&found));
    let is_cut_short = found.iter().any(|finding| finding.message.contains("cut short"));
    assert!(!is_cut_short, "{found:?}");
}
