//! Who did what: what the audit log says of requests, and what a webhook is told of them.

use std::path::{Path, PathBuf};

use http::Method;
use serde_json::{Value, json};

use crate::client::Client;
use crate::harness::{Process, Server, eventually};
use crate::objects::{CONFIG_MAPS, config_map};

const POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- {level: RequestResponse, verbs: [create, list, watch, delete], resources: [{group: '', resources: [configmaps]}]}
- {level: Request, verbs: [update, patch], resources: [{group: '', resources: [configmaps]}]}
- {level: Metadata, resources: [{group: '', resources: [secrets, pods]}, {group: rbac.authorization.k8s.io}]}
- {level: None}
";

/// A server with this policy, and the file that it writes to.
async fn audited(policy: &str, flags: &[&str]) -> (Server, PathBuf, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, log) = (folder.path().join("policy.yaml"), folder.path().join("logs/audit.log"));
    std::fs::write(&file, policy).expect("written");
    let own = [format!("--audit-policy-file={}", file.display()), format!("--audit-log-path={}", log.display())];
    let flags: Vec<&str> = own.iter().map(String::as_str).chain(flags.iter().copied()).collect();
    (Server::start(&flags).await, log, folder)
}

fn events(log: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("one object on each line")).collect()
}

/// The events of a request, once there are so many.
async fn events_of(log: &Path, id: &str, count: usize) -> Vec<Value> {
    eventually(|| async {
        let events: Vec<Value> = events(log).into_iter().filter(|event| event["auditID"] == id).collect();
        (events.len() >= count).then_some(events)
    })
    .await
}

async fn send(client: &Client, id: &str, method: Method, path: &str, body: &Value) -> u16 {
    let media = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let headers = [("audit-id", id), ("content-type", media), ("user-agent", "auditor/1")];
    let text = if body.is_null() { String::new() } else { body.to_string() };
    client.send(method, path, &headers, text).await.code
}

