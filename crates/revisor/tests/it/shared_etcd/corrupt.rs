//! Objects that cannot be read, and how they are got rid of.

use serde_json::{Value, json};

use super::etcd::Etcd;
use crate::objects::{CONFIG_MAPS, config_map};

const OPTION: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";
const GATE: &str = "--feature-gates=AllowUnsafeMalformedObjectDeletion=true";

fn options(more: Value) -> Value {
    let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions", OPTION: true});
    let more = more.as_object().expect("an object").clone();
    options.as_object_mut().expect("an object").extend(more);
    options
}

fn message_of(status: &Value) -> String {
    status["message"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn what_cannot_be_read_is_deleted_by_those_who_insist_and_may() {
    let etcd = Etcd::start().await;
    let server = etcd.serve(&[GATE, "--authorization-mode=RBAC"]).await;
    let client = server.client();
    client.post(CONFIG_MAPS, &config_map("good", "1")).await.expect(201);
    etcd.put("/registry/configmaps/default/bad", b"k8s\0nonsense").await;
    let bad = format!("{CONFIG_MAPS}/bad");
    client.get(&bad).await.fails(500, "InternalError");
    client.delete(&bad).await.fails(500, "InternalError");
    // The option excludes others, and is for single objects that cannot be read.
    let refused = client.delete_with(&bad, &options(json!({"gracePeriodSeconds": 0, "preconditions": {}}))).await;
    let message = message_of(&refused.fails(422, "Invalid"));
    for other in [".gracePeriodSeconds", ".preconditions"] {
        assert!(message.contains(&format!("cannot be set together with {other}")), "{message}");
    }
    let all = message_of(&client.delete_with(CONFIG_MAPS, &options(json!({}))).await.fails(422, "Invalid"));
    assert!(all.contains("is not allowed with DELETECOLLECTION"), "{all}");
    let good = client.delete_with(&format!("{CONFIG_MAPS}/good"), &options(json!({}))).await;
    let message = message_of(&good.fails(422, "Invalid"));
    assert!(message.starts_with("configmaps \"good\" is invalid") && message.contains("corrupt"), "{message}");
    // Who may delete may not do that.
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["delete"]}]);
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    client.post(&format!("{rbac}/roles"), &json!({"metadata": {"name": "r"}, "rules": rules})).await.expect(201);
    let binding = json!({"metadata": {"name": "r"}, "subjects": [{"kind": "User", "name": "kim",
        "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}});
    client.post(&format!("{rbac}/rolebindings"), &binding).await.expect(201);
    let kim = client.acting_as("kim");
    let message = message_of(&kim.delete_with(&bad, &options(json!({}))).await.fails(403, "Forbidden"));
    assert!(message.contains("not permitted to do \"unsafe-delete-ignore-read-errors\""), "{message}");
    let gone = client.delete_with(&bad, &options(json!({}))).await.expect(200).json();
    assert_eq!((&gone["kind"], &gone["code"]), (&json!("Status"), &json!(200)));
    assert_eq!(gone["details"], json!({"name": "bad", "kind": "ConfigMap"}));
    assert_eq!(etcd.value("/registry/configmaps/default/bad").await, None);
    client.get(&bad).await.fails(404, "NotFound");
    assert!(client.get(CONFIG_MAPS).await.expect(200).names().contains(&"good".to_owned()));
}

#[tokio::test]
async fn without_its_feature_the_option_counts_for_nothing() {
    let etcd = Etcd::start().await;
    let server = etcd.serve(&[]).await;
    let client = server.client();
    etcd.put("/registry/configmaps/default/bad", b"k8s\0nonsense").await;
    let options = options(json!({"gracePeriodSeconds": 0}));
    client.delete_with(&format!("{CONFIG_MAPS}/bad"), &options).await.fails(500, "InternalError");
    client.post(CONFIG_MAPS, &config_map("good", "1")).await.expect(201);
    client.delete_with(&format!("{CONFIG_MAPS}/good"), &options).await.expect(200);
}
