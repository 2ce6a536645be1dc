//! The garbage collector and quotas look at what a server behind has as at everything else.

use serde_json::{Value, json};

use super::{Both, LAMPS, SERVICES, becomes};
use crate::client::{Client, MERGE};
use crate::harness::eventually;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";

/// What names another object as its owner.
fn owned_by(owner: &Value) -> Value {
    json!([{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "blockOwnerDeletion": true,
    }])
}

async fn make(client: &Client, path: &str, name: &str, owner: Option<&Value>) -> Value {
    let (version, kind) = if path == LAMPS { ("ext.example/v1", "Lamp") } else { ("v1", "ConfigMap") };
    let mut object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}});
    if let Some(owner) = owner {
        object["metadata"]["ownerReferences"] = owned_by(owner);
    }
    client.post(path, &object).await.expect(201).json()
}

async fn delete(client: &Client, path: &str, name: &str, policy: &str) {
    client.delete(&format!("{path}/{name}?propagationPolicy={policy}")).await.expect(200);
}

async fn gone(client: &Client, path: &str, name: &str) {
    eventually(|| async { (client.get(&format!("{path}/{name}")).await.code == 404).then_some(()) }).await;
}

#[tokio::test]
async fn objects_of_another_server_own_and_are_owned_and_are_counted() {
    let controllers = "garbage-collector-controller,resourcequota-controller";
    let both = Box::pin(Both::with_controllers(controllers, "namespace-controller")).await;
    Box::pin(those_here_go_with_owners_there(&both.front.client())).await;
    Box::pin(those_there_go_with_owners_here(&both.front.client())).await;
    Box::pin(both_go_in_the_order_that_was_asked_for(&both.front.client())).await;
    Box::pin(quotas_count_them(&both.front.client())).await;
    Box::pin(nothing_goes_while_owners_cannot_be_asked_for(both)).await;
}

async fn those_here_go_with_owners_there(client: &Client) {
    let owner = make(client, LAMPS, "owner", None).await;
    let other = make(client, LAMPS, "other", None).await;
    make(client, MAPS, "goes", Some(&owner)).await;
    make(client, MAPS, "stays", Some(&other)).await;
    delete(client, LAMPS, "owner", "Background").await;
    gone(client, MAPS, "goes").await;
    // Another object of the same name is not the owner.
    make(client, LAMPS, "owner", None).await;
    make(client, MAPS, "late", Some(&owner)).await;
    gone(client, MAPS, "late").await;
    client.get(&format!("{MAPS}/stays")).await.expect(200);
}

async fn those_there_go_with_owners_here(client: &Client) {
    let owner = make(client, MAPS, "here", None).await;
    let dependent = make(client, LAMPS, "there", Some(&owner)).await;
    make(client, MAPS, "deep", Some(&dependent)).await;
    delete(client, MAPS, "here", "Background").await;
    gone(client, LAMPS, "there").await;
    gone(client, MAPS, "deep").await;
}

async fn both_go_in_the_order_that_was_asked_for(client: &Client) {
    let owner = make(client, MAPS, "first", None).await;
    make(client, LAMPS, "second", Some(&owner)).await;
    delete(client, MAPS, "first", "Foreground").await;
    gone(client, MAPS, "first").await;
    client.get(&format!("{LAMPS}/second")).await.expect(404);

    let owner = make(client, LAMPS, "first", None).await;
    make(client, MAPS, "second", Some(&owner)).await;
    delete(client, LAMPS, "first", "Foreground").await;
    gone(client, LAMPS, "first").await;
    client.get(&format!("{MAPS}/second")).await.expect(404);

    let owner = make(client, MAPS, "parent", None).await;
    make(client, LAMPS, "orphan", Some(&owner)).await;
    // The collector knows of the orphan by what it does to one that was made later.
    let gone_already = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "nobody", "uid": "no-such-uid"},
    });
    make(client, LAMPS, "later", Some(&gone_already)).await;
    gone(client, LAMPS, "later").await;
    delete(client, MAPS, "parent", "Orphan").await;
    gone(client, MAPS, "parent").await;
    let orphan = client.get(&format!("{LAMPS}/orphan")).await.expect(200).json();
    assert_eq!(orphan["metadata"]["ownerReferences"], Value::Null);
}

async fn quotas_count_them(client: &Client) {
    let limit = "count/lamps.ext.example";
    let used = |want: usize| async move {
        let want = json!(want.to_string());
        eventually(|| async {
            let quota = client.get(&format!("{QUOTAS}/lamps")).await.expect(200).json();
            (quota["status"]["used"][limit] == want).then_some(())
        })
        .await;
    };
    let there = client.get(LAMPS).await.expect(200).names().len();
    client.post(QUOTAS, &json!({"metadata": {"name": "lamps"}, "spec": {"hard": {limit: "1"}}})).await.expect(201);
    used(there).await;
    // They are counted, and not held back.
    make(client, LAMPS, "more", None).await;
    used(there + 1).await;
    delete(client, LAMPS, "more", "Background").await;
    used(there).await;
}

async fn nothing_goes_while_owners_cannot_be_asked_for(Both { front, behind, .. }: Both) {
    let client = front.client();
    drop(behind);
    let change = json!({"metadata": {"labels": {"look": "again"}}});
    client.patch("/api/v1/namespaces/default/services/ext", MERGE, &change).await.expect(200);
    becomes(&client, "FailedDiscoveryCheck").await;
    let lost = json!({
        "apiVersion": "ext.example/v1", "kind": "Lamp", "metadata": {"name": "nobody", "uid": "no-such-uid"},
    });
    make(&client, MAPS, "waits", Some(&lost)).await;
    let owner = make(&client, MAPS, "owner", None).await;
    make(&client, MAPS, "owned", Some(&owner)).await;
    delete(&client, MAPS, "owner", "Background").await;
    gone(&client, MAPS, "owned").await;
    for name in ["waits", "stays"] {
        client.get(&format!("{MAPS}/{name}")).await.expect(200);
    }
    client.delete(&format!("{SERVICES}/v1.ext.example")).await.expect(200);
    // Others do not wait for what is not there.
    let owner = make(&client, MAPS, "last", None).await;
    make(&client, MAPS, "owned", Some(&owner)).await;
    delete(&client, MAPS, "last", "Foreground").await;
    gone(&client, MAPS, "last").await;
    client.get(&format!("{MAPS}/waits")).await.expect(200);
}
