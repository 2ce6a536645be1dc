//! Controllers: what a server does by itself, and that it leaves all alone when it is told to.

use serde_json::{Value, json};

use crate::client::{Client, MERGE, name_of};
use crate::harness::{SILENT, Server, eventually};
use crate::objects::{CONFIG_MAPS, EVENTS, NAMESPACES, config_map, namespace};

const ROOT_CA: &str = "kube-root-ca.crt";

async fn gone(client: &Client, path: &str) {
    eventually(|| async { (client.get(path).await.code == 404).then_some(()) }).await;
}

async fn there(client: &Client, path: &str) -> Value {
    eventually(|| async {
        let reply = client.get(path).await;
        (reply.code == 200).then(|| reply.json())
    })
    .await
}

/// Makes a config map that names others as its owners.
async fn owned(client: &Client, name: &str, owners: &[&Value]) -> Value {
    let mut object = config_map(name, "1");
    object["metadata"]["ownerReferences"] = owners.iter().map(|owner| reference(owner)).collect();
    client.post(CONFIG_MAPS, &object).await.expect(201).json()
}

fn reference(owner: &Value) -> Value {
    let metadata = &owner["metadata"];
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": metadata["name"],
        "uid": metadata["uid"],
        "blockOwnerDeletion": true,
    })
}

