//! Custom resources: served the moment they are defined, stored in one version, shown in several, gone with their
//! definition.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use revisor_catalog::Resource;
use revisor_object::{Object, Value};
use revisor_registry::{
    DeleteOptions, Deleted, GetRequest, ListVersions, Place, RegistryError, Selection, WatchRequest, Watched,
    WriteOptions,
};

use crate::fixture::{Fixture, decode, object, parse};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(20);

/// A definition with two versions, of which the one with this name is stored. Each has a field of its own.
fn things(storage: &str) -> String {
    let version = |name: &str, own: &str| {
        format!(
            r#"{{"name":"{name}","served":true,"storage":{},"schema":{{"openAPIV3Schema":{{"type":"object","properties":{{
                "spec":{{"type":"object","properties":{{"both":{{"type":"string"}},"{own}":{{"type":"string"}},
                    "filled":{{"type":"string","default":"by {name}"}}}}}}}}}}}}}}"#,
            name == storage
        )
    };
    format!(
        r#"{{"metadata":{{"name":"things.example.com"}},"spec":{{"group":"example.com","scope":"Namespaced",
            "names":{{"plural":"things","kind":"Thing"}},"versions":[{},{}]}}}}"#,
        version("v1", "first"),
        version("v2", "second")
    )
}

async fn define(fixture: &Fixture, text: &str) -> Object {
    fixture.create("customresourcedefinitions", text).await.expect("is valid")
}

