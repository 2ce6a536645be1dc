//! The scale of an object: a small object that stands for a part of a larger one.

use std::sync::Arc;

use revisor_catalog::Resource;
use revisor_object::{Object, Value};
use revisor_registry::{
    Decoded, FieldValidation, Format, GetRequest, PatchKind, Place, RegistryError, Saved, WriteOptions,
};

use crate::fixture::{Fixture, parse, version};

const WEB: &str = r#"{"metadata":{"name":"web"},"spec":{"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"c","image":"i:1"}]}}}}"#;

fn options() -> WriteOptions<'static> {
    WriteOptions { subresource: Some("scale"), field_manager: "tester", ..WriteOptions::default() }
}

fn place(resource: &Arc<Resource>) -> Place<'_> {
    Place { resource, namespace: Some("default"), name: Some("web") }
}

async fn put(fixture: &Fixture, scale: &Object) -> Result<Saved, RegistryError> {
    let resource = fixture.resource("deployments");
    let body = fixture.registry.body_resource(&resource, Some("scale"));
    let text = Value::Object(scale.clone()).to_json();
    let decoded = Decoded::read(body, Format::Json, text.as_bytes(), FieldValidation::Warn)?;
    fixture.registry.update(place(&resource), decoded, options()).await
}

async fn get(fixture: &Fixture) -> Object {
    let resource = fixture.resource("deployments");
    let request = GetRequest {
        resource: &resource,
        namespace: Some("default"),
        name: "web",
        resource_version: "",
        resource_version_match: "",
    };
    parse(&fixture.registry.get_scale(request).await.expect("is there").bytes)
}

#[tokio::test]
async fn a_scale_shows_and_sets_the_replicas_of_its_object() {
    let fixture = Fixture::new().await;
    let made = fixture.create("deployments", WEB).await.expect("is valid");
    let mut scale = get(&fixture).await;
    assert_eq!((scale.str("kind"), scale.str("apiVersion")), (Some("Scale"), Some("autoscaling/v1")));
    assert_eq!(version(&scale), version(&made));
    assert_eq!(scale.at(&["spec", "replicas"]), Some(&Value::Int(1)));
    assert_eq!(scale.at(&["status", "selector"]).and_then(Value::as_str), Some("app=web"));

    scale.object_mut("spec").insert("replicas", 3);
    let saved = parse(&put(&fixture, &scale).await.expect("is valid").bytes);
    assert_eq!(saved.at(&["spec", "replicas"]), Some(&Value::Int(3)));
    let after = fixture.get("deployments", "web").await.expect("is there");
    assert_eq!(version(&saved), version(&after));
    assert_eq!(after.at(&["spec", "replicas"]), Some(&Value::Int(3)));
    assert_eq!(after.at(&["metadata", "generation"]), Some(&Value::Int(2)));
    assert_eq!(after.at(&["spec", "template"]), made.at(&["spec", "template"]), "nothing else was changed");
}