#[tokio::test]
async fn requests_are_written_down_as_the_policy_says() {
    let (server, log, _folder) = audited(POLICY, &[]).await;
    let admin = server.client();
    let one = format!("{CONFIG_MAPS}/one");
    assert_eq!(send(&admin, "made", Method::POST, CONFIG_MAPS, &config_map("one", "1")).await, 201);
    let made = &events_of(&log, "made", 1).await[0];
    assert_eq!((&made["kind"], &made["apiVersion"]), (&json!("Event"), &json!("audit.k8s.io/v1")));
    assert_eq!((&made["level"], &made["stage"]), (&json!("RequestResponse"), &json!("ResponseComplete")));
    assert_eq!((&made["verb"], &made["requestURI"]), (&json!("create"), &json!(CONFIG_MAPS)));
    assert_eq!((&made["sourceIPs"], &made["userAgent"]), (&json!(["127.0.0.1"]), &json!("auditor/1")));
    let reference = json!({"resource": "configmaps", "namespace": "default", "name": "one", "apiVersion": "v1"});
    assert_eq!(made["objectRef"], reference);
    assert_eq!(made["responseStatus"], json!({"metadata": {}, "code": 201}));
    assert_eq!(made["requestObject"]["kind"], "ConfigMap");
    assert_eq!(made["requestObject"]["data"], made["responseObject"]["data"]);
    assert!(made["responseObject"]["metadata"]["uid"].is_string());
    assert!(made["responseObject"]["metadata"].get("managedFields").is_none(), "they are left out");
    assert_eq!(
        made["annotations"],
        json!({"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""})
    );

    assert_eq!(send(&admin, "patched", Method::PATCH, &one, &json!({"data": {"k": "2"}})).await, 200);
    let patched = &events_of(&log, "patched", 1).await[0];
    assert_eq!((&patched["level"], &patched["requestObject"]), (&json!("Request"), &json!({"data": {"k": "2"}})));
    assert!(patched.get("responseObject").is_none());

    assert_eq!(send(&admin, "listed", Method::GET, CONFIG_MAPS, &Value::Null).await, 200);
    let listed = &events_of(&log, "listed", 1).await[0]["responseObject"];
    assert_eq!((&listed["kind"], &listed["items"][0]["data"]["k"]), (&json!("ConfigMapList"), &json!("2")));
    assert!(listed["items"][0]["metadata"].get("managedFields").is_none());

    let secret = json!({"metadata": {"name": "hidden"}, "stringData": {"k": "very-secret"}});
    let secrets = "/api/v1/namespaces/default/secrets";
    assert_eq!(send(&admin, "secret", Method::POST, secrets, &secret).await, 201);
    let written = &events_of(&log, "secret", 1).await[0];
    assert_eq!((&written["level"], &written["objectRef"]["name"]), (&json!("Metadata"), &json!("hidden")));
    assert!(!std::fs::read_to_string(&log).expect("a log").contains("very-secret"), "only that it was written");

    assert_eq!(send(&admin, "untold", Method::GET, "/version", &Value::Null).await, 200);
    assert_eq!(send(&admin, "gone", Method::DELETE, &one, &Value::Null).await, 200);
    let gone = &events_of(&log, "gone", 1).await[0]["responseStatus"];
    assert_eq!(
        (&gone["status"], &gone["details"]["name"], &gone["code"]),
        (&json!("Success"), &json!("one"), &json!(200))
    );
    assert!(events(&log).iter().all(|event| event["auditID"] != "untold"));
    let metrics = admin.get("/metrics").await.expect(200).text();
    for line in ["apiserver_audit_event_total ", "apiserver_audit_level_total{level=\"Metadata\"} "] {
        assert!(metrics.contains(line), "{line}");
    }
}

#[tokio::test]
async fn refusals_watches_and_others_names_are_told() {
    let (server, log, _folder) = audited(POLICY, &[]).await;
    let admin = server.client();
    let secret = "/api/v1/namespaces/default/secrets/x";
    assert_eq!(send(&admin.acting_as("jane"), "forbidden", Method::GET, secret, &Value::Null).await, 403);
    let forbidden = &events_of(&log, "forbidden", 1).await[0];
    assert_eq!(forbidden["impersonatedUser"]["username"], "jane");
    assert_eq!(forbidden["authenticationMetadata"]["impersonationConstraint"], "impersonate:user-info");
    assert_eq!(forbidden["annotations"]["authorization.k8s.io/decision"], "forbid");
    assert_eq!(forbidden["responseStatus"]["reason"], "Forbidden");

    let stranger = admin.clone().with_token("nonsense");
    assert_eq!(send(&stranger, "stranger", Method::GET, secret, &Value::Null).await, 401);
    let refused = &events_of(&log, "stranger", 1).await[0];
    assert_eq!((&refused["stage"], &refused["user"]), (&json!("ResponseStarted"), &json!({})));
    assert_eq!(refused["responseStatus"]["message"], "Unauthorized");

    let path = format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=1");
    assert_eq!(send(&admin, "watched", Method::GET, &path, &Value::Null).await, 200);
    let stages: Vec<Value> = events_of(&log, "watched", 2).await.iter().map(|event| event["stage"].clone()).collect();
    assert_eq!(stages, ["ResponseStarted", "ResponseComplete"]);
    assert_eq!(events(&log).iter().filter(|event| event["auditID"] == "stranger").count(), 1);
}

#[tokio::test]
async fn batches_are_written_when_the_server_stops() {
    let flags = ["--audit-log-mode=batch", "--audit-log-batch-max-size=100", "--audit-log-batch-max-wait=1h"];
    let (server, log, _folder) = audited(POLICY, &flags).await;
    assert_eq!(send(&server.client(), "late", Method::POST, CONFIG_MAPS, &config_map("late", "1")).await, 201);
    let (_, status) = server.terminate().await;
    assert!(status.success());
    assert!(events(&log).iter().any(|event| event["auditID"] == "late"));
}

#[tokio::test]
async fn what_is_too_large_loses_its_objects() {
    let flags = ["--audit-log-truncate-enabled", "--audit-log-truncate-max-event-size=2000"];
    let (server, log, _folder) = audited(POLICY, &flags).await;
    let large = config_map("large", &"x".repeat(5_000));
    assert_eq!(send(&server.client(), "large", Method::POST, CONFIG_MAPS, &large).await, 201);
    let event = &events_of(&log, "large", 1).await[0];
    assert!(event.get("requestObject").is_none() && event.get("responseObject").is_none());
    assert_eq!(event["annotations"]["audit.k8s.io/truncated"], "true");
}

#[tokio::test]
async fn a_policy_that_is_wrong_stops_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("policy.yaml");
    std::fs::write(&file, "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Everything}]\n")
        .expect("written");
    let arguments = [
        "serve".to_owned(),
        format!("--data-dir={}", folder.path().join("data").display()),
        format!("--audit-policy-file={}", file.display()),
    ];
    let mut process = Process::start(&arguments, &folder.path().join("log"));
    assert!(!process.ended().await.success());
    let (_, log) = process.said();
    assert!(log.contains("policy.yaml") && log.contains("rules[0].level"), "{log}");
}
