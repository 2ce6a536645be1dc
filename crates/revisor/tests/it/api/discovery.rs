//! What the server tells of what it serves, while that changes.

use http::Method;
use serde_json::{Value, json};

use crate::client::{Client, MERGE, Reply};
use crate::harness::{Server, eventually};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GADGETS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.disco.example.com";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.disco.example.com"},
        "spec": {
            "group": "disco.example.com",
            "scope": "Namespaced",
            "names": {"plural": "gadgets", "kind": "Gadget"},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
                }}},
            }],
        },
    })
}

async fn asked(client: &Client, path: &str, headers: &[(&str, &str)]) -> Reply {
    client.send(Method::GET, path, headers, "").await
}

/// The tag of what all groups are told as, and whether ours is among them.
async fn told(client: &Client) -> (String, bool) {
    let reply = asked(client, "/apis", &[("accept", AGGREGATED)]).await.expect(200);
    let tag = reply.headers["etag"].to_str().expect("is text").to_owned();
    let groups = reply.json()["items"].as_array().expect("items").clone();
    (tag, groups.iter().any(|group| group["metadata"]["name"] == "disco.example.com"))
}

/// Where the documents of OpenAPI are, by group and version.
async fn addresses(client: &Client) -> Value {
    client.get("/openapi/v3").await.expect(200).json()["paths"].take()
}

#[tokio::test]
async fn custom_resources_come_and_go_in_all_documents() {
    let server = Server::start(&["--controllers=*"]).await;
    let client = server.client();
    let (tag, is_told) = told(&client).await;
    assert!(!is_told);
    let known = asked(&client, "/apis", &[("accept", AGGREGATED), ("if-none-match", &tag)]).await.expect(304);
    assert!(known.body.is_empty());
    let before = addresses(&client).await;
    let swagger = client.get("/openapi/v2").await.expect(200);

    client.post(DEFINITIONS, &definition()).await.expect(201);
    eventually(|| async { told(&client).await.1.then_some(()) }).await;
    asked(&client, "/apis", &[("accept", AGGREGATED), ("if-none-match", &tag)]).await.expect(200);
    let resources = client.get("/apis/disco.example.com/v1").await.expect(200).json();
    assert_eq!(resources["resources"][0]["name"], "gadgets");
    let mut after = addresses(&client).await;
    let mut take = |path| after.as_object_mut().and_then(|after| after.remove(path)).expect("is told");
    let address = take("apis/disco.example.com/v1");
    // Reports are there as long as there are definitions.
    take("apis/versioning.revisor.dev");
    take("apis/versioning.revisor.dev/v1alpha1");
    assert_eq!(before, after, "nothing else changed");
    let address = address["serverRelativeURL"].as_str().expect("an address").to_owned();
    let schema =
        client.get(&address).await.expect(200).json()["components"]["schemas"]["com.example.disco.v1.Gadget"].take();
    assert_eq!(schema["properties"]["spec"]["properties"]["size"]["type"], "integer");
    let old = swagger.headers["etag"].to_str().expect("is text");
    let swagger = asked(&client, "/openapi/v2", &[("if-none-match", old)]).await.expect(200).json();
    assert!(swagger["definitions"]["com.example.disco.v1.Gadget"].is_object());

    let change = json!({"spec": {"versions": [{
        "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}},
    }]}});
    client.patch(GADGETS, MERGE, &change).await.expect(200);
    let moved = eventually(|| async { Some(client.get(&address).await).filter(|reply| reply.code == 301) }).await;
    let current = &addresses(&client).await["apis/disco.example.com/v1"]["serverRelativeURL"];
    assert_eq!(moved.headers["location"].to_str().ok(), current.as_str());

    client.delete(GADGETS).await.expect(200);
    eventually(|| async { (!told(&client).await.1).then_some(()) }).await;
    for path in ["/apis/disco.example.com", "/apis/disco.example.com/v1", "/openapi/v3/apis/disco.example.com/v1"] {
        client.get(path).await.expect(404);
    }
    eventually(|| async { (addresses(&client).await == before).then_some(()) }).await;
    assert_eq!(told(&client).await.0, tag, "the same content has the same tag");
}

#[tokio::test]
async fn clients_get_discovery_in_a_form_that_they_accept() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let plain = format!("{AGGREGATED},application/json");
    let beta = AGGREGATED.replace("v2", "v2beta1");
    for (path, accept, code, kind) in [
        ("/apis", "application/json", 200, "APIGroupList"),
        ("/apis", AGGREGATED, 200, "APIGroupDiscoveryList"),
        ("/apis/", AGGREGATED, 406, "Status"),
        ("/apis/", &*plain, 200, "APIGroupList"),
        ("/api", &*plain, 200, "APIGroupDiscoveryList"),
        ("/apis/apps", &*plain, 200, "APIGroup"),
        ("/apis/apps/v1", &*plain, 200, "APIResourceList"),
        ("/apis/apps/v1", AGGREGATED, 406, "Status"),
        ("/apis", &*beta, 406, "Status"),
        ("/api", "text/plain", 406, "Status"),
    ] {
        let reply = asked(&client, path, &[("accept", accept)]).await.expect(code);
        assert_eq!(reply.json()["kind"], kind, "{path} {accept}");
    }
    let yaml = AGGREGATED.replace("json", "yaml");
    let reply = asked(&client, "/api", &[("accept", &yaml)]).await.expect(200);
    assert_eq!(reply.headers["content-type"], yaml);
    assert!(reply.text().starts_with("apiVersion: apidiscovery.k8s.io/v2\nitems:\n"), "{}", reply.text());
}
