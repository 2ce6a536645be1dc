//! Requests for custom objects that lead nowhere, or somewhere odd, and what the original says to them.

use serde_json::{Value, json};

use super::{causes, define, definition, objects, version};
use crate::client::MERGE;
use crate::harness::Server;

const GROUP: &str = "odd.example";

/// A definition of sloops with a rule, a status and a scale.
fn sloops() -> Value {
    let spec = json!({
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 1}},
        "x-kubernetes-validations": [{"rule": "self.n < 9"}],
    });
    let mut version = version("v1", true, spec);
    version["subresources"]["scale"] = json!({"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"});
    definition(GROUP, "sloops", json!([version]))
}

fn sloop(metadata: &Value) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Sloop", "metadata": metadata, "spec": {"n": 1}})
}

#[tokio::test]
async fn what_is_not_there_is_told_as_by_the_original() {
    let server = Server::start(&[]).await;
    let client = server.client();
    define(&client, &sloops()).await;
    let collection = objects(GROUP, "v1", "sloops");
    client.post(&collection, &sloop(&json!({"name": "a"}))).await.expect(201);
    // A group of custom resources alone has no pages of its own.
    for path in ["v2", "v2/sloops", "v1/yawls", "v1/namespaces/default/yawls/a", "v1/sloops/a"] {
        let reply = client.get(&format!("/apis/{GROUP}/{path}")).await.expect(404);
        assert_eq!(reply.text(), "404 page not found\n", "{path}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{path}");
    }
    let part = client.get(&format!("{collection}/a/mast")).await.expect(404).json();
    assert_eq!(part["message"], "sloops.odd.example \"a\" not found");
    for (method, part, verb) in [("POST", "status", "create"), ("DELETE", "scale", "delete")] {
        let method = method.parse().expect("a method");
        let refused = client.send(method, &format!("{collection}/a/{part}"), &[], "").await.expect(405);
        let refused = refused.json();
        assert_eq!(refused["message"], format!("{verb} is not supported on resources of kind \"sloops.odd.example\""));
        assert_eq!(refused["details"], json!({"group": GROUP, "kind": "sloops"}));
    }
    let unnamed = client.put(&collection, &sloop(&json!({"name": "a"}))).await.expect(400).json();
    assert_eq!(unnamed["message"], "name must be provided");
    // What is sent to the path of an object is made under the name that it says.
    let made = client.post(&format!("{collection}/a"), &sloop(&json!({"name": "b"}))).await.expect(201).json();
    assert_eq!(made["metadata"]["name"], "b");
    client.post(&format!("{collection}/c"), &sloop(&json!({"name": "a"}))).await.fails(409, "AlreadyExists");
}

#[tokio::test]
async fn a_scale_is_held_to_what_it_makes_of_the_object() {
    let server = Server::start(&[]).await;
    let client = server.client();
    define(&client, &sloops()).await;
    let collection = objects(GROUP, "v1", "sloops");
    client.post(&collection, &sloop(&json!({"name": "a"}))).await.expect(201);
    let path = format!("{collection}/a/scale");
    let refused = client.patch(&path, MERGE, &json!({"spec": {"replicas": -1}})).await.expect(422).json();
    assert_eq!(refused["details"]["kind"], "Sloop");
    assert_eq!(refused["details"]["group"], GROUP);
    let fields: Vec<&str> = causes(&refused).into_iter().map(|(field, _)| field).collect();
    assert_eq!(fields, ["spec.n", ".spec.n"]);
    client.patch(&path, MERGE, &json!({"spec": {"replicas": 3}})).await.expect(200);
}

#[tokio::test]
async fn rules_are_not_run_for_what_has_no_name() {
    let server = Server::start(&[]).await;
    let client = server.client();
    define(&client, &sloops()).await;
    let refused = client.post(&objects(GROUP, "v1", "sloops"), &sloop(&json!({}))).await.expect(422).json();
    let fields: Vec<&str> = causes(&refused).into_iter().map(|(field, _)| field).collect();
    assert_eq!(fields, ["metadata.name", "<nil>"], "{refused}");
}
