//! Definitions of boats, and what a change of one does.

use std::sync::Arc;

use revisor_cel::Environment;
use revisor_check::{Class, Crd, Effort, Finding, Report};
use revisor_convert::{Conversion, Definition, Spec, VersionSchema};
use revisor_object::{Object, Value, parse_json};
use revisor_schema::Structural;
use revisor_version::Release;

pub(crate) const RELEASE: Release = Release { major: 1, minor: 36 };

#[track_caller]
pub(crate) fn object(text: &str) -> Object {
    match parse_json(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}")).value {
        Value::Object(object) => object,
        other => panic!("no object: {other:?}"),
    }
}

/// A definition with these versions, each with its name and the schema of its `spec`, and more.
pub(crate) fn boats(versions: &[(&str, &str)], more: &str) -> Object {
    let list: Vec<String> = versions
        .iter()
        .enumerate()
        .map(|(at, (name, spec))| {
            let storage = at == 0;
            format!(
                r#"{{"name":"{name}","served":true,"storage":{storage},"schema":{{"openAPIV3Schema":{{"type":"object","properties":{{"spec":{spec},"status":{{"type":"object"}}}}}}}}{more}}}"#
            )
        })
        .collect();
    object(&format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"boats.sea.example"}},
            "spec":{{"group":"sea.example","scope":"Namespaced","names":{{"plural":"boats","kind":"Boat"}},
            "versions":[{}]}}}}"#,
        list.join(",")
    ))
}

#[track_caller]
pub(crate) fn report(old: &Object, new: &Object) -> Report {
    report_within(old, new, Effort::default())
}

#[track_caller]
pub(crate) fn report_within(old: &Object, new: &Object, effort: Effort) -> Report {
    let environment = Environment::new(RELEASE);
    let [old, new] = [old, new].map(|made| Crd::read(made, &environment, RELEASE.minor.into()).expect("can be read"));
    old.compare(&new, None, effort)
}

#[track_caller]
pub(crate) fn report_with(old: &Object, new: &Object, conversion: &str) -> Report {
    let environment = Environment::new(RELEASE);
    let definition = Definition::read(new, &environment, RELEASE.minor.into()).expect("is a definition");
    let spec = Spec::read(&object(conversion)).expect("is a Conversion");
    let conversion = Conversion::compile(Arc::new(definition), &spec, &environment).expect("can be carried out");
    let [old, new] = [old, new].map(|made| Crd::read(made, &environment, RELEASE.minor.into()).expect("can be read"));
    old.compare(&new, Some(&conversion), Effort::default())
}

/// Findings as text: their class and path.
pub(crate) fn told(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(|finding| format!("{}: {}", finding.class, finding.path)).collect()
}

/// What a schema of a spec says of an object that is sent: what it shows, or nothing if it is refused.
pub(crate) fn sent(spec: &str, witness: &Value) -> Option<Value> {
    let text = format!(r#"{{"type":"object","properties":{{"spec":{spec},"status":{{"type":"object"}}}}}}"#);
    let schema = Structural::read(&object(&text));
    let version =
        VersionSchema::new("sea.example", "Boat", "v1", schema, &Environment::new(RELEASE), RELEASE.minor.into());
    let mut shown = witness.clone();
    version.structural().prune_with_nulls(shown.as_object_mut().expect("an object"));
    version.fill_defaults(&mut shown);
    version.is_valid(&shown).then_some(shown)
}

/// Checks that a change of the schema of `spec` is found at a path with a class, and that the witness shows it.
#[track_caller]
pub(crate) fn check(name: &str, old: &str, new: &str, class: Class, path: &str) {
    let found = report(&boats(&[("v1", old)], ""), &boats(&[("v1", new)], ""));
    let worst = found.findings.iter().map(|finding| finding.class).max();
    assert_eq!(worst, Some(class), "{name}: {:#?}", found.findings);
    let finding = found.findings.iter().find(|finding| finding.class == class && finding.path == path);
    let Some(finding) = finding else { panic!("{name}: nothing at {path}: {:#?}", found.findings) };
    let Some(witness) = &finding.witness else {
        assert_eq!(class, Class::Additive, "{name}: no witness: {finding:?}");
        return;
    };
    let (before, after) = (sent(old, witness), sent(new, witness));
    let json = witness.to_json();
    match class {
        Class::BreaksWriters => {
            assert!(before.is_some(), "{name}: {json} was not valid before: {finding:?}");
            assert!(after.is_none(), "{name}: {json} is valid after: {finding:?}");
        }
        Class::BreaksReaders => assert_ne!(before, after, "{name}: {json} shows the same: {finding:?}"),
        _ => {}
    }
}
