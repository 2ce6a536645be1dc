//! Versions on their way out: not served any more, or only to be read.

use serde_json::{Value, json};

use super::{DEFINITIONS, define, definition, gone, objects, version};
use crate::client::{APPLY, Client, JSON_PATCH, MERGE, Reply};
use crate::harness::{Server, eventually};

const GROUP: &str = "yard.example";
const FROZEN: &str = "versioning.revisor.dev/frozen-versions";

/// A definition of hulls in these versions, the last of which is stored. All have a status and a scale.
fn hulls(versions: &[&str]) -> Value {
    let versions = versions.iter().map(|name| {
        let spec = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
        let mut version = version(name, Some(name) == versions.last(), spec);
        let scale = json!({"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"});
        version["subresources"]["scale"] = scale;
        version
    });
    definition(GROUP, "hulls", versions.collect())
}

fn hull(version: &str, name: &str) -> Value {
    json!({"apiVersion": format!("{GROUP}/{version}"), "kind": "Hull", "metadata": {"name": name}, "spec": {"n": 1}})
}

/// Changes the definition, which has taken effect when this is done.
async fn redefine(client: &Client, plural: &str, change: impl FnOnce(&mut Value)) -> Reply {
    let path = format!("{DEFINITIONS}/{plural}.{GROUP}");
    let mut definition = client.get(&path).await.expect(200).json();
    change(&mut definition);
    client.put(&path, &definition).await.expect(200)
}

/// Also where no version is left that could be named.
#[tokio::test]
async fn who_asks_for_what_is_not_served_at_all_is_told_so() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let mut defined = hulls(&["v1"]);
    define(&client, &defined).await;
    let path = objects(GROUP, "v1", "hulls");
    client.get(&path).await.expect(200);
    let serve = |is_served: bool| move |hulls: &mut Value| hulls["spec"]["versions"][0]["served"] = json!(is_served);
    redefine(&client, "hulls", serve(false)).await;
    let told = "299 - \"hulls of yard.example/v1 are defined but not served; no version of them is\"";
    assert_eq!(client.get(&path).await.expect(404).warnings(), [told]);
    assert!(client.get(&objects(GROUP, "v2", "hulls")).await.expect(404).warnings().is_empty(), "is not defined");
    redefine(&client, "hulls", serve(true)).await;
    assert!(client.get(&path).await.expect(200).warnings().is_empty());
    redefine(&client, "hulls", serve(false)).await;
    client.delete(&format!("{DEFINITIONS}/hulls.{GROUP}")).await.expect(200);
    gone(&client, &format!("{DEFINITIONS}/hulls.{GROUP}")).await;
    assert!(client.get(&path).await.expect(404).warnings().is_empty(), "nothing is known of it any more");
    defined["spec"]["versions"][0]["served"] = json!(false);
    define(&client, &defined).await;
    assert_eq!(client.get(&path).await.expect(404).warnings(), [told], "also if it was never served");
}

#[tokio::test]
async fn who_asks_for_a_version_that_is_not_served_is_told_which_are() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let mut defined = hulls(&["v1alpha1", "v1", "v2"]);
    defined["spec"]["versions"][0]["served"] = json!(false);
    define(&client, &defined).await;

    let told = "299 - \"hulls of yard.example/v1alpha1 are defined but not served; versions that are served: v2, v1\"";
    let collection = objects(GROUP, "v1alpha1", "hulls");
    let unserved = format!("/apis/{GROUP}/v1alpha1");
    let json = [("content-type", "application/json")];
    for (method, path) in [
        ("GET", collection.clone()),
        ("GET", format!("{unserved}/hulls")),
        ("GET", format!("{unserved}/hulls?watch=true")),
        ("GET", format!("{unserved}/watch/hulls")),
        ("GET", format!("{collection}/a")),
        ("GET", format!("{collection}/a/status")),
        ("PUT", format!("{collection}/a/scale")),
        ("PUT", format!("{collection}/a")),
        ("POST", collection.clone()),
        ("PATCH", format!("{collection}/a")),
        ("DELETE", format!("{collection}/a")),
        ("DELETE", collection.clone()),
        ("GET", unserved.clone()),
    ] {
        let method = method.parse().expect("is a method");
        let reply = client.send(method, &path, &json, hull("v1alpha1", "a").to_string()).await.expect(404);
        assert_eq!(reply.warnings(), [told], "{path}");
        assert_eq!(reply.text(), "404 page not found\n", "{path}");
    }
    // Of what is not defined at all nothing is told, nor of anything to those who may not ask.
    for path in [format!("/apis/{GROUP}/v9/hulls"), format!("{unserved}/keels"), format!("{unserved}/a/b/c/d/e")] {
        assert!(client.get(&path).await.expect(404).warnings().is_empty(), "{path}");
    }
    let nobody = client.acting_as("nobody");
    assert!(nobody.get(&collection).await.expect(403).warnings().is_empty());

    // Another definition may serve the same version.
    define(&client, &definition(GROUP, "keels", json!([version("v1alpha1", true, json!({"type": "object"}))]))).await;
    assert_eq!(client.get(&collection).await.expect(404).warnings(), [told]);
    assert!(client.get(&unserved).await.expect(200).warnings().is_empty());

    redefine(&client, "hulls", |defined| defined["spec"]["versions"][0]["served"] = json!(true)).await;
    assert!(client.get(&collection).await.expect(200).warnings().is_empty());
}

