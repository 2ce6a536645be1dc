//! Changes of a definition, and what is told of them.

use super::*;
use crate::kinds::tests::object;

/// A version with this schema of its spec: `v1 stored {…}`, `v2 served {…}`, `v3 off {…}`.
fn definition(versions: &[&str], conversion: &str) -> Object {
    let names = r#"{"plural":"boats","singular":"boat","kind":"Boat","listKind":"BoatList"}"#;
    let versions: Vec<String> = versions
        .iter()
        .map(|version| {
            let mut words = version.splitn(3, ' ');
            let [name, how, spec] = [(); 3].map(|()| words.next().expect("three words"));
            format!(
                r#"{{"name":"{name}","served":{},"storage":{},"schema":{{"openAPIV3Schema":{{"type":"object",
                    "properties":{{"spec":{{"type":"object",{spec}}}}}}}}}}}"#,
                how != "off",
                how == "stored"
            )
        })
        .collect();
    object(&format!(
        r#"{{"metadata":{{"name":"boats.example.com"}},"spec":{{"group":"example.com","scope":"Namespaced",
            "names":{names},"conversion":{conversion},"versions":[{}]}},"status":{{"acceptedNames":{names}}}}}"#,
        versions.join(",")
    ))
}

fn by_name(versions: &[&str]) -> Object {
    definition(versions, r#"{"strategy":"None"}"#)
}

fn between(before: &Object, after: &Object) -> Option<DefinitionChange> {
    let state = |object| DefinitionState { object, rules: None };
    DefinitionChange::between([state(before), state(after)], &Catalog::default())
}

/// What is told of these objects, which are `name version spec`.
fn told(before: &Object, after: &Object, stored: &[&str]) -> Vec<String> {
    let mut change = between(before, after).expect("something changes");
    for stored in stored {
        let mut words = stored.splitn(3, ' ');
        let [name, version, spec] = [(); 3].map(|()| words.next().expect("three words"));
        let text = format!(
            r#"{{"apiVersion":"example.com/{version}","kind":"Boat","metadata":{{"name":"{name}"}},"spec":{spec}}}"#
        );
        change.look_at(name, &object(&text));
    }
    change.warnings(Extent::Everything)
}

const TWO: &str = r#""properties":{"size":{"type":"integer"},"colour":{"type":"string"}}"#;
const SIZE: &str = r#""properties":{"size":{"type":"integer"}}"#;
const SMALL: &str = r#""properties":{"size":{"type":"integer","maximum":2},"colour":{"type":"string"}}"#;
const FULL: &str = r#""required":["name"],"properties":{"size":{"type":"integer","maximum":2},"colour":{"type":"string","enum":["red"]}}"#;
const LIST: &str = r#""properties":{"masts":{"type":"array","items":{"type":"object","properties":{
    "wood":{"type":"string"},"height":{"type":"integer"}}}}}"#;
const LOWER: &str = r#""properties":{"masts":{"type":"array","items":{"type":"object","properties":{
    "height":{"type":"integer","maximum":9}}}}}"#;

#[test]
fn what_matters_is_counted_by_field_and_named() {
    let boats = ["a v1 {\"size\":1,\"colour\":\"red\"}", "b v1 {\"size\":3}", "c v1 {\"size\":4,\"colour\":\"blue\"}"];
    let many = ["a v1 {\"size\":9}", "b v1 {\"size\":9}", "c v1 {\"size\":9}", "d v1 {\"size\":9}"];
    let masts = ["a v1 {\"masts\":[{\"wood\":\"oak\",\"height\":1},{\"wood\":\"fir\",\"height\":10},{\"height\":11}]}"];
    let v1 = |schema: &str| by_name(&[&format!("v1 stored {schema}")]);
    for (name, before, after, stored, want) in [
        ("a field goes", v1(TWO), v1(SIZE), &boats[..], &["2 of 3 boats would show less: .spec.colour (a, c)"][..]),
        ("a field comes", v1(SIZE), v1(TWO), &boats, &[]),
        ("a bound", v1(TWO), v1(SMALL), &boats, &["2 of 3 boats would no longer validate: .spec.size (b, c)"]),
        ("a bound that was there", v1(SMALL), v1(SIZE), &boats, &["2 of 3 boats would show less: .spec.colour (a, c)"]),
        (
            "three are named",
            v1(TWO),
            v1(SMALL),
            &many,
            &["4 of 4 boats would no longer validate: .spec.size (a, b, c)"],
        ),
        (
            "several fields",
            v1(TWO),
            v1(FULL),
            &boats,
            &["3 of 3 boats would no longer validate: 3 by .spec.name (a, b, c), 2 by .spec.size (b, c), \
               1 by .spec.colour (c)"],
        ),
        (
            "in lists",
            v1(LIST),
            v1(LOWER),
            &masts,
            &[
                "1 of 1 boats would no longer validate: .spec.masts[*].height (a)",
                "1 of 1 boats would show less: .spec.masts[*].wood (a)",
            ],
        ),
    ] {
        assert_eq!(told(&before, &after, stored), want, "{name}");
    }
}