#[tokio::test]
async fn a_namespace_goes_with_its_content_and_comes_with_what_every_namespace_has() {
    let server = Server::start(&["--controllers=*"]).await;
    let client = server.client();
    client.post(NAMESPACES, &namespace("n")).await.expect(201);
    let one = format!("{NAMESPACES}/n");
    there(&client, &format!("{one}/serviceaccounts/default")).await;
    let published = there(&client, &format!("{one}/configmaps/{ROOT_CA}")).await;
    let pem = published["data"]["ca.crt"].as_str().unwrap_or_default();
    assert!(pem.starts_with("-----BEGIN CERTIFICATE-----"), "{published}");
    assert!(published["metadata"]["annotations"]["kubernetes.io/description"].is_string(), "{published}");

    for number in 0..20 {
        client.post(&format!("{one}/configmaps"), &config_map(&format!("c{number}"), "1")).await.expect(201);
    }
    let mut held = config_map("held", "1");
    held["metadata"]["finalizers"] = json!(["example.com/held"]);
    client.post(&format!("{one}/configmaps"), &held).await.expect(201);
    client.delete(&one).await.expect(200);
    let told = eventually(|| async {
        let found = client.get(&one).await.expect(200).json();
        let conditions = found["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|condition| condition["type"] == "NamespaceFinalizersRemaining")
    })
    .await;
    assert_eq!(
        told["message"],
        "Some content in the namespace has finalizers remaining: example.com/held in 1 resource instances"
    );
    let left = client.get(&format!("{one}/configmaps")).await.expect(200).names();
    assert_eq!(left, ["held"]);
    client
        .patch(&format!("{one}/configmaps/held"), MERGE, &json!({"metadata": {"finalizers": null}}))
        .await
        .expect(200);
    gone(&client, &one).await;
}

#[tokio::test]
async fn dependents_go_after_before_or_without_their_owner() {
    let server = Server::start(&["--controllers=garbage-collector-controller"]).await;
    let client = server.client();
    for (policy, stays) in [("Background", false), ("Foreground", false), ("Orphan", true)] {
        let owner = client.post(CONFIG_MAPS, &config_map("owner", "1")).await.expect(201).json();
        let child = owned(&client, "child", &[&owner]).await;
        owned(&client, "grandchild", &[&child]).await;
        let options = json!({"propagationPolicy": policy});
        client.delete_with(&format!("{CONFIG_MAPS}/owner"), &options).await.expect(200);
        gone(&client, &format!("{CONFIG_MAPS}/owner")).await;
        if stays {
            let orphan = client.get(&format!("{CONFIG_MAPS}/child")).await.expect(200).json();
            assert!(orphan["metadata"]["ownerReferences"].is_null(), "{orphan}");
            client.get(&format!("{CONFIG_MAPS}/grandchild")).await.expect(200);
        } else {
            gone(&client, &format!("{CONFIG_MAPS}/child")).await;
            gone(&client, &format!("{CONFIG_MAPS}/grandchild")).await;
        }
    }
}

#[tokio::test]
async fn circles_do_not_hold_themselves() {
    let server = Server::start(&["--controllers=garbagecollector"]).await;
    let client = server.client();
    for policy in ["Background", "Foreground"] {
        let a = client.post(CONFIG_MAPS, &config_map("a", "1")).await.expect(201).json();
        let b = owned(&client, "b", &[&a]).await;
        let patch = json!({"metadata": {"ownerReferences": [reference(&b)]}});
        client.patch(&format!("{CONFIG_MAPS}/a"), MERGE, &patch).await.expect(200);
        client.delete_with(&format!("{CONFIG_MAPS}/a"), &json!({"propagationPolicy": policy})).await.expect(200);
        gone(&client, &format!("{CONFIG_MAPS}/a")).await;
        gone(&client, &format!("{CONFIG_MAPS}/b")).await;
    }
}

#[tokio::test]
async fn without_controllers_all_is_left_alone() {
    let server = Server::start(&["--controllers=none", SILENT[0], SILENT[1]]).await;
    let client = server.client();
    client.post(NAMESPACES, &namespace("n")).await.expect(201);
    let owner = client.post(CONFIG_MAPS, &config_map("owner", "1")).await.expect(201).json();
    owned(&client, "child", &[&owner]).await;
    client.delete(&format!("{CONFIG_MAPS}/owner")).await.expect(200);
    client.delete(&format!("{NAMESPACES}/n")).await.expect(200);
    // Whatever wrote by itself would have a version above the last write that was asked for.
    let last = client.post(CONFIG_MAPS, &config_map("last", "1")).await.expect(201);
    let server = server.restart_in_order().await;
    let client = server.client();
    assert_eq!(client.get(NAMESPACES).await.expect(200).version(), last.version());
    assert_eq!(client.get(CONFIG_MAPS).await.expect(200).names(), ["child", "last"]);
    assert_eq!(client.get("/api/v1/serviceaccounts").await.expect(200).names(), Vec::<String>::new());
    assert_eq!(client.get(&format!("{NAMESPACES}/n")).await.expect(200).json()["status"]["phase"], "Terminating");
}

#[tokio::test]
async fn what_was_begun_is_finished_after_a_crash() {
    let server = Server::start(&["--controllers=none"]).await;
    let client = server.client();
    client.post(NAMESPACES, &namespace("n")).await.expect(201);
    client.post(&format!("{NAMESPACES}/n/configmaps"), &config_map("a", "1")).await.expect(201);
    client.delete(&format!("{NAMESPACES}/n")).await.expect(200);
    let server = server.kill9().with_flags(&["--controllers=*"]).start().await;
    let client = server.client();
    gone(&client, &format!("{NAMESPACES}/n")).await;
    let server = server.restart_in_order().await;
    assert_eq!(name_of(&there(&server.client(), &format!("{CONFIG_MAPS}/{ROOT_CA}")).await), ROOT_CA);
}

#[tokio::test]
async fn events_expire_also_without_controllers() {
    let server = Server::start(&["--event-ttl=1s"]).await;
    let client = server.client();
    let event = json!({"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}});
    client.post(EVENTS, &event).await.expect(201);
    gone(&client, &format!("{EVENTS}/e")).await;
}

#[tokio::test]
async fn a_quota_limits_what_it_counted_by_itself() {
    let server = Server::start(&["--controllers=resourcequota-controller"]).await;
    let client = server.client();
    let quotas = "/api/v1/namespaces/default/resourcequotas";
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "sails.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "sails", "kind": "Sail"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    });
    client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await.expect(201);
    let hard = json!({"count/sails.example.com": "1", "secrets": "1"});
    client.post(quotas, &json!({"metadata": {"name": "q"}, "spec": {"hard": hard}})).await.expect(201);
    let counts = async |sails: &str| {
        eventually(|| async {
            let quota = client.get(&format!("{quotas}/q")).await.json();
            let used = json!({"count/sails.example.com": sails, "secrets": "0"});
            (quota["status"]["hard"] == hard && quota["status"]["used"] == used).then_some(())
        })
        .await;
    };
    counts("0").await;
    let sails = "/apis/example.com/v1/namespaces/default/sails";
    let sail = |name: &str| json!({"apiVersion": "example.com/v1", "kind": "Sail", "metadata": {"name": name}});
    client.post(sails, &sail("jib")).await.expect(201);
    let refused = client.post(sails, &sail("main")).await.expect(403).json();
    let message = "sails.example.com \"main\" is forbidden: exceeded quota: q, requested: count/sails.example.com=1, used: \
                   count/sails.example.com=1, limited: count/sails.example.com=1";
    assert_eq!(refused["message"], message);
    client.delete(&format!("{sails}/jib")).await.expect(200);
    counts("0").await;
    client.post(sails, &sail("main")).await.expect(201);
}
