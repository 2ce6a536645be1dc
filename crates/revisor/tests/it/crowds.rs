//! Many at once, and some who only take: nobody else suffers from them.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::client::TlsStream;

use crate::client::Client;
use crate::harness::{GUEST_TOKEN, Server, eventually, within};
use crate::objects::{CONFIG_MAPS, config_map};

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
const MAY_I: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// More than the server lets stand before its door.
const SILENT: usize = 1_100;

#[tokio::test]
async fn a_thousand_silent_connections_keep_nobody_out() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).expect("more open files");
    let server = Server::start(&[]).await;
    let mut silent = Vec::new();
    for _ in 0..SILENT {
        silent.push(within(TcpStream::connect(server.kubeconfig.address)).await.expect("the server listens"));
    }
    for client in [server.client().apart(), server.client().over_http1()] {
        client.get("/readyz").await.expect(200);
    }
    // Nobody waited for the others to run out of time: those who gave way are hardly more than had to.
    let displaced = metric(&server, "apiserver_tls_handshake_errors_total").await;
    assert!((1..=SILENT as u64 / 2).contains(&displaced), "{displaced} of {SILENT}");
    assert!(metric(&server, "revisor_connections_displaced_total{state=\"new\"}").await >= displaced);
    drop(silent);
}

#[tokio::test]
async fn bodies_that_do_not_come_stop_nobody_else() {
    let server = Server::start(&[]).await;
    let admin = server.client();
    may_do_everything_with_config_maps(&admin, "writer").await;
    let guest = admin.clone().with_token(GUEST_TOKEN);
    let mut slow = Connection::<NeverSent>::open(&guest, WINDOW).await;
    // The first is answered, so that the others may be many.
    assert_eq!(slow.request(&guest, Method::GET, "/version", NeverSent { is_empty: true }).await.status(), 200);
    let mut waiting = Vec::new();
    for _ in 0..250 {
        let request = request_of(&guest, Method::POST, MAY_I, NeverSent { is_empty: false });
        within(slow.sender.ready()).await.expect("open");
        waiting.push(tokio::spawn(slow.sender.send_request(request)));
    }
    // It comes after all the others on the same connection.
    assert_eq!(slow.request(&guest, Method::GET, "/version", NeverSent { is_empty: true }).await.status(), 200);
    let writer = admin.acting_as("writer");
    for name in ["a", "b", "c"] {
        writer.post(CONFIG_MAPS, &config_map(name, "1")).await.expect(201);
    }
    assert!(waiting.iter().all(|waiting| !waiting.is_finished()), "they still wait for their bodies");
}

#[tokio::test]
async fn a_request_has_its_place_until_its_last_byte_was_taken() {
    let server = Server::start(&[]).await;
    let admin = server.client();
    write_large_config_maps(&admin, 0).await;
    assert_eq!(metric(&server, READING).await, 1, "only the one that asks");
    let (connection, list) = unread_list(&admin).await;
    assert_eq!(metric(&server, READING).await, 2);
    drop(list);
    eventually(|| async { (metric(&server, READING).await == 1).then_some(()) }).await;
    drop(connection);
}

#[tokio::test]
async fn whoever_was_answered_has_no_place_any_more() {
    let flags = ["--enable-priority-and-fairness=false", "--max-mutating-requests-inflight=1"];
    let server = Server::start(&flags).await;
    let admin = server.client();
    may_do_everything_with_config_maps(&admin, "lone").await;
    let lone = admin.acting_as("lone");
    for number in 0..200 {
        lone.post(CONFIG_MAPS, &json!({"metadata": {"name": format!("c{number}")}})).await.expect(201);
    }
}

#[tokio::test]
async fn a_body_on_its_way_takes_the_place_that_becomes_free() {
    let flags = ["--enable-priority-and-fairness=false", "--max-mutating-requests-inflight=1"];
    let server = Server::start(&flags).await;
    let admin = server.client();
    may_do_everything_with_config_maps(&admin, "jane").await;
    let jane = admin.with_token(GUEST_TOKEN);
    let first = HalfSent::begin(&jane, "first").await;
    eventually(|| async { (metric(&server, WRITING).await == 1).then_some(()) }).await;
    // There is no place for the second, nor for one whose body is there.
    let second = HalfSent::begin(&jane, "second").await;
    jane.post(CONFIG_MAPS, &config_map("whole", "1")).await.expect(429);
    assert!(first.finish().await.starts_with("HTTP/1.1 201 "));
    // Only the second can be in the way now.
    eventually(|| async { (jane.post(CONFIG_MAPS, &config_map("whole", "1")).await.code == 429).then_some(()) }).await;
    assert!(second.finish().await.starts_with("HTTP/1.1 201 "));
}

