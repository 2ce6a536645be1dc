//! Conversions and their definitions are two objects that must go together.

use std::time::Instant;

use revisor_object::{Object, Value};
use revisor_registry::{RegistryError, WriteOptions};

use crate::fixture::Fixture;

/// A definition whose second version takes numbers up to this one.
fn things(group: &str, most: i64, more: &str) -> String {
    let version = |name: &str, field: &str, most: i64| {
        format!(
            r#"{{"name":"{name}","served":true,"storage":{},"schema":{{"openAPIV3Schema":{{"type":"object","properties":{{
                "{field}":{{"type":"integer","minimum":0,"maximum":{most}}}}}}}}}}}"#,
            name == "v1"
        )
    };
    format!(
        r#"{{"metadata":{{"name":"things.{group}"{more}}},"spec":{{"group":"{group}","scope":"Cluster",
            "names":{{"plural":"things","kind":"Thing"}},"versions":[{},{}]}}}}"#,
        version("v1", "a", 10),
        version("v2", "b", most)
    )
}

fn conversion(group: &str) -> String {
    format!(
        r#"{{"metadata":{{"name":"things.{group}"}},"spec":{{"steps":[
            {{"from":"v1","to":"v2","rules":[{{"move":{{"from":".a","to":".b"}}}}]}}]}}}}"#
    )
}

fn version(object: &Object) -> String {
    let version = object.at(&["metadata", "resourceVersion"]).and_then(Value::as_str).expect("has a version");
    format!(r#","resourceVersion":"{version}""#)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_and_its_conversion_never_change_at_once() {
    let fixture = Fixture::new().await;
    // Each by itself fits what is there; both together break a law.
    for turn in 0..20 {
        let group = format!("g{turn}.example.com");
        let name = format!("things.{group}");
        fixture.create("customresourcedefinitions", &things(&group, 10, "")).await.expect("is valid");
        let made = fixture.get("customresourcedefinitions", &name).await.expect("is there");
        let (text, rules) = (things(&group, 5, &version(&made)), conversion(&group));
        let (definition, conversion) = tokio::join!(
            fixture.update("customresourcedefinitions", &name, &text),
            fixture.create("conversions", &rules)
        );
        assert!(definition.is_ok() != conversion.is_ok(), "{definition:?} {conversion:?}");
        for refused in [definition.err(), conversion.err()].into_iter().flatten() {
            assert!(matches!(refused, RegistryError::Invalid { .. }), "{refused:?}");
        }
    }
}

#[tokio::test]
async fn nothing_is_accepted_once_the_time_of_a_request_is_over() {
    let fixture = Fixture::new().await;
    fixture.create("customresourcedefinitions", &things("example.com", 10, "")).await.expect("is valid");
    let late = WriteOptions { deadline: Some(Instant::now()), ..WriteOptions::default() };
    let made = fixture.create_with("conversions", &conversion("example.com"), late).await;
    assert!(matches!(made, Err(RegistryError::TimedOut)), "{made:?}");
    fixture.create("conversions", &conversion("example.com")).await.expect("is valid");
}

#[tokio::test]
async fn a_conversion_is_in_effect_after_a_restart_and_is_not_written_again() {
    let fixture = Fixture::new().await;
    fixture.create("customresourcedefinitions", &things("example.com", 10, "")).await.expect("is valid");
    let made = fixture.create("conversions", &conversion("example.com")).await.expect("is valid");
    let fixture = fixture.reopened().await;
    assert_eq!(fixture.get("conversions", "things.example.com").await.expect("is there"), made);
    let stored = fixture.get("customresourcedefinitions", "things.example.com").await.expect("is there");
    let narrow = fixture
        .update("customresourcedefinitions", "things.example.com", &things("example.com", 5, &version(&stored)))
        .await;
    assert!(matches!(narrow, Err(RegistryError::Invalid { .. })), "{narrow:?}");
}
