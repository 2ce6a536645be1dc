//! Versions of different shapes, between which rules convert: what each shows, and what a write through one leaves of the
//! other.

use http::Method;
use serde_json::{Value, json};

use super::{DEFINITIONS, define, definition, objects, version};
use crate::client::{APPLY, Client, JSON_PATCH, MERGE, Reply};
use crate::harness::Server;

const GROUP: &str = "mill.example";
const CONVERSIONS: &str = "/apis/versioning.revisor.dev/v1alpha1/conversions";
const KEPT: &str = "versioning.revisor.dev/kept";

const TABLE: (&str, &str) = ("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
const METADATA: (&str, &str) = ("accept", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io");

/// Mills with this version stored. What the old one calls `sails` is `wheel.count` in the new one; the old one alone has
/// `owner`, the new one alone `wheel.size`.
fn mills(storage: &str) -> Value {
    let (text, number) = (json!({"type": "string"}), json!({"type": "integer"}));
    let old = json!({"type": "object", "properties": {"sails": number, "place": text, "owner": text}});
    let wheel = json!({"type": "object", "properties": {"count": number, "size": number}});
    let new = json!({"type": "object", "properties": {"wheel": wheel, "place": text}});
    let extras = [("v1", old, ".spec.sails"), ("v2", new, ".spec.wheel.count")];
    let versions = extras.map(|(name, spec, count)| {
        let mut version = version(name, name == storage, spec);
        version["subresources"]["scale"] = json!({"specReplicasPath": count, "statusReplicasPath": ".status.sails"});
        version["selectableFields"] = json!([{"jsonPath": count}]);
        version["additionalPrinterColumns"] = json!([{"name": "N", "type": "integer", "jsonPath": count}]);
        version
    });
    definition(GROUP, "mills", json!(versions))
}

fn conversion(plural: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "versioning.revisor.dev/v1alpha1",
        "kind": "Conversion",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": spec,
    })
}

fn renamed() -> Value {
    let rule = json!({"move": {"from": ".spec.sails", "to": ".spec.wheel.count"}});
    conversion("mills", json!({"steps": [{"from": "v1", "to": "v2", "rules": [rule]}]}))
}

fn mill(version: &str, spec: Value) -> Value {
    json!({"apiVersion": format!("{GROUP}/{version}"), "kind": "Mill", "metadata": {"name": "a"}, "spec": spec})
}

fn at(version: &str) -> String {
    objects(GROUP, version, "mills")
}

async fn spec(client: &Client, version: &str) -> Value {
    client.get(&format!("{}/a", at(version))).await.expect(200).json()["spec"].clone()
}

/// A server with mills, one of which was written in the new version and then in the old one.
async fn start(storage: &str) -> (Server, Client) {
    let server = Server::start(&[]).await;
    let client = server.client();
    define(&client, &mills(storage)).await;
    client.post(CONVERSIONS, &renamed()).await.expect(201);
    let new = mill("v2", json!({"wheel": {"count": 4, "size": 9}, "place": "brook"}));
    client.post(&at("v2"), &new).await.expect(201);
    client.patch(&format!("{}/a", at("v1")), MERGE, &json!({"spec": {"owner": "ada"}})).await.expect(200);
    (server, client)
}

#[tokio::test]
async fn a_write_through_one_version_leaves_what_only_the_other_can_say() {
    for storage in ["v1", "v2"] {
        let (_server, client) = start(storage).await;
        let [old, new] = ["v1", "v2"].map(|version| format!("{}/a", at(version)));
        let mut all = client.get(&old).await.expect(200).json();
        all["spec"]["place"] = json!("put");
        let places = |place: &str| json!({"spec": {"place": place}});
        let replace = json!([{"op": "replace", "path": "/spec/place", "value": "json"}]);
        let applied = mill("v2", json!({"place": "apply"}));
        client.put(&old, &all).await.expect(200);
        assert_eq!(spec(&client, "v2").await, json!({"place": "put", "wheel": {"count": 4, "size": 9}}), "{storage}");
        client.patch(&new, MERGE, &places("merge")).await.expect(200);
        assert_eq!(spec(&client, "v1").await, json!({"owner": "ada", "place": "merge", "sails": 4}), "{storage}");
        client.patch(&old, JSON_PATCH, &replace).await.expect(200);
        assert_eq!(spec(&client, "v2").await, json!({"place": "json", "wheel": {"count": 4, "size": 9}}), "{storage}");
        client.patch(&format!("{new}?fieldManager=bob&force=true"), APPLY, &applied).await.expect(200);
        assert_eq!(spec(&client, "v1").await, json!({"owner": "ada", "place": "apply", "sails": 4}), "{storage}");
        assert_eq!(spec(&client, "v2").await, json!({"place": "apply", "wheel": {"count": 4, "size": 9}}), "{storage}");

        let scale = client.get(&format!("{old}/scale")).await.expect(200).json();
        assert_eq!(scale["spec"]["replicas"], 4, "{storage}");
        client.patch(&format!("{old}/scale"), MERGE, &json!({"spec": {"replicas": 6}})).await.expect(200);
        client.patch(&format!("{new}/status"), MERGE, &json!({"status": {"sails": 5}})).await.expect(200);
        let read = client.get(&new).await.expect(200).json();
        assert_eq!(read["spec"], json!({"place": "apply", "wheel": {"count": 6, "size": 9}}), "{storage}");
        assert_eq!((&read["status"]["sails"], &read["metadata"]["generation"]), (&json!(5), &json!(7)), "{storage}");
        assert_eq!(spec(&client, "v1").await["owner"], "ada", "{storage}");
    }
}