#[tokio::test]
async fn a_frozen_version_is_read_and_not_written() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let mut defined = hulls(&["v1alpha1", "v1beta1", "v1"]);
    defined["metadata"]["annotations"] = json!({FROZEN: "v1alpha1, v1beta1"});
    define(&client, &defined).await;
    let at = |version: &str, name: &str| format!("{}{name}", objects(GROUP, version, "hulls"));
    client.post(&at("v1", ""), &hull("v1", "a")).await.expect(201);

    let whole = client.get(&at("v1alpha1", "/a")).await.expect(200).json();
    assert_eq!(client.get(&at("v1alpha1", "")).await.expect(200).json()["items"][0]["spec"], whole["spec"]);
    let scale = client.get(&at("v1alpha1", "/a/scale")).await.expect(200).json();
    let number = json!([{"op": "add", "path": "/spec/n", "value": 2}]);
    let (patch, new) = (json!({"spec": {"n": 2}}), hull("v1alpha1", "b"));
    for (name, reply) in [
        ("create", client.post(&at("v1alpha1", ""), &new).await),
        ("create, only to see", client.post(&at("v1alpha1", "?dryRun=All"), &new).await),
        ("update", client.put(&at("v1alpha1", "/a"), &whole).await),
        ("merge patch", client.patch(&at("v1alpha1", "/a"), MERGE, &patch).await),
        ("patch, only to see", client.patch(&at("v1alpha1", "/a?dryRun=All"), MERGE, &patch).await),
        ("JSON patch", client.patch(&at("v1alpha1", "/a"), JSON_PATCH, &number).await),
        ("apply", client.patch(&at("v1alpha1", "/a?fieldManager=m"), APPLY, &hull("v1alpha1", "a")).await),
        ("apply what is not there", client.patch(&at("v1alpha1", "/b?fieldManager=m"), APPLY, &new).await),
        ("status", client.put(&at("v1alpha1", "/a/status"), &whole).await),
        ("patch of the status", client.patch(&at("v1alpha1", "/a/status"), MERGE, &json!({"status": {}})).await),
        ("scale", client.put(&at("v1alpha1", "/a/scale"), &scale).await),
        (
            "patch of the scale",
            client.patch(&at("v1alpha1", "/a/scale"), MERGE, &json!({"spec": {"replicas": 3}})).await,
        ),
    ] {
        let status = reply.fails(403, "Forbidden");
        let message = status["message"].as_str().expect("is text");
        let why = "yard.example/v1alpha1 is frozen: its objects can be read but not written; use yard.example/v1";
        assert!(message.starts_with("hulls.yard.example \"") && message.ends_with(why), "{name}: {message}");
    }
    let after = client.get(&at("v1", "")).await.expect(200);
    assert_eq!(after.names(), ["a"]);
    assert_eq!(after.json()["items"][0]["metadata"]["resourceVersion"], whole["metadata"]["resourceVersion"]);

    // To delete is no write through it, nor is what other versions do.
    client.patch(&at("v1", "/a"), MERGE, &patch).await.expect(200);
    client.delete(&at("v1beta1", "/a")).await.expect(200);
    client.post(&at("v1", ""), &hull("v1", "c")).await.expect(201);
    client.delete(&at("v1alpha1", "")).await.expect(200);
    assert!(client.get(&at("v1", "")).await.expect(200).names().is_empty());

    // It is over as soon as the definition says so.
    let thawed =
        redefine(&client, "hulls", |defined| defined["metadata"]["annotations"] = json!({FROZEN: "v1, v7,"})).await;
    let about = "299 - \"metadata.annotations[versioning.revisor.dev/frozen-versions]: ";
    let odd = format!("{about}should be names of versions, separated by commas\"");
    assert_eq!(thawed.warnings(), [odd, format!("{about}\\\"v7\\\" is no version of this definition\"")]);
    client.post(&at("v1alpha1", ""), &new).await.expect(201);
    client.patch(&at("v1", "/b"), MERGE, &patch).await.fails(403, "Forbidden");
    redefine(&client, "hulls", |defined| defined["metadata"]["annotations"] = json!({})).await;
    client.patch(&at("v1", "/b"), MERGE, &patch).await.expect(200);
}

/// The collector takes an owner that is gone out of an object whatever version it sees it in.
#[tokio::test]
async fn the_server_itself_goes_on_with_objects_of_frozen_versions() {
    let server = Server::start(&["--controllers=*"]).await;
    let client = server.client();
    let path = objects(GROUP, "v1", "hulls");
    let maps = "/api/v1/namespaces/default/configmaps";
    let mut owners = Vec::new();
    for name in ["stays", "goes"] {
        let map = client.post(maps, &json!({"metadata": {"name": name}})).await.expect(201).json();
        owners.push(json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": map["metadata"]["uid"]}));
    }
    define(&client, &hulls(&["v1"])).await;
    let mut owned = hull("v1", "a");
    owned["metadata"]["ownerReferences"] = json!(owners);
    client.post(&path, &owned).await.expect(201);
    redefine(&client, "hulls", |defined| defined["metadata"]["annotations"] = json!({FROZEN: "v1"})).await;
    client.patch(&format!("{path}/a"), MERGE, &json!({"spec": {"n": 2}})).await.fails(403, "Forbidden");
    client.delete(&format!("{maps}/goes")).await.expect(200);
    eventually(|| async {
        let hull = client.get(&format!("{path}/a")).await.expect(200).json();
        let left = hull["metadata"]["ownerReferences"].as_array().map(Vec::len);
        (left == Some(1)).then_some(())
    })
    .await;
}
