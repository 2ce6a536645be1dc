//! What is stored of custom objects, and what each version shows of that.

use std::sync::Arc;

use super::*;
use crate::kinds::tests::object;
use crate::{Catalog, Definition, Resource};

/// A definition whose `v1` is stored; each version has a field of its own, and one that is called differently in both.
fn definition(conversion: &str) -> Object {
    let names = r#"{"plural":"things","singular":"thing","kind":"Thing","listKind":"ThingList"}"#;
    let version = |name: &str, count: &str, own: &str| {
        format!(
            r#"{{"name":"{name}","served":true,"storage":{},"schema":{{"openAPIV3Schema":{{"type":"object","properties":
                {{"spec":{{"type":"object","properties":{{"{count}":{{"type":"integer"}},"{own}":{{"type":"string"}}}}}}}}}}}}}}"#,
            name == "v1"
        )
    };
    object(&format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
            "metadata":{{"name":"things.example.com"}},"spec":{{"group":"example.com","scope":"Namespaced",
            "names":{names},"conversion":{conversion},"versions":[{},{}]}},"status":{{"acceptedNames":{names}}}}}"#,
        version("v1", "size", "first"),
        version("v2", "count", "second")
    ))
}

fn rules(definition: &Object, spec: &str, catalog: &Catalog) -> Arc<revisor_convert::Conversion> {
    let environment = catalog.rule_environment();
    let read = revisor_convert::Definition::read(definition, environment, catalog.formats().minor.into());
    let spec = revisor_convert::Spec::read(&object(&format!(r#"{{"spec":{spec}}}"#))).expect("is well formed");
    let compiled = revisor_convert::Conversion::compile(Arc::new(read.expect("is one")), &spec, environment);
    Arc::new(compiled.expect("can be carried out"))
}

/// What `v1` and `v2` know of objects under this strategy and these rules.
fn versions(strategy: &str, spec: Option<&str>) -> [Arc<Resource>; 2] {
    let catalog = Catalog::default();
    let definition = definition(strategy);
    let rules = spec.map(|spec| rules(&definition, spec, &catalog));
    let resources = Definition::read(&definition).resources(&catalog, rules).expect("one version is stored");
    resources.served.try_into().expect("both are served")
}

const MOVE: &str = r#"{"steps":[{"from":"v1","to":"v2","rules":[{"move":{"from":".spec.size","to":".spec.count"}}]}]}"#;
const WEBHOOK: &str = r#"{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://127.0.0.1"},
    "conversionReviewVersions":["v1"]}}"#;

fn thing(version: &str, spec: &str) -> Object {
    object(&format!(
        r#"{{"apiVersion":"example.com/{version}","kind":"Thing","metadata":{{"name":"a"}},"spec":{spec}}}"#
    ))
}

fn kept(mut stored: Object, annotation: &str) -> Object {
    stored.object_mut("metadata").object_mut("annotations").insert(KEPT_ANNOTATION, annotation);
    stored
}

fn custom(resource: &Arc<Resource>) -> &Custom {
    resource.custom().expect("is custom")
}

/// Writes an object through a version in place of what is stored.
fn write(version: &Arc<Resource>, stored: Option<&Object>, spec: &str) -> Object {
    let beneath = stored.map_or(Beneath::Nothing, |stored| custom(version).show_to_write(stored.clone()).1);
    custom(version).lay_down(thing(&version.version, spec), &beneath).expect("can be stored").stored
}

fn spec(object: &Object) -> String {
    object.get("spec").expect("has a spec").to_json()
}

fn show(version: &Arc<Resource>, stored: &Object) -> String {
    let shown = custom(version).show(stored.clone()).expect("can be shown");
    assert_eq!(shown.str("apiVersion"), Some(&*version.api_version));
    assert!(!shown.contains(KEPT_ANNOTATION) && !Value::Object(shown.clone()).to_json().contains(KEPT_ANNOTATION));
    spec(&shown)
}

#[test]
fn by_rules_each_version_keeps_what_it_alone_can_say() {
    let [v1, v2] = &versions("{}", Some(MOVE));
    let stored = write(v2, None, r#"{"count":3,"second":"x"}"#);
    assert_eq!((stored.str("apiVersion"), &*spec(&stored)), (Some("example.com/v1"), r#"{"size":3}"#));
    assert_eq!(show(v1, &stored), r#"{"size":3}"#);
    assert_eq!(show(v2, &stored), r#"{"count":3,"second":"x"}"#);

    let changed = write(v1, Some(&stored), r#"{"first":"y","size":4}"#);
    assert_eq!(show(v2, &changed), r#"{"count":4,"second":"x"}"#);
    for (version, seen) in [(v1, r#"{"first":"y","size":4}"#), (v2, r#"{"count":4,"second":"x"}"#)] {
        assert_eq!(write(version, Some(&changed), seen), changed, "{}: nothing is changed", version.version);
    }
    let elsewhere = thing("v2", r#"{"count":5,"second":"z"}"#);
    assert_eq!(show(v1, &elsewhere), r#"{"size":5}"#);
    let again = write(v1, Some(&elsewhere), r#"{"size":6}"#);
    assert_eq!(again.str("apiVersion"), Some("example.com/v1"), "stored anew in the version that is to be stored");
    assert_eq!(show(v2, &again), r#"{"count":6,"second":"z"}"#);
}

#[test]
fn an_object_that_says_all_in_the_stored_version_has_nothing_beside_it() {
    let [v1, _] = &versions("{}", Some(MOVE));
    let stored = thing("v1", r#"{"first":"x","size":1}"#);
    let (shown, beneath) = custom(v1).show_to_write(stored.clone());
    assert_eq!(shown, Ok(stored.clone()));
    assert!(matches!(beneath, Beneath::Nothing), "{beneath:?}");
    assert_eq!(custom(v1).lay_down(stored.clone(), &beneath).expect("can be stored").stored, stored);
}

#[test]
fn whoever_converts_what_is_kept_is_not_shown_and_not_lost() {
    for (name, strategy) in [("by name", "{}"), ("by webhook", WEBHOOK), ("impossible", r#"{"strategy":"Magic"}"#)] {
        let [v1, _] = &versions(strategy, None);
        let stored = kept(thing("v1", r#"{"size":1}"#), r#"{"v2":{}}"#);
        assert_eq!(show(v1, &stored), r#"{"size":1}"#, "{name}");
        let written = write(v1, Some(&stored), r#"{"size":1}"#);
        assert_eq!(written, stored, "{name}");
    }
    let [v1, v2] = &versions("{}", None);
    let stored = kept(thing("v1", r#"{"size":1}"#), r#"{"v2":{}}"#);
    assert_eq!(show(v2, &stored), "{}", "{}", v1.version);
    let written = write(v2, Some(&stored), "{}");
    assert_eq!(written.at(&["metadata", "annotations", KEPT_ANNOTATION]), Some(&Value::from(r#"{"v2":{}}"#)));
}

/// On other clusters a webhook finds in the object itself what other versions keep, and answers what is to be kept.
#[test]
fn what_is_kept_goes_to_the_webhook_and_comes_back_from_it() {
    let [_, v2] = &versions(WEBHOOK, None);
    let stored = kept(thing("v1", r#"{"size":1}"#), r#"{"v2":{}}"#);
    let (Err(Unconverted::Asks { object: asked, .. }), _) = custom(v2).show_to_write(stored.clone()) else {
        panic!("it has to be asked");
    };
    assert_eq!(asked, stored, "as it is stored");
    let mut answered = kept(thing("v2", r#"{"count":1,"second":"x"}"#), r#"{"v1":{}}"#);
    let beneath = custom(v2).take_in(&mut answered);
    assert_eq!(answered, thing("v2", r#"{"count":1,"second":"x"}"#), "nobody is shown it");
    let Err(Unconverted::Asks { object: asked, .. }) = custom(v2).lay_down(answered, &beneath) else {
        panic!("it has to be asked");
    };
    assert_eq!(asked, kept(thing("v2", r#"{"count":1,"second":"x"}"#), r#"{"v1":{}}"#), "as it was answered");
    assert_eq!(custom(v2).lay_down_converted(stored.clone()), stored, "and stored as it is answered");
}

#[test]
fn damage_is_read_over_and_never_written_over() {
    let [v1, v2] = &versions("{}", Some(MOVE));
    for text in ["", "{", "[]", r#"{"v2":7}"#, r#"{"v2":{"spec":{"second":"x"}}}"#] {
        let stored = kept(thing("v1", r#"{"size":1}"#), text);
        let is_damaged = matches!(custom(v1).show_to_write(stored.clone()).1, Beneath::Damaged(..));
        assert_eq!(show(v1, &stored), r#"{"size":1}"#, "{text}");
        show(v2, &stored);
        if is_damaged {
            let (_, beneath) = custom(v2).show_to_write(stored.clone());
            let refused = custom(v2).lay_down(thing("v2", r#"{"count":2}"#), &beneath);
            let Err(Unconverted::Failed(why)) = refused else { panic!("{text}: {refused:?}") };
            assert!(why.contains("would be lost"), "{why}");
            let written = write(v1, Some(&stored), r#"{"size":2}"#);
            assert_eq!(written.at(&["metadata", "annotations", KEPT_ANNOTATION]), Some(&Value::from(text)), "{text}");
        }
    }
    let (_, beneath) = custom(v1).show_to_write(kept(thing("v1", "{}"), "{"));
    assert!(matches!(beneath, Beneath::Damaged(..)), "{beneath:?}");
}

#[test]
fn an_expression_that_fails_says_which_rule_it_is() {
    let compute = r#"{"steps":[{"from":"v1","to":"v2","rules":[{"compute":{"from":{"size":".spec.size"},
        "to":{"count":".spec.count"},"forward":{"count":"10 / size"},"backward":{"size":"10 / count"}}}]}]}"#;
    let [v1, v2] = &versions("{}", Some(compute));
    assert!(!v1.is_certain() && !custom(v1).asks_others());
    assert_eq!(show(v2, &thing("v1", r#"{"size":5}"#)), r#"{"count":2}"#);
    let failed = custom(v2).show(thing("v1", r#"{"size":0}"#));
    let Err(Unconverted::Failed(why)) = failed else { panic!("{failed:?}") };
    assert!(why.contains("spec.steps[0].rules[0]") && why.contains("division by zero"), "{why}");
    assert_eq!(show(v1, &thing("v1", r#"{"size":0}"#)), r#"{"size":0}"#, "its own version needs no expression");
}

#[test]
fn what_is_sent_and_what_is_stored_become_canonical() {
    let canonical = r#"{"canonicalize":[{"version":"v1","rules":[{"move":{"from":".spec.old","to":".spec.first"}}]}]}"#;
    let [v1, _] = &versions("{}", Some(canonical));
    assert!(v1.is_certain());
    for (sent, want) in [
        (r#"{"old":"x","size":1}"#, r#"{"first":"x","size":1}"#),
        (r#"{"first":"new","old":"x"}"#, r#"{"first":"new"}"#),
    ] {
        assert_eq!(show(v1, &thing("v1", sent)), want);
        let mut value = Value::Object(kept(thing("v1", sent), "{}"));
        let findings = v1.conform(&mut value).expect("fits");
        assert!(findings.unknown_fields.is_empty(), "it is known by its old name");
        assert_eq!(value, Value::Object(thing("v1", want)), "and the annotation is ignored");
    }
}

#[test]
fn conversions_are_counted() {
    let catalog = Catalog::default();
    let definition = definition("{}");
    let rules = rules(&definition, MOVE, &catalog);
    let resources = Definition::read(&definition).resources(&catalog, Some(rules)).expect("one version is stored");
    let [v1, v2]: [Arc<Resource>; 2] = resources.served.try_into().expect("both are served");
    let stored = write(&v2, None, r#"{"count":3,"second":"x"}"#);
    show(&v2, &stored);
    show(&v2, &stored);
    show(&v1, &stored);
    let [sample] = &catalog.conversion_samples()[..] else { panic!("there is one definition") };
    let ways: Vec<_> = sample.ways.iter().map(|way| (&*way.from, &*way.to, way.way, way.count)).collect();
    assert_eq!(ways, [("v2", "v1", "rules", 1), ("v1", "v2", "rules", 2)]);
    let annotation = stored.at(&["metadata", "annotations", KEPT_ANNOTATION]).and_then(Value::as_str).map(str::len);
    assert_eq!((&*sample.definition, Some(sample.kept_bytes as usize)), ("things.example.com", annotation));
}

#[test]
fn what_is_taken_as_it_is_stored_is_stored_as_it_was() {
    let [_, v2] = &versions("{}", Some(MOVE));
    let stored = kept(thing("v1", r#"{"size":1}"#), "{");
    let (mut object, beneath) = custom(v2).take_stored(stored.clone());
    object.insert("apiVersion", "example.com/v2");
    assert_eq!(custom(v2).lay_down(object, &beneath).expect("can be stored").stored, stored);
}
