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
    client.post(CONVERSIONS, &held()).await.expect(201);
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

#[tokio::test]
async fn it_is_not_changed_so_that_kept_parts_have_no_way_back() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let number = || json!({"n": {"type": "integer"}});
    let mut with_mode = number();
    with_mode["mode"] = json!({"type": "string"});
    define(&client, &boats(&[("v1", number()), ("v2", with_mode), ("v3", number())])).await;
    let steps = |ends: &[(&str, &str)]| -> Value {
        let steps: Vec<Value> = ends.iter().map(|(from, to)| step(from, to, json!([]))).collect();
        json!({"spec": {"steps": steps}})
    };
    propose(&client, &steps(&[("v1", "v2"), ("v1", "v3")])["spec"]).await.expect(201);
    for name in ["a", "b"] {
        client.post(&fleet("v2"), &boat("v2", name, json!({"n": 1, "mode": "m"}))).await.expect(201);
    }
    let mode = async || client.get(&format!("{}/a", fleet("v2"))).await.expect(200).json()["spec"]["mode"].clone();
    for query in ["?dryRun=All", ""] {
        let refused =
            client.patch(&format!("{}{query}", at()), MERGE, &steps(&[("v1", "v3")])).await.expect(409).json();
        let message = refused["message"].as_str().expect("a message");
        assert!(message.contains(": 2 objects are stored that would lose something by this change"), "{message}");
    }
    // Neither is it deleted; another way to the same version is as good.
    let refused = client.delete(&at()).await.expect(409).json();
    assert!(refused["message"].as_str().is_some_and(|text| text.contains(": 2 objects are")), "{refused}");
    client.patch(&at(), MERGE, &steps(&[("v1", "v3"), ("v3", "v2")])).await.expect(200);
    assert_eq!(mode().await, "m");
    // What is kept for a version that is not served holds nothing up.
    amend(&client, |definition| definition["spec"]["versions"][1]["served"] = json!(false), "").await.expect(200);
    client.patch(&at(), MERGE, &steps(&[("v1", "v3")])).await.expect(200);
    client.delete(&at()).await.expect(200);
}

#[tokio::test]
async fn it_stays_while_objects_are_not_canonical() {
    let server = Server::start(&[]).await;
    let client = server.client();
    define(&client, &boats(&[("v1", json!({"old": {"type": "string"}, "n": {"type": "integer"}}))])).await;
    client.post(&fleet("v1"), &boat("v1", "a", json!({"old": "x"}))).await.expect(201);
    client.post(&fleet("v1"), &boat("v1", "b", json!({"n": 1}))).await.expect(201);
    let renamed = boats(&[("v1", json!({"new": {"type": "string"}, "n": {"type": "integer"}}))]);
    amend(&client, |definition| definition["spec"]["versions"] = renamed["spec"]["versions"].clone(), "")
        .await
        .expect(200);
    let rules = json!([{"move": {"from": ".spec.old", "to": ".spec.new"}}]);
    propose(&client, &json!({"canonicalize": [{"version": "v1", "rules": rules}]})).await.expect(201);
    let boat = format!("{}/a", fleet("v1"));
    assert_eq!(client.get(&boat).await.expect(200).json()["spec"], json!({"new": "x"}));
    client.patch(&at(), MERGE, &json!({"spec": {"canonicalize": null}})).await.expect(409);
    let refused = client.delete(&at()).await.expect(409).json();
    assert!(refused["message"].as_str().is_some_and(|text| text.contains(": 1 object is stored")), "{refused}");
    // Whatever is written is canonical.
    client.patch(&boat, MERGE, &json!({"spec": {"n": 2}})).await.expect(200);
    client.delete(&at()).await.expect(200);
    assert_eq!(client.get(&boat).await.expect(200).json()["spec"], json!({"new": "x", "n": 2}));
}
