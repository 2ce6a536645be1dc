//! StorageVersionMigrations: what is stored otherwise is stored anew, and what is not said to be.

use std::sync::Arc;
use std::time::Duration;

use revisor_catalog::Resource;
use revisor_controllers::Controller;
use revisor_object::{Object, Value};
use revisor_registry::{Decoded, FieldValidation, Format, Place, WriteOptions};
use revisor_store::{Change, Draft, Expect, Key, Write};

use crate::fixture::{Fixture, parse, text_at};

const MIGRATIONS: &str = "storageversionmigrations";
const DEFINITIONS: &str = "customresourcedefinitions";
const MIGRATOR: [Controller; 1] = [Controller::StorageVersionMigrator];

/// How far the clock is moved at a time: many portions of a migration.
const LEAP: Duration = Duration::from_millis(100);

/// Versions of a definition; this one is stored.
fn versions(storage: &str) -> String {
    let version = |name: &str| {
        let is_stored = name == storage;
        let schema =
            r#"{"type":"object","properties":{"spec":{"type":"object","properties":{"n":{"type":"integer"}}}}}"#;
        format!(r#"{{"name":"{name}","served":true,"storage":{is_stored},"schema":{{"openAPIV3Schema":{schema}}}}}"#)
    };
    format!("[{},{}]", version("v1"), version("v2"))
}

/// Defines sails, which are stored as v1, and makes so many.
async fn sails(fixture: &Fixture, count: usize, conversion: &str) {
    let names = r#"{"plural":"sails","singular":"sail","kind":"Sail","listKind":"SailList"}"#;
    let definition = format!(
        r#"{{"metadata":{{"name":"sails.yard.example"}},"spec":{{"group":"yard.example","scope":"Cluster","names":{names},
            "conversion":{conversion},"versions":{}}}}}"#,
        versions("v1")
    );
    fixture.create(DEFINITIONS, None, &definition).await;
    let resource = sail(fixture, "v1");
    for number in 0..count {
        let text = format!(
            r#"{{"apiVersion":"yard.example/v1","kind":"Sail","metadata":{{"name":"s{number}"}},"spec":{{"n":{number}}}}}"#
        );
        let decoded = Decoded::read(&resource, Format::Json, text.as_bytes(), FieldValidation::Strict).expect("fits");
        let place = Place { resource: &resource, namespace: None, name: None };
        fixture.registry.create(place, decoded, WriteOptions::default()).await.expect("is made");
    }
}

fn sail(fixture: &Fixture, version: &str) -> Arc<Resource> {
    fixture.registry.catalog().resource("yard.example", version, "sails").expect("is served").clone()
}

async fn store_as(fixture: &Fixture, version: &str) {
    let patch = format!(r#"{{"spec":{{"versions":{}}}}}"#, versions(version));
    fixture.patch(DEFINITIONS, None, "sails.yard.example", &patch).await;
}

async fn migrate(fixture: &Fixture, name: &str, group: &str, plural: &str) {
    let text = format!(
        r#"{{"metadata":{{"name":"{name}"}},"spec":{{"resource":{{"group":"{group}","resource":"{plural}"}}}}}}"#
    );
    fixture.create(MIGRATIONS, None, &text).await;
}

/// A condition of a migration as `status: message`.
fn condition(fixture: &Fixture, migration: &str, kind: &str) -> Option<String> {
    let migration = fixture.get(MIGRATIONS, None, migration)?;
    let status = migration.object("status")?;
    let mut conditions = status.array("conditions").iter().filter_map(Value::as_object);
    let found = conditions.find(|condition| condition.str("type") == Some(kind))?;
    Some(format!("{}: {}", found.str("status")?, found.str("message")?))
}

/// Waits for a condition while time passes.
#[track_caller]
fn becomes<'f>(fixture: &'f Fixture, migration: &'f str, kind: &'f str) -> impl Future<Output = String> + 'f {
    fixture.clock.advance_until(LEAP, move || condition(fixture, migration, kind))
}

fn stored_versions(fixture: &Fixture) -> String {
    let definition = fixture.get(DEFINITIONS, None, "sails.yard.example").expect("is defined");
    definition.at(&["status", "storedVersions"]).expect("is told").to_json()
}

/// How many sails are stored in which version.
fn counts(fixture: &Fixture) -> Vec<(String, u64)> {
    let counts = fixture.registry.stored_versions(&sail(fixture, "v1"));
    counts.into_iter().filter(|(_, objects)| *objects > 0).collect()
}

