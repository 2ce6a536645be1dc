//! Priority and fairness: which flow serves a request, and what its configuration changes.

use serde_json::{Value, json};

use crate::harness::{Server, eventually};
use crate::objects::CONFIG_MAPS;

const SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
const LEVELS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations";
const SCHEMA_UID: &str = "x-kubernetes-pf-flowschema-uid";
const LEVEL_UID: &str = "x-kubernetes-pf-prioritylevel-uid";

fn schema(name: &str, level: &str, user: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "priorityLevelConfiguration": {"name": level},
        "matchingPrecedence": 50,
        "distinguisherMethod": {"type": "ByUser"},
        "rules": [{
            "subjects": [{"kind": "User", "user": {"name": user}}],
            "resourceRules": [
                {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": true},
            ],
        }],
    }})
}

fn level(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"type": "Limited", "limited": {
        "nominalConcurrencyShares": 5, "limitResponse": {"type": "Reject"},
    }}})
}

#[tokio::test]
async fn a_request_is_served_by_the_flow_that_is_stored_now() {
    let server = Server::start(&[]).await;
    let admin = server.client();
    let uid = |object: Value| object["metadata"]["uid"].as_str().expect("a uid").to_owned();
    let exempt = uid(admin.get(&format!("{SCHEMAS}/exempt")).await.expect(200).json());
    assert_eq!(admin.get("/version").await.expect(200).header(SCHEMA_UID), Some(&*exempt));

    // Who may not is told of their flow all the same, and a schema counts in the next request.
    let jane = admin.acting_as("jane");
    let default = uid(admin.get(&format!("{SCHEMAS}/global-default")).await.expect(200).json());
    assert_eq!(jane.get(CONFIG_MAPS).await.expect(403).header(SCHEMA_UID), Some(&*default));
    let level = uid(admin.post(LEVELS, &level("own")).await.expect(201).json());
    let own = uid(admin.post(SCHEMAS, &schema("own", "own", "jane")).await.expect(201).json());
    let answer = jane.get(CONFIG_MAPS).await.expect(403);
    assert_eq!((answer.header(SCHEMA_UID), answer.header(LEVEL_UID)), (Some(&*own), Some(&*level)));
    let dump = admin.get("/debug/api_priority_and_fairness/dump_priority_levels").await.expect(200).text();
    assert!(dump.lines().any(|line| line.starts_with("own, ")), "{dump}");
    admin.delete(&format!("{SCHEMAS}/own")).await.expect(200);
    assert_eq!(jane.get(CONFIG_MAPS).await.expect(403).header(SCHEMA_UID), Some(&*default));
}

#[tokio::test]
async fn a_schema_says_whether_its_level_is_there() {
    let server = Server::start(&[]).await;
    let admin = server.client();
    admin.post(SCHEMAS, &schema("early", "late", "jane")).await.expect(201);
    let condition = |status: &'static str| {
        let admin = admin.clone();
        eventually(move || {
            let admin = admin.clone();
            async move {
                let schema = admin.get(&format!("{SCHEMAS}/early")).await.expect(200).json();
                let condition = schema["status"]["conditions"][0].clone();
                (condition["status"] == status).then_some(condition)
            }
        })
    };
    let missing = condition("True").await;
    assert_eq!((&missing["type"], &missing["reason"]), (&json!("Dangling"), &json!("NotFound")));
    admin.post(LEVELS, &level("late")).await.expect(201);
    let found = condition("False").await;
    assert_eq!(found["reason"], "Found");
}

#[tokio::test]
async fn suggestions_are_looked_after_until_an_operator_decides_otherwise() {
    let server = Server::start(&[]).await;
    let admin = server.client();
    let change = json!({"spec": {"matchingPrecedence": 777}});
    let merge = "application/merge-patch+json";
    admin.patch(&format!("{SCHEMAS}/service-accounts"), merge, &change).await.expect(200);
    let kept = json!({
        "metadata": {"annotations": {"apf.kubernetes.io/autoupdate-spec": "false"}},
        "spec": {"matchingPrecedence": 778},
    });
    admin.patch(&format!("{SCHEMAS}/system-nodes"), merge, &kept).await.expect(200);
    admin.delete(&format!("{LEVELS}/workload-low")).await.expect(200);
    let mut former = level("former");
    former["metadata"]["annotations"] = json!({"apf.kubernetes.io/autoupdate-spec": "true"});
    admin.post(LEVELS, &former).await.expect(201);
    let server = server.restart_in_order().await;
    let admin = server.client();
    let precedence = |name: &str| {
        let (admin, path) = (admin.clone(), format!("{SCHEMAS}/{name}"));
        async move { admin.get(&path).await.expect(200).json()["spec"]["matchingPrecedence"].clone() }
    };
    assert_eq!(precedence("service-accounts").await, 9000);
    assert_eq!(precedence("system-nodes").await, 778);
    admin.get(&format!("{LEVELS}/workload-low")).await.expect(200);
    admin.get(&format!("{LEVELS}/former")).await.expect(404);
}
