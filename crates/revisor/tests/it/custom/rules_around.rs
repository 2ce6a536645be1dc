//! What goes on around objects that rules convert: garbage is collected, quotas count, and what is kept beside an object
//! may be damaged.

use serde_json::{Value, json};

use super::converter::Converter;
use super::{DEFINITIONS, define, definition, gone, objects, version};
use crate::client::{Client, MERGE};
use crate::harness::Server;
use crate::objects::{CONFIG_MAPS, NAMESPACES, config_map};

const GROUP: &str = "barn.example";
const CONVERSIONS: &str = "/apis/versioning.revisor.dev/v1alpha1/conversions";
const KEPT: &str = "versioning.revisor.dev/kept";

/// Barns of two versions, of which the first is stored. What it calls `cows` is `herd.cows` in the second, which alone
/// has `herd.goats`.
fn barns() -> Value {
    let number = json!({"type": "integer"});
    let old = json!({"type": "object", "properties": {"cows": number}});
    let herd = json!({"type": "object", "properties": {"cows": number, "goats": number}});
    let new = json!({"type": "object", "properties": {"herd": herd}});
    definition(GROUP, "barns", json!([version("v1", true, old), version("v2", false, new)]))
}

fn rules() -> Value {
    let rule = json!({"move": {"from": ".spec.cows", "to": ".spec.herd.cows"}});
    json!({
        "apiVersion": "versioning.revisor.dev/v1alpha1", "kind": "Conversion",
        "metadata": {"name": format!("barns.{GROUP}")},
        "spec": {"steps": [{"from": "v1", "to": "v2", "rules": [rule]}]},
    })
}

fn barn(name: &str) -> Value {
    let spec = json!({"herd": {"cows": 3, "goats": 2}});
    json!({"apiVersion": format!("{GROUP}/v2"), "kind": "Barn", "metadata": {"name": name}, "spec": spec})
}

fn at(version: &str) -> String {
    objects(GROUP, version, "barns")
}

async fn start() -> (Server, Client) {
    let server = Server::start(&["--controllers=*"]).await;
    let client = server.client();
    define(&client, &barns()).await;
    client.post(CONVERSIONS, &rules()).await.expect(201);
    (server, client)
}

fn reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"],
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "blockOwnerDeletion": true,
    })
}

#[tokio::test]
async fn garbage_is_collected_whichever_version_names_its_owner() {
    let (_server, client) = start().await;
    for policy in ["Background", "Foreground"] {
        let owner = client.post(&at("v2"), &barn("owner")).await.expect(201).json();
        let mut owned = barn("owned");
        owned["metadata"]["ownerReferences"] = json!([reference(&owner)]);
        let owned = client.post(&at("v2"), &owned).await.expect(201).json();
        let mut last = config_map("last", "1");
        last["metadata"]["ownerReferences"] = json!([reference(&owned)]);
        client.post(CONFIG_MAPS, &last).await.expect(201);
        client.delete_with(&format!("{}/owner", at("v1")), &json!({"propagationPolicy": policy})).await.expect(200);
        for path in [format!("{}/owner", at("v1")), format!("{}/owned", at("v2")), format!("{CONFIG_MAPS}/last")] {
            gone(&client, &path).await;
        }
    }
    // Who is set free keeps all that it says in either version.
    let owner = client.post(&at("v2"), &barn("owner")).await.expect(201).json();
    let mut orphan = barn("orphan");
    orphan["metadata"]["ownerReferences"] = json!([reference(&owner)]);
    client.post(&at("v2"), &orphan).await.expect(201);
    let path = format!("{}/orphan", at("v2"));
    client.delete_with(&format!("{}/owner", at("v2")), &json!({"propagationPolicy": "Orphan"})).await.expect(200);
    gone(&client, &format!("{}/owner", at("v2"))).await;
    let free = client.get(&path).await.expect(200).json();
    assert!(free["metadata"]["ownerReferences"].is_null(), "{free}");
    assert_eq!(free["spec"], barn("orphan")["spec"]);
}