/// Puts another text in place of a definition.
async fn redefine(fixture: &Fixture, name: &str, text: &str) {
    let stored = fixture.get("customresourcedefinitions", name).await.expect("is there");
    let version = stored.at(&["metadata", "resourceVersion"]).and_then(Value::as_str).expect("has a version");
    let text =
        text.replacen(&format!(r#""name":"{name}""#), &format!(r#""name":"{name}","resourceVersion":"{version}""#), 1);
    fixture.update("customresourcedefinitions", name, &text).await.expect("is valid");
}

fn thing(fixture: &Fixture, version: &str) -> Arc<Resource> {
    fixture.registry.catalog().resource("example.com", version, "things").expect("is served").clone()
}

fn place<'a>(resource: &'a Arc<Resource>, name: &'a str) -> Place<'a> {
    Place { resource, namespace: Some("default"), name: Some(name) }
}

async fn create(fixture: &Fixture, version: &str, name: &str, spec: &str) -> Result<Object, RegistryError> {
    let resource = thing(fixture, version);
    let text = format!(
        r#"{{"apiVersion":"example.com/{version}","kind":"Thing","metadata":{{"name":"{name}"}},"spec":{spec}}}"#
    );
    let saved = fixture.registry.create(place(&resource, name), decode(&resource, &text)?, WriteOptions::default());
    saved.await.map(object)
}

async fn get(fixture: &Fixture, version: &str, name: &str) -> Result<Object, RegistryError> {
    let resource = thing(fixture, version);
    let (namespace, unset) = (Some("default"), "");
    let request =
        GetRequest { resource: &resource, namespace, name, resource_version: unset, resource_version_match: unset };
    fixture.registry.get(request).await.map(|got| parse(&got.bytes))
}

fn spec(object: &Object) -> String {
    object.get("spec").expect("has a spec").to_json()
}

/// The API version in which an object is stored.
fn stored_version(fixture: &Fixture, name: &str) -> String {
    let resource = thing(fixture, "v1");
    let item = fixture.registry.cache_of(&resource).get(&resource.key(Some("default"), name)).expect("is stored");
    parse(item.bytes()).str("apiVersion").expect("has a version").to_owned()
}

#[tokio::test]
async fn a_definition_is_served_when_its_writer_is_answered() {
    let fixture = Fixture::new().await;
    assert!(fixture.registry.catalog().resource("example.com", "v1", "things").is_none());
    let made = define(&fixture, &things("v1")).await;
    assert!(made.at(&["status", "acceptedNames"]).is_some_and(|names| names.to_json().contains(r#""plural":"""#)));
    let created = create(&fixture, "v1", "a", r#"{"both":"x","first":"y","unknown":"z"}"#).await.expect("is valid");
    assert_eq!(spec(&created), r#"{"both":"x","filled":"by v1","first":"y"}"#);
    let stored = fixture.get("customresourcedefinitions", "things.example.com").await.expect("is there");
    let conditions = stored.at(&["status", "conditions"]).expect("was settled").to_json();
    assert!(conditions.contains(r#""reason":"InitialNamesAccepted""#), "{conditions}");

    let registered = fixture.get("apiservices", "v2.example.com").await.expect("is registered");
    assert_eq!(registered.at(&["spec", "versionPriority"]), Some(&Value::Int(100)));

    let fixture = fixture.reopened().await;
    assert_eq!(
        spec(&get(&fixture, "v1", "a").await.expect("survives")),
        r#"{"both":"x","filled":"by v1","first":"y"}"#
    );
}

#[tokio::test]
async fn an_object_is_stored_in_one_version_and_shown_in_all() {
    let fixture = Fixture::new().await;
    define(&fixture, &things("v1")).await;
    let created = create(&fixture, "v2", "a", r#"{"both":"x","second":"lost"}"#).await.expect("is valid");
    assert_eq!(created.str("apiVersion"), Some("example.com/v2"));
    assert_eq!(spec(&created), r#"{"both":"x","filled":"by v2"}"#, "the stored version has no such field");
    assert_eq!(stored_version(&fixture, "a"), "example.com/v1");

    redefine(&fixture, "things.example.com", &things("v2")).await;
    let read = get(&fixture, "v1", "a").await.expect("is there");
    assert_eq!(
        (read.str("apiVersion"), stored_version(&fixture, "a").as_str()),
        (Some("example.com/v1"), "example.com/v1")
    );
    // A write that changes nothing moves the object to the version that is stored now.
    let resource = thing(&fixture, "v1");
    let text = Value::Object(read.clone()).to_json();
    let decoded = decode(&resource, &text).expect("fits");
    let saved = fixture.registry.update(place(&resource, "a"), decoded, WriteOptions::default()).await.map(object);
    let saved = saved.expect("is valid");
    assert_ne!(saved.at(&["metadata", "resourceVersion"]), read.at(&["metadata", "resourceVersion"]));
    assert_eq!(stored_version(&fixture, "a"), "example.com/v2");
    let definition = fixture.get("customresourcedefinitions", "things.example.com").await.expect("is there");
    let versions = definition.at(&["status", "storedVersions"]).expect("are counted").to_json();
    assert_eq!(versions, r#"["v1","v2"]"#);
}

#[tokio::test]
async fn a_watch_ends_when_its_definition_changes() {
    let fixture = Fixture::new().await;
    define(&fixture, &things("v1")).await;
    let resource = thing(&fixture, "v1");
    let selection = Selection::parse(&resource, "", "").expect("selects everything");
    let request = WatchRequest {
        resource: &resource,
        namespace: None,
        name: None,
        selection: &selection,
        versions: ListVersions::default(),
    };
    let Ok(Watched::Stream(mut events)) = fixture.registry.watch(request).await else { panic!("can be watched") };
    redefine(&fixture, "things.example.com", &things("v2")).await;
    let end = async { while poll_fn(|cx| events.poll_next(cx)).await.is_some() {} };
    tokio::time::timeout(LONG, end).await.expect("ends with the definition that it began with");
}

#[tokio::test]
async fn a_deleted_definition_takes_its_objects_along() {
    let fixture = Fixture::new().await;
    define(&fixture, &things("v1")).await;
    create(&fixture, "v1", "free", "{}").await.expect("is valid");
    let resource = thing(&fixture, "v1");
    let held =
        r#"{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"held","finalizers":["example.com/x"]}}"#;
    let decoded = decode(&resource, held).expect("fits");
    fixture.registry.create(place(&resource, "held"), decoded, WriteOptions::default()).await.expect("is valid");

    let definitions = fixture.resource("customresourcedefinitions");
    let target = Place { resource: &definitions, namespace: None, name: Some("things.example.com") };
    let deleted = fixture.registry.delete(target, &DeleteOptions::default()).await.expect("can be deleted");
    assert!(matches!(deleted, Deleted::Marked(_)), "its objects come first");
    let refused = create(&fixture, "v1", "late", "{}").await.expect_err("is too late");
    assert!(matches!(&refused, RegistryError::Forbidden { why, .. } if why.contains("terminating")), "{refused}");

    // A server that is stopped in the middle goes on with it.
    let fixture = fixture.reopened().await;
    let mut served = fixture.registry.served();
    let resource = thing(&fixture, "v1");
    loop {
        let text = get(&fixture, "v1", "held").await.map(Value::Object).expect("is still there").to_json();
        let text = text.replace(r#""finalizers":["example.com/x"],"#, "");
        let decoded = decode(&resource, &text).expect("fits");
        match fixture.registry.update(place(&resource, "held"), decoded, WriteOptions::default()).await {
            // It was marked as deleted between the two.
            Err(RegistryError::Conflict { .. }) => {}
            released => break drop(released.expect("may go")),
        }
    }
    let gone = served.wait_for(|catalog| !catalog.has_group("example.com"));
    tokio::time::timeout(LONG, gone).await.expect("goes with its last object").expect("the registry lives");
    let left = fixture.get("customresourcedefinitions", "things.example.com").await;
    assert!(matches!(left, Err(RegistryError::NotFound { .. })));

    define(&fixture, &things("v1")).await;
    assert!(matches!(get(&fixture, "v1", "free").await, Err(RegistryError::NotFound { .. })), "it begins empty");
}

#[tokio::test]
async fn a_definition_that_never_got_its_names_goes_at_once() {
    let fixture = Fixture::new().await;
    define(&fixture, &things("v1")).await;
    let second = things("v1").replace("\"plural\":\"things\"", "\"plural\":\"others\"");
    let second = second.replace("things.example.com", "others.example.com");
    define(&fixture, &second).await;
    let stored = fixture.get("customresourcedefinitions", "others.example.com").await.expect("is there");
    let conditions = stored.at(&["status", "conditions"]).expect("was settled").to_json();
    assert!(conditions.contains("ListKindConflict"), "the kind is taken: {conditions}");

    let definitions = fixture.resource("customresourcedefinitions");
    let target = Place { resource: &definitions, namespace: None, name: Some("others.example.com") };
    fixture.registry.delete(target, &DeleteOptions::default()).await.expect("can be deleted");
    let left = fixture.get("customresourcedefinitions", "others.example.com").await;
    assert!(matches!(left, Err(RegistryError::NotFound { .. })), "has no objects to wait for");
    assert!(fixture.registry.catalog().resource("example.com", "v1", "things").is_some());
}

#[tokio::test]
async fn a_name_that_a_definition_gives_up_goes_to_who_waits_for_it() {
    let fixture = Fixture::new().await;
    let named = |plural: &str, kind: &str, short: &str| {
        let names = format!(r#""names":{{"plural":"{plural}","kind":"{kind}","shortNames":["{short}"]}}"#);
        let text = things("v1").replace(r#""names":{"plural":"things","kind":"Thing"}"#, &names);
        text.replace("things.example.com", &format!("{plural}.example.com"))
    };
    define(&fixture, &named("things", "Thing", "t")).await;
    define(&fixture, &named("others", "Other", "t")).await;
    assert!(fixture.registry.catalog().resource("example.com", "v1", "others").is_none(), "its short name is taken");
    redefine(&fixture, "things.example.com", &named("things", "Thing", "th")).await;
    let others = fixture.registry.catalog().resource("example.com", "v1", "others").cloned();
    assert_eq!(others.expect("is served").short_names, ["t"]);
    let stored = fixture.get("customresourcedefinitions", "others.example.com").await.expect("is there");
    let conditions = stored.at(&["status", "conditions"]).expect("was settled").to_json();
    assert!(conditions.contains("NoConflicts") && conditions.contains("InitialNamesAccepted"), "{conditions}");
}

#[tokio::test]
async fn it_is_known_whether_somebody_still_writes_by_a_former_definition() {
    let fixture = Fixture::new().await;
    // Somebody who takes connections and never says a word.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback can be listened on");
    let address = silent.local_addr().expect("has an address");
    let webhook = format!(
        r#""conversion":{{"strategy":"Webhook","webhook":{{"conversionReviewVersions":["v1"],"clientConfig":{{"url":"https://{address}/convert"}}}}}},"versions":"#
    );
    let asking = |storage: &str| things(storage).replacen(r#""versions":"#, &webhook, 1);
    define(&fixture, &asking("v1")).await;
    let resource = thing(&fixture, "v1");
    let mut write = Box::pin(create(&fixture, "v2", "slow", r#"{"both":"x"}"#));
    let is_done = poll_fn(|context| std::task::Poll::Ready(write.as_mut().poll(context).is_ready())).await;
    assert!(!is_done && !fixture.registry.has_former_writes(&resource));
    redefine(&fixture, "things.example.com", &asking("v2")).await;
    // It would store what it writes as v1.
    assert!(fixture.registry.has_former_writes(&resource));
    create(&fixture, "v2", "quick", r#"{"both":"x"}"#).await.expect("is stored as it is");
    redefine(&fixture, "things.example.com", &asking("v1")).await;
    assert!(fixture.registry.has_former_writes(&resource), "whatever happened since");
    drop(write);
    assert!(!fixture.registry.has_former_writes(&resource));
}
