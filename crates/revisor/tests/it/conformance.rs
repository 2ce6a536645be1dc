//! `revisor conformance resource-versions`, against the real server, and against one that lies ([`Liar`]).

use std::process::Command;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::client::Client;
use crate::harness::{Server, within};

const COMMAND: &str = "conformance resource-versions";

#[tokio::test]
async fn the_server_passes_and_is_as_it_was() {
    let server = Server::start(&["--controllers=namespace"]).await;
    let client = server.client();
    let widgets = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &widgets).await.expect(201);
    let report = tempfile::NamedTempFile::new().expect("a file");
    let junit = format!("--junit={}", report.path().display());
    let (code, printed, complaints) =
        server.command(COMMAND, &["-o", "json", "--write", "--parallel=64", &junit]).await;
    assert_eq!(code, Some(0), "{printed}\n{complaints}");
    let printed: Value = serde_json::from_str(&printed).expect("is JSON");
    assert_eq!((&printed["failed"], &printed["isComplete"]), (&json!(0), &json!(true)));
    let result = |resource: &str, check: &str| {
        let resources = printed["resources"].as_array().expect("a list");
        let found = resources.iter().find(|found| found["resource"] == resource);
        let found = found.unwrap_or_else(|| panic!("{resource} was looked at"));
        let mut checks = found["checks"].as_array().expect("a list").iter();
        checks.find(|found| found["name"] == check).expect("every check has a result")["result"].clone()
    };
    for (resource, check) in [
        ("namespaces", "match"),
        ("namespaces", "pages"),
        ("namespaces", "streamed"),
        ("clusterroles.rbac.authorization.k8s.io", "get"),
        ("configmaps", "writes"),
        ("deployments.apps", "writes"),
        ("leases.coordination.k8s.io", "writes"),
        ("widgets.example.com", "future"),
        ("widgets.example.com", "gone"),
    ] {
        assert_eq!(result(resource, check), "passed", "{resource} {check}: {printed:#}");
    }
    assert_eq!(result("nodes", "writes"), "skipped");
    let junit = std::fs::read_to_string(report.path()).expect("was written");
    assert!(junit.contains("<testsuite name=\"deployments.apps\"") && junit.contains("failures=\"0\""), "{junit}");
    // The namespace is gone, or on its way.
    let namespaces = client.get("/api/v1/namespaces").await.expect(200);
    for namespace in namespaces.json()["items"].as_array().expect("a list") {
        let name = namespace["metadata"]["name"].as_str().expect("a name");
        let is_going = namespace["metadata"]["deletionTimestamp"].is_string();
        assert!(!name.starts_with("revisor-conformance-") || is_going, "{name} is left");
    }
}

#[tokio::test]
async fn people_get_a_table_and_what_cannot_be_found_out_ends_with_2() {
    let server = Server::start(&[]).await;
    let (code, printed, _) = server.command(COMMAND, &["--only=configmaps", "--only=*.apps"]).await;
    assert_eq!(code, Some(0), "{printed}");
    let row = printed.lines().find(|line| line.starts_with("deployments.apps")).expect("a row");
    assert!(row.contains("v1") && row.contains("ok") && !printed.contains("FAULT"), "{printed}");
    let (code, _, complaints) = server.command(COMMAND, &["--only=gadgets"]).await;
    assert_eq!(code, Some(2));
    assert!(complaints.contains("no resource \"gadgets\" that can be listed"), "{complaints}");
    let (code, printed, _) = server.command(COMMAND, &["--timeout=1ms"]).await;
    assert_eq!(code, Some(2), "{printed}");
    assert!(printed.contains("not everything was looked at: the time (1ms) is over"), "{printed}");
}

/// What a liar makes of an answer: of the method, the query, the code and the body.
type Lie = fn(&Method, &str, &mut u16, &mut Value);