#[tokio::test]
async fn a_level_that_is_full_keeps_only_its_own_waiting() {
    const FLOWS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";
    let server = Server::start(&[]).await;
    let admin = server.client();
    for user in ["greedy", "modest"] {
        may_do_everything_with_config_maps(&admin, user).await;
    }
    write_large_config_maps(&admin, 0).await;
    // One list takes more seats than there are, so it is served alone.
    let limited =
        json!({"nominalConcurrencyShares": 1, "borrowingLimitPercent": 0, "limitResponse": {"type": "Reject"}});
    let level = json!({"metadata": {"name": "narrow"}, "spec": {"type": "Limited", "limited": limited}});
    admin.post(&format!("{FLOWS}/prioritylevelconfigurations"), &level).await.expect(201);
    let everything =
        json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": true});
    let schema = json!({"metadata": {"name": "narrow"}, "spec": {
        "priorityLevelConfiguration": {"name": "narrow"},
        "matchingPrecedence": 50,
        "rules": [{"subjects": [{"kind": "User", "user": {"name": "greedy"}}], "resourceRules": [everything]}],
    }});
    admin.post(&format!("{FLOWS}/flowschemas"), &schema).await.expect(201);
    let (greedy, modest) = (admin.acting_as("greedy"), admin.acting_as("modest"));
    let (connection, list) = unread_list(&greedy).await;
    let refused = greedy.get(CONFIG_MAPS).await.expect(429);
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(refused.text(), "Too many requests, please try again later.\n");
    modest.get(CONFIG_MAPS).await.expect(200);
    let rejected = "apiserver_flowcontrol_rejected_requests_total{flow_schema=\"narrow\",priority_level=\"narrow\",\
                    reason=\"concurrency-limit\"}";
    assert_eq!(metric(&server, rejected).await, 1);
    drop((list, connection));
    eventually(|| async { (greedy.get(CONFIG_MAPS).await.code == 200).then_some(()) }).await;
}

#[tokio::test]
async fn lists_that_nobody_reads_do_not_pile_up() {
    let server = Server::start(&["--max-unread-list-bytes=3000000"]).await;
    let admin = server.client();
    write_large_config_maps(&admin, 0).await;
    let mut unread = Vec::new();
    for round in 1..6 {
        unread.push(unread_list(&admin).await);
        write_large_config_maps(&admin, round).await;
    }
    // Each holds a megabyte of its own: only some can stay. The newest is one of them.
    let mut whole = 0;
    for (round, (_connection, list)) in unread.into_iter().enumerate() {
        match within(list.into_body().collect()).await {
            Ok(body) => {
                let list: Value = serde_json::from_slice(&body.to_bytes()).expect("a list");
                let items = list["items"].as_array().expect("items");
                assert!(items.iter().all(|item| item["data"]["k"] == large(round)), "one state");
                whole += 1;
            }
            Err(error) => assert!(round < 4, "the newest ends with {error}"),
        }
    }
    assert!((1..5).contains(&whole), "{whole}");
    let ended = metric(&server, "revisor_answers_cut_off_total").await;
    assert_eq!(whole + ended, 5);
}

#[tokio::test]
async fn watches_are_counted_and_shared() {
    let server = Server::start(&["--max-watches=8"]).await;
    let admin = server.client();
    for user in ["greedy", "modest"] {
        may_do_everything_with_config_maps(&admin, user).await;
    }
    let (greedy, modest) = (admin.acting_as("greedy"), admin.acting_as("modest"));
    let mut watches = Vec::new();
    for _ in 0..6 {
        watches.push(greedy.watch(CONFIG_MAPS, "").await);
    }
    let path = format!("{CONFIG_MAPS}?watch=1");
    let refused = greedy.get(&path).await.expect(429);
    assert_eq!(refused.header("retry-after"), Some("1"));
    watches.push(modest.watch(CONFIG_MAPS, "").await);
    modest.get(&path).await.expect(429);
    for _ in 0..3 {
        watches.push(admin.watch(CONFIG_MAPS, "").await);
    }
    drop(watches);
    let short = format!("{path}&timeoutSeconds=1");
    eventually(|| async { (modest.get(&short).await.code == 200).then_some(()) }).await;
}

#[tokio::test]
async fn a_connection_of_nobody_in_particular_ends_with_its_answer() {
    for (gate, ends) in [("true", true), ("false", false)] {
        let gate = format!("--feature-gates=UnauthenticatedHTTP2DOSMitigation={gate}");
        let server = Server::start(&[&gate]).await;
        let stranger = Client::new(server.kubeconfig.clone());
        let mut connection = Connection::<NeverSent>::open(&stranger, WINDOW).await;
        let nothing = || NeverSent { is_empty: true };
        let version = connection.request(&stranger, Method::GET, "/version", nothing()).await;
        assert_eq!(version.status(), 200, "{gate}");
        within(version.into_body().collect()).await.expect("whole");
        if ends {
            // However it is told, it ends.
            let _ = within(connection.driver).await.expect("no panic");
        } else {
            assert_eq!(connection.request(&stranger, Method::GET, "/version", nothing()).await.status(), 200);
        }
        // Who says who they are stays.
        let admin = server.client();
        let mut connection = Connection::<NeverSent>::open(&admin, WINDOW).await;
        for _ in 0..3 {
            assert_eq!(connection.request(&admin, Method::GET, "/version", nothing()).await.status(), 200);
        }
    }
}