#[tokio::test]
async fn a_write_that_changes_nothing_is_none_and_a_move_of_the_storage_version_loses_nothing() {
    let (_server, client) = start("v1").await;
    let before = client.get(&format!("{}/a", at("v1"))).await.expect(200).version();
    for version in ["v1", "v2"] {
        let path = format!("{}/a", at(version));
        let same = client.get(&path).await.expect(200).json();
        assert_eq!(client.put(&path, &same).await.expect(200).version(), before, "{version}");
        let patch = json!({"spec": {"place": "brook"}});
        assert_eq!(client.patch(&path, MERGE, &patch).await.expect(200).version(), before, "{version}");
    }
    let swap = json!([
        {"op": "replace", "path": "/spec/versions/0/storage", "value": false},
        {"op": "replace", "path": "/spec/versions/1/storage", "value": true},
    ]);
    client.patch(&format!("{DEFINITIONS}/mills.{GROUP}"), JSON_PATCH, &swap).await.expect(200);
    let both = [
        json!({"owner": "ada", "place": "brook", "sails": 4}),
        json!({"place": "brook", "wheel": {"count": 4, "size": 9}}),
    ];
    assert_eq!([spec(&client, "v1").await, spec(&client, "v2").await], both);
    let touched = client.patch(&format!("{}/a", at("v1")), MERGE, &json!({"metadata": {"labels": {"x": "y"}}})).await;
    assert!(touched.expect(200).version() > before, "it is stored anew");
    assert_eq!([spec(&client, "v1").await, spec(&client, "v2").await], both);
    let metrics = client.get("/metrics").await.expect(200);
    let metrics = String::from_utf8_lossy(&metrics.body);
    let metrics: Vec<&str> = metrics.lines().filter(|line| line.contains(GROUP)).collect();
    let counted = |line: &str| metrics.iter().any(|known| known.starts_with(line));
    let definition = format!("definition=\"mills.{GROUP}\"");
    assert!(
        counted(&format!("revisor_conversions_total{{{definition},from=\"v1\",to=\"v2\",way=\"rules\"}}")),
        "{metrics:#?}"
    );
    assert!(counted(&format!("revisor_conversion_kept_bytes_total{{{definition}}}")), "{metrics:#?}");
    let stored =
        format!("revisor_custom_resource_stored_objects{{group=\"{GROUP}\",resource=\"mills\",version=\"v2\"}} 1");
    assert!(counted(&stored), "{metrics:#?}");
}