#[tokio::test]
async fn every_lie_is_found() {
    let server = Server::start(&[]).await;
    let client = server.client();
    for name in ["a", "b", "c"] {
        let map = json!({"metadata": {"name": name}});
        client.post("/api/v1/namespaces/default/configmaps", &map).await.expect(201);
    }
    let lies: [(&str, Lie, &str, &str); 11] = [
        (
            "odd versions",
            |_, _, _, body| set(body, &["metadata", "resourceVersion"], "a7"),
            "form",
            "other than a digit",
        ),
        (
            "versions of more than 128 bits",
            |_, _, _, body| {
                each(body, |item| {
                    set(item, &["metadata", "resourceVersion"], "340282366920938463463374607431768211456")
                });
            },
            "form",
            "more than 128 bits",
        ),
        (
            "objects newer than their list",
            |_, _, _, body| each(body, |item| set(item, &["metadata", "resourceVersion"], "999999")),
            "order",
            "of 999999",
        ),
        (
            "stale objects",
            |_, query, _, body| {
                if body["kind"] != "Status" && query.contains("resourceVersion=") && body["items"].is_null() {
                    set(body, &["metadata", "resourceVersion"], "1");
                }
            },
            "get",
            "not older than",
        ),
        (
            "a list of another version than exactly that",
            |_, query, _, body| {
                if query.contains("Exact") && body["items"].is_array() {
                    set(body, &["metadata", "resourceVersion"], "2");
                }
            },
            "match",
            "got  2",
        ),
        (
            "what is wrong is taken",
            |_, _, code, body| {
                if *code == 422 {
                    *code = 200;
                    *body = json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}, "items": []});
                }
            },
            "match",
            "400 or 422",
        ),
        (
            "pages of different versions",
            |_, query, _, body| {
                if query.contains("continue=") && body["items"].is_array() {
                    set(body, &["metadata", "resourceVersion"], "99");
                }
            },
            "pages",
            "version of the first",
        ),
        (
            "a streamed list with an older bookmark",
            |_, query, _, body| {
                if query.contains("sendInitialEvents") && body["type"] == "BOOKMARK" {
                    set(body, &["object", "metadata", "resourceVersion"], "1");
                }
            },
            "streamed",
            "not older than",
        ),
        (
            "a streamed list with other objects",
            |_, query, _, body| {
                if query.contains("sendInitialEvents") && body["object"]["metadata"]["name"] == "b" {
                    set(body, &["object", "metadata", "name"], "x");
                }
            },
            "streamed",
            "default/b",
        ),
        (
            "an old version is an internal error",
            |_, query, code, body| {
                if query.contains("resourceVersion=1&") {
                    *code = 500;
                    *body = json!({"kind": "Status", "code": 500, "message": "no"});
                }
            },
            "gone",
            "410",
        ),
        (
            "a version that is not there yet is served",
            |_, _, code, body| {
                if *code == 504 {
                    *code = 200;
                    *body = json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}, "items": []});
                }
            },
            "future",
            "ResourceVersionTooLarge",
        ),
    ];
    // Servers wait for versions that are not there yet, so all lies are told side by side.
    let told = lies.map(|(name, lie, check, told)| {
        let client = server.client();
        async move {
            let liar = Liar::start(&client, lie).await;
            let (code, printed) = liar.command(&["--only=configmaps"]).await;
            assert_eq!(code, Some(1), "{name}: {printed}");
            let fault = format!("configmaps {check}: ");
            assert!(printed.contains(&fault) && printed.contains(told), "{name}: want {fault}…{told}\n{printed}");
        }
    });
    futures_util::future::join_all(told).await;
}

#[tokio::test]
async fn writes_that_do_not_grow_are_found_and_nothing_is_left() {
    let server = Server::start(&["--controllers=namespace"]).await;
    let lie: Lie = |method, _, _, body| {
        if method == Method::PATCH && body["kind"] == "ConfigMap" {
            set(body, &["metadata", "resourceVersion"], "1");
        }
    };
    let liar = Liar::start(&server.client(), lie).await;
    let (code, printed) = liar.command(&["--only=configmaps", "--write"]).await;
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("configmaps writes: ") && printed.contains("a version after"), "{printed}");
    let namespaces = server.client().get("/api/v1/namespaces").await.expect(200).json();
    let left = namespaces["items"].as_array().expect("a list").iter().filter(|namespace| {
        let name = namespace["metadata"]["name"].as_str().expect("a name");
        name.starts_with("revisor-conformance-") && namespace["metadata"]["deletionTimestamp"].is_null()
    });
    assert_eq!(left.count(), 0);
}