#[test]
fn versions_are_looked_at_one_by_one() {
    let (v1, v2) = (
        |schema: &str, how: &str| format!("v1 {how} {schema}"),
        |schema: &str, how: &str| format!("v2 {how} {schema}"),
    );
    let both = |one: &str, two: &str| by_name(&[one, two]);
    let before = both(&v1(TWO, "stored"), &v2(TWO, "served"));
    let stored = ["a v1 {\"size\":1,\"colour\":\"red\"}", "b v1 {\"size\":3}"];
    for (name, after, want) in [
        (
            "one version no longer says it",
            both(&v1(TWO, "stored"), &v2(SIZE, "served")),
            &["1 of 2 boats would show less: .spec.colour at v2 (a)"][..],
        ),
        (
            "the stored one no longer says it, so none does",
            both(&v1(SIZE, "stored"), &v2(TWO, "served")),
            &["1 of 2 boats would show less: .spec.colour at v1, v2 (a)"],
        ),
        ("a version goes that said nothing else", both(&v1(TWO, "stored"), &v2(TWO, "off")), &[]),
        (
            "the only version goes that said it",
            both(&v1(TWO, "off"), &v2(SIZE, "stored")),
            &["1 of 2 boats would show less: .spec.colour at v1, v2 (a)"],
        ),
        (
            "what is to be stored cannot say it",
            both(&v1(TWO, "served"), &v2(SIZE, "stored")),
            &[
                "1 of 2 boats would show less: .spec.colour at v2 (a)",
                "1 of 2 boats would show less once they are written: .spec.colour at v1 (a)",
            ],
        ),
        (
            "a version comes in which some are not valid",
            by_name(&[&v1(TWO, "stored"), &v2(TWO, "served"), &format!("v3 served {SMALL}")]),
            &["1 of 2 boats would no longer validate: .spec.size at v3 (b)"],
        ),
    ] {
        assert_eq!(told(&before, &after, &stored), want, "{name}");
    }
    // What would be lost anyway is not the fault of this change.
    let before = both(&v1(TWO, "served"), &v2(SIZE, "stored"));
    let after = both(&v1(SMALL, "served"), &v2(SIZE, "stored"));
    assert_eq!(told(&before, &after, &stored), ["1 of 2 boats would no longer validate: .spec.size at v1 (b)"]);
}

#[test]
fn what_only_a_webhook_can_convert_is_looked_at_as_it_is_stored() {
    let webhook = r#"{"strategy":"Webhook","webhook":{"clientConfig":{"url":"https://a"}}}"#;
    let boats = |one: &str, two: &str| definition(&[&format!("v1 stored {one}"), &format!("v2 served {two}")], webhook);
    let stored = ["a v1 {\"size\":3,\"colour\":\"red\"}", "b v2 {\"size\":3}"];
    assert_eq!(
        told(&boats(TWO, TWO), &boats(SMALL, SIZE), &stored),
        ["1 of 2 boats would no longer validate: .spec.size at v1 (a)"]
    );
}