#[tokio::test]
async fn a_scale_that_is_stale_or_makes_no_sense_is_refused() {
    let fixture = Fixture::new().await;
    fixture.create("deployments", WEB).await.expect("is valid");
    let stale = get(&fixture).await;
    let mut scale = stale.clone();
    scale.object_mut("spec").insert("replicas", 2);
    put(&fixture, &scale).await.expect("is valid");
    assert!(matches!(put(&fixture, &stale).await, Err(RegistryError::Conflict { .. })));

    let mut other = get(&fixture).await;
    other.object_mut("metadata").insert("uid", "another");
    assert!(matches!(put(&fixture, &other).await, Err(RegistryError::Conflict { .. })));

    let mut negative = get(&fixture).await;
    negative.object_mut("spec").insert("replicas", -1);
    match put(&fixture, &negative).await {
        Err(RegistryError::Invalid { resource, errors, .. }) => {
            assert_eq!(resource.kind, "Scale");
            assert_eq!(errors.iter().map(|error| error.field.as_str()).collect::<Vec<_>>(), ["spec.replicas"]);
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_scale_can_be_patched() {
    let fixture = Fixture::new().await;
    fixture.create("deployments", WEB).await.expect("is valid");
    let resource = fixture.resource("deployments");
    for (kind, patch, want) in [
        (PatchKind::Merge, r#"{"spec":{"replicas":4},"status":{"replicas":9}}"#, 4),
        (PatchKind::Strategic, r#"{"spec":{"replicas":5}}"#, 5),
        (PatchKind::Json, r#"[{"op":"replace","path":"/spec/replicas","value":6}]"#, 6),
    ] {
        let saved =
            fixture.registry.patch(place(&resource), kind, patch.as_bytes(), options()).await.expect("is valid");
        let scale = parse(&saved.bytes);
        assert_eq!(scale.at(&["spec", "replicas"]), Some(&Value::Int(want)), "{kind:?}");
        assert_eq!(scale.at(&["status", "replicas"]), Some(&Value::Int(0)), "{kind:?}");
    }
}

fn managers(object: &Object) -> Vec<String> {
    let entries = object.object("metadata").map(|metadata| metadata.array("managedFields")).unwrap_or_default();
    let shown = entries.iter().filter_map(Value::as_object).filter(|entry| entry.str("subresource").is_some());
    let text = |entry: &Object, name: &str| entry.str(name).unwrap_or_default().to_owned();
    shown
        .map(|entry| {
            let fields = entry.get("fieldsV1").map(Value::to_json).unwrap_or_default();
            format!("{} {} {fields}", text(entry, "manager"), text(entry, "apiVersion"))
        })
        .collect()
}

#[tokio::test]
async fn a_scale_can_be_applied_and_who_does_manages_the_replicas() {
    let fixture = Fixture::new().await;
    fixture.create("deployments", WEB).await.expect("is valid");
    let resource = fixture.resource("deployments");
    let apply = async |manager, force, spec: &str| {
        let text = format!("apiVersion: autoscaling/v1\nkind: Scale\nmetadata: {{name: web}}\nspec: {spec}\n");
        let options = WriteOptions { field_manager: manager, is_apply: true, force, ..options() };
        fixture.registry.patch(place(&resource), PatchKind::Apply, text.as_bytes(), options).await
    };
    let saved = parse(&apply("one", true, "{replicas: 4}").await.expect("is valid").bytes);
    assert_eq!((saved.str("kind"), saved.at(&["spec", "replicas"])), (Some("Scale"), Some(&Value::Int(4))));
    let after = fixture.get("deployments", "web").await.expect("is there");
    assert_eq!(after.at(&["spec", "replicas"]), Some(&Value::Int(4)));
    assert_eq!(managers(&after), [r#"one apps/v1 {"f:spec":{"f:replicas":{}}}"#]);

    match apply("two", false, "{replicas: 5}").await {
        Err(RegistryError::ApplyConflict(conflicts)) => assert_eq!(conflicts[0].place, ".spec.replicas"),
        other => panic!("{other:?}"),
    }
    // What its only manager no longer wants is none, which is a number of theirs too.
    apply("one", false, "{}").await.expect("is valid");
    let after = fixture.get("deployments", "web").await.expect("is there");
    assert_eq!(after.at(&["spec", "replicas"]), Some(&Value::Int(0)));
    assert_eq!(managers(&after), [r#"one apps/v1 {"f:spec":{"f:replicas":{}}}"#]);
}

#[tokio::test]
async fn a_patch_of_the_scale_of_another_object_is_refused_in_the_name_of_the_scale() {
    let fixture = Fixture::new().await;
    fixture.create("deployments", WEB).await.expect("is valid");
    let resource = fixture.resource("deployments");
    let patch = br#"{"metadata":{"uid":"another"}}"#;
    match fixture.registry.patch(place(&resource), PatchKind::Merge, patch, options()).await {
        Err(RegistryError::SubresourceConflict { subresource, .. }) => assert_eq!(subresource, "scale"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_applied_status_conflicts_with_nobody_over_the_rest() {
    let fixture = Fixture::new().await;
    let resource = fixture.resource("deployments");
    let apply = async |subresource, text: &str| {
        let options = WriteOptions { field_manager: "one", is_apply: true, subresource, ..WriteOptions::default() };
        fixture.registry.patch(place(&resource), PatchKind::Apply, text.as_bytes(), options).await
    };
    let web = WEB.replacen('{', r#"{"apiVersion":"apps/v1","kind":"Deployment","#, 1);
    assert!(matches!(
        apply(None, &web.replace(r#""name":"web""#, "")).await,
        Err(RegistryError::BadRequest(message)) if message.ends_with("name must be provided")
    ));
    apply(None, &web).await.expect("is valid");
    let status = r#"{"apiVersion":"apps/v1","kind":"Deployment","spec":{"minReadySeconds":9,"paused":true,
        "template":{"spec":{"containers":[{"name":"c","image":"i:2"}]}}},"status":{"replicas":2}}"#;
    let after = parse(&apply(Some("status"), status).await.expect("is about the status alone").bytes);
    assert_eq!(after.at(&["status", "replicas"]), Some(&Value::Int(2)));
    assert_eq!(after.at(&["spec", "minReadySeconds"]), None);
    assert_eq!(managers(&after), [r#"one apps/v1 {"f:status":{"f:replicas":{}}}"#]);
}