fn migrating(fixture: &Fixture) -> String {
    let definition = fixture.get(DEFINITIONS, None, "sails.yard.example").expect("is defined");
    let conditions = definition.object("status").expect("a status").array("conditions");
    let is = |known: &&Object| known.str("type") == Some("StorageMigrating");
    let found = conditions.iter().filter_map(Value::as_object).find(is).expect("is told");
    format!("{} {}", text_at(found, &["status"]), text_at(found, &["reason"]))
}

const NONE: &str = r#"{"strategy":"None"}"#;

#[tokio::test]
async fn everything_is_stored_anew_and_versions_in_which_nothing_is_stored_are_no_longer_named() {
    let fixture = Fixture::everything().await;
    sails(&fixture, 200, NONE).await;
    store_as(&fixture, "v2").await;
    assert_eq!((stored_versions(&fixture), counts(&fixture)), (r#"["v1","v2"]"#.into(), vec![("v1".into(), 200)]));
    let before = fixture.get(MIGRATIONS, None, "m");
    assert!(before.is_none());
    migrate(&fixture, "m", "yard.example", "sails").await;
    let _controllers = fixture.start(&MIGRATOR);
    assert_eq!(becomes(&fixture, "m", "Succeeded").await, "True: 200 done, 0 left");
    assert_eq!(condition(&fixture, "m", "Running").as_deref(), Some("False: Migration completed"));
    assert_eq!((stored_versions(&fixture), counts(&fixture)), (r#"["v2"]"#.into(), vec![("v2".into(), 200)]));
    assert_eq!(migrating(&fixture), "False MigrationSucceeded");
    let migration = fixture.get(MIGRATIONS, None, "m").expect("is there");
    assert!(text_at(&migration, &["status", "resourceVersion"]).parse::<u64>().is_ok(), "{migration:?}");

    // Nothing is written that is stored as it is to be.
    let revision = |fixture: &Fixture| {
        let sails = fixture.registry.cache_of(&sail(fixture, "v1")).snapshot();
        sails.range("", None).map(|item| item.revision()).max()
    };
    let last = revision(&fixture);
    migrate(&fixture, "again", "yard.example", "sails").await;
    assert_eq!(becomes(&fixture, "again", "Succeeded").await, "True: 200 done, 0 left");
    assert_eq!(revision(&fixture), last);
}

#[tokio::test]
async fn what_was_begun_goes_on_with_another_controller() {
    let fixture = Fixture::everything().await;
    sails(&fixture, 150, NONE).await;
    store_as(&fixture, "v2").await;
    migrate(&fixture, "m", "yard.example", "sails").await;
    let controllers = fixture.start(&MIGRATOR);
    // The first portion is stored, and then the clock stands still until the next one.
    fixture.clock.awaited(Duration::from_micros(3_600)).await;
    fixture.clock.advance(Duration::from_micros(3_600));
    fixture.clock.awaited(Duration::from_micros(7_200)).await;
    let begun = fixture.get(MIGRATIONS, None, "m").expect("is there");
    controllers.stop().await;
    let counted = counts(&fixture);
    assert_eq!(counted.len(), 2, "{counted:?}");
    assert_eq!(
        condition(&fixture, "m", "Running").as_deref(),
        Some("True: The migration is running: 0 done, 150 left")
    );
    assert_eq!(
        (stored_versions(&fixture), migrating(&fixture)),
        (r#"["v1","v2"]"#.into(), "True MigrationRunning".into())
    );

    let _controllers = fixture.start(&MIGRATOR);
    assert_eq!(becomes(&fixture, "m", "Succeeded").await, "True: 150 done, 0 left");
    assert_eq!((stored_versions(&fixture), counts(&fixture)), (r#"["v2"]"#.into(), vec![("v2".into(), 150)]));
    let version = |migration: &Object| text_at(migration, &["status", "resourceVersion"]);
    assert_eq!(version(&fixture.get(MIGRATIONS, None, "m").expect("is there")), version(&begun));
}

#[tokio::test]
async fn one_that_cannot_be_finished_names_the_objects_and_trims_nothing() {
    let fixture = Fixture::everything().await;
    let webhook = r#"{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"https://127.0.0.1:1/convert"}}}"#;
    sails(&fixture, 12, webhook).await;
    store_as(&fixture, "v2").await;
    migrate(&fixture, "m", "yard.example", "sails").await;
    let _controllers = fixture.start(&MIGRATOR);
    // Whoever converts may only be away for a moment.
    let trying = || condition(&fixture, "m", "Running").filter(|told| told.contains("trying again"));
    let told = fixture.clock.advance_until(Duration::from_millis(1), trying).await;
    assert!(told.starts_with("True: The migration is running: 0 done, 12 left; trying again: s0, s1, s10, "), "{told}");
    let told = fixture.clock.advance_until(Duration::from_secs(5), || condition(&fixture, "m", "Failed")).await;
    let want =
        "True: 0 done, 12 left: s0, s1, s10, s11, s2, s3, s4, s5, s6, s7 and 2 others could not be stored anew: ";
    assert!(told.starts_with(want), "{told}");
    assert_eq!(condition(&fixture, "m", "Running").as_deref(), Some("False: Migration completed"));
    assert_eq!(condition(&fixture, "m", "Succeeded"), None);
    assert_eq!((stored_versions(&fixture), counts(&fixture)), (r#"["v1","v2"]"#.into(), vec![("v1".into(), 12)]));
    assert_eq!(migrating(&fixture), "False MigrationFailed");
}

#[tokio::test]
async fn built_in_objects_are_stored_anew_too() {
    let fixture = Fixture::everything().await;
    fixture.config_map("usual", "").await;
    let maps = fixture.resource("configmaps");
    // As another program may have stored it: with members in another order, and a field that nobody knows.
    let key = maps.key(Some("default"), "odd");
    let odd = r#"{"metadata":{"uid":"u","namespace":"default","name":"odd","creationTimestamp":"2026-01-01T00:00:00Z"},"data":{"a":"b"},"kind":"ConfigMap","apiVersion":"v1"}"#;
    let write = Write { key: Key::new(key.clone()), expect: Expect::Absent, change: Change::Put(Draft::opaque(odd)) };
    fixture.registry.cache().write(write).await.expect("is written");
    let untouched =
        fixture.registry.cache_of(&maps).get(&maps.key(Some("default"), "usual")).map(|item| item.revision());
    migrate(&fixture, "m", "", "configmaps").await;
    let _controllers = fixture.start(&MIGRATOR);
    let told = becomes(&fixture, "m", "Succeeded").await;
    assert!(told.ends_with(" done, 0 left"), "{told}");
    let bytes = fixture.registry.cache_of(&maps).get(&key).expect("is there").bytes().clone();
    assert!(bytes.starts_with(br#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"odd","#), "{bytes:?}");
    assert_eq!(text_at(&parse(&bytes), &["data", "a"]), "b");
    let usual = fixture.registry.cache_of(&maps).get(&maps.key(Some("default"), "usual")).map(|item| item.revision());
    assert_eq!(usual, untouched);
}

#[tokio::test]
async fn what_cannot_be_migrated_is_told() {
    let fixture = Fixture::everything().await;
    migrate(&fixture, "nothing", "yard.example", "sails").await;
    migrate(&fixture, "read-only", "", "componentstatuses").await;
    let _controllers = fixture.start(&MIGRATOR);
    let failed = async |name: &str| {
        fixture.clock.advance_until(Duration::from_secs(5), || condition(&fixture, name, "Failed")).await
    };
    let want =
        "True: resource \"/v1, Resource=componentstatuses\" does not support discovery operations: [update patch list]";
    assert_eq!(failed("read-only").await, want);
    assert_eq!(failed("nothing").await, "True: resource does not exist in discovery");
    assert_eq!(condition(&fixture, "nothing", "Running"), None);
}

#[tokio::test]
async fn of_several_migrations_the_oldest_goes_first() {
    let fixture = Fixture::everything().await;
    sails(&fixture, 3, NONE).await;
    store_as(&fixture, "v2").await;
    migrate(&fixture, "b", "yard.example", "sails").await;
    fixture.clock.advance(Duration::from_secs(1));
    migrate(&fixture, "a", "yard.example", "sails").await;
    let _controllers = fixture.start(&MIGRATOR);
    for name in ["a", "b"] {
        assert_eq!(becomes(&fixture, name, "Succeeded").await, "True: 3 done, 0 left");
    }
    let began = |name: &str| {
        let migration = fixture.get(MIGRATIONS, None, name).expect("is there");
        text_at(&migration, &["status", "resourceVersion"]).parse::<u64>().expect("a version")
    };
    assert!(began("b") < began("a"));
}