#[tokio::test]
async fn what_is_kept_is_never_shown_and_cannot_be_set() {
    let (_server, client) = start("v1").await;
    let forged = json!({KEPT: r#"{"v2":{"spec":{"wheel":{"size":1}}}}"#});
    let mut replies: Vec<Reply> = Vec::new();
    let mut all = client.get(&format!("{}/a", at("v1"))).await.expect(200).json();
    all["metadata"]["annotations"] = forged.clone();
    replies.push(client.put(&format!("{}/a", at("v1")), &all).await.expect(200));
    let patch = json!({"metadata": {"annotations": {KEPT: null}}, "spec": {"place": "hill"}});
    replies.push(client.patch(&format!("{}/a", at("v1")), MERGE, &patch).await.expect(200));
    let mut applied = mill("v2", json!({"place": "hill"}));
    applied["metadata"]["annotations"] = forged;
    replies.push(client.patch(&format!("{}/a?fieldManager=bob", at("v2")), APPLY, &applied).await.expect(200));
    assert_eq!(spec(&client, "v2").await, json!({"place": "hill", "wheel": {"count": 4, "size": 9}}));
    for version in ["v1", "v2"] {
        for path in [at(version), format!("{}/a", at(version)), format!("{}?includeObject=Object", at(version))] {
            for headers in [&[][..], &[TABLE]] {
                replies.push(client.send(Method::GET, &path, headers, "").await.expect(200));
            }
        }
        replies.push(client.send(Method::GET, &format!("{}/a", at(version)), &[METADATA], "").await.expect(200));
        let mut events = client.watch(&at(version), "resourceVersion=0").await;
        assert!(!events.event().await.object.to_string().contains(KEPT));
    }
    replies.push(client.delete(&format!("{}/a", at("v2"))).await.expect(200));
    for reply in replies {
        assert!(!String::from_utf8_lossy(&reply.body).contains(KEPT), "{}", reply.text());
    }
}

#[tokio::test]
async fn both_versions_show_one_history() {
    let (_server, client) = start("v1").await;
    let start = client.get(&at("v1")).await.expect(200).version();
    let mut streams = [
        client.watch(&at("v1"), &format!("resourceVersion={start}")).await,
        client.watch(&at("v2"), &format!("resourceVersion={start}")).await,
    ];
    let mut four =
        client.watch(&at("v2"), &format!("resourceVersion={start}&fieldSelector=spec.wheel.count%3D4")).await;
    let changed = client.patch(&format!("{}/a", at("v1")), MERGE, &json!({"spec": {"sails": 5}})).await.expect(200);
    client.delete(&format!("{}/a", at("v2"))).await.expect(200);
    let specs = [
        json!({"owner": "ada", "place": "brook", "sails": 5}),
        json!({"place": "brook", "wheel": {"count": 5, "size": 9}}),
    ];
    let mut histories = Vec::new();
    for (events, want) in streams.iter_mut().zip(&specs) {
        let history = [events.event().await, events.event().await];
        assert_eq!(history.each_ref().map(|event| &event.object["spec"]), [want, want]);
        histories.push(history.map(|event| (event.kind.clone(), event.version())));
    }
    assert_eq!(histories[0], histories[1]);
    assert_eq!(
        (&*histories[0][0].0, histories[0][0].1, &*histories[0][1].0),
        ("MODIFIED", changed.version(), "DELETED")
    );
    let left = four.event().await;
    assert_eq!((&*left.kind, &left.object["spec"]["wheel"]), ("DELETED", &json!({"count": 4, "size": 9})));

    for (version, was) in [
        ("v1", json!({"owner": "ada", "place": "brook", "sails": 4})),
        ("v2", json!({"place": "brook", "wheel": {"count": 4, "size": 9}})),
    ] {
        let exact = format!("resourceVersion={start}&resourceVersionMatch=Exact");
        let list = client.get(&format!("{}?{exact}", at(version))).await.expect(200).json();
        assert_eq!(list["items"][0]["spec"], was, "{version}");
        assert_eq!(client.get(&format!("{}/a?{exact}", at(version))).await.expect(200).json()["spec"], was);
    }
}

#[tokio::test]
async fn each_version_selects_and_prints_by_its_own_names() {
    let (_server, client) = start("v1").await;
    for (version, field, other) in [("v1", "spec.sails", "spec.wheel.count"), ("v2", "spec.wheel.count", "spec.sails")]
    {
        let list = |value: u8| format!("{}?fieldSelector={field}%3D{value}", at(version));
        assert_eq!(client.get(&list(4)).await.expect(200).names(), ["a"], "{version}");
        assert!(client.get(&list(5)).await.expect(200).names().is_empty(), "{version}");
        client.get(&format!("{}?fieldSelector={other}%3D4", at(version))).await.fails(400, "BadRequest");
        let table = client.send(Method::GET, &at(version), &[TABLE], "").await.expect(200).json();
        assert_eq!(table["rows"][0]["cells"], json!(["a", 4]), "{version}");
    }
    let delete = |value: u8| format!("{}?fieldSelector=spec.wheel.count%3D{value}", at("v2"));
    client.delete(&delete(5)).await.expect(200);
    assert_eq!(client.get(&at("v1")).await.expect(200).names(), ["a"]);
    let deleted = client.delete(&delete(4)).await.expect(200).json();
    assert_eq!(deleted["items"][0]["spec"], json!({"place": "brook", "wheel": {"count": 4, "size": 9}}));
    assert!(client.get(&at("v1")).await.expect(200).names().is_empty());
}

#[tokio::test]
async fn managers_know_an_object_each_in_its_version() {
    let (_server, client) = start("v1").await;
    let apply = async |version: &str, manager: &str, spec: Value, force: bool| {
        let path = format!("{}/b?fieldManager={manager}&force={force}", at(version));
        let mut object = mill(version, spec);
        object["metadata"]["name"] = json!("b");
        client.patch(&path, APPLY, &object).await
    };
    apply("v1", "ada", json!({"sails": 1, "owner": "x"}), false).await.expect(201);
    apply("v2", "bob", json!({"wheel": {"size": 2}}), false).await.expect(200);
    let refused = apply("v2", "bob", json!({"wheel": {"count": 2, "size": 2}}), false).await.fails(409, "Conflict");
    assert!(refused["message"].as_str().is_some_and(|message| message.contains("ada")), "{refused}");
    let taken = apply("v2", "bob", json!({"wheel": {"count": 2, "size": 2}}), true).await.expect(200).json();
    let owners: Vec<(&Value, &Value, &Value)> = taken["metadata"]["managedFields"]
        .as_array()
        .expect("is tracked")
        .iter()
        .map(|entry| (&entry["manager"], &entry["apiVersion"], &entry["fieldsV1"]["f:spec"]))
        .collect();
    let (one, two) = (json!({"f:owner": {}}), json!({"f:wheel": {"f:count": {}, "f:size": {}}}));
    let versions = ["v1", "v2"].map(|version| json!(format!("{GROUP}/{version}")));
    assert_eq!(owners, [(&json!("ada"), &versions[0], &one), (&json!("bob"), &versions[1], &two)]);
    // What its manager no longer wants goes, what the other version has stays.
    apply("v2", "bob", json!({"wheel": {"size": 3}}), false).await.expect(200);
    let read = client.get(&format!("{}/b", at("v1"))).await.expect(200).json();
    assert_eq!(read["spec"], json!({"owner": "x"}));
}

#[tokio::test]
async fn an_expression_that_fails_is_told_and_loses_nothing() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let spec = |field: &str, schema: Value| json!({"type": "object", "properties": {field: schema}});
    let old = |number: Value| version("v1", true, spec("grade", number));
    let new = version("v2", false, spec("name", json!({"type": "string", "enum": ["low", "mid", "high"]})));
    define(&client, &definition(GROUP, "mills", json!([old(json!({"type": "integer"})), new]))).await;
    for name in ["a", "b", "e"] {
        let mut seven = mill("v1", json!({"grade": 7}));
        seven["metadata"]["name"] = json!(name);
        client.post(&at("v1"), &seven).await.expect(201);
    }
    // From now on there are three grades, but what is stored is what it is.
    let bounded = json!([{"op": "replace", "path": "/spec/versions/0", "value": old(json!({"type": "integer", "minimum": 0, "maximum": 2}))}]);
    client.patch(&format!("{DEFINITIONS}/mills.{GROUP}"), JSON_PATCH, &bounded).await.expect(200);
    let rule = json!({"compute": {
        "from": {"grade": ".spec.grade"}, "to": {"name": ".spec.name"},
        "forward": {"name": "['low', 'mid', 'high'][grade]"},
        "backward": {"grade": "name == 'low' ? 0 : name == 'mid' ? 1 : 2"},
    }});
    let steps = json!({"steps": [{"from": "v1", "to": "v2", "rules": [rule]}]});
    client.post(CONVERSIONS, &conversion("mills", steps)).await.expect(201);

    let before = client.get(&format!("{}/a", at("v1"))).await.expect(200);
    assert_eq!(before.json()["spec"], json!({"grade": 7}), "its own version needs no rule");
    let patch = json!({"spec": {"name": "low"}});
    for failed in [
        client.get(&format!("{}/a", at("v2"))).await,
        client.get(&at("v2")).await,
        client.get(&format!("{}?limit=1", at("v2"))).await,
        client.get(&format!("{}?labelSelector=a%3Db", at("v2"))).await,
        client.patch(&format!("{}/a", at("v2")), MERGE, &patch).await,
    ] {
        let status = failed.fails(500, "");
        let message = status["message"].as_str().unwrap_or_default();
        assert!(message.contains("spec.steps[0].rules[0]"), "{message}");
    }
    let mut events = client.watch(&at("v2"), "resourceVersion=0").await;
    let event = events.event().await;
    assert_eq!((&*event.kind, &event.object["code"]), ("ERROR", &json!(500)));
    assert_eq!(client.get(&format!("{}/a", at("v1"))).await.expect(200).version(), before.version());
    // What cannot be shown can be cleaned up.
    assert_eq!(client.delete(&format!("{}/b", at("v2"))).await.expect(200).json()["status"], "Success");
    assert_eq!(client.get(&at("v1")).await.expect(200).names(), ["a", "e"]);

    // Also together with others, which are answered, and only if it is selected.
    let mut labelled = mill("v1", json!({"grade": 1}));
    for (name, label) in [("c", "x"), ("d", "y")] {
        labelled["metadata"] = json!({"name": name, "labels": {"a": label}});
        client.post(&at("v1"), &labelled).await.expect(201);
    }
    let answered = client.delete(&format!("{}?labelSelector=a%3Dx", at("v2"))).await.expect(200);
    assert_eq!(answered.names(), ["c"]);
    assert_eq!(client.get(&at("v1")).await.expect(200).names(), ["a", "d", "e"]);
    let answered = client.delete(&format!("{}?fieldSelector=metadata.name%3De", at("v2"))).await.expect(200);
    assert!(answered.names().is_empty(), "it is gone, and cannot be shown");
    let answered = client.delete(&format!("{}?fieldSelector=metadata.name%3Dd", at("v2"))).await.expect(200);
    assert_eq!(answered.names(), ["d"]);
    assert_eq!(client.get(&at("v1")).await.expect(200).names(), ["a"]);

    client.patch(&format!("{}/a", at("v1")), MERGE, &json!({"spec": {"grade": 1}})).await.expect(200);
    let list = client.get(&at("v2")).await.expect(200).json();
    assert_eq!(list["items"][0]["spec"], json!({"name": "mid"}));
    let mut events = client.watch(&at("v2"), "resourceVersion=0").await;
    assert_eq!(events.event().await.object["spec"], json!({"name": "mid"}));
    client.patch(&format!("{}/a", at("v2")), MERGE, &json!({"spec": {"name": "high"}})).await.expect(200);
    assert_eq!(events.event().await.object["spec"], json!({"name": "high"}));
    assert_eq!(client.get(&format!("{}/a", at("v1"))).await.expect(200).json()["spec"], json!({"grade": 2}));
}

#[tokio::test]
async fn objects_are_read_and_written_canonical() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let spec = |field: &str| json!({"type": "object", "properties": {field: {"type": "string"}}});
    define(&client, &definition(GROUP, "mills", json!([version("v1", true, spec("color"))]))).await;
    let made = client.post(&at("v1"), &mill("v1", json!({"color": "red"}))).await.expect(201);
    let renamed = json!([{"op": "replace", "path": "/spec/versions/0", "value": version("v1", true, spec("colour"))}]);
    client.patch(&format!("{DEFINITIONS}/mills.{GROUP}"), JSON_PATCH, &renamed).await.expect(200);
    let rule = json!({"move": {"from": ".spec.color", "to": ".spec.colour"}});
    let canonical = json!({"canonicalize": [{"version": "v1", "rules": [rule]}]});
    client.post(CONVERSIONS, &conversion("mills", canonical)).await.expect(201);
    let read = client.get(&format!("{}/a", at("v1"))).await.expect(200);
    assert_eq!((&read.json()["spec"], read.version()), (&json!({"colour": "red"}), made.version()));

    let strict = format!("{}/a?fieldManager=bob&force=true&fieldValidation=Strict", at("v1"));
    let applied = client.patch(&strict, APPLY, &mill("v1", json!({"color": "blue"}))).await.expect(200).json();
    assert_eq!(applied["spec"], json!({"colour": "blue"}));
    let entry = &applied["metadata"]["managedFields"][0];
    assert_eq!((&entry["manager"], &entry["fieldsV1"]["f:spec"]), (&json!("bob"), &json!({"f:colour": {}})));
    let both = json!({"spec": {"color": "old", "colour": "new"}});
    let patched = client.patch(&format!("{}/a", at("v1")), MERGE, &both).await.expect(200).json();
    assert_eq!(patched["spec"], json!({"colour": "new"}));
}
