//! Writes: the order of their steps, and what they leave alone.

use std::sync::Arc;
use std::time::Instant;

use revisor_object::Value;
use revisor_registry::{DeleteOptions, Deleted, PatchKind, Place, RegistryError, WriteOptions};

use crate::fixture::{Fixture, parse, version};

/// Invariant R1: what is not valid leaves no trace, and defaults are there before validation looks.
#[tokio::test]
async fn an_object_is_defaulted_then_validated_and_stored_only_if_valid() {
    let fixture = Fixture::new().await;
    let before = fixture.revision();
    let secret =
        r#"{"metadata":{"name":"s","labels":{"a b":"c"}},"stringData":{"bad key":"v"},"type":"kubernetes.io/tls"}"#;
    let error = fixture.create("secrets", secret).await.expect_err("is invalid");
    let RegistryError::Invalid { errors, .. } = error else { panic!("{error:?}") };
    let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
    assert_eq!(fields, ["metadata.labels", "data[bad key]", "data[tls.crt]", "data[tls.key]"]);
    assert_eq!(fixture.revision(), before, "no version was spent");

    let made =
        fixture.create("secrets", r#"{"metadata":{"name":"s"},"stringData":{"k":"v"}}"#).await.expect("is valid");
    assert_eq!(made.str("type"), Some("Opaque"));
    assert_eq!(made.at(&["data", "k"]).and_then(Value::as_str), Some("dg=="));
    assert!(!made.contains("stringData"));
}

/// Kinds whose rules do not look at metadata tell what is wrong with it only when all else is well.
#[tokio::test]
async fn metadata_of_an_event_is_looked_at_last() {
    let fixture = Fixture::new().await;
    for (about, want) in [("other", "involvedObject.namespace"), ("default", "metadata.name")] {
        let event = format!(r#"{{"metadata":{{}},"involvedObject":{{"namespace":"{about}"}}}}"#);
        let error = fixture.create("events", &event).await.expect_err("is invalid");
        let RegistryError::Invalid { errors, .. } = error else { panic!("{error:?}") };
        let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, [want]);
    }
}

/// What is at fault is quoted as the original holds it.
#[tokio::test]
async fn values_in_messages_are_those_of_internal_types() {
    let fixture = Fixture::new().await;
    let budget = r#"{"metadata":{"name":"b"},"spec":{"minAvailable":1,"maxUnavailable":1}}"#;
    let error = fixture.create("poddisruptionbudgets", budget).await.expect_err("is invalid");
    let RegistryError::Invalid { errors, .. } = error else { panic!("{error:?}") };
    let quoted: Vec<String> = errors.iter().map(|error| error.bad_value.to_string()).collect();
    let want = r#"{"MinAvailable":1,"Selector":null,"MaxUnavailable":1,"UnhealthyPodEvictionPolicy":null}"#;
    assert_eq!(quoted, [want]);
}

#[tokio::test]
async fn what_the_server_decides_is_not_for_clients_to_set() {
    let fixture = Fixture::new().await;
    let made = fixture
        .create(
            "configmaps",
            r#"{"metadata":{"name":"a","uid":"mine","creationTimestamp":"2001-01-01T00:00:00Z","deletionTimestamp":"2001-01-01T00:00:00Z","selfLink":"x"}}"#,
        )
        .await
        .expect("is created");
    let metadata = made.object("metadata").expect("has metadata");
    assert_eq!(metadata.str("creationTimestamp"), Some("1970-01-01T00:00:00Z"));
    assert_ne!(metadata.str("uid"), Some("mine"));
    assert!(!metadata.contains("deletionTimestamp") && !metadata.contains("selfLink"));
}

#[tokio::test]
async fn a_name_that_is_taken_is_generated_anew() {
    let fixture = Fixture::new().await;
    let names: Vec<String> = {
        let mut names = Vec::new();
        for _ in 0..20 {
            let made =
                fixture.create("configmaps", r#"{"metadata":{"generateName":"web-"}}"#).await.expect("is created");
            names.push(made.at(&["metadata", "name"]).and_then(Value::as_str).expect("has a name").to_owned());
        }
        names
    };
    let distinct: std::collections::HashSet<&String> = names.iter().collect();
    assert_eq!(distinct.len(), 20);
    assert!(names.iter().all(|name| name.starts_with("web-") && name.len() == 9), "{names:?}");
}

#[tokio::test]
async fn a_dry_run_shows_the_result_and_stores_nothing() {
    let fixture = Fixture::new().await;
    let before = fixture.revision();
    let dry = WriteOptions { dry_run: true, ..WriteOptions::default() };
    let made = fixture.create_with("configmaps", r#"{"metadata":{"name":"a"}}"#, dry).await.expect("would be created");
    assert!(made.at(&["metadata", "uid"]).is_some() && made.at(&["metadata", "resourceVersion"]).is_none());
    assert_eq!(fixture.revision(), before);
    assert!(matches!(fixture.get("configmaps", "a").await, Err(RegistryError::NotFound { .. })));
}

#[tokio::test]
async fn an_update_that_changes_nothing_keeps_the_version() {
    let fixture = Fixture::new().await;
    let text = r#"{"metadata":{"name":"a"},"data":{"k":"v"}}"#;
    let made = fixture.create("configmaps", text).await.expect("is created");
    let same = fixture.update("configmaps", "a", text).await.expect("is the same");
    assert_eq!(version(&same), version(&made));
    let text = r#"{"metadata":{"name":"a"},"data":{"k":"w"}}"#;
    assert!(version(&fixture.update("configmaps", "a", text).await.expect("is updated")) > version(&made));
}

#[tokio::test]
async fn kinds_that_demand_a_version_refuse_an_update_without_one() {
    let fixture = Fixture::new().await;
    fixture.create("leases", r#"{"metadata":{"name":"a"}}"#).await.expect("is created");
    let error =
        fixture.update("leases", "a", r#"{"metadata":{"name":"a","labels":{"x":"y"}}}"#).await.expect_err("no version");
    assert!(matches!(error, RegistryError::VersionRequired { .. }), "{error:?}");
}

#[tokio::test]
async fn put_makes_what_is_missing_only_where_its_kind_allows_that() {
    let fixture = Fixture::new().await;
    let made = fixture.update("leases", "a", r#"{"metadata":{"name":"a","resourceVersion":"5"}}"#).await;
    assert!(made.is_ok(), "{made:?}");
    let error = fixture.update("configmaps", "a", r#"{"metadata":{"name":"a"}}"#).await.expect_err("is not there");
    assert!(matches!(error, RegistryError::NotFound { .. }), "{error:?}");
}

/// Invariant S3, through the retries of the registry: of many patches none is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn patches_at_the_same_time_are_all_kept() {
    let fixture = Arc::new(Fixture::new().await);
    fixture.create("configmaps", r#"{"metadata":{"name":"a"}}"#).await.expect("is created");
    let patches: Vec<_> = (0..32)
        .map(|number| {
            let fixture = fixture.clone();
            tokio::spawn(async move {
                let resource = fixture.config_maps();
                let place = Place { resource: &resource, namespace: Some("default"), name: Some("a") };
                let patch = format!(r#"{{"data":{{"k{number}":"v"}}}}"#);
                fixture.registry.patch(place, PatchKind::Merge, patch.as_bytes(), WriteOptions::default()).await
            })
        })
        .collect();
    for patch in patches {
        patch.await.expect("does not panic").expect("is applied");
    }
    let data = fixture.get("configmaps", "a").await.expect("is there");
    assert_eq!(data.object("data").map(|data| data.len()), Some(32));
}

#[tokio::test]
async fn a_finalizer_holds_an_object_until_it_is_removed() {
    let fixture = Fixture::new().await;
    let made =
        fixture.create("configmaps", r#"{"metadata":{"name":"a","finalizers":["x.io/y"]}}"#).await.expect("is created");
    let resource = fixture.config_maps();
    let place = Place { resource: &resource, namespace: Some("default"), name: Some("a") };
    let deleted = fixture.registry.delete(place, &DeleteOptions::default()).await.expect("is marked");
    let Deleted::Marked(marked) = deleted else { panic!("{deleted:?}") };
    let marked = parse(&marked);
    assert!(marked.at(&["metadata", "deletionTimestamp"]).is_some() && version(&marked) > version(&made));

    let again = fixture.registry.delete(place, &DeleteOptions::default()).await.expect("is marked already");
    let Deleted::Marked(again) = again else { panic!("{again:?}") };
    assert_eq!(version(&parse(&again)), version(&marked));

    let adding =
        fixture.update("configmaps", "a", r#"{"metadata":{"name":"a","finalizers":["x.io/y","x.io/z"]}}"#).await;
    assert!(matches!(adding, Err(RegistryError::Invalid { .. })), "no new finalizers on a marked object: {adding:?}");
    fixture.update("configmaps", "a", r#"{"metadata":{"name":"a"}}"#).await.expect("lets go");
    assert!(matches!(fixture.get("configmaps", "a").await, Err(RegistryError::NotFound { .. })));
}

#[tokio::test]
async fn a_namespace_goes_when_it_is_finalized_and_takes_nothing_new_before() {
    let fixture = Fixture::new().await;
    fixture.create("namespaces", r#"{"metadata":{"name":"n"}}"#).await.expect("is created");
    let (namespaces, config_maps) = (fixture.resource("namespaces"), fixture.config_maps());
    let place = Place { resource: &namespaces, namespace: None, name: Some("n") };
    let deleted = fixture.registry.delete(place, &DeleteOptions::default()).await.expect("is marked");
    let Deleted::Marked(marked) = deleted else { panic!("{deleted:?}") };
    assert_eq!(parse(&marked).at(&["status", "phase"]).and_then(Value::as_str), Some("Terminating"));

    let inside = Place { resource: &config_maps, namespace: Some("n"), name: None };
    let decode = |resource, text: &str| {
        revisor_registry::Decoded::read(resource, revisor_registry::Format::Json, text.as_bytes(), Default::default())
            .expect("is an object")
    };
    let made = decode(&config_maps, r#"{"metadata":{"name":"a"}}"#);
    let refused = fixture.registry.create(inside, made, WriteOptions::default()).await;
    assert!(matches!(refused, Err(RegistryError::Forbidden { terminating_namespace: Some(_), .. })), "{refused:?}");

    let finalized = decode(&namespaces, r#"{"metadata":{"name":"n"},"spec":{"finalizers":[]}}"#);
    let options = WriteOptions { subresource: Some("finalize"), ..WriteOptions::default() };
    fixture.registry.update(place, finalized, options).await.expect("is finalized");
    assert!(matches!(fixture.get("namespaces", "n").await, Err(RegistryError::NotFound { .. })));
}

#[tokio::test]
async fn namespaces_that_the_server_needs_cannot_be_deleted() {
    let fixture = Fixture::new().await;
    let namespaces = fixture.resource("namespaces");
    for name in ["default", "kube-system", "kube-public"] {
        let place = Place { resource: &namespaces, namespace: None, name: Some(name) };
        let refused = fixture.registry.delete_for(place, &DeleteOptions::default(), WriteOptions::default()).await;
        assert!(matches!(refused, Err(RegistryError::Forbidden { .. })), "{name}: {refused:?}");
    }
}

#[tokio::test]
async fn marks_of_deletion_are_not_for_clients_to_set() {
    let fixture = Fixture::new().await;
    fixture.create("configmaps", r#"{"metadata":{"name":"a"}}"#).await.expect("is created");
    let resource = fixture.config_maps();
    let place = Place { resource: &resource, namespace: Some("default"), name: Some("a") };
    for (patch, field) in [
        (r#"{"metadata":{"deletionTimestamp":"2030-01-01T00:00:00Z"}}"#, "metadata.deletionTimestamp"),
        (r#"{"metadata":{"deletionGracePeriodSeconds":4}}"#, "metadata.deletionGracePeriodSeconds"),
        (r#"{"metadata":{"uid":"other"}}"#, "metadata.uid"),
        (r#"{"metadata":{"finalizers":["nodomain"]}}"#, "metadata.finalizers[0]"),
    ] {
        let patched = fixture.registry.patch(place, PatchKind::Merge, patch.as_bytes(), WriteOptions::default()).await;
        let Err(RegistryError::Invalid { errors, .. }) = patched else { panic!("{patch}: {patched:?}") };
        // Found by the rules for all objects, and again by those of the kind.
        assert_eq!(errors.iter().map(|error| error.field.as_str()).collect::<Vec<_>>(), [field, field]);
    }
}

#[tokio::test]
async fn limit_ranges_without_a_name_get_one() {
    let fixture = Fixture::new().await;
    let made = fixture.create("limitranges", r#"{"spec":{"limits":[]}}"#).await.expect("needs no name");
    let name = made.at(&["metadata", "name"]).and_then(Value::as_str).unwrap_or_default();
    assert_eq!(name.len(), "00000000-0000-4000-8000-000000000000".len(), "{name}");
    assert!(matches!(fixture.create("configmaps", "{}").await, Err(RegistryError::Invalid { .. })));
}

#[tokio::test]
async fn a_taken_name_that_was_to_be_generated_is_told_apart() {
    let fixture = Fixture::new().await;
    for (metadata, want) in [(r#""name":"a""#, false), (r#""name":"a","generateName":"a-""#, true)] {
        let text = format!(r#"{{"metadata":{{{metadata}}}}}"#);
        let _ = fixture.create("configmaps", &text).await;
        match fixture.create("configmaps", &text).await {
            Err(RegistryError::AlreadyExists { is_generated, .. }) => assert_eq!(is_generated, want, "{metadata}"),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn an_update_that_means_another_object_is_a_conflict() {
    let fixture = Fixture::new().await;
    fixture.create("configmaps", r#"{"metadata":{"name":"a"}}"#).await.expect("is created");
    match fixture.update("configmaps", "a", r#"{"metadata":{"name":"a","uid":"another"}}"#).await {
        Err(RegistryError::Conflict { why, .. }) => {
            assert!(why.starts_with("StorageError: invalid object, Code: 4, Key: /registry/configmaps/default/a,"));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn nothing_is_stored_when_the_time_of_a_request_is_over() {
    let fixture = Fixture::new().await;
    let late = WriteOptions { deadline: Some(Instant::now()), ..WriteOptions::default() };
    let made = fixture.create_with("configmaps", r#"{"metadata":{"name":"late"}}"#, late).await;
    assert!(matches!(made, Err(RegistryError::TimedOut)), "{made:?}");
    assert!(matches!(fixture.get("configmaps", "late").await, Err(RegistryError::NotFound { .. })));

    let text = r#"{"metadata":{"name":"a"},"data":{"k":"1"}}"#;
    let before = fixture.create("configmaps", text).await.expect("is made in time");
    let resource = fixture.config_maps();
    let place = Place { resource: &resource, namespace: Some("default"), name: Some("a") };
    let patch = br#"{"data":{"k":"2"}}"#;
    let patched = fixture.registry.patch(place, PatchKind::Merge, patch, late).await;
    assert!(matches!(patched, Err(RegistryError::TimedOut)), "{patched:?}");
    assert_eq!(fixture.get("configmaps", "a").await.expect("is there"), before);
}
