//! What the server does by itself: its controllers are asked about like everybody else, and nobody keeps it from
//! starting.

use serde_json::{Value, json};

use super::reviewer::{Reviewer, allow, deny};
use super::{CONFIGURATIONS, everything, register};
use crate::client::MERGE;
use crate::harness::{Server, eventually};
use crate::objects::{CONFIG_MAPS, NAMESPACES, config_map, namespace};

const CLUSTER_ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

/// Who did what, in one line.
fn told(request: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let user = text(&request["userInfo"]["username"]);
    let user = user.strip_prefix("system:serviceaccount:kube-system:").unwrap_or(&user).to_owned();
    let resource = text(&request["resource"]["resource"]);
    let part = request["subResource"].as_str().map(|part| format!("/{part}")).unwrap_or_default();
    format!("{user} {} {resource}{part} {}", text(&request["operation"]), text(&request["name"]))
}

#[tokio::test]
async fn controllers_are_asked_about_under_the_names_of_their_accounts() {
    let server = Server::start(&["--controllers=*"]).await;
    let client = server.client();
    let reviewer = Reviewer::start(|_, _| async { allow() }).await;
    register(&client, "validating", "all", &[reviewer.webhook("all", &everything(), &json!({}))]).await;

    client.post(NAMESPACES, &namespace("a")).await.expect(201);
    let maps = "/api/v1/namespaces/a/configmaps";
    let owner = client.post(maps, &config_map("owner", "1")).await.expect(201).json();
    let mut owned = config_map("owned", "1");
    owned["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}]);
    client.post(maps, &owned).await.expect(201);
    client.delete(&format!("{maps}/owner")).await.expect(200);
    eventually(|| async { (client.get(&format!("{maps}/owned")).await.code == 404).then_some(()) }).await;
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "9"}}});
    client.post("/api/v1/namespaces/a/resourcequotas", &quota).await.expect(201);
    let is_counted = |quota: &Value| quota["status"]["used"]["configmaps"].is_string();
    let read = async || client.get("/api/v1/namespaces/a/resourcequotas/q").await.json();
    eventually(|| async { is_counted(&read().await).then_some(()) }).await;
    client.post(maps, &config_map("left", "1")).await.expect(201);
    client.delete(&format!("{NAMESPACES}/a")).await.expect(200);
    eventually(|| async { (client.get(&format!("{NAMESPACES}/a")).await.code == 404).then_some(()) }).await;
    let role = json!({"metadata": {"name": "some", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
        "rules": [{"apiGroups": ["x.example.com"], "resources": ["xs"], "verbs": ["get"]}]});
    client.post(CLUSTER_ROLES, &role).await.expect(201);

    for want in [
        "service-account-controller CREATE serviceaccounts default",
        "root-ca-cert-publisher CREATE configmaps kube-root-ca.crt",
        "generic-garbage-collector DELETE configmaps owned",
        "resourcequota-controller UPDATE resourcequotas/status q",
        // As in the original, who deletes a collection names nothing.
        "namespace-controller DELETE configmaps -",
        "namespace-controller UPDATE namespaces/status a",
        "namespace-controller UPDATE namespaces/finalize a",
        "clusterrole-aggregation-controller UPDATE clusterroles view",
    ] {
        let is_told = || reviewer.requests("all").iter().any(|request| told(request) == want);
        let told = || async { is_told().then_some(()) };
        let late = tokio::time::timeout(std::time::Duration::from_secs(30), eventually(told)).await;
        let seen: Vec<String> = reviewer.requests("all").iter().map(self::told).collect();
        assert!(late.is_ok(), "{want} is missing in {seen:#?}");
    }
    let requests = reviewer.requests("all");
    let collected = requests.iter().find(|request| told(request).starts_with("generic-garbage-collector"));
    assert_eq!(
        collected.map(|request| &request["userInfo"]["groups"]),
        Some(&json!(["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"]))
    );
}

#[tokio::test]
async fn a_controller_that_is_refused_tries_again_and_nobody_else_waits() {
    let server = Server::start(&["--controllers=*"]).await;
    let client = server.client();
    let reviewer = Reviewer::start(|_, _| async { deny("not now") }).await;
    let rules =
        json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["configmaps"]});
    client.post(NAMESPACES, &namespace("a")).await.expect(201);
    client.post("/api/v1/namespaces/a/configmaps", &config_map("kept", "1")).await.expect(201);
    register(&client, "validating", "no", &[reviewer.webhook("no", &rules, &json!({}))]).await;
    client.delete(&format!("{NAMESPACES}/a")).await.expect(200);
    let failure = eventually(|| async {
        let namespace = client.get(&format!("{NAMESPACES}/a")).await.expect(200).json();
        let conditions = namespace["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let is_failure =
            |condition: &Value| condition["type"] == "NamespaceDeletionContentFailure" && condition["status"] == "True";
        conditions.into_iter().find(is_failure)
    })
    .await;
    let message = failure["message"].as_str().unwrap_or_default();
    assert!(message.contains("admission webhook \"no.example.com\" denied the request: not now"), "{message}");
    // Others are served, and so are other namespaces.
    client.post(CONFIG_MAPS, &config_map("c", "1")).await.expect(201);
    client.post(NAMESPACES, &namespace("b")).await.expect(201);
    client.delete(&format!("{CONFIGURATIONS}/validatingwebhookconfigurations/no")).await.expect(200);
    eventually(|| async { (client.get(&format!("{NAMESPACES}/a")).await.code == 404).then_some(()) }).await;
}

#[tokio::test]
async fn a_webhook_that_fails_keeps_no_server_from_starting() {
    let server = Server::start(&["--controllers=none"]).await;
    let client = server.client();
    client.delete(&format!("{CLUSTER_ROLES}/view")).await.expect(200);
    client.delete("/apis/networking.k8s.io/v1/servicecidrs/kubernetes").await;
    let nobody = json!({"name": "nobody.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "rules": [everything()], "clientConfig": {"url": "https://127.0.0.1:9/x"}});
    register(&client, "mutating", "nobody", std::slice::from_ref(&nobody)).await;
    register(&client, "validating", "nobody", &[nobody]).await;
    let server = server.restart_in_order().await;
    let client = server.client();
    client.get(&format!("{CLUSTER_ROLES}/view")).await.fails(404, "NotFound");
    let refused = client.post(CONFIG_MAPS, &config_map("c", "1")).await.fails(500, "InternalError");
    let message = refused["message"].as_str().unwrap_or_default();
    assert!(message.contains("failed calling webhook \"nobody.example.com\""), "{message}");
    // What was put off comes when it is let through.
    let ignored = json!({"webhooks": []});
    for kind in ["mutating", "validating"] {
        let path = format!("{CONFIGURATIONS}/{kind}webhookconfigurations/nobody");
        client.patch(&path, MERGE, &ignored).await.expect(200);
    }
    eventually(|| async { (client.get(&format!("{CLUSTER_ROLES}/view")).await.code == 200).then_some(()) }).await;
}