#[test]
fn changes_that_are_none_for_objects_are_not_looked_at() {
    let before = by_name(&[&format!("v1 stored {TWO}")]);
    let mut after = before.clone();
    after.object_mut("metadata").object_mut("labels").insert("a", "b");
    after.object_mut("spec").object_mut("names").insert("categories", vec![Value::from("all")]);
    assert!(between(&before, &after).is_none());
    after.object_mut("spec").insert("preserveUnknownFields", true);
    assert!(between(&before, &after).is_some());
}

#[test]
fn estimates_are_said_to_be_some() {
    let v1 = |schema: &str| by_name(&[&format!("v1 stored {schema}")]);
    let mut change = between(&v1(TWO), &v1(SMALL)).expect("something changes");
    for (name, size) in [("a", 1), ("b", 3), ("c", 4)] {
        let boat = format!(r#"{{"apiVersion":"example.com/v1","kind":"Boat","spec":{{"size":{size}}}}}"#);
        change.look_at(name, &object(&boat));
    }
    for (extent, want) in [
        (Extent::Everything, &["2 of 3 boats would no longer validate: .spec.size (b, c)"][..]),
        (
            Extent::Sample(300_000),
            &["about 200000 of 300000 boats (an estimate: 2 of 3 that were looked at) would no longer validate: \
               .spec.size (b, c)"],
        ),
        (
            Extent::CutShort(70),
            &[
                "there was no time to look at all 70 boats: only 3 were looked at",
                "2 of 3 boats that were looked at would no longer validate: .spec.size (b, c)",
            ],
        ),
    ] {
        assert_eq!(change.warnings(extent), want, "{extent:?}");
    }
}

#[test]
fn fields_are_bounded() {
    let properties: Vec<String> = (0..200).map(|at| format!(r#""f{at}":{{"type":"integer"}}"#)).collect();
    let v1 = |schema: &str| by_name(&[&format!("v1 stored {schema}")]);
    let before = v1(&format!(r#""properties":{{{}}}"#, properties.join(",")));
    let spec: Vec<String> = (0..200).map(|at| format!(r#""f{at}":1"#)).collect();
    let stored = format!("a v1 {{{}}}", spec.join(","));
    let told = told(&before, &v1(SIZE), &[&stored]);
    assert_eq!(
        told,
        [
            "1 of 1 boats would show less: 1 by .spec.f0 (a), 1 by .spec.f1 (a), 1 by .spec.f10 (a), more than 61 more fields"
        ]
    );
}

#[test]
fn paths_are_the_same_for_all_items() {
    for (field, want) in [
        ("spec.size", ".spec.size"),
        ("spec.a[12].b[0]", ".spec.a[*].b[*]"),
        ("spec.m[odd.key].x", ".spec.m[odd.key].x"),
        ("", "."),
        ("<nil>", "."),
        ("a[", ".a["),
    ] {
        assert_eq!(general(field), want, "{field}");
    }
}

#[test]
fn what_is_only_tried_is_not_counted_among_the_conversions() {
    let catalog = Catalog::default();
    let [old, new] = ["1", "2"].map(|maximum| {
        let size = format!(r#""properties":{{"size":{{"type":"integer","maximum":{maximum}}}}}"#);
        by_name(&[&format!("v1 stored {size}"), &format!("v2 served {size}")])
    });
    let state = |object| DefinitionState { object, rules: None };
    let mut change = DefinitionChange::between([state(&old), state(&new)], &catalog).expect("something changes");
    change.look_at(
        "a",
        &object(r#"{"apiVersion":"example.com/v1","kind":"Boat","metadata":{"name":"a"},"spec":{"size":1}}"#),
    );
    assert!(catalog.conversion_samples().iter().all(|sample| sample.ways.is_empty()));
    let resources = Definition::read(&old).resources(&catalog, None).expect("a version is stored");
    let other = resources.served.iter().find(|known| !known.is_storage()).expect("is served");
    shown(other, &object(r#"{"apiVersion":"example.com/v1","kind":"Boat"}"#)).expect("can be shown");
    assert!(catalog.conversion_samples().iter().any(|sample| !sample.ways.is_empty()), "what clients ask for is");
}
