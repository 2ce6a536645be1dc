//! The deletion of namespaces: their content goes, what stays is told, and then they go themselves.

use std::time::Duration;

use revisor_controllers::Controller;
use revisor_object::{Object, Value};
use revisor_registry::{DeleteOptions, Place};

use crate::fixture::{Fixture, START, text_at};

const STEP: Duration = Duration::from_millis(500);

fn condition(namespace: &Object, kind: &str) -> Option<[String; 3]> {
    let conditions = namespace.object("status").map(|status| status.array("conditions")).unwrap_or_default();
    let found = conditions.iter().filter_map(Value::as_object).find(|condition| condition.str("type") == Some(kind))?;
    Some(["status", "reason", "message"].map(|name| text_at(found, &[name])))
}

#[tokio::test]
async fn a_namespace_goes_with_all_that_is_in_it() {
    let fixture = Fixture::new().await;
    let _controllers = fixture.start(&[Controller::Namespace]);
    fixture.namespace("n").await;
    // More than are looked at in one piece.
    for number in 0..600 {
        fixture.config_map_in("n", &format!("c{number}"), "").await;
    }
    fixture.create("secrets", Some("n"), r#"{"metadata":{"name":"s"}}"#).await;
    fixture.create("leases", Some("n"), r#"{"metadata":{"name":"l"}}"#).await;
    fixture.config_map("stays", "").await;
    fixture.delete("namespaces", None, "n", "").await;
    fixture.clock.advance_until(STEP, || fixture.get("namespaces", None, "n").is_none().then_some(())).await;
    for plural in ["configmaps", "secrets", "leases"] {
        let resource = fixture.resource(plural);
        let snapshot = fixture.registry.cache_of(&resource).snapshot();
        assert_eq!(snapshot.count(&resource.collection(Some("n"))), 0, "{plural}");
    }
    assert_eq!(fixture.config_maps(), ["stays"]);
}

#[tokio::test]
async fn content_that_is_held_holds_the_namespace_and_is_told() {
    let fixture = Fixture::new().await;
    let _controllers = fixture.start(&[Controller::Namespace]);
    fixture.namespace("n").await;
    fixture.config_map_in("n", "a", r#","finalizers":["e.com/f"]"#).await;
    fixture.config_map_in("n", "b", r#","finalizers":["e.com/f","e.com/g"]"#).await;
    fixture.config_map_in("n", "c", "").await;
    fixture.delete("namespaces", None, "n", "").await;
    let told = || {
        let namespace = fixture.get("namespaces", None, "n")?;
        condition(&namespace, "NamespaceContentRemaining").map(|_| namespace)
    };
    let namespace = fixture.clock.advance_until(STEP, told).await;
    let texts = |kind| condition(&namespace, kind).unwrap_or_else(|| panic!("{kind} is told")).join("; ");
    assert_eq!(
        texts("NamespaceContentRemaining"),
        "True; SomeResourcesRemain; Some resources are remaining: configmaps. has 2 resource instances"
    );
    assert_eq!(
        texts("NamespaceFinalizersRemaining"),
        "True; SomeFinalizersRemain; Some content in the namespace has finalizers remaining: e.com/f in 2 resource instances, e.com/g in 1 resource instances"
    );
    assert_eq!(
        texts("NamespaceDeletionContentFailure"),
        "False; ContentDeleted; All content successfully deleted, may be waiting on finalization"
    );
    assert_eq!(
        texts("NamespaceDeletionDiscoveryFailure"),
        "False; ResourcesDiscovered; All resources successfully discovered"
    );
    assert_eq!(
        texts("NamespaceDeletionGroupVersionParsingFailure"),
        "False; ParsedGroupVersions; All legacy kube types successfully parsed"
    );

    // With the last of it the namespace goes, and not only when it is tried again: the clock stands still.
    for name in ["a", "b"] {
        fixture.patch("configmaps", Some("n"), name, r#"{"metadata":{"finalizers":null}}"#).await;
    }
    fixture.gone("namespaces", None, "n").await;
}

#[tokio::test]
async fn pods_end_before_the_rest_goes() {
    let fixture = Fixture::new().await;
    let _controllers = fixture.start(&[Controller::Namespace]);
    fixture.namespace("n").await;
    fixture.config_map_in("n", "c", "").await;
    fixture.create("serviceaccounts", Some("n"), r#"{"metadata":{"name":"default"}}"#).await;
    for (name, node) in [("waits", ""), ("runs", r#""nodeName":"node","#)] {
        let text =
            format!(r#"{{"metadata":{{"name":"{name}"}},"spec":{{{node}"containers":[{{"name":"c","image":"i"}}]}}}}"#);
        fixture.create("pods", Some("n"), &text).await;
    }
    fixture.delete("namespaces", None, "n", "").await;
    let told = || condition(&fixture.get("namespaces", None, "n")?, "NamespaceContentRemaining");
    assert_eq!(
        fixture.clock.advance_until(STEP, told).await.join("; "),
        "True; SomeResourcesRemain; Some resources are remaining: pods. has 1 resource instances"
    );
    assert!(fixture.get("pods", Some("n"), "waits").is_none(), "nobody has to end what runs nowhere");
    assert!(fixture.get("configmaps", Some("n"), "c").is_some(), "what a pod may still need is there");

    // As its kubelet does when it has ended. The clock stands still: that it is gone is reason enough to go on.
    let pods = fixture.resource("pods");
    let ended = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
    let place = Place { resource: &pods, namespace: Some("n"), name: Some("runs") };
    fixture.registry.delete(place, &ended).await.expect("it has ended");
    fixture.gone("namespaces", None, "n").await;
    assert!(fixture.get("configmaps", Some("n"), "c").is_none());
}

#[tokio::test]
async fn the_finalizers_of_others_stay() {
    let fixture = Fixture::new().await;
    let _controllers = fixture.start(&[Controller::Namespace]);
    let text = r#"{"metadata":{"name":"n"},"spec":{"finalizers":["e.com/z","e.com/a"]}}"#;
    fixture.create("namespaces", None, text).await;
    let text = r#"{"metadata":{"name":"m","finalizers":["e.com/m"]}}"#;
    fixture.create("namespaces", None, text).await;
    for name in ["n", "m"] {
        fixture.delete("namespaces", None, name, "").await;
    }
    for (name, want) in [("n", vec!["e.com/a", "e.com/z"]), ("m", vec![])] {
        let finalized = || {
            let namespace = fixture.get("namespaces", None, name)?;
            let finalizers = namespace.object("spec").map(|spec| spec.array("finalizers")).unwrap_or_default();
            let names: Vec<&str> = finalizers.iter().filter_map(Value::as_str).collect();
            (names == want).then_some(())
        };
        fixture.clock.advance_until(STEP, finalized).await;
    }
    fixture.patch("namespaces", None, "m", r#"{"metadata":{"finalizers":null}}"#).await;
    fixture.gone("namespaces", None, "m").await;
}

#[tokio::test]
async fn a_namespace_that_was_marked_before_the_start_goes_too() {
    let fixture = Fixture::new().await;
    fixture.namespace("n").await;
    fixture.config_map_in("n", "a", "").await;
    // What the garbage collector would do for its dependents is not waited for.
    fixture.config_map_in("n", "b", r#","finalizers":["foregroundDeletion"]"#).await;
    fixture.config_map_in("n", "c", r#","finalizers":["orphan"]"#).await;
    fixture.delete("namespaces", None, "n", "").await;
    let marked = fixture.get("namespaces", None, "n").expect("is held");
    let at = time::OffsetDateTime::from_unix_timestamp(START).expect("a time");
    assert!(text_at(&marked, &["metadata", "deletionTimestamp"]).starts_with(&at.year().to_string()));
    let _controllers = fixture.start(&[Controller::Namespace]);
    fixture.clock.advance_until(STEP, || fixture.get("namespaces", None, "n").is_none().then_some(())).await;
}
