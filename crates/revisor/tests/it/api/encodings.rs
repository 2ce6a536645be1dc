//! In which encodings objects travel beside JSON: protobuf, and CBOR where it is switched on.

use http::Method;
use revisor_catalog::Catalog;
use revisor_object::Value as Decoded;
use revisor_schema::{CBOR_TAG, Envelope};
use serde_json::{Value, json};

use crate::client::{Client, Reply};
use crate::custom::{define, definition, objects, version};
use crate::harness::Server;
use crate::objects::{CONFIG_MAPS, config_map};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const CBOR: &str = "application/cbor";
const METADATA: &str = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

async fn get_as(client: &Client, path: &str, accept: &str) -> Reply {
    client.send(Method::GET, path, &[("accept", accept)], "").await
}

/// The config map in an envelope, as JSON without its kind.
#[track_caller]
fn config_map_in(bytes: &[u8]) -> Value {
    let envelope = Envelope::read(bytes).expect("an envelope");
    assert_eq!((envelope.api_version.as_str(), envelope.kind.as_str()), ("v1", "ConfigMap"));
    let catalog = Catalog::default();
    let config_maps = catalog.resource("", "v1", "configmaps").expect("is served");
    let mut object = config_maps.read_protobuf(envelope.raw).expect("a message");
    config_maps.conform(&mut object).expect("a config map");
    serde_json::from_str(&object.to_json()).expect("JSON")
}

fn without_type(mut object: Value) -> Value {
    let members = object.as_object_mut().expect("an object");
    members.remove("kind");
    members.remove("apiVersion");
    object
}

#[tokio::test]
async fn objects_say_the_same_in_protobuf_and_come_back_as_they_went() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let json = client.post(CONFIG_MAPS, &config_map("a", "1")).await.expect(201).json();
    let path = format!("{CONFIG_MAPS}/a");
    let got = get_as(&client, &path, PROTOBUF).await.expect(200);
    assert_eq!(got.header("content-type"), Some(PROTOBUF));
    assert_eq!(config_map_in(&got.body), without_type(json));
    let headers = [("content-type", PROTOBUF), ("accept", PROTOBUF)];
    let put = client.send(Method::PUT, &path, &headers, got.body.clone()).await.expect(200);
    assert_eq!(put.body, got.body, "nothing changed");
    let listed = get_as(&client, CONFIG_MAPS, PROTOBUF).await.expect(200);
    let list = Envelope::read(&listed.body).expect("an envelope");
    assert_eq!(list.kind, "ConfigMapList");
    let message = Envelope::read(&got.body).expect("an envelope").raw.to_vec();
    assert!(list.raw.ends_with(&message), "the item is the message of the object");
    let missing = get_as(&client, &format!("{path}b"), PROTOBUF).await.expect(404);
    assert_eq!(Envelope::read(&missing.body).expect("an envelope").kind, "Status");
}

#[tokio::test]
async fn a_watch_in_protobuf_is_framed_by_lengths() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let json = client.post(CONFIG_MAPS, &config_map("a", "1")).await.expect(201).json();
    let path = format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Da");
    for _ in 0..2 {
        let watched = get_as(&client, &path, PROTOBUF).await.expect(200);
        assert_eq!(watched.header("content-type"), Some("application/vnd.kubernetes.protobuf;stream=watch"));
        let (length, rest) = watched.body.split_first_chunk::<4>().expect("a length");
        assert_eq!(u32::from_be_bytes(*length) as usize, rest.len());
        assert!(rest.starts_with(b"\x0a\x05ADDED\x12"), "{rest:?}");
        let start = rest.windows(4).position(|bytes| bytes == b"k8s\0").expect("an envelope");
        assert_eq!(config_map_in(&rest[start..]), without_type(json.clone()));
    }
}

/// A list is as long as its head says, however many turns it takes to measure it.
#[tokio::test]
async fn long_lists_are_as_long_as_they_say() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let large = "x".repeat(200 * 1024);
    for name in ["a", "b", "c", "d"] {
        client.post(CONFIG_MAPS, &config_map(name, &large)).await.expect(201);
    }
    for _ in 0..2 {
        let listed = get_as(&client, CONFIG_MAPS, PROTOBUF).await.expect(200);
        let list = Envelope::read(&listed.body).expect("as long as it says");
        assert!(list.raw.len() > 4 * large.len() && listed.body.len() < list.raw.len() + 100);
    }
}

#[tokio::test]
async fn custom_resources_have_only_their_metadata_in_protobuf() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let spec = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    define(&client, &definition("example.com", "gadgets", json!([version("v1", true, spec)]))).await;
    let path = objects("example.com", "v1", "gadgets");
    let gadget = json!({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "a"}, "spec": {"n": 1}});
    client.post(&path, &gadget).await.expect(201);
    let one = format!("{path}/a");
    let refused = get_as(&client, &one, PROTOBUF).await.expect(406);
    assert_eq!(refused.header("content-type"), Some(PROTOBUF));
    let json = get_as(&client, &one, &format!("{PROTOBUF},application/json")).await.expect(200);
    assert_eq!((json.header("content-type"), &json.json()["spec"]), (Some("application/json"), &json!({"n": 1})));
    let metadata = get_as(&client, &one, &format!("{PROTOBUF}{METADATA}")).await.expect(200);
    assert_eq!(Envelope::read(&metadata.body).expect("an envelope").kind, "PartialObjectMetadata");
}

#[tokio::test]
async fn cbor_is_spoken_where_it_is_switched_on() {
    let server = Server::start(&["--feature-gates=CBORServingAndStorage=true"]).await;
    let client = server.client();
    let catalog = Catalog::default();
    let (types, id) = catalog.resource("", "v1", "configmaps").expect("is served").typed();
    let decoded = |bytes: &[u8]| -> Value {
        assert!(bytes.starts_with(&CBOR_TAG), "describes itself");
        let value = types.read_cbor(Some(id), bytes).expect("CBOR");
        serde_json::from_str(&value.to_json()).expect("JSON")
    };
    let sent = config_map("a", "1").to_string();
    let Ok(Decoded::Object(object)) = revisor_object::parse_json(sent.as_bytes()).map(|parsed| parsed.value) else {
        panic!("a config map is an object")
    };
    let headers = [("content-type", CBOR), ("accept", CBOR)];
    let body = types.write_cbor(Some(id), &object);
    let made = client.send(Method::POST, CONFIG_MAPS, &headers, body).await.expect(201);
    let path = format!("{CONFIG_MAPS}/a");
    let json = client.get(&path).await.expect(200).json();
    assert_eq!(decoded(&made.body), json);
    assert_eq!(decoded(&get_as(&client, &path, CBOR).await.expect(200).body), json);
    let watched = get_as(&client, &format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=1"), CBOR).await.expect(200);
    assert_eq!(watched.header("content-type"), Some("application/cbor-seq"));
    let (server, _) = server.terminate().await;
    let server = server.with_flags(&["--feature-gates=CBORServingAndStorage=false"]).start().await;
    let client = server.client();
    assert_eq!(client.get(&path).await.expect(200).json(), json);
    get_as(&client, &path, CBOR).await.expect(406);
}
