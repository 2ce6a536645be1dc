//! Who did what: what the audit log says of requests, and what a webhook is told of them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::client::Client;
use crate::custom::certified;
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

async fn metrics(client: &Client) -> String {
    String::from_utf8_lossy(&client.get("/metrics").await.expect(200).body).into_owned()
}

/// What is sent has all that it means, and is written down also where it is not stored.
#[tokio::test]
async fn what_is_done_to_a_pod_is_written_down_as_it_was_meant() {
    let policy =
        "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Request}]\n";
    let (server, log, _folder) = audited(policy, &["--controllers=none"]).await;
    let admin = server.client();
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    assert_eq!(send(&admin, "account", Method::POST, accounts, &json!({"metadata": {"name": "default"}})).await, 201);
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let options = json!({"propagationPolicy": "Background"});
    let nothing = json!({});
    let binding = json!({"metadata": {"name": "p"}, "target": {"name": "n"}});
    for (id, method, path, body, code) in [
        ("pod", Method::POST, pods.to_owned(), &pod, 201),
        ("bound", Method::POST, format!("{pods}/p/binding"), &binding, 201),
        ("evicted", Method::POST, format!("{pods}/p/eviction"), &json!({"metadata": {"name": "p"}}), 201),
        ("token", Method::POST, format!("{accounts}/default/token"), &json!({"spec": {"audiences": ["x"]}}), 201),
        ("reviewed", Method::POST, "/apis/authentication.k8s.io/v1/selfsubjectreviews".to_owned(), &nothing, 201),
        ("deleted", Method::DELETE, format!("{pods}/none"), &options, 404),
    ] {
        assert_eq!(send(&admin, id, method, &path, body).await, code, "{id}");
    }
    for (id, want) in [
        ("bound", json!({"kind": "Binding", "apiVersion": "v1", "metadata": {"name": "p"}, "target": {"name": "n"}})),
        ("evicted", json!({"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": "p"}})),
        (
            "token",
            json!({
                "kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "metadata": {},
                "spec": {"audiences": ["x"], "expirationSeconds": 3600, "boundObjectRef": null},
                "status": {"token": "", "expirationTimestamp": null},
            }),
        ),
        (
            "reviewed",
            json!({
                "kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1", "metadata": {},
                "status": {"userInfo": {}},
            }),
        ),
        (
            "deleted",
            json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/__internal", "propagationPolicy": "Background"}),
        ),
    ] {
        assert_eq!(events_of(&log, id, 1).await[0]["requestObject"], want, "{id}");
    }
    let sent = &events_of(&log, "pod", 1).await[0]["requestObject"];
    assert_eq!((&sent["status"], &sent["spec"]["containers"][0]["resources"]), (&json!({}), &json!({})));
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
    let metrics = metrics(&admin).await;
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

#[tokio::test]
async fn what_cannot_be_written_is_counted_or_refused() {
    let policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- {level: Metadata, resources: [{resources: \
                  [configmaps]}]}\n- {level: None}\n";
    for (mode, code, rejected) in [("blocking", 201, 0), ("blocking-strict", 500, 1)] {
        // A device to which nothing can be written.
        let flags = [format!("--audit-log-mode={mode}"), "--audit-log-path=/dev/full".to_owned()];
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("policy.yaml");
        std::fs::write(&file, policy).expect("written");
        let file = format!("--audit-policy-file={}", file.display());
        let server = Server::start(&[&file, &flags[0], &flags[1]]).await;
        let admin = server.client();
        let reply = admin.post(CONFIG_MAPS, &config_map("lost", "1")).await.expect(code);
        if code == 500 {
            let want = format!("Internal Server Error: {CONFIG_MAPS:?}: failed to store audit event\n");
            assert_eq!(reply.text(), want);
            admin.get(&format!("{CONFIG_MAPS}/lost")).await.expect(500);
        }
        let metrics = metrics(&admin).await;
        let count = |name: &str| {
            let value = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            value.and_then(|value| value.parse::<u64>().ok()).unwrap_or_else(|| panic!("{name}"))
        };
        assert_eq!(count("apiserver_audit_requests_rejected_total"), rejected * 2, "{mode}");
        assert!(count("apiserver_audit_error_total{plugin=\"log\"}") >= 2, "{mode}");
    }
}

/// Somebody who is told of events, over real TLS. The first time it fails.
struct Listener {
    told: Arc<Mutex<Vec<Value>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Listener {
    /// Starts it and writes the kubeconfig with which it is reached.
    async fn start(kubeconfig: &Path) -> Listener {
        let (acceptor, authority) = certified("localhost");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback can be listened on");
        let server = format!("https://{}/events", listener.local_addr().expect("it has an address"));
        let cluster = json!({"server": server, "certificate-authority-data": STANDARD.encode(authority)});
        let text = json!({
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [{"name": "k", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": "let-me-tell"}}],
        });
        std::fs::write(kubeconfig, text.to_string()).expect("a file can be written");
        let told: Arc<Mutex<Vec<Value>>> = Arc::default();
        let heard = told.clone();
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, heard) = (acceptor.clone(), heard.clone());
                connections.spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = service_fn(|request| hear(request, heard.clone()));
                    // It ends when either side hangs up.
                    drop(
                        auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await,
                    );
                });
            }
        });
        Listener { told, task }
    }
}

async fn hear(
    request: Request<Incoming>,
    heard: Arc<Mutex<Vec<Value>>>,
) -> Result<Response<Full<Bytes>>, std::io::Error> {
    let is_known = request.headers().get("authorization").is_some_and(|token| token == "Bearer let-me-tell");
    let body = request.into_body().collect().await.map_err(std::io::Error::other)?.to_bytes();
    let list: Value = serde_json::from_slice(&body)?;
    let mut heard = heard.lock().expect("nobody panics with it");
    heard.push(list);
    let code = if is_known && heard.len() > 1 { 200 } else { 503 };
    Response::builder().status(code).body(Full::new(Bytes::from_static(b"{}"))).map_err(std::io::Error::other)
}

#[tokio::test]
async fn a_webhook_is_told_until_it_has_heard() {
    let folder = tempfile::tempdir().expect("a folder");
    let kubeconfig = folder.path().join("kubeconfig");
    let listener = Listener::start(&kubeconfig).await;
    let flags = [
        format!("--audit-webhook-config-file={}", kubeconfig.display()),
        "--audit-webhook-batch-max-wait=10ms".to_owned(),
        "--audit-webhook-initial-backoff=10ms".to_owned(),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let (server, _log, _folder) = audited(POLICY, &flags).await;
    assert_eq!(send(&server.client(), "told", Method::POST, CONFIG_MAPS, &config_map("told", "1")).await, 201);
    let told = eventually(|| async {
        let told = listener.told.lock().expect("nobody panics with it").clone();
        (told.len() > 1).then_some(told)
    })
    .await;
    assert_eq!(told[0], told[1], "it is told again what it did not hear");
    assert_eq!((&told[0]["kind"], &told[0]["apiVersion"]), (&json!("EventList"), &json!("audit.k8s.io/v1")));
    assert_eq!(told[0]["items"][0]["auditID"], "told");
    assert!(told[0]["items"][0].get("kind").is_none());
}