#[tokio::test]
async fn what_has_no_versions_is_left_alone() {
    let server = Server::start(&[]).await;
    // As metrics servers do it: objects that are made when they are asked for, and cannot be watched.
    let lie: Lie = |_, _, _, body| {
        if body["kind"] == "APIResourceList" {
            for resource in body["resources"].as_array_mut().into_iter().flatten() {
                resource["verbs"] = json!(["get", "list"]);
            }
        }
        if body["items"].is_array() {
            set(body, &["metadata", "resourceVersion"], "");
        }
    };
    let liar = Liar::start(&server.client(), lie).await;
    let (code, printed) = liar.command(&["--only=configmaps"]).await;
    // Nothing was found out.
    assert_eq!(code, Some(2), "{printed}");
    assert!(printed.contains("configmaps was not looked at: it cannot be watched"), "{printed}");
}

fn set(body: &mut Value, path: &[&str], text: &str) {
    let mut at = body;
    for name in path {
        match at.get_mut(name) {
            Some(next) => at = next,
            None => return,
        }
    }
    *at = json!(text);
}

fn each(body: &mut Value, change: impl Fn(&mut Value)) {
    body["items"].as_array_mut().into_iter().flatten().for_each(change);
}

/// Passes requests on to a server, over plain HTTP, and changes what comes back.
struct Liar {
    url: String,
    working: tokio::task::JoinHandle<()>,
}

impl Liar {
    async fn start(client: &Client, lie: Lie) -> Liar {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let client = Arc::new(client.clone());
        let working = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let client = Arc::clone(&client);
                let service = service_fn(move |request| pass_on(Arc::clone(&client), request, lie));
                // Whoever hangs up has what they wanted.
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Liar { url, working }
    }

    async fn command(&self, more: &[&str]) -> (Option<i32>, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_revisor"));
        command
            .args(COMMAND.split(' '))
            .arg(format!("--server={}", self.url))
            .args(more)
            .env("KUBECONFIG", "/dev/null");
        let ended = within(tokio::task::spawn_blocking(move || command.output())).await;
        let output = ended.expect("does not panic").expect("the program can be started");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        self.working.abort();
    }
}

type Body = BoxBody<Bytes, hyper::Error>;

fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed()
}

async fn pass_on(client: Arc<Client>, request: Request<Incoming>, lie: Lie) -> Result<Response<Body>, hyper::Error> {
    let (head, body) = request.into_parts();
    let query = head.uri.query().unwrap_or_default().to_owned();
    let path = head.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
    let sent = body.collect().await?.to_bytes();
    let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let headers =
        ["accept", "content-type"].map(|name| (name, header(name).unwrap_or_else(|| "application/json".to_owned())));
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, &**value)).collect();
    let answer = client.try_open(client.request(head.method.clone(), &path, &headers, sent)).await;
    let (head_back, body_back) = answer.expect("the server answers").into_parts();
    let mut code = head_back.status.as_u16();
    let respond = |code: u16, body: Body| {
        let response = Response::builder().status(code).header("content-type", "application/json").body(body);
        Ok(response.expect("a response"))
    };
    if query.contains("watch=true") && code == 200 {
        // Event by event, as they come.
        let mut rest = Vec::new();
        let method = head.method.clone();
        let changed = body_back.map_frame(move |frame| {
            let Ok(data) = frame.into_data() else { return hyper::body::Frame::data(Bytes::new()) };
            rest.extend_from_slice(&data);
            let mut out = Vec::new();
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = rest.drain(..=end).collect();
                let mut event: Value = serde_json::from_slice(&line).expect("an event");
                lie(&method, &query, &mut 200, &mut event);
                out.extend_from_slice(format!("{event}\n").as_bytes());
            }
            hyper::body::Frame::data(Bytes::from(out))
        });
        return respond(code, changed.boxed());
    }
    let bytes = body_back.collect().await?.to_bytes();
    match serde_json::from_slice::<Value>(&bytes) {
        Ok(mut value) => {
            lie(&head.method, &query, &mut code, &mut value);
            respond(code, full(value.to_string()))
        }
        Err(_) => respond(code, full(bytes)),
    }
}