#[tokio::test]
async fn quotas_count_objects_through_every_version() {
    let (_server, client) = start().await;
    let quotas = format!("{NAMESPACES}/default/resourcequotas");
    let counted = format!("count/barns.{GROUP}");
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "two"},
        "spec": {"hard": {counted.as_str(): "2"}},
    });
    client.post(&quotas, &quota).await.expect(201);
    // As a controller would say it that counts what is there.
    let used = |count: &str| json!({"status": {"hard": {counted.as_str(): "2"}, "used": {counted.as_str(): count}}});
    let status = format!("{quotas}/two/status");
    client.patch(&status, MERGE, &used("0")).await.expect(200);
    client.post(&at("v2"), &barn("a")).await.expect(201);
    let mut other = barn("b");
    other["apiVersion"] = json!(format!("{GROUP}/v1"));
    other["spec"] = json!({"cows": 1});
    client.post(&at("v1"), &other).await.expect(201);
    for version in ["v1", "v2"] {
        let mut third = if version == "v1" { other.clone() } else { barn("c") };
        third["metadata"]["name"] = json!("c");
        let refused = client.post(&at(version), &third).await.fails(403, "Forbidden");
        assert!(refused["message"].as_str().is_some_and(|why| why.contains("exceeded quota: two")), "{refused}");
    }
    client.delete(&format!("{}/a", at("v1"))).await.expect(200);
    client.patch(&status, MERGE, &used("1")).await.expect(200);
    client.post(&at("v2"), &barn("c")).await.expect(201);
    let counted = client.get(&format!("{quotas}/two")).await.expect(200).json()["status"]["used"][&counted].clone();
    assert_eq!(counted, "2");
    assert_eq!(client.get(&format!("{}/c", at("v2"))).await.expect(200).json()["spec"], barn("c")["spec"]);
}

/// What was kept beside an object and cannot be read is shown to nobody, is in nobody's way who needs nothing of it, and
/// is not written over.
#[tokio::test]
async fn a_damaged_annotation_is_read_over_and_not_written_over() {
    let server = Server::start(&[]).await;
    let client = server.client();
    // Nobody but a webhook can put something there.
    let converter = Converter::start("barns.example", |wanted, barn| {
        let cows = barn["spec"]["herd"]["cows"].clone();
        if wanted.ends_with("/v1") {
            barn["spec"] = json!({"cows": cows});
            barn["metadata"]["annotations"] = json!({KEPT: "{\"v2\": no JSON"});
        }
    })
    .await;
    let mut defined = barns();
    defined["spec"]["conversion"] = converter.by_url();
    define(&client, &defined).await;
    client.post(&at("v2"), &barn("a")).await.expect(201);
    let by_rules = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
    client.patch(&format!("{DEFINITIONS}/barns.{GROUP}"), MERGE, &by_rules).await.expect(200);
    client.post(CONVERSIONS, &rules()).await.expect(201);

    for (version, want) in [("v1", json!({"cows": 3})), ("v2", json!({"herd": {"cows": 3}}))] {
        let read = client.get(&format!("{}/a", at(version))).await.expect(200).json();
        assert_eq!(read["spec"], want, "{version}");
        assert!(!read.to_string().contains(KEPT), "{read}");
        assert_eq!(client.get(&at(version)).await.expect(200).names(), ["a"]);
    }
    client.patch(&format!("{}/a", at("v1")), MERGE, &json!({"spec": {"cows": 4}})).await.expect(200);
    let patch = json!({"spec": {"herd": {"cows": 5}}});
    let refused = client.patch(&format!("{}/a", at("v2")), MERGE, &patch).await.fails(500, "");
    assert!(refused["message"].as_str().is_some_and(|why| why.contains("would be lost")), "{refused}");
    let read = client.get(&format!("{}/a", at("v2"))).await.expect(200).json();
    assert_eq!(read["spec"], json!({"herd": {"cows": 4}}), "nothing was written");
    assert_eq!(client.delete(&format!("{}/a", at("v2"))).await.expect(200).json()["status"], "Success");
}