/// How much a client may be sent of an answer that it does not read; the usual.
const WINDOW: u32 = 65_535;

const WRITING: &str = "apiserver_current_inflight_requests{request_kind=\"mutating\"}";

const READING: &str = "apiserver_current_inflight_requests{request_kind=\"readOnly\"}";

/// A body that is announced and does not come, or none.
struct NeverSent {
    is_empty: bool,
}

impl Body for NeverSent {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        if self.is_empty { Poll::Ready(None) } else { Poll::Pending }
    }

    fn is_end_stream(&self) -> bool {
        self.is_empty
    }
}

/// A config map of which all but the last byte was sent, over HTTP/1.
struct HalfSent(TlsStream<TcpStream>);

impl HalfSent {
    async fn begin(client: &Client, name: &str) -> HalfSent {
        let mut stream = within(client.clone().over_http1().connect()).await.expect("the server listens");
        let body = config_map(name, "1").to_string();
        let begin = format!(
            "POST {CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {GUEST_TOKEN}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
            body.len(),
            &body[..body.len() - 1],
        );
        within(stream.write_all(begin.as_bytes())).await.expect("it can be sent");
        HalfSent(stream)
    }

    /// Sends the rest, and reads the answer.
    async fn finish(mut self) -> String {
        within(self.0.write_all(b"}")).await.expect("it can be sent");
        let mut answer = Vec::new();
        within(self.0.read_to_end(&mut answer)).await.expect("an answer");
        String::from_utf8(answer).expect("a text")
    }
}

/// A connection over HTTP/2 with a window of its own.
struct Connection<B: Body + Send + Unpin + 'static> {
    sender: http2::SendRequest<B>,
    driver: JoinHandle<hyper::Result<()>>,
}

impl Connection<NeverSent> {
    async fn open(client: &Client, window: u32) -> Connection<NeverSent> {
        let io = TokioIo::new(within(client.connect()).await.expect("the server listens"));
        let handshake = http2::Builder::new(TokioExecutor::new()).initial_stream_window_size(window).handshake(io);
        let (sender, connection) = within(handshake).await.expect("HTTP/2");
        Connection { sender, driver: tokio::spawn(connection) }
    }

    async fn request(
        &mut self,
        client: &Client,
        method: Method,
        path: &str,
        body: NeverSent,
    ) -> http::Response<Incoming> {
        within(self.sender.ready()).await.expect("open");
        within(self.sender.send_request(request_of(client, method, path, body))).await.expect("an answer")
    }
}

fn request_of(client: &Client, method: Method, path: &str, body: NeverSent) -> Request<NeverSent> {
    let length = if body.is_empty { "0" } else { "100" };
    let headers = [("content-type", "application/json"), ("content-length", length)];
    client.request(method, path, &headers, "").map(|_| body)
}

/// A list of which the client takes hardly more than the head.
async fn unread_list(client: &Client) -> (Connection<NeverSent>, http::Response<Incoming>) {
    let mut connection = Connection::open(client, WINDOW).await;
    let list = connection.request(client, Method::GET, CONFIG_MAPS, NeverSent { is_empty: true }).await;
    assert_eq!(list.status(), 200);
    (connection, list)
}

fn large(round: usize) -> String {
    format!("{round}-").repeat(25_000)
}

/// Writes a megabyte of config maps.
async fn write_large_config_maps(client: &Client, round: usize) {
    for at in 0..20 {
        let object = config_map(&format!("large-{at}"), &large(round));
        if round == 0 {
            client.post(CONFIG_MAPS, &object).await.expect(201);
        } else {
            client.put(&format!("{CONFIG_MAPS}/large-{at}"), &object).await.expect(200);
        }
    }
}

async fn may_do_everything_with_config_maps(admin: &Client, user: &str) {
    let rule = json!({"verbs": ["*"], "apiGroups": [""], "resources": ["configmaps"]});
    admin.post(ROLES, &json!({"metadata": {"name": user}, "rules": [rule]})).await.expect(201);
    let binding = json!({
        "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}],
    });
    admin.post(BINDINGS, &binding).await.expect(201);
}

/// The value of a metric, by its name and labels.
async fn metric(server: &Server, name: &str) -> u64 {
    let reply = server.client().get("/metrics").await.expect(200);
    let text = String::from_utf8(reply.body.to_vec()).expect("a text");
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name} in {text}"))
}
