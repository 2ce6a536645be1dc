//! What belongs together goes together, whichever part of it is custom.

use serde_json::{Value, json};

use super::{DEFINITIONS, anything, define, definition, gone, objects, version};
use crate::client::{Client, MERGE};
use crate::harness::{Server, eventually};
use crate::objects::{CONFIG_MAPS, NAMESPACES, config_map, namespace};

const GROUP: &str = "tree.example";

async fn start() -> (Server, Client) {
    let server = Server::start(&["--controllers=*"]).await;
    let client = server.client();
    let versions = json!([version("v1", false, anything()), version("v2", true, anything())]);
    define(&client, &definition(GROUP, "oaks", versions)).await;
    (server, client)
}

/// An acorn or an oak, with owners.
fn oak(version: &str, name: &str, owners: &[Value]) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/{version}"),
        "kind": "Oak",
        "metadata": {"name": name, "ownerReferences": owners},
        "spec": {"rings": 1},
    })
}

fn reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": true,
    })
}

async fn owned_config_map(client: &Client, name: &str, owner: &Value) -> String {
    let mut object = config_map(name, "1");
    object["metadata"]["ownerReferences"] = json!([reference(owner)]);
    client.post(CONFIG_MAPS, &object).await.expect(201);
    format!("{CONFIG_MAPS}/{name}")
}

#[tokio::test]
async fn owners_and_dependents_may_be_custom() {
    let (_server, client) = start().await;
    let (v1, v2) = (objects(GROUP, "v1", "oaks"), objects(GROUP, "v2", "oaks"));
    for policy in ["Background", "Foreground"] {
        // A custom object owns a built-in one, which owns a custom one, each named by another version.
        let root = client.post(&v1, &oak("v1", "root", &[])).await.expect(201).json();
        let middle = owned_config_map(&client, "middle", &root).await;
        let middle_object = client.get(&middle).await.expect(200).json();
        let leaf = client.post(&v2, &oak("v2", "leaf", &[reference(&middle_object)])).await.expect(201).json();
        client.post(&v1, &oak("v1", "last", &[reference(&leaf)])).await.expect(201);
        client.delete_with(&format!("{v2}/root"), &json!({"propagationPolicy": policy})).await.expect(200);
        for path in [format!("{v1}/root"), middle, format!("{v1}/leaf"), format!("{v2}/last")] {
            gone(&client, &path).await;
        }
    }
    let root = client.post(&v2, &oak("v2", "root", &[])).await.expect(201).json();
    let kept = owned_config_map(&client, "kept", &root).await;
    client.delete_with(&format!("{v1}/root"), &json!({"propagationPolicy": "Orphan"})).await.expect(200);
    gone(&client, &format!("{v1}/root")).await;
    let orphan = client.get(&kept).await.expect(200).json();
    assert!(orphan["metadata"]["ownerReferences"].is_null(), "{orphan}");
}

#[tokio::test]
async fn dependents_of_a_definition_that_goes_go_with_its_objects() {
    let (_server, client) = start().await;
    let v1 = objects(GROUP, "v1", "oaks");
    let root = client.post(&v1, &oak("v1", "root", &[])).await.expect(201).json();
    let dependent = owned_config_map(&client, "dependent", &root).await;
    client.delete(&format!("{DEFINITIONS}/oaks.{GROUP}")).await.expect(200);
    gone(&client, &format!("{DEFINITIONS}/oaks.{GROUP}")).await;
    gone(&client, &dependent).await;
    client.get(&v1).await.expect(404);
}

#[tokio::test]
async fn a_namespace_takes_its_custom_objects_with_it() {
    let (_server, client) = start().await;
    client.post(NAMESPACES, &namespace("wood")).await.expect(201);
    let path = format!("/apis/{GROUP}/v2/namespaces/wood/oaks");
    for number in 0..5 {
        client.post(&path, &oak("v2", &format!("o{number}"), &[])).await.expect(201);
    }
    let mut held = oak("v2", "held", &[]);
    held["metadata"]["finalizers"] = json!(["tree.example/roots"]);
    client.post(&path, &held).await.expect(201);
    client.delete(&format!("{NAMESPACES}/wood")).await.expect(200);
    eventually(|| async { (client.get(&path).await.expect(200).names() == ["held"]).then_some(()) }).await;
    client.post(&path, &oak("v2", "late", &[])).await.fails(403, "Forbidden");
    let patch = json!({"metadata": {"finalizers": null}});
    client.patch(&format!("/apis/{GROUP}/v1/namespaces/wood/oaks/held"), MERGE, &patch).await.expect(200);
    gone(&client, &format!("{NAMESPACES}/wood")).await;
    assert_eq!(client.get(&format!("/apis/{GROUP}/v2/oaks")).await.expect(200).names(), Vec::<String>::new());
}
