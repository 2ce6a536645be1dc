//! A Conversion stays while stored objects need it.

use serde_json::json;

use super::*;
use crate::client::MERGE;
use crate::harness::Server;

fn store_as(version: &'static str) -> impl Fn(&mut Value) {
    move |definition| {
        for known in definition["spec"]["versions"].as_array_mut().expect("versions") {
            known["storage"] = json!(known["name"] == version);
        }
    }
}

#[tokio::test]
async fn it_is_not_deleted_while_objects_are_stored_in_another_version() {
    let server = Server::start(&[]).await;
    let client = server.client();
    define(&client, &renamed()).await;
    let mut held = conversion(&rename());
    held["metadata"]["finalizers"] = json!(["rules.example/keep"]);
    client.post(CONVERSIONS, &held).await.expect(201);
    for name in ["a", "b", "c"] {
        client.post(&fleet("v1"), &boat("v1", name, json!({"size": 1}))).await.expect(201);
    }
    amend(&client, store_as("v2"), "").await.expect(200);
    for path in [at(), format!("{}?dryRun=All", at()), CONVERSIONS.to_owned()] {
        let refused = client.delete(&path).await.expect(409).json();
        let message = refused["message"].as_str().expect("a message");
        assert!(message.contains(": 3 objects are stored that need it"), "{message}");
    }
    assert_eq!(client.get(&at()).await.expect(200).json()["metadata"]["deletionTimestamp"], Value::Null);
    for name in ["a", "b"] {
        let label = json!({"metadata": {"labels": {"moved": "yes"}}});
        client.patch(&format!("{}/{name}", fleet("v2")), MERGE, &label).await.expect(200);
    }
    let refused = client.delete(&at()).await.expect(409).json();
    assert!(refused["message"].as_str().is_some_and(|text| text.contains(": 1 object is stored")), "{refused}");
    client.delete(&format!("{}/c", fleet("v2"))).await.expect(200);

    // What was marked while nobody needed it, stays when somebody does.
    client.delete(&at()).await.expect(200);
    amend(&client, store_as("v1"), "").await.expect(200);
    let release = json!({"metadata": {"finalizers": null}});
    client.patch(&at(), MERGE, &release).await.expect(409);
    amend(&client, store_as("v2"), "").await.expect(200);
    client.patch(&at(), MERGE, &release).await.expect(200);
    client.get(&at()).await.expect(404);
}
